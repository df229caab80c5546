"""Code for each element: inline PTX, jitted functions of scalars, and functions of bitcode libraries."""

from __future__ import annotations

from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Block, Region

from tlx_xdsl.dialects import tt
from tlx_xdsl.language.core import dtype
from tlx_xdsl.language.extra.libdevice_table import FUNCTIONS, Function

from .. import semantic
from ..calls import Call, Handler, lowers
from ..conversions import not_zero
from ..functions import call_jitted
from ..python.foreign import source_of
from ..types import ir_type
from ..values import Constexpr, Tensor, TupleValue, Value
from ..visitor import CallSite


def _broadcast(call: Call, parameter: str) -> tuple[list[Tensor], tuple[int, ...]]:
    """The values of the argument `parameter` in their common shape."""
    what = "numbers and blocks"
    values: list[Tensor] = []
    for value in call.items(parameter, f"a tuple of {what}"):
        try:
            values.append(semantic.to_tensor(call.builder, value))
        except semantic.SemanticError:
            call.fail(parameter, f"'{parameter}' must hold {what}, found {value.describe()}")
    try:
        shape = semantic.common_shape(*(value.shape for value in values)) if values else ()
    except semantic.SemanticError as error:
        call.fail(parameter, str(error))
    return [semantic.broadcast_to(call.builder, value, shape) for value in values], shape


def _pack(call: Call, shape: tuple[int, ...]) -> int:
    """The argument `pack`, the elements that are handled at once."""
    pack = call.integer("pack", minimum=1)
    if shape and prod(shape) % pack:
        call.fail("pack", f"'pack' must divide the {prod(shape)} elements, found {pack}")
    return pack


@lowers("tl.inline_asm_elementwise")
def _inline_asm_elementwise(call: Call) -> Value:
    asm, constraints, is_pure = call.text("asm"), call.text("constraints"), call.flag("is_pure")
    values, shape = _broadcast(call, "args")
    types, is_tuple = _result_types(call)
    op = call.builder.emit(
        tt.ElementwiseInlineAsmOp,
        values,
        results=[[ir_type(element, shape) for element in types]],
        asm_string=asm,
        constraints=constraints,
        pure=is_pure,
        packed_element=_pack(call, shape),
    )
    results = tuple(Tensor(ssa, element, shape) for ssa, element in zip(op.results, types, strict=True))
    return TupleValue(results) if is_tuple else results[0]


def _result_types(call: Call) -> tuple[list[dtype], bool]:
    """The element types of the results, and whether they come as a tuple."""
    what = "an element type, or a tuple of at least one of them"
    given: Any = call.python("dtype", what)
    types: list[Any] = list(given) if isinstance(given, tuple | list) else [given]  # pyright: ignore
    if not types or not all(isinstance(element, dtype) for element in types):
        call.expected("dtype", what)
    return types, isinstance(given, tuple | list)


