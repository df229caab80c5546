"""The work of `tlx ttl`: kernels for Tenstorrent's cores, as C++ or run here."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError, InputError, InputTypeError, SourceLocation
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.limits import POLICIES, SEEDED
from tlx_xdsl.numerics.difference import wide
from tlx_xdsl.text.printer import locations_first
from tlx_xdsl.tools.commands.array_checks import Expected, check_array, expected_array, summary
from tlx_xdsl.tools.documents import diagnostic_as_json, document
from tlx_xdsl.tools.launch_line.launches import Hint, argument_value
from tlx_xdsl.tools.launch_line.loading import run_file
from tlx_xdsl.tools.launch_line.request import assignments
from tlx_xdsl.tools.output import print_document, say, write_file
from tlx_xdsl.tools.timelines import TEXT, form_of, write_timelines

from ..cost import Profile
from ..cpp import MAIN_PROFILE
from ..interpreter.ttkernel.threads import choices_text
from ..language.kernel import Kernel
from ..runtime import Options, Prepared, compile_kernel, specs_of
from ..runtime.launch import launch_arrays
from ..runtime.memory_config import memory_named, placed
from ..runtime.specs import annotated, parameters
from ..runtime.stand_in import ttl_importable

COUNTS = ""
"""The value of `--profile` that asks for what a run moves and computes."""
SCHEDULES = 8
"""Schedules of each kind with a seed that `tlx ttl check` tries."""
BUDGET = 200
"""Runs in which it looks for orders that make a difference."""
_TYPES = {"f32": "fp32", "bfp8_b": "fp32", "bfp4_b": "fp32", "ui32": "u32", "ui16": "u16"}
"""The words of the command line for types of elements, where they are not ours."""


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns the exit status, 1 where a document says that a tensor is wrong.

    Raises CompilationError for a fault in the kernel, in what it does, and in what the command line says about it.
    """
    try:
        kernel = load_ttl_kernel(args.kernel)
        facts = _ACTIONS[args.action](args, kernel, _arguments(args, kernel))
    except (InputError, InputTypeError) as error:
        raise CompilationError(str(error)) from error
    ok = all(each["ok"] for each in facts.get("checks", ()))
    if args.format == "json":
        print_document(document("tlx ttl", {"action": args.action, "kernel": kernel.name, **facts}, ok=ok))
    return 0 if ok else 1


def _arguments(args: argparse.Namespace, kernel: Kernel) -> dict[str, Any]:
    """The arguments of the kernel by its parameters: arrays and numbers."""
    texts = assignments(args.arg, "--arg")
    names, known = parameters(kernel), annotated(kernel)
    for name in texts:
        if name not in names:
            have = ", ".join(names)
            raise CompilationError(f"--arg: '{kernel.name}' has no parameter '{name}', its parameters are {have}")
    described = {
        name: f"randn:{_TYPES.get(spec.dtype.name, spec.dtype.name)}[{','.join(map(str, spec.shape))}]"
        for name, spec in known.items()
    }
    texts = described | texts
    if missing := [f"--arg {name}=randn[ROWS,COLUMNS]" for name in names if name not in texts]:
        raise CompilationError(f"'{kernel.name}' needs values: {' '.join(missing)}")
    values = {name: _argument(name, texts[name], args.seed) for name in names}
    layout = "TILE" if kernel.tiled else "ROW_MAJOR"
    for name, text in assignments(args.memory, "--memory").items():
        if not isinstance(values.get(name), np.ndarray) or name in known:
            raise CompilationError(f"--memory: '{name}' is no tensor of '{kernel.name}' without an annotation")
        values[name] = placed(values[name], memory_named(text), layout)
    return values


def _argument(name: str, text: str, seed: int) -> Any:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    value = argument_value(name, text, Hint(np.dtype(np.float32)), seed)
    if not isinstance(value, np.ndarray):
        raise CompilationError(f"--arg {name}: expected a number, or an array such as randn[64,64], found '{text}'")
    return cast("NDArray[Any]", value)


def _arrays(arguments: dict[str, Any]) -> dict[str, NDArray[Any]]:
    return {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}


def _options(args: argparse.Namespace) -> Options:
    return Options(
        MAIN_PROFILE if args.profile == COUNTS else args.profile,
        not args.no_schedule,
        args.capacity,
        args.fpu,
        not args.no_lines,
        block_calls=not args.no_block_calls,
        zones=args.zones,
        strict=args.strict,
        arch=args.arch,
        grid=None if args.grid is None else _grid(args.grid),
        l1=args.l1,
    )


def _grid(text: str) -> tuple[int, int]:
    columns, _, rows = text.partition("x")
    if not (columns.isdecimal() and rows.isdecimal()):
        raise CompilationError(f"--grid: expected COLUMNSxROWS such as 8x7, found '{text}'")
    return int(columns), int(rows)


