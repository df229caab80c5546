"""Loads and stores through pointers, and the arguments that they share with the atomic operations."""

from __future__ import annotations

import math
from dataclasses import replace

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, i32
from xdsl.ir import OpResult

from tlx_xdsl.dialects import llvm, tt
from tlx_xdsl.dialects.tt import CacheModifier, CachePolicyAttr, EvictionPolicy
from tlx_xdsl.language.core import bfloat16, dtype, float16, float32, float64, int1, int8, pointer_type

from .. import semantic
from ..calls import Call, lowers
from ..numbers import is_number, natural_dtype, rounded
from ..types import ir_type
from ..values import Constexpr, Tensor, TensorDescriptor, Value
from .block_pointers import resolved

LOAD_MODIFIERS = {
    "": CacheModifier.NONE,
    ".ca": CacheModifier.CA,
    ".cg": CacheModifier.CG,
    ".cs": CacheModifier.CS,
    ".cv": CacheModifier.CV,
}
_STORE_MODIFIERS = {
    "": CacheModifier.NONE,
    ".wb": CacheModifier.WB,
    ".cg": CacheModifier.CG,
    ".cs": CacheModifier.CS,
    ".wt": CacheModifier.WT,
}
_EVICTION = {
    "": EvictionPolicy.NORMAL,
    "evict_normal": EvictionPolicy.NORMAL,
    "evict_first": EvictionPolicy.EVICT_FIRST,
    "evict_last": EvictionPolicy.EVICT_LAST,
}

# --- arguments ------------------------------------------------------------------------------------------------------


def pointer_of(call: Call) -> tuple[Tensor, dtype]:
    """The argument `pointer`, a pointer or a block of pointers, and the type of the elements that it points to."""
    what = "a pointer or a block of pointers"
    value = call.args["pointer"]
    if isinstance(value, TensorDescriptor):
        call.fail("pointer", f"'pointer' must be {what}, found {value.describe()}: use its methods load and store")
    return call.pointer("pointer", what)


def stored_as(element: dtype) -> dtype:
    """The type that elements have in memory: an int1 takes a byte."""
    return int8 if element == int1 else element


def in_memory(call: Call, pointer: Tensor, element: dtype) -> Tensor:
    """`pointer`, to elements of the type that they have in memory."""
    if stored_as(element) == element:
        return pointer
    assert isinstance(pointer.dtype, pointer_type)
    target = replace(pointer.dtype, element_ty=stored_as(element))
    return call.builder.tensor(tt.BitcastOp, target, pointer.shape, pointer)


def element_value(call: Call, parameter: str, element: dtype, pointer: Tensor) -> Tensor:
    """The argument, converted to `element`, in its own shape; a scalar pointer takes scalars only."""
    value = call.args[parameter]
    if isinstance(value, Constexpr) and isinstance(value.value, bool | int | float):
        return number(call, value.value, element, pointer.shape)
    tensor = call.tensor(parameter)
    if tensor.shape and not pointer.shape:
        call.fail(parameter, f"'{parameter}' must be a scalar because 'pointer' is one, found {tensor.describe()}")
    return semantic.cast(call.builder, tensor, element)


def number(call: Call, value: bool | int | float, element: dtype, shape: tuple[int, ...]) -> Tensor:
    """The compile-time number `value` as `element`, everywhere in a block of `shape`.

    As in Triton, the number has its own type first. A conversion that keeps the value happens here, any other one is
    left to the compiler.
    """
    natural = natural_dtype(value)
    if natural == float32:
        value = rounded(value, float32)
    exact = _exactly(value, natural, element)
    if exact is not None:
        return Tensor(call.builder.constant(exact, ir_type(element, shape)), element, shape)
    scalar = Tensor(call.builder.constant(value, ir_type(natural)), natural)
    return semantic.splat(call.builder, semantic.cast(call.builder, scalar, element), shape)


def _exactly(value: bool | int | float, source: dtype, target: dtype) -> bool | int | float | None:
    """`value` of type `source` converted to `target`; None when that loses something or may not be computed here."""
    if target == int1:
        return value != 0
    if target.is_int():
        if source.is_floating():
            return int(value) if math.isfinite(value) and _fits(int(value), target) else None
        return _wrapped(int(value), target)
    if target not in (float16, bfloat16, float32, float64):
        return None
    nearest = rounded(value, target)
    # The compiler folds conversions of integers whatever they lose.
    return nearest if nearest == value or math.isnan(nearest) or source.is_int() else None


def _fits(value: int, target: dtype) -> bool:
    return _wrapped(value, target) == value


def _wrapped(value: int, target: dtype) -> int:
    """The integer of type `target` with the low bits of `value`."""
    bits = target.primitive_bitwidth
    value &= (1 << bits) - 1
    return value - (1 << bits) if target.is_int_signed() and value >> (bits - 1) else value


def mask_of(call: Call, pointer: Tensor) -> Tensor | None:
    """The argument `mask`, in its own shape, or None; a scalar pointer takes a scalar mask only."""
    if not call.given("mask"):
        return None
    mask = call.condition("mask")
    if mask.shape and not pointer.shape:
        call.fail("mask", f"'mask' must be a scalar because 'pointer' is one, found {mask.describe()}")
    return mask


