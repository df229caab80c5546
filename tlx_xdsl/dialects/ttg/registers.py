"""Operations of `ttg` on register tensors, scalars and the whole thread block (TritonGPUOps.td)."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, IntegerType, StringAttr, UnitAttr, i1, i32
from xdsl.irdl import (
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.inferred import fault_of_unpacking

from ..base import (
    ANY_LIKE,
    ANY_TENSOR,
    FLOAT_TENSOR,
    I8_TENSOR,
    POINTER,
    Effects,
    Sync,
    TritonOp,
    TypeIs,
    allocates,
    effects_of_ptx,
    is_element,
    parse_keyword_of,
    print_attr_dict,
    same,
    scalar_type,
    shape_of_tensor,
    tensor_type,
    verify_places,
)
from .attrs import AddrSpace
from .types import MemDescType

INDEX_LIKE = TypeIs("an integer or an index", lambda type_: isinstance(type_, IntegerType | IndexType))
ASM_OPERAND = TypeIs(
    "a number, a pointer, a tensor or a buffer",
    lambda type_: isinstance(type_, MemDescType) or is_element(scalar_type(type_)),
)


@irdl_op_definition
class ConvertLayoutOp(TritonOp):
    """Move a tensor to another register layout; shape and elements stay.

    Example: `%1 = ttg.convert_layout %0 : tensor<64xf32, #a> -> tensor<64xf32, #b>`
    """

    name = "ttg.convert_layout"

    src = operand_def(ANY_TENSOR)
    force_warp_shuffle = opt_prop_def(UnitAttr)
    result = result_def(ANY_TENSOR)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """Shape and element type must stay."""
        source, result = tensor_type(self.src.type), self.result.type
        if source.get_shape() != result.get_shape() or source.element_type != result.element_type:
            raise VerifyException(f"changes more than the layout: from {source} to {result}")


@irdl_op_definition
class InlineAsmOp(TritonOp):
    """PTX that each thread runs once: a tensor gives all elements that the thread holds, a buffer its address as i32.

    Example: `ttg.inline_asm "bar.sync $0, 128;" {constraints = "r", pure = false} %id : (i32) -> ()`
    """

    name = "ttg.inline_asm"

    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    pure = prop_def(BoolAttr)
    args = var_operand_def(ASM_OPERAND)
    result = var_result_def(ANY_LIKE)

    assembly_format = "$asm_string attr-dict ($args^)? `:` functional-type($args, $result)"

    def verify_(self) -> None:
        """Assembly that touches a buffer, or has no result, is not pure."""
        if not self.pure.value.data:
            return
        if any(isinstance(value.type, MemDescType) for value in self.args):
            raise VerifyException("assembly that takes a buffer can't be pure")
        if not self.result:
            raise VerifyException("assembly without a result can't be pure")

    def effects(self) -> Effects:
        """Return the effects of its PTX."""
        return effects_of_ptx(self, "asm_string")


@irdl_op_definition
class Fp4ToFpOp(TritonOp):
    """Unpack pairs of e2m1 numbers, low half first, along `axis`.

    Example: `%1 = ttg.fp4_to_fp %0 {axis = 1 : i32} : tensor<64x32xi8, #a> -> tensor<64x64xbf16, #b>`
    """

    name = "ttg.fp4_to_fp"

    src = operand_def(I8_TENSOR)
    axis = prop_def(IntegerAttr.constr(i32))
    result = result_def(FLOAT_TENSOR)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The result is twice as long along the axis."""
        shape = list(shape_of_tensor(self.src.type))
        axis = self.axis.value.data
        if not 0 <= axis < len(shape):
            raise VerifyException(f"axis {axis} is outside the {len(shape)} dimensions of {self.src.type}")
        shape[axis] *= 2
        if list(shape_of_tensor(self.result.type)) != shape:
            raise VerifyException(f"expected the shape {shape}, found {list(shape_of_tensor(self.result.type))}")
        packed = shape_of_tensor(self.src.type)
        verify_places(self.src.type, self.result.type, lambda a, b: fault_of_unpacking(a, b, packed, axis))


