"""Matrix products of register tensors (TritonOps.td)."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, Float8E4M3FNType, Float32Type, IntegerAttr, IntegerType, NoneAttr, i8, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import DotOperandLayout, Ints, NvidiaMmaLayout

from ..base import (
    FLOAT_OR_I8_TENSOR,
    FLOAT_TENSOR,
    NUMBER_TENSOR,
    EnumNumber,
    Feature,
    Features,
    Needs,
    TritonOp,
    chosen_layout,
    element_bits,
    keyword_directive,
    same,
    scalar_type,
    shape_of_tensor,
    tensor_type,
)
from .enums import InputPrecision, ScaleDotElemType

TRUE = BoolAttr.from_bool(True)


def verify_matmul(a: Ints, b: Ints, d: Ints) -> None:
    """Check that shapes (batch x) MxK, KxN and MxN multiply."""
    if not len(a) == len(b) == len(d) or len(a) not in (2, 3):
        raise VerifyException(f"takes three matrices, or three stacks of them, found {_x(a)}, {_x(b)} and {_x(d)}")
    (m, k), (k_of_b, n) = a[-2:], b[-2:]
    if k != k_of_b or d[-2:] != (m, n) or not a[:-2] == b[:-2] == d[:-2]:
        raise VerifyException(f"shapes do not match: {_x(a)} * {_x(b)} -> {_x(d)}")


def _x(shape: Ints) -> str:
    return "x".join(map(str, shape))


@irdl_op_definition
class DotOp(TritonOp):
    """d = a * b + c. `inputPrecision` says how f32 operands use the tensor cores (see `InputPrecision`).

    `maxNumImpreciseAcc` is the largest K that f8 products may be summed over in the tensor core's own precision.
    Example: `%d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<...>`
    """

    name = "tt.dot"
    NEEDS: ClassVar = Needs("tl.dot")

    ACCUMULATOR: ClassVar = same("ACCUMULATOR", NUMBER_TENSOR)

    a = operand_def(NUMBER_TENSOR)
    b = operand_def(NUMBER_TENSOR)
    c = operand_def(ACCUMULATOR)
    input_precision = prop_def(
        EnumNumber(InputPrecision), prop_name="inputPrecision", default_value=InputPrecision.IEEE.attr
    )
    max_num_imprecise_acc = prop_def(
        IntegerAttr.constr(i32), prop_name="maxNumImpreciseAcc", default_value=IntegerAttr(0, i32)
    )
    d = result_def(ACCUMULATOR)

    traits = traits_def(Pure())
    custom_directives = (keyword_directive(InputPrecision),)
    assembly_format = (
        "$a `,` $b `,` $c (`,` `inputPrecision` `=` custom<InputPrecision>($inputPrecision)^)? attr-dict "
        "`:` type($a) `*` type($b) `->` type($d)"
    )

    def verify_(self) -> None:
        """Shapes multiply, the operands have one element width, and both have a layout or neither."""
        verify_matmul(shape_of_tensor(self.a.type), shape_of_tensor(self.b.type), shape_of_tensor(self.d.type))
        verify_operand_widths(scalar_type(self.a.type), scalar_type(self.b.type))
        self._verify_layouts()

    def _verify_layouts(self) -> None:
        """Operands in registers of a matrix instruction are all for the same one."""
        encodings = [tensor_type(value.type).encoding for value in (self.a, self.b, self.d)]
        a, b, d = map(chosen_layout, encodings)
        if not isinstance(a, DotOperandLayout) and not isinstance(b, DotOperandLayout):
            return
        if any(isinstance(encoding, NoneAttr) for encoding in encodings[:2]):
            # A pass will ask for the layout of the other operand.
            return
        if not isinstance(a, DotOperandLayout) or not isinstance(b, DotOperandLayout):
            raise VerifyException(f"both operands are laid out for a dot, or neither: {self.a.type} and {self.b.type}")
        if isinstance(encodings[2], NoneAttr):
            raise VerifyException(f"the accumulator needs a layout, as the operands have one: {self.d.type}")
        if a.k_width != b.k_width:
            raise VerifyException(f"both operands need one kWidth, found {a.k_width} and {b.k_width}")
        versions = {
            each.version_major if isinstance(each, NvidiaMmaLayout) else None for each in (a.parent, b.parent, d)
        }
        if len(versions) > 1:
            raise VerifyException("operands and accumulator need layouts of one matrix instruction")
        is_f32 = all(isinstance(scalar_type(each.type), Float32Type) for each in (self.a, self.b))
        if versions == {2} and is_f32 and self.input_precision != InputPrecision.TF32.attr:
            raise VerifyException("the matrix instruction multiplies f32 with inputPrecision = tf32 only")

    def also_needs(self) -> Features:
        """Conversion of fp8e4nv operands, which tensor cores that can't multiply this type require first."""
        types = (scalar_type(self.a.type), scalar_type(self.b.type))
        return (Feature.FP8_CONVERSION,) if any(isinstance(each, Float8E4M3FNType) for each in types) else ()


