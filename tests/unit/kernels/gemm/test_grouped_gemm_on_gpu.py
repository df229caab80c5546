"""The grouped products on a Hopper GPU, against float32 references."""

import itertools

import pytest

from tlx_xdsl.kernels.gemm.grouped.config import CONFIGS

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
checks = pytest.importorskip("tests.unit.kernels.gemm.gpu_checks_grouped")

DTYPES = ("fp16", "bf16")
SIZES = ([1], [0, 5, 130, 0, 64, 700, 0], checks.random_sizes(64, 5000), checks.random_sizes(512, 3000), [0] * 7)


def run(launch, label):
    launch()


def assert_ok(*found):
    for check in found:
        assert check.ok, str(check)


@pytest.mark.parametrize("layouts", [(False, False), (False, True)])
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows(dtype, name, layouts):
    for sizes, (k, n) in itertools.product(SIZES, ((1, 1), (200, 520), (1024, 264))):
        options = {"layouts": layouts, "config": CONFIGS[name], "run": run}
        assert_ok(*checks.check_grouped(sizes, k, n, dtype, "cuda", **options))


@pytest.mark.parametrize("name", [name for name in CONFIGS if CONFIGS[name].b_parts == 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(dtype, name):
    for sizes, (m, n) in itertools.product(SIZES[:-1], ((1, 1), (200, 520))):
        assert_ok(checks.check_grouped_sums(sizes, m, n, dtype, "cuda", config=CONFIGS[name], run=run))


@pytest.mark.parametrize("name", CONFIGS)
def test_scaled_rows(name):
    for sizes, (k, n) in itertools.product(SIZES[:-1], ((16, 8), (208, 520), (1024, 264))):
        options = {"config": CONFIGS[name].of_step(2), "run": run}
        assert_ok(*checks.check_scaled_grouped(sizes, k, n, "cuda", **options))


@pytest.mark.parametrize("sizes", [[1024] * 8, checks.random_sizes(64, 16384), checks.random_sizes(300, 2000)])
def test_choices(sizes):
    """Run the choices for groups of such sizes, also the calls that find their plan."""
    assert_ok(*checks.check_grouped(sizes, 1024, 2048, "bf16", "cuda", run=run))
    assert_ok(checks.check_grouped_sums(sizes, 1024, 2048, "bf16", "cuda", run=run))


def test_repeated():
    assert_ok(*checks.repeated_grouped(checks.random_sizes(64, 9000), 1024, 1024, "bf16", "cuda"))
