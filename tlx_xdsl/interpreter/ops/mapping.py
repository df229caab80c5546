"""Scalar functions over the elements of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.dialects import tt
from tlx_xdsl.interpreter.lanes import LaneGraph, every_lane
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.plan import Planner
from tlx_xdsl.interpreter.registry import Kind, Run, structured
from tlx_xdsl.numerics.arrays import Array


@structured(tt.MapElementwiseOp)
def map_elementwise(op: tt.MapElementwiseOp, planner: Planner) -> tuple[Kind, Run]:
    """All groups of `pack` elements at once; a group is made of neighbours in row-major order."""
    graph, pack = LaneGraph(planner, op.scalar_op), op.pack.value.data
    single = len(op.result) == 1

    def run(task: Task, *sources: Array) -> Any:
        shape = sources[0].shape
        columns = [column for source in sources for column in source.reshape(-1, pack).T]
        out = every_lane(graph, task, columns)
        results = [stacked(out[at : at + pack], shape) for at in range(0, len(out), pack)]
        return results[0] if single else results

    return Kind.EFFECT, run


def stacked(columns: list[Array], shape: tuple[int, ...]) -> Array:
    """The elements of groups, back in one tensor."""
    return np.stack(columns, -1).reshape(shape)
