"""The shared-memory layout of tensor descriptors: that of the buffers which they are copied to and from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import FunctionType, NoneAttr
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import Kind, Space, accesses_of, layout_attr
from tlx_xdsl.layouts.shared import default_nvmma_layout
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import retype


def assign_descriptor_layouts(func: tt.FuncOp) -> None:
    """Give the descriptors of `func` layouts: the same one under all names that loops, branches and tasks give them.

    Raises CompilationError when two copies through one descriptor use buffers of different layouts.
    """
    classes = ValueClasses.of(func, tt.TensorDescType)
    for value in _values(func):
        type_ = value.type
        if isinstance(type_, tt.TensorDescType) and isinstance(type_.encoding, NoneAttr):
            _assign(classes.members(value), type_)
    entry, outputs = func.body.blocks[0], func.function_type.outputs.data
    func.properties["function_type"] = FunctionType.from_lists([a.type for a in entry.args], outputs)


def _values(func: tt.FuncOp) -> Iterator[SSAValue]:
    """The arguments of `func`, and what its operations define."""
    yield from func.body.blocks[0].args
    for op in func.walk():
        yield from op.results


def _assign(names: Sequence[SSAValue], type_: tt.TensorDescType) -> None:
    encoding = _encoding_of_copies(names)
    if encoding is None:
        encoding = layout_attr(default_nvmma_layout(type_.shape, type_.element_bits))
    for name in names:
        retype(name, tt.TensorDescType(type_.shape_param, type_.element_type, encoding))


def _encoding_of_copies(names: Sequence[SSAValue]) -> Attribute | None:
    found: Attribute | None = None
    for name in names:
        for use in name.uses:
            op = use.operation
            for access in accesses_of(op) or ():
                if access.space is not Space.SHARED or not access.kind & (Kind.READ | Kind.WRITE):
                    continue
                encoding = ttg.memdesc_type(access.value.type).encoding
                if found is not None and found != encoding:
                    raise error_at(op, f"the descriptor is used with buffers of two layouts: {found} and {encoding}")
                found = encoding
    return found
