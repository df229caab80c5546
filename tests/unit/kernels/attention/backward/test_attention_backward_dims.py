"""`attention_backward` of heads of other lengths than 64 and 128, in the interpreter."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.attention.backward.test_attention_backward import gradients, run
from tests.unit.kernels.references import TOLERANCE, heads, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.backward.call import attention_backward

DIMS = [(96, 96), (48, 8)]
MORE_DIMS = [(8, 64), (40, 40), (64, 128), (80, 112), (104, 32), (128, 64)]


@pytest.mark.parametrize(("dim", "v_dim"), DIMS + MORE_DIMS if volume.is_full() else DIMS)
@pytest.mark.parametrize("causal", [False, True])
def test_zeros_fill_a_block(dim, v_dim, causal):
    for deterministic in (False, True):
        run(4, 2, 70, 150, dim=dim, v_dim=v_dim, causal=causal, dtype="bf16", deterministic=deterministic, batch=1)


WIDE = [(192, 128), (256, 256)]
MORE_WIDE = [(136, 8), (192, 192), (64, 200), (200, 136), (8, 256)]


@pytest.mark.parametrize(("dim", "v_dim"), WIDE + MORE_WIDE if volume.is_full() else WIDE)
@pytest.mark.parametrize("causal", [False, True])
def test_two_consumers_share_the_keys_of_long_heads(dim, v_dim, causal):
    """More queries than keys, too, and tiles that take turns in the same buffers."""
    for queries, keys in ((70, 300), (300, 70)) if causal or volume.is_full() else ((70, 300),):
        run(4, 2, queries, keys, dim=dim, v_dim=v_dim, causal=causal, dtype="bf16", batch=1)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("dim", "v_dim"), WIDE if volume.is_full() else WIDE[:1])
def test_text_of_long_heads_for_stock_triton(dim, v_dim, policy):
    for seed in range(5 if volume.is_full() else 1):
        run(2, 1, 200, 150, dim=dim, v_dim=v_dim, causal=True, batch=1, stage="ttgir", schedule=policy, seed=seed)


@pytest.mark.parametrize("policy", POLICIES if volume.is_full() else POLICIES[:1])
def test_text_for_stock_triton(policy):
    """The text that a GPU's code is made of runs, too."""
    for deterministic in (False, True):
        run(2, 1, 140, 150, dim=96, v_dim=72, causal=True, batch=1, deterministic=deterministic,
            stage="ttgir", schedule=policy)  # fmt: skip


@pytest.mark.parametrize("deterministic", [False, True])
def test_what_lies_beside_a_head_plays_no_part(deterministic):
    """Blocks that are wider than a head meet what follows its rows in memory."""
    beside = [heads(1, 1, 50, 128, np.float16, seed) for seed in (1, 2, 3, 4)]
    for each in beside:
        each[..., 96:] = np.nan
    q, k, v, dout = (each[..., :96] for each in beside)
    out, lse, *expected = gradients(q, k, v, dout, 0.1, True)
    memory = [poisoned((1, 1, 50, 128), np.float16) for _ in range(4)]
    memory[3][..., :96] = out
    for each in memory[:3]:
        each[..., 96:] = 7
    results = dict(zip(("dq", "dk", "dv"), (each[..., :96] for each in memory), strict=False))
    given = (q, k, v, memory[3][..., :96], lse.astype(np.float32), dout)
    attention_backward(*given, causal=True, scale=0.1, deterministic=deterministic, **results)
    for each, wanted in zip(memory, expected, strict=False):
        assert relative_error(each[..., :96], wanted) < TOLERANCE["fp16"]
        assert (each[..., 96:] == 7).all()