@lowers("tl.map_elementwise")
def _map_elementwise(call: Call) -> Value:
    values, shape = _broadcast(call, "args")
    if not shape:
        call.fail("args", "at least one of the values must be a block")
    pack = _pack(call, shape)
    source = source_of(call.python("scalar_fn", "a jitted function"))
    if source is None:
        call.expected("scalar_fn", "a jitted function")
    scalars = [Tensor(value.ssa, value.dtype) for value in values for _ in range(pack)]
    blocks = [Block(arg_types=[ir_type(scalar.dtype) for scalar in scalars])]
    for argument in blocks[0].args:
        argument.location = call.builder.location
    arguments = [Tensor(ssa, scalar.dtype) for ssa, scalar in zip(blocks[0].args, scalars, strict=True)]
    with call.builder.function(blocks):
        returned = call_jitted(CallSite(call.visitor, call.node, [(call.node, value) for value in arguments]), source)
        call.visitor.locate(call.node)
        items = call.visitor.items_of(returned)
        results = [_scalar(call, item) for item in ((returned,) if items is None else items)]
        call.builder.emit(tt.MapElementwiseReturnOp, results)
    if len(results) % pack:
        call.fail("scalar_fn", f"the function must return a multiple of 'pack', {pack}, found {len(results)} values")
    groups = [results[start : start + pack] for start in range(0, len(results), pack)]
    for group in groups:
        if len({result.dtype for result in group}) > 1:
            found = ", ".join(str(result.dtype) for result in group)
            call.fail("scalar_fn", f"the {pack} values of a result must have one type, found {found}")
    types = [group[0].dtype for group in groups]
    op = tt.MapElementwiseOp(
        operands=[[value.ssa for value in values]],
        properties={"pack": IntegerAttr(pack, i32)},
        result_types=[[ir_type(element, shape) for element in types]],
        regions=[Region(blocks)],
    )
    call.builder.insert(op)
    mapped = tuple(Tensor(ssa, element, shape) for ssa, element in zip(op.results, types, strict=True))
    return mapped[0] if items is None else TupleValue(mapped)


def _scalar(call: Call, value: Value) -> Tensor:
    if isinstance(value, Constexpr) and not isinstance(value.value, bool | int | float):
        call.fail("scalar_fn", f"the function must return scalars, found {value.describe()}")
    try:
        result = semantic.to_tensor(call.builder, value)
    except semantic.SemanticError:
        call.fail("scalar_fn", f"the function must return scalars, found {value.describe()}")
    if result.shape:
        call.fail("scalar_fn", f"the function must return scalars, found {result.describe()}")
    return result


# --- bitcode libraries ------------------------------------------------------------------------------------------------


def _emit(
    call: Call, arguments: list[Tensor], symbol: str, result: dtype, *, library: tuple[str, str], pure: bool
) -> Tensor:
    """Call `symbol` of the library (name, path) for each element of the arguments, which have one shape."""
    return call.builder.tensor(
        tt.ExternElementwiseOp,
        result,
        arguments[0].shape,
        arguments,
        libname=library[0],
        libpath=library[1],
        symbol=symbol,
        pure=pure,
    )


def _libdevice(function: Function) -> Handler:
    def handle(call: Call) -> Value:
        given = [call.tensor(f"arg{index}") for index in range(function.arity)]
        names = tuple(str(argument.dtype) for argument in given)
        overload = next((overload for overload in function.overloads if overload.arguments == names), None)
        if overload is None:
            expected = " or ".join(f"({', '.join(overload.arguments)})" for overload in function.overloads)
            call.fail(None, f"expected arguments of types {expected}, found ({', '.join(names)})")
        arguments = list(semantic.broadcast(call.builder, *given))
        answer = _emit(call, arguments, overload.symbol, dtype(overload.result), library=("", ""), pure=True)
        return not_zero(call.builder, answer) if function.is_predicate else answer

    return handle


for _function in FUNCTIONS.values():
    lowers(f"tl.extra.libdevice.{_function.name}")(_libdevice(_function))


@lowers("tl.extern_elementwise")
def _extern_elementwise(call: Call) -> Value:
    what = "a dictionary from argument types to (symbol, type of the result)"
    overloads = cast(dict[Any, tuple[str, dtype]], call.known("arg_type_symbol_dict", dict, what))
    items = call.items("args", "a tuple of arguments")
    arguments = list(semantic.broadcast(call.builder, *(semantic.to_tensor(call.builder, item) for item in items)))
    found = tuple(argument.dtype for argument in arguments)
    if found not in overloads:
        expected = " or ".join(f"({', '.join(map(str, types))})" for types in overloads)
        call.fail("args", f"expected arguments of types {expected}, found ({', '.join(map(str, found))})")
    symbol, result = overloads[found]
    library = (call.text("lib_name"), call.text("lib_path"))
    return _emit(call, arguments, symbol, result, library=library, pure=call.flag("is_pure"))
