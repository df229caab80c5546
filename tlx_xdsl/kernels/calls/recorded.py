"""Calls that torch's autograd records without torch's dispatcher.

An operator of torch that is written in Python passes through layers that take longer than a launch, and that have
nothing to do for plain tensors in an eager program. There a `torch.autograd.Function` will do: it runs the function as
a call without gradients would, and saves what the derivative needs. `planned_function` keeps one where it would keep a
plan: for tensors of these shapes, types and places, of which some want a gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

from ..operators import Gradient
from .operands import torch_module
from .plans import Plan

First = Callable[["Recorded", tuple[Any, ...]], tuple[Any, ...]]
"""Runs a call on tensors and returns them, with results; leaves a plan with the record where there is one."""


class Recorded:
    """A call with these options, run and recorded; called as a `Plan` is. `results` are the last
    of the tensors, given as None.

    `plan` is that of the call without gradients, None before the first one and for what the interpreter runs.
    """

    def __init__(self, first: First, gradient: Gradient, options: tuple[Any, ...], results: slice):
        self.is_used = False
        self.plan: Plan | None = None
        self.options = options
        self._first = first
        self._results = results
        self._apply = _apply(gradient)

    def run(self, tensors: tuple[Any, ...], addresses: list[int]) -> tuple[Any, ...]:
        """Run on tensors at these addresses; return them, with new results."""
        results = self._apply(self, addresses, *tensors)
        return (*tensors[: self._results.start], *results)

    def results_of(self, tensors: tuple[Any, ...], addresses: list[int]) -> tuple[Any, ...]:
        """The results, unrecorded."""
        if self.plan is None:
            return self._first(self, tensors)[self._results]
        return self.plan.run(tensors, addresses)[self._results]


@functools.cache
def _apply(gradient: Gradient) -> Callable[..., Any]:
    """What runs and records a call, of a record, addresses and tensors.

    It is what `torch.autograd.Function.apply` comes to once it has looked through the arguments for tensors of
    `torch.func`'s transformations, which have no memory and so no record.
    """
    torch = torch_module()

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, recorded: Recorded, addresses: list[int], *tensors: Any) -> Any:
            results = recorded.results_of(tensors, addresses)
            gradient.save(ctx, tensors, recorded.options, results)
            return results

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            return None, None, *gradient.gradients(ctx, *grads)

    return cast(Any, super(torch.autograd.Function, Function)).apply
