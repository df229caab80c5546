"""References for the oracle's kernels: each says what its kernel stores, store by store.

A kernel that writes the same elements several times is so checked for every value that it writes, and a value that
comes out right by an earlier mistake does not hide it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tests.unit.interpreter.oracle import running
from tests.unit.interpreter.synchronisation.recording import RecordingMemory
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.launch import Settings, clusters, run_clusters
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

Make = Callable[[np.random.Generator], Any]
"""Makes an argument."""


@dataclass
class Store:
    """A store that is expected."""

    array: str
    index: np.ndarray
    values: np.ndarray
    ulp: float
    near: np.ndarray | None


@dataclass
class Model:
    """State of a reference: its own copies of the arrays, and the place of the program in the grid."""

    arrays: dict[str, Any]
    pid: tuple[int, int, int] = (0, 0, 0)
    grid: tuple[int, int, int] = (1, 1, 1)
    stores: list[Store] = field(default_factory=list)
    starts: dict[str, int] = field(default_factory=dict)
    """The address of each array."""
    written: dict[str, float] = field(default_factory=dict)
    """Arrays that atomic operations or descriptors write, and by how many units their elements may be off."""

    def store(self, array: str, index: Any, values: Any, mask: Any = True, *, ulp: float = 0, near: Any = None) -> None:
        """Expect `values`, converted to the type of the array, at the elements `index` of a flat array.

        Floats may be off by `ulp` units in the last place: of themselves, or of `near` where that is larger (such as
        the sum of the magnitudes of what was added up).
        """
        target = self.arrays[array]
        index = np.asarray(index)
        chosen = np.broadcast_to(mask, index.shape)
        values = np.broadcast_to(np.asarray(values).astype(target.dtype), index.shape)[chosen]
        near = None if near is None else np.broadcast_to(near, index.shape)[chosen]
        self.stores.append(Store(array, index[chosen].ravel(), values.ravel(), ulp, near))
        target.reshape(-1)[index[chosen]] = values

    def write(self, array: str, index: Any, values: Any, *, ulp: float = 0) -> None:
        """Expect `values` at elements of a flat array in the end, however they come there."""
        target = self.arrays[array]
        index = np.asarray(index)
        target.reshape(-1)[index] = np.broadcast_to(np.asarray(values).astype(target.dtype), index.shape)
        self.written[array] = max(ulp, self.written.get(array, 0))


@dataclass(frozen=True)
class Described:
    """An array that the kernel gets as a tensor descriptor."""

    array: np.ndarray
    block: list[int]


Reference = Callable[..., None]
"""Takes a `Model` and the kernel's arguments, arrays as flat copies of its own."""


@dataclass(frozen=True)
class Check:
    """A kernel, its arguments, and what it is expected to store."""

    kernel: str
    arguments: dict[str, Make]
    grid: tuple[int, int, int]
    prepare: Callable[[dict[str, int], dict[str, Any]], None] | None
    """Gets the addresses of the arrays, and puts some of them into arrays."""
    reference: Reference


CHECKS: dict[str, list[Check]] = {}
"""The checks of each kernel; the modules of this package fill it."""


def reference(
    *kernels: str,
    grid: tuple[int, int, int] = (1, 1, 1),
    prepare: Callable[[dict[str, int], dict[str, Any]], None] | None = None,
    **arguments: Make,
) -> Callable[[Reference], Reference]:
    """Make a function the reference of kernels that take `arguments`."""

    def register(function: Reference) -> Reference:
        for kernel in kernels:
            CHECKS.setdefault(kernel, []).append(Check(kernel, arguments, grid, prepare, function))
        return function

    return register


# Arguments -----------------------------------------------------------------------------------------------------------

FLOATS = {
    "bf16": ml_dtypes.bfloat16,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3fn,
}


def dtype(name: str) -> np.dtype:
    """The type of that name: numpy's, or bf16, e5m2, e4m3."""
    return np.dtype(FLOATS.get(name, name))


def ints(name: str, count: int, low: int | None = None, high: int | None = None) -> Make:
    """Integers of the whole range of the type, or from `low` to `high`."""
    limits = np.iinfo(name)
    first, last = limits.min if low is None else low, limits.max if high is None else high
    return lambda rng: rng.integers(first, last, count, name, endpoint=True)


def bools(count: int) -> Make:
    """Truth values."""
    return lambda rng: rng.integers(0, 2, count).astype(np.bool_)


def floats(name: str, count: int, scale: float = 1.0) -> Make:
    """Numbers of a normal distribution."""
    return lambda rng: (rng.standard_normal(count) * scale).astype(dtype(name))


def positive(name: str, count: int, low: float = 0.25, high: float = 4.0) -> Make:
    """Numbers of a range."""
    return lambda rng: rng.uniform(low, high, count).astype(dtype(name))