def _compile(args: argparse.Namespace, kernel: Kernel, arguments: dict[str, Any]) -> dict[str, Any]:
    output = None if args.output == "-" else Path(args.output or "build")
    paths: list[Path] = []
    numbers = count()

    def write(name: str, text: str) -> None:
        assert output is not None
        path = output / f"{kernel.name}.{name}"
        write_file(path, text)
        paths.append(path)

    def on_stage(stage: str, text: str) -> None:
        if output is None:
            print(f"// -----// IR Dump After {stage} //----- //\n{locations_first(text)}", file=sys.stderr)
        else:
            write(f"{next(numbers):02d}-{stage}.mlir", locations_first(text))

    begin = time.perf_counter()
    shows = on_stage if args.print_after_all else None
    compiled = compile_kernel(kernel, specs_of(kernel, list(arguments.values())), _options(args), on_stage=shows)
    seconds = time.perf_counter() - begin
    facts = {"manifest": compiled.manifest, "seconds": round(seconds, 3)}
    if output is None:
        for name, text in compiled.sources.items():
            print(f"// {name}\n{text}")
        return {"files": [], "texts": dict(compiled.sources), **facts}
    for name, text in compiled.sources.items():
        write(name, text)
    write("json", compiled.manifest_text)
    for path in paths:
        print(path)
    buffers = compiled.manifest["cbs"]
    held = max((each["address"] + each["bytes"] for each in buffers), default=0)
    print(f"{len(buffers)} circular buffers, {held:,} bytes of L1; compiled in {seconds:.2f} s", file=sys.stderr)
    return {"files": [*map(str, paths)], **facts}


def _run(args: argparse.Namespace, kernel: Kernel, arguments: dict[str, Any]) -> dict[str, Any]:
    if args.timeline is not None:
        form_of(args.timeline)
    values = list(arguments.values())
    prepared = Prepared(kernel, values, args.machine, _options(args))
    timed: list[Profile] = []

    def run() -> tuple[str, str, list[Any]]:
        if args.profile == COUNTS or args.timeline is not None:
            timed.append(prepared.profile(values, schedule=args.schedule, seed=args.seed))
            report = timed[0].report
        else:
            report = prepared.run(values, schedule=args.schedule, seed=args.seed)
        warnings = [] if report is None else list(report.warnings)
        for warning in warnings:
            say(warning)
        schedule = args.schedule if isinstance(args.schedule, str) else f"{len(args.schedule)} choices"
        return f"run on the machine '{args.machine}'", f"{schedule}, seed {args.seed}", warnings

    def show() -> None:
        for each in timed:
            _show(args, each)

    facts = _outcome(args, arguments, run, show)
    if timed:
        facts |= {"profile": timed[0].text().splitlines(), "timelines": [json.loads(timed[0].timeline.to_json())]}
    return facts


def _launch(args: argparse.Namespace, kernel: Kernel, arguments: dict[str, Any]) -> dict[str, Any]:
    def run() -> tuple[str, str, list[Any]]:
        try:
            launch_arrays(kernel, list(arguments.values()), _options(args), device=args.device)
        except RuntimeError as error:
            # What ttnn says of a card or of a program ends in addresses of its own functions.
            said = " ".join(str(error).split("backtrace:")[0].split())
            raise CompilationError(f"ttnn: {said}") from error
        return f"run on the card {args.device}", "with transfers and compilation", []

    return _outcome(args, arguments, run, lambda: None)


def _outcome(
    args: argparse.Namespace,
    arguments: dict[str, Any],
    run: Callable[[], tuple[str, str, list[Any]]],
    show: Callable[[], None],
) -> dict[str, Any]:
    """Run, say what tensors have become, check and save them, and return that for a document.

    `run` returns where and how that was, and warnings; `show` says what else is asked for.
    """
    arrays = _arrays(arguments)
    expected, saved = _expected(args, arrays), _known(args, arrays, "save")
    bytes_before = {name: array.tobytes() for name, array in arrays.items()}
    begin = time.perf_counter()
    where, how, warnings = run()
    seconds = time.perf_counter() - begin
    changed = [name for name, array in arrays.items() if array.tobytes() != bytes_before[name]]
    for name in changed:
        print(f"{name}: {summary(arrays[name])}")
    if not changed:
        print("no tensor has changed")
    print(f"{where} in {seconds:.2f} s: {how}")
    show()
    for name, path in saved.items():
        np.save(path, arrays[name])
    return {
        "run": f"{where}: {how}",
        "seconds": round(seconds, 3),
        "arrays": [{"name": name, "text": summary(arrays[name])} for name in changed],
        "checks": [*_checked(args, arrays, expected)],
        "warnings": [diagnostic_as_json(each) for each in warnings],
    }


def _checked(
    args: argparse.Namespace, arrays: dict[str, NDArray[Any]], expected: dict[str, Expected]
) -> Iterator[dict[str, Any]]:
    """Say of each tensor whether it holds what it must. Without a document the first one that does not is an error."""
    for name, wanted in expected.items():
        try:
            text, ok = check_array(name, arrays[name], wanted, args.tolerance), True
        except CompilationError as error:
            if args.format != "json":
                raise
            text, ok = error.message, False
        print(text)
        yield {"array": name, "ok": ok, "text": text}


