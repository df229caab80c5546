"""TMA operations of `ttng` (TritonNvidiaGPUOps.td; PTX ISA, "cp.async.bulk.tensor")."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i1, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type


def _verify_block(descriptor: Attribute, buffer: Attribute, coordinates: int) -> None:
    buffer = memdesc_type(buffer)
    if not isinstance(descriptor, TensorDescType):
        raise VerifyException(f"expected a tensor descriptor, found {descriptor}")
    if coordinates != len(descriptor.shape):
        raise VerifyException(f"the descriptor has {len(descriptor.shape)} dimensions, found {coordinates} coordinates")
    if (descriptor.shape, descriptor.element_type) != (buffer.shape, buffer.element_type):
        raise VerifyException(f"the block of {descriptor} does not match the buffer {buffer}")


@irdl_op_definition
class AsyncTMACopyGlobalToLocalOp(IRDLOperation):
    """Copy the block at `coord` (in elements) to `result`; its bytes complete on `barrier`.

    Elements outside the tensor arrive as zeros, and count as bytes.
    """

    name = "ttng.async_tma_copy_global_to_local"

    desc = operand_def(TensorDescType)
    coord = var_operand_def(i32)
    barrier = operand_def(MemDescType)
    result = operand_def(MemDescType)
    pred = operand_def(i1)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$desc `[` $coord `]` $result `,` $barrier `,` $pred attr-dict "
        "`:` type($desc) `,` type($barrier) `->` type($result)"
    )

    def verify_(self) -> None:
        """Block, buffer and coordinates agree."""
        _verify_block(self.desc.type, self.result.type, len(self.coord))


@irdl_op_definition
class AsyncTMACopyLocalToGlobalOp(IRDLOperation):
    """Copy the buffer `src` to the block at `coord` (in elements); what lies outside the tensor is not written."""

    name = "ttng.async_tma_copy_local_to_global"

    desc = operand_def(TensorDescType)
    coord = var_operand_def(i32)
    src = operand_def(MemDescType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$desc `[` $coord `]` $src attr-dict `:` type($desc) `,` type($src)"

    def verify_(self) -> None:
        """Block, buffer and coordinates agree."""
        _verify_block(self.desc.type, self.src.type, len(self.coord))


@irdl_op_definition
class AsyncTMAStoreWaitOp(IRDLOperation):
    """Wait until at most `pendings` TMA stores of this thread are in flight."""

    name = "ttng.async_tma_store_wait"

    pendings = prop_def(IntegerAttr.constr(i32))
    read_only = opt_prop_def(UnitAttr)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"
