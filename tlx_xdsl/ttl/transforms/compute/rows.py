"""Calls of TT-Metalium between blocks of rows and blocks of tiles.

```mlir
ttl.tilize %rows, %view : memref<64x64xf32>, memref<2x2x!tile>
```
is
```mlir
ttkernel.init_sfpu(%x, %t)
ttkernel.tilize_init(%x, %c2, %t)
ttkernel.tilize_block(%x, %c2, %t, %c0, %c0)
ttkernel.tilize_block(%x, %c2, %t, %c2, %c2)
ttkernel.tilize_uninit(%x, %t)
```
and `ttl.untilize %tiles, %view : memref<1x2x!tile>, memref<32x64xf32>` is
```mlir
ttkernel.init_sfpu(%t, %o)
ttkernel.copy_tile_init(%t)
ttkernel.pack_untilize_dest_init(%o) {full_width = 2, width = 2}
ttkernel.tile_regs_acquire()
ttkernel.copy_tile(%t, %c0, %c0)
ttkernel.copy_tile(%t, %c1, %c1)
ttkernel.tile_regs_commit()
ttkernel.tile_regs_wait()
ttkernel.pack_untilize_dest(%o, %c0) {full_width = 2, width = 2}
ttkernel.tile_regs_release()
ttkernel.pack_untilize_uninit(%o)
```
A row of more tiles than there are registers is cut into parts of one width, as the packer wants them.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.ttl.analysis.dst_capacity import registers_of
from tlx_xdsl.ttl.dialects import ttkernel, ttl

from ..thread_function import Number, ThreadFunction, integer, known


def lower_tilize(op: ttl.TilizeOp, thread: ThreadFunction) -> None:
    """Replace it by a call for each row of tiles."""
    emit = thread.emitter(op)
    source, first = _place(op.source, op, thread)
    target, begin = _place(op.view, op, thread)
    *others, width = shape = ttl.block_shape(op.view.type)
    size = emit.i32(width)
    emit.add_op(ttkernel.InitSFPUOp(operands=[source, target]))
    emit.add_op(ttkernel.TilizeInitOp(operands=[source, size, target]))
    for row in range(prod(others)):
        read = emit.i32(emit.add(emit.mul(first, prod(shape)), row * width))
        write = emit.i32(emit.add(emit.mul(begin, prod(shape)), row * width))
        emit.add_op(ttkernel.TilizeBlockOp(operands=[source, size, target, read, write]))
    emit.add_op(ttkernel.TilizeUninitOp(operands=[source, target]))
    Rewriter.erase_op(op)


def lower_untilize(op: ttl.UntilizeOp, thread: ThreadFunction) -> None:
    """Replace it by copies to registers, of as many tiles as there are registers for, and by packs of them."""
    emit = thread.emitter(op)
    source, first = _place(op.source, op, thread)
    target, begin = _place(op.view, op, thread)
    if begin != 0:
        raise error_at(op, "rows are written to the first block of a reservation: reserve one block at a time")
    full = ttl.block_shape(op.source.type)[-1]
    width = max(each for each in range(1, registers_of(thread.driver) + 1) if full % each == 0)
    sizes = {"width": integer(width), "full_width": integer(full)}
    emit.add_op(ttkernel.InitSFPUOp(operands=[source, target]))
    emit.add_op(ttkernel.CopyTileInitOp(operands=[source]))
    emit.add_op(ttkernel.PackUntilizeDestInitOp(operands=[target], properties=sizes))
    for part in range(full // width):
        emit.add_op(ttkernel.TileRegsAcquireOp())
        for each in range(width):
            tile = emit.i32(emit.add(emit.mul(first, full), part * width + each))
            emit.add_op(ttkernel.CopyTileOp(operands=[source, tile, emit.i32(each)]))
        emit.add_op(ttkernel.TileRegsCommitOp())
        emit.add_op(ttkernel.TileRegsWaitOp())
        emit.add_op(ttkernel.PackUntilizeDestOp(operands=[target, emit.i32(part)], properties=sizes))
        emit.add_op(ttkernel.TileRegsReleaseOp())
    emit.add_op(ttkernel.PackUntilizeUninitOp(operands=[target]))
    Rewriter.erase_op(op)


def _place(view: SSAValue, op: ttl.WritingOp, thread: ThreadFunction) -> tuple[SSAValue, Number]:
    """The circular buffer of a view, and the number of the view's block among those that were acquired together."""
    index = known(view.owner.index) if isinstance(view.owner, ttl.BlockOp) else 0
    return thread.cb(ttl.acquisition_of(view).cb, op), index
