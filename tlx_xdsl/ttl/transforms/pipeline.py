"""The TTL compiler, top to bottom: the passes that turn the frontend's kernel into calls of TT-Metalium."""

from __future__ import annotations

from typing import Any

from xdsl.passes import ModulePass

from tlx_xdsl.transforms.registry import pass_class

from ..dialects.ttcore import L1_BYTES

STAGES = {
    "synchronized": "ttl-insert-synchronization",
    "memory": "ttl-allocate-circular-buffers",
    "threads": "ttl-expand-threads",
    "registers": "ttl-assign-dst-registers",
    "ttkernel": "ttl-lower-affine",
    "emitc": "convert-ttkernel-to-emitc",
}
"""Names for the forms that a kernel has on its way, each with the last pass before it: `kernel` on tensors with all
barriers, on memory with places for its circular buffers, as functions, with registers, and as calls."""


def _pass(name: str, **options: Any) -> ModulePass:
    return pass_class(name)(**options)


def ttl_pipeline(
    *,
    schedule: bool = True,
    capacity: int | None = None,
    fpu: str = "auto",
    budget: int = L1_BYTES,
    block_calls: bool = True,
    profile: str | None = None,
    strict: bool = False,
    to: str | None = None,
) -> tuple[ModulePass, ...]:
    """The passes from the frontend's `ttl.kernel` to the operations that are C++ statements, in order.

    `schedule` lets transfers be reordered and batched; `capacity` is the number of destination registers where it is
    not the hardware's; `fpu` says when the matrix unit does element-wise arithmetic (`auto`, `always`, `never`);
    `budget` is the memory of a core for circular buffers, in bytes; `block_calls` lets calls be for several tiles at
    once; `profile` is the TT-Metalium release that the C++ is for; `strict` refuses what the compiler would repair.
    `to` is the name of a stage to stop at (`STAGES`).
    """
    registers = {"fpu": fpu} | ({} if capacity is None else {"capacity": capacity})
    passes = (
        # --- canonical form, and refuse: what no layout has ---
        # Constants and simple patterns, so that bounds and places are affine where they can be.
        _pass("ttl-canonicalize"),
        # Rows and columns of like pipes become one each, so that a core's code does not grow with the grid.
        _pass("ttl-merge-pipes"),
        # Copies whose tensor and circular buffer do not go together, while the user's operations are there to point at.
        _pass("ttl-verify-layouts"),
        # What the kernel leaves out and the passes below put right: said, while it is as the user wrote it.
        _pass("ttl-report-repairs", strict=strict, schedule=schedule),
        # --- analysis and inference, on tensors ---
        # A multicast writes to one address: receivers that have their blocks elsewhere get a pipe of their own.
        _pass("ttl-split-pipes"),
        # Pipes need semaphores; all later passes see these as any others.
        _pass("ttl-infer-pipe-semaphores"),
        *(schedule_passes() if schedule else ()),
        # Waits and barriers that are left out, and the checks of the protocol: after the passes that move transfers.
        _pass("ttl-insert-synchronization"),
        # Which values live in destination registers, while chains of operations on blocks are whole.
        _pass("ttl-infer-dst-requirements"),
        # Tensors become memory, and chains that end in a store become one computation for each tile.
        _pass("ttl-bufferize"),
        # Computations with too many values for the registers are cut into several; needs circular buffers.
        _pass("ttl-spill-dst-registers", **registers),
        # --- resources ---
        # Places in L1: bufferization and spilling may have made circular buffers of their own.
        _pass("ttl-allocate-circular-buffers", budget=budget),
        # Threads become functions; numbers of resources stay in the driver.
        _pass("ttl-expand-threads"),
        # Registers of one tile's computation, and for how many tiles at once there are enough.
        _pass("ttl-assign-dst-registers", **registers),
        # --- calls of TT-Metalium ---
        # Sub-blocks that fit the registers: loops over tiles, and the calls of unpack, math and pack.
        _pass("ttl-lower-compute", block_calls=block_calls),
        # Copies become transfers of pages; needs the blocks' views, so before the protocol is lowered.
        _pass("ttl-lower-data-movement"),
        # The protocol, barriers and semaphores; functions lose their arguments. Nothing of ttl but the driver is left.
        _pass("ttl-lower-synchronization"),
        # Loops are whole, and all that prepares the units is there.
        _pass("ttkernel-hoist-inits"),
        # C++ has loops with bounds, not affine maps: last, for all passes before may make or read them.
        _pass("ttl-lower-affine"),
        # Statements of C++, one for each operation.
        _pass("convert-ttkernel-to-emitc", **({} if profile is None else {"profile": profile})),
    )
    if to is None:
        return passes
    names = [each.name for each in passes]
    return passes[: names.index(STAGES[to]) + 1]


def schedule_passes() -> tuple[ModulePass, ...]:
    """The passes that move transfers, on tensors and before waits are inserted."""
    return (
        # Neighbouring loops that move the same tiles become one.
        _pass("affine-loop-fusion"),
        # Tiles that a loop reads again and again are read once, where a circular buffer has room.
        _pass("affine-data-copy-generate"),
        # Which transfers depend on which; the schedule keeps these in order.
        _pass("ttl-affine-dependence-analysis"),
        # Transfers begin early and are waited for together.
        _pass("ttl-schedule-pipeline"),
    )