def to_shape_of_pointer(call: Call, parameter: str, pointer: Tensor, value: Tensor) -> Tensor:
    """`value`, of the argument `parameter`, broadcast to the shape of the pointers, which does not grow."""
    try:
        return semantic.broadcast_to(call.builder, value, pointer.shape)
    except semantic.SemanticError:
        shape = list(pointer.shape)
        call.fail(parameter, f"'{parameter}' must broadcast to the pointers' shape {shape}, found {list(value.shape)}")


def must_be_writable(call: Call, pointer: Tensor) -> None:
    """Raise the error that `pointer` is to constant memory, if it is."""
    if isinstance(pointer.dtype, pointer_type) and pointer.dtype.is_const():
        call.fail("pointer", f"Cannot store to a constant pointer, found {pointer.describe()}")


# --- operations -----------------------------------------------------------------------------------------------------


def cache_policy(call: Call, modifiers: dict[str, CacheModifier]) -> CachePolicyAttr | None:
    """The hints of `cache_modifier` (where there is one) and `eviction_policy`; None without any."""
    modifier = call.choice("cache_modifier", modifiers) if "cache_modifier" in call.args else CacheModifier.NONE
    policy = call.choice("eviction_policy", _EVICTION)
    if modifier is CacheModifier.NONE and policy is EvictionPolicy.NORMAL:
        return None
    return CachePolicyAttr.get(modifier, policy)


@lowers("tl.load")
def _load(call: Call) -> Value:
    call = resolved(call)
    pointer, element = pointer_of(call)
    policy, volatile = cache_policy(call, LOAD_MODIFIERS), call.flag("volatile")
    mask, other = mask_of(call, pointer), None
    if call.given("other"):
        if mask is None:
            call.fail("other", "'other' needs a mask: it is the result where the mask is false")
        other = element_value(call, "other", stored_as(element), pointer)
    builder = call.builder
    shape = semantic.common_shape(pointer.shape, *(value.shape for value in (mask, other) if value is not None))
    pointer = in_memory(call, semantic.broadcast_to(builder, pointer, shape), element)
    op = tt.LoadOp(
        pointer.ssa,
        None if mask is None else semantic.broadcast_to(builder, mask, shape).ssa,
        None if other is None else semantic.broadcast_to(builder, other, shape).ssa,
        cache_policy=policy,
        is_volatile=volatile,
    )
    loaded = builder.value(op, stored_as(element), shape)
    return semantic.cast(builder, loaded, element)


@lowers("tl.store")
def _store(call: Call) -> None:
    call = resolved(call)
    pointer, element = pointer_of(call)
    must_be_writable(call, pointer)
    policy = cache_policy(call, _STORE_MODIFIERS)
    value = to_shape_of_pointer(call, "value", pointer, element_value(call, "value", element, pointer))
    mask = mask_of(call, pointer)
    if mask is not None:
        mask = to_shape_of_pointer(call, "mask", pointer, mask)
    value = semantic.cast(call.builder, value, stored_as(element))
    pointer = in_memory(call, pointer, element)
    call.builder.insert(tt.StoreOp(pointer.ssa, value.ssa, None if mask is None else mask.ssa, cache_policy=policy))


# --- hints (assumptions that the compiler may use) --------------------------------------------------------------------


@lowers("tl.assume")
def _assume(call: Call) -> None:
    condition = call.tensor("cond")
    if condition.shape or condition.dtype != int1:
        call.expected("cond", "a scalar int1, such as a comparison")
    call.builder.insert(llvm.AssumeOp(condition.ssa))


def _lower_hint(name: str, attribute: str) -> None:
    """Let `tl.name` attach `attribute`, an integer for each dimension, to the operation that defines its argument."""

    @lowers(f"tl.{name}")
    def lower(call: Call) -> Value:
        number = call.args["input"]
        # Of a number everything is known; it stays one.
        value = call.tensor("input") if is_number(number) else call.of("input", Tensor, "a runtime value")
        given = call.python("values", "a constexpr integer for each dimension")
        numbers = list(call.integers("values")) if isinstance(given, tuple | list) else [call.integer("values")]
        if not all(1 <= number < 2**31 for number in numbers):
            call.expected("values", "positive integers of 32 bits")
        rank = max(1, len(value.shape))
        if len(numbers) != rank:
            call.fail("values", f"'values' must have an integer for each of {rank} dimensions, found {len(numbers)}")
        # An argument has no operation to carry the hint, and of a constant everything is known.
        if isinstance(value.ssa, OpResult) and not isinstance(value.ssa.op, ConstantOp):
            value.ssa.op.attributes[attribute] = DenseIntOrFPElementsAttr.from_list(TensorType(i32, [rank]), numbers)
        return number

    _ = lower


_lower_hint("multiple_of", "tt.divisibility")
_lower_hint("max_contiguous", "tt.contiguity")
_lower_hint("max_constancy", "tt.constancy")
