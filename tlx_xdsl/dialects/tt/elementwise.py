"""Element-wise operations of `tt`: casts, arithmetic, external functions and inline assembly (TritonOps.td)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, Float8E4M3FNType, IntegerAttr, StringAttr, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import HasParent, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ..base import (
    ANY_LIKE,
    ANY_TENSOR,
    F32_LIKE,
    FLOAT_LIKE,
    I64_LIKE,
    INT_LIKE,
    NO_EFFECTS,
    POINTER_LIKE,
    UNKNOWN,
    Effects,
    Elementwise,
    EnumNumber,
    Feature,
    Features,
    Needs,
    SameShapeAndLayout,
    TritonOp,
    as_tensor,
    effects_of_ptx,
    element_bits,
    is_pointer,
    is_set,
    keyword_directive,
    same,
    scalar_type,
    shape_of_tensor,
)
from .enums import PropagateNan, RoundingMode


@irdl_op_definition
class IntToPtrOp(TritonOp):
    """The pointer with the address `src`: `%p = tt.int_to_ptr %0 : i64 -> !tt.ptr<f32>`."""

    name = "tt.int_to_ptr"

    src = operand_def(I64_LIKE)
    result = result_def(POINTER_LIKE)

    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class PtrToIntOp(TritonOp):
    """The address of a pointer: `%0 = tt.ptr_to_int %p : !tt.ptr<f32> -> i64`."""

    name = "tt.ptr_to_int"

    src = operand_def(POINTER_LIKE)
    result = result_def(I64_LIKE)

    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class BitcastOp(TritonOp):
    """The same bits as another type of that width; pointers cast to pointers only."""

    name = "tt.bitcast"

    src = operand_def(ANY_LIKE)
    result = result_def(ANY_LIKE)

    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """Both sides have one width, and pointers stay pointers."""
        source, result = scalar_type(self.src.type), scalar_type(self.result.type)
        if is_pointer(source) != is_pointer(result):
            raise VerifyException(f"cannot cast {source} to {result}: use tt.ptr_to_int or tt.int_to_ptr")
        if element_bits(source) != element_bits(result):
            raise VerifyException(
                f"cannot cast {element_bits(source)} bits of {source} to {element_bits(result)} bits of {result}"
            )


@irdl_op_definition
class FpToFpOp(TritonOp):
    """Convert floats where `arith` can't: 8-bit floats, and narrowing with an explicit rounding.

    Example: `%1 = tt.fp_to_fp %0, rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>`
    """

    name = "tt.fp_to_fp"
    NEEDS: ClassVar = Needs("tl.cast")

    src = operand_def(FLOAT_LIKE)
    rounding = opt_prop_def(EnumNumber(RoundingMode))
    result = result_def(FLOAT_LIKE)

    traits = traits_def(Elementwise(), Pure())
    custom_directives = (keyword_directive(RoundingMode),)
    assembly_format = (
        "$src attr-dict (`,` `rounding` `=` custom<RoundingMode>($rounding)^)? `:` type($src) `->` type($result)"
    )

    def verify_(self) -> None:
        """Narrowing says how it rounds."""
        source, result = element_bits(scalar_type(self.src.type)), element_bits(scalar_type(self.result.type))
        if source > result and self.rounding is None:
            raise VerifyException(f"a conversion from {source} to {result} bits needs a rounding mode")

    def also_needs(self) -> Features:
        """Stock Triton converts fp8e5 everywhere, and fp8e4nv where the hardware does."""
        types = (scalar_type(self.src.type), scalar_type(self.result.type))
        return (Feature.FP8_CONVERSION,) if any(isinstance(each, Float8E4M3FNType) for each in types) else ()


@irdl_op_definition
class ClampFOp(TritonOp):
    """`x` limited to the range from `min` to `max`: `tt.clampf %x, %lo, %hi, propagateNan = none : f32`."""

    name = "tt.clampf"

    TYPE: ClassVar = same("TYPE", FLOAT_LIKE)

    x = operand_def(TYPE)
    min = operand_def(TYPE)
    max = operand_def(TYPE)
    propagate_nan = prop_def(EnumNumber(PropagateNan), prop_name="propagateNan")
    result = result_def(TYPE)

    traits = traits_def(Elementwise(), Pure())
    custom_directives = (keyword_directive(PropagateNan),)
    assembly_format = (
        "$x `,` $min `,` $max `,` `propagateNan` `=` custom<PropagateNan>($propagateNan) attr-dict `:` type($result)"
    )


@irdl_op_definition
class PreciseSqrtOp(TritonOp):
    """The square root, correctly rounded."""

    name = "tt.precise_sqrt"

    TYPE: ClassVar = same("TYPE", FLOAT_LIKE)

    x = operand_def(TYPE)
    result = result_def(TYPE)

    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$x attr-dict `:` type($x)"


class _BinaryOp(TritonOp):
    """Shared parts of two operands and a result of one type."""

    traits = traits_def(Elementwise(), Pure())

    def __init__(self, x: SSAValue, y: SSAValue):
        super().__init__(operands=[x, y], result_types=[x.type])


@irdl_op_definition
class PreciseDivFOp(_BinaryOp):
    """The quotient, correctly rounded."""

    name = "tt.precise_divf"

    TYPE: ClassVar = same("TYPE", FLOAT_LIKE)

    x = operand_def(TYPE)
    y = operand_def(TYPE)
    result = result_def(TYPE)

    assembly_format = "$x `,` $y attr-dict `:` type($x)"


@irdl_op_definition
class ApproxDivFOp(_BinaryOp):
    """The quotient of f32 numbers by the fast approximation of the hardware (2 ulp in the middle of the range)."""

    name = "tt.approx_divf"

    TYPE: ClassVar = same("TYPE", F32_LIKE)

    x = operand_def(TYPE)
    y = operand_def(TYPE)
    result = result_def(TYPE)

    assembly_format = "$x `,` $y attr-dict `:` type($x)"


@irdl_op_definition
class MulhiUIOp(_BinaryOp):
    """The high half of the product of two unsigned integers."""

    name = "tt.mulhiui"

    TYPE: ClassVar = same("TYPE", INT_LIKE)

    x = operand_def(TYPE)
    y = operand_def(TYPE)
    result = result_def(TYPE)

    assembly_format = "$x `,` $y attr-dict `:` type($x)"


@irdl_op_definition
class ExternElementwiseOp(TritonOp):
    """Call the device function `symbol` of a bitcode library for each element.

    Example:
    `%1 = tt.extern_elementwise %0 {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (f32) -> f32`
    """

    name = "tt.extern_elementwise"

    srcs = var_operand_def(ANY_LIKE)
    libname = prop_def(StringAttr)
    libpath = prop_def(StringAttr)
    symbol = prop_def(StringAttr)
    pure = prop_def(BoolAttr)
    result = result_def(ANY_LIKE)

    traits = traits_def(SameShapeAndLayout())
    assembly_format = "operands attr-dict `:` functional-type(operands, $result)"

    def effects(self) -> Effects:
        """Declare unknown effects, unless it is pure."""
        return NO_EFFECTS if is_set(self, "pure") else UNKNOWN


@irdl_op_definition
class ElementwiseInlineAsmOp(TritonOp):
    """PTX that computes `packed_element` elements at a time.

    Example: `%1 = tt.elementwise_inline_asm "not.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32,
    pure = true} %0 : tensor<64xi32> -> tensor<64xi32>`
    """

    name = "tt.elementwise_inline_asm"

    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    pure = prop_def(BoolAttr)
    packed_element = prop_def(IntegerAttr.constr(i32))
    args = var_operand_def()
    result = var_result_def(ANY_LIKE)

    traits = traits_def(SameShapeAndLayout())
    assembly_format = "$asm_string attr-dict ($args^ `:` type($args))? `->` type($result)"

    def verify_(self) -> None:
        """The pack holds at least one element."""
        if self.packed_element.value.data < 1:
            raise VerifyException(f"packed_element must be at least 1, found {self.packed_element.value.data}")
        pack = self.packed_element.value.data
        for type_ in self.operand_types:
            count = prod(shape_of_tensor(type_)) if as_tensor(type_) is not None else 1
            if count % pack:
                raise VerifyException(f"the elements must be a multiple of packed_element, found {count} and {pack}")

    def effects(self) -> Effects:
        """Return the effects of its PTX."""
        return effects_of_ptx(self, "asm_string")


@irdl_op_definition
class MapElementwiseOp(TritonOp):
    """Run the region for each group of `pack` elements: its arguments are the elements of every source in turn.

    The region ends in `tt.map_elementwise.return`. There is no syntax but the generic one.
    """

    name = "tt.map_elementwise"

    srcs = var_operand_def(ANY_TENSOR)
    pack = prop_def(IntegerAttr.constr(i32))
    result = var_result_def(ANY_TENSOR)
    scalar_op = region_def()

    traits = traits_def(SameShapeAndLayout(), RecursiveMemoryEffect())

    def verify_(self) -> None:
        """The region takes `pack` elements of each source."""
        pack = self.pack.value.data
        if pack < 1:
            raise VerifyException(f"pack must be at least 1, found {pack}")
        entry = self.scalar_op.blocks.first
        if entry is None or not _are_elements(entry.args, self.srcs, pack):
            raise VerifyException(f"the region must take {pack} elements of each operand")


@irdl_op_definition
class MapElementwiseReturnOp(TritonOp):
    """End the region of a `tt.map_elementwise`."""

    name = "tt.map_elementwise.return"

    result = var_operand_def()

    traits = traits_def(IsTerminator(), HasParent(MapElementwiseOp), Pure())
    assembly_format = "attr-dict ($result^ `:` type($result))?"

    def verify_(self) -> None:
        """The region returns as many elements of each result as it takes of each source."""
        parent = self.parent_op()
        assert isinstance(parent, MapElementwiseOp), "HasParent says so"
        pack = parent.pack.value.data
        if not _are_elements(self.result, parent.result, pack):
            raise VerifyException(f"the region must return {pack} elements of each result")


def _are_elements(values: Sequence[SSAValue], tensors: Sequence[SSAValue], pack: int) -> bool:
    """Return whether `values` have the types of `pack` elements of each tensor, in turn."""
    return len(values) == pack * len(tensors) and all(
        value.type == scalar_type(tensors[at // pack].type) for at, value in enumerate(values)
    )
