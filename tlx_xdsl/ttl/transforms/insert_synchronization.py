"""`ttl-insert-synchronization`: threads give back what they acquire and wait for their transfers, and come to an end.

Before:
```mlir
ttl.datamovement_thread @read {
  %a_view = ttl.cb_reserve %a_cb : !ttl.cb<...> -> tensor<1x1x!tile>
  %xf_a = ttl.copy %a[%i, %j], %a_view : T, T -> !ttl.transfer_handle<read>
  %b_view = ttl.cb_reserve %b_cb : !ttl.cb<...> -> tensor<1x1x!tile>
  %xf_b = ttl.copy %b[%i, %j], %b_view : T, T -> !ttl.transfer_handle<read>
  ttl.wait %xf_a
  ttl.cb_push %a_cb
  ttl.wait %xf_b
  ttl.thread_return
}
```
After:
```mlir
ttl.datamovement_thread @read {
  %a_view = ttl.cb_reserve %a_cb : !ttl.cb<...> -> tensor<1x1x!tile>
  %xf_a = ttl.copy %a[%i, %j], %a_view : T, T -> !ttl.transfer_handle<read>
  %b_view = ttl.cb_reserve %b_cb : !ttl.cb<...> -> tensor<1x1x!tile>
  %xf_b = ttl.copy %b[%i, %j], %b_view : T, T -> !ttl.transfer_handle<read>
  ttl.dma_barrier read
  ttl.cb_push %a_cb
  ttl.cb_push %b_cb
  ttl.thread_return
}
```
What was left out is added first: a push or pop for each block (`block_releases`), a barrier before what needs a
transfer to be complete (`transfer_waits`). Waits that do nothing go. Then the threads must fit each other
(`analysis.ttl.protocol`): as many blocks are popped as are pushed, and no thread waits for ever.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.transforms.rewriting import Pass, ops_of

from ..analysis.protocol import check_protocol, check_roles
from ..dialects.ttl import KernelOp
from .block_releases import complete_releases
from .transfer_waits import insert_waits


class InsertSynchronizationPass(Pass):
    """Complete the synchronisation of every kernel, and check it."""

    name = "ttl-insert-synchronization"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for threads that do not fit each other.
        """
        for kernel in ops_of(op, KernelOp):
            check_roles(kernel)
            complete_releases(kernel)
            insert_waits(kernel)
            check_protocol(kernel)
