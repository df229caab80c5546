"""Types of the IR for element types, tensors and blocks of the language."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from tlx_xdsl.dialects.base.tensors import attribute_of
from tlx_xdsl.element_types import BY_MLIR

from ..dialects.ttcore import MemorySpace, MemorySpaceAttr, TileType
from ..dialects.ttl.types import LayoutAttr, LayoutKind, TensorEncodingAttr
from ..language.tensors import TensorSpec, dtype


def element_type(element: dtype) -> Attribute:
    """The type of an element."""
    return attribute_of(BY_MLIR[element.name])


def unit_of(spec: TensorSpec) -> Attribute:
    """The type of what a block of the tensor consists of: tiles, or elements where it has none."""
    element = element_type(spec.dtype)
    return element if spec.layout.kind == "interleaved" else TileType.get(element)


def tensor_type(spec: TensorSpec) -> Attribute:
    """The type of a kernel's argument."""
    layout = LayoutAttr.get(LayoutKind(spec.layout.kind), spec.layout.grid or (), spec.layout.tiles_per_shard or ())
    space = MemorySpaceAttr(MemorySpace(spec.memory_space.lower()))
    return TensorType(element_type(spec.dtype), list(spec.shape), TensorEncodingAttr(space, layout))
