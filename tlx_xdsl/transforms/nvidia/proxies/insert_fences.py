"""`tlx-insert-proxy-fences`: order writes of threads to shared memory before TMA and the tensor cores.

Threads write through one proxy, TMA and the tensor cores access shared memory through another one, and what one task
writes for another one is ordered by a barrier, which is no fence between the proxies (PTX ISA, "Async proxy"). Where
the user has put no fence, one is put before the release of the write, or before the task's own asynchronous
operation (`analysis/proxy_hazards.py`). Where the user has, nothing changes.

Before:
```mlir
ttg.local_store %values, %tile : ...
ttng.arrive_barrier %full, 1 : ...
```
After, where another task copies `%tile` by TMA:
```mlir
ttg.local_store %values, %tile : ...
ttng.fence_async_shared {bCluster = false}
ttng.arrive_barrier %full, 1 : ...
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, ModuleOp

from tlx_xdsl.analysis.proxy_hazards import missing_fences
from tlx_xdsl.dialects.ttng import FenceAsyncSharedOp

from ...rewriting import Pass, insert_before


class InsertProxyFencesPass(Pass):
    """Put the fences that are missing."""

    name = "tlx-insert-proxy-fences"

    def run(self, op: ModuleOp) -> None:
        """Handle all functions of the module."""
        for anchor in missing_fences(op):
            insert_before(anchor, FenceAsyncSharedOp(properties={"bCluster": BoolAttr.from_bool(False)}))
