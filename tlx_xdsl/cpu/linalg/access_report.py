"""Report of the pointer and the mask analysis about each access, for people."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.analysis.integers.symbols import spelled
from tlx_xdsl.analysis.structure.analysis import Structure
from tlx_xdsl.analysis.structure.digits import Comparison, Digit, DigitDomain, spelled_term
from tlx_xdsl.analysis.structure.values import Mask, Wrapped
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.effects import pointers_of
from tlx_xdsl.text.diagnostics import source_location
from tlx_xdsl.transforms.rewriting import ops_of

from .access_plan import AccessPlan, Grade
from .lower_accesses import address_of, plan_of
from .triton_to_linalg import structuring_passes


@dataclass(frozen=True)
class AccessFacts:
    """One access."""

    op: Operation
    """In a copy of the module; its location is the user's."""
    base: str
    grade: Grade
    address: str
    mask: str
    reason: str
    """What keeps it from being structured; empty if it is."""


def access_facts(module: ModuleOp) -> list[AccessFacts]:
    """The accesses of a module of plain Triton, in program order; the module stays as it is.

    Raises CompilationError for a pointer whose base is not known.
    """
    copy = module.clone()
    for each in structuring_passes():
        each.run(copy)
    found: list[AccessFacts] = []
    for function in ops_of(copy, tt.FuncOp):
        structure = Structure(function, DigitDomain())
        for op in function.walk():
            if (pointer := pointers_of(op)) is None:
                continue
            plan = plan_of(structure, op, pointer, getattr(op, "mask", None))
            reason = "" if plan.grade is Grade.STRUCTURED else plan.reason()
            base = spelled(address_of(pointer).base)
            found.append(AccessFacts(op, base, plan.grade, _address(plan), _mask(plan.mask), reason))
    return found


def accesses(module: ModuleOp) -> str:
    """A paragraph for each access of a module of plain Triton: what it becomes in linalg, and why."""
    lines: list[str] = []
    for facts in access_facts(module):
        place = source_location(facts.op.location)
        where = "" if place is None else f"{place}: "
        lines.append(f"{where}{facts.op.name} is {facts.grade.value}")
        lines.append(f"    elements  {facts.base} + {facts.address}")
        if facts.mask:
            lines.append(f"    where     {facts.mask}")
        if facts.reason:
            lines.append(f"    because   {facts.reason}")
    return "\n".join(lines)


def _address(plan: AccessPlan) -> str:
    """The offset from the base, in elements, by the position."""
    offset = plan.offset
    parts = [f"{offset.base}"] if offset.base.terms else []
    for dim, stride in enumerate(offset.strides):
        if stride.terms:
            parts.append(_times(str(stride), f"i{dim}", is_simple=stride.is_simple))
    for term, factor in offset.terms:
        if isinstance(term, Digit | Wrapped):
            what = spelled_term(term)
        else:
            at = ", ".join("0" if dim is None else f"i{dim}" for dim in term.dims)
            what = f"{spelled(term.value, 0)}[{at}]"
        parts.append(_times(str(factor), what, is_simple=factor.is_simple))
    return " + ".join(parts) or "0"


def _times(factor: str, what: str, *, is_simple: bool) -> str:
    if factor == "1":
        return what
    return f"{factor}*{what}" if is_simple else f"({factor})*{what}"


def _mask(mask: Mask) -> str:
    parts: list[str] = []
    for dim, (lower, upper) in enumerate(mask.bounds):
        if lower is not None or upper is not None:
            low = "" if lower is None else f"{lower} <= "
            parts.append(f"{low}i{dim}" + ("" if upper is None else f" < {upper}"))
    parts += sorted(map(str, mask.conditions))
    parts += [str(each) if isinstance(each, Comparison) else spelled(each.value) for each in mask.opaque]
    return " and ".join(parts)
