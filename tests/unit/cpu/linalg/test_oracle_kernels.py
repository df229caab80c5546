"""The oracle's kernels of the plain language give the same numbers in linalg."""

# covers: triton-to-linalg, tt.memory, tt.shape

import numpy as np
import pytest

from tests.oracle import ours
from tests.unit.cpu.linalg.side_by_side import compare, lowered, run, with_zeros
from tests.unit.interpreter.oracle import checking, running
from tests.unit.interpreter.oracle.test_oracle_by_value import CHECKS
from tlx_xdsl import CompilationError
from tlx_xdsl.interpreter.memref import MemRef
from tlx_xdsl.text.diagnostics import collected_diagnostics

REFUSED = {
    "cuda_functions": "its PTX runs on NVIDIA's GPUs only",
    "atomic_memory": "it waits for other programs, which run one after the other",
}
"""Kernels that no lowering exists for, and the reason at their line."""

UNITS = 16
"""Units in the last place of the largest element by which results may differ where floats are summed in another order:
the interpreter adds up as threads do, linalg from the first element to the last."""
SUMS = dict.fromkeys((
    "attention", "separate_functions", "flips_and_swizzles", "scaled_products", "own_reductions", "own_scans",
    "normalised_rows", "brain_reductions", "half_reductions", "cubes",
), UNITS)  # fmt: skip
"""Kernels that reduce floats."""
SUMS["double_reductions"] = 2**29 * UNITS
"""Its softmax has the exponential of f32."""
UNDEFINED = {"combining_functions": "its function is not associative"}


@pytest.mark.parametrize("check", CHECKS)
def test_a_kernel_gives_the_same_numbers(check):
    rng = np.random.default_rng([1, *check.kernel.encode()])
    arguments = {name: make(rng) for name, make in check.arguments.items()}
    names, values = checking._spread(arguments)
    module = ours.launchable(running.cases()[check.kernel], capability=running.CAPABILITIES.get(check.kernel, 90))
    with collected_diagnostics():
        if check.kernel in REFUSED:
            with pytest.raises(CompilationError, match=REFUSED[check.kernel]) as refused:
                lowered(module)
            assert refused.value.location is not None
            return
        linalg = lowered(module)

    def prepare(given, bound):
        if check.prepare is not None:
            arrays = [each for each in zip(names, given, bound, strict=False) if isinstance(each[1], np.ndarray)]
            starts = {name: int(at.base if isinstance(at, MemRef) else at) for name, _, at in arrays}
            check.prepare(starts, dict(zip(names, given, strict=True)))

    before = run(with_zeros(module), check.grid, values, names, prepare)
    after = run(linalg, check.grid, values, names, prepare)
    if check.prepare is not None:
        # The other arrays hold addresses.
        names, before, after = (("out",), *([run_[names.index("out")]] for run_ in (before, after)))
    if check.kernel not in UNDEFINED:
        compare(before, after, names, SUMS.get(check.kernel, 0))
