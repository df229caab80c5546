"""Copies from shared to tensor memory (TritonNvidiaGPUOps.td; PTX ISA, "tcgen05.cp")."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import TensorMemoryLayout

from ..base import (
    TCGEN05_COPY,
    Effects,
    Feature,
    Group,
    Needs,
    TritonOp,
    outermost,
    reads,
    writes,
)
from ..ttg import MemDescType, memdesc_type, verify_mutable, verify_shared
from .tcgen05 import has_pair_products
from .tmem import tensor_memory_layout


@irdl_op_definition
class TMEMCopyOp(TritonOp):
    """Start to copy from shared memory to tensor memory (tcgen05.cp); a commit signals its end.

    Scales keep the block order of the hardware: the logical shapes of both sides differ. In a module with MMAs of pairs
    of CTAs the even one copies for both, in each what lies at this place in its own memory.
    """

    name = "ttng.tmem_copy"
    NEEDS: ClassVar = Needs("tlx.tmem_copy", Feature.TENSOR_MEMORY)

    src = operand_def(MemDescType)
    dst = operand_def(MemDescType)

    assembly_format = "$src `,` $dst attr-dict `:` type(operands)"

    def effects(self) -> Effects:
        """A read and a write, in a module with MMAs of pairs those of both CTAs."""
        pair = has_pair_products(outermost(self))
        accesses = reads("src", cluster=pair), writes("dst", cluster=pair)
        return Effects(*accesses, by=TCGEN05_COPY, completes_on=Group.TCGEN05)

    def verify_(self) -> None:
        """From shared memory to tensor memory, with the same elements."""
        source, target = memdesc_type(self.src.type), memdesc_type(self.dst.type)
        verify_shared(source)
        layout = tensor_memory_layout(target)
        verify_mutable(target)
        if source.element_type != target.element_type:
            raise VerifyException(f"the element type must stay: from {source} to {target}")
        if isinstance(layout, TensorMemoryLayout) and source.shape != target.shape:
            raise VerifyException(f"the shape must stay: from {source} to {target}")
        if prod(source.shape) != prod(target.shape):
            raise VerifyException(f"the number of elements must stay: from {source} to {target}")
