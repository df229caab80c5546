"""Calls that torch's autograd records without torch's dispatcher.

An operator of torch that is written in Python passes through layers that take longer than a launch, and that have
nothing to do for plain tensors in an eager program. There a `torch.autograd.Function` will do: it runs the function as
a call without gradients would, and saves what the derivative needs. `planned_function` keeps one where it would keep a
plan: for tensors of these shapes, types and places, of which some want a gradient.
"""

from __future__ import annotations

import functools
from typing import Any

from tlx_xdsl.kernels.operands import torch_module
from tlx_xdsl.kernels.operators import Gradient, Run


class Recorded:
    """A call with these options, run and recorded; called as a `Plan` is."""

    def __init__(self, run: Run, gradient: Gradient, options: tuple[Any, ...]):
        self.is_used = False
        self._apply = _function(run, gradient).apply
        self._options = options

    def run(self, tensors: tuple[Any, ...], addresses: list[int]) -> tuple[Any, ...]:
        """Run on tensors, of which the last ones are None for the results; return them, with new results."""
        results = self._apply(self._options, *tensors)
        return (*tensors[: -len(results)], *results)


@functools.cache
def _function(run: Run, gradient: Gradient) -> Any:
    """The function as autograd's, of the options and the tensors; its results are several."""
    torch = torch_module()

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, options: tuple[Any, ...], *tensors: Any) -> Any:
            results = run(tensors, options)
            gradient.save(ctx, tensors, options, results)
            return results

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            return None, *gradient.gradients(ctx, *grads)

    return Function
