"""Attention and the kernels of rows on a Hopper GPU, against float32 references."""

import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
gpu_checks = pytest.importorskip("tests.unit.kernels.gpu_checks")

DTYPES = ("fp16", "bf16")


def run(launch, label):
    launch()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention(dtype, dim, causal):
    for batch, heads, kv_heads, queries, keys in (
        (2, 4, 4, 512, 512), (1, 8, 2, 1000, 1000), (3, 2, 1, 77, 2049), (1, 2, 2, 3000, 130), (1, 1, 1, 1, 1),
        (5, 40, 8, 641, 641),
    ):  # fmt: skip
        shape = gpu_checks.AttentionShape(batch, heads, kv_heads, queries, keys, dim)
        for check in gpu_checks.check_attention(shape, dtype, "cuda", causal=causal, run=run):
            assert check.ok, str(check)


@pytest.mark.parametrize("columns", [1, 100, 4096, 20000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows(dtype, columns):
    for check in gpu_checks.check_rows(300, columns, dtype, "cuda"):
        assert check.ok, str(check)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
def test_repeated_attention(dim, causal):
    shape = gpu_checks.AttentionShape(4, 16, 4, 1999, 1999, dim)
    check = gpu_checks.repeated_attention(shape, "fp16", "cuda", causal=causal)
    assert check.ok, str(check)
