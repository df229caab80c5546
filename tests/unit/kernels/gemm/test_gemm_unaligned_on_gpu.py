"""Products of matrices that TMA can't read, on a Hopper GPU, against float32 references."""

import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
checks = pytest.importorskip("tests.unit.kernels.gemm.gpu_checks_unaligned")


@pytest.mark.parametrize("place", checks.PLACES)
@pytest.mark.parametrize("order", checks.ORDERS)
@pytest.mark.parametrize("way", ["direct", "copies"])
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_small_products(dtype, way, order, place):
    for shape in checks.SMALL:
        check = checks.check_product(shape, dtype, "cuda", way, order=order, place=place)
        assert check.ok, str(check)


@pytest.mark.parametrize("shape", checks.SHAPES)
@pytest.mark.parametrize("way", ["chosen", "direct", "copies"])
def test_products(way, shape):
    check = checks.check_product(shape, "fp16", "cuda", way)
    assert check.ok, str(check)


@pytest.mark.parametrize("shape", [(1, 4099, 8191), (33, 70, 60001), (4099, 4097, 4101)])
def test_repeated_products(shape):
    check = checks.check_repeated_product(shape, "cuda", "chosen")
    assert check.ok, str(check)


@pytest.mark.parametrize("shape", [(4099, 4101), (1, 70001), (60001, 7)])
def test_copies(shape):
    check = checks.check_copies(*shape, "cuda")
    assert check.ok, str(check)
