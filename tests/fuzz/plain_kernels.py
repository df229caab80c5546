"""Random plain kernels, specialised by warps and run beside the plain ones at five sizes each.

    python -m tests.fuzz.plain_kernels 300 --seed 0 --jobs 2
    python -m tests.fuzz.plain_kernels --only 17                 shows one kernel and how it ends
    python -m tests.fuzz.plain_kernels 300 --seed 50             unusual accesses, loops and ends (`plain_wild`)
    python -m tests.fuzz.plain_kernels 300 --source              the specialised kernels as they are written in a file
    python -m tests.fuzz.plain_kernels 300 --plain               the plain kernels only, against nothing: that they run

Prints how many were specialised, and the reasons for which others were refused. Decisions are drawn, too: groups, depth
and the rest. A kernel ends as `specialised`, `refused`, `plain` (the launch's conditions hold at none of its sizes), or
badly: `wrong`, `deadlock`, `fault`, `plain wrong` (the plain kernel does not run: the generator is at fault). Of
written files some are also proved (`refuted` is a bad end), run in more orders (`race`), run as PTX, and compiled
beside the module that they were written from (`other ttgir`).
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fuzz.plain_operands import SIZES, Program
from tests.fuzz.plain_programs import differs, program as usual_program
from tests.fuzz.plain_wild import Wild
from tests.fuzz.pool import BAD, Ending, ending, endings
from tests.gallery.plain.specialized import PROGRAMS, Made, MadeBySource, made_by_source, make, plain_of
from tests.unit.decompile.equal_ttgir import difference_from_source
from tlx_xdsl import CompilationError
from tlx_xdsl.backend.errors import OutOfResourcesError
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.interpreter.faults import Deadlock
from tlx_xdsl.runtime.check.run import check
from tlx_xdsl.runtime.driver.compilation import frontend_module
from tlx_xdsl.runtime.specialize.rules import by_rule
from tlx_xdsl.runtime.specialize.verdict import proof_of
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.transforms.warp_specialize.refusal import WarpSpecializeRefusal
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions, specialize

FAILED = (*BAD, "deadlock", "fault", "plain wrong", "refuted", "race", "other ttgir")
OVER_BUDGET = "B of shared memory"
SECONDS = 60
"""Seconds of a processor for a kernel, its proof and its other runs."""
BEYOND = "outside of the tensor: nothing is written"
"""A tile beyond the matrix, which the plain kernel masks, and TMA leaves out."""
WILD = 50_000_000
"""The first number of a kernel of `plain_wild`."""
SCHEDULES = ("round-robin", "adversarial", "random")


def decisions(number: int) -> Decisions:
    """Draw decisions for the kernel of a number: mostly left to the compiler."""
    rng = random.Random(number * 7 + 1)
    form = rng.choices(("", "persistent", "cluster", "join"), (50, 20, 15, 15))[0]
    several = form in ("cluster", "join")
    return Decisions(
        groups=rng.choice((2, 3) if form == "join" else (None, 1, 2, 2)),
        join=True if form == "join" else None,
        cluster=2 if form == "cluster" else None,
        order=rng.choice((None, 0, 1, 2)) if form else None,
        depth=rng.choice((None, 2, 3, 4, 1)),
        outer_depth=rng.choice((None, None, 1, 2)),
        persistent=True if form == "persistent" or several else rng.choice((None, None, False)),
        delay_scales=rng.choice((None, None, False)),
        split_masks=rng.choice((None, None, False)),
        transpose=rng.choice((None, None, False)),
        pipeline=rng.choice((None, True, False)),
        overlap=rng.choice((None, True, False)),
        turns=rng.choice((None, True, False)),
        stage_stores=rng.choice((None, True, False)),
        alias=rng.choice((None, None, True)),
        pieces=rng.choice((None, None, 2, 4, 8)),
    )


def program(number: int) -> Program:
    """The program of a number: the unusual ones are from `WILD` on."""
    return Wild(number).program() if number >= WILD else usual_program(number)


def kernel_of(text: str, folder: Path, number: int) -> Any:
    """The kernel of a program's text."""
    path = folder / f"plain{number}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def types_of(made: Program) -> dict[str, Any]:
    """The types of numbers: as small as they are at all sizes, so that one module serves them all."""
    problems = [made.problem(at, 0)[0].arguments for at in range(SIZES)]
    found: dict[str, Any] = {}
    for name, value in problems[0].items():
        if isinstance(value, int):
            found[name] = "i32:16" if all(each[name] % 16 == 0 for each in problems) else "i32"
    return found


