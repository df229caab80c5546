"""wgmma operations of `ttng` (TritonNvidiaGPUOps.td; PTX ISA, "wgmma.mma_async"), and packed arithmetic."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    BFloat16Type,
    BoolAttr,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    IntegerAttr,
    TensorType,
    UnitAttr,
    i1,
    i8,
    i32,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import DotOperandLayout, NvidiaMmaLayout

from ..base import (
    NUMBER_TENSOR,
    ORDERED,
    WGMMA,
    Effects,
    EnumNumber,
    Feature,
    Group,
    LayoutAttr,
    Needs,
    Sync,
    TritonOp,
    TypeIs,
    as_tensor,
    chosen_layout,
    element_bits,
    is_set,
    num_warps_of,
    parse_operands,
    parse_types,
    print_attr_dict,
    print_types,
    reads,
    same,
    split_properties,
    tensor_type,
)
from ..tt import InputPrecision, verify_matmul, verify_operand_widths
from ..ttg import (
    MemDescType,
    NvidiaMmaEncodingAttr,
    NvmmaSharedEncodingAttr,
    SharedLinearEncodingAttr,
    memdesc_type,
    verify_shared,
)

FALSE = BoolAttr.from_bool(False)
TENSOR_OR_BUFFER = TypeIs(
    "a tensor or a buffer", lambda type_: isinstance(type_, MemDescType) or as_tensor(type_) is not None
)
REGISTER_BITS = 32
WARPS_PER_GROUP = 4
"""wgmma is issued by four consecutive warps together."""


def shape_and_elements(type_: Attribute) -> tuple[tuple[int, ...], Attribute]:
    """The shape and the element type of a tensor or a buffer."""
    if isinstance(type_, MemDescType):
        return type_.shape, type_.element_type
    tensor = tensor_type(type_)
    return tensor.get_shape(), tensor.element_type


def accumulators_of(element: Attribute) -> tuple[Attribute, ...]:
    """Element types of the accumulator of a wgmma whose operands have `element`s (PTX ISA, "wgmma data types")."""
    match element:
        case Float16Type():
            return (Float16Type(), Float32Type())
        case BFloat16Type() | Float32Type() | Float8E4M3FNType() | Float8E5M2Type():
            return (Float32Type(),)
        case _ if element == i8:
            return (i32,)
        case _:
            return ()


@irdl_op_definition
class WarpGroupDotOp(TritonOp):
    """d = a * b + c by wgmma: `a` of shape MxK in shared memory or registers, `b` of shape KxN in shared memory.

    With `use_c` false the accumulator counts as zero. With `isAsync` the result is in flight: nothing but another
    dot or the `ttng.warp_group_dot_wait` may touch it. `inputPrecision` is 0 for tf32, 1 for tf32x3, 2 for ieee.

    Example: `%d = ttng.warp_group_dot %a, %b, %c, %true {isAsync = true} : !ttg.memdesc<..> * !ttg.memdesc<..> -> ..`
    """

    name = "ttng.warp_group_dot"
    NEEDS: ClassVar = Needs("tlx.async_dot into registers", Feature.WGMMA)

    ACCUMULATOR: ClassVar = same("ACCUMULATOR", NUMBER_TENSOR)

    a = operand_def(TENSOR_OR_BUFFER)
    b = operand_def(MemDescType)
    c = operand_def(ACCUMULATOR)
    use_c = opt_operand_def(i1)
    input_precision = prop_def(
        EnumNumber(InputPrecision), prop_name="inputPrecision", default_value=InputPrecision.IEEE.attr
    )
    max_num_imprecise_acc = prop_def(
        IntegerAttr.constr(i32), prop_name="maxNumImpreciseAcc", default_value=IntegerAttr(0, i32)
    )
    is_async = prop_def(BoolAttr, prop_name="isAsync", default_value=FALSE)
    d = result_def(ACCUMULATOR)

    # The hardware reads shared memory and orders itself against waits: never merge, move or drop a dot.
    assembly_format = "$a `,` $b `,` $c (`,` $use_c^)? attr-dict `:` type($a) `*` type($b) `->` type($d)"

    def effects(self) -> Effects:
        """Reads of what is in shared memory; a synchronous MMA waits for its own end."""
        end = Group.WGMMA if is_set(self, "isAsync") else None
        return Effects(reads("a"), reads("b"), by=WGMMA, completes_on=end, sync=Sync.ORDERED)

    def verify_(self) -> None:
        """Shapes, element types and layouts are those of a wgmma."""
        accumulator = tensor_type(self.d.type)
        (a, a_element), (b, b_element) = shape_and_elements(self.a.type), shape_and_elements(self.b.type)
        if len(a) != 2 or len(b) != 2 or len(accumulator.get_shape()) != 2:
            raise VerifyException(f"a wgmma takes 2-D operands, found {self.a.type}, {self.b.type} and {accumulator}")
        verify_matmul(a, b, accumulator.get_shape())
        self._verify_elements(a_element, b_element, accumulator.element_type)
        m, n = accumulator.get_shape()
        if m % 64:
            raise VerifyException(f"a wgmma needs M to be a multiple of 64, found {m}")
        if n % 8:
            raise VerifyException(f"a wgmma needs N to be a multiple of 8, found {n}")
        num_warps = num_warps_of(self)
        if num_warps is not None and num_warps % WARPS_PER_GROUP:
            raise VerifyException(f"a wgmma needs a multiple of {WARPS_PER_GROUP} warps, {num_warps} run this code")
        self._verify_layouts(accumulator)

    def _verify_elements(self, a: Attribute, b: Attribute, accumulator: Attribute) -> None:
        verify_operand_widths(a, b)
        allowed = accumulators_of(a)
        if not allowed:
            raise VerifyException(f"a wgmma cannot multiply {a}")
        if accumulator not in allowed:
            raise VerifyException(
                f"a wgmma of {a} accumulates in {' or '.join(map(str, allowed))}, found {accumulator}"
            )

    def why_not_compiled(self) -> str | None:
        """Two types of 16 bits, which stock Triton's verifier lets pass, are multiplied by no wgmma."""
        (_, a), (_, b) = shape_and_elements(self.a.type), shape_and_elements(self.b.type)
        return None if a == b or element_bits(a) == 8 else f"operands have different element types: {a} and {b}"

    def _verify_layouts(self, accumulator: TensorType[Attribute]) -> None:
        for buffer in (self.a.type, memdesc_type(self.b.type)):
            if isinstance(buffer, MemDescType):
                verify_shared(buffer)
                layouts = (NvmmaSharedEncodingAttr, SharedLinearEncodingAttr)
                if isinstance(buffer.encoding, LayoutAttr) and not isinstance(buffer.encoding, layouts):
                    raise VerifyException(f"a wgmma reads buffers in an nvmma_shared layout, found {buffer}")
        operand = None if isinstance(self.a.type, MemDescType) else chosen_layout(tensor_type(self.a.type).encoding)
        if isinstance(operand, DotOperandLayout):
            wanted = REGISTER_BITS // element_bits(tensor_type(self.a.type).element_type)
            if operand.k_width != wanted:
                raise VerifyException(f"operand a in registers needs a kWidth of {wanted}, found {operand.k_width}")
        layout = accumulator.encoding
        if isinstance(layout, NvidiaMmaEncodingAttr):
            mma = layout.data
            assert isinstance(mma, NvidiaMmaLayout)
            if mma.version_major != 3:
                raise VerifyException(f"the accumulator needs an mma layout of version 3, found {mma.version_major}")


