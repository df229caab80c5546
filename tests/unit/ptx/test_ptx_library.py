"""Every kernel to import, from the final PTX that the installed Triton makes of it: what it asks of the interpreter."""

import re
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl.kernels
from tests.unit import volume
from tests.unit.kernels import references
from tests.unit.kernels.attention import test_attention, test_attention_options, test_attention_varlen
from tests.unit.kernels.attention.backward import test_attention_backward
from tests.unit.kernels.attention.decode import test_attention_decode, test_attention_decode_fp8
from tests.unit.kernels.attention.fp8 import test_attention_fp8
from tests.unit.kernels.gemm import (
    test_gemm,
    test_gemm_epilogues,
    test_gemm_unaligned,
    test_grouped_gemm,
    test_grouped_gemm_scaled,
    test_scaled_gemm,
    test_scaled_gemm_mixed,
)
from tests.unit.kernels.references import heads
from tests.unit.kernels.rows import test_cross_entropy, test_elementwise, test_norm_residual, test_norms, test_rows
from tlx_xdsl.kernels.attention.forward import attention_forward
from tlx_xdsl.kernels.calls.launching import Launch

pytestmark = pytest.mark.backend

F16 = np.float16


def _pieces_of_tiles(patch):
    gemm = test_gemm
    shape, choices = gemm.streams(gemm.TILES["strips"], *gemm.STREAMS["after a round"])
    gemm.check(*gemm.operands(*shape), choices[0])


def _clusters_that_share_k(patch):
    config = test_gemm.SPLIT_TILES["strips"]
    shape = config.block_m + 5, config.tile_n + 3, 64 * 9 - 9
    test_gemm.check(*test_gemm.operands(*shape), test_gemm.shared(config, *shape, 2))


def _attention_in_fp8(dim, causal):
    """The tensor cores keep fewer bits of sums of fp8 than the interpreter: the logarithms are less exact."""
    q, k, v = (heads(1, 1, 130, dim, test_attention_fp8.E4M3, seed) for seed in (1, 2, 3))
    out, lse = attention_forward(q, k, v, causal=causal, return_lse=True)
    expected, sums = references.attention(q, k, v, dim**-0.5, causal)
    assert references.relative_error(out, expected) < test_attention_fp8.TOLERANCE
    assert references.relative_error(lse, sums) < 1e-4


def _gradients(queries, keys, **options):
    return lambda patch: test_attention_backward.run(1, 1, queries, keys, batch=1, **options)


def _gemm(tiles, *options):
    return lambda patch: test_gemm.check(*test_gemm.operands(200, 203, 150, *options), test_gemm.TILES[tiles])


def _scaled(name, scaling, fast):
    tiles = test_scaled_gemm.TILES[name]
    return lambda patch: test_scaled_gemm.run(130, 200, 300, tiles, scaling, fast=fast, programs=2)


def _norms_in_clusters(patch):
    test_norms.in_small_pieces(patch, warps=4)
    test_norms.check_rows_of_clusters(True, 1000)


def _norm_of_long_rows(patch):
    test_norm_residual.block_by_block(patch)
    test_norms.test_rms_norm((5, 100), np.float32, 1e-6)


