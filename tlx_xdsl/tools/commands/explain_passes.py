"""The work of `tlx explain`: the passes that a kernel goes through, what each did, and what layouts cost."""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import pairwise
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.backend import compile_ttgir, installed_triton_version
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.compilation import compile_text
from tlx_xdsl.runtime.driver.stages import NOTHING, Stage, changes, unified_diff
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.profiles import parse_version
from tlx_xdsl.transforms.pipelines import is_plain

from ..documents import document
from ..launch_line.kernel_options import of_wing
from ..launch_line.request import read
from ..launch_line.specialization import specialization_of, triton_version
from ..output import print_document, write_text
from .diff_text import around, diff
from .layout_report import layout_costs, layout_section, why

TOOL = "tlx explain"


def run(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError for a fault in the kernel, for a pass that it does not go through, and for a value that it
    does not have or whose layout is stock Triton's choice.
    """
    if not _is_for_others(args):
        _explain(args)


def _is_for_others(args: argparse.Namespace) -> bool:
    """Return whether a wing, the clock or the search explains, which has then done so.

    Raises CompilationError as they do, and for an option that only they look at.
    """
    if (module := of_wing(args.target)) is not None:
        if args.format == "json":
            raise CompilationError(f"--format json: not with --target {args.target}")
        module.explain(args)
        return True
    if args.why_slow:
        # The PTX machine takes a tenth of a second to load.
        from .explain_slow import explain

        explain(args)
        return True
    if args.warp_specialize:
        # The passes and the search are of no use to others.
        from .warp_specialize import explain as explain_decisions

        explain_decisions(args)
        return True
    given = next((name for name in ("grid", "chip", "clock") if getattr(args, name)), None)
    if given is not None:
        raise CompilationError(f"--{given}: only with --why-slow or --warp-specialize")
    if args.set or args.by:
        raise CompilationError(f"--{'set' if args.set else 'by'}: only with --warp-specialize")
    return False


def _explain(args: argparse.Namespace) -> None:
    request = read(args)
    specialization = specialization_of(request)
    version = triton_version(args.triton_version, needs_backend=False)
    stages: list[Stage] = []
    text = compile_text(
        request.source,
        specialization,
        triton_version=version,
        conversion=args.conversion,
        # Passes are tested: here it would take most of the time.
        verify_each=False,
        on_stage=lambda name, printed: stages.append(Stage(name, printed)),
    )
    is_json = args.format == "json"
    if args.diff is not None:
        if is_json:
            before, after = around(stages, args.diff)
            facts = {"kernel": args.kernel, "pass": after.name, "diff": unified_diff(before, after)}
            print_document(document(TOOL, facts))
        else:
            print(diff(stages, args.diff, side_by_side=args.side_by_side))
        return
    last = parse_module(stages[-1].printed, filename=stages[-1].name)
    if args.why or args.layout or args.svg:
        layouts(last, stages, args)
        return
    if is_json:
        facts = {
            "kernel": args.kernel, "target": specialization.target, "triton": version,
            "passes": passes(stages, text.times_ms), "layouts": None if is_plain(last) else layout_costs(last),
        }  # fmt: skip
        print_document(document(TOOL, facts))
        return
    print(f"{text.name} for {specialization.target}, Triton {version}")
    print(table(stages, text.times_ms, every=args.all))
    print()
    installed = installed_triton_version()
    if installed is not None and parse_version(installed) == parse_version(version):
        print("layouts after the passes of stock Triton")
        stock = compile_ttgir(
            text.ttgir, specialization.backend_options(num_stages=request.options["num_stages"]), stages="ttgir"
        )
        print(layout_section(parse_module(stock.ttgir, filename="stock Triton"), last))
    elif is_plain(last):
        print("layouts: stock Triton chooses them, for this is plain Triton code")
    else:
        print(f"layouts before the passes of stock Triton {version}, which is not installed")
        print(layout_section(last))


def layouts(last: ModuleOp, stages: list[Stage], args: argparse.Namespace) -> None:
    """Print why a value of the module `last` has its layout, or the layout, or with --svg write its picture to a file.

    Without a name that is what the kernel asks for by `tlx.dump_layout`.
    Raises CompilationError for another name, and for a kernel that asks for nothing.
    """
    if is_plain(last):
        option = "--why" if args.why else "--layout"
        raise CompilationError(
            f"{option}: stock Triton chooses the layouts of plain Triton code; with --conversion own we do"
        )
    if args.why:
        found = why(last, args.why, parse_module(stages[0].printed, filename=stages[0].name))
        reasons = {"kernel": args.kernel, "value": args.why, "reasons": [line.strip() for line in found.splitlines()]}
        print_document(document(TOOL, reasons) if args.format == "json" else found)
        return
    if args.format == "json":
        raise CompilationError(f"--format json: not with {'--layout' if args.layout else '--svg'}")
    # Others do without numpy.
    from tlx_xdsl.runtime.show.layouts import dumped_layouts, layouts_of, layouts_picture

    from .layout_text import layouts_as_text

    if args.layout:
        drawn = layouts_of(last, [args.layout], "--layout")
    else:
        asked = next((stage for stage in reversed(stages) if "tlx.dump_layout" in stage.operations), None)
        drawn = [] if asked is None else dumped_layouts(parse_module(asked.printed, filename=asked.name))
    if not drawn:
        raise CompilationError("--svg: the kernel asks for no layout by tlx.dump_layout; name a value by --layout")
    write_text((layouts_as_text(drawn) if args.svg is None else layouts_picture(drawn, last)) + "\n", args.svg)


def table(stages: list[Stage], times_ms: dict[str, float], *, every: bool) -> str:
    """A line for each stage: its time in ms, the operations after it, and what it changed.

    Those that changed nothing share a line at the end, or with `every` have their own.
    """
    width = max(len(stage.name) for stage in stages)
    lines = [f"{'':{width}}  {'ms':>7}  {'ops':>6}  changed"]
    idle: list[Stage] = []
    before: Stage | None = None
    for stage in stages:
        changed = "" if before is None else changes(before, stage)
        before = stage
        if changed == NOTHING and not every:
            idle.append(stage)
            continue
        row = f"{stage.name:{width}}  {times_ms[stage.name]:7.1f}  {stage.operations.total():6d}  {changed}"
        lines.append(row.rstrip())
    if idle:
        what = f"{len(idle)} more pass{'' if len(idle) == 1 else 'es'}"
        spent = sum(times_ms[stage.name] for stage in idle)
        lines.append(f"{what:{width}}  {spent:7.1f}  {'':6}  {NOTHING}: --all lists them")
    lines.extend(
        f"{name:{width}}  {milliseconds:7.1f}"
        for name, milliseconds in times_ms.items()
        if name not in {stage.name for stage in stages}
    )
    lines.append(f"{'total':{width}}  {sum(times_ms.values()):7.1f}")
    return "\n".join(lines)


def passes(stages: list[Stage], times_ms: dict[str, float]) -> list[dict[str, Any]]:
    """Return each stage with its time, its operations, and what was added and removed since the one before."""
    before = [Counter[str](), *(stage.operations for stage in stages)]
    said = ["", *(changes(one, other) for one, other in pairwise(stages))]
    return [
        {
            "name": stage.name, "ms": round(times_ms[stage.name], 3), "operations": stage.operations.total(),
            "added": dict(stage.operations - last), "removed": dict(last - stage.operations),
            "changed": text != NOTHING, "text": text,
        }
        for stage, last, text in zip(stages, before, said, strict=False)
    ]  # fmt: skip
