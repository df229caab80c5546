"""Kernels of the oracle and of the library give the same bits on memory as in linalg on tensors."""

# covers: linalg-fuse-elementwise, linalg-bufferize, memref-plan-arena

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType

from tests.oracle import ours
from tests.unit import volume
from tests.unit.cpu.linalg.side_by_side import compare, lowered, run
from tests.unit.cpu.linalg.test_library_kernels import library_module
from tests.unit.cpu.linalg.test_oracle_kernels import REFUSED
from tests.unit.interpreter.library.cases import calls
from tests.unit.interpreter.oracle import checking, running
from tests.unit.interpreter.oracle.test_oracle_by_value import CHECKS
from tlx_xdsl.cpu.bufferize.bufferize import bufferize_pipeline
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.interpreter.memref import MemRef
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.verify import verify_module

STEP = 1 if volume.is_full() else 6
ULP = {"batched_product": 16}
"""Kernels whose products numpy computes in another order where an operand is a transposed view."""


def on_memory(module):
    """A copy of a module in linalg without tensors."""
    copy = module.clone()
    for each in bufferize_pipeline():
        each.apply(make_context(), copy)
    verify_module(copy)
    values = [value for op in copy.walk() for value in (*op.operands, *op.results)]
    assert not any(isinstance(value.type, TensorType) for value in values)
    return copy


def _plain(check):
    return getattr(check, "values", [check])[0]


@pytest.mark.parametrize(
    "check", [each for each in CHECKS if _plain(each).kernel not in REFUSED][min(1, STEP - 1) :: STEP]
)
def test_a_kernel_gives_the_same_bits(check):
    rng = np.random.default_rng([2, *check.kernel.encode()])
    names, values = checking._spread({name: make(rng) for name, make in check.arguments.items()})
    module = ours.launchable(running.cases()[check.kernel], capability=running.CAPABILITIES.get(check.kernel, 90))
    with collected_diagnostics():
        tensors = lowered(module)

    def prepare(given, bound):
        if check.prepare is not None:
            arrays = [each for each in zip(names, given, bound, strict=False) if isinstance(each[1], np.ndarray)]
            starts = {name: int(at.base if isinstance(at, MemRef) else at) for name, _, at in arrays}
            check.prepare(starts, dict(zip(names, given, strict=True)))

    before, after = (run(each, check.grid, values, names, prepare) for each in (tensors, on_memory(tensors)))
    if check.prepare is not None:
        # The other arrays hold addresses.
        names, before, after = (("out",), *([run_[names.index("out")]] for run_ in (before, after)))
    compare(before, after, names, ULP.get(check.kernel, 0))


@pytest.mark.parametrize("name", list(calls())[min(1, STEP - 1) :: 2 * STEP])
def test_a_library_function_gives_the_same_bits(name):
    module, names, values = library_module(name)
    with collected_diagnostics():
        tensors = lowered(module)
    before, after = (run(each, (1, 1, 1), values, names) for each in (tensors, on_memory(tensors)))
    compare(before, after, names)
