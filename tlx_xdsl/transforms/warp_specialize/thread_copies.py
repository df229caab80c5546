"""Blocks that TMA can't load, and that the producer's threads copy to a ring by `cp.async`.

Rows that an index chooses, strides that are no multiples of 16 bytes, and masks that are not a tensor's bounds make no
box. A thread copies 4, 8 or 16 bytes that lie side by side in memory and in the buffer (PTX ISA, "cp.async"), and
writes zeros where the mask is false.

All four warps of the producer copy: with 16 bytes a thread, 128 rows of 64 halves are 8 instructions of each thread.
One warp would need 32, and as many addresses in its registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.integers.axis_domain import AxisInfo
from tlx_xdsl.dialects import tlx, tt
from tlx_xdsl.dialects.base import element_bits, is_set, scalar_type
from tlx_xdsl.dialects.dimensions import shape_of_value

from ..nvidia.async_copies import LEAST_BITS, elements_at_a_time
from ..rewriting import constant, constant_integer, insert_before
from .descriptors import gives_zero
from .rings import depends_on_replica, products_of
from .slices import Slice
from .tasks_of import NOTE

PRODUCER_WARPS = 4
"""Warps of the default task, which the producer is."""


def why_no_copy(load: tt.LoadOp, infos: Mapping[SSAValue, AxisInfo]) -> str | None:
    """Return why threads don't copy a block in the background, or None where they do."""
    shape = shape_of_value(load.result)
    if len(shape) != 2 or tt.is_block_pointer(load.ptr.type):
        return "it is no block of two dimensions by pointers"
    if not products_of(load.result):
        return "it is no operand of a product"
    if is_set(load, "isVolatile"):
        return "it is volatile"
    if load.other is not None and not gives_zero(load.other):
        return "cp.async writes 0 where the mask is false, and this load gives another value"
    axis, elements = elements_at_a_time(load.ptr, load.mask, infos, PRODUCER_WARPS)
    if axis != 1:
        return "elements of its columns lie side by side in memory, and in the buffer those of its rows"
    bits = elements * element_bits(scalar_type(load.result.type))
    return None if bits >= LEAST_BITS else f"a thread would copy {bits} bits at a time, and the least are {LEAST_BITS}"


def note_copy(load: tt.LoadOp) -> None:
    """Say at a load that the producer's threads do it, and why TMA does not."""
    _, _, reason = _note(load).partition(", because ")
    load.attributes[NOTE] = StringAttr("cp.async by the producer's threads" + (reason and f", because {reason}"))


def note_stays(load: tt.LoadOp, reason: str) -> None:
    """Add to the note of a load that stays with the consumers why no threads copy it ahead."""
    load.attributes[NOTE] = StringAttr("; ".join(each for each in (_note(load), f"no cp.async: {reason}") if each))


def _note(load: Operation) -> str:
    found = load.attributes.get(NOTE)
    return found.data if isinstance(found, StringAttr) else ""


def carries_replica(load: tt.LoadOp, seen: dict[SSAValue, bool]) -> Operation | None:
    """Return a loop that carries, for the addresses of a load, what each consumer has its own of; None for none."""
    for loop, numbers in Slice([load]).carried.items():
        if any(depends_on_replica(loop.operands[-len(loop.results) + number], seen) for number in numbers):
            return loop
    return None


def copies_of_replicas(load: tt.LoadOp, replicas: int, seen: dict[SSAValue, bool]) -> Iterator[tt.LoadOp]:
    """Yield the load of each consumer's block; what depends on the consumer is computed beside the original."""
    needed = [op for op in _in_order(load, seen) if op is not load]
    for replica in range(replicas):
        known: dict[SSAValue, SSAValue] = {}
        for op in needed:
            copy = insert_before(op, _for_replica(op, replica, known))
            for old, made in zip(op.results, copy.results, strict=True):
                known[old] = made
                made.name_hint = old.name_hint
        yield insert_before(load, load.clone(known))


def _for_replica(op: Operation, replica: int, known: dict[SSAValue, SSAValue]) -> Operation:
    if isinstance(op, tlx.ReplicaIdOp):
        return constant(replica, op.results[0].type)
    factors = [constant_integer(known.get(operand, operand)) for operand in op.operands]
    if isinstance(op, arith.MuliOp) and None not in factors:
        return constant(prod(factor or 0 for factor in factors), op.results[0].type)
    return op.clone(known)


def _in_order(load: tt.LoadOp, seen: dict[SSAValue, bool]) -> list[Operation]:
    """Return the operations that depend on the consumer, and that a load needs, in the order of the program."""
    found: dict[Operation, None] = {}

    def visit(op: Operation) -> None:
        if op in found:
            return
        for operand in op.operands:
            if isinstance(operand.owner, Operation) and depends_on_replica(operand, seen):
                visit(operand.owner)
        found[op] = None

    visit(load)
    return list(found)
