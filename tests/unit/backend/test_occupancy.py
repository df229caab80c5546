"""Resident CTAs, compared with figures of CUDA's occupancy calculator."""

from __future__ import annotations

import pytest

from tlx_xdsl.backend import KernelMetadata, KernelResources
from tlx_xdsl.backend.limits import occupancy_of
from tlx_xdsl.targets import target_named


def occupancy(target, warps, registers, shared):
    return occupancy_of(
        KernelMetadata(num_warps=warps, shared=shared), KernelResources(registers), target_named(target)
    )


@pytest.mark.parametrize(
    ("target", "warps", "registers", "shared", "ctas", "limit"),
    [
        ("sm_90a", 4, 32, 0, 16, "threads"),
        ("sm_90a", 1, 32, 0, 32, "CTAs"),
        ("sm_90a", 8, 64, 0, 4, "registers"),
        # 33 registers are 40 for each thread: a warp gets 256 at a time.
        ("sm_90a", 4, 33, 0, 12, "registers"),
        ("sm_90a", 4, 32, 232_448, 1, "shared memory"),
        ("sm_90a", 4, 32, 100 * 1024, 2, "shared memory"),
        ("sm_90a", 12, 168, 0, 1, "registers"),
        ("sm_80", 4, 32, 48 * 1024, 3, "shared memory"),
        ("sm_86", 1, 32, 0, 16, "CTAs"),
        ("sm_89", 4, 32, 0, 12, "threads"),
    ],
)
def test_what_fits(target, warps, registers, shared, ctas, limit):
    found = occupancy(target, warps, registers, shared)
    assert (found.ctas, found.limit) == (ctas, limit)
    assert found.warps == ctas * warps


def test_in_words():
    assert str(occupancy("sm_90a", 4, 64, 0)) == "8 CTAs with 32 of 64 warps (50%), limited by registers"
    assert str(occupancy("sm_90a", 4, 64, 200_000)) == "1 CTA with 4 of 64 warps (6%), limited by shared memory"
