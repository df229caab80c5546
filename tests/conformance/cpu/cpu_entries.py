"""Entries of `cpu_kernels`: kernels of public repositories, each with a call of its own and a reference in torch.

An entry is a function that gets a loader of its suite's modules and yields pairs: what the kernels have computed, and
what torch, or plain Python, computes instead. Its docstring says what the reference is. Nothing of the suites is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import torch

Load = Callable[[str], ModuleType]
Pairs = Iterator[tuple[Any, Any]]

EXACT = 0.0
"""The tolerance of what only moves numbers, counts or compares them."""


@dataclass(frozen=True)
class Entry:
    """Kernels that one call launches."""

    suite: str
    file: str
    """The path in the repository, of the module with the kernels."""
    kernels: tuple[str, ...]
    call: str
    """The function of the repository that is called, or `kernel` where the entry launches it as the repository does."""
    tolerance: float
    """Of the difference, both absolute and relative to the reference."""
    run: Callable[[Load], Pairs]
    name: str
    """`suite/function`, unique."""
    reference: str
    """What the results are compared with."""


ENTRIES: dict[str, Entry] = {}


class WrongNumbers(AssertionError):
    """A result that is not the reference's."""


def entry(
    suite: str, file: str, *kernels: str, call: str = "kernel", tolerance: float = EXACT,
    name: str = "", reference: str = "",
) -> Callable[[Callable[[Load], Pairs]], Callable[[Load], Pairs]]:  # fmt: skip
    """Enter a function as a case; its name and its docstring stand where no `name` and no `reference` is given."""

    def enter(run: Callable[[Load], Pairs]) -> Callable[[Load], Pairs]:
        line = " ".join((reference or run.__doc__ or "").split()).rstrip(".")
        made = Entry(suite, file, kernels, call, tolerance, run, f"{suite}/{name or run.__name__}", line)
        assert made.name not in ENTRIES, made.name
        ENTRIES[made.name] = made
        return run

    return enter


def run_entry(case: Entry, load: Load) -> None:
    """Run it.

    Raises WrongNumbers.
    """
    compared = 0
    for got, want in case.run(load):
        _compare(got, want, case.tolerance, f"result {compared}")
        compared += 1
    assert compared, "an entry that compares nothing"


def _compare(got: Any, want: Any, tolerance: float, what: str) -> None:
    got, want = torch.as_tensor(got).detach(), torch.as_tensor(want).detach()
    if got.shape != want.shape:
        raise WrongNumbers(f"{what}: the shape is {tuple(got.shape)}, expected {tuple(want.shape)}")
    try:
        torch.testing.assert_close(
            got.double(), want.double(), atol=tolerance, rtol=tolerance, equal_nan=True
        )  # fmt: skip
    except AssertionError as error:
        lines = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
        raise WrongNumbers(f"{what}: {lines}") from error


def ints(*values: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """A vector of integers."""
    return torch.tensor(values, dtype=dtype)


def longs(*values: int) -> torch.Tensor:
    """A vector of 64-bit integers."""
    return ints(*values, dtype=torch.int64)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
    """Numbers of a normal distribution."""
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return (drawn * scale).to(dtype)


def below(high: int, *shape: int, seed: int = 0, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Integers in [0, high)."""
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def both(function: Callable[..., Any], reference: Callable[..., Any], *inputs: Any) -> Pairs:
    """The results of two functions, and the gradients of the inputs that require one, for the same random gradients."""
    found: list[list[torch.Tensor]] = []
    for each in (function, reference):
        given = [_fresh(item) for item in inputs]
        results = each(*given)
        results = [results] if isinstance(results, torch.Tensor) else [item for item in results if item is not None]
        kept = [result.detach().clone() for result in results]
        leaves = [item for item in given if isinstance(item, torch.Tensor) and item.requires_grad]
        with_gradient = [result for result in results if result.requires_grad]
        seeds = [normal(*result.shape, seed=7 + at, dtype=result.dtype) for at, result in enumerate(with_gradient)]
        gradients = torch.autograd.grad(with_gradient, leaves, seeds) if leaves else ()
        found.append([*kept, *gradients])
    yield from zip(*found, strict=True)


def _fresh(item: Any) -> Any:
    return item.detach().clone().requires_grad_(item.requires_grad) if isinstance(item, torch.Tensor) else item


def learnt(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
    """Numbers of a normal distribution that a gradient is asked for."""
    return normal(*shape, seed=seed, dtype=dtype, scale=scale).requires_grad_()


def one_config(module: ModuleType) -> None:
    """Leave each tuner of a module its first configuration: results do not depend on the choice."""
    for tuner in vars(module).values():
        for _ in range(_WRAPPERS):
            configs = getattr(tuner, "configs", None)
            if isinstance(configs, list):
                tuner.configs = cast("list[Any]", configs)[:1]
                break
            if not hasattr(tuner, "fn") or not hasattr(tuner, "arg_names"):
                break
            tuner = tuner.fn


_WRAPPERS = 4
"""How deep decorators of kernels may lie in each other."""
