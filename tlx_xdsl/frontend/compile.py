"""A kernel's source and its signature, turned into a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Region

from tlx_xdsl import wings
from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import CompilationError, internal_error

# The handlers of statements, expressions and the language's functions register themselves when they are imported.
from . import expressions as expressions, lower as lower, statements as statements
from .arguments import Arguments, Signature
from .builder import Builder
from .functions import compile_body
from .python.source import KernelSource
from .python.suggestions import did_you_mean
from .values import symmetric_of
from .visitor import Unit, Visitor


def build_module(
    source: KernelSource,
    signature: Mapping[str, Signature],
    constexprs: Mapping[str, Any],
    *,
    num_warps: int = 4,
    num_ctas: int = 1,
    clustered: bool = False,
    capability: int = 90,
    debug: bool = False,
    sums_bfloat16: bool = True,
    symbol: str | None = None,
) -> ModuleOp:
    """The module of one kernel, every operation located in its source.

    `signature` gives the type of each runtime argument in Triton's spelling (of a tuple, a tuple of types),
    `constexprs` the value of each compile-time one; defaults of the kernel's parameters fill gaps. `clustered` says
    that clusters have several CTAs. `capability` is the target's compute capability, such as 90 for sm_90a; with
    `debug`, `tl.device_assert` has an effect. Without `sums_bfloat16`, sums of bf16 are in f32, as before Triton 3.9.
    `symbol` is the name of the kernel in the module, if not that of its
    function.

    Raises CompilationError, located in the kernel, when arguments are missing, surplus or of a wrong type, and for
    every error in the kernel itself; also, as an internal error, for what is our fault.
    """
    wings.import_all("lowerings")
    try:
        unit = Unit(capability, debug, num_warps, num_ctas, clustered or num_ctas > 1, sums_bfloat16)
        return _build(source, signature, constexprs, unit, symbol or source.symbol)
    except CompilationError:
        raise
    except Exception as error:
        internal = internal_error(error)
        raise source.error(source.tree, internal.message, internal.notes) from error


def _build(
    source: KernelSource, signature: Mapping[str, Signature], constexprs: Mapping[str, Any], unit: Unit, symbol: str
) -> ModuleOp:
    _check_names(source, signature, constexprs)
    builder = Builder()
    visitor = Visitor(source, builder, unit)
    visitor.locate(source.tree)
    location = builder.location
    block = Block()
    blocks = [block]
    arguments = Arguments(visitor, block)
    for parameter in source.parameters:
        visitor.names[parameter.name] = arguments.add(parameter, signature, constexprs)
    unit.symmetric = symmetric_of(visitor.names.values())
    with builder.function(blocks):
        compile_body(visitor, "kernel")
    func = tt.FuncOp(
        symbol,
        FunctionType.from_lists([argument.type for argument in block.args], []),
        Region(blocks),
        arg_attrs=ArrayAttr(arguments.attributes),
    )
    func.attributes["noinline"] = IntegerAttr.from_bool(False)
    func.location = location
    attributes: dict[str, Attribute] = {
        "ttg.num-ctas": IntegerAttr(unit.num_ctas, i32),
        "ttg.num-warps": IntegerAttr(unit.num_warps, i32),
        "ttg.target": StringAttr(f"cuda:{unit.capability}"),
        "ttg.threads-per-warp": IntegerAttr(32, i32),
    }
    module = ModuleOp([func, *unit.functions], attributes)
    module.location = location
    return module


def _check_names(source: KernelSource, signature: Mapping[str, Signature], constexprs: Mapping[str, Any]) -> None:
    """Every given name is a parameter, and of the right sort."""
    known = {parameter.name: parameter for parameter in source.parameters}
    for name in (*signature, *constexprs):
        if name not in known:
            expected = ", ".join(known) or "none"
            raise source.error(
                source.tree,
                f"'{source.name}' has no parameter '{name}', its parameters are {expected}" + did_you_mean(name, known),
            )
    for name in signature:
        if known[name].is_constexpr:
            raise source.error(
                known[name].node,
                f"'{name}' is a constexpr: give it a value, not the type '{signature[name]}'",
            )
        if name in constexprs:
            raise source.error(known[name].node, f"'{name}' has both the type '{signature[name]}' and a value")
