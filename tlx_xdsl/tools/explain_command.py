"""`tlx explain FILE.py:KERNEL`: the passes that a kernel goes through, and what each of them did."""

from __future__ import annotations

import argparse
import difflib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.compilation import compile_text
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.tools import compile_command

_SHOWN = 4
"""How many kinds of operation a line of the table names before it counts the rest."""


@dataclass(frozen=True)
class Stage:
    """The module behind one stage of the pipeline."""

    name: str
    """The pass, or `frontend`."""
    printed: str
    """The module as text with locations."""

    @cached_property
    def _module(self) -> ModuleOp:
        return parse_module(self.printed, filename=self.name)

    @cached_property
    def operations(self) -> Counter[str]:
        """How many operations there are of each kind, without the module itself."""
        return Counter(op.name for op in self._module.walk() if op is not self._module)

    @cached_property
    def lines(self) -> list[str]:
        """The text without locations, which move with every pass and explain nothing."""
        return print_module(self._module, locations=False).splitlines()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("kernel", metavar="FILE.py:KERNEL", help="the kernel, a function decorated with tlx_xdsl.jit")
    parser.add_argument("--diff", metavar="PASS", help="show what this pass changed, as a unified diff")
    parser.add_argument(
        "--triton-version", metavar="VERSION", help="Triton to compile for (the installed one, else 3.9)"
    )
    compile_command.add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError for a fault in the kernel, and for a pass that it does not go through.
    """
    kernel, specialization = compile_command.kernel_of(args)
    version = compile_command.triton_version(args.triton_version, needs_backend=False)
    stages: list[Stage] = []
    text = compile_text(
        kernel.source,
        specialization,
        triton_version=version,
        on_stage=lambda name, printed: stages.append(Stage(name, printed)),
    )
    if args.diff is not None:
        print(diff(stages, args.diff) or f"{args.diff} changed nothing")
        return
    print(f"{text.name} for {specialization.target}, Triton {version}")
    print(table(stages, text.times_ms))


def table(stages: list[Stage], times_ms: dict[str, float]) -> str:
    """A line for each stage: its time in ms, the operations behind it, and what it changed."""
    width = max(len(stage.name) for stage in stages)
    lines = [f"{'':{width}}  {'ms':>7}  {'ops':>6}  changed"]
    before: Stage | None = None
    for stage in stages:
        changed = "" if before is None else changes(before, stage)
        row = f"{stage.name:{width}}  {times_ms[stage.name]:7.1f}  {stage.operations.total():6d}  {changed}"
        lines.append(row.rstrip())
        before = stage
    lines.extend(
        f"{name:{width}}  {milliseconds:7.1f}"
        for name, milliseconds in times_ms.items()
        if name not in {stage.name for stage in stages}
    )
    lines.append(f"{'total':{width}}  {sum(times_ms.values()):7.1f}")
    return "\n".join(lines)


def changes(before: Stage, after: Stage) -> str:
    """In few words what is different behind a pass: the kinds of operation that it added and removed, most first."""
    added, removed = after.operations - before.operations, before.operations - after.operations
    signed = [(count, f"+{count} {name}") for name, count in added.items()]
    signed += [(count, f"-{count} {name}") for name, count in removed.items()]
    if not signed:
        return "nothing" if before.lines == after.lines else "types, attributes or order only"
    signed.sort(key=lambda each: -each[0])
    rest = sum(count for count, _ in signed[_SHOWN:])
    return ", ".join(text for _, text in signed[:_SHOWN]) + (f", and {rest} more" if rest else "")


def diff(stages: list[Stage], name: str) -> str:
    """The unified diff of the text before and behind the pass `name`, without locations; empty if it did nothing.

    Raises CompilationError when there is no such pass in the pipeline.
    """
    for before, after in pairwise(stages):
        if after.name == name:
            found = difflib.unified_diff(before.lines, after.lines, f"before {name}", f"behind {name}", lineterm="")
            return "\n".join(found)
    passes = ", ".join(stage.name for stage in stages[1:])
    raise CompilationError(f"--diff: expected a pass that this kernel goes through ({passes}), found '{name}'")
