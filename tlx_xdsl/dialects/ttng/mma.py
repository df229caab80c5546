"""wgmma operations of `ttng` (TritonNvidiaGPUOps.td; PTX ISA, "wgmma.mma_async")."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, TensorType, UnitAttr, i1, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type, tensor_type

FALSE = BoolAttr.from_bool(False)


@irdl_op_definition
class WarpGroupDotOp(IRDLOperation):
    """d = a * b + c by wgmma: `a` of shape MxK in shared memory or registers, `b` of shape KxN in shared memory.

    With `use_c` false the accumulator counts as zero. With `isAsync` the result is in flight: nothing but another
    dot or the `ttng.warp_group_dot_wait` may touch it. `inputPrecision` is 0 for tf32, 1 for tf32x3, 2 for ieee.

    Example: `%d = ttng.warp_group_dot %a, %b, %c, %true {isAsync = true} : !ttg.memdesc<..> * !ttg.memdesc<..> -> ..`
    """

    name = "ttng.warp_group_dot"

    ACCUMULATOR: ClassVar = VarConstraint("ACCUMULATOR", base(TensorType[Attribute]))

    a = operand_def()
    b = operand_def(MemDescType)
    c = operand_def(ACCUMULATOR)
    use_c = opt_operand_def(i1)
    input_precision = prop_def(IntegerAttr.constr(i32), prop_name="inputPrecision", default_value=IntegerAttr(2, i32))
    max_num_imprecise_acc = prop_def(
        IntegerAttr.constr(i32), prop_name="maxNumImpreciseAcc", default_value=IntegerAttr(0, i32)
    )
    is_async = prop_def(BoolAttr.constr(i1), prop_name="isAsync", default_value=FALSE)
    d = result_def(ACCUMULATOR)

    irdl_options = (ParsePropInAttrDict(),)
    # The hardware reads shared memory and orders itself against waits: never merge, move or drop a dot.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$a `,` $b `,` $c (`,` $use_c^)? attr-dict `:` type($a) `*` type($b) `->` type($d)"

    def verify_(self) -> None:
        """The shapes are MxK, KxN and MxN, and a and b have one element type."""
        if self.c.type != self.d.type:
            raise VerifyException(f"accumulator {self.c.type} and result {self.d.type} must have one type")
        a, b, c = self._operand_a(), memdesc_type(self.b.type), tensor_type(self.d.type)
        a_shape, c_shape = a.shape if isinstance(a, MemDescType) else a.get_shape(), c.get_shape()
        if len(a_shape) != 2 or len(b.shape) != 2 or len(c_shape) != 2:
            raise VerifyException(f"a wgmma takes 2-D operands, found {a}, {b} and {c}")
        (m, k), (k_of_b, n) = a_shape, b.shape
        if k != k_of_b or c_shape != (m, n):
            raise VerifyException(f"shapes do not match: {m}x{k} * {k_of_b}x{n} -> {'x'.join(map(str, c_shape))}")
        if a.element_type != b.element_type:
            raise VerifyException(f"operands have different element types: {a.element_type} and {b.element_type}")

    def _operand_a(self) -> MemDescType | TensorType[Attribute]:
        return self.a.type if isinstance(self.a.type, MemDescType) else tensor_type(self.a.type)


@irdl_op_definition
class WarpGroupDotWaitOp(IRDLOperation):
    """Wait until at most `pendings` wgmma groups are in flight; the results are the inputs, now safe to read.

    Example: `%1 = ttng.warp_group_dot_wait %0 {pendings = 1 : i32} : tensor<64x256xf32, #mma>`
    """

    name = "ttng.warp_group_dot_wait"

    inputs = var_operand_def()
    pendings = prop_def(IntegerAttr.constr(i32))
    warp_group_local = opt_prop_def(UnitAttr, prop_name="warpGroupLocal")
    outputs = var_result_def()

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def print(self, printer: Printer) -> None:
        """Print ` %inputs {pendings = ...} : types`; the result types are the input types."""
        printer.print_string(" ")
        printer.print_list(self.inputs, printer.print_operand)
        printer.print_op_attributes(self.properties | self.attributes)
        printer.print_string(" : ")
        printer.print_list([value.type for value in self.inputs], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        position = parser.pos
        attributes = parser.parse_optional_attr_dict()
        if "pendings" not in attributes:
            parser.raise_error("'ttng.warp_group_dot_wait' lacks the attribute 'pendings'", position)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        inputs = parser.resolve_operands(operands, types, position)
        known = {name: attributes.pop(name) for name in ("pendings", "warpGroupLocal") if name in attributes}
        return cls(operands=[inputs], properties=known, attributes=attributes, result_types=[types])

    def verify_(self) -> None:
        """Results have the types of the inputs, and the count is not negative."""
        if [value.type for value in self.inputs] != [value.type for value in self.outputs]:
            raise VerifyException("the results must have the types of the inputs")
        if self.pendings.value.data < 0:
            raise VerifyException(f"the number of pending groups can't be negative: {self.pendings.value.data}")
