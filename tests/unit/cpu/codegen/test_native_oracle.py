"""The oracle's kernels of the plain language give the same numbers as machine code."""

# covers: target.cpu

import numpy as np
import pytest

from tests.oracle import ours
from tests.unit import volume
from tests.unit.cpu.codegen.native import Guarded, compiled
from tests.unit.cpu.linalg.side_by_side import _copied, _spread, compare, run, with_zeros
from tests.unit.cpu.linalg.test_oracle_kernels import REFUSED, SUMS, UNDEFINED, UNITS
from tests.unit.interpreter.oracle import checking, running
from tests.unit.interpreter.oracle.test_oracle_by_value import CHECKS

FUNCTIONS = {"functions": 2**31, "small_helpers": 4, "gelu": 4}
"""Kernels whose functions are polynomials here, and units of the largest element by which results may differ."""
PRODUCTS = dict.fromkeys(("precisions", "batched_product", "blocked_product"), UNITS)
"""Kernels that multiply matrices: the depth is walked step by step, with fused multiplications and additions."""


@pytest.mark.parametrize("check", CHECKS if volume.is_full() else CHECKS[::2])
def test_a_kernel_gives_the_same_numbers(check):
    if check.kernel in REFUSED:
        pytest.skip(REFUSED[check.kernel])
    rng = np.random.default_rng([1, *check.kernel.encode()])
    arguments = {name: make(rng) for name, make in check.arguments.items()}
    names, values = checking._spread(arguments)
    module = ours.launchable(running.cases()[check.kernel], capability=running.CAPABILITIES.get(check.kernel, 90))
    native = compiled(module)

    def addressed(given, bound):
        if check.prepare is not None:
            arrays = [each for each in zip(names, given, bound, strict=True) if isinstance(each[1], np.ndarray)]
            check.prepare({name: int(at) for name, _, at in arrays}, dict(zip(names, given, strict=True)))

    before = run(with_zeros(module), check.grid, values, names, addressed)
    guards = [Guarded(each) if isinstance(each, np.ndarray) else None for each in values]
    after = [_copied(each) if guard is None else guard.array for each, guard in zip(values, guards, strict=True)]
    if check.prepare is not None:
        held = dict(zip(names, after, strict=True))
        check.prepare({name: each.ctypes.data for name, each in held.items() if isinstance(each, np.ndarray)}, held)
    flat = [part for value in after for part in _spread(value)]
    assert native.run(check.grid, flat) is None
    if check.prepare is not None:
        names, before, after = (("out",), *([run_[names.index("out")]] for run_ in (before, after)))
    if check.kernel not in UNDEFINED:
        compare(before, after, names, max(table.get(check.kernel, 0) for table in (SUMS, FUNCTIONS, PRODUCTS)))
