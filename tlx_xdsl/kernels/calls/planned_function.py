"""Functions that cache their launch plans (`plans`) per call signature: shapes, strides, types, alignment, options.

    SOFTMAX = PlannedFunction("softmax", _prepare, results=1)

    def softmax(x, out=None):
        return SOFTMAX((x, out))

`_prepare((x, out), ())` checks, allocates and returns the launches. It runs once for each new key: shapes, strides,
types, devices and alignment of the tensors, and the options. A later call with the same key repeats none of that, since
the checks depend on the key alone. Calls with arrays of the CPU have no plan.

Time of the host. A call that finds its plan asks one question for all tensors where the plan is among those that were
used last (`recent`), or else makes the key and looks into a dictionary, and calls the driver once (`plans`), which
takes some 2.5 us. All that costs more is avoided: checks, descriptors, torch's dispatcher, its objects for streams, its
contexts for devices.

torch's dispatcher is passed by for plain tensors alone. Where someone else has to see the call, it goes to the
function's operator of torch (`library`): while torch.compile reads the program, for tensors that want a gradient, for
subclasses of tensors and for those of torch's transformations, and under modes that look at every operator. Where the
operator has a gradient of its own, plain tensors that want one pass it by, too (`recent`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..operators import Operator, Run, Values, register
from .operands import dispatch_modes, taken, torch_module, transforms_are_active
from .plans import NOWHERE, Plan, Prepared
from .recent import MAX_RECENT, Recent, Recorded, can_be_asked

Adapt = Callable[[Values, Values], tuple[Values, Values]]
"""A function of tensors and options that returns such."""

MAX_PLANS = 1024
"""Plans that a function keeps, of some 4 KB each."""


class PlannedFunction:
    """A function of tensors, called with a tuple of them and a tuple of options: returns its results.

    name: that of the function, for errors.
    prepare: called with the tensors and the options, two tuples, returns `Prepared`. Raises what the function does.
    results: which of the tensors is the result, or which are (a slice).
    operator: the function as torch sees it; without one, calls that torch has to see raise NotImplementedError.
    adapt: called with the tensors and the options at each run, returns them as they are to be run: for what no key
        has, such as a switch of torch's, and tensors that are copied first.
    """

    def __init__(
        self,
        name: str,
        prepare: Callable[[Values, Values], Prepared],
        *,
        results: int | slice,
        operator: Operator | None = None,
        adapt: Adapt | None = None,
    ):
        self.name = name
        self._call = self._not_there if operator is None else operator.call
        self.prepare = prepare
        self._results = results
        self._adapt = adapt
        self._gradient = None if operator is None else operator.gradient
        self._plans: dict[Any, Plan | Recorded] = {}
        self._recent: tuple[Recent, ...] = ()
        self._questions: dict[Plan | Recorded, Recent] = {}
        self._making = threading.RLock()
        # Until there is a tensor of torch's, no gradient is wanted (False), and there are no modes and transformations.
        self._torch: Any = None
        self._grad_is_enabled: Callable[[], bool] = bool
        self._dispatch_modes: Callable[[], int] = int
        self._is_transformed: Callable[[], bool] = bool
        if operator is not None:
            register(operator, self.below_torch)

    def __call__(self, tensors: Values, options: Values = ()) -> Any:
        """Run on these tensors, of which some may be None, and return the results."""
        torch = self._torch or self._find_torch(tensors[0])
        # Dynamo folds this test to True, and never traces the rest.
        if torch is not None and torch.compiler.is_dynamo_compiling():
            return self._operator()(tensors, options)
        if self._dispatch_modes() and isinstance(tensors[0], self._torch.Tensor):
            return self._operator()(tensors, options)
        if self._adapt is not None:
            if self._is_transformed() and isinstance(tensors[0], self._torch.Tensor):
                return self._operator()(tensors, options)
            tensors, options = self._adapt(tensors, options)
        if self._recent:
            try:
                addresses = [NOWHERE if tensor is None else tensor.data_ptr() for tensor in tensors]
            except (AttributeError, RuntimeError):
                # Arrays, and tensors without memory.
                addresses = None
            if addresses is not None:
                for known in self._recent:
                    if known.is_of(tensors, options, addresses):
                        plan = known.plan
                        plan.is_used = True
                        return plan.run(tensors, addresses)[self._results]
        if self._is_transformed() and isinstance(tensors[0], self._torch.Tensor):
            return self._operator()(tensors, options)
        return self._run(tensors, options, self._grad_is_enabled(), True)

    def below_torch(self, tensors: Values, options: Values = ()) -> Any:
        """Run as the implementation of the operator: torch has seen the call."""
        if self._adapt is not None:
            tensors, options = self._adapt(tensors, options)
        return self._run(tensors, options, False, False)

    def forget(self) -> None:
        """Drop all plans."""
        with self._making:
            self._plans.clear()
            self._questions.clear()
            self._recent = ()

    def _run(self, tensors: Values, options: Values, grad: bool, is_direct: bool) -> Any:
        key: list[Any] = [options, is_direct]
        addresses: list[int] = []
        try:
            for tensor in tensors:
                if tensor is None:
                    key.append(None)
                    addresses.append(NOWHERE)
                    continue
                address = tensor.data_ptr()
                addresses.append(address)
                key += (
                    type(tensor),
                    tensor.shape,
                    tensor.stride(),
                    tensor.dtype,
                    tensor.device,
                    address & 15,
                    grad and tensor.requires_grad,
                )
            found = tuple(key)
            plan = self._plans.get(found)
        except (AttributeError, TypeError, RuntimeError):
            # Arrays, tensors without memory, options that can't be compared: nothing is kept of such.
            found = plan = None
        if plan is None:
            ours = tuple(map(taken, tensors))
            if any(each is not tensor for each, tensor in zip(ours, tensors, strict=True)):
                return self._run(ours, options, grad, is_direct)
            if is_direct and any(getattr(tensor, "is_meta", False) for tensor in tensors):
                return self._operator()(tensors, options)
            if is_direct and self._torch is not None and any(self._is_torch_s(tensor, grad) for tensor in tensors):
                plan = self._recorded(tensors, options, found)
                if plan is None:
                    return self._operator()(tensors, options)
                return plan.run(tensors, addresses)[self._results]
            return self._first(tensors, options, found)
        if is_direct and self._torch is not None:
            self._remember(plan, tensors, options, addresses)
        plan.is_used = True
        return plan.run(tensors, addresses)[self._results]

    def _remember(self, plan: Plan | Recorded, tensors: Values, options: Values, addresses: list[int]) -> None:
        """Have the next calls ask for this plan first."""
        others = [each for each in self._recent if each.plan is not plan]
        # One that was asked in vain is of another state of torch's, or of a call with no tensor given twice.
        known = self._questions.get(plan)
        if known is None or len(others) < len(self._recent):
            if not can_be_asked(self._torch, tensors):
                return
            known = self._questions[plan] = Recent(plan, tensors, options, addresses)
        self._recent = (known, *others[: MAX_RECENT - 1])

    def _first(self, tensors: Values, options: Values, key: Any) -> Any:
        prepared = self.prepare(tensors, options)
        if self._is_on_cpu(prepared):
            return tuple(prepared.tensors.values())[: len(tensors)][self._results]
        # Threads that come with the same key compile once.
        with self._making:
            plan = self._plans.get(key)
            if plan is None:
                plan = Plan(prepared, tensors)
                if key is not None:
                    self._keep(key, plan)
        return self._run_first(plan, prepared, len(tensors))[self._results]

    @staticmethod
    def _is_on_cpu(prepared: Prepared) -> bool:
        """Run a call that needs no plan, of arrays of the CPU or with nothing to launch; return whether it is one."""
        if prepared.launches and prepared.launches[0].device is not None:
            return False
        for launch in prepared.launches:
            launch.run_on_cpu()
        return True

    @staticmethod
    def _run_first(plan: Plan | Recorded, prepared: Prepared, count: int) -> Values:
        """Run a plan on the tensors that it was made of, `count` of them, and return them."""
        found = tuple(prepared.tensors.values())[:count]
        return plan.run(found, [NOWHERE if tensor is None else tensor.data_ptr() for tensor in found])

    def _first_recorded(self, recorded: Recorded, tensors: Values) -> Values:
        """Run a call for a record of it, which keeps the plan; return all tensors."""
        prepared = self.prepare(tensors, recorded.options)
        if self._is_on_cpu(prepared):
            return tuple(prepared.tensors.values())[: len(tensors)]
        with self._making:
            if recorded.plan is None:
                recorded.plan = Plan(prepared, tensors)
        return self._run_first(recorded.plan, prepared, len(tensors))

    def _recorded(self, tensors: Values, options: Values, key: Any) -> Recorded | None:
        """Return what stands for a plan where autograd alone has to see a call, of plain tensors and without `out`."""
        if self._gradient is None or key is None:
            return None
        results = self._results if isinstance(self._results, slice) else slice(self._results, self._results + 1)
        if any(each is not None for each in tensors[results]) or not all(map(self._is_plain, tensors)):
            return None
        found = Recorded(self._first_recorded, self._gradient, options, results)
        with self._making:
            self._keep(key, found)
        return found

    def _keep(self, key: Any, plan: Plan | Recorded) -> None:
        """Put a plan among the others; where there are too many, drop one that was not used since the last time.

        That is the least recently used one or nearly so, and costs a call that finds its plan next to nothing.
        """
        while len(self._plans) >= MAX_PLANS:
            oldest = next(iter(self._plans))
            passed = self._plans.pop(oldest)
            if passed.is_used:
                passed.is_used = False
                self._plans[oldest] = passed
            else:
                self._questions.pop(passed, None)
        self._plans[key] = plan

    def _operator(self) -> Run:
        """The function as torch sees it, with its operators made."""
        # Making them is what the import does; torch.compile reads this, and runs nothing else.
        from .. import library  # noqa: F401  # pyright: ignore[reportUnusedImport]

        return self._call

    def _not_there(self, tensors: Values, options: Values) -> Any:
        raise NotImplementedError(
            f"{self.name}: there is no operator of it for torch yet: call it outside of torch.compile, under "
            "torch.no_grad()"
        )

    def _find_torch(self, tensor: Any) -> Any:
        """torch, if this looks like a tensor of its: who has one has imported it."""
        if not hasattr(tensor, "data_ptr"):
            return None
        try:
            torch = torch_module()
        except ModuleNotFoundError:
            return None
        # What torch.compile reads leaves nothing.
        if not torch.compiler.is_dynamo_compiling():
            self._grad_is_enabled = torch.is_grad_enabled
            self._dispatch_modes = dispatch_modes(torch)
            self._is_transformed = transforms_are_active(torch)
            self._torch = torch
        return torch

    def _is_torch_s(self, tensor: Any, grad: bool) -> bool:
        """Return whether torch has to see what is done with a tensor."""
        if not isinstance(tensor, self._torch.Tensor):
            return False
        return not self._is_plain(tensor) or bool(grad and tensor.requires_grad) or not _has_memory(tensor)

    def _is_plain(self, tensor: Any) -> bool:
        """Return whether this is None or a tensor of no subclass that does something of its own."""
        return tensor is None or type(tensor) in (self._torch.Tensor, self._torch.nn.Parameter)


def _has_memory(tensor: Any) -> bool:
    """Return whether a tensor has an address: those of torch's transformations (vmap) have none."""
    try:
        tensor.data_ptr()
    except RuntimeError:
        return False
    return True
