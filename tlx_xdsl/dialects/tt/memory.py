"""Loads and stores through pointers, and pointer arithmetic (TritonOps.td)."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
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
    shape_of_tensor,
    writes,
)
from .attrs import CacheKeywords
from .block_pointer import boundaries_of, is_block_pointer, padding_of
from .elementwise import MapElementwiseOp

FALSE = BoolAttr.from_bool(False)


def _verify_block(op: LoadOp | StoreOp, *, is_masked: bool) -> None:
    """A pointer to a block has dimensions to check instead of a mask."""
    checked, padding = boundaries_of(op), padding_of(op)
    if not is_block_pointer(op.ptr.type):
        if checked is not None or padding is not None:
            raise VerifyException("only a pointer to a block has boundaries (tt.make_tensor_ptr)")
        return
    if is_masked:
        raise VerifyException("a pointer to a block takes no mask and no other value: check its boundaries")
    rank = len(shape_of_tensor(pointee_type(op.ptr.type)))
    if any(not 0 <= dim < rank for dim in checked or ()):
        raise VerifyException(f"the block has the dimensions 0 to {rank - 1}, found {checked}")


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

    `cachePolicy` holds hints for the caches. Through a pointer to a block, what is outside of the tensor along the
    dimensions of `boundaryCheck` is `padding`, and 0 without it.
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

    def verify_(self) -> None:
        """A block has boundaries or a mask."""
        _verify_block(self, is_masked=self.mask is not None or self.other is not None)

    @property
    def masked_result(self) -> MaskedResult:
        """Return what the result is where the mask is false, or outside of the tensor."""
        may_be_hidden = self.mask is not None or boundaries_of(self) is not None
        is_given = self.other is not None or padding_of(self) is not None
        return MaskedResult.ZERO if may_be_hidden and not is_given else MaskedResult.GIVEN

    def effects(self) -> Effects:
        """A volatile load stays where it is."""
        return Effects(reads("ptr"), sync=Sync.ORDERED if is_set(self, "isVolatile") else Sync.NONE)


@irdl_custom_directive
class StoredThrough(CustomDirective):
    """`type($ptr)`; older texts give it, or the type of the value, a second time."""

    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the type, and one more that must fit it."""
        type_ = parser.parse_type()
        if parser.parse_optional_punctuation(",") is not None:
            position = parser.pos
            if (other := parser.parse_type()) not in (fitting := (type_, pointee_type(type_))):
                parser.raise_error(f"expected {fitting[0]} or {fitting[1]}, found {other}", position)
        self.types.set(state, (type_,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the type."""
        self.types.print(printer, state, op)


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
    custom_directives = (CacheKeywords, StoredThrough)
    assembly_format = (
        "$ptr `,` $value (`,` $mask^)? custom<CacheKeywords>() attr-dict `:` custom<StoredThrough>(type($ptr))"
    )

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
        """A function of elements stores nothing; a block has boundaries or a mask."""
        _verify_block(self, is_masked=self.mask is not None)
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
