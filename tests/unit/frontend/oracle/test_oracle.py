"""The frontend against stock Triton's: the same kernels give the same IR.

`python -m tests.oracle.report NAME` shows why a kernel is not equal; `tests/oracle` says what "equal" means.
"""

from functools import cache
from pathlib import Path

import pytest

from tests.oracle import features, loading, ours
from tests.oracle.known import DELIBERATE
from tests.oracle.report import verdict
from tests.oracle.stock import Stock
from tests.versions import NEWEST, why_not_installed

if reason := why_not_installed(NEWEST, "the language is that of"):
    pytest.skip(reason, allow_module_level=True)

pytestmark = pytest.mark.backend


@cache
def _kernels() -> dict[str, tuple[Path, str]]:
    """Name -> file and case: the kernels of the oracle, and those of the corpus as further ones."""
    own = {f"{path.stem}.{name}": (path, name) for path, name in loading.names()}
    return own | {f"corpus.{name}": (loading.CORPUS, name) for name in loading.corpus_names()}


def _library(kernel: str) -> bool:
    path, name = _kernels()[kernel]
    return loading.load(path, ours=False)[name].library


@pytest.fixture(scope="module")
def stock():
    worker = Stock()
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def results():
    """Kernels that have been compared -> whether they are equal."""
    return {}


@pytest.mark.parametrize("kernel", _kernels())
def test_the_kernel_is_equal(kernel, stock, results):
    library = _library(kernel)
    reason, _, _ = verdict(stock, *_kernels()[kernel], library=library)
    if not library:
        results[kernel] = reason is None
    if kernel in DELIBERATE:
        assert reason, f"{kernel} is equal: take it off the list"
        assert "differ" in reason, reason
    else:
        assert not reason, reason


def test_the_count(results, record_property, capsys):
    """States N of N; says nothing when only some kernels were chosen."""
    primitive = [kernel for kernel in _kernels() if not _library(kernel)]
    if len(results) < len(primitive):
        pytest.skip("not all kernels were compared")
    equal = sum(results.values())
    record_property("equal", f"{equal} of {len(primitive)}")
    with capsys.disabled():
        print(f"\n{equal} of {len(primitive)} kernels equal, {len(DELIBERATE)} differ deliberately")
    assert sum(not kernel.startswith("corpus.") for kernel in primitive) >= 60
    assert equal + len(DELIBERATE) == len(primitive)
    assert len(DELIBERATE) * 20 <= len(primitive)


def test_a_death_of_stock_is_an_answer(stock):
    path, name = _kernels()["control.guards"]
    text = stock.kernel(path, name).frontend
    assert "custom op 'no' is unknown" in stock.passes("no text").error
    stock._process.kill()
    assert "died" in stock.passes(text).error
    assert stock.passes(text).final


def test_every_feature_is_shown():
    missing = [feature for feature, kernels in features.table().items() if not kernels]
    assert missing == []


def test_kernels_of_the_list_exist():
    assert set(DELIBERATE) <= set(_kernels())


@pytest.mark.parametrize("kernel", [kernel for kernel in _kernels() if not kernel.startswith("corpus.")])
def test_a_kernel_of_real_triton_gives_the_same_text(kernel):
    """A file with stock's imports and stock's `jit` gives the text, letter by letter, that ours gives."""
    path, name = _kernels()[kernel]
    assert ours.text(loading.load(path, ours=False)[name]) == ours.text(loading.load(path, ours=True)[name])
