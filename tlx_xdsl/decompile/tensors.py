"""Operations on whole blocks, and what a program knows of itself."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from tlx_xdsl.decompile.elementwise import broadcast
from tlx_xdsl.decompile.function import Function, handles, prop
from tlx_xdsl.decompile.text import Text, call, listed, method, tupled
from tlx_xdsl.decompile.types import bits_of_integer, dtype, element_of, shape_of
from tlx_xdsl.dialects.tt.enums import InputPrecision, ScaleDotElemType


def _optional(fn: Function, value: SSAValue | None) -> Text | None:
    return None if value is None else fn.typed(value)


@handles("tt.get_program_id")
def _program_id(fn: Function, op: Any) -> Text:
    return call("tl.program_id", str(prop(op, "axis").value.data))


@handles("tt.get_num_programs")
def _num_programs(fn: Function, op: Any) -> Text:
    return call("tl.num_programs", str(prop(op, "axis").value.data))


@handles("tt.make_range")
def _range(fn: Function, op: Any) -> Text:
    return call("tl.arange", str(prop(op, "start").value.data), str(prop(op, "end").value.data))


@handles("tt.reshape")
def _reshape(fn: Function, op: Any) -> Text:
    reorder = "True" if prop(op, "allow_reorder") is not None else None
    return call("tl.reshape", fn.typed(op.src), str(list(shape_of(op.result))), can_reorder=reorder)


@handles("tt.trans")
def _trans(fn: Function, op: Any) -> Text:
    order = [str(dim) for dim in prop(op, "order").get_values()]
    return call("tl.trans", fn.typed(op.src), *([] if order == ["1", "0"] else order))


@handles("tt.join")
def _join(fn: Function, op: Any) -> Text:
    return call("tl.join", fn.typed(op.lhs), fn.typed(op.rhs))


@handles("tt.split")
def _split(fn: Function, op: Any) -> Text:
    return call("tl.split", fn.typed(op.src))


@handles("tt.cat")
def _cat(fn: Function, op: Any) -> Text:
    return call("tl.cat", fn.typed(op.lhs), fn.typed(op.rhs), can_reorder="True")


@handles("tt.unsplat")
def _unsplat(fn: Function, op: Any) -> Text:
    return method(fn.typed(op.src), "item")


@handles("tt.gather")
def _gather(fn: Function, op: Any) -> Text:
    return call("tl.gather", fn.typed(op.src), fn.typed(op.indices), str(prop(op, "axis").value.data))


@handles("tt.histogram")
def _histogram(fn: Function, op: Any) -> Text:
    return call("tl.histogram", fn.typed(op.src), str(shape_of(op.result)[0]), mask=_optional(fn, op.mask))


@handles("tt.dot")
def _dot(fn: Function, op: Any) -> Text:
    precision = InputPrecision(prop(op, "inputPrecision").value.data).keyword
    limit = str(prop(op, "maxNumImpreciseAcc").value.data)
    # A number above K is what the product has without one.
    limited = str(element_of(op.a.type)).startswith("f8") and int(limit) <= shape_of(op.a)[-1]
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
    kinds = [ScaleDotElemType(kind.value.data).keyword for kind in (prop(op, "a_elem_type"), prop(op, "b_elem_type"))]
    scales = [None if scale is None else _scale(fn, scale) for scale in (op.a_scale, op.b_scale)]
    return call(
        "tl.dot_scaled",
        _packed(fn, op.a, kinds[0]),
        str(scales[0]),
        f'"{kinds[0]}"',
        _packed(fn, op.b, kinds[1]),
        str(scales[1]),
        f'"{kinds[1]}"',
        acc=fn.typed(op.c),
        fast_math="True" if prop(op, "fastMath").value.data else None,
        lhs_k_pack=None if prop(op, "lhs_k_pack").value.data else "False",
        rhs_k_pack=None if prop(op, "rhs_k_pack").value.data else "False",
    )


def _packed(fn: Function, value: SSAValue, kind: str) -> Text:
    """An operand; of fp4 there are two in a byte, which has no sign."""
    return _scale(fn, value) if kind == "e2m1" else fn.typed(value)


def _scale(fn: Function, value: SSAValue) -> Text:
    return method(fn.typed(value), "to", dtype(value.type, unsigned=True))


@handles("tt.elementwise_inline_asm")
def _inline_asm(fn: Function, op: Any) -> Text:
    types = [dtype(result.type) for result in op.results]
    shape = shape_of(op.results[0])
    args = broadcast(op.operands, shape) if shape else list(op.operands)
    pure, pack = bool(prop(op, "pure").value.data), prop(op, "packed_element").value.data
    return call(
        "tl.inline_asm_elementwise",
        repr(prop(op, "asm_string").data),
        repr(prop(op, "constraints").data),
        f"[{', '.join(str(fn.typed(value)) for value in args)}]",
        types[0] if len(types) == 1 else tupled(types),
        str(pure),
        str(pack),
    )


@handles("tt.extern_elementwise")
def _extern(fn: Function, op: Any) -> Text:
    types = tupled(dtype(value.type) for value in op.operands)
    symbol = f"({prop(op, 'symbol').data!r}, {dtype(op.result.type)})"
    table = fn.module.constant("SYMBOLS", f"{{{types}: {symbol}}}")
    return call(
        "tl.core.extern_elementwise",
        repr(prop(op, "libname").data),
        repr(prop(op, "libpath").data),
        listed(fn.typed(value) for value in op.operands),
        table,
        str(bool(prop(op, "pure").value.data)),
    )


@handles("tt.print")
def _print(fn: Function, op: Any) -> Text:
    signed = prop(op, "isSigned").get_values()
    values = [
        fn.unsigned(value) if not sign and _has_sign(value) else fn.typed(value)
        for value, sign in zip(op.operands, signed, strict=True)
    ]
    in_hex = "True" if prop(op, "hex").value.data else None
    return call("tl.device_print", repr(prop(op, "prefix").data), *values, hex=in_hex)


@handles("tt.assert")
def _assert(fn: Function, op: Any) -> Text:
    return call("tl.device_assert", fn.typed(op.condition), repr(prop(op, "message").data))


@handles("llvm.intr.assume")
def _assume(fn: Function, op: Any) -> Text:
    return call("tl.assume", fn.typed(op.operands[0]))


@handles("ttg.barrier")
def _barrier(fn: Function, op: Any) -> Text:
    return call("tl.debug_barrier")


@handles("tt.grid_dependency_wait")
def _dependency_wait(fn: Function, op: Any) -> Text:
    return call("tl.extra.cuda.gdc_wait")


@handles("tt.grid_dependency_launch_dependents")
def _dependents(fn: Function, op: Any) -> Text:
    return call("tl.extra.cuda.gdc_launch_dependents")


def _has_sign(value: SSAValue) -> bool:
    return (bits_of_integer(element_of(value.type)) or 0) > 1
