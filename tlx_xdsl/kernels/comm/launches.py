"""Launches on several ranks: the memory that a call has on all of them, and its arguments on those that are here.

A call has *values*: one for each rank that this process has, so one with torch's processes, and all of them in the
interpreter. What all ranks share is kept for the engine, by what the call is: the first call of a kind allocates, which
all ranks do together, so all make the same calls in the same order. Calls of one engine are in one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

from tlx_xdsl.runtime.ranks.engine import Ranks

from ..calls.launching import Launch, check_hopper
from ..calls.operands import Operand, check_places, empty, operand
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from .signals import FIRST, REPORT

_MEMORY: WeakKeyDictionary[Ranks, dict[Any, Any]] = WeakKeyDictionary()
_PADS: WeakKeyDictionary[Ranks, list[tuple[str, Any, Callable[[int], int]]]] = WeakKeyDictionary()


def memory(ranks: Ranks, key: Any, make: Callable[[], Any]) -> Any:
    """Return what `make` has allocated for the calls of a key."""
    held = _MEMORY.setdefault(ranks, {})
    if key not in held:
        held[key] = make()
    return held[key]


def pads_of(ranks: Ranks, what: str, count: int, source: Callable[[int], int]) -> Any:
    """Allocate the counters of a plan, with `count` signals; `source` says of which rank each is, -1 for all others."""
    pads = ranks.signals(REPORT.value + FIRST.value + count)
    _PADS.setdefault(ranks, []).append((what, pads, source))
    return pads


def check_waits(ranks: Ranks) -> None:
    """Raise RuntimeError where a kernel of this process has waited longer than the engine's limit, and has given up.

    To be called when the launches are over. Results of that launch are undefined then, and the counters of the ranks no
    longer agree: make another engine. A kernel with tasks (a product) ends with an error of the CUDA driver instead.
    """
    for what, pads, source in _PADS.get(ranks, ()):
        for number, memory in enumerate(local(ranks, pads)):
            gave_up, index, expected, found = (int(each) for each in memory[: REPORT.value].tolist())
            if gave_up:
                rank = source(index - FIRST.value)
                of = "another rank" if rank < 0 else f"rank {rank}"
                here = number if ranks.rank is None else ranks.rank
                raise RuntimeError(
                    f"{what}: rank {here} gave up waiting for {of}: signal {index} is {found}, and was expected "
                    f"to be {expected}; make another engine of ranks"
                )


def values_of(ranks: Ranks, function: str, name: str, given: Any) -> list[Any]:
    """The values of an argument on the ranks that are here. Raises TypeError for another number of them."""
    if ranks.rank is not None:
        return [given]
    if not isinstance(given, list | tuple) or len(cast("list[Any]", given)) != ranks.world_size:
        raise TypeError(
            f"{function}: argument '{name}': expected a list with one array for each of {ranks.world_size} ranks"
        )
    return list(cast("list[Any]", given))


def operands_of(ranks: Ranks, function: str, name: str, given: Any) -> list[Operand]:
    """The same, looked at. Raises ValueError for different shapes, and for memory where the engine has no kernels."""
    found = [operand(function, name, value) for value in values_of(ranks, function, name, given)]
    first = found[0]
    for each in found[1:]:
        if (each.shape, each.dtype, each.strides) != (first.shape, first.dtype, first.strides):
            raise ValueError(f"{each.what}: expected the same shape, strides and type on each rank")
    check_places(found)
    if (ranks.rank is None) != (first.device is None):
        place = "the CPU" if ranks.rank is None else "the rank's GPU"
        raise ValueError(f"{first.what}: expected memory of {place}")
    return found


def results(given: Sequence[Operand], asked: Any, ranks: Ranks, shape: tuple[int, ...]) -> list[Operand]:
    """The results, which are made where none are asked for: of the type of `given`, on each rank."""
    first = given[0]
    if asked is None:
        return [operand(first.function, "out", empty(each, shape)) for each in given]
    found = operands_of(ranks, first.function, "out", asked)
    if found[0].shape != shape or found[0].dtype != first.dtype:
        raise ValueError(
            f"{found[0].what}: expected the shape {shape} and the type {first.value.dtype}, got {found[0].shape} and "
            f"{found[0].value.dtype}"
        )
    return found


def here(ranks: Ranks, values: Sequence[Any]) -> Any:
    """Return what a caller, or a launch, has of values on the ranks that are here."""
    return list(values) if ranks.rank is None else values[0]


def local(ranks: Ranks, symmetric: Any) -> list[Any]:
    """The memory of a symmetric tensor on the ranks that are here."""
    return [symmetric[rank] for rank in range(ranks.world_size)] if ranks.rank is None else [symmetric.local]


def launch_on(
    ranks: Ranks, kernel: Any, programs: int, of_ranks: Mapping[str, Sequence[Any]], shared: Mapping[str, Any],
    constants: Mapping[str, Any], like: Operand, sources: Mapping[str, str] | None = None, *,
    aligned: tuple[str, ...] = (), num_warps: int = 4,
) -> Launch:  # fmt: skip
    """A launch of a kernel whose arguments `of_ranks` have a value for each rank that is here.

    `shared` are numbers and symmetric tensors; `like` says where the launch is.
    """
    check_hopper(like.function, like)
    values = {name: here(ranks, each) for name, each in of_ranks.items()}
    for name, value in shared.items():
        values[name] = value if ranks.rank is None or not hasattr(value, "peers") else value.peers(ranks.rank)
    if "LIMIT" in kernel.arg_names:
        constants = {**constants, "LIMIT": getattr(ranks, "limit_ns", None)}
    return Launch.of(
        kernel, (programs,), values, constants, like.device, sources, aligned, num_warps=num_warps
    )  # fmt: skip


def call(function: PlannedFunction, ranks: Ranks, tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    """Run a function whose result is the last of its tensors."""
    if ranks.rank is not None:
        return function(tensors, (ranks, *options))
    prepared: Prepared = function.prepare(tensors, (ranks, *options))
    for each in prepared.launches:
        each.interpret(ranks=ranks.world_size)
    return list(prepared.tensors.values())[len(tensors) - 1]
