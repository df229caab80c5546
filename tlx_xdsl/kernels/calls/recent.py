"""The plans that a function used last, each with a question in C whether a call is one of its calls.

A key in Python has seven entries for each tensor, which are asked for, put together and hashed in some 0.9 us. torch
has one call for most of them and for all tensors, some 0.15 us for each: `TensorGuards.check`, with which torch.compile
finds whether a program of its own is for these arguments. It compares the class of each tensor, its shape, strides,
type and device, whether it wants a gradient, and what torch's dispatcher would do with it in this thread, so that a
call within a transformation is another one, too. Left are the options, which tensors are not there, the alignment, and
whether gradients are recorded.

A tensor that is given twice is what `check` takes for another call: each time that it comes it is in another group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, cast

from ..operators import Gradient, Values
from .operands import tensor_guards, torch_module
from .plans import NOWHERE, Plan

MAX_RECENT = 8
"""Plans of a function that are asked before the key is made: a call that is of none of them loses 0.2 us with each."""


class Recent:
    """A plan, and whether a call is for it. Threads may share it.

    Made of a call's tensors and options and of the addresses of the tensors, NOWHERE where there is none.
    """

    __slots__ = ("_addresses", "_alignments", "_checks", "_grad_is_enabled", "_is_recorded", "_options", "plan")

    def __init__(
        self,
        plan: Plan | Recorded,
        tensors: Sequence[Any],
        options: Values,
        addresses: list[int],
    ):
        torch = torch_module()
        guards = tensor_guards(torch)
        self.plan = plan
        self._options = options
        self._addresses = addresses
        self._alignments = _alignments(addresses)
        # Some versions of torch compare what is wanted of a gradient, others what would be if they were recorded.
        wants_gradients = any(each is not None and each.requires_grad for each in tensors)
        self._grad_is_enabled: Callable[[], bool] | None = torch.is_grad_enabled if wants_gradients else None
        self._is_recorded: bool = torch.is_grad_enabled()
        self._checks: list[tuple[Callable[[Any], Any], Callable[..., bool]]] = []
        for places in _groups(tensors):
            # One place alone gives a tuple, too.
            pick = itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))
            guard = guards(*pick(tensors), dynamic_dims_sizes=None, dynamic_dims_strides=None)
            self._checks.append((pick, guard.check))

    def is_of(self, tensors: Values, options: Values, addresses: list[int]) -> bool:
        """Return whether a call with these tensors, at these addresses, is for the plan."""
        if len(addresses) != len(self._addresses):
            return False
        for pick, check in self._checks:
            if not check(*pick(tensors)):
                return False
        if self._grad_is_enabled is not None and self._grad_is_enabled() != self._is_recorded:
            return False
        if addresses != self._addresses:
            if _alignments(addresses) != self._alignments:
                return False
            # Whoever reads this in another thread finds addresses of the same alignments, these or those.
            self._addresses = addresses
        try:
            return options == self._options
        except (RuntimeError, ValueError):
            # Arrays among the options have no answer.
            return False


def can_be_asked(torch: Any, tensors: Sequence[Any]) -> bool:
    """Return whether there may be a Recent of these tensors: they are torch's, of a version that has what is asked."""
    has_guards = tensor_guards(torch) is not None
    return has_guards and all(each is None or isinstance(each, torch.Tensor) for each in tensors)


def _alignments(addresses: list[int]) -> list[int]:
    """Return where each address lies between multiples of 16, and where there is none."""
    return [each & _ALIGNMENT for each in addresses]


_ALIGNMENT = NOWHERE << 62 | 15
"""The bits of an address that this depends on: those that only NOWHERE has, and the last ones."""


def _groups(tensors: Sequence[Any]) -> list[list[int]]:
    """The places of tensors, in groups in which none comes twice."""
    found: list[list[int]] = []
    for place, tensor in enumerate(tensors):
        if tensor is None:
            continue
        group = next((each for each in found if all(tensors[at] is not tensor for at in each)), None)
        if group is None:
            found.append(group := [])
        group.append(place)
    return found


# --- recorded calls ---------------------------------------------------------------------------------------------------
#
# Calls that torch's autograd records without torch's dispatcher.
#
# An operator of torch that is written in Python passes through layers that take longer than a launch, and that have
# nothing to do for plain tensors in an eager program. There a `torch.autograd.Function` will do: it runs the function
# as a call without gradients would, and saves what the derivative needs. `planned_function` keeps one where it would
# keep a plan: for tensors of these shapes, types and places, of which some want a gradient.


First = Callable[["Recorded", Values], Values]
"""Runs a call on tensors and returns them, with results; leaves a plan with the record where there is one."""


class Recorded:
    """A call with these options, run and recorded; called as a `Plan` is. `results` are the last
    of the tensors, given as None.

    `plan` is that of the call without gradients, None before the first one and for what the interpreter runs.
    """

    def __init__(self, first: First, gradient: Gradient, options: Values, results: slice):
        self.is_used = False
        self.plan: Plan | None = None
        self.options = options
        self._first = first
        self._results = results
        self._apply = _apply(gradient)

    def run(self, tensors: Values, addresses: list[int]) -> Values:
        """Run on tensors at these addresses; return them, with new results."""
        results = self._apply(self, addresses, *tensors)
        return (*tensors[: self._results.start], *results)

    def results_of(self, tensors: Values, addresses: list[int]) -> Values:
        """The results, unrecorded."""
        if self.plan is None:
            return self._first(self, tensors)[self._results]
        return self.plan.run(tensors, addresses)[self._results]


@functools.cache
def _apply(gradient: Gradient) -> Callable[..., Any]:
    """Return what runs and records a call, of a record, addresses and tensors.

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
        def backward(ctx: Any, *grads: Any) -> Values:
            return None, None, *gradient.gradients(ctx, *grads)

    return cast(Any, super(torch.autograd.Function, Function)).apply
