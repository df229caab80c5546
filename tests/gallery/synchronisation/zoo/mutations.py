"""Edits that break the synchronisation of a kernel, one operation at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32, i64
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type


@dataclass(frozen=True)
class Mutation:
    """One edit of one operation."""

    name: str
    apply: Callable[[Operation], None]
    """Edits the operation, or the one at its place in a clone of its module."""


TILE = "tile"
"""What a mutation's name calls a buffer that is no barrier."""

DROPPED = (
    ttng.InitBarrierOp, ttng.InvalBarrierOp, ttng.BarrierExpectOp, ttng.ArriveBarrierOp, ttng.WaitBarrierOp,
    ttng.AsyncCopyMbarrierArriveOp, ttng.FenceAsyncSharedOp, ttng.WarpGroupDotWaitOp, ttng.AsyncTMAStoreWaitOp,
    ttng.ClusterArriveOp, ttng.ClusterWaitOp, ttng.ClusterBarrierOp, ttng.TCGen5CommitOp, tlx.ArrivePerThreadOp,
    tlx.FenceMBarrierInitClusterOp, tlx.ArriveRemoteOp, tlx.NamedBarrierArriveOp, tlx.NamedBarrierWaitOp,
    ttg.AsyncCommitGroupOp, ttg.AsyncWaitOp,
)  # fmt: skip
"""What is left out in turn."""

SHIFTED = (
    ttng.InitBarrierOp, ttng.BarrierExpectOp, ttng.ArriveBarrierOp, ttng.WaitBarrierOp, ttng.TCGen5CommitOp,
    ttng.TCGen5MMAOp, ttng.WarpGroupDotOp, ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMACopyLocalToGlobalOp,
    ttng.AsyncCopyMbarrierArriveOp, ttg.AsyncCopyGlobalToLocalOp, ttg.LocalStoreOp, ttg.LocalLoadOp,
    tlx.ArrivePerThreadOp, tlx.ArriveRemoteOp, tlx.MapToRemoteOp, tlx.AsyncTMALoadOp,
)  # fmt: skip
"""What is given the next buffer, or the next barrier, of an array in turn."""


def mutations(op: Operation) -> Iterator[Mutation]:
    """All edits of `op`; none where it synchronises nothing."""
    if isinstance(op, DROPPED):
        yield Mutation("drop", _drop)
    yield from _changes(op)
    if isinstance(op, SHIFTED):
        for number, operand in enumerate(op.operands):
            if _slots(operand) > 1:
                what = "barrier" if is_barrier(operand) else TILE
                yield Mutation(f"next {what} for operand {number}", partial(_next_slot, number=number))


def _changes(op: Operation) -> Iterator[Mutation]:
    """The edits of what an operation says."""
    match op:
        case ttng.InitBarrierOp():
            yield from _numbers("count", 1, -1)
        case ttng.ArriveBarrierOp() | tlx.ArriveRemoteOp():
            yield from _numbers("count", 1)
        case ttng.BarrierExpectOp():
            tile = _tile_bytes(op)
            yield from _numbers("size", 16, -16, *({tile, -tile} if tile else ()))
        case ttng.WaitBarrierOp():
            yield Mutation("phase ^ 1", partial(_combine, number=1, combine=arith.XOrIOp))
        case ttng.WarpGroupDotWaitOp() | ttng.AsyncTMAStoreWaitOp():
            yield from _numbers("pendings", 1)
        case ttg.AsyncWaitOp():
            yield from _numbers("num", 1)
        case tlx.NamedBarrierArriveOp() | tlx.NamedBarrierWaitOp():
            yield from _numbers("threads", 128, -128)
            yield Mutation("id + 1", partial(_combine, number=0, combine=arith.AddiOp))
        case tlx.MapToRemoteOp():
            yield Mutation("rank ^ 1", partial(_combine, number=1, combine=arith.XOrIOp))
        case tlx.AsyncTMALoadOp() if op.multicast is not None:
            number = list(op.operands).index(op.multicast)
            yield Mutation("multicast to rank 0 only", partial(_combine, number=number, combine=arith.AndIOp))
        case ttng.TCGen5MMAOp():
            for number in range(len(op.barriers)):
                yield Mutation(f"drop barrier {number}", partial(_drop_barrier, number=number))
        case _:
            pass


