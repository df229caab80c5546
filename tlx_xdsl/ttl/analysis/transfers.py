"""The transfers of a kernel, what each touches in which iterations, and which of them must keep their order.

A transfer touches a box of a tensor's tiles (or of its shards or rows, as the tensor's layout and the indices have it)
on one side, and blocks of a circular buffer on the other side. Each acquisition of a circular buffer has blocks of its
own: what synchronises the ring is the protocol, not the order of transfers. What a pipe writes is in the memory of
other cores, so transfers through one pipe keep their order.

All is said of the threads of one core. The tensors of a kernel are taken for different memory, and a core does not
synchronise with others by the order of its transfers. Conditions are ignored: a transfer in a branch may happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import prod

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineBinaryOpKind, AffineMap
from xdsl.ir.affine.affine_expr import AffineBinaryOpExpr

from ..dialects.ttl import (
    BlockOp,
    CopyOp,
    CoreOp,
    Direction,
    GetShardIdOp,
    KernelOp,
    LayoutKind,
    TensorAccessorOp,
    Thread,
    TTLOp,
    acquisition_of,
    aligned,
    block_shape,
    blocks_of,
    encoding_of,
    thread_of,
)
from .affine_dependence import Access, Conflicts, Loop, conflicts
from .linear import Linear
from .signs import is_non_negative, results_of

# Indices as linear expressions over the loops around them and the coordinates of the core, and those loops.

_COLUMN, _ROW = "column of the core", "row of the core"


def parameters_of(kernel: KernelOp) -> list[Loop]:
    """Return what is the same in all threads of a core: its coordinates."""
    extents = ((_COLUMN, kernel.grid.x), (_ROW, kernel.grid.y))
    return [Loop(name, (Linear(0),), (Linear(extent),)) for name, extent in extents]


# --- expressions ----------------------------------------------------------------------------------------------------


def linear(value: SSAValue) -> Linear | None:
    """An index as an expression over the indices of loops and the coordinates of the core; None if it is none.

    What is computed outside of all loops in another way has one unknown value, so it is a variable, too.
    """
    if isinstance(value, BlockArgument):
        is_index = value.index == 0 and isinstance(value.block.parent_op(), affine.ForOp | scf.ForOp)
        return Linear.of(value) if is_index else None
    assert isinstance(value, OpResult)
    op = value.owner
    match op:
        case arith.ConstantOp(value=IntegerAttr(value=number)):
            return Linear(number.data)
        case affine.ApplyOp():
            return linear_map(op.map.data, list(op.mapOperands))[0]
        case CoreOp() if len(op.coordinates) == 2:
            return Linear.of(_ROW if value.index else _COLUMN)
        case CoreOp() | GetShardIdOp():
            return _core_number(op)
        case arith.IndexCastOp():
            return linear(op.input)
        case _:
            found = _arithmetic(op)
            return Linear.of(value) if found is None and not any(_loops_around(op)) else found


def _core_number(op: Operation) -> Linear | None:
    kernel = op.parent_op()
    while kernel is not None and not isinstance(kernel, KernelOp):
        kernel = kernel.parent_op()
    return None if kernel is None else Linear.of(_COLUMN) + Linear.of(_ROW) * kernel.grid.x


def _arithmetic(op: Operation) -> Linear | None:
    if not isinstance(op, arith.SignlessIntegerBinaryOperation):
        return None
    left, right = linear(op.lhs), linear(op.rhs)
    if left is None or right is None:
        return None
    match op:
        case arith.AddiOp():
            return left + right
        case arith.SubiOp():
            return left - right
        case arith.MuliOp():
            return _product(left, right)
        case arith.FloorDivSIOp() if _is_divisor(right):
            return left.floordiv(right.constant)
        # These two round to zero, which is down where nothing is negative.
        case arith.DivSIOp() if _is_divisor(right) and is_non_negative(op.lhs):
            return left.floordiv(right.constant)
        case arith.RemSIOp() if _is_divisor(right) and is_non_negative(op.lhs):
            return left.mod(right.constant)
        case _:
            return None


def _is_divisor(expression: Linear) -> bool:
    """Return whether an expression is a positive number."""
    return not expression.factors and expression.constant > 0


def _product(left: Linear, right: Linear) -> Linear | None:
    if not right.factors:
        return left * right.constant
    return None if left.factors else right * left.constant


def linear_map(map_: AffineMap, operands: list[SSAValue]) -> list[Linear | None]:
    """The results of a map of values, dimensions before symbols."""
    return results_of(map_, [*map(linear, operands)], Linear, _binary)


def _binary(expression: AffineBinaryOpExpr, left: Linear | None, right: Linear | None) -> Linear | None:
    kind = expression.kind
    if left is None or right is None:
        return None
    if kind is AffineBinaryOpKind.Add:
        return left + right
    if kind is AffineBinaryOpKind.Mul:
        return _product(left, right)
    if not _is_divisor(right):
        return None
    match kind:
        case AffineBinaryOpKind.Mod:
            return left.mod(right.constant)
        case AffineBinaryOpKind.FloorDiv:
            return left.floordiv(right.constant)
        case _:
            return (left * -1).floordiv(right.constant) * -1


# --- iterations -----------------------------------------------------------------------------------------------------


def _loops_around(op: Operation) -> list[Operation]:
    """The operations around `op` in its thread that may run it repeatedly, innermost first."""
    found: list[Operation] = []
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, Thread | KernelOp):
        if not isinstance(parent, scf.IfOp | TTLOp):
            found.append(parent)
        parent = parent.parent_op()
    return found


def loops_around(op: Operation) -> list[Operation]:
    """The operations around `op` in its thread that may run it repeatedly, outermost first."""
    return _loops_around(op)[::-1]


def loop_of(op: Operation) -> Loop:
    """The iterations of a loop; those of which nothing is known are numbered without bounds."""
    match op:
        case affine.ForOp():
            lower = linear_map(op.lowerBoundMap.data, list(op.lowerBoundOperands))
            upper = linear_map(op.upperBoundMap.data, list(op.upperBoundOperands))
            step = op.step.value.data
        case scf.ForOp():
            lower, upper = [linear(op.lb)], [linear(op.ub)]
            number = linear(op.step)
            step = 0 if number is None or number.factors else number.constant
        case _:
            return Loop(op, (), ())
    iv = op.body.block.args[0]
    return Loop(iv, _known(lower), _known(upper), step) if step > 0 else Loop(iv, (), ())


def _known(bounds: list[Linear | None]) -> tuple[Linear, ...]:
    known = [each for each in bounds if each is not None]
    return tuple(known) if len(known) == len(bounds) else ()


Memory = SSAValue | Operation
"""A tensor, a pipe, or the acquisition of blocks of a circular buffer."""


def accesses(copy: CopyOp) -> Iterator[tuple[Memory, int, Access]]:
    """The memory that a transfer touches, how many indices say where, and the access."""
    loops = tuple(loop_of(each) for each in loops_around(copy))
    reads = copy.direction is Direction.READ
    if isinstance(accessor := copy.far.owner, TensorAccessorOp):
        box = _tensor_box(accessor.tensor, copy)
        yield accessor.tensor, len(box), Access(loops, box, not reads)
    else:
        yield copy.far, 0, Access(loops, (), True)
    acquisition = acquisition_of(copy.view)
    block: Linear | None = Linear(0)
    extent = acquisition.num_blocks
    if isinstance(owner := copy.view.owner, BlockOp):
        block, extent = linear(owner.index), blocks_of(copy.view)
    # Every run of the acquisition gives other blocks.
    runs = [(Linear.of(loop_of(each).variable), 1) for each in loops_around(acquisition)]
    yield acquisition, len(runs) + 1, Access(loops, (*runs, (block, extent)), reads)


def _tensor_box(tensor: SSAValue, copy: CopyOp) -> tuple[tuple[Linear | None, int], ...]:
    """The part of a tensor that a transfer touches: by a tile's, row's or shard's number, or in all dimensions."""
    is_rows = encoding_of(tensor.type).layout.kind is LayoutKind.INTERLEAVED
    whole = block_shape(tensor.type)
    sizes = aligned(acquisition_of(copy.view).cb_type.shape, len(whole)) or whole
    if len(copy.indices) == 1:
        return ((linear(copy.indices[0]), prod(sizes[:-1]) if is_rows else 1),)
    box = [(linear(index), size) for index, size in zip(copy.indices, sizes, strict=True)]
    return tuple(box[:-1] if is_rows else box)


