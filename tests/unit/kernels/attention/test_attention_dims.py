"""`attention_forward` for heads of other lengths than 64 and 128, in the interpreter and compiled."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels import references
from tests.unit.kernels.attention.test_attention import run
from tests.unit.kernels.gemm.test_compiled import compiled
from tests.unit.kernels.references import DTYPES, TOLERANCE, heads, poisoned, relative_error
from tests.versions import RELEASE
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.config import SHARED_BYTES, AttentionConfig, Pieces, choose_config, pieces_of
from tlx_xdsl.kernels.attention.forward import attention_forward, attention_launch

DIMS = [(8, 8), (32, 32), (40, 64), (80, 48), (96, 96), (136, 8), (192, 128), (192, 192), (256, 64), (256, 256)]
SOME = [(96, 96), (136, 8), (192, 128), (256, 256)]


@pytest.mark.parametrize(("dim", "v_dim"), DIMS if volume.is_full() else SOME)
def test_dims(dim, v_dim):
    """Tails of queries and of keys, grouped heads; more than one tile of a program where Q's bytes become O's."""
    for causal in (False, True):
        run(2, 1, 150, 200, dim=dim, v_dim=v_dim, causal=causal, dtype="bf16", batch=1)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("dim", "v_dim"), [(96, 96), (192, 128)])
def test_text_for_stock_triton(dim, v_dim, policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        run(
            1, 1, 300, 150, dim=dim, v_dim=v_dim, causal=True, batch=1, stage="ttgir", schedule=policy, seed=seed
        )  # fmt: skip


@pytest.mark.parametrize(
    "config", [AttentionConfig(3, 160, 64, stages=3), AttentionConfig(2, 240, piece=128, v_piece=64)]
)
def test_configurations(config):
    run(2, 2, 200, 300, dim=96, v_dim=72, causal=True, batch=1, config=config)


def test_what_lies_beside_a_head_plays_no_part():
    """Blocks that are wider than a head meet what follows its rows in memory."""
    beside = [heads(1, 1, 50, 128, np.float16, seed) for seed in (1, 2, 3)]
    for each in beside:
        each[..., 80:] = np.nan
    q, k, v = (each[..., :80] for each in beside)
    memory = poisoned((1, 1, 50, 128), np.float16)
    memory[..., 80:] = 7
    attention_forward(q, k, v, causal=True, out=memory[..., :80])
    expected, _ = references.attention(q, k, v, 80**-0.5, True)
    assert relative_error(memory[..., :80], expected) < TOLERANCE["fp16"]
    assert (memory[..., 80:] == 7).all()


def test_results_have_the_length_of_v():
    q, k, v = (heads(1, 2, 10, dim, np.float16, seed) for dim, seed in ((48, 1), (48, 2), (24, 3)))
    out, lse = attention_forward(q, k, v, return_lse=True)
    assert (out.shape, lse.shape) == ((1, 2, 10, 24), (1, 2, 10))
    assert attention_forward(q[:, :, :0], k, v).shape == (1, 2, 0, 24)


def test_every_head_has_a_configuration_that_fits():
    """Tiles fit into shared memory, and S, P and the sums of P V into 176 registers of a consumer's 240."""
    for dim in range(8, 257, 8):
        for v_dim in range(8, 257, 8):
            config = choose_config(dim, False, v_dim)
            _, v = config.pieces(dim, v_dim)
            assert config.shared_bytes(dim, v_dim, o_in_q=config.is_o_in_q(dim, v_dim)) <= SHARED_BYTES
            assert v.width // 2 + config.block_n // 2 + config.block_n // 4 <= 176


def test_pieces_are_powers_of_two():
    assert [pieces_of(dim) for dim in (8, 64, 96, 104, 192, 200)] == [
        Pieces(32, 1), Pieces(64, 1), Pieces(32, 3), Pieces(128, 1), Pieces(64, 3), Pieces(256, 1)
    ]  # fmt: skip


def test_o_takes_the_bytes_of_q_where_both_do_not_fit():
    config = choose_config(192, False, 128)
    assert config.is_o_in_q(192, 128)
    assert config.shared_bytes(192, 128, o_in_q=True) <= SHARED_BYTES < config.shared_bytes(192, 128, o_in_q=False)
    assert not choose_config(96, False).is_o_in_q(96, 96)


@pytest.mark.backend
@pytest.mark.parametrize("causal", [False, True] if volume.is_full() else [True])
@pytest.mark.parametrize(("dim", "v_dim"), SOME)
def test_compiled(dim, v_dim, causal):
    kind = DTYPES["bf16"]
    q, k, v, out = (heads(1, 1, 200, each, kind, 0) for each in (dim, dim, v_dim, v_dim))
    result = compiled(attention_launch(q, k, v, out, np.empty(q.shape[:3], np.float32), causal=causal))
    # LLVM of Triton 3.9 keeps more alive around three sums of 32 columns.
    assert result.resources.spill_store_bytes <= (200 if RELEASE >= (3, 7) and v_dim == 96 else 0)
    assert result.warnings == ()
