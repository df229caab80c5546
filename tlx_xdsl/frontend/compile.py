"""A kernel's source and its signature, turned into a module."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Region

# The handlers register themselves when they are imported.
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.frontend import lower as lower
from tlx_xdsl.frontend.builder import Builder
from tlx_xdsl.frontend.functions import Unit
from tlx_xdsl.frontend.source import KernelSource, Parameter
from tlx_xdsl.frontend.types import ArgumentType, ir_type, parse_argument_type
from tlx_xdsl.frontend.values import Constexpr, Tensor, TensorDescriptor, Value
from tlx_xdsl.frontend.visitor import Visitor
from tlx_xdsl.language.core import constexpr, dtype, int32, int64


def build_module(
    source: KernelSource,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
    *,
    num_warps: int = 4,
    num_ctas: int = 1,
    capability: int = 90,
    debug: bool = False,
) -> ModuleOp:
    """The module of one kernel, every operation located in its source.

    `signature` gives the type of each runtime argument in Triton's spelling, `constexprs` the value of each
    compile-time one; defaults of the kernel's parameters fill gaps. `capability` is the target's compute
    capability, such as 90 for sm_90a; with `debug`, `tl.device_assert` has an effect.

    Raises CompilationError, located in the kernel, when arguments are missing, surplus or of a wrong type, and for
    every error in the kernel itself.
    """
    _check_names(source, signature, constexprs)
    builder = Builder()
    unit = Unit(capability, debug, num_warps, num_ctas)
    visitor = Visitor(source, builder, unit)
    visitor.locate(source.tree)
    location = builder.location
    block = Block()
    blocks = [block]
    arg_attrs: list[DictionaryAttr] = []
    for parameter in source.parameters:
        visitor.names[parameter.name] = _argument(visitor, block, arg_attrs, parameter, signature, constexprs)
    with builder.function(blocks), visitor.body("kernel"):
        visitor.visit_body(source.tree.body)
        visitor.finish()
    func = tt.FuncOp(
        source.name,
        FunctionType.from_lists([argument.type for argument in block.args], []),
        Region(blocks),
        arg_attrs=ArrayAttr(arg_attrs),
    )
    func.attributes["noinline"] = IntegerAttr.from_bool(False)
    func.location = location
    attributes: dict[str, Attribute] = {
        "ttg.num-ctas": IntegerAttr(num_ctas, i32),
        "ttg.num-warps": IntegerAttr(num_warps, i32),
        "ttg.target": StringAttr(f"cuda:{capability}"),
        "ttg.threads-per-warp": IntegerAttr(32, i32),
    }
    module = ModuleOp([func, *unit.functions], attributes)
    module.location = location
    return module


def _check_names(source: KernelSource, signature: Mapping[str, str], constexprs: Mapping[str, Any]) -> None:
    """Every given name is a parameter, and of the right sort."""
    known = {parameter.name: parameter for parameter in source.parameters}
    for name in (*signature, *constexprs):
        if name not in known:
            expected = ", ".join(known) or "none"
            raise source.error(source.tree, f"'{source.name}' has no parameter '{name}', its parameters are {expected}")
    for name in signature:
        if known[name].is_constexpr:
            raise source.error(
                known[name].node,
                f"'{name}' is a constexpr: give it a value, not the type '{signature[name]}'",
            )
        if name in constexprs:
            raise source.error(known[name].node, f"'{name}' has both the type '{signature[name]}' and a value")


def _argument(
    visitor: Visitor,
    block: Block,
    arg_attrs: list[DictionaryAttr],
    parameter: Parameter,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
) -> Value:
    name = parameter.name
    if name in constexprs:
        value = constexprs[name]
        return Constexpr(value.value if isinstance(value, constexpr) else value)
    if name not in signature:
        if parameter.default is not inspect.Parameter.empty:
            default = parameter.default
            return Constexpr(default.value if isinstance(default, constexpr) else default)
        what = "a value (--constexpr)" if parameter.is_constexpr else "a type (--signature)"
        raise visitor.error(parameter.node, f"the parameter '{name}' needs {what}")
    try:
        type_ = parse_argument_type(signature[name])
    except ValueError as error:
        raise visitor.error(parameter.node, f"the parameter '{name}': {error}") from error
    visitor.locate(parameter.node)
    return _runtime_argument(visitor, block, arg_attrs, name, type_)


def _runtime_argument(
    visitor: Visitor, block: Block, arg_attrs: list[DictionaryAttr], name: str, type_: ArgumentType
) -> Value:
    def add(ir: Attribute, hint: str, divisibility: int = 1) -> Any:
        argument = block.insert_arg(ir, len(block.args), visitor.builder.location)
        argument.name_hint = hint
        attributes = {"tt.divisibility": IntegerAttr(divisibility, i32)} if divisibility > 1 else {}
        arg_attrs.append(DictionaryAttr(attributes))
        return argument

    if not type_.is_descriptor:
        return Tensor(add(ir_type(type_.element), name, type_.divisibility), type_.element)
    element = type_.element
    assert isinstance(element, dtype)
    handle = add(TensorDescType.get(type_.block_shape, ir_type(element)), name)
    rank = range(len(type_.block_shape))
    # Triton's launchers pass shape and strides behind every descriptor.
    shape = tuple(Tensor(add(ir_type(int32), f"{name}.shape.{dim}"), int32) for dim in rank)
    strides = tuple(Tensor(add(ir_type(int64), f"{name}.stride.{dim}"), int64) for dim in rank)
    return TensorDescriptor(handle, element, type_.block_shape, shape, strides)
