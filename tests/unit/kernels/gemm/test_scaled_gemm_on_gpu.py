"""`scaled_gemm` on a Hopper GPU, against float64 references and beside torch."""

import pytest

from tlx_xdsl.kernels.gemm.scaled.config import CONFIGS, TIMES

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
gpu_checks_fp8 = pytest.importorskip("tests.unit.kernels.gemm.gpu_checks_fp8")

SHAPES = ((512, 512, 512), (1000, 1304, 712), (1, 1, 1), (129, 2051, 65), (64, 1536, 4096), (4096, 512, 1024))


def run(launch, label):
    launch()


@pytest.mark.parametrize("name", [None, *CONFIGS])
@pytest.mark.parametrize("mode", gpu_checks_fp8.MODES)
def test_scaled_gemm(mode, name):
    sums = "fast" if mode.endswith("fast") else "blocks" if mode.startswith("blocks") else "exact"
    if name is not None and name not in TIMES[sums]:
        pytest.skip("no configuration of such sums")
    for shape in SHAPES:
        config = None if name is None else CONFIGS[name].fitted(2, sums)
        for check in gpu_checks_fp8.check_scaled(shape, mode, "cuda", config=config, run=run):
            assert check.ok, str(check)


@pytest.mark.parametrize("out", gpu_checks_fp8.OUT)
@pytest.mark.parametrize("dtypes", [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")])
def test_types(dtypes, out):
    for mode in gpu_checks_fp8.MODES:
        for check in gpu_checks_fp8.check_scaled((300, 520, 1100), mode, "cuda", dtypes=dtypes, out=out, run=run):
            assert check.ok, str(check)


@pytest.mark.parametrize("dtypes", [("bf16", "e4m3"), ("fp16", "e4m3"), ("bf16", "e5m2")])
@pytest.mark.parametrize("mode", gpu_checks_fp8.MIXED_MODES)
def test_mixed(mode, dtypes):
    for shape in ((1, 512, 512), (17, 1000, 712), (100, 2048, 2048), (513, 264, 1000)):
        check = gpu_checks_fp8.check_mixed(shape, mode, "cuda", dtypes=dtypes, run=run)
        assert check.ok, str(check)


@pytest.mark.parametrize("shape", [(4096, 4096, 4096), (128, 7168, 4096), (64, 24576, 1536), (1000, 1304, 712)])
@pytest.mark.parametrize("mode", gpu_checks_fp8.MODES)
def test_repeated(mode, shape):
    check = gpu_checks_fp8.repeated_scaled(shape, mode, "cuda")
    assert check.ok, str(check)
