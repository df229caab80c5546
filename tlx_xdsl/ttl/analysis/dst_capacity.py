"""Number of destination registers (DST) that a compute thread has.

There is memory for 16 tiles of 16 bits. Half of it is for the tiles that are packed while others are computed, unless
the kernel has `dst_full_sync_en`; a tile of 32 bits takes twice as much, and all are of 32 bits with
`fp32_dest_acc_en`, or where a buffer has tiles of 32 bits, or a typecast is from or to them. TT-Metalium, "Compute
APIs", `tile_regs_acquire`.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tlx_xdsl.dialects.base.operation import enclosing

from ..dialects import ttl
from ..dialects.ttcore import register_bytes

TILES = 16
"""Tiles of 16 bits."""
WIDE = 4
"""Bytes of an element that takes twice as much."""


def dst_capacity(compute: ttl.ComputeOp) -> int:
    """The registers for the tiles of a compute."""
    if (kernel := kernel_around(compute)) is not None:
        return registers_of(kernel)
    tiles = [ttl.tile_of(argument.type) for argument in compute.body.block.args]
    return TILES // 2 // (2 if any(register_bytes(tile.data_type) == WIDE for tile in tiles) else 1)


def registers_of(kernel: ttl.KernelOp | ttl.KernelDriverOp) -> int:
    """The registers of a kernel's compute thread."""
    return TILES // (1 if kernel.dst_full_sync_en else 2) // (2 if is_wide(kernel) else 1)


def is_wide(kernel: ttl.KernelOp | ttl.KernelDriverOp) -> bool:
    """Return whether registers hold 32 bits: they have one format in all of a kernel."""
    types = (op.result.type for op in kernel.body.block.ops if isinstance(op, ttl.CreateCBOp | ttl.BindCBOp))
    return kernel.fp32_dest_acc_en or any(register_bytes(type_.data_type) == WIDE for type_ in types)


def kernel_around(op: Operation) -> ttl.KernelOp | ttl.KernelDriverOp | None:
    """The kernel that `op` is a part of: around it, or the driver that launches the function around it."""
    if (kernel := enclosing(op, ttl.KernelOp)) is not None:
        return kernel
    function = enclosing(op, FuncOp)
    block = None if function is None else function.parent_block()
    if function is None or block is None:
        return None
    for driver in block.ops:
        if isinstance(driver, ttl.KernelDriverOp):
            for launch in driver.body.block.ops:
                if isinstance(launch, ttl.LaunchThreadOp) and launch.callee.root_reference == function.sym_name:
                    return driver
    return None
