"""Matrix products, `tl.gather` and `tl.histogram`."""

from __future__ import annotations

from math import prod

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr

from tlx_xdsl.dialects import tt
from tlx_xdsl.language.core import (
    bfloat16,
    dtype,
    float8e4b15,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int8,
    int32,
    pointer_type,
    uint32,
)

from .. import semantic
from ..calls import Call, lowers
from ..values import Constexpr, Tensor, Value
from .shape import reshape

MIN_K_BITS = 256
"""Bits of a row of the left operand: the least that the tensor cores take at a time."""
HOPPER_IMPRECISE_K = 1 << 30
"""By default, Hopper sums up 8-bit floats in the tensor cores' own precision however long K is."""

_FLOAT8 = (float8e4nv, float8e5, float8e4b15)
_OPERANDS = (int8, *_FLOAT8, float16, bfloat16, float32, float64)
_PRECISIONS = {case.keyword: case for case in tt.InputPrecision}

# --- dot ------------------------------------------------------------------------------------------------------------


@lowers("tl.dot")
def _dot(call: Call) -> Value:
    lhs, rhs = _operand(call, "input"), _operand(call, "other")
    _check_operands(call, lhs, rhs)
    if float8e4b15 in (lhs.dtype, rhs.dtype):
        lhs, rhs = _as_float16(call, lhs), _as_float16(call, rhs)
    shape = (*lhs.shape[:-1], rhs.shape[-1])
    out = _result_type(call, lhs)
    acc = _accumulator(call, shape, out)
    precision, imprecise_k = _precision(call), _imprecise_k(call, lhs, rhs)
    # The operation takes one batch dimension at most.
    a, b, c = (_one_batch(call, value) for value in (lhs, rhs, acc))
    product = call.builder.tensor(
        tt.DotOp, acc.dtype, c.shape, a, b, c, inputPrecision=precision, maxNumImpreciseAcc=imprecise_k
    )
    return product if product.shape == shape else reshape(call.builder, product, shape)


def _as_float16(call: Call, value: Tensor) -> Tensor:
    """An operand beside one of fp8e4b15, which no tensor core takes."""
    is_slow = value.dtype == float8e4b15 and call.visitor.capability >= 90
    value = semantic.cast(call.builder, value, float16)
    if is_slow:
        call.visitor.warn(value, "the use of fp8e4b15 is deprecated on Hopper and later architectures: it is slow")
    return value


def _operand(call: Call, parameter: str) -> Tensor:
    value = call.block(parameter, "a block of two or more dimensions")
    if len(value.shape) < 2:
        call.expected(parameter, "a block of two or more dimensions")
    if value.dtype not in _OPERANDS:
        call.fail(parameter, f"'{parameter}' must have elements of {_listed(_OPERANDS)}, found {value.describe()}")
    return value


def _listed(types: tuple[dtype, ...]) -> str:
    return f"{', '.join(map(str, types[:-1]))} or {types[-1]}"


def _check_operands(call: Call, lhs: Tensor, rhs: Tensor) -> None:
    both = f"found {lhs.describe()} and {rhs.describe()}"
    if lhs.dtype != rhs.dtype and not (lhs.dtype in _FLOAT8 and rhs.dtype in _FLOAT8):
        call.fail(None, f"'input' and 'other' must have one element type, {both}")
    if len(lhs.shape) != len(rhs.shape) or lhs.shape[:-2] != rhs.shape[:-2]:
        call.fail(None, f"'input' and 'other' must have the same dimensions before the last two, {both}")
    if lhs.shape[-1] != rhs.shape[-2]:
        call.fail(None, f"the columns of 'input' must be as many as the rows of 'other', {both}")
    assert isinstance(lhs.dtype, dtype)
    min_k = MIN_K_BITS // lhs.dtype.primitive_bitwidth
    if lhs.shape[-1] < min_k:
        call.fail(None, f"K, the columns of 'input', must be at least {min_k} for {lhs.dtype}, found {lhs.shape[-1]}")


def _result_type(call: Call, lhs: Tensor) -> dtype:
    """The type of the product: as `out_dtype` says, or the accumulator, where the operands leave a choice."""
    acc, parameter = call.args["acc"], "out_dtype"
    wanted: dtype | pointer_type | None = call.dtype("out_dtype") if call.given("out_dtype") else None
    if wanted is None and isinstance(acc, Tensor):
        wanted, parameter = acc.dtype, "acc"
    if lhs.dtype == int8:
        return int32
    if wanted == bfloat16:
        call.fail(parameter, "the product can't have type bf16: use float32, and convert it with .to(tl.bfloat16)")
    if lhs.dtype == float64:
        return float64
    if lhs.dtype in (float32, bfloat16) or wanted is None:
        return float32
    if wanted not in (float16, float32):
        call.fail(parameter, f"the product of {lhs.dtype} has type fp32 or fp16, found {wanted}")
    return float16 if wanted == float16 else float32