def trial(number: int, *, only_plain: bool = False, by_source: bool = False) -> Ending:
    """Specialise the kernel of a number, and run both at all sizes; `by_source`, the kernel of the written file."""
    written = program(number)
    chosen = decisions(number)
    with tempfile.TemporaryDirectory() as folder:
        kernel = kernel_of(written.text, Path(folder), number)
        if only_plain:
            return _plain(kernel, written)
        try:
            with collected_diagnostics():  # decisions that a pass can't follow, in remarks
                first, types = written.problem(0, 0)[0], types_of(written)
                made = (made_by_source if by_source else make)(kernel, first, {}, written.num_warps, chosen, types)
        except WarpSpecializeRefusal as refusal:
            return Ending("refused", refusal.message)
        ran = exact = 0
        for at in range(SIZES):
            how = _at_size(made, written, at, number, chosen)
            if isinstance(how, Ending):
                return how
            ran += how is not None
            exact += how or 0
        outputs = sum(array.kind in ("out", "sum") for array in written.arrays)
        words: list[str] = []
        if isinstance(made, MadeBySource) and ran:
            for each in (_proved, _checked, _in_ptx, _same_ttgir):
                if isinstance(word := each(number, written, made, kernel, chosen), Ending):
                    return word
                words += [word] if word else []
        return Ending("specialised" if ran else "plain", " ".join([f"{ran} {exact} {ran * outputs}", *words]))


def _at_size(made: Made, written: Program, at: int, number: int, chosen: Decisions) -> Ending | int | None:
    """Run both kernels at one size: the number of outputs equal to the bit; None where a launch takes the plain one."""
    plain, guards = written.problem(at, number)
    special, special_guards = written.problem(at, number)
    if made.why_not(special):
        return None
    where = f"at {written.sizes[at]}, {chosen.given()}"
    try:
        made.run_plain(plain)
    except CompilationError as error:
        return Ending("plain wrong", f"{where}: {error}")
    guards.check_guards()
    try:
        result = made.run_specialized(special, schedule=SCHEDULES[at % len(SCHEDULES)], seed=number)
    except Deadlock as error:
        return Ending("deadlock", f"{where}: {error}")
    except CompilationError as error:
        return Ending("fault", f"{where}: {error}")
    special_guards.check_guards()
    said = [each for each in result.warnings if each.severity != "remark" and BEYOND not in each.message]
    if said and OVER_BUDGET in said[0].message:
        # Rings as deep as asked for, or beside buffers that decisions ask for: no launch takes such a kernel.
        return Ending("refused", "more shared memory than there is, with the decisions that were given")
    if said:
        return Ending("fault", f"{where}: warns: {said[0]}")
    for name in plain.outputs:
        if (how := differs(special.arrays[name], plain.arrays[name])) is not None:
            return Ending("wrong", f"{name} {where}: {how}")
    return sum(special.arrays[name].tobytes() == plain.arrays[name].tobytes() for name in plain.outputs)


def _fitting(written: Program, made: Made, number: int) -> Any:
    """The problem of the smallest launch that takes the specialised kernel."""
    problems = [written.problem(at, number)[0] for at in range(SIZES)]
    fitting = [each for each in problems if not made.why_not(each)]
    return min(fitting, key=lambda each: sum(array.nbytes for array in each.arrays.values()))


def _proved(number: int, _written: Program, made: MadeBySource, _kernel: Any, chosen: Decisions) -> Ending | str:
    """Prove every second kernel; a proof against it is a fault, since it has run."""
    if number % 2:
        return ""
    verdict = proof_of(made.found.kernel, made.found.specialization)
    if verdict.answer == "refuted":
        return Ending("refuted", f"{chosen.given()}: {verdict}")
    return verdict.answer.replace(" ", "-")


def _checked(number: int, written: Program, made: MadeBySource, _kernel: Any, chosen: Decisions) -> Ending | str:
    """Run some kernels in other orders, for some seconds."""
    if number % 6 != 3:
        return ""
    problem = _fitting(written, made, number)
    grid, values = made.found.fitted(problem.grid, dict(problem.arguments), PROGRAMS)
    report = check(
        made.found.kernel, grid, *values, seconds=4.0, stages=("frontend",), launches=1, options=made.found.run_options
    )
    if report.findings:
        return Ending("race", f"{chosen.given()}: {report.findings[0].diagnostic}")
    return "checked"


