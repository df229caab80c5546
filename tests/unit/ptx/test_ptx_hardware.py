"""The machine gives the bits of an H200 (`python -m tests.unit.ptx.hardware.compare` prints the whole table)."""

import pytest

from tests.unit import volume
from tests.unit.ptx.hardware import kept, launches
from tests.unit.ptx.hardware.all_cases import all_cases
from tests.unit.ptx.hardware.mma_cases import CASES as PRODUCTS
from tests.versions import INSTALLED

RESULTS = kept.load()
CASES = all_cases()
SHORT = [
    "plain quotient of all magnitudes", "plain exponentials of all magnitudes", "plain logarithms of all magnitudes",
    "plain roots of all magnitudes", "plain layer_norm_rows fp32", "plain attention causal bf16", "plain adam",
    "plain product fp16 to fp16 subnormal", "plain product e4m3 to fp32 of all magnitudes",
    "plain product fp32 to fp32 subnormal", "language gelu", "language normalised_rows",
    "cross_entropy gradient fp32", "softmax fp32 5x100", "swiglu gradient fp32",
]  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_mma_have_the_bits_of_the_gpu(name):
    """PTX that was written by hand."""
    done = launches.run(CASES[name])
    assert launches.digest(done.ptx) == RESULTS.cases[name].ptx
    assert [kept.digest(each) for each in done.outputs] == RESULTS.cases[name].hashes


@pytest.mark.backend
@pytest.mark.parametrize(
    "name", [name for name in RESULTS.cases if name not in PRODUCTS] if volume.is_full() else SHORT
)
def test_kernels_have_the_bits_of_the_gpu(name):
    """Compare the first elements of a case that differed when the results were kept."""
    expected = RESULTS.cases[name]
    done = launches.run(CASES[name])
    same = [kept.digest(each) for each in done.outputs] == expected.hashes
    if not same and launches.digest(done.ptx) != expected.ptx:
        pytest.skip(f"Triton {INSTALLED} makes other PTX than ran on the GPU (Triton {RESULTS.triton})")
    assert same or expected.cause
    for found, first in zip(done.outputs, expected.first, strict=True):
        assert kept.first(found) == pytest.approx(first, rel=1e-5, abs=max(expected.distance, 1e-30), nan_ok=True)


def test_all_cases_are_equal():
    assert len(RESULTS.cases) >= 350
    assert not [name for name, each in RESULTS.cases.items() if each.cause]
    assert RESULTS.cases.keys() <= CASES.keys()
