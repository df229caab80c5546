"""`tlx-legalize-async-copies`: replace asynchronous copies that no instruction can make by loads and stores.

`cp.async` copies 4, 8 or 16 bytes (PTX ISA, "cp.async"). Elements of 8 and 16 bits go several at a time, if the
pointers are contiguous and aligned for it and the mask is the same for all of them: which the compiler must know, as
for an argument of type `*fp16:16`. Where it does not, upstream Triton refuses the copy. Loads and stores give the same
result, only not in the background: the data is there before the group is waited for, so a remark is reported.

Before, of 16-bit elements at a pointer of unknown alignment:
```mlir
%t = ttg.async_copy_global_to_local %p, %b : tensor<256x!tt.ptr<f16>> -> <256xf16, #shared, #smem, mutable>
%g = ttg.async_commit_group tokens %t
```
After:
```mlir
%v = tt.load %p : tensor<256x!tt.ptr<f16>>
ttg.local_store %v, %b : tensor<256xf16> -> !ttg.memdesc<256xf16, #shared, #smem, mutable>
%g = ttg.async_commit_group
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.axis_info import axis_infos
from tlx_xdsl.analysis.integers.axis_domain import AxisInfo
from tlx_xdsl.analysis.module_attrs import num_warps
from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import layout_of, pointee_type, tensor_type
from tlx_xdsl.layouts.encodings import SwizzledSharedLayout
from tlx_xdsl.text.diagnostics import report_remark

from ..rewriting import Pass, insert_before, ops_of
from ..tritongpu.access_layouts import coalesced_layout
from ..tritongpu.accumulators import warps_of_ops

LEAST_BITS = 32
"""The least that `cp.async` copies (PTX ISA, "cp.async": cp-size)."""


class LegalizeAsyncCopiesPass(Pass):
    """Replace asynchronous copies of less than 4 bytes a time by loads and stores."""

    name = "tlx-legalize-async-copies"

    def run(self, op: ModuleOp) -> None:
        """Rewrite every such copy of the module."""
        if not any(_may_be_narrow(inner) for inner in op.walk()):
            return
        for func in ops_of(op, tt.FuncOp):
            infos, warps = axis_infos(func), list(warps_of_ops(func, num_warps(op)))
            for inner, its_warps in warps:
                if not _may_be_narrow(inner):
                    continue
                bits = _bits_of_copy(inner, infos, its_warps)
                if bits < LEAST_BITS and _is_only_waited_for(inner.token):
                    _make_synchronous(inner, bits)


def _may_be_narrow(op: Operation) -> TypeGuard[ttg.AsyncCopyGlobalToLocalOp]:
    return isinstance(op, ttg.AsyncCopyGlobalToLocalOp) and ttg.memdesc_type(op.result.type).element_bits < LEAST_BITS


def elements_at_a_time(
    pointers: SSAValue, mask: SSAValue | None, infos: Mapping[SSAValue, AxisInfo], warps: int
) -> tuple[int, int]:
    """Return the dimension along which a thread copies, and how many elements of it are adjacent in memory."""
    layout = coalesced_layout(pointers, infos[pointers], warps)
    fastest = layout.order[0]
    elements = layout.size_per_thread[fastest]
    return fastest, elements if mask is None else min(elements, infos[mask].constancy[fastest])


def _bits_of_copy(copy: ttg.AsyncCopyGlobalToLocalOp, infos: Mapping[SSAValue, AxisInfo], warps: int) -> int:
    """Bits that one instruction can copy, as upstream Triton computes it: elements that are adjacent on both sides."""
    _, elements = elements_at_a_time(copy.src, copy.mask, infos, warps)
    buffer = ttg.memdesc_type(copy.result.type)
    shared = layout_of(buffer.encoding)
    if isinstance(shared, SwizzledSharedLayout) and shared.max_phase > 1:
        elements = min(elements, shared.vec)
    return elements * buffer.element_bits


def _is_only_waited_for(token: SSAValue) -> bool:
    return all(
        isinstance(use.operation, ttg.AsyncCommitGroupOp | ttg.AsyncWaitOp | ttg.LocalLoadOp) for use in token.uses
    )


def _make_synchronous(copy: ttg.AsyncCopyGlobalToLocalOp, bits: int) -> None:
    other = copy.other
    if copy.mask is not None and other is None:
        # A copy writes zeros where its mask is false; a load leaves open what it gives there.
        type_ = tensor_type(pointee_type(copy.src.type))
        other = insert_before(copy, ConstantOp(DenseIntOrFPElementsAttr.from_list(cast(Any, type_), [0]))).result
    load = tt.LoadOp(
        copy.src,
        copy.mask,
        other,
        cache_policy=copy.cache_policy,
        is_volatile=bool(copy.is_volatile.value.data),
    )
    insert_before(copy, load)
    insert_before(copy, ttg.LocalStoreOp(operands=[load.result, copy.result]))
    report_remark(
        copy,
        f"a thread can copy {bits} bits at a time here, and cp.async copies at least {LEAST_BITS}: this copy is made "
        "by loads and stores, not in the background",
        [
            "let the compiler know how pointer and mask are aligned: by the argument's type (*fp16:16), or by "
            "tl.multiple_of and tl.max_contiguous"
        ],
    )
    for use in list(copy.token.uses):
        user = use.operation
        if isinstance(user, ttg.LocalLoadOp):
            user.token = None
        else:
            user.operands = [operand for operand in user.operands if operand is not copy.token]
    Rewriter.erase_op(copy)
