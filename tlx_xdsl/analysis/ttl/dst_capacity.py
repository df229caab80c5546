"""How many destination registers (DST) a compute thread has.

There is memory for 16 tiles of 16 bits. Half of it is for the tiles that are packed while others are computed, unless
the kernel has `dst_full_sync_en`; a tile of 32 bits takes twice as much, and all are of 32 bits with
`fp32_dest_acc_en`, or where a tile of f32 is among them. TT-Metalium, "Compute APIs", `tile_regs_acquire`.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tlx_xdsl.dialects import ttl
from tlx_xdsl.dialects.base.operation import enclosing, outermost
from tlx_xdsl.dialects.ttcore import element_bytes

TILES = 16
"""Tiles of 16 bits."""
WIDE = 4
"""Bytes of an element that takes twice as much."""


def dst_capacity(compute: ttl.ComputeOp) -> int:
    """The registers for the tiles of a compute."""
    kernel = kernel_around(compute)
    is_full = kernel is not None and kernel.dst_full_sync_en
    is_wide = kernel is not None and kernel.fp32_dest_acc_en
    tiles = [ttl.tile_of(argument.type) for argument in compute.body.block.args]
    is_wide = is_wide or any(element_bytes(tile.data_type) == WIDE for tile in tiles)
    return TILES // (1 if is_full else 2) // (2 if is_wide else 1)


def kernel_around(op: Operation) -> ttl.KernelOp | ttl.KernelDriverOp | None:
    """The kernel that `op` is a part of: around it, or the driver that launches the function around it."""
    if (kernel := enclosing(op, ttl.KernelOp)) is not None:
        return kernel
    function = enclosing(op, FuncOp)
    if function is None:
        return None
    for launch in outermost(op).walk():
        if isinstance(launch, ttl.LaunchThreadOp) and launch.callee.root_reference == function.sym_name:
            return enclosing(launch, ttl.KernelDriverOp)
    return None