@irdl_op_definition
class GlobalScratchAllocOp(TritonOp):
    """Global memory of this program alone, `nbytes` long.

    Example: `%p = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>`
    """

    name = "ttg.global_scratch_alloc"
    EFFECTS: ClassVar = Effects(allocates("result"))

    nbytes = prop_def(IntegerAttr.constr(i32))
    alignment = prop_def(IntegerAttr.constr(i32))
    third_party_allocation = opt_prop_def(UnitAttr)
    shared_cluster_state = opt_prop_def(UnitAttr)
    result = result_def(POINTER)

    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        """Check that there is something to allocate, aligned to a power of two."""
        if self.nbytes.value.data < 0:
            raise VerifyException(f"cannot allocate {self.nbytes.value.data} bytes")
        bytes_ = self.alignment.value.data
        if bytes_ < 1 or bytes_ & (bytes_ - 1):
            raise VerifyException(f"the alignment must be a power of two, found {bytes_}")


@irdl_op_definition
class WarpIdOp(TritonOp):
    """The index of this warp: `%0 = ttg.warp_id`; uniform over the warp unless `omitUniformHint` is given."""

    name = "ttg.warp_id"

    omit_uniform_hint = opt_prop_def(UnitAttr, prop_name="omitUniformHint")
    result = result_def(i32)

    traits = traits_def(Pure())
    assembly_format = "attr-dict"


@irdl_op_definition
class BarrierOp(TritonOp):
    """Wait for all threads of the block, and make their accesses to the given memory visible to each other.

    Example: `ttg.barrier local|global_read`, `ttg.barrier none`, `ttg.barrier all`.
    """

    name = "ttg.barrier"
    EFFECTS: ClassVar = Effects(sync=Sync.ORDERED | Sync.THREADS)

    addr_space = prop_def(IntegerAttr.constr(i32), prop_name="addrSpace")

    @classmethod
    def of(cls, space: AddrSpace) -> Self:
        """A barrier that orders accesses to that memory."""
        return cls(properties={"addrSpace": IntegerAttr(space.value, i32)})

    def verify_(self) -> None:
        """The mask has known bits only."""
        if self.addr_space.value.data & ~AddrSpace.All:
            raise VerifyException(f"{self.addr_space.value.data} is no mask of address spaces")

    def print(self, printer: Printer) -> None:
        """Print ` local|global_read`."""
        printer.print_string(" " + "|".join(part.keyword for part in AddrSpace.of(self.addr_space.value.data)))
        print_attr_dict(printer, self, hidden=("addrSpace",))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        position = parser.pos
        parts = [parse_keyword_of(parser, AddrSpace)]
        while parser.parse_optional_punctuation("|") is not None:
            parts.append(parse_keyword_of(parser, AddrSpace))
        if len(parts) > 1 and AddrSpace.Null in parts:
            parser.raise_error("'none' stands alone", position)
        mask = 0
        for part in parts:
            mask |= part
        attributes = parser.parse_optional_attr_dict()
        return cls(properties={"addrSpace": IntegerAttr(mask, i32)}, attributes=attributes)


@irdl_op_definition
class LocalBarrierOp(TritonOp):
    """The operation of Triton 3.6 that `ttg.barrier local` replaces."""

    name = "ttg.local_barrier"
    EFFECTS: ClassVar = Effects(sync=Sync.ORDERED | Sync.THREADS)

    assembly_format = "attr-dict"


@irdl_op_definition
class PredicateStageOp(TritonOp):
    """True if stage `stage` of a software pipeline runs in this iteration; only the pipeliner makes it."""

    name = "ttg.predicate_stage"

    TYPE: ClassVar = same("TYPE", INDEX_LIKE)

    iv = operand_def(TYPE)
    ub = operand_def(TYPE)
    step = operand_def(TYPE)
    max_stage = prop_def(IntegerAttr.constr(i32), prop_name="maxStage")
    stage = prop_def(IntegerAttr.constr(i32))
    result = result_def(i1)

    traits = traits_def(Pure())
    assembly_format = (
        "$iv `,` $ub `,` $step `maxStage` $maxStage `stage` $stage attr-dict `:` type($iv) `->` type($result)"
    )


@irdl_op_definition
class MaskOp(TritonOp):
    """Run the region where `pred` holds; only the pipeliner makes it. There is no syntax but the generic one."""

    name = "ttg.mask"

    pred = operand_def(i1)
    result = var_result_def()
    region = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        """The region returns the results."""
        last = self.region.block.last_op
        if not isinstance(last, MaskReturnOp):
            raise VerifyException("the region must end in 'ttg.mask.return'")
        if [value.type for value in last.result] != [value.type for value in self.result]:
            raise VerifyException("the region must return the results")


@irdl_op_definition
class MaskReturnOp(TritonOp):
    """End the region of a `ttg.mask`."""

    name = "ttg.mask.return"

    result = var_operand_def()

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(MaskOp), Pure()))
    assembly_format = "$result attr-dict `:` type($result)"
