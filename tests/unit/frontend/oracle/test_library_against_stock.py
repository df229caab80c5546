"""The library of the language against stock Triton's, by value: both sides' IR is run in numpy."""

# covers: tl.standard, tl.random, tl.reduction

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle import loading, ours
from tests.oracle.stock import Stock
from tests.unit.interpreter.synchronisation.recording import stores_of
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.backend

KERNELS = loading.KERNELS / "library.py"
ARRAYS = {"fp32": np.float32, "i32": np.int32, "fp16": np.float16}


@pytest.fixture(scope="module")
def stock():
    worker = Stock()
    yield worker
    worker.close()


def _argument(spelled: str, generator: np.random.Generator) -> object:
    if not spelled.startswith("*"):
        return np.int32(generator.integers(1, 1000))
    dtype = ARRAYS[spelled.strip("*").partition(":")[0]]
    return (generator.standard_normal(4096) * 100).astype(dtype)


@pytest.mark.filterwarnings("ignore:tl.softmax")
@pytest.mark.parametrize("name", list(loading.load(KERNELS, ours=True)))
def test_stock_stores_the_same_values(stock: Stock, name: str):
    case = loading.load(KERNELS, ours=True)[name]
    answer = stock.kernel(KERNELS, name)
    assert not answer.error
    stored = []
    for module in (ours.build(case), parse_module(answer.final)):
        generator = np.random.default_rng(0)
        stored.append(stores_of(module, *(_argument(spelled, generator) for spelled in case.arguments.values())))
    assert len(stored[0]) == len(stored[1]) > 0
    for (place, mine), (their_place, theirs) in zip(*stored, strict=True):
        np.testing.assert_array_equal(place, their_place)
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
