"""MMAs of Blackwell's tensor cores, and copies to their memory (PTX ISA, "tcgen05.mma", "tcgen05.cp")."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    IntegerType,
    StringAttr,
    UnitAttr,
    i1,
    i8,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    Operand,
    VarOperand,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.conversion.tiling import shape_per_cta
from tlx_xdsl.layouts.encodings import BlockRepOrder, TensorMemoryLayout, TensorMemoryScalesLayout

from ..base import (
    TCGEN05,
    TCGEN05_COPY,
    Effects,
    EnumNumber,
    Feature,
    Features,
    Group,
    LayoutAttr,
    Needs,
    TritonOp,
    arrives,
    chosen_layout,
    is_set,
    keyword_directive,
    num_ctas_of,
    outermost,
    reads,
    updates,
    writes,
)
from ..tt import ScaleDotElemType, fault_of_scaled_type, verify_matmul
from ..ttg import (
    AsyncTokenType,
    MemDescType,
    NvmmaSharedEncodingAttr,
    SharedLinearEncodingAttr,
    SharedMemorySpaceAttr,
    memdesc_type,
    verify_mutable,
    verify_shared,
)
from .assembly import BarriersAndPreds, Token
from .barrier import verify_barrier
from .cga import verify_completion_barrier
from .tmem import tensor_memory_layout

SCALE_BLOCK_ROWS, SCALE_BLOCK_COLUMNS = 128, 4
"""Scales in one block of tensor memory (PTX ISA, "tcgen05 scale factor layout")."""
PAIR_ROWS = 64
"""The least rows of the accumulator in each CTA of a pair, of which the columns are halved among the lanes."""
PAIR_HALVES = "tlx.pair_halves"
"""Attribute of what makes a buffer of 128 rows that was an accumulator of 64 rows in each CTA of a pair."""
MAX_N = 256
"""Most columns of the accumulator of one instruction."""


def _verify_operand(name: str, buffer: MemDescType, *, in_tensor_memory: bool) -> None:
    """Check where an operand lies, and how."""
    if isinstance(buffer.memory_space, SharedMemorySpaceAttr):
        layouts = (NvmmaSharedEncodingAttr, SharedLinearEncodingAttr)
        if isinstance(buffer.encoding, LayoutAttr) and not isinstance(buffer.encoding, layouts):
            raise VerifyException(f"{name} must have an nvmma_shared layout, found {buffer}")
    elif not in_tensor_memory:
        raise VerifyException(f"{name} must be in shared memory, found {buffer}")
    else:
        tensor_memory_layout(buffer)


def _verify_accumulator(buffer: MemDescType, *, two_ctas: bool, is_scaled: bool) -> None:
    """Check the accumulator, which lies in tensor memory."""
    layout = tensor_memory_layout(buffer)
    if layout is None:
        return
    if not isinstance(layout, TensorMemoryLayout) or layout.fp4_padded:
        what = "scales" if isinstance(layout, TensorMemoryScalesLayout) else "padded 4-bit elements"
        raise VerifyException(f"the accumulator cannot have a layout for {what}: {buffer}")
    # Of blocks of 128 rows each CTA has its own ones, whatever the layout says of pairs; stock Triton asks no more.
    same = two_ctas and is_scaled and layout.block_m == SCALE_BLOCK_ROWS
    if layout.two_ctas != two_ctas and not same:
        word = "needs" if two_ctas else "takes no"
        raise VerifyException(f"an MMA {'with' if two_ctas else 'without'} 'two_ctas' {word} accumulator with twoCTAs")


def _verify_barriers(
    barriers: Sequence[SSAValue], preds: Sequence[SSAValue], num_ctas: int | None, *, is_async: bool
) -> None:
    if len(barriers) != len(preds):
        raise VerifyException(f"has {len(barriers)} barriers but {len(preds)} predicates for them")
    if barriers and not is_async:
        raise VerifyException("only an asynchronous MMA ('is_async') arrives on barriers")
    for barrier in barriers:
        verify_barrier(memdesc_type(barrier.type), num_ctas)
        verify_completion_barrier(memdesc_type(barrier.type))


def _accumulators(element: Attribute) -> tuple[Attribute, ...]:
    """Element types of the accumulator for operands of `element` (PTX ISA, "tcgen05 data types")."""
    match element:
        case Float16Type() | Float8E4M3FNType() | Float8E5M2Type():
            return (Float32Type(), Float16Type())
        case BFloat16Type() | Float32Type():
            return (Float32Type(),)
        case _ if element == i8:
            return (i32,)
        case _:
            return ()


def _verified_buffers(op: TCGen5MMAOp | TCGen5MMAScaledOp) -> tuple[MemDescType, MemDescType, MemDescType]:
    """The types of `a`, `b` and `d`, after a check of their layouts and of the barriers."""
    a, b, d = memdesc_type(op.a.type), memdesc_type(op.b.type), memdesc_type(op.d.type)
    _verify_operand("a", a, in_tensor_memory=True)
    _verify_operand("b", b, in_tensor_memory=False)
    _verify_accumulator(d, two_ctas=op.two_ctas is not None, is_scaled=isinstance(op, TCGen5MMAScaledOp))
    _verify_barriers(op.barriers, op.barrier_preds, num_ctas_of(op), is_async=op.is_async is not None)
    return a, b, d


class MMAOp(TritonOp):
    """Shared parts of the MMAs."""

    if TYPE_CHECKING:
        # Each has them, as definitions that are read where they stand.
        d: Operand
        use_d: Operand
        barriers: VarOperand
        barrier_preds: VarOperand
    INPUTS: ClassVar = ("a", "b")

    def effects(self) -> Effects:
        """Reads of the inputs and an update of the accumulator; with `two_ctas` those of both CTAs of the pair.

        A synchronous MMA waits for its own end.
        """
        pair = is_set(self, "two_ctas")
        inputs = (reads(name, cluster=pair) for name in self.INPUTS)
        others = updates("d", cluster=pair), arrives("barriers", cluster=pair)
        end = Group.TCGEN05 if is_set(self, "is_async") else None
        return Effects(*inputs, *others, by=TCGEN05, completes_on=end)


@irdl_op_definition
class TCGen5MMAOp(MMAOp):
    """d = a * b, plus d where `useD` is true, with d in tensor memory.

    `a` is in shared or tensor memory, `b` in shared memory. With `is_async` the MMA is in flight until the
    barriers complete, or a later commit. With `two_ctas` two CTAs work on it together: where each has tensors of its
    own (`ttg.num-ctas` is 1), `a` and `d` are its half of the rows, and `b` is its half of the columns.

    Example: `%t1 = ttng.tc_gen5_mma %a, %b, %d[%t0], %use, %pred, %bar[%p] {is_async} : ...`
    """

    name = "ttng.tc_gen5_mma"
    NEEDS: ClassVar = Needs("tlx.async_dot into tensor memory", Feature.TCGEN05)

    a = operand_def(MemDescType)
    b = operand_def(MemDescType)
    d = operand_def(MemDescType)
    acc_dep = opt_operand_def(AsyncTokenType)
    use_d = operand_def(i1)
    pred = operand_def(i1)
    barriers = var_operand_def(MemDescType)
    barrier_preds = var_operand_def(i1)
    is_async = opt_prop_def(UnitAttr)
    two_ctas = opt_prop_def(UnitAttr)
    multicast = opt_prop_def(UnitAttr)
    is_unsigned = opt_prop_def(UnitAttr)
    token = opt_result_def(AsyncTokenType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (Token, BarriersAndPreds)
    assembly_format = (
        "$a `,` $b `,` $d `` custom<Token>($acc_dep, type($token)) `,` $use_d `,` $pred `` "
        "custom<BarriersAndPreds>($barriers, $barrier_preds) attr-dict "
        "`:` type($a) `,` type($b) `,` type($d) (`,` type($barriers)^)?"
    )

    def verify_(self) -> None:
        """Memory spaces, layouts, shapes and element types are those of a tcgen05.mma."""
        a, b, d = _verified_buffers(self)
        for name, buffer in (("a", a), ("b", b), ("d", d)):
            if len(buffer.shape) != 2:
                raise VerifyException(f"{name} must have two dimensions, found {buffer}")
        rows, columns = d.shape
        if self.two_ctas is not None and num_ctas_of(self) in (1, None):
            if a.shape[0] == PAIR_ROWS and (2 * PAIR_ROWS, b.shape[1]) == d.shape:
                # The right half of the columns is in the lanes of the other rows (`tlx-lower-pair-accumulators`).
                rows = PAIR_ROWS
            elif 2 * b.shape[1] == columns:
                columns = b.shape[1]
        verify_matmul(a.shape, b.shape, (rows, columns))
        eight_bits = (Float8E4M3FNType, Float8E5M2Type)
        if a.element_type != b.element_type and not (
            isinstance(a.element_type, eight_bits) and isinstance(b.element_type, eight_bits)
        ):
            raise VerifyException(f"operands have different element types: {a.element_type} and {b.element_type}")
        allowed = _accumulators(a.element_type)
        if not allowed:
            raise VerifyException(f"a tcgen05 MMA cannot multiply {a.element_type}")
        if d.element_type not in allowed:
            raise VerifyException(
                f"an MMA of {a.element_type} accumulates in {' or '.join(map(str, allowed))}, found {d.element_type}"
            )
        if d.shape[0] % 64:
            raise VerifyException(f"an MMA needs M to be a multiple of 64, found {d.shape[0]}")
        if d.shape[1] % 8:
            raise VerifyException(f"an MMA needs N to be a multiple of 8, found {d.shape[1]}")

    def also_needs(self) -> Features:
        """MMAs of integers are not in every tcgen05."""
        is_integer = isinstance(memdesc_type(self.a.type).element_type, IntegerType)
        return (Feature.TCGEN05_INT8,) if is_integer else ()


@irdl_op_definition
class TCGen5MMAScaledOp(MMAOp):
    """d = (a * a_scale) * (b * b_scale), plus d where `useD` is true; the scales are in tensor memory, or in
    shared memory until a pass copies them.

    Example: `ttng.tc_gen5_mma_scaled %a, %b, %d, %as, %bs, %use, %pred lhs = e4m3 rhs = e2m1 : ...`
    """

    name = "ttng.tc_gen5_mma_scaled"
    NEEDS: ClassVar = Needs("tlx.async_dot_scaled", Feature.TCGEN05)
    INPUTS: ClassVar = ("a", "b", "a_scale", "b_scale")

    a = operand_def(MemDescType)
    b = operand_def(MemDescType)
    d = operand_def(MemDescType)
    acc_dep = opt_operand_def(AsyncTokenType)
    a_scale = operand_def(MemDescType)
    b_scale = operand_def(MemDescType)
    a_type = prop_def(EnumNumber(ScaleDotElemType))
    b_type = prop_def(EnumNumber(ScaleDotElemType))
    use_d = operand_def(i1)
    pred = operand_def(i1)
    barriers = var_operand_def(MemDescType)
    barrier_preds = var_operand_def(i1)
    two_ctas = opt_prop_def(UnitAttr)
    multicast = opt_prop_def(UnitAttr)
    is_async = opt_prop_def(UnitAttr)
    token = opt_result_def(AsyncTokenType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (Token, BarriersAndPreds, keyword_directive(ScaleDotElemType))
    assembly_format = (
        "$a `,` $b `,` $d `` custom<Token>($acc_dep, type($token)) `,` $a_scale `,` $b_scale `,` $use_d `,` $pred "
        "`lhs` `=` custom<ScaleDotElemType>($a_type) `rhs` `=` custom<ScaleDotElemType>($b_type) `` "
        "custom<BarriersAndPreds>($barriers, $barrier_preds) attr-dict "
        "`:` type($a) `,` type($b) `,` type($d) `,` type($a_scale) `,` type($b_scale) (`,` type($barriers)^)?"
    )

    def verify_(self) -> None:
        """Memory spaces and layouts are those of a scaled tcgen05.mma, and elements are of the types that it says."""
        a, b, d = _verified_buffers(self)
        for name, scale in (("a_scale", memdesc_type(self.a_scale.type)), ("b_scale", memdesc_type(self.b_scale.type))):
            # Those in shared memory are copied to tensor memory by stock Triton.
            in_shared_memory = isinstance(scale.memory_space, SharedMemorySpaceAttr)
            if not in_shared_memory and isinstance(tensor_memory_layout(scale), TensorMemoryLayout):
                raise VerifyException(f"{name} needs a tensor_memory_scales layout, found {scale}")
        self._verify_scale_order("a_scale", memdesc_type(self.a_scale.type), self._order_of_a())
        self._verify_scale_order("b_scale", memdesc_type(self.b_scale.type), "mnThenK")
        self._verify_kinds(a)
        m, n = d.shape[-2:]
        # 4-bit elements may be packed in pairs along M or N, too.
        if a.shape[-2] not in (m, m // 2) or b.shape[-1] not in (n, n // 2):
            raise VerifyException(f"shapes do not match: {a} * {b} -> {d}")

    def _verify_kinds(self, a: MemDescType) -> None:
        """Elements have 4 to 8 bits: those of 4 come in pairs, but in tensor memory each in 8 beside others of 8."""
        kinds = [ScaleDotElemType(each.value.data) for each in (self.a_type, self.b_type)]
        for side, kind, operand in zip(("lhs", "rhs"), kinds, (self.a, self.b), strict=True):
            element = memdesc_type(operand.type).element_type
            if kind in (ScaleDotElemType.FP16, ScaleDotElemType.BF16):
                raise VerifyException(f"a scaled MMA has no {side} elements of type {kind.keyword}")
            if kind is ScaleDotElemType.E2M1 and (fault := fault_of_scaled_type(side, kind, element)) is not None:
                raise VerifyException(fault)
        layout = chosen_layout(a.encoding)
        is_packed = isinstance(layout, TensorMemoryLayout) and not layout.fp4_padded
        if kinds[0] is ScaleDotElemType.E2M1 and kinds[1] is not ScaleDotElemType.E2M1 and is_packed:
            raise VerifyException(f"lhs elements of type e2m1 beside {kinds[1].keyword} must be fp4Padded, found {a}")

    def why_not_compiled(self) -> str | None:
        """Elements that are held in more bits than they have, which stock Triton's verifier lets pass."""
        for side, kind, operand in (("lhs", self.a_type, self.a), ("rhs", self.b_type, self.b)):
            element = memdesc_type(operand.type).element_type
            if (fault := fault_of_scaled_type(side, ScaleDotElemType(kind.value.data), element)) is not None:
                return fault
        return None

    def _order_of_a(self) -> BlockRepOrder:
        """The order in which sm_107 reads the scales of `a` where both operands are NVFP4; others have one order."""
        target = outermost(self).attributes.get("ttg.target")
        kinds = {self.a_type.value.data, self.b_type.value.data}
        scales = (memdesc_type(scale.type).element_type for scale in (self.a_scale, self.b_scale))
        of_nvfp4 = kinds == {ScaleDotElemType.E2M1.value} and all(isinstance(each, Float8E4M3FNType) for each in scales)
        return "kThenMn" if target == StringAttr("cuda:107") and of_nvfp4 else "mnThenK"

    @staticmethod
    def _verify_scale_order(name: str, scale: MemDescType, expected: BlockRepOrder) -> None:
        layout = chosen_layout(scale.encoding)
        if not isinstance(layout, TensorMemoryScalesLayout) or layout.block_rep_order == expected:
            return
        rows, columns = shape_per_cta(layout.cga_layout, scale.shape[-2:])
        has_order = rows > SCALE_BLOCK_ROWS and columns > SCALE_BLOCK_COLUMNS
        if has_order or layout.block_rep_order != "mnThenK":
            raise VerifyException(f"{name} must have blockRepOrder = {expected}, found {layout.block_rep_order}")


