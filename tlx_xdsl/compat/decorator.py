"""`@triton.jit` while the drop-in is installed: kernels that use tlx are ours, all others are stock Triton's."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from tlx_xdsl.compat.usage import is_jitted, takes_functions, uses_tlx, value_uses_tlx

Decorator = Callable[..., Any]


def drop_in(stock_jit: Decorator, our_jit: Decorator) -> Decorator:
    """A decorator with the arguments of `triton.jit` that hands each function to the compiler that it needs.

    A function that names something of tlx is ours at once. Of any other it is not known yet, because what it calls may
    be defined below it: it is stock Triton's own object until its first launch, which looks once more.
    """

    def jit(fn: Any = None, **options: Any) -> Any:
        if fn is None:
            return lambda fn: jit(fn, **options)
        if not isinstance(fn, FunctionType):
            return stock_jit(fn, **options)
        if uses_tlx(fn):
            return our_jit(fn, **options)
        kernel = stock_jit(fn, **options)
        vars(kernel)["run"] = _FirstLaunch(kernel, our_jit, options)
        return kernel

    jit.__doc__ = stock_jit.__doc__
    return jit


class _FirstLaunch:
    """Stands in the place of the method `run` of a stock kernel until it is known whose the kernel is."""

    def __init__(self, kernel: Any, our_jit: Decorator, options: dict[str, Any]):
        self._kernel = kernel
        self._our_jit = our_jit
        self._options = options
        self._may_be_given_functions: bool | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Decide, and launch."""
        kernel = self._kernel
        if uses_tlx(kernel.fn) or any(value_uses_tlx(value) for value in (*args, *kwargs.values()) if is_jitted(value)):
            become_ours(kernel, self._our_jit, self._options)
        else:
            if self._may_be_given_functions is None:
                self._may_be_given_functions = takes_functions(kernel.fn)
            if self._may_be_given_functions:
                # The next launch may bring another function, which uses tlx.
                return type(kernel).run(kernel, *args, **kwargs)
            vars(kernel).pop("run", None)
        return kernel.run(*args, **kwargs)


def become_ours(kernel: Any, our_jit: Decorator, options: dict[str, Any]) -> None:
    """Make a kernel of ours of a stock one in place: autotuners and callers hold the object already."""
    hooks = kernel.pre_run_hooks
    made = our_jit(kernel.fn, **options)
    vars(kernel).clear()
    kernel.__class__ = type(made)
    kernel.__init__(made.fn, **options)
    kernel.pre_run_hooks = hooks
