"""Predictions of chunk kernels and of causal attention beside durations on an H200 (2026-12-01, Triton 3.6.0)."""

import pytest

from benchmarks.gemm.common import MULTIPROCESSORS
from benchmarks.warp_specialize import compiled
from benchmarks.warp_specialize.arrays import UntouchedArrays
from benchmarks.warp_specialize.candidates import Candidate
from tests.gallery.plain.families import FAMILIES
from tests.unit.volume import is_full
from tlx_xdsl.kernels.calls import launching
from tlx_xdsl.runtime.specialize.ranking import plain_milliseconds, specialised_milliseconds
from tlx_xdsl.runtime.specialize.specialized import warp_specialized
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

WHOLE = {"BLOCK_K": 128, "BLOCK_V": 128}
WIDE = {"BLOCK_K": 64, "BLOCK_V": 128, "num_warps": 8, "num_stages": 3}
FOUR = {"BLOCK_V": 32, "num_stages": 4}
CASES = [
    ("delta_state", 0, FOUR, 55, {"BLOCK_V": 32}, 93),
    ("delta_state", 2, {"BLOCK_V": 64, "num_stages": 4}, 158, {"BLOCK_V": 64}, 163),
    ("delta_output", 0, WIDE, 147, WHOLE, 161),
    ("delta_output", 2, WIDE, 152, WHOLE, 166),
    ("delta_output", 3, WIDE, 149, WHOLE, 162),
]
"""The kernel, its shape, and the configuration and TFLOP/s of stock Triton and of ours, the best ones of each."""
TOO_FAST = [
    ("delta_state", 1, FOUR, 75, {"BLOCK_V": 32}, 74, 1.45),
    ("delta_state", 3, {"BLOCK_V": 32, "num_stages": 3}, 112, {"BLOCK_V": 32}, 132, 1.35),
]
"""The same where DRAM limits what is specialised, which gives less than is predicted, and how much less."""


JOINED = {"groups": 3, "join": True, "outer_depth": 2, "order": 2}
CAUSAL = [({}, 494), ({**JOINED, "turns": False}, 475), ({**JOINED, "groups": 2}, 431), ({**JOINED, "order": 1}, 406)]
"""Decisions for causal attention with heads 64 wide, and TFLOP/s: the rules' first, and in the order of speed."""


@pytest.fixture(autouse=True)
def _large_gpu(monkeypatch):
    monkeypatch.setattr(launching, "INTERPRETED_PROGRAMS", MULTIPROCESSORS)


def rates(name, at, stock, blocks):
    """The TFLOP/s that the clock expects of the plain and of the specialised kernel."""
    family = FAMILIES[name]
    plain = Candidate("", "", family, family.large[at], {**family.config, **stock}, {})
    problem = plain.problem(UntouchedArrays())
    of_plain = plain_milliseconds(
        family.kernel, problem.grid, {**problem.arguments, **plain.constexprs}, "sm_90a", plain.options
    )
    return problem.operations / of_plain / 1e9, rate(name, at, blocks, {})


def rate(name, at, blocks, decisions):
    """The TFLOP/s that the clock expects of a specialised kernel."""
    family = FAMILIES[name]
    ours = Candidate("", "", family, family.large[at], {**family.config, **blocks}, {})
    problem = ours.problem(UntouchedArrays())
    types, constants = compiled.signature_of(family.kernel, problem, ours.constexprs)
    made = warp_specialized(
        family.kernel, types, constants, Decisions(**decisions), "sm_90a", ours.options["num_warps"]
    )
    found = specialised_milliseconds(made, problem.grid, {**problem.arguments, **ours.constexprs})
    return problem.operations / found / 1e9


@pytest.mark.backend
@pytest.mark.parametrize("case", CASES if is_full() else [], ids=lambda case: f"{case[0]} {case[1]}")
def test_predictions_are_near_durations(case):
    name, at, stock, measured, blocks, measured_ours = case
    plain, ours = rates(name, at, stock, blocks)
    assert plain == pytest.approx(measured, rel=0.1)
    assert ours == pytest.approx(measured_ours, rel=0.2)
    # As measured, the specialised kernel is faster.
    assert ours > plain


@pytest.mark.backend
@pytest.mark.parametrize("case", TOO_FAST if is_full() else [], ids=lambda case: f"{case[0]} {case[1]}")
def test_what_dram_limits_is_predicted_too_fast(case):
    name, at, stock, measured, blocks, measured_ours, factor = case
    plain, ours = rates(name, at, stock, blocks)
    assert plain == pytest.approx(measured, rel=0.1)
    assert ours / measured_ours == pytest.approx(factor, rel=0.1)


@pytest.mark.backend
@pytest.mark.skipif(not is_full(), reason="takes half a minute: at full volume")
def test_short_rows_stay_plain():
    """DRAM gives less where rows have 128 bytes: the plain kernel is predicted 25 % too fast, and is faster indeed."""
    plain, ours = rates(
        "delta_output", 1, {"BLOCK_K": 64, "BLOCK_V": 64, "num_stages": 3}, {"BLOCK_K": 64, "BLOCK_V": 64}
    )
    assert ours < plain
    assert [plain, ours] == pytest.approx([128, 122], rel=0.27)


@pytest.mark.backend
@pytest.mark.skipif(not is_full(), reason="takes two minutes: at full volume")
def test_forms_of_causal_attention_are_in_order():
    """Tiles of a persistent kernel differ, with a trend and without one, more than a recording's first ones show."""
    blocks = {"BLOCK_M": 64, "BLOCK_N": 128, "num_warps": 4}
    found = [rate("attention", 3, blocks, decisions) for decisions, _ in CAUSAL]
    assert found == sorted(found, reverse=True)
    assert found == pytest.approx([measured for _, measured in CAUSAL], rel=0.1)