@irdl_op_definition
class TCGen5CommitOp(TritonOp):
    """Let `barrier` track all asynchronous tcgen05 operations of this thread so far; one arrival when they are done.

    `descs` are buffers that came by a multicast: the CTAs that hold them get the arrival, too.
    Example: `ttng.tc_gen5_commit %bar, %pred : !ttg.memdesc<1xi64, ...>`
    """

    name = "ttng.tc_gen5_commit"
    NEEDS: ClassVar = Needs("tlx.tcgen05_commit", Feature.TCGEN05)
    # A commit of the MMAs of pairs arrives at the barriers of both CTAs; the operation has no property that says so.
    EFFECTS: ClassVar = Effects(arrives("barrier", cluster=True))

    barrier = operand_def(MemDescType)
    pred = opt_operand_def(i1)
    descs = var_operand_def(MemDescType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "$barrier (`,` $pred^)? (`descs` $descs^)? attr-dict `:` type($barrier) (`,` type($descs)^)?"

    def verify_(self) -> None:
        """The operand is one barrier."""
        verify_barrier(memdesc_type(self.barrier.type), num_ctas_of(self))
        verify_completion_barrier(memdesc_type(self.barrier.type))


def has_pair_products(module: Operation) -> bool:
    """True if pairs of CTAs make products in a module: then all its copies to tensor memory and commits are of pairs.

    Source: PTX ISA, "tcgen05", `.cta_group`.
    """
    return any(isinstance(op, TCGen5MMAOp | TCGen5MMAScaledOp) and op.two_ctas is not None for op in module.walk())


@irdl_op_definition
class TMEMCopyOp(TritonOp):
    """Start to copy from shared memory to tensor memory (tcgen05.cp); a commit signals its end.

    Scales keep the block order of the hardware: the logical shapes of both sides differ. In a module with MMAs of pairs
    of CTAs the even one copies for both, in each what lies at this place in its own memory.
    """

    name = "ttng.tmem_copy"
    NEEDS: ClassVar = Needs("tlx.tmem_copy", Feature.TENSOR_MEMORY)

    src = operand_def(MemDescType)
    dst = operand_def(MemDescType)

    assembly_format = "$src `,` $dst attr-dict `:` type(operands)"

    def effects(self) -> Effects:
        """A read and a write, in a module with MMAs of pairs those of both CTAs."""
        pair = has_pair_products(outermost(self))
        accesses = reads("src", cluster=pair), writes("dst", cluster=pair)
        return Effects(*accesses, by=TCGEN05_COPY, completes_on=Group.TCGEN05)

    def verify_(self) -> None:
        """Check that shared memory is copied to tensor memory, with the same elements."""
        source, target = memdesc_type(self.src.type), memdesc_type(self.dst.type)
        verify_shared(source)
        layout = tensor_memory_layout(target)
        verify_mutable(target)
        if source.element_type != target.element_type:
            raise VerifyException(f"the element type must stay: from {source} to {target}")
        if isinstance(layout, TensorMemoryLayout) and source.shape != target.shape:
            raise VerifyException(f"the shape must stay: from {source} to {target}")
        if prod(source.shape) != prod(target.shape):
            raise VerifyException(f"the number of elements must stay: from {source} to {target}")
