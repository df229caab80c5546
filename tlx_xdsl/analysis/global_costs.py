"""Costs of the loads and stores of a module in global memory."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import LayoutAttr, as_tensor, element_bits, pointee_type, scalar_type
from tlx_xdsl.layouts.encodings import DistributedLayout
from tlx_xdsl.layouts.global_access import GlobalAccess, global_access

from .axis_info import axis_infos
from .integers.axis_domain import AxisInfo


@dataclass(frozen=True)
class GlobalMemoryAccess:
    """A load or store through a tensor of pointers."""

    op: tt.LoadOp | tt.StoreOp
    cost: GlobalAccess

    def __str__(self) -> str:
        """The access with its cost."""
        return f"{'load' if isinstance(self.op, tt.LoadOp) else 'store'}: {self.cost}"


def global_accesses(module: ModuleOp) -> list[GlobalMemoryAccess]:
    """The loads and stores of the module whose pointers have a layout, in program order.

    Their vectors rest on what is known of the pointers and masks (`axis_info`).
    """
    found: list[GlobalMemoryAccess] = []
    for func in module.walk():
        if not isinstance(func, tt.FuncOp):
            continue
        accesses = [op for op in func.walk() if isinstance(op, tt.LoadOp | tt.StoreOp)]
        infos = axis_infos(func) if accesses else {}
        for op in accesses:
            if (cost := _cost(op, infos)) is not None:
                found.append(GlobalMemoryAccess(op, cost))
    return found


def _cost(op: tt.LoadOp | tt.StoreOp, infos: dict[SSAValue, AxisInfo]) -> GlobalAccess | None:
    pointers = as_tensor(op.ptr.type)
    if pointers is None or not isinstance(pointers.encoding, LayoutAttr):
        return None
    layout = pointers.encoding.data
    if not isinstance(layout, DistributedLayout):
        return None
    known, shape = infos[op.ptr], pointers.get_shape()
    # Of equally contiguous axes the last one is the fastest, as in memory.
    dim = max(range(len(shape)), key=lambda each: (known.contiguity[each], each))
    return global_access(
        layout,
        shape,
        element_bits(scalar_type(pointee_type(pointers))),
        contiguity=known.contiguity[dim],
        alignment=known.divisibility[dim],
        mask_constancy=None if op.mask is None else infos[op.mask].constancy[dim],
        dim=dim,
    )
