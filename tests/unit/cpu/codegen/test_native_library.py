"""The functions of the library (random numbers, sorting, top-k, softmax) give the same numbers as machine code."""

# covers: target.cpu

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.cpu.codegen.native import Guarded, compiled
from tests.unit.cpu.linalg.side_by_side import compare, run
from tests.unit.cpu.linalg.test_library_kernels import NAMES, SUMS, library_module
from tests.unit.interpreter.library.cases import calls


@pytest.mark.parametrize("name", NAMES if volume.is_full() else NAMES[::8])
def test_a_library_function_gives_the_same_numbers(name):
    module, names, values = library_module(name)
    before = run(module, (1, 1, 1), values, names)
    after = [Guarded(each).array if isinstance(each, np.ndarray) else each for each in values]
    assert compiled(module).run((1, 1, 1), after) is None
    compare(before, after, names, SUMS if calls()[name].ulps else 0)
