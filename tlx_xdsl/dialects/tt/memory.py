"""Loads and stores through pointers, and pointer arithmetic (TritonOps.td)."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..base import (
    INT_LIKE,
    ORDERED,
    POINTER_LIKE,
    Derived,
    EachElement,
    Effects,
    Elementwise,
    Feature,
    MaskedResult,
    Needs,
    Sync,
    TritonOp,
    enclosing,
    is_set,
    mask_type,
    pointee_type,
    reads,
    same,
    writes,
)
from .attrs import CacheKeywords
from .elementwise import MapElementwiseOp

FALSE = BoolAttr.from_bool(False)


@irdl_op_definition
class AddPtrOp(TritonOp):
    """Move a pointer (or a tensor of pointers) by `offset` elements: `tt.addptr %p, %i : !tt.ptr<f32>, i32`."""

    name = "tt.addptr"

    POINTER: ClassVar = same("POINTER", POINTER_LIKE)

    ptr = operand_def(POINTER)
    offset = operand_def(INT_LIKE)
    result = result_def(POINTER)

    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)"

    def __init__(self, ptr: SSAValue, offset: SSAValue):
        super().__init__(operands=[ptr, offset], result_types=[ptr.type])


@irdl_op_definition
class LoadOp(TritonOp):
    """Load through pointers; where `mask` is false the result is `other`, and 0 without it.

    `cachePolicy` holds hints for the caches.
    Example: `%v = tt.load %ptrs, %mask, %other : tensor<64x!tt.ptr<f32>>`
    """

    name = "tt.load"

    POINTER: ClassVar = same("POINTER", POINTER_LIKE)

    ptr = operand_def(POINTER)
    mask = opt_operand_def(Derived("POINTER", mask_type, "the mask"))
    other = opt_operand_def(Derived("POINTER", pointee_type, "the value for masked elements"))
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")
    is_volatile = prop_def(BoolAttr, prop_name="isVolatile", default_value=FALSE)
    result = result_def(Derived("POINTER", pointee_type, "the loaded value"))

    traits = traits_def(EachElement())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (CacheKeywords,)
    assembly_format = "$ptr (`,` $mask^)? (`,` $other^)? custom<CacheKeywords>() attr-dict `:` type($ptr)"

    def __init__(
        self,
        ptr: SSAValue,
        mask: SSAValue | None = None,
        other: SSAValue | None = None,
        *,
        cache_policy: Attribute | None = None,
        is_volatile: bool = False,
    ):
        super().__init__(
            operands=[ptr, mask, other],
            properties={"cachePolicy": cache_policy, "isVolatile": BoolAttr.from_bool(is_volatile)},
            result_types=[pointee_type(ptr.type)],
        )

    @property
    def masked_result(self) -> MaskedResult:
        """What the result is where the mask is false."""
        return MaskedResult.ZERO if self.mask is not None and self.other is None else MaskedResult.GIVEN

    def effects(self) -> Effects:
        """A volatile load stays where it is."""
        return Effects(reads("ptr"), sync=Sync.ORDERED if is_set(self, "isVolatile") else Sync.NONE)


@irdl_op_definition
class StoreOp(TritonOp):
    """Store through pointers where `mask` is true.

    Example: `tt.store %ptrs, %value, %mask : tensor<64x!tt.ptr<f32>>`
    """

    name = "tt.store"
    EFFECTS: ClassVar = Effects(writes("ptr"))

    POINTER: ClassVar = same("POINTER", POINTER_LIKE)

    ptr = operand_def(POINTER)
    value = operand_def(Derived("POINTER", pointee_type, "the stored value"))
    mask = opt_operand_def(Derived("POINTER", mask_type, "the mask"))
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")
    ignore_cta = opt_prop_def(UnitAttr)

    traits = traits_def(EachElement())
    custom_directives = (CacheKeywords,)
    assembly_format = "$ptr `,` $value (`,` $mask^)? custom<CacheKeywords>() attr-dict `:` type($ptr)"

    def __init__(
        self,
        ptr: SSAValue,
        value: SSAValue,
        mask: SSAValue | None = None,
        *,
        cache_policy: Attribute | None = None,
    ):
        super().__init__(operands=[ptr, value, mask], properties={"cachePolicy": cache_policy})

    def verify_(self) -> None:
        """A function of elements stores nothing."""
        if enclosing(self, MapElementwiseOp) is not None:
            raise VerifyException("a 'tt.map_elementwise' can't store")


@irdl_op_definition
class GridDependencyWaitOp(TritonOp):
    """Wait for the grids that this one depends on, and see their writes (programmatic dependent launch)."""

    name = "tt.grid_dependency_wait"
    NEEDS: ClassVar = Needs("tl.extra.cuda.gdc_wait", Feature.DEPENDENT_LAUNCH)
    EFFECTS: ClassVar = ORDERED

    assembly_format = "attr-dict"


@irdl_op_definition
class GridDependencyLaunchDependentsOp(TritonOp):
    """Let the grids that depend on this one start."""

    name = "tt.grid_dependency_launch_dependents"
    NEEDS: ClassVar = Needs("tl.extra.cuda.gdc_launch_dependents", Feature.DEPENDENT_LAUNCH)
    EFFECTS: ClassVar = ORDERED

    assembly_format = "attr-dict"
