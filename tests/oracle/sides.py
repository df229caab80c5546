"""Sides of a comparison: what is known of each module, and the reasons why they differ."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue

from tests.oracle.effects import Effects, is_read


class Difference(Exception):
    """Two modules differ; the message says where."""


@dataclass
class Carried:
    """Bound variables of both sides that have been paired, and what they get on each way in."""

    pairs: dict[int, int] = field(default_factory=dict)
    back: dict[int, int] = field(default_factory=dict)
    ways_in: list[tuple[Sequence[SSAValue], Sequence[SSAValue]]] = field(default_factory=list)


@dataclass(frozen=True)
class Reason:
    """Reason why two things must be equal: they are this part of those."""

    text: str
    outer: "Reason | None" = None

    def __str__(self) -> str:
        parts: list[str] = []
        reason: Reason | None = self
        while reason is not None:
            parts.append(reason.text)
            reason = reason.outer
        # The effect that uses the value says most, and what leads from there to the value is long.
        shown = parts if len(parts) <= 6 else [*parts[:4], "…", parts[-1]]
        return "\n".join(f"  in {part}" for part in shown)


class Side:
    """One module: its effects, and numbers of its values that are equal for equal expressions."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.effects = Effects()
        self.functions = {
            name.data: op for op in module.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)
        }
        self._numbers: dict[SSAValue, int] = {}
        self._expressions: dict[object, int] = {}

    def number(self, value: SSAValue) -> int:
        """Return the number of a value: the same one for equal expressions."""
        pending = [value]
        while pending:
            top = pending[-1]
            if top in self._numbers:
                pending.pop()
                continue
            if isinstance(top, OpResult) and self._is_expression(top.op):
                missing = [operand for operand in top.op.operands if operand not in self._numbers]
                if missing:
                    pending += missing
                    continue
                op = top.op
                key: object = (
                    op.name,
                    top.index,
                    tuple(self._numbers[operand] for operand in op.operands),
                    tuple(result.type for result in op.results),
                    frozenset(attributes_of(op).items()),
                )
            else:
                key = top
            self._numbers[top] = self._expressions.setdefault(key, len(self._expressions))
            pending.pop()
        return self._numbers[value]

    def _is_expression(self, op: Operation) -> bool:
        return not op.regions and not is_read(op) and not self.effects.is_ordered(op)


def attributes_of(op: Operation) -> dict[str, Attribute]:
    return {**op.properties, **op.attributes}


def visibility(function: Operation) -> str:
    attribute = function.properties.get("sym_visibility")
    return attribute.data if isinstance(attribute, StringAttr) else "public"


def callee(call: Operation) -> str:
    callee = call.properties["callee"]
    assert isinstance(callee, SymbolRefAttr)
    return callee.root_reference.data


def last_operands(region: Region) -> Sequence[SSAValue]:
    """Return what the terminator of a region with one block hands on; nothing if the region is empty."""
    last = region.blocks[0].last_op if region.blocks else None
    return last.operands if last is not None else ()


def jump_arguments(op: Operation) -> list[Sequence[SSAValue]]:
    """Return what a terminator hands to each of its successors."""
    match op.name:
        case "cf.br":
            return [op.operands]
        case "cf.cond_br":
            return [op.then_arguments, op.else_arguments]  # pyright: ignore
        case _:
            return []


def only_different(first: dict[str, Attribute], second: dict[str, Attribute]) -> tuple[str, str]:
    names = [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)]
    one, other = (", ".join(f"{name} = {side.get(name)}" for name in names) for side in (first, second))
    return one, other