@irdl_op_definition
class WarpGroupDotWaitOp(TritonOp):
    """Wait until at most `pendings` wgmma groups are in flight; the results are the inputs, now safe to read.

    With `warpGroupLocal` only this warp group waits: buffers that other groups read may still be in use.
    Example: `%1 = ttng.warp_group_dot_wait %0 {pendings = 1 : i32} : tensor<64x256xf32, #mma>`
    """

    name = "ttng.warp_group_dot_wait"
    NEEDS: ClassVar = Needs("tlx.async_dot_wait", Feature.WGMMA)
    EFFECTS: ClassVar = ORDERED

    inputs = var_operand_def(TENSOR_OR_BUFFER)
    pendings = prop_def(IntegerAttr.constr(i32))
    warp_group_local = opt_prop_def(UnitAttr, prop_name="warpGroupLocal")
    outputs = var_result_def(TENSOR_OR_BUFFER)

    def print(self, printer: Printer) -> None:
        """Print ` %inputs {pendings = ...} : types`; the result types are the input types."""
        printer.print_string(" ")
        printer.print_list(self.inputs, printer.print_operand)
        print_attr_dict(printer, self)
        printer.print_string(" : ")
        print_types(printer, [value.type for value in self.inputs])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        operands = parse_operands(parser)
        position = parser.pos
        properties, attributes = split_properties(cls, parser.parse_optional_attr_dict())
        if "pendings" not in properties:
            parser.raise_error("'ttng.warp_group_dot_wait' lacks the attribute 'pendings'", position)
        parser.parse_punctuation(":")
        types = parse_types(parser)
        inputs = parser.resolve_operands(operands, types, position)
        return cls(operands=[inputs], properties=properties, attributes=attributes, result_types=[types])

    def verify_(self) -> None:
        """Check that there are results to wait for, of the types of the inputs, and that the count is not negative."""
        if not self.inputs:
            raise VerifyException("needs the results of the dots to wait for")
        if [value.type for value in self.inputs] != [value.type for value in self.outputs]:
            raise VerifyException("the results must have the types of the inputs")
        if self.pendings.value.data < 0:
            raise VerifyException(f"the number of pending groups can't be negative: {self.pendings.value.data}")
