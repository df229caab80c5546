"""Atomic operations on global memory (PTX ISA, "Memory Consistency Model" and "atom")."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.arith import AndIOp, ShRUIOp, XOrIOp

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.tt import MemSemantic, MemSyncScope, RMWOp
from tlx_xdsl.language.core import (
    bfloat16,
    dtype,
    float16,
    float32,
    float64,
    int1,
    int16,
    int32,
    int64,
    pointer_type,
    uint16,
    uint32,
    uint64,
)

from .. import semantic
from ..calls import Call, lowers
from ..types import ir_type
from ..values import Constexpr, Tensor, Value
from .memory import (
    element_value,
    in_memory,
    mask_of,
    must_be_writable,
    pointer_of,
    stored_as,
    to_shape_of_pointer,
)

_SEMANTICS = {
    "acquire": MemSemantic.ACQUIRE,
    "release": MemSemantic.RELEASE,
    "acq_rel": MemSemantic.ACQUIRE_RELEASE,
    "relaxed": MemSemantic.RELAXED,
}
_SCOPES = {"gpu": MemSyncScope.GPU, "cta": MemSyncScope.CTA, "sys": MemSyncScope.SYSTEM}

_INTEGERS = (int32, uint32, int64, uint64)
_WIDE_FLOATS = (float32, float64)

# --- arguments ------------------------------------------------------------------------------------------------------


def ordering_of(call: Call, default: MemSemantic, *allowed: MemSemantic) -> tuple[MemSemantic, MemSyncScope]:
    """The arguments `sem`, which must be one of `allowed` (or any), and `scope`."""
    semantics: Mapping[str, MemSemantic] = {
        word: sem for word, sem in _SEMANTICS.items() if not allowed or sem in allowed
    }
    sem = call.choice("sem", semantics) if call.given("sem") else default
    scope = call.choice("scope", _SCOPES) if call.given("scope") else MemSyncScope.GPU
    return sem, scope


def _target(call: Call, types: tuple[dtype, ...]) -> tuple[Tensor, dtype]:
    """The argument `pointer`, which must be writable and point to one of `types`."""
    pointer, element = pointer_of(call)
    must_be_writable(call, pointer)
    _check_type(call, pointer, element, types)
    return pointer, element


def _check_type(call: Call, pointer: Tensor, element: dtype, types: tuple[dtype, ...]) -> None:
    if element not in types:
        expected = ", ".join(map(str, types))
        call.fail("pointer", f"'pointer' must point to one of {expected}, found {pointer.describe()}")


def _value(call: Call, parameter: str, element: dtype, pointer: Tensor) -> Tensor:
    return to_shape_of_pointer(call, parameter, pointer, element_value(call, parameter, element, pointer))


def _mask(call: Call, pointer: Tensor) -> Tensor:
    """The argument `mask` in the shape of the pointers; without one, true."""
    mask = mask_of(call, pointer)
    if mask is None:
        return Tensor(call.builder.constant(True, ir_type(int1, pointer.shape)), int1, pointer.shape)
    return to_shape_of_pointer(call, "mask", pointer, mask)


# --- read-modify-write ----------------------------------------------------------------------------------------------


def _rmw(
    call: Call, kind: RMWOp, pointer: Tensor, value: Tensor, mask: Tensor, ordering: tuple[MemSemantic, MemSyncScope]
) -> Tensor:
    sem, scope = ordering
    return call.builder.tensor(
        tt.AtomicRMWOp, value.dtype, value.shape, pointer, value, mask, atomic_rmw_op=kind, sem=sem, scope=scope
    )


def _lower_rmw(name: str, kind: RMWOp, types: tuple[dtype, ...]) -> None:
    """Let `tl.name` do `kind` for integers; see `_kind_for` for the other types."""

    @lowers(f"tl.{name}")
    def lower(call: Call) -> Value:
        pointer, element = _target(call, types)
        ordering = ordering_of(call, MemSemantic.ACQUIRE_RELEASE)
        value, mask = _value(call, "val", element, pointer), _mask(call, pointer)
        if element.is_floating() and kind in (RMWOp.MAX, RMWOp.MIN):
            return _float_extremum(call, kind, pointer, value, mask, ordering)
        return _rmw(call, _kind_for(kind, element), pointer, value, mask, ordering)

    _ = lower


def _kind_for(kind: RMWOp, element: dtype) -> RMWOp:
    if kind is RMWOp.ADD and element.is_floating():
        return RMWOp.FADD
    if not element.is_floating() and not element.is_int_signed():
        return {RMWOp.MAX: RMWOp.UMAX, RMWOp.MIN: RMWOp.UMIN}.get(kind, kind)
    return kind


def _float_extremum(
    call: Call,
    kind: RMWOp,
    pointer: Tensor,
    value: Tensor,
    mask: Tensor,
    ordering: tuple[MemSemantic, MemSyncScope],
) -> Tensor:
    """The maximum or minimum of floats by comparing their bits as integers, which the hardware has atomics for.

    As signed integers, floats without a sign bit are ordered like the numbers, and above all floats with one. As
    unsigned integers, those with a sign bit are ordered the other way round, and above all without one. So a value
    without a sign bit takes part as a signed integer, any other in the opposite extremum of unsigned integers.
    """
    builder, shape, floats = call.builder, value.shape, value.dtype
    assert isinstance(floats, dtype)
    bits = int32 if floats == float32 else int64
    bits_type = ir_type(bits, shape)
    as_bits = builder.tensor(tt.BitcastOp, bits, shape, value)
    target = pointer_type(bits)
    target_pointer = builder.tensor(tt.BitcastOp, target, shape, pointer)
    last_bit = builder.constant(bits.primitive_bitwidth - 1, bits_type)
    sign = builder.insert(ShRUIOp(as_bits.ssa, last_bit)).result
    negative = builder.insert(arith.CmpiOp("ne", sign, builder.constant(0, bits_type))).result
    true = builder.constant(True, ir_type(int1, shape))
    positive = builder.insert(XOrIOp(negative, true)).result

    def part(of: RMWOp, where: Tensor) -> Tensor:
        masked = builder.value(AndIOp(mask.ssa, where.ssa), int1, shape)
        return _rmw(call, of, target_pointer, as_bits, masked, ordering)

    opposite = RMWOp.UMIN if kind is RMWOp.MAX else RMWOp.UMAX
    old_positive = part(kind, Tensor(positive, int1, shape))
    old_negative = part(opposite, Tensor(negative, int1, shape))
    old = builder.insert(arith.SelectOp(positive, old_positive.ssa, old_negative.ssa)).result
    return builder.tensor(tt.BitcastOp, floats, shape, old)


_lower_rmw("atomic_add", RMWOp.ADD, (*_INTEGERS, float16, bfloat16, *_WIDE_FLOATS))
_lower_rmw("atomic_max", RMWOp.MAX, (*_INTEGERS, *_WIDE_FLOATS))
_lower_rmw("atomic_min", RMWOp.MIN, (*_INTEGERS, *_WIDE_FLOATS))
_lower_rmw("atomic_and", RMWOp.AND, _INTEGERS)
_lower_rmw("atomic_or", RMWOp.OR, _INTEGERS)
_lower_rmw("atomic_xor", RMWOp.XOR, _INTEGERS)
_lower_rmw("atomic_xchg", RMWOp.XCHG, (*_INTEGERS, *_WIDE_FLOATS))


@lowers("tl.atomic_cas")
def _atomic_cas(call: Call) -> Value:
    pointer, element = _target(call, (int16, uint16, *_INTEGERS, float16, bfloat16, *_WIDE_FLOATS))
    sem, scope = ordering_of(call, MemSemantic.ACQUIRE_RELEASE)
    expected, value = _value(call, "cmp", element, pointer), _value(call, "val", element, pointer)
    return call.builder.tensor(tt.AtomicCASOp, element, pointer.shape, pointer, expected, value, sem=sem, scope=scope)


# --- load, store, poll ----------------------------------------------------------------------------------------------


@lowers("tl.atomic_load")
def _atomic_load(call: Call) -> Value:
    pointer, element = pointer_of(call)
    sem, scope = ordering_of(call, MemSemantic.ACQUIRE, MemSemantic.ACQUIRE, MemSemantic.RELAXED)
    mask, memory = _mask(call, pointer), in_memory(call, pointer, element)
    loaded = call.builder.tensor(tt.AtomicLoadOp, stored_as(element), pointer.shape, memory, mask, sem=sem, scope=scope)
    return semantic.cast(call.builder, loaded, element)


@lowers("tl.atomic_store")
def _atomic_store(call: Call) -> None:
    pointer, element = pointer_of(call)
    must_be_writable(call, pointer)
    sem, scope = ordering_of(call, MemSemantic.RELEASE, MemSemantic.RELEASE, MemSemantic.RELAXED)
    value = semantic.cast(call.builder, _value(call, "val", element, pointer), stored_as(element))
    mask, memory = _mask(call, pointer), in_memory(call, pointer, element)
    call.builder.emit(tt.AtomicStoreOp, memory, value, mask, sem=sem, scope=scope)


@lowers("tl.atomic_poll")
def _atomic_poll(call: Call) -> Value:
    pointer, element = pointer_of(call)
    _check_type(call, pointer, element, (int16, uint16, *_INTEGERS))
    sem, scope = ordering_of(call, MemSemantic.ACQUIRE, MemSemantic.ACQUIRE, MemSemantic.RELAXED)
    expected, timeout = _value(call, "expected_value", element, pointer), timeout_of(call, "timeout_ns")
    return call.builder.tensor(tt.AtomicPollOp, int1, pointer.shape, pointer, expected, timeout, sem=sem, scope=scope)


def timeout_of(call: Call, parameter: str) -> Tensor | None:
    """The argument `parameter`, in nanoseconds, as an int64 scalar, or None."""
    if not call.given(parameter):
        return None
    value = call.args[parameter]
    if isinstance(value, Constexpr) and (not isinstance(value.value, int) or value.value < 0):
        call.expected(parameter, "an integer of at least 0")
    return call.scalar(parameter, int64)
