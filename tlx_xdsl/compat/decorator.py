"""`@triton.jit` while the drop-in is installed: kernels that use tlx are ours, all others are stock Triton's."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tlx_xdsl.runtime.driver.specialization import META_OPTIONS

from .usage import is_jitted, takes_functions, uses_tlx, value_uses_tlx

Decorator = Callable[..., Any]

_deciding = threading.Lock()
"""Held while a kernel may become ours: threads may launch it for the first time together."""


def drop_in(
    stock_jit: Decorator, our_jit: Decorator, takes_more: Callable[[Callable[..., Any]], bool] = lambda fn: False
) -> Decorator:
    """A decorator with the arguments of `triton.jit` that hands each function to the compiler that it needs.

    `takes_more` says of a plain kernel, at its first launch, whether it is to be ours, too.

    A function that names something of tlx is ours at once. Of any other it is not known yet, because what it calls may
    be defined below it: it is stock Triton's own object until its first launch, which looks once more.
    """

    def jit(fn: Any = None, **options: Any) -> Any:
        if fn is None:
            return functools.partial(jit, **options)
        if not isinstance(fn, FunctionType):
            return stock_jit(fn, **options)
        if uses_tlx(fn):
            return our_jit(fn, **options)
        kernel = stock_jit(fn, **options)
        kernel.__dict__["run"] = _FirstLaunch(kernel, our_jit, options, takes_more)
        return kernel

    jit.__doc__ = stock_jit.__doc__
    return jit


class _FirstLaunch:
    """Stands in the place of the method `run` of a stock kernel until it is known whose the kernel is."""

    def __init__(
        self, kernel: Any, our_jit: Decorator, options: dict[str, Any], takes_more: Callable[[Any], bool]
    ):  # fmt: skip
        self._kernel = kernel
        self._takes_more = takes_more
        self._our_jit = our_jit
        self._options = options
        self._is_first = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Decide, and launch."""
        kernel = self._kernel
        with _deciding:
            mine = kernel.__dict__.get("run") is self and self._decide(args, kwargs)
        if mine:
            launch: Callable[..., Any] = kernel.__class__.run
            return launch(kernel, *args, **kwargs)
        return kernel.run(*args, **kwargs)

    def settle(self) -> None:
        """Decide without a launch."""
        with _deciding:
            if self._kernel.__dict__.get("run") is self:
                self._decide((), {})

    def _decide(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether the next launch has to be looked at, too; if not, this object has gone from the kernel."""
        kernel = self._kernel
        given = [value for value in (*args, *kwargs.values()) if is_jitted(value)]
        # Stock Triton refuses the options of Meta's: a cluster is one, whatever the kernel does with it.
        asks = not META_OPTIONS.isdisjoint(kwargs)
        if asks or any(map(value_uses_tlx, given)) or (self._is_first and self._is_ours()):
            become_ours(kernel, self._our_jit, self._options)
        elif self._is_first and not takes_functions(kernel.fn):
            del kernel.__dict__["run"]
        else:
            # It may bring another function, one that uses tlx.
            self._is_first = False
            return True
        return False

    def _is_ours(self) -> bool:
        return uses_tlx(self._kernel.fn) or self._takes_more(self._kernel.fn)


def settle(kernel: Any) -> None:
    """Decide now whose `kernel` is, as its first launch would: something else than a launch compiles it."""
    first = getattr(kernel, "__dict__", {}).get("run")
    if isinstance(first, _FirstLaunch):
        first.settle()


def become_ours(kernel: Any, our_jit: Decorator, options: dict[str, Any]) -> None:
    """Make a kernel of ours of a stock one in place: autotuners and callers hold the object already."""
    hooks = kernel.pre_run_hooks
    made = our_jit(kernel.fn, **options)
    ours: type = made.__class__
    stock: type = kernel.__class__
    # Other threads may launch it at any point: what stands in the place of `run`, and has them wait, goes last.
    old = kernel.__dict__.keys() - made.__dict__.keys() - {"run"}
    kernel.__class__ = _becoming(ours, stock)
    settings = getattr(made, "settings", None)
    kernel.__init__(made.fn, **options, **({} if settings is None else {"settings": settings}))
    kernel.pre_run_hooks = hooks
    for name in old:
        del kernel.__dict__[name]
    kernel.__class__ = ours
    kernel.__dict__.pop("run", None)


@functools.cache
def _becoming(ours: type, stock: Any) -> type:
    """The class of a kernel of ours that can be initialised, while it is launched as it was before: through `run`."""
    return type(f"Becoming{ours.__name__}", (ours,), {"__getitem__": stock.__getitem__})
