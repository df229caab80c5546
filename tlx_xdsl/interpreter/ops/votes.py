"""Votes of the threads of a warp (PTX ISA, "vote.sync")."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.dialects import tlx
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.ops.thread_registers import give_to_elements, held_elements
from tlx_xdsl.interpreter.ptx.instructions import LANES
from tlx_xdsl.interpreter.registry import Binary, pure


@pure(tlx.VoteBallotOp)
def vote_ballot(op: tlx.VoteBallotOp) -> Binary:
    """A bit for each thread of the mask that holds a true element.

    Who holds what is known only of a tensor with a layout. Raises Fault without one, but for votes of all or of none;
    and where warps that hold the same element vote differently.
    """
    holders = held_elements(op.pred)

    def run(mask: np.int32, pred: Any) -> Any:
        votes = np.asarray(pred)
        if votes.all() or not votes.any():
            ballot = np.uint32(int(mask) & (0xFFFFFFFF if votes.any() else 0)).view(np.int32)
            return np.full(votes.shape, ballot)[()]
        if holders is None:
            raise fault_at(
                op, "the threads of a warp do not agree, and without a layout it is unknown which thread holds what"
            )
        held = votes[holders].any(axis=0)
        ballots = (held.astype(np.uint64) << np.arange(LANES, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        bits = (ballots.astype(np.uint32) & np.uint32(int(mask) & 0xFFFFFFFF)).view(np.int32)
        return give_to_elements(op, holders, np.broadcast_to(bits[:, None], holders[0].shape), votes.shape)

    return run
