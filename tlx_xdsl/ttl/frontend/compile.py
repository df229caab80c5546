"""A kernel and the tensors that it is called with, turned into a module."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region

from tlx_xdsl.errors import CompilationError, internal_error
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.text.verify import verify_module

from ..cpp.printer import SIGNPOSTS
from ..dialects import ttl
from ..dialects.ttcore import ARCHITECTURES, Architecture, GridAttr
from ..language.kernel import LAST_GRID, Kernel
from ..language.tensors import TensorSpec

# The handlers of statements, expressions and the language's functions register themselves when they are imported.
from . import (
    blocks as blocks,
    copies as copies,
    expressions as expressions,
    grid as grid,
    pipes as pipes,
    statements as statements,
    tiles as tiles,
)
from .builder import Builder
from .options import check_options, grid_of
from .values import Static, Tensor, tensor_type
from .visitor import Function, ThreadState, Unit, Visitor, assigned_names


def compile_kernel(
    kernel: Kernel,
    specs: Sequence[TensorSpec | int | float | bool],
    chip: Architecture = ARCHITECTURES["wormhole"],
) -> ModuleOp:
    """The module of a kernel with a `ttl.kernel`, every operation located in its source.

    `specs` has for each parameter the tensor that it stands for, or the number, which then is known at compile time.
    `chip` is the device.

    Raises CompilationError, located in the kernel, when arguments are missing or surplus and for every error in the
    kernel itself; also, as an internal error, for what is our fault.
    """
    source = KernelSource(kernel.fn)
    try:
        module = _build(kernel, source, specs, chip)
        verify_module(module)
        return module
    except CompilationError:
        raise
    except Exception as error:
        internal = internal_error(error)
        raise source.error(source.tree, internal.message, internal.notes) from error


def _build(
    kernel: Kernel, source: KernelSource, specs: Sequence[TensorSpec | int | float | bool], chip: Architecture
) -> ModuleOp:
    check_options(kernel, source)
    cores = grid_of(kernel, source, chip)
    LAST_GRID[:] = [cores]
    block = Block()
    builder = Builder(block)
    visitor = Visitor(source, Unit(builder, cores))
    visitor.locate(source.tree)
    location = builder.location
    _add_arguments(visitor, block, specs)
    visitor.local, visitor.entry = assigned_names(source.tree.body), block
    visitor.body(source.tree.body)
    if not visitor.unit.threads:
        raise visitor.error(
            source.tree,
            f"the kernel '{kernel.name}' has no thread: define functions with @ttl.compute() or @ttl.datamovement()",
        )
    # What the threads need of the kernel's own body, such as accessors, stands before them.
    threads = [_thread(visitor, kind, function) for kind, function in visitor.unit.threads]
    block.add_ops(threads)
    builder.location = location
    builder.insert(ttl.KernelReturnOp())
    types = [argument.type for argument in block.args]
    op = ttl.KernelOp(source.symbol, types, Region(block), _attributes(kernel, visitor, cores, chip))
    op.location = location
    module = ModuleOp([op])
    module.location = location
    if visitor.unit.signposts:
        parts = [
            ArrayAttr([StringAttr(name), StringAttr(file), IntegerAttr(first, i64), IntegerAttr(last, i64)])
            for name, file, first, last in visitor.unit.signposts
        ]
        module.attributes[SIGNPOSTS] = ArrayAttr(parts)
    return module


def _attributes(kernel: Kernel, visitor: Visitor, cores: tuple[int, int], chip: Architecture) -> dict[str, Attribute]:
    source = visitor.source
    chosen = {
        "fp32_dest_acc_en": kernel.fp32_dest_acc_en or visitor.unit.has_wide_registers,
        "dst_full_sync_en": kernel.dst_full_sync_en,
    }
    flags = {name: UnitAttr() for name, is_set in chosen.items() if is_set}
    return {
        "grid": GridAttr.get(*cores),
        **({} if chip.name == "wormhole" else {"arch": StringAttr(chip.name)}),
        **flags,
        "python_source_file": StringAttr(source.filename),
        "python_source_line": IntegerAttr(source.tree.lineno, i64),
    }


def _add_arguments(visitor: Visitor, block: Block, specs: Sequence[TensorSpec | int | float | bool]) -> None:
    parameters = visitor.source.parameters
    variadic = next((each for each in parameters if each.is_variadic), None)
    if variadic is not None:
        raise visitor.error(variadic.node, f"a kernel can't take '*{variadic.name}': give each tensor a name")
    required = [each for each in parameters if each.default is inspect.Parameter.empty]
    if not len(required) <= len(specs) <= len(parameters):
        names = ", ".join(each.name for each in parameters) or "none"
        raise visitor.error(
            visitor.source.tree,
            f"'{visitor.source.name}' has the parameters {names}, found {len(specs)} argument{'s' * (len(specs) != 1)}",
        )
    for parameter, spec in zip(parameters, specs, strict=False):
        visitor.locate(parameter.node)
        if not isinstance(spec, TensorSpec):
            visitor.names[parameter.name] = Static(spec)
            continue
        value = block.insert_arg(tensor_type(spec), len(block.args))
        value.name_hint, value.location = parameter.name, visitor.builder.location
        visitor.names[parameter.name] = Tensor(parameter.name, spec, value)
    for parameter in parameters[len(specs) :]:
        visitor.names[parameter.name] = visitor.wrap(parameter.default)


def _thread(visitor: Visitor, kind: str, function: Function) -> Operation:
    """The operation of a thread, with its body."""
    node = function.node
    assert isinstance(node, ast.FunctionDef)
    inner = Visitor(visitor.source, visitor.unit, visitor)
    inner.thread, inner.local = ThreadState(kind), assigned_names(node.body)
    body = inner.entry = Block()
    visitor.locate(node)
    location = visitor.builder.location
    with visitor.builder.into(body):
        inner.body(node.body)
        inner.builder.location = location
        inner.builder.insert(ttl.ThreadReturnOp())
    thread = (ttl.ComputeThreadOp if kind == "compute" else ttl.DatamovementThreadOp)(Region(body), node.name)
    thread.location = location
    return thread
