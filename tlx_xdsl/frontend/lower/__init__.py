"""Lowering of the functions of the language, one module per topic; the modules register themselves when imported."""

# pyright: reportUnusedImport=false

from . import (
    asm,
    atomics,
    block_pointers,
    creation,
    cuda,
    debug,
    descriptors,
    dot_scaled,
    math,
    matrix,
    memory,
    reduction,
    shape,
    tlx_access,
    tlx_barriers,
    tlx_clc,
    tlx_cluster,
    tlx_copies,
    tlx_layouts,
    tlx_mma,
    tlx_packed,
    tlx_ranks,
    tlx_storage,
    tlx_tma,
    tlx_utility,
    tlx_views,
    tlx_warps,
)
