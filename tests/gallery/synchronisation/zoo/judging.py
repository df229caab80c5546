"""Judgement of mutants: the table of a zoo, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tests.gallery.synchronisation.zoo.benign import BENIGN, Benign
from tests.gallery.synchronisation.zoo.kernels import Case, Problem
from tests.gallery.synchronisation.zoo.mutations import TILE, Site, is_barrier, sites
from tests.gallery.synchronisation.zoo.running import PTX, Outcome, run_mutant
from tlx_xdsl.dialects.ttg import MemDescIndexOp, WarpSpecializePartitionsOp
from tlx_xdsl.interpreter.faults import location_of
from tlx_xdsl.interpreter.users import task_of, users
from tlx_xdsl.text.diagnostics import source_line, source_location

STARVING = ("nothing orders this wait", "nothing orders that after the start of CTA")
"""Reports located at what starves: a wait that may be overtaken, a use of a CTA that may not have started."""


@dataclass(frozen=True)
class Row:
    """One mutant, and what became of it."""

    case: str
    site: Site
    benign: Benign | None
    outcomes: list[Outcome]

    @property
    def outcome(self) -> Outcome:
        """Outcome of the last schedule."""
        return self.outcomes[-1]

    @property
    def found(self) -> str:
        """The way in which it was found: `fault`, `numbers` and so on, `benign` or `SURVIVED`."""
        if self.outcome.is_reported:
            return self.outcome.kind
        if all(outcome.kind == "wrong" for outcome in self.outcomes) and TILE in self.site.mutation.name:
            return "numbers"
        return "benign" if self.benign is not None else "SURVIVED"

    @property
    def named(self) -> str:
        """Line that the report names: the mutated, one on its barrier, of its task, a starving wait, or none."""
        lines = set(re.findall(r"[^\s'\"]+\.py:\d+", self.outcome.text))
        own = {line for line in lines if line == _line(self.site.op)}
        if own:
            return "own"
        if lines & set(map(_line, _on_barriers(self.site.op))):
            return "barrier"
        if lines & set(map(_line, _beside(self.site.op))):
            return "task"
        return "starving" if any(text in self.outcome.line for text in STARVING) else ""

    def complaints(self) -> Iterator[str]:
        """Yield what is wrong with the way in which it was found."""
        what = f"{self.case}: {self.site.mutation.name}, '{self.site.op.name}' at {location_of(self.site.op)}"
        if self.outcome.kind == "crash":
            yield f"{what}: {self.outcome.text}"
        if self.found == "SURVIVED":
            yield f"{what} survives: {[outcome.kind for outcome in self.outcomes]}"
        if self.benign is not None and [outcome.kind for outcome in self.outcomes] != ["right"] * len(self.outcomes):
            yield f"{what} is in the table of benign mutants, but: {self.outcome.kind} {self.outcome.text}"
        if self.outcome.is_reported and not self.named:
            yield f"{what}: the report names no line of it: {self.outcome.text}"


def rows(
    case: Case, module: ModuleOp, problem: Problem, chosen: Iterable[int] | None = None, order: str = PTX
) -> Iterator[Row]:
    """Run the mutants of a module, all or those of the given numbers, under a `tensor_core_order`."""
    every, benign = sites(module), benign_mutants(case, module, order)
    for number in range(len(every)) if chosen is None else chosen:
        site = every[number]
        yield Row(case.name, site, benign.get(number), run_mutant(site.mutant(module), problem, order=order))


def benign_mutants(case: Case, module: ModuleOp, order: str = PTX) -> dict[int, Benign]:
    """The mutants of a module that are benign under a `tensor_core_order`, by number."""
    found = _benign(case.name, sites(module))
    return {number: entry for number, entry in found if not entry.order or entry.order == order}


def unused(case: Case, module: ModuleOp) -> list[Benign]:
    """Entries of the table of benign mutants that match none of the module."""
    used = {entry for _, entry in _benign(case.name, sites(module))}
    return [entry for entry in BENIGN if entry.case == case.name and entry not in used]


def _benign(case: str, every: list[Site]) -> Iterator[tuple[int, Benign]]:
    for entry in BENIGN:
        if entry.case != case:
            continue
        alike = [
            number for number, site in enumerate(every)
            if site.mutation.name == entry.mutation and text_of(site.op).startswith(entry.text)
            and (not entry.task or task_of(site.op) == entry.task)
        ]  # fmt: skip
        for place_, number in enumerate(alike):
            if not entry.which or place_ in entry.which:
                yield number, entry


def text_of(op: Operation) -> str:
    """The source line of an operation."""
    return (source_line(source_location(op.location)) or "").strip()


def _line(op: Operation) -> str:
    return location_of(op).rpartition(":")[0]


def _on_barriers(op: Operation) -> Iterator[Operation]:
    """Yield the users of the barriers that the operation uses."""
    for operand in op.operands:
        if is_barrier(operand):
            for use in users(_allocation(operand)):
                yield use.operation


def _allocation(value: SSAValue) -> Operation:
    while True:
        if isinstance(value.owner, MemDescIndexOp):
            value = value.owner.src
        elif isinstance(value.owner, Operation):
            return value.owner
        else:
            holder = value.owner.parent_op()
            assert isinstance(holder, WarpSpecializePartitionsOp)
            value = holder.explicit_captures[value.owner.args.index(value)]


def _beside(op: Operation) -> Iterator[Operation]:
    """The operations of the same task."""
    task, module = task_of(op), op.get_toplevel_object()
    assert isinstance(module, Operation)
    return (other for other in module.walk() if task_of(other) == task)