CASES = {
    "attention 64": lambda patch: test_attention.run(1, 1, 70, 150, batch=1),
    "attention 64 causal bf16": lambda patch: test_attention.run(2, 1, 200, 200, batch=1, causal=True, dtype="bf16"),
    "attention 128 causal": lambda patch: test_attention.run(1, 1, 150, 150, dim=128, batch=1, causal=True),
    "attention 96": lambda patch: test_attention.run(1, 1, 70, 150, dim=96, batch=1),
    "attention 192 and 128": lambda patch: test_attention.run(1, 1, 70, 150, dim=192, v_dim=128, batch=1),
    "attention 256": lambda patch: test_attention.run(1, 1, 70, 150, dim=256, batch=1),
    "attention of a window": lambda patch: test_attention_options.run(1, 1, 150, 150, window=(40, 0), causal=True),
    "attention with caps and sinks": lambda patch: test_attention_options.test_the_type_of_sinks(),
    "attention of sequences": lambda patch: test_attention_varlen.test_lengths(64, True),
    "attention in fp8": lambda patch: _attention_in_fp8(64, False),
    "attention in fp8 causal 128": lambda patch: _attention_in_fp8(128, True),
    "attention for decoding": lambda patch: test_attention_decode.test_splits(64, 3),
    "attention of a cache in 8 bits": lambda patch: test_attention_decode_fp8.test_columns(4),
    "attention of pages": lambda patch: test_attention_decode.test_pages(16, 128, 128),
    "gradients 64": _gradients(70, 150),
    "gradients 128 causal": _gradients(150, 150, dim=128, causal=True),
    "gradients in a fixed order": _gradients(70, 150, deterministic=True),
    "gradients 192": _gradients(70, 70, dim=192),
    "gradients 256 causal": _gradients(70, 70, dim=256, causal=True),
    "gemm cooperative": _gemm("cooperative"),
    "gemm ping-pong bf16": _gemm("pingpong", "bf16", True, False),
    "gemm in strips": _gemm("strips"),
    "gemm in clusters": _gemm("cluster", "fp16", False, True),
    "gemm in pieces along K": _pieces_of_tiles,
    "gemm in clusters that share K": _clusters_that_share_k,
    "gemm and an epilogue": lambda patch: test_gemm_epilogues.test_names("bias_gelu"),
    "gemm and swiglu": lambda patch: test_gemm_epilogues.test_two_halves_in_the_tile_of_pairs(200, False),
    "gemm that TMA can't read": lambda patch: test_gemm_unaligned.test_direct_products_read_any_memory(
        "rows", "padded"
    ),
    "gemm, split, that TMA can't read": lambda patch: test_gemm_unaligned.test_sizes((3, 2, 1000), "fp16"),
    "gemm of copies": lambda patch: test_gemm_unaligned.test_what_tma_cannot_read_is_copied(
        "columns", "strided", "padded columns", {"left", "right"}
    ),
    "gemm of one copy": lambda patch: test_gemm_unaligned.test_copies("slice", DTYPE),
    "groups of rows": lambda patch: test_grouped_gemm.run_rows((0, 5, 70), 80, 72, test_grouped_gemm.BY_ROWS),
    "sums of groups": lambda patch: test_grouped_gemm.test_sums("bf16"),
    "groups of rows in fp8": lambda patch: test_grouped_gemm_scaled.test_result_is_made(),
    "scaled gemm": _scaled("strips", "blocks", False),
    "scaled gemm, fast": _scaled("flat", "tensors", True),
    "scaled gemm, ping-pong": _scaled("pingpong", "rows", True),
    "scaled gemm of mixed types": lambda patch: test_scaled_gemm_mixed.run(17, "block columns"),
    "softmax": lambda patch: test_rows.test_softmax((3, 7, 100), F16, 1e-3),
    "softmax of long rows": lambda patch: test_rows.test_softmax_of_long_rows(9001, F16, 1e-3),
    "gradient of softmax": lambda patch: test_rows.test_the_gradient_of_softmax((5, 100), 999, F16, 1e-3, patch),
    "gradient of softmax of long rows": lambda patch: test_rows.test_the_gradient_of_softmax(
        (3, 9001), 1000, np.float32, 1e-6, patch
    ),
    "layer norm": lambda patch: test_rows.test_layer_norm(F16, 4e-3, True, True),
    "rms norm": lambda patch: test_norms.test_rms_norm((5, 100), np.float32, 1e-6),
    "gradients of norms": lambda patch: test_norms.test_gradients(True, (5, 100), np.float32, 2e-5),
    "norms in clusters": _norms_in_clusters,
    "norm of long rows": _norm_of_long_rows,
    "gradients of norms of long rows": lambda patch: test_norms.test_rows_that_registers_do_not_hold(
        patch, False, 9000
    ),
    "norm of a sum": lambda patch: test_norm_residual.test_gradient_of_the_sum(
        patch, True, F16, 5e-3, test_norm_residual.in_one_cta
    ),
    "cross entropy": lambda patch: test_cross_entropy.test_losses_and_gradients((5, 100), 0.1, F16, 1e-3),
    "mean of cross entropy": lambda patch: test_cross_entropy.test_sums_and_means(np.int64),
    "swiglu": lambda patch: test_elementwise.test_swiglu((5, 100), F16, 2e-3),
    "rope": lambda patch: test_elementwise.test_rope((2, 3, 70, 64), True, F16, 2e-3),
}
"""Calls at small sizes, each with its own comparison with numpy."""
DTYPE = np.dtype(F16)
SOME = ["attention 64 causal bf16", "gemm in clusters", "softmax of long rows", "rope"]


@pytest.fixture
def launched(monkeypatch):
    """Launches run PTX; gives the names of the kernels that were."""
    names = []
    interpret = Launch.interpret

    def run(launch, **options):
        names.append(launch.kernel.source.name)
        return interpret(launch, **{**options, "stage": "ptx"})

    monkeypatch.setattr(Launch, "interpret", run)
    monkeypatch.setattr(Launch, "run_on_cpu", run)
    return names


SEEN = set()


@pytest.mark.parametrize("name", CASES if volume.is_full_for_each_version() else SOME)
def test_kernel(name, launched, monkeypatch):
    CASES[name](monkeypatch)
    assert launched
    SEEN.update(launched)


PASSED_ON = {"add_two", "add_three", "drained_blocks", "overlapped_blocks"}
"""Functions that kernels choose or hand to reductions."""


def kernels_that_are_launched():
    """The kernels of the library that no kernel calls, and that are no function of an epilogue."""
    files = [path for path in Path(tlx_xdsl.kernels.__file__).parent.rglob("*.py") if path.stem != "epilogues"]
    code = "\n".join(path.read_text() for path in files)
    names = re.findall(r"@tlx_xdsl\.jit\n(?:# .*\n)*def (\w+)\(", code)
    return {name for name in names if not re.search(rf"(?<!def )\b{name}\(", code)} - PASSED_ON


@pytest.mark.skipif(not volume.is_full_for_each_version(), reason="all cases run with TLX_TEST_VOLUME=full only")
def test_all_kernels_were_run():
    assert kernels_that_are_launched() - SEEN == set()
