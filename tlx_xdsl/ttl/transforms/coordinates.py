"""Coordinates of cores: logical ones, which count the cores of the grid, and virtual ones, which the network knows.

Kernels speak of logical coordinates, the network on chip takes virtual ones, and the device says where a core is in
both (TT-Metalium: `my_x`, `get_relative_logical_x`). The grid is a rectangle on both sides, so the virtual
coordinates of any core are those of the own one plus the difference between the logical ones; where the columns have a
gap (Blackhole), the device's table has them.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.transforms.rewriting import ops_of

from ..dialects.ttkernel.base import NocAddressType
from ..dialects.ttkernel.noc import GetNocMulticastAddrOp, VirtualXOp
from ..dialects.ttl.kernel import CoreOp, GetShardIdOp
from .thread_function import Emitter, Number, ThreadFunction

Point = tuple[Number, Number]
"""(x, y)."""


def virtual_of(
    thread: ThreadFunction, user: Operation, logical: Point, own: tuple[int, int] | None = None
) -> tuple[SSAValue, SSAValue]:
    """The virtual coordinates (i32) of the core with these logical ones; `own` are those of this core, if known."""
    emit = thread.emitter(user)
    offsets = _offsets(thread, user) if own is None else thread.virtual(user)
    less = (0, 0) if own is None else own

    def place(axis: int) -> SSAValue:
        return emit.i32(emit.add(offsets[axis], emit.sub(logical[axis], less[axis]), i32))

    if has_gap(thread):
        # Of the own column, `own` says where it is on the first of several ways.
        x = logical[0] if own is None else emit.add(thread.logical(user)[0], emit.sub(logical[0], own[0]), i32)
        return emit.result(VirtualXOp(operands=[emit.i32(x)], result_types=[i32])), place(1)
    return place(0), place(1)


def multicast_address(
    thread: ThreadFunction,
    user: Operation,
    first: Point,
    last: Point,
    address: SSAValue,
    own: tuple[int, int] | None = None,
) -> SSAValue:
    """The address in the memories of a range of cores, in the direction of the thread's network."""
    corners = [virtual_of(thread, user, first, own), virtual_of(thread, user, last, own)]
    if thread.noc == 1:
        corners.reverse()
    operands = [*corners[0], *corners[1], address]
    return thread.emitter(user).result(GetNocMulticastAddrOp(operands=operands, result_types=[NocAddressType()]))


def has_gap(thread: ThreadFunction) -> bool:
    """Return whether columns of the kernel's grid are not one after the other on the network."""
    columns = thread.driver.architecture.network_columns(thread.driver.grid.x)
    return columns[-1] != len(columns) - 1


def _offsets(thread: ThreadFunction, user: Operation) -> tuple[SSAValue, SSAValue]:
    """Return what the virtual coordinates of every core are more than its logical ones."""

    def offset(axis: int) -> SSAValue:
        virtual, logical = thread.virtual(user)[axis], thread.logical(user)[axis]
        return thread.hoisted(("offset", axis), user, lambda emit: emit.i32(emit.sub(virtual, logical, i32)))

    return offset(0), offset(1)


def is_at(thread: ThreadFunction, user: Operation, first: tuple[int, int], last: tuple[int, int]) -> SSAValue:
    """Return whether the core is in a range of logical coordinates, corners included."""
    emit = thread.emitter(user)
    conditions: list[SSAValue] = []
    for own, low, high, size in zip(thread.logical(user), first, last, _grid(thread), strict=True):
        if low == high:
            conditions.append(emit.compare("eq", own, low, i32))
            continue
        # A bound that every core of the grid meets needs no comparison.
        if low > 0:
            conditions.append(emit.compare("sge", own, low, i32))
        if high < size - 1:
            conditions.append(emit.compare("sle", own, high, i32))
    return emit.all_of(conditions)


def _grid(thread: ThreadFunction) -> tuple[int, int]:
    return thread.driver.grid.x, thread.driver.grid.y


def lower_coordinates(thread: ThreadFunction) -> None:
    """Replace the coordinates and numbers of cores, which the driver gives as arguments or the thread asks for."""
    for argument in thread.function.body.block.args:
        origin = thread.origin(argument)
        first = next((use.operation for use in argument.uses), None)
        if first is not None and isinstance(origin.owner, CoreOp | GetShardIdOp):
            number = origin.owner.results.index(origin)
            argument.replace_all_uses_with(_coordinates(thread, first, origin.owner)[number])
    for op in ops_of(thread.function, CoreOp, GetShardIdOp):
        for old, new in zip(op.results, _coordinates(thread, op, op), strict=True):
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()


def _coordinates(thread: ThreadFunction, user: Operation, op: CoreOp | GetShardIdOp) -> list[SSAValue]:
    """The results of an operation that asks for the core's place, as indices."""
    x, y = (
        thread.hoisted(("index", axis), user, lambda emit, each=each: emit.index(each))
        for axis, each in enumerate(thread.logical(user))
    )
    if len(op.results) == 2:
        return [x, y]

    def number(emit: Emitter) -> SSAValue:
        return emit.index(emit.add(x, emit.mul(y, thread.driver.grid.x)))

    return [thread.hoisted("number", user, number)]
