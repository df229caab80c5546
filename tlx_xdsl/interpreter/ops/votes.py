"""Votes of the threads of a warp (PTX ISA, "vote.sync")."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.dialects import tlx
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.ops.thread_registers import held_elements
from tlx_xdsl.interpreter.ptx.instructions import LANES
from tlx_xdsl.interpreter.registry import Binary, pure


@pure(tlx.VoteBallotOp)
def vote_ballot(op: tlx.VoteBallotOp) -> Binary:
    """A bit for each thread of the mask that holds a true element.

    A task has one value for all its warps, so the votes of the warps must agree; and who holds what is known only of
    a tensor with a layout. Raises Fault otherwise, but for votes of all or of nobody.
    """
    holders = held_elements(op.pred)

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
