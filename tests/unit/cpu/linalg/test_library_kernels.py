"""The functions of the library (random numbers, sorting, top-k, softmax, flips) give the same numbers in linalg."""

# covers: triton-to-linalg, tl.standard, tl.random

import numpy as np
import pytest

from tests.gallery.language import library as kernels
from tests.unit import volume
from tests.unit.cpu.linalg.side_by_side import compare, lowered, run
from tests.unit.interpreter.library.cases import calls
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.runtime.driver.host_values import is_constant, signature_of
from tlx_xdsl.text.diagnostics import collected_diagnostics

NAMES = list(calls())
SUMS = 64
"""Units of the largest element by which floats may differ that are summed in another order."""


def library_module(name):
    """The module of a call of the library, and the names and values of its arguments."""
    call = calls()[name]
    source = source_of(getattr(kernels, call.kernel))
    constants = {each.name for each in source.parameters if each.is_constexpr}
    constexprs = {key: value for key, value in call.arguments.items() if key in constants or is_constant(value)}
    given = {key: value for key, value in call.arguments.items() if key not in constexprs}
    signature = {key: signature_of(key, value) for key, value in given.items()}
    return plain_module(source, Specialization(signature, constexprs)), list(given), list(given.values())


@pytest.mark.parametrize("name", NAMES if volume.is_full() else NAMES[::4])
def test_a_library_function_gives_the_same_numbers(name):
    module, names, values = library_module(name)
    with collected_diagnostics():
        linalg = lowered(module)
    before, after = (run(each, (1, 1, 1), values, names) for each in (module, linalg))
    compare(before, after, names, SUMS if calls()[name].ulps else 0)
    assert any(
        isinstance(each, np.ndarray) and each.tobytes() != old.tobytes()
        for each, old in zip(after, values, strict=True)
        if isinstance(each, np.ndarray)
    )
