"""`tlx-lower-2cta-mma`: MMAs of pairs of CTAs that each have tensors of their own, as PTX.

Upstream Triton makes such MMAs (`two_ctas`) of tensors that span both CTAs. Here the even CTA of a pair issues the
instructions for both (PTX ISA, "tcgen05.mma", `.cta_group::2`), one for each 32 bytes along K
(`pair_instructions.py`), and their completion arrives at the barriers of both CTAs. Each CTA has 128 or 64 rows of A
and of the accumulator, and half of B's columns. With 128 rows its part of the accumulator lies in tensor memory as that
of an MMA of its own would; one of 64 rows is a buffer of 128 by now (`tlx-lower-pair-accumulators`). A may be in tensor
memory, a part of 8 columns of 32 bits for each step. All operations of a kernel have one `.cta_group`, so copies of
scales must use `.cta_group::2` as well (`pair_copies.py`). The module attribute `ttng.two-ctas` has Triton 3.8 and 3.9
allocate tensor memory accordingly.

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
A scaled MMA has the addresses of its scales, too:
```mlir
nvvm.inline_ptx "{ ... @p tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X [$5], a, b, i, [$6+0],
  [$7+0], d; }" ro(...)
```
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.base import layout_attr, layout_of, module_integer
from tlx_xdsl.layouts.encodings import TensorMemoryLayout
from tlx_xdsl.layouts.matrix_descriptors import STEP_BYTES, Operand
from tlx_xdsl.layouts.shared import unswizzled_layout

from ..layout.encodings import map_types
from ..rewriting import Pass, insert_before, ops_of
from .emit.integers import Integers
from .emit.pair_instructions import Instructions, instructions, issues_here, low_half, rank_of
from .emit.ptx import run_in_one_thread, wait_for_region
from .emit.shared_address import shared_address, tensor_memory_address
from .pair_copies import lower_copy

TWO_CTAS = "ttng.two-ctas"
"""Module attribute: `.cta_group::2` for everything that upstream Triton makes of tensor memory."""
_COMMIT = (
    ".reg .b16 m; cvt.u16.u32 m, {1}; "
    "@p tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [{0}], m;"
)
_COMMIT_HERE = "@p tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [{0}];"


class LowerTwoCTAMMAPass(Pass):
    """Replace MMAs of pairs of CTAs, and the copies and commits of a kernel with such MMAs, by PTX."""

    name = "tlx-lower-2cta-mma"

    def run(self, op: ModuleOp) -> None:
        """Handle a module that has such MMAs.

        Raises CompilationError for an MMA, or a copy to tensor memory beside it, that has no lowering here.
        """
        if module_integer(op, "ttg.num-ctas") != 1 or not ttng.has_pair_products(op):
            return
        for inner in ops_of(op, ttng.TMEMCopyOp):
            lower_copy(inner)
        for inner in [*ops_of(op, ttng.TCGen5MMAOp), *ops_of(op, ttng.TCGen5MMAScaledOp)]:
            if inner.two_ctas is not None:
                _lower(inner)
        for inner in ops_of(op, ttng.TCGen5CommitOp):
            _commit(inner, inner.barrier, inner.pred)
            Rewriter.erase_op(inner)
        _unpair_types(op)
        op.attributes[TWO_CTAS] = BoolAttr.from_bool(True)


def _lower(op: ttng.TCGen5MMAOp | ttng.TCGen5MMAScaledOp) -> None:
    product = instructions(op)
    left, right = product.a, product.b
    issues = issues_here(op, op.pred)
    integers = Integers(op)
    firsts = _parts(op, len(right.steps)) if left is None else _starts(op, op.a, left)
    seconds = _starts(op, op.b, right)
    target, use = tensor_memory_address(op, op.d), integers.unsigned(op.use_d)
    end = _own_barrier(op) if op.is_async is None else None
    wait_for_region(op)
    for step, halves in enumerate(zip(firsts, seconds, strict=True)):
        added = use if step == 0 else integers.value(1)
        code = _code(product, step)
        run_in_one_thread(op, code, [*halves, added, target, *product.scales], predicate=issues)
    for barrier, wanted in zip(op.barriers, op.barrier_preds, strict=True):
        _commit(op, barrier, insert_before(op, arith.AndIOp(issues, wanted)).result)
    if end is not None:
        run_in_one_thread(op, _COMMIT_HERE, [shared_address(op, end)], predicate=issues)
        insert_before(op, ttng.WaitBarrierOp(operands=[end, integers.value(0), issues, []]))
        insert_before(op, ttng.InvalBarrierOp(operands=[end]))
    Rewriter.erase_op(op)


def _code(product: Instructions, step: int) -> str:
    """The PTX of a step: the parts of A and B, whether to add, the accumulator, and the scales are its operands."""
    first = "[{0}]" if product.a is None else "a"
    described = "" if product.a is None else f"mov.b32 h, {product.a.high}; mov.b64 a, {{{{{{0}}, h}}}}; "
    scales = "".join(f"[{{{4 + number}}}+{columns[step]}], " for number, columns in enumerate(product.columns))
    return (
        f".reg .pred d; .reg .b32 h, i; .reg .b64 a, b; setp.ne.b32 d, {{2}}, 0; {described}"
        f"mov.b32 h, {product.b.high}; mov.b64 b, {{{{{{1}}, h}}}}; mov.b32 i, {product.descriptors[step]}; "
        f"@p tcgen05.mma.cta_group::2.kind::{product.kind} [{{3}}], {first}, b, i, {scales}d;"
    )


def _own_barrier(op: Operation) -> SSAValue:
    """A barrier of this CTA for the end of an MMA that is not asynchronous: the CTA that issues it waits there."""
    layout = layout_attr(unswizzled_layout(1))
    type_ = ttg.MemDescType.get((1,), i64, layout, ttg.SharedMemorySpaceAttr(), mutable=True)
    barrier = insert_before(op, ttg.LocalAllocOp(operands=[None], result_types=[type_])).result
    insert_before(op, ttng.InitBarrierOp(operands=[barrier], properties={"count": IntegerAttr(1, i32)}))
    return barrier


def _parts(op: ttng.TCGen5MMAOp | ttng.TCGen5MMAScaledOp, count: int) -> list[SSAValue]:
    """The addresses of the parts of A in tensor memory, of 32 bytes of each row."""
    source = ttg.memdesc_type(op.a.type)
    elements = 8 * STEP_BYTES // source.element_bits
    part = ttg.MemDescType.get(
        (source.shape[0], elements), source.element_type, source.encoding, source.memory_space,
        mutable=source.is_mutable, alloc_shape=source.alloc_shape,
    )  # fmt: skip
    starts: list[SSAValue] = []
    for step in range(count):
        offset = IntegerAttr(elements * step, i32)
        view = ttng.TMEMSubSliceOp(operands=[op.a], properties={"offset": offset}, result_types=[part])
        starts.append(tensor_memory_address(op, insert_before(op, view).result))
    return starts


def _starts(op: Operation, value: SSAValue, operand: Operand) -> list[SSAValue]:
    """The lower halves of the descriptors of an operand in shared memory, for each step along K."""
    start, integers = shared_address(op, value), Integers(op)
    return [low_half(integers, start, offset, operand.low) for offset in operand.steps]


def _commit(op: Operation, barrier: SSAValue, predicate: SSAValue | None) -> None:
    """Have the barriers of both CTAs arrived at when all that was issued is complete."""
    assert predicate is None or predicate.type == i1
    integers = Integers(op)
    first = integers.value(integers.both(rank_of(op), 0xE))
    both = insert_before(op, arith.ShLIOp(integers.value(3), first)).result
    run_in_one_thread(op, _COMMIT, [shared_address(op, barrier), both], predicate=predicate)


def _unpair_types(module: ModuleOp) -> None:
    """Give the accumulators the layout of one CTA's own MMA: it is the same."""

    def unpaired(type_: Attribute) -> Attribute:
        if isinstance(type_, ttg.MemDescType) and isinstance(type_.memory_space, ttng.TensorMemorySpaceAttr):
            layout = layout_of(type_.encoding)
            if isinstance(layout, TensorMemoryLayout) and layout.two_ctas:
                return type_.with_encoding(layout_attr(replace(layout, two_ctas=False)))
        return type_

    map_types(module, unpaired)
