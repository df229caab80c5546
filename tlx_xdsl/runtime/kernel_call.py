"""Signatures of calls of a kernel: for `inspect.signature` and `help`, and for type checkers.

A kernel keeps its function's signature, `Kernel[P, R]`: in another kernel a call returns what the function returns.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Protocol

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from tlx_xdsl.frontend.python.source import KernelSource
    from tlx_xdsl.grid import Grid

    from .driver.specialization import Target

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any, covariant=True)
    F = TypeVar("F", bound=Callable[..., Any])
    Taken = ParamSpec("Taken")
    Answer = TypeVar("Answer")

    class Signed(Generic[P, R]):
        """Type of a function with parameters P and the result R."""
else:
    # Python 3.13 is the first whose variables have a default, which only type checkers look at.
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R", covariant=True)
    F, Answer = TypeVar("F"), TypeVar("Answer")
    Taken = ParamSpec("Taken")

    class Signed:
        # A stock kernel becomes ours by a change of its class, which Python refuses where Generic is a base.
        def __class_getitem__(cls, _: Any) -> type:
            return cls


class Launch(Protocol):
    """A kernel on a grid: `kernel[grid]`."""

    def __call__(
        self,
        *args: Any,
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        enable_fp_fusion: bool | None = None,
        ctas_per_cga: Sequence[int] | None = None,
        target: Target | None = None,
        checks: bool = False,
        debug: bool = False,
        **named: Any,
    ) -> Any:
        """Run the kernel on arguments in the order of its parameters, or named.

        Warps of a program, depth of software pipelines, CTAs that share each tensor, registers of a thread at most,
        whether `a * b + c` may be a fused multiply-add, and CTAs of a cluster matter on GPUs only. `target` is "cpu",
        "gpu" or "interpreter"; by default it is where the arrays are. On a CPU `checks` checks each access. Any other
        option of Triton's is a name, too.
        """
        ...


class LaunchShape:
    """Signature of a kernel's launch for `inspect.signature`: its parameters, and then the options."""

    def __init__(self, source: KernelSource):
        self._source = source

    @property
    def __signature__(self) -> inspect.Signature:
        own = [
            each.replace(annotation=inspect.Parameter.empty)
            for each in self._source.signature.parameters.values()
            if each.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        names = {each.name for each in own}
        options = [
            each
            for each in inspect.signature(Launch.__call__).parameters.values()
            if each.kind is inspect.Parameter.KEYWORD_ONLY and each.name not in names
        ]
        return inspect.Signature([*own, *options])


def forwarded(module: str) -> Callable[[F], F]:
    """Let a method call the function of its name in `module`, with all that it is given; the signature says what.

    The module is imported by the first call.
    """

    def decorate(method: F) -> F:
        @functools.wraps(method)
        def call(self: Any, /, *args: Any, **named: Any) -> Any:
            return getattr(import_module(module), method.__name__)(self, *args, **named)

        return call  # pyright: ignore[reportReturnType]

    return decorate


def taking(
    options: Callable[Taken, None],
) -> Callable[[Callable[..., Answer]], Callable[Concatenate[Any, Grid, Taken], Answer]]:
    """Let a method take a grid and what `options` takes, to type checkers and to `inspect.signature`."""

    def decorate(method: Callable[..., Answer]) -> Callable[Concatenate[Any, Grid, Taken], Answer]:
        found = inspect.signature(method)
        own = list(found.parameters.values())[:2]
        signature = found.replace(parameters=[*own, *inspect.signature(options).parameters.values()])
        setattr(method, "__signature__", signature)  # noqa: B010
        return method

    return decorate
