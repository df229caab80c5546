"""`@tlx_xdsl.jit`: kernels on Triton's runtime.

Triton's `JITFunction` specialises, caches, calls hooks and launches; the files here make ours one of its kernels. They
import the compile driver (`compilation`, `kernel`) and `launch/`. Triton is imported where a kernel is made, not with
this package.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, overload

from tlx_xdsl.runtime.kernel import Kernel


class _Reading:
    """True if kernels are only looked at: then nothing of Triton is needed, which takes its time to load."""

    active = False


@contextlib.contextmanager
def without_launching() -> Generator[None]:
    """Within, `jit` makes kernels that can't be launched, and does not load Triton for them."""
    before, _Reading.active = _Reading.active, True
    try:
        yield
    finally:
        _Reading.active = before


@overload
def jit(fn: Callable[..., Any]) -> Kernel: ...


@overload
def jit(
    *,
    version: Any = None,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Iterable[int | str] | None = None,
    do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Callable[[Callable[..., Any]], Kernel]: ...


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Mark `fn` as a kernel, or as a function that kernels call; calls of a `noinline` one stay calls.

    With Triton installed, the kernel is a `triton.runtime.jit.JITFunction` as well: `kernel[grid](...)` launches it,
    Triton's autotuners and heuristics take it, and the options are those of `triton.jit`. Without, or where the text
    of the function is not in a file, it is a plain `Kernel`, which says so when it is launched.

    Raises TypeError for what is no function, and for an unknown option.
    """
    unknown = next((name for name in options if name not in _OPTIONS), None)
    if unknown is not None:
        raise TypeError(f"tlx_xdsl.jit has no option '{unknown}': expected one of {', '.join(_OPTIONS)}")
    if fn is None:
        return lambda fn: _kernel(fn, options)
    return _kernel(fn, options)


_OPTIONS = (
    "version",
    "repr",
    "launch_metadata",
    "do_not_specialize",
    "do_not_specialize_on_alignment",
    "debug",
    "noinline",
)


def _kernel(fn: Callable[..., Any], options: Mapping[str, Any]) -> Kernel:
    plain = Kernel(fn, noinline=bool(options.get("noinline")))
    if _Reading.active or not plain.is_launchable():
        return plain
    from tlx_xdsl.runtime.jit.triton_kernel import TritonKernel

    try:
        return TritonKernel(fn, **options)
    except (AttributeError, OSError, TypeError, ValueError) as error:
        # Triton reads the text in a way of its own, and fails over some that we do not. What is wrong with it is
        # reported when the kernel is compiled.
        plain.refused = f"{type(error).__name__}: {error}"
        return plain