def _accumulator(call: Call, shape: tuple[int, ...], element: dtype) -> Tensor:
    """The argument `acc`, or zeros of type `element`."""
    if not call.given("acc"):
        return semantic.full(call.builder, shape, Constexpr(0 if element.is_int() else 0.0), element)
    what = f"a block of shape {list(shape)}"
    acc = call.block("acc", what)
    if acc.shape != shape or isinstance(acc.dtype, pointer_type):
        call.expected("acc", what)
    if call.given("out_dtype") and call.dtype("out_dtype") != acc.dtype:
        call.fail("acc", f"'acc' must have the type {call.dtype('out_dtype')} of 'out_dtype', found {acc.describe()}")
    if acc.dtype != element:
        call.fail("acc", f"'acc' must have the type of the product, {element}, found {acc.describe()}")
    return acc


def _precision(call: Call) -> tt.InputPrecision:
    if not call.given("input_precision"):
        allowed = not call.given("allow_tf32") or _allows_tf32(call)
        return tt.InputPrecision.TF32 if allowed else tt.InputPrecision.IEEE
    if call.given("allow_tf32"):
        call.fail("allow_tf32", "'allow_tf32' is the older form of 'input_precision': give one of them")
    word = call.text("input_precision")
    if word.lower() not in _PRECISIONS:
        expected = ", ".join(f"'{known}'" for known in _PRECISIONS)
        call.fail("input_precision", f"'input_precision' must be one of {expected}, found '{word}'")
    return _PRECISIONS[word.lower()]


def _allows_tf32(call: Call) -> bool:
    """The flag, which may be a constant that an assignment has made a runtime value."""
    value = call.args["allow_tf32"]
    if isinstance(value, Tensor) and isinstance(value.ssa.owner, ConstantOp):
        constant = value.ssa.owner.value
        if isinstance(constant, IntegerAttr):
            return bool(constant.value.data)
    return call.flag("allow_tf32")


def _imprecise_k(call: Call, lhs: Tensor, rhs: Tensor) -> int:
    """Number of elements of K that may be summed up in the tensor cores' own precision; 0 says nothing."""
    is_fp8 = lhs.dtype in _FLOAT8 and rhs.dtype in _FLOAT8
    if not call.given("max_num_imprecise_acc"):
        return HOPPER_IMPRECISE_K if is_fp8 and call.visitor.capability == 90 else 0
    limit = call.integer("max_num_imprecise_acc", minimum=0)
    if is_fp8 and limit > lhs.shape[-1]:
        call.fail("max_num_imprecise_acc", f"'max_num_imprecise_acc' must be at most K, {lhs.shape[-1]}, found {limit}")
    return limit


def _one_batch(call: Call, value: Tensor) -> Tensor:
    if len(value.shape) <= 3:
        return value
    return reshape(call.builder, value, (prod(value.shape[:-2]), *value.shape[-2:]))


# --- gather and histogram -------------------------------------------------------------------------------------------


@lowers("tl.gather")
def _gather(call: Call) -> Value:
    source, index = call.block("src"), call.block("index", "a block of integers")
    if isinstance(index.dtype, pointer_type) or not index.dtype.is_int():
        call.expected("index", "a block of integers")
    rank = len(source.shape)
    if len(index.shape) != rank:
        call.fail("index", f"'index' must have {rank} dimensions, as 'src' has, found {index.describe()}")
    axis = call.integer("axis")
    if not -rank <= axis < rank:
        call.fail("axis", f"'axis' must be one of the {rank} dimensions of 'src', found {axis}")
    axis %= rank
    for dim, (have, want) in enumerate(zip(index.shape, source.shape, strict=True)):
        if dim != axis and have != want:
            call.fail("index", f"dimension {dim} of 'index' must have size {want}, as in 'src', found {have}")
    return call.builder.tensor(tt.GatherOp, source.dtype, index.shape, source, index, axis=axis)


@lowers("tl.histogram")
def _histogram(call: Call) -> Value:
    what = "a 1-D block of 32-bit integers"
    source = call.block("input", what)
    if len(source.shape) != 1 or source.dtype not in (int32, uint32):
        call.expected("input", what)
    bins = call.integer("num_bins", minimum=1)
    if bins & (bins - 1):
        call.fail("num_bins", f"'num_bins' must be a power of two, found {bins}")
    mask = None
    if call.given("mask"):
        mask = semantic.broadcast_to(call.builder, call.condition("mask"), source.shape)
    return call.builder.tensor(tt.HistogramOp, int32, (bins,), source, mask)
