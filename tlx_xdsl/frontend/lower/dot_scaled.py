"""`tl.dot_scaled`: matrix products of microscaling formats (OCP Microscaling Formats (MX) Specification 1.0)."""

from __future__ import annotations

from dataclasses import dataclass

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt import ScaleDotElemType
from tlx_xdsl.element_types import BY_FORMAT
from tlx_xdsl.language.core import dtype, float8e4nv, float8e5, float32, int8, pointer_type, uint8
from tlx_xdsl.layouts.encodings import Ints

from .. import semantic
from ..calls import Call, lowers
from ..values import Constexpr, Tensor, Value


@dataclass(frozen=True)
class _Format:
    kind: ScaleDotElemType
    element: dtype
    """The type that the operand gets; bytes are taken for it."""
    per_element: int = 1
    """Numbers in one element."""


def _format(kind: ScaleDotElemType) -> _Format:
    name = BY_FORMAT[kind.keyword].name
    return _Format(kind, uint8, 2) if name is None else _Format(kind, dtype(name))


_FORMATS = {
    kind.keyword: _format(kind)
    for kind in (
        ScaleDotElemType.E2M1,
        ScaleDotElemType.E4M3,
        ScaleDotElemType.E5M2,
        ScaleDotElemType.BF16,
        ScaleDotElemType.FP16,
    )
}
GROUPS = (16, 32)
"""Numbers along K that may share a scale."""


@lowers("tl.dot_scaled")
def _dot_scaled(call: Call) -> Value:
    if call.dtype("out_dtype") != float32:
        call.fail("out_dtype", f"the product has type fp32, found {call.dtype('out_dtype')}")
    formats = call.choice("lhs_format", _FORMATS), call.choice("rhs_format", _FORMATS)
    packed = call.flag("lhs_k_pack"), call.flag("rhs_k_pack")
    for side, form, is_packed in zip(("lhs", "rhs"), formats, packed, strict=True):
        if not is_packed and form.per_element == 1:
            name = form.kind.keyword
            call.fail(f"{side}_k_pack", f"only e2m1 can be packed along another dimension than K, found '{name}'")
    lhs, rhs = _operand(call, "lhs", formats[0]), _operand(call, "rhs", formats[1])
    if len(lhs.shape) != len(rhs.shape) or lhs.shape[:-2] != rhs.shape[:-2]:
        call.fail(None, f"'lhs' and 'rhs' must be matrices or equal batches, found {_both(lhs, rhs)}")
    m, k = _numbers(lhs.shape[-2:], formats[0], 1 if packed[0] else 0)
    k_of_rhs, n = _numbers(rhs.shape[-2:], formats[1], 0 if packed[1] else 1)
    if k != k_of_rhs:
        call.fail(None, f"K is {k} in 'lhs' and {k_of_rhs} in 'rhs', found {_both(lhs, rhs)}")
    batch = lhs.shape[:-2]
    scales = _scale(call, "lhs_scale", (*batch, m), k), _scale(call, "rhs_scale", (*batch, n), k)
    factors = [k // scale.shape[-1] for scale in scales if scale is not None]
    if len(set(factors)) > 1:
        call.fail(
            "rhs_scale",
            f"Operands must have the same scale factor; (lhs: {factors[0]} vs rhs: {factors[1]})",
        )
    acc = _accumulator(call, (*batch, m, n))
    return call.builder.tensor(
        tt.DotScaledOp,
        float32,
        acc.shape,
        lhs,
        rhs,
        acc,
        *scales,
        a_elem_type=formats[0].kind,
        b_elem_type=formats[1].kind,
        fastMath=call.flag("fast_math"),
        lhs_k_pack=packed[0],
        rhs_k_pack=packed[1],
    )


def _both(lhs: Tensor, rhs: Tensor) -> str:
    return f"{lhs.describe()} and {rhs.describe()}"


def _operand(call: Call, parameter: str, form: _Format) -> Tensor:
    """An operand in the type of its format; 8-bit floats may come as uint8."""
    what = f"a block of two or three dimensions with elements of {form.element}"
    if form.element in (float8e4nv, float8e5):
        what += " or uint8"
    value = call.block(parameter, what)
    if len(value.shape) not in (2, 3):
        call.expected(parameter, what)
    if value.dtype == form.element:
        return value
    if value.dtype != uint8 or form.element.primitive_bitwidth != 8:
        call.expected(parameter, what)
    return call.builder.tensor(tt.BitcastOp, form.element, value.shape, value)


def _numbers(shape: Ints, form: _Format, packed_dim: int) -> tuple[int, int]:
    """Rows and columns of a matrix in numbers, of which an element along `packed_dim` may hold several."""
    rows, columns = shape
    return (rows * form.per_element, columns) if packed_dim == 0 else (rows, columns * form.per_element)


def _scale(call: Call, parameter: str, leading: Ints, k: int) -> Tensor | None:
    """The scales of an operand: one for each group of numbers along K; None is 1 everywhere."""
    if not call.given(parameter):
        return None
    groups = [k // size for size in GROUPS if k >= size]
    shapes = " or ".join(f"[{', '.join(map(str, (*leading, count)))}]" for count in groups)
    what = f"None or a block of shape {shapes} with elements of uint8 or fp8e4nv"
    scale = call.block(parameter, what)
    if scale.dtype not in (uint8, int8, float8e4nv) or scale.shape[:-1] != leading or scale.shape[-1] not in groups:
        call.expected(parameter, what)
    return scale


def _accumulator(call: Call, shape: Ints) -> Tensor:
    if not call.given("acc"):
        return semantic.full(call.builder, shape, Constexpr(0.0), float32)
    what = f"a block of type fp32[{', '.join(map(str, shape))}]"
    acc = call.block("acc", what)
    if acc.shape != shape or isinstance(acc.dtype, pointer_type) or acc.dtype != float32:
        call.expected("acc", what)
    return acc