def _in_dimensions(tensor: Memory, access: Access, count: int) -> Access:
    """An access that may name a tile, a row or a shard by its number, as a box in `count` dimensions of pages."""
    assert isinstance(tensor, SSAValue)
    if len(access.box) != 1:
        return access
    layout = encoding_of(tensor.type).layout
    [(number, extent)] = access.box
    *others, last = block_shape(tensor.type)
    units, sizes = [*others, last], (1,) * count
    if layout.kind is LayoutKind.SHARDED:
        units, sizes = [*layout.grid], layout.tiles_per_shard
    elif layout.kind is LayoutKind.INTERLEAVED:
        units, sizes = others, (*(1,) * (count - 1), extent)
    else:
        # Tiles have 32 elements on each side.
        units = [*others[:-1], -(-others[-1] // 32), -(-last // 32)]
    if number is None or len(units) != count or (extent > 1 and count > 1):
        # Anywhere.
        return Access(access.loops, ((None, 1),) * count, access.is_write)
    box: list[tuple[Linear | None, int]] = []
    for unit, size in zip(units[:0:-1], sizes[:0:-1], strict=True):
        box.insert(0, (number.mod(unit) * size, size))
        number = number.floordiv(unit)
    return Access(access.loops, ((number * sizes[0], sizes[0]), *box), access.is_write)


# --- dependences ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dependence:
    """Two transfers that touch the same element in some iterations, at least one of which writes it."""

    source: CopyOp
    """The first one in program order."""
    sink: CopyOp
    memory: Memory
    source_writes: bool
    sink_writes: bool
    loops: tuple[Operation, ...]
    """The loops around both, outermost first; none when they are in different threads."""
    conflicts: Conflicts

    @property
    def same_thread(self) -> bool:
        """Return whether the program says in which order they happen."""
        return thread_of(self.source) == thread_of(self.sink)


def dependences_of(kernel: KernelOp) -> list[Dependence]:
    """The dependences between all transfers of a kernel, of a transfer on itself in another iteration, too."""
    return dependences([op for op in kernel.walk() if isinstance(op, CopyOp)], parameters_of(kernel))


def dependences(copies: list[CopyOp], parameters: list[Loop]) -> list[Dependence]:
    """The dependences between transfers that are given in program order."""
    touched: dict[Memory, list[tuple[CopyOp, int, Access]]] = {}
    for copy in copies:
        for memory, indices, access in accesses(copy):
            touched.setdefault(memory, []).append((copy, indices, access))
    found: list[Dependence] = []
    for memory, users in touched.items():
        if not any(access.is_write for *_, access in users):
            continue
        for one, other in (*((each, each) for each in users), *_meeting(users)):
            dependence = _dependence(memory, one, other, parameters)
            if dependence is not None:
                found.append(dependence)
    return found


_User = tuple[CopyOp, int, Access]


def _meeting(users: list[_User]) -> Iterable[tuple[_User, _User]]:
    """The pairs of users in order that may meet: those that overlap along a dimension with numbers, where there is one.

    A long kernel has many transfers, of which few touch the same place.
    """
    boxes = [access.box for *_, access in users]
    if len({(indices, len(access.box)) for _, indices, access in users}) > 1:
        return combinations(users, 2)
    for places in zip(*boxes, strict=True):
        spans = [(first.constant, first.constant + extent) for first, extent in places if first and not first.factors]
        if len(spans) == len(users):
            break
    else:
        return combinations(users, 2)
    found: list[tuple[int, int]] = []
    open_: list[int] = []
    for number in sorted(range(len(users)), key=lambda each: spans[each]):
        open_ = [each for each in open_ if spans[each][1] > spans[number][0]]
        found += [(min(each, number), max(each, number)) for each in open_]
        open_.append(number)
    return ((users[one], users[other]) for one, other in sorted(found))


def _dependence(
    memory: Memory, one: tuple[CopyOp, int, Access], other: tuple[CopyOp, int, Access], parameters: list[Loop]
) -> Dependence | None:
    source, indices, first = one
    sink, other_indices, second = other
    if not (first.is_write or second.is_write):
        return None
    if indices != other_indices:
        assert isinstance(memory, SSAValue)
        first, second = (_in_dimensions(memory, each, max(indices, other_indices)) for each in (first, second))
    found = conflicts(first, second, parameters)
    if source is sink and not (found.any_backward or found.any_forward):
        return None
    if not found:
        return None
    common = tuple(a for a, b in zip(loops_around(source), loops_around(sink), strict=False) if a is b)
    return Dependence(source, sink, memory, first.is_write, second.is_write, common, found)