@dataclass(frozen=True)
class Site:
    """Place where a mutant differs from its module."""

    index: int
    """Of the operation in the order of a walk."""
    op: Operation
    mutation: Mutation

    def mutant(self, module: ModuleOp) -> ModuleOp:
        """A clone of the module with the edit."""
        clone = module.clone()
        self.mutation.apply(list(clone.walk())[self.index])
        return clone


def sites(module: ModuleOp) -> list[Site]:
    """All mutants of a module, in program order."""
    return [Site(index, op, mutation) for index, op in enumerate(module.walk()) for mutation in mutations(op)]


def _numbers(name: str, *differences: int) -> Iterator[Mutation]:
    for difference in differences:
        yield Mutation(f"{name} {difference:+}", partial(_add, name=name, difference=difference))


def _add(op: Operation, name: str, difference: int) -> None:
    value = op.properties[name]
    assert isinstance(value, IntegerAttr)
    op.properties[name] = IntegerAttr(value.value.data + difference, value.type)


def _drop(op: Operation) -> None:
    # What passes values through stays out of their way; tokens are taken from the operands, too.
    for result, operand in zip(op.results, op.operands, strict=False):
        result.replace_all_uses_with(operand)
    for result in op.results[len(op.operands) :]:
        assert not list(result.uses)
    op.detach()
    op.erase()


def _tile_bytes(op: ttng.BarrierExpectOp) -> int:
    """Bytes of the first buffer that the barriers of the same array expect."""
    for use in _array(op.alloc).uses:
        for result in use.operation.results:
            for other in (use.operation for use in result.uses):
                if isinstance(other, ttng.AsyncTMACopyGlobalToLocalOp | tlx.AsyncTMALoadOp):
                    tile = memdesc_type(other.result.type)
                    bits = tile.element_bits
                    for size in tile.shape:
                        bits *= size
                    return bits // 8
    return 0


def _array(value: SSAValue) -> SSAValue:
    return value.owner.src if isinstance(value.owner, ttg.MemDescIndexOp) else value


def is_barrier(value: SSAValue) -> bool:
    """Return whether a value is an mbarrier, as far as its type says."""
    return isinstance(value.type, MemDescType) and value.type.shape == (1,) and value.type.element_type == i64


def _slots(value: SSAValue) -> int:
    """Buffers of the array that a value is one of."""
    if not isinstance(value.type, MemDescType) or not isinstance(value.owner, ttg.MemDescIndexOp):
        return 0
    return memdesc_type(value.owner.src.type).shape[0]


def _next_slot(op: Operation, number: int) -> None:
    index = op.operands[number].owner
    assert isinstance(index, ttg.MemDescIndexOp)
    one, many = (arith.ConstantOp(IntegerAttr(n, i32)) for n in (1, _slots(op.operands[number])))
    following = arith.AddiOp(index.index, one.result)
    wrapped = arith.RemSIOp(following.result, many.result)
    other = index.clone()
    other.operands[1] = wrapped.result
    _in_front(op, one, many, following, wrapped, other)
    op.operands[number] = other.result


def _combine(op: Operation, number: int, combine: type[arith.XOrIOp | arith.AddiOp | arith.AndIOp]) -> None:
    """Combine an operand with 1."""
    one = arith.ConstantOp(IntegerAttr(1, i32))
    combined = combine(op.operands[number], one.result)
    _in_front(op, one, combined)
    op.operands[number] = combined.result


def _drop_barrier(op: Operation, number: int) -> None:
    assert isinstance(op, ttng.TCGen5MMAOp)
    barriers, preds = list(op.barriers), list(op.barrier_preds)
    del barriers[number], preds[number]
    block = op.parent_block()
    assert block is not None
    acc_dep = [] if op.acc_dep is None else [op.acc_dep]
    operands = [op.a, op.b, op.d, acc_dep, op.use_d, op.pred, barriers, preds]
    properties = {key: value for key, value in op.properties.items() if key != "operandSegmentSizes"}
    tokens = [[result.type for result in op.results]]
    other = ttng.TCGen5MMAOp(operands=operands, properties=properties, result_types=tokens)
    other.location = op.location
    block.insert_op_before(other, op)
    for old, new in zip(op.results, other.results, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()


def _in_front(op: Operation, *others: Operation) -> None:
    block = op.parent_block()
    assert block is not None
    for other in others:
        other.location = op.location
    block.insert_ops_before(others, op)
