"""The functions of the library (random numbers, sorting, top-k, softmax) give the same numbers as machine code."""

# covers: target.cpu

import numpy as np
import pytest

from tests.gallery.language import library as kernels
from tests.unit import volume
from tests.unit.backend.cpu.native import Guarded, compiled
from tests.unit.interpreter.library.cases import calls
from tests.unit.transforms.linalg.side_by_side import compare, run
from tests.unit.transforms.linalg.test_library_kernels import NAMES, SUMS
from tlx_xdsl.frontend.foreign import source_of
from tlx_xdsl.runtime.compilation import Specialization
from tlx_xdsl.runtime.host_values import is_constant, signature_of
from tlx_xdsl.runtime.linalg import plain_module


@pytest.mark.parametrize("name", NAMES if volume.is_full() else NAMES[::8])
def test_a_library_function_gives_the_same_numbers(name):
    call = calls()[name]
    source = source_of(getattr(kernels, call.kernel))
    constants = {each.name for each in source.parameters if each.is_constexpr}
    constexprs = {key: value for key, value in call.arguments.items() if key in constants or is_constant(value)}
    given = {key: value for key, value in call.arguments.items() if key not in constexprs}
    signature = {key: signature_of(key, value) for key, value in given.items()}
    module = plain_module(source, Specialization(signature, constexprs))
    names, values = list(given), list(given.values())
    before = run(module, (1, 1, 1), values, names)
    after = [Guarded(each).array if isinstance(each, np.ndarray) else each for each in values]
    assert compiled(module).run((1, 1, 1), after) is None
    compare(before, after, names, SUMS if call.ulps else 0)
