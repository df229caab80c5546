"""Votes of the threads of a warp (PTX ISA, "vote.sync")."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.base.layouts import LayoutAttr
from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.registry import Binary, pure
from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear

LANES = 32


@pure(tlx.VoteBallotOp)
def vote_ballot(op: tlx.VoteBallotOp) -> Binary:
    """A bit for each thread of the mask that holds a true element.

    A task has one value for all its warps, so the votes of the warps must agree; and who holds what is known only of
    a tensor with a layout. Raises Fault otherwise, but for votes of all or of nobody.
    """
    holders = _holders(op)

    def run(mask: np.int32, pred: Any) -> np.int32:
        votes = np.asarray(pred)
        if votes.all() or not votes.any():
            ballots = np.array([0xFFFFFFFF if votes.any() else 0], np.uint64)
        elif holders is None:
            raise fault_at(op, "the threads of a warp do not agree, and without a layout nobody knows who holds what")
        else:
            held = votes[holders].any(axis=0)
            ballots = (held.astype(np.uint64) << np.arange(LANES, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        if (ballots != ballots[0]).any():
            told = ", ".join(f"{int(ballot):#010x}" for ballot in ballots)
            raise fault_at(op, f"the warps of a task vote differently, and it has one value for all: {told}")
        return np.uint32(int(ballots[0]) & int(mask) & 0xFFFFFFFF).view(np.int32)

    return run


def _holders(op: tlx.VoteBallotOp) -> tuple[NDArray[np.int64], ...] | None:
    """The index of each element by register, warp and lane; None where nobody knows."""
    tensor = as_tensor(op.pred.type)
    if tensor is None or not isinstance(tensor.encoding, LayoutAttr):
        return None
    linear = distributed_to_linear(tensor.encoding.data, tensor.get_shape())  # pyright: ignore[reportArgumentType]
    sizes = linear.in_sizes
    names = ("register", "warp", "lane")
    grid = np.indices([sizes.get(name, 1) for name in names])
    indices = dict(zip(names, grid, strict=True)) | {"block": np.zeros_like(grid[0])}
    found = linear.apply_array({name: indices[name] for name in linear.in_names})
    return tuple(np.broadcast_to(found[name], grid[0].shape) for name in linear.out_names)