def special(name: str, count: int) -> Make:
    """Numbers of all magnitudes, among them zeros of both signs, infinities, NaN and the smallest ones."""

    def make(rng: np.random.Generator) -> np.ndarray:
        bits = rng.integers(0, 256, (count, dtype(name).itemsize)).astype(np.uint8)
        values = bits.view(dtype(name)).reshape(count)
        limits = ml_dtypes.finfo(dtype(name))
        edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, limits.max, limits.min, limits.smallest_subnormal]
        values[: len(edges)] = np.array([float(edge) for edge in edges]).astype(dtype(name))
        return values

    return make


def empty(name: str, count: int) -> Make:
    """Room for results."""
    return lambda _rng: np.zeros(count, dtype(name))


def value(given: Any) -> Make:
    """A number."""
    return lambda _rng: given


# Running -------------------------------------------------------------------------------------------------------------


def run_check(check: Check, seed: int, stage: str) -> None:
    """Run a kernel at a stage of `running` and compare each of its stores with the reference."""
    rng = np.random.default_rng([seed, *check.kernel.encode()])
    arguments = {name: make(rng) for name, make in check.arguments.items()}
    model = Model({name: _copied(given) for name, given in arguments.items()}, grid=check.grid)
    memory = RecordingMemory()
    names, values = _spread(arguments)
    plan = running.plan_of(check.kernel, stage)
    bound = bind(plan.function, values, names, memory)
    model.starts = _starts(names, values, bound)
    if check.prepare is not None:
        check.prepare(model.starts, arguments)
        check.prepare(model.starts, model.arrays)
    launch = Launch(plan, memory, check.grid, (1, 1, 1), bound)
    list(run_clusters(launch, list(clusters(launch)), Settings()))
    with np.errstate(all="ignore"):
        for z, y, x in np.ndindex(*reversed(check.grid)):
            model.pid = (x, y, z)
            check.reference(model, **model.arrays)
    assert len(memory.stores) == len(model.stores), f"{len(memory.stores)} stores, expected {len(model.stores)}"
    for number, ((addresses, found), expected) in enumerate(zip(memory.stores, model.stores, strict=True)):
        size = model.arrays[expected.array].dtype.itemsize
        where = f"store {number} to {expected.array}"
        np.testing.assert_array_equal(addresses, model.starts[expected.array] + expected.index * size, where)
        compare(found, expected.values, expected.ulp, expected.near, where)
    for name, ulp in model.written.items():
        given = arguments[name]
        found = given.array if isinstance(given, Described) else given
        compare(found.ravel(), model.arrays[name].ravel(), ulp, None, f"the end of {name}")


def _starts(names: list[str], values: list[Any], bound: list[Any]) -> dict[str, int]:
    """The address of each array; a descriptor may stand for several arguments, its extents after it."""
    starts: dict[str, int] = {}
    rest = iter(bound)
    spreads = len(bound) != len(values)
    for name, made in zip(names, values, strict=True):
        first = next(rest)
        if isinstance(made, np.ndarray):
            starts[name] = int(first)
        for _ in range(2 * len(made.shape) if spreads and isinstance(made, TensorDescriptor) else 0):
            next(rest)
    return starts


def _copied(given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple(map(_copied, given))
    if isinstance(given, Described):
        return given.array.copy()
    return given.copy() if isinstance(given, np.ndarray) else given


def _spread(arguments: dict[str, Any]) -> tuple[list[str], list[Any]]:
    names: list[str] = []
    values: list[Any] = []
    for name, given in arguments.items():
        parts: Sequence[Any] = given if isinstance(given, tuple) else (given,)
        names.extend([name] * len(parts))
        values.extend(
            TensorDescriptor.from_tensor(part.array, part.block) if isinstance(part, Described) else part
            for part in parts
        )
    return names, values


def compare(found: np.ndarray, expected: np.ndarray, ulp: float, near: np.ndarray | None, where: str) -> None:
    """Compare numbers: integers bit by bit, floats up to `ulp` units in the last place; NaN is NaN."""
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(found.view(expected.dtype), expected, where)
        return
    found, kind = found.view(expected.dtype), expected.dtype
    have, want = found.astype(np.float64), expected.astype(np.float64)
    size = np.abs(want) if near is None else np.maximum(np.abs(want), np.abs(near.astype(np.float64)))
    with np.errstate(all="ignore"):
        close = np.abs(have - want) <= ulp * unit(size, kind)
    right = (have == want) | close | (np.isnan(have) & np.isnan(want))
    # Zeros have a sign, too, unless rounding errors are allowed.
    if ulp == 0:
        right &= np.isnan(want) | (np.signbit(have) == np.signbit(want))
    if not right.all():
        at = int(np.flatnonzero(~right)[0])
        raise AssertionError(
            f"{where}: element {at} is {found[at]!r}, expected {expected[at]!r} "
            f"({abs(have[at] - want[at]) / unit(size, kind)[at]:.1f} ulp; {int((~right).sum())} are wrong)"
        )


def unit(size: np.ndarray, kind: np.dtype) -> np.ndarray:
    """A unit in the last place of numbers of that size."""
    limits = ml_dtypes.finfo(kind)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(size, float(limits.smallest_normal))))
        return np.where(np.isfinite(size), 2.0**exponent * float(limits.eps), 1.0)
