"""Loads, stores and atomic operations on global memory; gathers from and scatters to buffers in shared memory.

Elements with different addresses are done at once; those that share one take turns, in the order of the elements, as
the hardware does in any order. An operation that releases gives what its task knows to those that acquire at the same
address (PTX ISA, "Memory Consistency Model"). Scopes matter where programs are checked against each other
(`global_order.py`); all threads see one memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import MaskedResult, PointerType, as_tensor, element_bits, is_set, scalar_type
from tlx_xdsl.dialects.tt import MemSemantic, RMWOp
from tlx_xdsl.numerics.arrays import Array, Dtype, Integers, distinct, poison, unsigned

from ..faults import fault_at
from ..global_access import Strength
from ..global_memory import GlobalMemory
from ..global_order import GlobalOrder
from ..machine import Task
from ..memory import View
from ..numbers import dtype_of
from ..polls import NO_ONE, element_text
from ..registry import (
    Binary,
    Built,
    Coroutine,
    Kind,
    Waiting,
    action,
    blocking,
    immediate,
    pure,
    structured,
    threadwise,
)
from ..threads import differs, first_is_missing, of_first
from ..touches import READ
from .block_pointers import BlockPointer, padding
from .thread_registers import stored_by

_FUNCTIONS: dict[RMWOp, Callable[[Array, Array], Array]] = {
    RMWOp.AND: np.bitwise_and,
    RMWOp.OR: np.bitwise_or,
    RMWOp.XOR: np.bitwise_xor,
    RMWOp.ADD: np.add,
    RMWOp.FADD: np.add,
    RMWOp.MAX: np.maximum,
    RMWOp.MIN: np.minimum,
    RMWOp.UMAX: np.maximum,
    RMWOp.UMIN: np.minimum,
    RMWOp.XCHG: lambda _old, new: new,
}


class Order:
    """The release and the acquire of an operation."""

    def __init__(self, op: Operation):
        semantic = MemSemantic(cast(Any, op).sem.value.data)
        self._op = op
        self._writes = not isinstance(op, tt.AtomicLoadOp | tt.Polls)
        self._releases = semantic in (MemSemantic.RELEASE, MemSemantic.ACQUIRE_RELEASE)
        self._acquires = semantic in (MemSemantic.ACQUIRE, MemSemantic.ACQUIRE_RELEASE)
        # Who does not look at what it finds can't know whether it comes after a release.
        self._looks = isinstance(op, tt.Polls) or any(result.uses for result in op.results)

    def apply(self, task: Task, addresses: Array) -> None:
        """Acquire what was released at the addresses, and release there; nothing to do for a task on its own."""
        cluster = task.cluster
        if (order := task.order) is not None:
            self._apply_to_all(task, order, distinct(addresses).tolist())
            return
        if len(cluster.tasks) == 1 and not cluster.released:
            return
        unique: list[int] = distinct(addresses).tolist()
        if self._acquires:
            for address in unique:
                if (known := cluster.released.get(address)) is not None:
                    task.acquire(known)
        if self._releases:
            released = task.release()
            for address in unique:
                cluster.released.setdefault(address, released.copy()).join(released)

    def _apply_to_all(self, task: Task, order: GlobalOrder, addresses: list[int]) -> None:
        """The same where programs are checked: fences make relaxed operations release and acquire."""
        strength = order.strength(self._op)
        if self._looks:
            _acquire(task, order, addresses, strength, by_fence=not self._acquires)
        if not self._writes:
            return
        released = task.release() if self._releases else task.fenced
        for address in addresses:
            if strength is Strength.SYS and not self._releases:
                order.release(address, task.program, Strength.GPU, released)
                order.release(address, task.program, Strength.SYS, task.fenced_system)
            else:
                order.release(address, task.program, strength, released)


def _acquire(task: Task, order: GlobalOrder, addresses: list[int], strength: Strength, *, by_fence: bool) -> None:
    """Acquire what is released at addresses to an operation of that strength, or let the next fence do so."""
    for address in addresses:
        if not by_fence:
            for known in order.acquired(address, task.program, strength):
                task.acquire(known)
            continue
        for known in order.acquired(address, task.program, Strength.GPU):
            task.relaxed.join(known)
        if strength is Strength.SYS:
            for known in order.acquired(address, task.program, strength):
                task.relaxed_system.join(known)


def order_by_fences(task: Task, order: GlobalOrder, op: Operation, addresses: Array) -> None:
    """Let the fence after a volatile load acquire what is released at its addresses, as after a relaxed one."""
    _acquire(task, order, distinct(addresses).tolist(), order.strength(op), by_fence=True)


def _memory(task: Task) -> GlobalMemory:
    return task.global_memory


def combining(kind: RMWOp, dtype: Dtype) -> Callable[[Array, Array], Array]:
    """Return what makes the new values of an atomic operation from the old and the given ones, arrays of `dtype`."""
    function = _FUNCTIONS[kind]
    held = unsigned(dtype) if kind in (RMWOp.UMAX, RMWOp.UMIN) else dtype
    return lambda old, given: function(old.view(held), given.view(held)).view(dtype)


def in_turns(addresses: Integers) -> list[Integers]:
    """The elements of a flat array in groups without an address twice, those of one address in their order."""
    if not len(addresses):
        return []
    _, first = np.unique(addresses, return_index=True)
    if len(first) == len(addresses):
        return [np.arange(len(addresses))]
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    # How many elements of the same address stand before each.
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    return [order[turn == number] for number in range(int(turn.max()) + 1)]


def masked_out(result: MaskedResult, dtype: Dtype) -> Callable[[Task], Array]:
    """Return what gives the element of a result that a mask hides.

    That is 0 where the operation promises it. What may be anything, and with `unwritten="poison"` the others too, has
    every bit set: NaN, or -1.
    """
    zero, undefined = np.zeros((), dtype)[()], poison((), dtype)[()]
    if result is MaskedResult.ANY:
        return lambda _task: undefined
    return lambda task: undefined if task.cluster.launch.poisons_masked else zero


def _exchange(
    task: Task,
    op: Operation,
    dtype: Dtype,
    addresses: Array,
    make: Callable[[Array, Integers], Array],
    mask: Array | None = None,
    hidden: MaskedResult = MaskedResult.GIVEN,
) -> Array:
    """Replace each element by what `make` gives for the old ones and their numbers; gives the old ones.

    Masked elements are left alone, and come back as `hidden`.
    """
    shape, memory = np.shape(addresses), _memory(task)
    flat = np.ravel(addresses)
    if mask is None:
        chosen, result = np.arange(len(flat)), np.empty(flat.shape, dtype)
    else:
        chosen = np.flatnonzero(np.broadcast_to(mask, shape))
        result = np.full(flat.shape, masked_out(hidden, dtype)(task))
    with memory.exclusive:
        for group in in_turns(flat[chosen]):
            touches = None if task.order is None else task.order.touches
            noted = 0 if touches is None else len(touches)
            where = chosen[group]
            old = memory.load(op, flat[where], dtype, None, result[:1])
            new = make(old, where)
            memory.store(op, flat[where], new, dtype, None)
            is_changed = new.tobytes() != old.tobytes()
            if not is_changed:
                memory.changes.count -= 1  # who polls need not look again
            elif len(flat) == 1:
                memory.changed(op, int(flat[0]))
            if touches is not None:
                # It is an update or, where nothing changes, a read.
                touches[noted:] = [each for each in touches[noted:] if (each.kind == READ) is not is_changed]
            result[where] = old
    return result.reshape(shape)[()]


def _flat(values: Array, addresses: Array) -> Array:
    return np.broadcast_to(values, np.shape(addresses)).reshape(-1)


@action(tt.AtomicRMWOp)
def read_modify_write(
    task: Task, op: tt.AtomicRMWOp, addresses: Array, values: Array, mask: Array | None = None
) -> Any:
    """The old values; what is masked is as `masked_out` has it."""
    dtype, order = dtype_of(op.val.type), Order(op)
    combine = combining(RMWOp(op.atomic_rmw_op.value.data), dtype)
    given = _flat(values, addresses)

    def make(old: Array, where: Integers) -> Array:
        return combine(old, given[where])

    old = _exchange(task, op, dtype, addresses, make, mask, op.masked_result)
    order.apply(task, _reached(addresses, mask))
    return old


def _reached(addresses: Array, mask: Array | None) -> Array:
    return addresses if mask is None else np.asarray(addresses)[np.broadcast_to(mask, np.shape(addresses))]


@action(tt.AtomicCASOp)
def compare_and_swap(task: Task, op: tt.AtomicCASOp, addresses: Array, compare: Array, values: Array) -> Any:
    """The old values, which are replaced where they have the bits of `cmp`."""
    dtype, order = dtype_of(op.val.type), Order(op)
    bits = np.dtype(f"u{dtype.itemsize}")
    expected, given = _flat(compare, addresses).view(bits), _flat(values, addresses).view(bits)

    def make(old: Array, where: Integers) -> Array:
        return np.where(old.view(bits) == expected[where], given[where], old.view(bits)).view(dtype)

    old = _exchange(task, op, dtype, addresses, make)
    order.apply(task, addresses)
    return old


@action(tt.AtomicLoadOp)
def load(task: Task, op: tt.AtomicLoadOp, addresses: Array, mask: Array | None = None) -> Any:
    """Masked elements are as `masked_out` has them."""
    dtype, order = dtype_of(op.result.type), Order(op)
    is_scalar = as_tensor(op.result.type) is None
    values = _memory(task).load(op, addresses, dtype, mask, masked_out(op.masked_result, dtype)(task))
    order.apply(task, _reached(addresses, mask))
    return values[()] if is_scalar else values


@action(tt.AtomicStoreOp)
def store(task: Task, op: tt.AtomicStoreOp, addresses: Array, values: Array, mask: Array | None = None) -> None:
    """Store values; of several for one address, any of them may stay."""
    dtype, order = dtype_of(op.value.type), Order(op)
    order.apply(task, _reached(addresses, mask))
    _memory(task).store(op, addresses, values, dtype, mask)
    if np.size(addresses) == 1 and (mask is None or np.all(mask)):
        _memory(task).changed(op, int(np.ravel(addresses)[0]))


@blocking(tt.AtomicPollOp)
def poll(
    task: Task, op: tt.AtomicPollOp, addresses: Array, expected: Array, timeout: np.int64 | None = None
) -> Coroutine:
    """Waits until all elements are as expected, or until the time is over; which of them are.

    There is no clock: a turn of the task counts as a microsecond.
    """
    dtype, order = dtype_of(op.expected.type), Order(op)
    yield None
    found = np.zeros(np.shape(addresses), np.bool_)

    def ready() -> bool:
        nonlocal found
        found = _memory(task).load(op, addresses, dtype, None, expected) == expected
        return bool(np.all(found))

    if timeout is None:
        wanted, first = np.ravel(expected)[0], int(np.ravel(addresses)[0])

        def reason() -> str:
            return f"polls for {wanted} in global memory, {NO_ONE}: {element_text(_memory(task), first, dtype)}"

        yield Waiting(op, ready, reason, spins=True, polled=first)
    else:
        left = -(-int(timeout) // 1000)
        while not ready() and left > 0:
            left -= 1
            yield Waiting(op, lambda: True, lambda: "polls global memory", spins=True)
    order.apply(task, addresses)
    return found


# Pointers, and loads and stores through them -------------------------------------------------------------------------


@pure(tt.AddPtrOp)
def add_pointer(op: tt.AddPtrOp) -> Binary:
    """Offsets count elements of what is pointed to, an i1 as a byte."""
    pointer = scalar_type(op.ptr.type)
    assert isinstance(pointer, PointerType)
    size = np.int64(-(-element_bits(pointer.pointee) // 8))
    if size == 1:
        return lambda pointers, offsets: pointers + offsets.astype(np.int64)
    return lambda pointers, offsets: pointers + offsets.astype(np.int64) * size


@threadwise(tt.LoadOp)
@structured(tt.LoadOp)
def plain_load(op: tt.LoadOp, _planner: Any) -> Built:
    """Masked elements without another value are as `masked_out` has them.

    Before a volatile load others may have their turn: what it finds may depend on theirs.
    Raises Fault for an address outside of all arrays, or one that is not a multiple of the element.
    """
    dtype = dtype_of(op.result.type)
    hidden, has_mask, has_other = masked_out(op.masked_result, dtype), op.mask is not None, op.other is not None
    is_scalar, is_volatile = as_tensor(op.result.type) is None, is_set(op, "isVolatile")

    def run(task: Task, given: Array | BlockPointer, *rest: Any) -> Array:
        mask = rest[0] if has_mask else None
        other = rest[-1] if has_other else hidden(task)
        if isinstance(given, BlockPointer):
            pointers, mask = given.elements(op)
            other = padding(op, other)
        else:
            pointers = given
        if is_scalar and task.active is not None and (differs(pointers) or differs(mask)):
            # The pointers of threads that do not run may be anything.
            mask = task.active if mask is None else task.active & mask
            pointers = np.broadcast_to(pointers, mask.shape)
        loaded = task.global_memory.load(op, pointers, dtype, mask, other)
        if is_volatile and task.order is not None:
            order_by_fences(task, task.order, op, _reached(pointers, mask))
        # A masked load of a scalar gives an array without dimensions.
        return loaded[()] if is_scalar else loaded

    def step(task: Task, *operands: Any) -> Coroutine:
        yield None
        return run(task, *operands)

    return (Kind.STEP, step) if is_set(op, "isVolatile") else (Kind.EFFECT, run)


@threadwise(tt.StoreOp)
@immediate(tt.StoreOp)
def plain_store(
    task: Task, op: tt.StoreOp, given: Array | BlockPointer, values: Array, mask: Array | None = None
) -> None:
    """Write where the mask holds; where several elements have one address, any of them may win.

    The first thread of the task stores a number. Raises Fault as `load` does, and where that thread does not run.
    """
    dtype, active = dtype_of(op.value.type), task.active
    pointers, mask = given.elements(op) if isinstance(given, BlockPointer) else (given, mask)
    if as_tensor(op.value.type) is None:
        pointers, values, mask = (of_first(each) for each in (pointers, values, mask))
        if active is not None and not active[0]:
            raise first_is_missing(op)
    elif active is not None:
        stored = stored_by(op, op.ptr, active)
        mask = stored if mask is None else stored & mask
    task.global_memory.store(op, pointers, values, dtype, mask)


# Gathers from buffers in shared memory, scatters to them, and atomic updates -----------------------------------------


def _elements(op: Operation, view: View, indices: Array, axis: int) -> tuple[Integers, ...]:
    """Return the element of `view` that each index means: all coordinates but the one along `axis` are its own.

    Raises Fault for an index outside of the buffer, and for a dimension in which the buffer is smaller.
    """
    size = view.shape[axis]
    wrong = (indices < 0) | (indices >= size)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise fault_at(
            op,
            f"index {int(indices[at])} at {list(at)} is outside of the {size} elements of '{view.name}' along {axis}",
        )
    if any(
        mine > theirs for dim, (mine, theirs) in enumerate(zip(indices.shape, view.shape, strict=True)) if dim != axis
    ):
        raise fault_at(op, f"indices of shape {list(indices.shape)} don't fit '{view.name}' of {list(view.shape)}")
    where: list[Integers] = [np.asarray(own) for own in np.indices(indices.shape, np.int64)]
    where[axis] = indices.astype(np.int64)
    return tuple(where)


@action(ttg.LocalGatherOp)
def local_gather(task: Task, op: ttg.LocalGatherOp, view: View, indices: Array, *_token: Any) -> Any:
    """Read the elements that the indices name; for the race checker, the whole buffer."""
    at = _elements(op, view, indices, op.axis.value.data)
    view.cell.read(task.actor(op, view), task.clock, view.name)
    # A part that is read must have been written, another part need not.
    part = View(view.memory, view.offsets[at], view.dtype, view.family, view.name, view.alignment)
    return part.read(op)


@action(ttg.LocalScatterOp)
def local_scatter(task: Task, op: ttg.LocalScatterOp, view: View, values: Array, indices: Array, *_token: Any) -> None:
    """Write the elements that the indices name; of several values for one element, any may stay."""
    at = _elements(op, view, indices, op.axis.value.data)
    view.cell.overwrite(task.actor(op, view), task.clock, view.name)
    View(view.memory, view.offsets[at], view.dtype, view.family, view.name, view.alignment).write(values)


@action(ttg.LocalAtomicScatterRMWOp)
def local_atomic_scatter_rmw(
    task: Task, op: ttg.LocalAtomicScatterRMWOp, view: View, values: Array, indices: Array, *rest: Array
) -> Any:
    """Updates of one element happen one after the other, in row-major order of the indices.

    Each round updates an element at most once, so that there are as many numpy operations as updates of one element.
    What is masked off changes nothing, and its result is 0.
    """
    kind = RMWOp(op.atomic_rmw_op.value.data)
    chosen = np.broadcast_to(rest[0], indices.shape) if rest else np.ones(indices.shape, np.bool_)
    at = _elements(op, view, np.where(chosen, indices, indices.dtype.type(0)), op.axis.value.data)
    view.cell.overwrite(task.actor(op, view), task.clock, view.name)
    combine = combining(kind, view.dtype)
    offsets, new = view.offsets[at][chosen], values[chosen]
    old = np.zeros(len(offsets), view.dtype)
    for turn in in_turns(offsets):
        part = View(view.memory, offsets[turn], view.dtype, view.family, view.name, view.alignment)
        old[turn] = part.read(op)
        part.write(combine(old[turn], new[turn]))
    result = np.zeros(indices.shape, view.dtype)
    result[chosen] = old
    return result
