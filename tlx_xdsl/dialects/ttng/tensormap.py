"""TMA descriptors made on the device (TritonNvidiaGPUOps.td; PTX ISA, "tensormap")."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
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
    ORDERED,
    POINTER,
    TENSORMAP,
    Effects,
    Feature,
    Needs,
    Sync,
    TritonOp,
    print_types,
    writes,
)
from ..tt import TensorDescType

_LIMITS = {"elem_type": 15, "interleave_layout": 2, "swizzle_mode": 3, "fill_mode": 1}
"""The largest value of each field of a descriptor."""


@irdl_custom_directive
class OperandTypes(CustomDirective):
    """The types of all operands, of which only the two pointers' are not known beforehand."""

    desc_ptr: TypeDirective
    global_address: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the types, and keep the first two."""
        position = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(types) < 2:
            parser.raise_error("expected the types of all operands", position)
        self.desc_ptr.set(state, (types[0],))
        self.global_address.set(state, (types[1],))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the types."""
        state.print_whitespace(printer)
        print_types(printer, [operand.type for operand in op.operands])


@irdl_op_definition
class TensormapCreateOp(TritonOp):
    """Write the 128 bytes of a TMA descriptor to `desc_ptr`.

    Sizes are in elements, the first one that of the fastest dimension; strides are in bytes, without the first one.
    """

    name = "ttng.tensormap_create"
    NEEDS: ClassVar = Needs("ttng.tensormap_create", Feature.TMA)
    EFFECTS: ClassVar = Effects(writes("desc_ptr"), by=TENSORMAP, sync=Sync.ORDERED)

    desc_ptr = operand_def(POINTER)
    global_address = operand_def(POINTER)
    box_dim = var_operand_def(i32)
    global_dim = var_operand_def(i32)
    global_stride = var_operand_def(i64)
    element_stride = var_operand_def(i32)
    elem_type = prop_def(IntegerAttr.constr(i32))
    interleave_layout = prop_def(IntegerAttr.constr(i32))
    swizzle_mode = prop_def(IntegerAttr.constr(i32))
    fill_mode = prop_def(IntegerAttr.constr(i32))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (OperandTypes,)
    assembly_format = (
        "$desc_ptr `,` $global_address `,` `[` $box_dim `]` `,` `[` $global_dim `]` `,` `[` $global_stride `]` `,` "
        "`[` $element_stride `]` attr-dict `:` `(` custom<OperandTypes>(type($desc_ptr), type($global_address)) `)` "
        "`->` `(` `)`"
    )

    def verify_(self) -> None:
        """Sizes and strides have one rank, and the fields are in range."""
        rank = len(self.box_dim)
        for what, values, wanted in (
            ("sizes of the tensor", self.global_dim, rank),
            ("strides of the tensor", self.global_stride, rank - 1),
            ("strides of elements", self.element_stride, rank),
        ):
            if len(values) != wanted:
                raise VerifyException(f"a box of {rank} dimensions needs {wanted} {what}, found {len(values)}")
        for name, limit in _LIMITS.items():
            value = self.properties[name]
            assert isinstance(value, IntegerAttr)
            if not 0 <= value.value.data <= limit:
                raise VerifyException(f"{name} must be 0 to {limit}, found {value.value.data}")


@irdl_op_definition
class TensormapFenceproxyAcquireOp(TritonOp):
    """Make a descriptor that was written on the device visible to TMA: `ttng.tensormap_fenceproxy_acquire %p : ...`."""

    name = "ttng.tensormap_fenceproxy_acquire"
    NEEDS: ClassVar = Needs("ttng.tensormap_fenceproxy_acquire", Feature.TMA)
    EFFECTS: ClassVar = ORDERED

    desc_ptr = operand_def(POINTER)

    assembly_format = "$desc_ptr attr-dict `:` type($desc_ptr)"


@irdl_op_definition
class ReinterpretTensorDescOp(TritonOp):
    """The descriptor that a pointer points at.

    Example: `%d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<64x64xf16, #shared>`
    """

    name = "ttng.reinterpret_tensor_descriptor"
    NEEDS: ClassVar = Needs("tlx.reinterpret_tensor_descriptor", Feature.TMA)

    raw_desc = operand_def(POINTER)
    result = result_def(TensorDescType)

    traits = traits_def(Pure())
    assembly_format = "$raw_desc attr-dict `:` type($raw_desc) `to` type($result)"
