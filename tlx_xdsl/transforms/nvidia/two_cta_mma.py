"""`tlx-lower-2cta-mma`: MMAs of pairs of CTAs that each have tensors of their own, as PTX.

Upstream Triton makes such MMAs (`two_ctas`) of tensors that span both CTAs. Here the even CTA of a pair issues the
instructions for both (PTX ISA, "tcgen05.mma", `.cta_group::2`), one for each 16 elements of K, and their completion
arrives at the barriers of both CTAs. Each CTA has 128 or 64 rows of A and of the accumulator, and half of B's columns.
With 128 rows its part of the accumulator lies in tensor memory as that of an MMA of its own would; one of 64 rows is
a buffer of 128 by now (`tlx-lower-pair-accumulators`). A may be in tensor memory, a part of 16 columns for each step.
All operations of a kernel have one `.cta_group`; the module attribute `ttng.two-ctas` has Triton 3.8 and 3.9 allocate
tensor memory accordingly.

Before:
```mlir
ttng.tc_gen5_mma %a, %b, %d, %use, %pred, %bar[%true] {is_async, two_ctas} : ...
```
After, for each step along K, and for each barrier:
```mlir
nvvm.inline_ptx "{ ... @p tcgen05.mma.cta_group::2.kind::f16 [$5], a, b, i, d; }" ro(...)
nvvm.inline_ptx "{ ... @p tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [$2],
  m; }" ro(...)
```
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, BoolAttr, Float16Type, Float32Type, IntegerAttr, ModuleOp, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import ttng
from tlx_xdsl.dialects.arith import CmpiOp
from tlx_xdsl.dialects.base.layouts import layout_attr, layout_of
from tlx_xdsl.dialects.base.operation import module_integer
from tlx_xdsl.dialects.nvvm import SPECIAL_REGISTERS
from tlx_xdsl.dialects.ttg import LocalAllocOp, SharedMemorySpaceAttr
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type
from tlx_xdsl.dialects.ttng.attrs import TensorMemorySpaceAttr
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout, TensorMemoryLayout
from tlx_xdsl.layouts.matrix_descriptors import K, Operand, instruction_descriptor, operand_of
from tlx_xdsl.layouts.shared import unswizzled_layout
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.layout.encodings import map_types
from tlx_xdsl.transforms.nvidia.integers import Integers
from tlx_xdsl.transforms.nvidia.ptx import run_in_one_thread, wait_for_region
from tlx_xdsl.transforms.nvidia.shared_address import shared_address, tensor_memory_address
from tlx_xdsl.transforms.rewriting import Pass, insert_before, ops_of

TWO_CTAS = "ttng.two-ctas"
"""Module attribute: `.cta_group::2` for everything that upstream Triton makes of tensor memory."""
ROWS = (64, 128)
"""Of the accumulator in each CTA: half of M (PTX ISA, "tcgen05.mma", shapes of `.cta_group::2`)."""
_START = 0x3FFF
"""The bits of a start in a descriptor, in units of 16 bytes."""
_COMMIT = (
    ".reg .b16 m; cvt.u16.u32 m, {1}; "
    "@p tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [{0}], m;"
)
_COMMIT_HERE = "@p tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [{0}];"


class LowerTwoCTAMMAPass(Pass):
    """Replace MMAs of pairs of CTAs, and the commits of a kernel with such MMAs, by PTX."""

    name = "tlx-lower-2cta-mma"

    def run(self, op: ModuleOp) -> None:
        """Handle a module that has such MMAs.

        Raises CompilationError for an MMA that has no lowering here.
        """
        pairs = [inner for inner in ops_of(op, ttng.TCGen5MMAOp) if inner.two_ctas is not None]
        scaled = [inner for inner in ops_of(op, ttng.TCGen5MMAScaledOp) if inner.two_ctas is not None]
        if module_integer(op, "ttg.num-ctas") != 1 or not (pairs or scaled):
            return
        if scaled:
            _refuse(scaled[0], "no scales")
        for inner in ops_of(op, ttng.TMEMCopyOp):
            _refuse(inner, "no copies to tensor memory beside it")
        for pair in pairs:
            _lower(pair)
        for inner in ops_of(op, ttng.TCGen5CommitOp):
            _commit(inner, inner.barrier, inner.pred)
            Rewriter.erase_op(inner)
        _unpair_types(op)
        op.attributes[TWO_CTAS] = BoolAttr.from_bool(True)


def _refuse(op: Operation, needs: str) -> NoReturn:
    raise error_at(op, f"an MMA of a pair of CTAs can be compiled with {needs} only")


def _lower(op: ttng.TCGen5MMAOp) -> None:
    a, b, d = (memdesc_type(value.type) for value in (op.a, op.b, op.d))
    if a.shape[0] not in ROWS or d.shape[0] != 2 * ROWS[0] or d.element_type != Float32Type():
        _refuse(op, "64 or 128 rows of an f32 accumulator in each CTA")
    if a.element_type != b.element_type or not isinstance(a.element_type, Float16Type | BFloat16Type):
        _refuse(op, "operands of f16 or bf16")
    in_tensor_memory = isinstance(a.memory_space, TensorMemorySpaceAttr)
    left = None if in_tensor_memory else _operand(op, op.a, 1)
    right = _operand(op, op.b, 0)
    instruction = instruction_descriptor(
        2 * a.shape[0], 2 * b.shape[1], bf16=isinstance(a.element_type, BFloat16Type), f32_result=True, a=left, b=right
    )
    issues = insert_before(op, arith.AndIOp(op.pred, _is_even(op))).result
    integers = Integers(op)
    firsts = _parts(op, len(right.steps)) if left is None else _starts(op, op.a, left)
    seconds = _starts(op, op.b, right)
    target, use = tensor_memory_address(op, op.d), integers.unsigned(op.use_d)
    end = _own_barrier(op) if op.is_async is None else None
    wait_for_region(op)
    first = "[{0}]" if left is None else "a"
    described = "" if left is None else f"mov.b32 h, {left.high}; mov.b64 a, {{{{{{0}}, h}}}}; "
    code = (
        f".reg .pred d; .reg .b32 h, i; .reg .b64 a, b; setp.ne.b32 d, {{2}}, 0; {described}"
        f"mov.b32 h, {right.high}; mov.b64 b, {{{{{{1}}, h}}}}; "
        f"mov.b32 i, {instruction}; @p tcgen05.mma.cta_group::2.kind::f16 [{{3}}], {first}, b, i, d;"
    )
    for step, halves in enumerate(zip(firsts, seconds, strict=True)):
        added = use if step == 0 else integers.value(1)
        run_in_one_thread(op, code, [*halves, added, target], predicate=issues)
    for barrier, wanted in zip(op.barriers, op.barrier_preds, strict=True):
        _commit(op, barrier, insert_before(op, arith.AndIOp(issues, wanted)).result)
    if end is not None:
        run_in_one_thread(op, _COMMIT_HERE, [shared_address(op, end)], predicate=issues)
        insert_before(op, ttng.WaitBarrierOp(operands=[end, integers.value(0), issues, []]))
        insert_before(op, ttng.InvalBarrierOp(operands=[end]))
    Rewriter.erase_op(op)


def _own_barrier(op: ttng.TCGen5MMAOp) -> SSAValue:
    """A barrier of this CTA for the end of an MMA that is not asynchronous: the CTA that issues it waits there."""
    layout = layout_attr(unswizzled_layout(1))
    type_ = MemDescType.get((1,), i64, layout, SharedMemorySpaceAttr(), mutable=True)
    barrier = insert_before(op, LocalAllocOp(operands=[None], result_types=[type_])).result
    insert_before(op, ttng.InitBarrierOp(operands=[barrier], properties={"count": IntegerAttr(1, i32)}))
    return barrier


def _operand(op: ttng.TCGen5MMAOp, value: SSAValue, k_dim: int) -> Operand:
    type_ = memdesc_type(value.type)
    layout = layout_of(type_.encoding)
    if not isinstance(layout, NvmmaSharedLayout) or len(type_.shape) != 2:
        _refuse(op, "operands in shared memory, in the layout of TMA")
    tile, shape = type_.alloc_shape[-2:], type_.shape
    try:
        return operand_of(layout, (tile[0], tile[1]), (shape[0], shape[1]), k_dim)
    except InputError as error:
        raise error_at(op, str(error)) from error


def _parts(op: ttng.TCGen5MMAOp, count: int) -> list[SSAValue]:
    """The addresses of the parts of A in tensor memory, of 16 columns each."""
    source = memdesc_type(op.a.type)
    part = MemDescType.get(
        (source.shape[0], K), source.element_type, source.encoding, source.memory_space,
        mutable=source.is_mutable, alloc_shape=source.alloc_shape,
    )  # fmt: skip
    starts: list[SSAValue] = []
    for step in range(count):
        offset = IntegerAttr(K * step, i32)
        view = ttng.TMEMSubSliceOp(operands=[op.a], properties={"offset": offset}, result_types=[part])
        starts.append(tensor_memory_address(op, insert_before(op, view).result))
    return starts


def _starts(op: ttng.TCGen5MMAOp, value: SSAValue, operand: Operand) -> list[SSAValue]:
    """The lower halves of the descriptors of an operand in shared memory, for each step along K."""
    start, integers = shared_address(op, value), Integers(op)
    return [_low_half(integers, start, offset, operand) for offset in operand.steps]


def _low_half(integers: Integers, start: SSAValue, offset: int, operand: Operand) -> SSAValue:
    units = integers.both(integers.shifted(integers.add(start, offset), -4), _START)
    return integers.value(integers.either(units, operand.low) if operand.low else units)


def _rank(op: Operation) -> SSAValue:
    return insert_before(op, SPECIAL_REGISTERS["cluster.ctarank"]()).results[0]


def _is_even(op: Operation) -> SSAValue:
    integers = Integers(op)
    odd = integers.value(integers.both(_rank(op), 1))
    return insert_before(op, CmpiOp("eq", odd, integers.value(0))).result


def _commit(op: Operation, barrier: SSAValue, predicate: SSAValue | None) -> None:
    """Have the barriers of both CTAs arrived at when all that was issued is complete."""
    assert predicate is None or predicate.type == i1
    integers = Integers(op)
    first = integers.value(integers.both(_rank(op), 0xE))
    both = insert_before(op, arith.ShLIOp(integers.value(3), first)).result
    run_in_one_thread(op, _COMMIT, [shared_address(op, barrier), both], predicate=predicate)


def _unpair_types(module: ModuleOp) -> None:
    """Give the accumulators the layout of one CTA's own MMA: it is the same."""

    def unpaired(type_: Attribute) -> Attribute:
        if isinstance(type_, MemDescType) and isinstance(type_.memory_space, TensorMemorySpaceAttr):
            layout = layout_of(type_.encoding)
            if isinstance(layout, TensorMemoryLayout) and layout.two_ctas:
                return type_.with_encoding(layout_attr(replace(layout, two_ctas=False)))
        return type_

    map_types(module, unpaired)