def _in_ptx(number: int, written: Program, made: MadeBySource, _kernel: Any, chosen: Decisions) -> Ending | str:
    """Run every tenth kernel's final code."""
    if number % 10:
        return ""
    plain, special = _fitting(written, made, number), _fitting(written, made, number)
    made.run_plain(plain)
    try:
        result = made.run_specialized(special, stage="ptx")
    except OutOfResourcesError:
        return "too-large-in-ptx"
    if result.warnings:
        return Ending("fault", f"in PTX, {chosen.given()}: {result.warnings[0]}")
    for name in plain.outputs:
        if (how := differs(special.arrays[name], plain.arrays[name])) is not None:
            return Ending("wrong", f"in PTX, {name}, {chosen.given()}: {how}")
    return "ptx"


def _same_ttgir(number: int, written: Program, made: MadeBySource, kernel: Any, chosen: Decisions) -> Ending | str:
    """Compare what the compiler makes of every fourth kernel's file with what it makes of the module."""
    if number % 4 != 1:
        return ""
    module = plain_of(kernel, written.problem(0, 0)[0], {}, written.num_warps, types_of(written)).plain
    with collected_diagnostics():
        specialize(module, make_context(), by_rule(chosen, module), replicate=False)
        again = frontend_module(made.found.kernel.source, made.found.specialization)
        how = difference_from_source(module, again, passes=True)
    if how is not None and "xsi8" in how and "function_type" in how:
        # A descriptor's type says in source alone whether bytes have a sign.
        return "ttgir-but-for-signs"
    return "ttgir" if how is None else Ending("other ttgir", f"{chosen.given()}: {how}")


def _plain(kernel: Any, written: Program) -> Ending:
    for at in range(SIZES):
        problem, guards = written.problem(at, 0)
        try:
            plain_of(kernel, problem, {}, written.num_warps, types_of(written)).run_plain(problem)
        except CompilationError as error:
            return Ending("plain wrong", f"at {written.sizes[at]}: {error}")
        guards.check_guards()
    return Ending("plain")


def _reason(detail: str) -> str:
    """The reason of a refusal without what differs from kernel to kernel."""
    return re.sub(r"'[^']*'|\d+", "_", detail)


def _counts(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.plain_kernels")
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first number is a million times this")
    parser.add_argument("--skip", type=int, default=0, help="begin so many numbers later")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="run the plain kernels only")
    parser.add_argument("--source", action="store_true", help="run the specialised kernels from their written files")
    parser.add_argument("--only", type=int, help="show one kernel and how it ends")
    args = parser.parse_args()

    def run(number: int) -> Ending:
        return trial(number, only_plain=args.plain, by_source=args.source)

    if args.only is not None:
        made = program(args.only)
        print(made.text, f"\n{made.num_warps} warps, {decisions(args.only).given()}", *made.sizes, sep="\n")
        how = ending(run, args.only, SECONDS)
        print(f"--- {how.kind}\n{how.detail}")
        return how.kind in FAILED
    first = args.seed * 1_000_000 + args.skip
    totals: Counter[str] = Counter()
    by_form: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    more: Counter[str] = Counter()
    with_product = ran = exact = outputs = 0
    for number, how in endings(run, range(first, first + args.count), args.jobs, SECONDS):
        totals[how.kind] += 1
        made = program(number)
        with_product += made.has_product
        by_form[made.form, how.kind] += 1
        if how.kind in FAILED:
            print(f"{number}: {how.kind}: {how.detail.strip()[-700:]}", flush=True)
        elif how.kind == "refused":
            reasons[_reason(how.detail)] += 1
        elif how.kind == "specialised":
            counts, words = how.detail.split()[:3], how.detail.split()[3:]
            ran, exact, outputs = (a + int(b) for a, b in zip((ran, exact, outputs), counts, strict=True))
            more.update(words)
    print(f"plain_kernels: {totals.total()} kernels: {_counts(totals)}")
    print(f"with a product in a loop: {with_product}; runs: {ran}; outputs equal to the bit: {exact} of {outputs}")
    print(f"of them: {_counts(more)}")
    for form in sorted({form for form, _ in by_form}):
        print(f"  {form}: {_counts(Counter({kind: n for (of, kind), n in by_form.items() if of == form}))}")
    for reason, count in reasons.most_common():
        print(f"{count:5} refused: {reason}")
    return any(totals[kind] for kind in FAILED)


if __name__ == "__main__":
    sys.exit(main())
