"""Pushes and pops that random threads leave out: each block is given back once, before the next one is acquired."""

from __future__ import annotations

import random

import pytest

from tests.unit import volume
from tests.unit.ttl.ttl_protocols import Program, kernel_of, random_programs
from tlx_xdsl.ttl.analysis.core_values import Core
from tlx_xdsl.ttl.analysis.protocol_run import End, run_of
from tlx_xdsl.ttl.analysis.trip_counts import totals_of
from tlx_xdsl.ttl.dialects.ttl import CBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tlx_xdsl.ttl.transforms.block_releases import complete_releases

COUNT = 600 if volume.is_full() else 40


def without_some(rng: random.Random, program: Program, share: float) -> Program:
    """The program without some of its pushes and pops."""
    found: Program = []
    for statement in program:
        if statement[0] == "for":
            found.append((*statement[:2], without_some(rng, statement[2], share)))
        elif statement[0] in ("reserve", "wait") or rng.random() >= share:
            found.append(statement)
    return found


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_each_block_is_given_back_once(share: float) -> None:
    rng = random.Random(1)
    for _ in range(COUNT):
        programs, factors = random_programs(rng)
        kernel = kernel_of([without_some(rng, program, share) for program in programs], factors)
        complete_releases(kernel)
        for thread in kernel.threads:
            totals = totals_of(thread, Core(0, 0, 1))
            assert totals is not None
            for cb in {op.cb for op in thread.walk() if isinstance(op, CBOp)}:
                assert totals[cb, CBReserveOp] == totals[cb, CBPushOp]
                assert totals[cb, CBWaitOp] == totals[cb, CBPopOp]
        # A block that is acquired twice, or given back twice, is a fault.
        assert run_of(kernel).end is not End.FAULT
        text = str(kernel)
        complete_releases(kernel)
        assert str(kernel) == text
