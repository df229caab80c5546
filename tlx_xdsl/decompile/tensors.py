"""Operations on whole blocks, and what a program knows of itself."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from tlx_xdsl.dialects.tt.enums import InputPrecision, ScaleDotElemType

from .elementwise import as_unsigned, broadcast
from .function import Function, given, handles, prop
from .types import Text, bits_of_integer, call, dtype, element_of, listed, method, shape_of, tupled


@handles("tt.get_program_id", "tt.get_num_programs")
def _program(fn: Function, op: Any) -> Text:
    return call(f"tl.{op.name.removeprefix('tt.get_')}", prop(op, "axis"))


@handles("tt.make_range")
def _range(fn: Function, op: Any) -> Text:
    return call("tl.arange", prop(op, "start"), prop(op, "end"))


@handles("tt.reshape")
def _reshape(fn: Function, op: Any) -> Text:
    reorder = given(op, "allow_reorder")
    return call("tl.reshape", fn.typed(op.src), list(shape_of(op.result)), can_reorder=reorder)


@handles("tt.trans")
def _trans(fn: Function, op: Any) -> Text:
    order = prop(op, "order")
    return call("tl.trans", fn.typed(op.src), *(() if order == (1, 0) else order))


@handles("tt.cat")
def _cat(fn: Function, op: Any) -> Text:
    return call("tl.cat", fn.typed(op.lhs), fn.typed(op.rhs), can_reorder=True)


@handles("tt.unsplat")
def _unsplat(fn: Function, op: Any) -> Text:
    return method(fn.typed(op.src), "item")


@handles("tt.gather")
def _gather(fn: Function, op: Any) -> Text:
    return call("tl.gather", fn.typed(op.src), fn.typed(op.indices), prop(op, "axis"))


@handles("tt.histogram")
def _histogram(fn: Function, op: Any) -> Text:
    return call("tl.histogram", fn.typed(op.src), shape_of(op.result)[0], mask=fn.optional(op.mask))


@handles("tt.dot")
def _dot(fn: Function, op: Any) -> Text:
    precision = InputPrecision(prop(op, "inputPrecision")).keyword
    limit = prop(op, "maxNumImpreciseAcc")
    # A number above K is what the product has without one.
    limited = str(element_of(op.a.type)).startswith("f8") and limit <= shape_of(op.a)[-1]
    return call(
        "tl.dot",
        fn.typed(op.a),
        fn.typed(op.b),
        fn.typed(op.c),
        input_precision=f'"{precision}"',
        max_num_imprecise_acc=limit if limited else None,
        out_dtype=dtype(op.d.type),
    )


@handles("tt.dot_scaled")
def _dot_scaled(fn: Function, op: Any) -> Text:
    kinds = [ScaleDotElemType(prop(op, name)).keyword for name in ("a_elem_type", "b_elem_type")]
    scales = [None if scale is None else as_unsigned(fn, scale) for scale in (op.a_scale, op.b_scale)]
    return call(
        "tl.dot_scaled",
        _packed(fn, op.a, kinds[0]),
        str(scales[0]),
        f'"{kinds[0]}"',
        _packed(fn, op.b, kinds[1]),
        str(scales[1]),
        f'"{kinds[1]}"',
        acc=fn.typed(op.c),
        fast_math=given(op, "fastMath"),
        lhs_k_pack=None if prop(op, "lhs_k_pack") else False,
        rhs_k_pack=None if prop(op, "rhs_k_pack") else False,
    )


def _packed(fn: Function, value: SSAValue, kind: str) -> Text:
    """An operand; of fp4 there are two in a byte, which has no sign."""
    return as_unsigned(fn, value) if kind == "e2m1" else fn.typed(value)


@handles("tt.elementwise_inline_asm")
def _inline_asm(fn: Function, op: Any) -> Text:
    types = [dtype(result.type) for result in op.results]
    shape = shape_of(op.results[0])
    args = broadcast(op.operands, shape) if shape else list(op.operands)
    return call(
        "tl.inline_asm_elementwise",
        repr(prop(op, "asm_string")),
        repr(prop(op, "constraints")),
        listed(fn.typed(value) for value in args),
        types[0] if len(types) == 1 else tupled(types),
        prop(op, "pure"),
        prop(op, "packed_element"),
    )


@handles("tt.extern_elementwise")
def _extern(fn: Function, op: Any) -> Text:
    types = tupled(dtype(value.type) for value in op.operands)
    symbol = f"({prop(op, 'symbol')!r}, {dtype(op.result.type)})"
    table = fn.module.constant("SYMBOLS", f"{{{types}: {symbol}}}")
    return call(
        "tl.core.extern_elementwise",
        repr(prop(op, "libname")),
        repr(prop(op, "libpath")),
        listed(fn.typed(value) for value in op.operands),
        table,
        prop(op, "pure"),
    )


@handles("tt.print")
def _print(fn: Function, op: Any) -> Text:
    signed = prop(op, "isSigned")
    values = [
        fn.unsigned(value) if not sign and _has_sign(value) else fn.typed(value)
        for value, sign in zip(op.operands, signed, strict=True)
    ]
    in_hex = given(op, "hex")
    return call("tl.device_print", repr(prop(op, "prefix")), *values, hex=in_hex)


@handles("tt.assert")
def _assert(fn: Function, op: Any) -> Text:
    return call("tl.device_assert", fn.typed(op.condition), repr(prop(op, "message")))


def _has_sign(value: SSAValue) -> bool:
    return (bits_of_integer(element_of(value.type)) or 0) > 1