def verify_operand_widths(a: Attribute, b: Attribute) -> None:
    """Check that both operands of a dot are integers of one type, or floats of one width."""
    if isinstance(a, IntegerType) or isinstance(b, IntegerType):
        if a != b:
            raise VerifyException(f"integer operands must have one element type, found {a} and {b}")
    elif element_bits(a) != element_bits(b):
        raise VerifyException(f"operands must have one element width, found {a} and {b}")


SCALED_GROUPS = (16, 32)
"""Elements along K with one scale (PTX ISA, "block scaling")."""


@irdl_op_definition
class DotScaledOp(TritonOp):
    """d = (a * a_scale) * (b * b_scale) + c, where a scale holds for a group of elements along K.

    4-bit elements come packed in pairs as i8: along K, or along the other dimension when `lhs_k_pack` or `rhs_k_pack`
    is false.
    Example: `tt.dot_scaled %a scale %as, %b scale %bs, %c lhs = e2m1 rhs = e4m3 {fastMath = false} : ... -> ...`
    """

    name = "tt.dot_scaled"
    NEEDS: ClassVar = Needs("tl.dot_scaled")

    ACCUMULATOR: ClassVar = same("ACCUMULATOR", FLOAT_TENSOR)

    a = operand_def(FLOAT_OR_I8_TENSOR)
    b = operand_def(FLOAT_OR_I8_TENSOR)
    c = operand_def(ACCUMULATOR)
    a_scale = opt_operand_def(FLOAT_OR_I8_TENSOR)
    b_scale = opt_operand_def(FLOAT_OR_I8_TENSOR)
    a_elem_type = prop_def(EnumNumber(ScaleDotElemType))
    b_elem_type = prop_def(EnumNumber(ScaleDotElemType))
    fast_math = prop_def(BoolAttr, prop_name="fastMath")
    lhs_k_pack = prop_def(BoolAttr, default_value=TRUE)
    rhs_k_pack = prop_def(BoolAttr, default_value=TRUE)
    d = result_def(ACCUMULATOR)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    custom_directives = (keyword_directive(ScaleDotElemType),)
    assembly_format = (
        "$a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c "
        "`lhs` `=` custom<ScaleDotElemType>($a_elem_type) `rhs` `=` custom<ScaleDotElemType>($b_elem_type) attr-dict "
        "`:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)? `->` type($d)"
    )

    def verify_(self) -> None:
        """Unpacked shapes multiply, and packed operands are i8."""
        a, b = shape_of_tensor(self.a.type), shape_of_tensor(self.b.type)
        if len(a) not in (2, 3) or len(b) != len(a):
            raise VerifyException(f"takes matrices, or stacks of them, found {self.a.type} and {self.b.type}")
        lhs, rhs = ScaleDotElemType(self.a_elem_type.value.data), ScaleDotElemType(self.b_elem_type.value.data)
        for side, kind, operand in (("lhs", lhs, self.a), ("rhs", rhs, self.b)):
            if (fault := fault_of_scaled_type(side, kind, scalar_type(operand.type))) is not None:
                raise VerifyException(fault)
        a = _unpacked(a, lhs, 0 if not self.lhs_k_pack.value.data else 1)
        b = _unpacked(b, rhs, 1 if not self.rhs_k_pack.value.data else 0)
        verify_matmul(a, b, shape_of_tensor(self.d.type))
        for scale in (self.a_scale, self.b_scale):
            if scale is not None and a[-1] // shape_of_tensor(scale.type)[-1] not in SCALED_GROUPS:
                raise VerifyException(f"a scale must be that of 16 or 32 elements: {scale.type} for {a[-1]} elements")

    def also_needs(self) -> Features:
        """Need the conversion of fp8 for operands in e4m3."""
        kinds = (self.a_elem_type.value.data, self.b_elem_type.value.data)
        return (Feature.FP8_CONVERSION,) if ScaleDotElemType.E4M3.value in kinds else ()


def fault_of_scaled_type(side: str, kind: ScaleDotElemType, element: Attribute) -> str | None:
    """The error where an operand of a scaled dot with elements `kind` is not held in the type `element`, or None."""
    bits = {ScaleDotElemType.BF16: 16, ScaleDotElemType.FP16: 16}.get(kind, 8)
    if element_bits(element) != bits or (kind is ScaleDotElemType.E2M1 and element != i8):
        held = "i8" if kind is ScaleDotElemType.E2M1 else f"{bits} bits"
        return f"{side} elements of type {kind.keyword} are held in {held}, found {element}"
    return None


def _unpacked(shape: Ints, kind: ScaleDotElemType, dim_from_first: int) -> Ints:
    """The shape in elements of an operand whose 4-bit elements are packed along a dimension of the matrix."""
    if kind is not ScaleDotElemType.E2M1:
        return shape
    sizes = list(shape)
    sizes[len(shape) - 2 + dim_from_first] *= 2
    return tuple(sizes)
