"""The arithmetic of rings: which slot is next, how often it was filled, and what counts that."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from .types import number_of, shape_of


def slots_of(op: Operation) -> int | None:
    """The slots of a ring of which an operation gives the one that is next: what `tlx.get_bufidx_phase` divides by."""
    slots = number_of(op.operands[1]) if op.name == "arith.remsi" else None
    is_runtime = slots is not None and number_of(op.operands[0]) is None and not shape_of(op.operands[0])
    return slots if isinstance(slots, int) and slots > 1 and is_runtime else None


def phases_of(op: Operation) -> list[tuple[Operation, list[Operation]]]:
    """The divisions that count how often a ring was filled, each with the operations that make a phase of it."""
    slots, block = slots_of(op), op.parent
    if slots is None or block is None:
        return []
    found: list[tuple[Operation, list[Operation]]] = []
    for each in divided_like(op, "arith.divsi", block, slots):
        users = [use.operation for use in each.results[0].uses]
        is_phase = all(
            user.name == "arith.andi" and user.parent is block and number_of(user.operands[1]) == 1 for user in users
        )
        if users and is_phase and each.results[0].name_hint is None:
            found.append((each, users))
    return found


def divided_like(op: Operation, name: str, block: Block, slots: int) -> Iterator[Operation]:
    """Yield the operations after `op` that divide what it divides."""
    for use in list(op.operands[0].uses):
        other = use.operation
        if other.name != name or use.index or other.parent is not block or number_of(other.operands[1]) != slots:
            continue
        if op.is_before_in_block(other):
            yield other


def is_count(value: SSAValue) -> bool:
    """Say whether a value gives nothing but the slot and the phase of one ring, in one statement."""
    users = [use.operation for use in value.uses]
    first = next((user for user in users if slots_of(user) is not None), None)
    if first is None or any(use.index for use in value.uses):
        return False
    written = {first, *(division for division, _ in phases_of(first))}
    return len(written) > 1 and all(user in written for user in users)
