"""Attention with options and of sequences, compiled for Hopper with stock Triton: nothing moves between layouts, and
next to nothing is spilled."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.attention.test_attention_options import SLOPES, alibi
from tests.unit.kernels.gemm.test_compiled import compiled
from tests.unit.kernels.references import heads
from tests.versions import RELEASE
from tlx_xdsl.analysis.layout_costs import conversions
from tlx_xdsl.kernels.attention.forward import attention_launch
from tlx_xdsl.kernels.attention.varlen import attention_varlen_launch
from tlx_xdsl.layouts.conversion_cost import ConversionKind
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.backend

SINKS = np.zeros(1, np.float32)

CASES = {
    "window": {"causal": True, "window": (500, 0)},
    "both sides": {"window": (300, 200)},
    "bottom-right": {"causal": True, "align": "bottom-right"},
    "all": {"window": (300, 200), "softcap": 3.0, "sinks": SINKS},
    "bias": {"causal": True, "score_mod": alibi, "score_args": (SLOPES, 0.5)},
}


KEPT_BY_13 = {"both sides": 528, "bottom-right": 328}
"""Bytes of a thread, at heads of 64 elements, that ptxas 13 (13.1 to 13.4) spills of the PTX of Triton 3.6 and 3.7.

They are the numbers of the columns that masks compare, one for each register of the scores: computed once for a
program, and read back for a tile's first block and for blocks that a limit cuts, never in the loop over whole blocks
(SASS). ptxas 12.9 computes them anew from the same PTX, and spills 0 to 24 bytes; so does 13 from the PTX of 3.8.
"""


def check(launch, case, dim):
    result = compiled(launch)
    consumers = launch.constexprs["T"].consumers
    assert result.resources.registers == (168 if consumers == 2 else 128)
    assert result.resources.spill_store_bytes <= allowed(case, dim, result.assembler)
    # ptxas 12.9 serialises the products that 3.8 makes of heads of 64 elements beside these masks (C7513).
    serialised = RELEASE == (3, 8) and dim == 64 and result.assembler.startswith("ptxas 12.")
    assert ["C7513" in each.text for each in result.warnings] == [True] * serialised
    # The sums of rows alone, which each consumer lays out for their store once for a tile.
    moving = [each for each in conversions(parse_module(result.ttgir)) if each.cost.kind != ConversionKind.IN_THREAD]
    assert [(each.cost.kind, each.loops) for each in moving] == [(ConversionKind.IN_CTA, 1)] * consumers
    return result


def allowed(case, dim, assembler):
    """Bytes of a thread: with limits on both sides 160 registers are not enough for all."""
    if RELEASE <= (3, 7) and dim == 64 and assembler.startswith("ptxas 13."):
        return KEPT_BY_13[case]
    return (32 if RELEASE >= (3, 7) else 16) if dim == 64 and "window" in CASES[case] else 0


@pytest.mark.parametrize("dim", [64, 128] if volume.is_full() else [64])
@pytest.mark.parametrize("case", CASES if volume.is_full() else ["both sides"])
def test_options(case, dim):
    q, k = (heads(1, 1, length, dim, np.float16, 0) for length in (2000, 4000))
    launch = attention_launch(q, k, k, q, np.empty((1, 1, 2000), np.float32), **CASES[case])
    check(launch, case, dim)


@pytest.mark.parametrize("dim", [64, 128] if volume.is_full() else [64])
@pytest.mark.parametrize("case", CASES if volume.is_full() else ["bottom-right"])
def test_sequences(case, dim):
    q, sums = np.zeros((4000, 1, dim), np.float16), np.array([0, 100, 4000], np.int32)
    lse = np.empty((1, 4000), np.float32)
    _, launch = attention_varlen_launch(q, q, q, sums, sums, q, lse, **CASES[case]).parts
    assert "cp.async.bulk.tensor.5d.shared" in check(launch, case, dim).ptx
