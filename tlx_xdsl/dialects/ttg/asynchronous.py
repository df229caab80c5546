"""Asynchronous copies to shared memory by the threads themselves (TritonGPUOps.td; PTX ISA, "cp.async")."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from ..base import (
    ORDERED,
    POINTER_TENSOR,
    Derived,
    Effects,
    Feature,
    Group,
    Needs,
    Sync,
    TritonOp,
    mask_type,
    pointee_type,
    reads,
    same,
    stripped_directive,
    writes,
)
from ..tt import CacheKeywords
from .local import verify_mutable, verify_same_elements, verify_shared
from .types import AsyncTokenType, MemDescType, memdesc_type

FALSE = BoolAttr.from_bool(False)


@irdl_op_definition
class AsyncCopyGlobalToLocalOp(TritonOp):
    """Start to copy what a tensor of pointers points at to a buffer; where `mask` is false, `other` is written.

    `contiguity` is the number of elements that one instruction may copy. The data is there after a commit and a wait.
    Example: `%t = ttg.async_copy_global_to_local %p, %buf mask %m : tensor<64x!tt.ptr<f32>> -> <64xf32, #s, #smem>`
    """

    name = "ttg.async_copy_global_to_local"
    NEEDS: ClassVar = Needs("tlx.async_load", Feature.CP_ASYNC)
    EFFECTS: ClassVar = Effects(reads("src"), writes("result"), completes_on=Group.CP_ASYNC)

    POINTERS: ClassVar = same("POINTERS", POINTER_TENSOR)

    src = operand_def(POINTERS)
    result = operand_def(MemDescType)
    mask = opt_operand_def(Derived("POINTERS", mask_type, "the mask"))
    other = opt_operand_def(Derived("POINTERS", pointee_type, "the value for masked elements"))
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")
    is_volatile = prop_def(BoolAttr, prop_name="isVolatile", default_value=FALSE)
    contiguity = prop_def(IntegerAttr.constr(i32), default_value=IntegerAttr(1, i32))
    token = result_def(AsyncTokenType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (CacheKeywords, stripped_directive("Buffer", MemDescType))
    assembly_format = (
        "$src `,` $result (`mask` $mask^)? (`other` $other^)? custom<CacheKeywords>() attr-dict "
        "`:` type($src) `->` custom<Buffer>(type($result))"
    )

    def verify_(self) -> None:
        """The buffer is mutable and takes just the elements."""
        buffer = memdesc_type(self.result.type)
        verify_shared(buffer)
        verify_mutable(buffer)
        verify_same_elements(buffer, pointee_type(self.src.type))


@irdl_op_definition
class AsyncCommitGroupOp(TritonOp):
    """Close the group of the copies started so far: `%g = ttg.async_commit_group tokens %t`."""

    name = "ttg.async_commit_group"
    NEEDS: ClassVar = Needs("tlx.async_load_commit_group", Feature.CP_ASYNC)
    EFFECTS: ClassVar = ORDERED

    input_tokens = var_operand_def(AsyncTokenType)
    async_token = result_def(AsyncTokenType)

    assembly_format = "(`tokens` $input_tokens^)? attr-dict"


@irdl_op_definition
class AsyncWaitOp(TritonOp):
    """Wait until at most `num` groups are in flight; no barrier: other threads may still wait.

    Example: `%w = ttg.async_wait %g {num = 2 : i32}`
    """

    name = "ttg.async_wait"
    NEEDS: ClassVar = Needs("tlx.async_load_wait_group", Feature.CP_ASYNC)
    EFFECTS: ClassVar = Effects(sync=Sync.ORDERED, ends=Group.CP_ASYNC)

    async_token = var_operand_def(AsyncTokenType)
    num = prop_def(IntegerAttr.constr(i32))
    ret_token = result_def(AsyncTokenType)

    assembly_format = "($async_token^)? attr-dict"

    def verify_(self) -> None:
        """The count is not negative."""
        if self.num.value.data < 0:
            raise VerifyException(f"the number of groups in flight can't be negative: {self.num.value.data}")
