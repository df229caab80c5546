"""`ttl-lower-compute`: from `ttl.compute` to calls of TT-Metalium, or to one of the forms on the way.

With `to=linalg` a compute becomes a `linalg.generic` with the same body (`compute.structured`), with `to=tiled` loops
over sub-blocks that the destination registers have place for (`compute.tiling`), with `to=ttkernel` calls
(`compute.to_ttkernel`, and `compute.rows` for blocks of rows).

Before:
```mlir
ttl.compute ins(%a : memref<1x2x!tile>) outs(%o : memref<1x2x!tile>) {..., dst_per_tile = 1 : i32, unroll = 2 : i32} {
^bb0(%x: !tile, %y: !tile):
  %0 = ttl.tile_copy %x {dst_idx = 0 : i32} : !tile
  %1 = ttl.tile_exp %0 {dst_idx = 0 : i32} : !tile
  ttl.yield %1 : !tile
}
```
After `ttl-lower-compute`:
```mlir
ttkernel.init_sfpu(%in, %out) : ...
ttkernel.tile_regs_acquire() : () -> ()
ttkernel.copy_tile_init(%in) : ...
ttkernel.copy_tile(%in, %c0, %c0) : ...
ttkernel.copy_tile(%in, %c1, %c1) : ...
ttkernel.exp_tile_init() : () -> ()
ttkernel.exp_tile(%c0) : ...
ttkernel.exp_tile(%c1) : ...
ttkernel.tile_regs_commit() : () -> ()
ttkernel.tile_regs_wait() : () -> ()
ttkernel.pack_tile(%c0, %out, %c0) : ...
ttkernel.pack_tile(%c1, %out, %c1) : ...
ttkernel.tile_regs_release() : () -> ()
```
`%in` and `%out` are casts of circular buffers, which `ttl-lower-synchronization` resolves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects import linalg
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, ops_of

from ..dialects import ttl
from .compute.rows import lower_tilize, lower_untilize
from .compute.tiling import is_of_tiles, tile, to_generic
from .compute.to_ttkernel import lower_generic
from .thread_function import thread_functions


@dataclass(frozen=True)
class LowerComputePass(Pass):
    """Lower what compute threads do with tiles."""

    name = "ttl-lower-compute"

    to: Literal["linalg", "tiled", "ttkernel"] = "ttkernel"
    """The form to stop at."""
    block_calls: bool = True
    """Whether calls for several tiles (`matmul_block`, `pack_tile_block`) are used where they do the same."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError where registers were not assigned, or threads are no functions yet.
        """
        for compute in ops_of(op, ttl.ComputeOp):
            to_generic(compute)
        if self.to == "linalg":
            return
        if self.to == "tiled":
            for generic in filter(is_of_tiles, ops_of(op, linalg.GenericOp)):
                tile(generic)
            return
        for thread in thread_functions(op):
            for generic in filter(is_of_tiles, ops_of(thread.function, linalg.GenericOp)):
                lower_generic(generic, thread, block_calls=self.block_calls)
            for each in ops_of(thread.function, ttl.TilizeOp):
                lower_tilize(each, thread)
            for each in ops_of(thread.function, ttl.UntilizeOp):
                lower_untilize(each, thread)
        for generic in filter(is_of_tiles, ops_of(op, linalg.GenericOp)):
            raise error_at(generic, "a computation outside of a thread's function: run ttl-expand-threads before")
