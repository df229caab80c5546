"""Functions of bitcode libraries, CUDA's libdevice above all."""

from __future__ import annotations

from typing import Any, cast

from tlx_xdsl.dialects import tt
from tlx_xdsl.frontend import semantic
from tlx_xdsl.frontend.calls import Call, Handler, lowers
from tlx_xdsl.frontend.conversions import not_zero
from tlx_xdsl.frontend.values import Tensor, Value
from tlx_xdsl.language.core import dtype
from tlx_xdsl.language.extra.libdevice_table import FUNCTIONS, Function


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
    table = call.python("arg_type_symbol_dict", "a dictionary from argument types to (symbol, type of the result)")
    if not isinstance(table, dict):
        call.expected("arg_type_symbol_dict", "a dictionary from argument types to (symbol, type of the result)")
    overloads = cast(dict[Any, tuple[str, dtype]], table)
    items = call.items("args", "a tuple of arguments")
    arguments = list(semantic.broadcast(call.builder, *(semantic.to_tensor(call.builder, item) for item in items)))
    found = tuple(argument.dtype for argument in arguments)
    if found not in overloads:
        expected = " or ".join(f"({', '.join(map(str, types))})" for types in overloads)
        call.fail("args", f"expected arguments of types {expected}, found ({', '.join(map(str, found))})")
    symbol, result = overloads[found]
    library = (call.text("lib_name"), call.text("lib_path"))
    return _emit(call, arguments, symbol, result, library=library, pure=call.flag("is_pure"))
