"""The oracle's kernels and random addresses in linalg, run by upstream MLIR: the numbers of our interpreter, or numpy.

Of these kernels every twelfth is run; all of them with TLX_TEST_VOLUME=full.
"""

# covers: triton-to-linalg

import numpy as np
import pytest

from tests.fuzz import pointers
from tests.oracle import ours, upstream_mlir
from tests.oracle.upstream_mlir import MLIR_OPT_19, REASON
from tests.unit import volume
from tests.unit.cpu.linalg.side_by_side import lowered, run
from tests.unit.interpreter.oracle import running
from tests.unit.interpreter.oracle.test_on_gpu import CHECKS, SINGLE, TOLERANCE
from tlx_xdsl.cpu.linalg.for_upstream import ForUpstreamPass
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.numerics.arrays import is_float
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import mlir_profile
from tlx_xdsl.text.verify import verify_module

REFUSED = {"cuda_functions", "atomic_memory"}
"""Kernels that are not lowered."""
SLOW = {"sorting"}
"""A kernel of 5,000 operations, which LLVM takes minutes for at any level but 0."""

CHOSEN = [
    name
    for name, check in CHECKS.items()
    if check.kernel not in REFUSED and (volume.is_full() or check.kernel not in SLOW)
][:: 1 if volume.is_full() else 12]
CHOSEN += [] if volume.is_full() else ["eight_bit_floats-0", "scalar_casts-0"]


def in_linalg(name):
    with collected_diagnostics():
        return lowered(ours.launchable(running.cases()[CHECKS[name].kernel]))


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("name", CHOSEN)
def test_upstream_has_the_numbers_of_the_interpreter(name):
    check, module = CHECKS[name], in_linalg(name)
    types = running.cases()[check.kernel].arguments
    rng = np.random.default_rng(7)
    arguments = {key: make(rng) for key, make in check.arguments.items()}
    names = [key for key, type_ in types.items() if isinstance(type_, str)]
    values = [arguments[key] for key in names]
    kernel = kernel_of(module)
    given = [
        value.copy() if isinstance(value, np.ndarray) else np.asarray(value).astype(dtype_of(type_))[()]
        for value, type_ in zip(values, kernel.function_type.inputs.data, strict=False)
    ]
    found = upstream_mlir.run_kernel(
        text_for_upstream(module), kernel.sym_name.data, check.grid, given, int(check.kernel not in SLOW)
    )
    expected = [value for value in run(module, check.grid, values, names) if isinstance(value, np.ndarray)]
    for one, other in zip(expected, found, strict=True):
        compare(one, other, single=check.kernel in SINGLE)


@pytest.mark.skipif(MLIR_OPT_19 is None, reason="mlir-opt-19 is not installed (Debian: mlir-19-tools)")
@pytest.mark.parametrize("name", CHOSEN)
def test_llvm_19_reads_the_kernel(name):
    upstream_mlir.read_by_19(print_module(in_linalg(name), profile=mlir_profile("19")))


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("number", range(200 if volume.is_full() else 6))
def test_upstream_has_the_numbers_of_random_addresses(number):
    program = pointers.program(number)
    made = pointers.arrays(program, number)
    if made is None:
        return
    values, expected = made
    text, _ = pointers.lowered(pointers.text(program))
    copies = pointers.guarded(values, np.copy)
    given = [value if isinstance(value, np.ndarray) else np.int32(value) for value in copies]
    module = parse_module(text)
    text = text_for_upstream(module)
    found = upstream_mlir.run_kernel(text, kernel_of(module).sym_name.data, (pointers.PROGRAMS, 1, 1), given)
    assert pointers.mismatch(found, expected) is None


def text_for_upstream(module):
    """Write the text that upstream lowers without a runtime library, with the conversions of GPUs."""
    copy = module.clone()
    ForUpstreamPass(saturating=True).run(copy)
    verify_module(copy)
    return print_module(copy, profile=mlir_profile("newest"))


def compare(expected, found, *, single):
    """Integers are equal, floats near the largest one; NaN may stand for what no load defines."""
    if not is_float(expected.dtype):
        np.testing.assert_array_equal(found, expected)
        return
    wide = expected.astype(np.float64)
    largest = np.max(np.abs(wide[np.isfinite(wide)]), initial=0.0) or 1.0
    defined = ~np.isnan(wide)
    tolerance = TOLERANCE[4 if single else expected.itemsize] * largest
    np.testing.assert_allclose(found.astype(np.float64)[defined], wide[defined], rtol=0, atol=tolerance)
