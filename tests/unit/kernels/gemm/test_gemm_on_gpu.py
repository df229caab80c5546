"""`gemm` on a Hopper GPU, against float32 references: tiles, divisions of the work, epilogues, and the same bits."""

import itertools

import pytest

from tlx_xdsl.kernels.gemm.config import CONFIGS, Choice
from tlx_xdsl.kernels.gemm.division import divisions
from tlx_xdsl.kernels.gemm.epilogues import EPILOGUES

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
gpu_checks = pytest.importorskip("tests.unit.kernels.gpu_checks")
gpu_checks_gemm = pytest.importorskip("tests.unit.kernels.gemm.gpu_checks_gemm")


def run(launch, label):
    launch()


def processors():
    return torch.cuda.get_device_properties(0).multi_processor_count


SHAPES = ((512, 512, 512), (1000, 1304, 712), (1, 1, 1), (129, 2051, 65), (4096, 512, 1024))


@pytest.mark.parametrize("layouts", list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("name", ["large", "192x192 by 2", "64x96", "medium", "tiny"])
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_layouts_and_types(dtype, name, layouts):
    for shape in SHAPES:
        check = gpu_checks.check_gemm(shape, dtype, "cuda", layouts=layouts, config=CONFIGS[name], run=run)
        assert check.ok, str(check)


@pytest.mark.parametrize("name", CONFIGS)
def test_all_divisions_of_the_work(name):
    for (m, n, k), swapped in itertools.product((*SHAPES, (300, 200, 20000)), (False, True)):
        if swapped and CONFIGS[name].schedule == "pingpong":
            continue
        for choice in divisions(CONFIGS[name], *((n, m) if swapped else (m, n)), k, processors(), swapped):
            check = gpu_checks.check_gemm((m, n, k), "fp16", "cuda", config=choice, run=run)
            assert check.ok, str(check)


@pytest.mark.parametrize(
    "shape", [(16, 8192, 8192), (2560, 2560, 2560), (512, 512, 16384), (1001, 1303, 711), (7, 9, 65536)]
)
def test_choices_of_the_model(shape):
    for layouts in itertools.product((False, True), repeat=2):
        check = gpu_checks.check_gemm(shape, "fp16", "cuda", layouts=layouts, run=run)
        assert check.ok, str(check)


@pytest.mark.parametrize("name", [*EPILOGUES, "everything"])
def test_epilogues(name):
    for shape in ((1000, 1304, 712), (256, 264, 8192), (16, 4096, 1024)):
        check = gpu_checks_gemm.check_epilogue(name, shape, "fp16", "cuda", run=run)
        assert check.ok, str(check)


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("name", ["large", "192x192 by 2", "320", "64x16", "medium"])
def test_an_epilogue_of_all_operands(name, by_columns):
    m, n, k = shape = 1000, 1304, 712
    config = CONFIGS[name]
    choices = [Choice(config, 66)]
    if config.schedule == "cooperative":
        # C by columns is multiplied as C^T, and that as C again.
        choices += divisions(config, *((m, n) if by_columns else (n, m)), k, processors(), True)
    for choice in choices:
        check = gpu_checks_gemm.check_epilogue(
            "everything", shape, "bf16", "cuda", by_columns=by_columns, config=choice, run=run
        )
        assert check.ok, str(check)


@pytest.mark.parametrize(
    "shape", [(4096, 4096, 4096), (8192, 8192, 512), (1000, 1304, 712), (2560, 2560, 2560), (16, 8192, 8192)]
)
def test_repeated_runs_give_the_same_bits(shape):
    check = gpu_checks.repeated_gemm(shape, "fp16", "cuda")
    assert check.ok, str(check)


@pytest.mark.parametrize("shape", [(512, 512, 16384), (1536, 1536, 1536)])
@pytest.mark.parametrize("name", ["large", "64x128", "192x192", "192 by 2"])
def test_repeated_pieces_give_the_same_bits(name, shape):
    choices = divisions(CONFIGS[name], *shape, processors())
    for check in gpu_checks_gemm.repeated_choices(shape, choices, "cuda"):
        assert check.ok, str(check)
