"""Where a program stands in its grid and cluster."""

from __future__ import annotations

import numpy as np

from tlx_xdsl.dialects import tlx, tt
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.registry import Run, Unary, effect


@effect(tt.GetProgramIdOp)
def program_id(op: tt.GetProgramIdOp) -> Unary:
    """The index of the program along an axis."""
    axis = op.axis.value.data
    return lambda task: np.int32(task.block.program[axis])


@effect(tt.GetNumProgramsOp)
def num_programs(op: tt.GetNumProgramsOp) -> Run:
    """The number of programs along an axis."""
    axis = op.axis.value.data

    def run(task: Task) -> np.int32:
        return np.int32(task.block.cluster.launch.grid[axis])

    return run


@effect(tlx.ClusterCTARankOp)
def cluster_cta_rank(_op: tlx.ClusterCTARankOp) -> Unary:
    """The rank of the thread block in its cluster."""
    return lambda task: np.int32(task.block.rank)


@effect(tlx.ClusterSizeOp)
def cluster_size(_op: tlx.ClusterSizeOp) -> Unary:
    """The thread blocks of the cluster."""
    return lambda task: np.int32(len(task.block.cluster.blocks))
