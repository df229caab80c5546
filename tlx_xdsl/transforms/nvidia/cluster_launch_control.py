"""Cluster launch control as PTX (PTX ISA, "clusterlaunchcontrol").

Upstream Triton has operations for it from 3.8 on, for a thread block that asks for itself; `native` keeps those. What
asks for a whole cluster is PTX in every version. One thread asks; a response is loaded by all threads with Triton's own
load, which it orders, and decoded by each.

Before:
```mlir
ttng.clc_try_cancel %response, %bar : ...
%r = ttng.clc_load_result %response : !ttg.memdesc<2xi64, ...> -> i128
%more = ttng.clc_is_canceled %r : i128 -> i1
```
After (`%to` and `%mbar` are addresses in shared memory, and `%t` is the number of the thread):
```mlir
ttg.barrier local
nvvm.inline_ptx "{ ...; @p clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [$2],
[$3]; }" ro(%t, %c0, %to, %mbar : ...)
%words = ttg.local_load %response : !ttg.memdesc<2xi64, ...> -> tensor<2xi64, #both>
%held = builtin.unrealized_conversion_cast %words : tensor<2xi64, #both> to !llvm.struct<(i64, i64)>
...
%0 = nvvm.inline_ptx "{ ...; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; ... }" ro(%low, %high : ...)
%more = arith.cmpi ne, %0, %c0 : i32
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects import arith, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr
from tlx_xdsl.layouts.distributed import WARP_SIZE
from tlx_xdsl.layouts.encodings import BlockedLayout
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import insert_before, replace
from .emit.integers import Integers
from .emit.ptx import inline_ptx, run_in_one_thread, wait_for_region
from .emit.shared_address import shared_address
from .emit.threads import registers_of, warps_at

_TRY = "@p clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{to}.b128 [{{0}}], [{{1}}];"
_RESPONSE = ".reg .b128 r; mov.b128 r, {$1, $2};"
_IS_CANCELED = (
    f"{{ .reg .pred p; {_RESPONSE} clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; "
    "selp.b32 $0, 1, 0, p; }"
)
_FIRST = f"{{ {_RESPONSE} clusterlaunchcontrol.query_cancel.get_first_ctaid::%s.b32.b128 $0, r; }}"


class LowerCLCRequest(RewritePattern):
    """Replaces a request of a thread block for itself, which Triton has from 3.8 on."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ttng.CLCTryCancelOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        _request(op, op.result, op.mbarrier, "", None)
        rewriter.erase(op)


class LowerClusterCLCRequest(RewritePattern):
    """Replaces a request for a whole cluster."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.CLCTryCancelOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        _request(op, op.result, op.barrier, ".multicast::cluster::all", op.pred)
        rewriter.erase(op)


def _request(op: Operation, response: SSAValue, barrier: SSAValue, to: str, predicate: SSAValue | None) -> None:
    addresses = [shared_address(op, response), shared_address(op, barrier)]
    wait_for_region(op)
    run_in_one_thread(op, _TRY.format(to=to), addresses, predicate=predicate)


class LowerCLCResponse(RewritePattern):
    """Replaces the load of a response, and the questions that are asked of it.

    Raises CompilationError for a response that has another use.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ttng.CLCLoadResultOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op` and its uses."""
        both = layout_attr(BlockedLayout((2,), (WARP_SIZE,), (warps_at(op),), (0,)))
        load = ttg.LocalLoadOp(operands=[op.src, None], result_types=[TensorType(i64, [2], both)])
        words = registers_of(op, insert_before(op, load).result)
        for user in [use.operation for use in op.clc_result.uses]:
            match user:
                case ttng.CLCIsCanceledOp():
                    answer = insert_before(user, inline_ptx(_IS_CANCELED, words, [i32]))
                    zero = Integers(user).value(0)
                    replace(user, arith.CmpiOp("ne", answer.results[0], zero))
                case ttng.CLCGetProgramIdOp():
                    replace(user, inline_ptx(_FIRST % tt.ProgramIDDim(user.dim.value.data).keyword, words, [i32]))
                case _:
                    raise error_at(
                        user, f"a response of the cluster launch control can't be the operand of '{user.name}'"
                    )
        rewriter.erase(op)


def patterns(*, native: bool) -> list[RewritePattern]:
    """The patterns of this file; without those for what Triton lowers itself when it is `native`."""
    return [LowerClusterCLCRequest(), *([] if native else [LowerCLCRequest(), LowerCLCResponse()])]
