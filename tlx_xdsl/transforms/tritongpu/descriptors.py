"""The shared-memory layout of tensor descriptors: that of the buffers which they are copied to and from."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType, NoneAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.dialects.ttg.attrs import layout_attr
from tlx_xdsl.dialects.ttg.types import memdesc_type
from tlx_xdsl.layouts.shared import default_shared_layout
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import retype


def assign_descriptor_layouts(func: tt.FuncOp) -> None:
    """Give the descriptors among the arguments of `func` layouts, and their captures in partitions the same.

    Raises CompilationError when two copies through one descriptor use buffers of different layouts.
    """
    entry = func.body.blocks[0]
    for argument in entry.args:
        if isinstance(argument.type, TensorDescType) and isinstance(argument.type.encoding, NoneAttr):
            _assign(argument, argument.type)
    outputs = func.function_type.outputs.data
    func.properties["function_type"] = FunctionType.from_lists([a.type for a in entry.args], outputs)


def _assign(argument: BlockArgument, type_: TensorDescType) -> None:
    values = _with_captures(argument)
    encoding = _encoding_of_copies(values)
    if encoding is None:
        encoding = layout_attr(default_shared_layout(type_.shape, type_.element_bits))
    for value in values:
        retype(value, TensorDescType(type_.shape_param, type_.element_type, encoding))


def _with_captures(value: SSAValue) -> list[SSAValue]:
    """`value` and the arguments of the partitions that capture it, however deep."""
    values = [value]
    for known in values:
        for use in known.uses:
            if isinstance(use.operation, ttg.WarpSpecializePartitionsOp):
                values.extend(region.blocks[0].args[use.index] for region in use.operation.partition_regions)
    return values


def _encoding_of_copies(values: list[SSAValue]) -> Attribute | None:
    found: Attribute | None = None
    for value in values:
        for use in value.uses:
            op = use.operation
            if isinstance(op, ttng.AsyncTMACopyGlobalToLocalOp):
                encoding = memdesc_type(op.result.type).encoding
            elif isinstance(op, ttng.AsyncTMACopyLocalToGlobalOp):
                encoding = memdesc_type(op.src.type).encoding
            else:
                continue
            if found is not None and found != encoding:
                raise error_at(op, f"the descriptor is used with buffers of two layouts: {found} and {encoding}")
            found = encoding
    return found
