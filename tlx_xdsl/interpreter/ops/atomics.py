"""Atomic operations on global memory.

Elements with different addresses are done at once; those that share one take turns, in the order of the elements, as
the hardware does in any order. An operation that releases gives what its task knows to those that acquire at the same
address (PTX ISA, "Memory Consistency Model"); scopes make no difference here, since all threads see one memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.pointer import PointerType
from tlx_xdsl.dialects.base.tensors import as_tensor, element_bits, scalar_type
from tlx_xdsl.dialects.tt.enums import MemSemantic, RMWOp
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.registry import Binary, Coroutine, Run, Unary, Waiting, effect, pure, step
from tlx_xdsl.numerics.arrays import Array, poison, unsigned

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


class _Order:
    """The release and the acquire of an operation."""

    def __init__(self, op: Operation):
        semantic = MemSemantic(cast(Any, op).sem.value.data)
        self._releases = semantic in (MemSemantic.RELEASE, MemSemantic.ACQUIRE_RELEASE)
        self._acquires = semantic in (MemSemantic.ACQUIRE, MemSemantic.ACQUIRE_RELEASE)

    def apply(self, task: Task, addresses: Array) -> None:
        """Acquire what was released at the addresses, and release there; nothing to do for a task on its own."""
        cluster = task.cluster
        if len(cluster.tasks) == 1 and not cluster.released:
            return
        unique: list[int] = np.unique(addresses).tolist()
        if self._acquires:
            for address in unique:
                if (known := cluster.released.get(address)) is not None:
                    task.acquire(known)
        if self._releases:
            released = task.release()
            for address in unique:
                cluster.released.setdefault(address, released.copy()).join(released)


def _memory(task: Task) -> GlobalMemory:
    return task.global_memory


def combining(kind: RMWOp, dtype: np.dtype[Any]) -> Callable[[Array, Array], Array]:
    """Return what makes the new values of an atomic operation from the old and the given ones, arrays of `dtype`."""
    function = _FUNCTIONS[kind]
    held = unsigned(dtype) if kind in (RMWOp.UMAX, RMWOp.UMIN) else dtype
    return lambda old, given: function(old.view(held), given.view(held)).view(dtype)


def in_turns(addresses: NDArray[np.int64]) -> list[NDArray[np.int64]]:
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


def _exchange(
    task: Task,
    op: Operation,
    dtype: np.dtype[Any],
    addresses: Array,
    mask: Array | None,
    make: Callable[[Array, NDArray[np.int64]], Array],
) -> Array:
    """Replace each element by what `make` gives for the old ones and their numbers; gives the old ones.

    Masked elements are left alone, and come back with every bit set.
    """
    shape, memory = np.shape(addresses), _memory(task)
    flat = np.ravel(addresses)
    chosen = np.arange(len(flat)) if mask is None else np.flatnonzero(np.broadcast_to(mask, shape))
    result = poison(flat.shape, dtype)
    with memory.exclusive:
        for group in in_turns(flat[chosen]):
            where = chosen[group]
            old = memory.load(op, flat[where], dtype, None, result[:1])
            memory.store(op, flat[where], make(old, where), dtype, None)
            result[where] = old
    return result.reshape(shape)[()]


def _flat(values: Array, addresses: Array) -> Array:
    return np.broadcast_to(values, np.shape(addresses)).reshape(-1)


@step(tt.AtomicRMWOp)
def read_modify_write(op: tt.AtomicRMWOp) -> Run:
    """The old values; what is masked has every bit set."""
    dtype, order = dtype_of(op.val.type), _Order(op)
    combine = combining(RMWOp(op.atomic_rmw_op.value.data), dtype)

    def run(task: Task, addresses: Array, values: Array, mask: Array | None = None) -> Coroutine:
        yield None
        given = _flat(values, addresses)

        def make(old: Array, where: NDArray[np.int64]) -> Array:
            return combine(old, given[where])

        old = _exchange(task, op, dtype, addresses, mask, make)
        order.apply(task, _reached(addresses, mask))
        return old

    return run


def _reached(addresses: Array, mask: Array | None) -> Array:
    return addresses if mask is None else np.asarray(addresses)[np.broadcast_to(mask, np.shape(addresses))]


@step(tt.AtomicCASOp)
def compare_and_swap(op: tt.AtomicCASOp) -> Run:
    """The old values, which are replaced where they have the bits of `cmp`."""
    dtype, order = dtype_of(op.val.type), _Order(op)
    bits = np.dtype(f"u{dtype.itemsize}")

    def run(task: Task, addresses: Array, compare: Array, values: Array) -> Coroutine:
        yield None
        expected, given = _flat(compare, addresses).view(bits), _flat(values, addresses).view(bits)

        def make(old: Array, where: NDArray[np.int64]) -> Array:
            return np.where(old.view(bits) == expected[where], given[where], old.view(bits)).view(dtype)

        old = _exchange(task, op, dtype, addresses, None, make)
        order.apply(task, addresses)
        return old

    return run


@step(tt.AtomicLoadOp)
def load(op: tt.AtomicLoadOp) -> Run:
    """What is masked has every bit set."""
    dtype, order = dtype_of(op.result.type), _Order(op)
    undefined = poison((), dtype)[()]
    is_scalar = as_tensor(op.result.type) is None

    def run(task: Task, addresses: Array, mask: Array | None = None) -> Coroutine:
        yield None
        values = _memory(task).load(op, addresses, dtype, mask, undefined)
        order.apply(task, _reached(addresses, mask))
        return values[()] if is_scalar else values

    return run


@step(tt.AtomicStoreOp)
def store(op: tt.AtomicStoreOp) -> Run:
    """Of several values for one address, any of them may stay."""
    dtype, order = dtype_of(op.value.type), _Order(op)

    def run(task: Task, addresses: Array, values: Array, mask: Array | None = None) -> Coroutine:
        yield None
        order.apply(task, _reached(addresses, mask))
        _memory(task).store(op, addresses, values, dtype, mask)

    return run


@step(tt.AtomicPollOp)
def poll(op: tt.AtomicPollOp) -> Run:
    """Waits until all elements are as expected, or until the time is over; which of them are.

    There is no clock: a turn of the task counts as a microsecond.
    """
    dtype, order = dtype_of(op.expected.type), _Order(op)

    def run(task: Task, addresses: Array, expected: Array, timeout: np.int64 | None = None) -> Coroutine:
        yield None
        found = np.zeros(np.shape(addresses), np.bool_)

        def ready() -> bool:
            nonlocal found
            found = _memory(task).load(op, addresses, dtype, None, expected) == expected
            return bool(np.all(found))

        if timeout is None:
            yield Waiting(op, ready, lambda: f"polls for {np.ravel(expected)[0]} in global memory", spins=True)
        else:
            left = -(-int(timeout) // 1000)
            while not ready() and left > 0:
                left -= 1
                yield Waiting(op, lambda: True, lambda: "polls global memory", spins=True)
        order.apply(task, addresses)
        return found

    return run


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


@pure(tt.IntToPtrOp, tt.PtrToIntOp)
def pointer_bits(_op: Operation) -> Unary:
    """A pointer is held as its address."""
    return lambda value: value


@effect(tt.LoadOp)
def plain_load(op: tt.LoadOp) -> Run:
    """What is masked and has no other value has every bit set: it is NaN, or -1, so that its use is seen.

    Raises Fault for an address outside of all arrays, or one that is not a multiple of the element.
    """
    dtype = dtype_of(op.result.type)
    has_mask, has_other = op.mask is not None, op.other is not None
    undefined = poison((), dtype)[()]

    is_scalar = as_tensor(op.result.type) is None

    def run(task: Task, pointers: Array, *rest: Any) -> Array:
        mask = rest[0] if has_mask else None
        other = rest[-1] if has_other else undefined
        loaded = task.global_memory.load(op, pointers, dtype, mask, other)
        # A masked load of a scalar gives an array without dimensions.
        return loaded[()] if is_scalar else loaded

    return run


@effect(tt.StoreOp)
def plain_store(op: tt.StoreOp) -> Run:
    """Write where the mask holds; where several elements have one address, any of them may win.

    Raises Fault as `load` does.
    """
    dtype = dtype_of(op.value.type)

    def run(task: Task, pointers: Array, values: Array, mask: Array | None = None) -> None:
        task.global_memory.store(op, pointers, values, dtype, mask)

    return run
