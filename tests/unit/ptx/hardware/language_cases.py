"""The kernels of the language's corpus, each with the first inputs that its reference has."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.gallery.cases import Constant
from tests.unit.interpreter.oracle import checking, running, test_oracle_by_value
from tests.unit.ptx.hardware.launches import Case
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor
from tlx_xdsl.runtime.simulate.interpret import interpret

assert test_oracle_by_value.CHECKS, "importing the references registers them"

UNDEFINED = {
    "floats_to_integers": "most numbers are out of the range of the narrow integers",
    "orders_and_scopes": "programs exchange and add at one address without an order",
    "cuda_functions": "clocks, and the numbers of multiprocessors",
    "hints": "its hints are not true: a version of Triton that follows them loads what is not aligned",
    "flips_and_swizzles": "programs write over what others wrote, in the order in which they run",
}
"""Kernels with results that Triton does not define."""


def _arrays(given: Any) -> list[np.ndarray]:
    if isinstance(given, tuple):
        return [array for each in given for array in _arrays(each)]
    given = given.array if isinstance(given, checking.Described) else given
    return [given] if isinstance(given, np.ndarray) else []


def _value(given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple(map(_value, given))
    return TensorDescriptor.from_tensor(given.array, given.block) if isinstance(given, checking.Described) else given


def _run(check: checking.Check) -> list[np.ndarray]:
    case = running.cases()[check.kernel]
    rng = np.random.default_rng([0, *check.kernel.encode()])
    arguments = {name: make(rng) for name, make in check.arguments.items()}
    constants = {
        name: given.value if isinstance(given, Constant) else given
        for name, given in case.arguments.items()
        if name not in arguments
    }
    values = {name: _value(given) for name, given in arguments.items()}
    interpret(case.kernel, check.grid, **values, **constants, stage="ptx", options=dict(case.options))
    return [array for given in arguments.values() for array in _arrays(given)]


CASES: dict[str, Case] = {
    f"language {kernel}": partial(_run, checks[0])
    for kernel, checks in checking.CHECKS.items()
    if checks[0].prepare is None and kernel not in UNDEFINED
}
