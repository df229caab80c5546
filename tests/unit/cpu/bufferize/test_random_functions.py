"""Functions on tensors at random give the same bits on memory, fused or not."""

# covers: linalg-fuse-elementwise, linalg-bufferize

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.cpu.bufferize.random_functions import STORES, Generator
from tests.unit.cpu.linalg.side_by_side import run
from tlx_xdsl.cpu.bufferize.bufferize import BufferizePass, bufferize_pipeline
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module

SEEDS = range(1000 if volume.is_full() else 16)


def _outputs(module, seed):
    numbers = np.random.default_rng(seed).standard_normal(12).astype(np.float32)
    return run(module, (1, 1, 1), [numbers, np.zeros(4 * STORES, np.float32)], ["x", "out"])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_function_gives_the_same_bits(seed):
    text = Generator(seed).text()
    module = parse_module(text)
    verify_module(module)
    expected = _outputs(module, seed)
    for passes in ((BufferizePass(),), bufferize_pipeline()):
        module = parse_module(text)
        for each in passes:
            each.apply(make_context(), module)
        verify_module(module)
        for wanted, found in zip(expected, _outputs(module, seed), strict=True):
            np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