def _show(args: argparse.Namespace, timed: Profile) -> None:
    """Print or write what `--profile` and `--timeline` ask for."""
    from tlx_xdsl.timing.show.text import to_text

    if args.profile == COUNTS:
        print(timed.text())
    if args.timeline == TEXT:
        print(to_text(timed.timeline, get_terminal_size().columns))
    elif args.timeline is not None:
        write_timelines(args.timeline, form_of(args.timeline), [timed.timeline])


def _check(args: argparse.Namespace, kernel: Kernel, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run in many schedules, each of which must give the same."""
    arrays = _arrays(arguments)
    expected = _expected(args, arrays)
    schedules = [(POLICIES[0], 0), *((each, seed) for each in SEEDED for seed in range(SCHEDULES))]
    prepared = Prepared(kernel, list(arguments.values()), args.machine, _options(args))
    first: dict[str, bytes] = {}
    checks: list[dict[str, Any]] = []
    for schedule, seed in schedules:
        copies = {name: array.copy() for name, array in arrays.items()}
        with _replayed(f"{schedule} --seed {seed}"):
            prepared.run(list((arguments | copies).values()), schedule=schedule, seed=seed)
        if not first:
            first = {name: array.tobytes() for name, array in copies.items()}
            checks = [*_checked(args, copies, expected)]
            continue
        for name, array in copies.items():
            if array.tobytes() != first[name]:
                raise CompilationError(
                    f"'{name}' depends on the order of threads: schedule {schedule}, seed {seed} gives another result "
                    f"than {schedules[0][0]}"
                )
    print(f"'{kernel.name}': no fault, and one result, in {len(schedules)} schedules")
    facts: dict[str, Any] = {"checks": checks, "schedules": len(schedules), "orders": None, "complete": None}
    found = prepared.explore(list(arguments.values()), BUDGET)
    if found is None:
        return facts
    if found.fault is not None:
        with _replayed(choices_text(found.choices)):
            raise found.fault
    amount = "all orders of its threads" if found.complete else f"{found.runs} orders of its threads, of more"
    print(f"no fault in {amount} ({found.runs} run{'' if found.runs == 1 else 's'})")
    return facts | {"orders": found.runs, "complete": found.complete}


@contextmanager
def _replayed(schedule: str) -> Generator[None]:
    """Say in a fault how to have it again."""
    try:
        yield
    except Fault as fault:
        fault.notes = (*fault.notes, f"found with --schedule {schedule}: 'tlx ttl run' repeats it with that")
        raise


def _expected(args: argparse.Namespace, arrays: dict[str, NDArray[Any]]) -> dict[str, Expected]:
    """Return what tensors must hold, over all tensors as they are before the run."""
    before = {name: wide(array) for name, array in arrays.items()}
    return {
        name: expected_array(name, arrays[name], expression, before)
        for name, expression in _known(args, arrays, "check").items()
    }


def _known(args: argparse.Namespace, arrays: dict[str, NDArray[Any]], option: str) -> dict[str, str]:
    found = assignments(getattr(args, option), f"--{option}")
    for name in found:
        if name not in arrays:
            raise CompilationError(f"--{option}: there is no tensor '{name}', the tensors are {', '.join(arrays)}")
    return found


_ACTIONS: dict[str, Callable[[argparse.Namespace, Kernel, dict[str, Any]], dict[str, Any]]] = {
    "compile": _compile,
    "run": _run,
    "launch": _launch,
    "check": _check,
}


# Finding a TTL kernel in a Python file.


_TTNN = re.compile(r"^\s*(import|from)\s+ttnn\b", re.MULTILINE)


def load_ttl_kernel(spec: str) -> Kernel:
    """The TTL kernel that `FILE.py:KERNEL` names; the name may be left out where a file has one kernel only.

    A file may `import ttl`, `ttnn` and `torch`, as kernels for tt-lang do, open a device and run its kernel: where ttnn
    is not installed, `runtime.stand_in` says what that does while the file is read.

    Raises CompilationError when the file can't be run or holds no such kernel.
    """
    path, _, name = spec.partition(":")
    if not path.endswith(".py") or (name and not name.isidentifier()):
        raise CompilationError(f"expected FILE.py:KERNEL, found '{spec}'")
    text = Path(path).read_text(encoding="utf-8") if Path(path).is_file() else ""
    with ttl_importable(with_torch=_TTNN.search(text) is not None):
        module = run_file(path)
    kernels = {each: value for each, value in vars(module).items() if isinstance(value, Kernel)}
    if not name and len(kernels) == 1:
        return next(iter(kernels.values()))
    if name not in kernels:
        have = f"its kernels are {', '.join(kernels)}" if kernels else "it has no kernel decorated with ttl.kernel"
        asked = f"no kernel '{name}' in this file" if name else "expected FILE.py:KERNEL"
        raise CompilationError(f"{asked}, {have}", SourceLocation(path, 0))
    return kernels[name]
