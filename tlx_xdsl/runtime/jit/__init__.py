"""`@tlx_xdsl.jit`: kernels that are launched on the CPU, and through Triton's runtime on GPUs.

Triton's `JITFunction` specialises, caches, calls hooks and launches; the files here make ours one of its kernels. They
import the compile driver (`compilation`, `kernel`), `launch/` and `cpu/`. Triton is imported where a kernel is made,
not with this package.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import partial
from typing import Any, cast, overload

from ..driver.specialization import Target
from ..host.kernel import CpuKernel
from ..kernel import Kernel
from ..kernel_call import P, R
from ..specialize.settings import Settings


class _Reading:
    """True if kernels are only looked at: then nothing of Triton is needed, which takes its time to load."""

    active = False


@contextlib.contextmanager
def without_launching() -> Generator[None]:
    """Have `jit` make kernels that can't be launched, without loading Triton for them."""
    before, _Reading.active = _Reading.active, True
    try:
        yield
    finally:
        _Reading.active = before


@overload
def jit(fn: Callable[P, R]) -> Kernel[P, R]: ...


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
    target: Target | None = None,
    checks: bool = False,
    passes: Iterable[str] = (),
    warp_specialize: bool | str | Mapping[str, Any] = False,
) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Mark `fn` as a kernel, or as a function that kernels call; calls of a `noinline` one stay calls.

    `kernel[grid](...)` runs it as machine code of the CPU on numpy arrays and tensors of torch that are there. With
    Triton installed, the kernel is a `triton.runtime.jit.JITFunction` as well, which launches it on tensors of a GPU:
    Triton's autotuners and heuristics take it, and the options are those of `triton.jit`.

    `target` says what runs it whatever its arguments are: `cpu`, `gpu` or `interpreter`, where the first needs no
    Triton; `checks=True` has every access on the CPU checked to lie in its array. A launch may say both anew.
    `passes` are passes of other packages that every compile of the kernel has, such as
    `["after:triton-tlx-fixup=my-pass"]` (docs/plug-ins.md). With `warp_specialize` a plain kernel is launched as a
    warp-specialised one where that is right and faster (docs/warp-specialize.md).

    Raises TypeError for what is no function, and for an unknown option, and ValueError for an unknown target.
    """
    unknown = next((name for name in options if name not in _OPTIONS), None)
    if unknown is not None:
        raise TypeError(f"tlx_xdsl.jit has no option '{unknown}': expected one of {', '.join(_OPTIONS)}")
    if fn is None:
        return partial(_kernel, options=options)
    return _kernel(fn, options)


def _parameters(option: str, given: Any) -> list[int | str]:
    """The parameters that an option names, by name or position, also where they come one by one.

    Raises TypeError for anything else.
    """
    found = [] if isinstance(given, str) or not isinstance(given, Iterable) else list(cast("Iterable[Any]", given))
    if not isinstance(given, Iterable) or isinstance(given, str) or not all(isinstance(e, int | str) for e in found):
        raise TypeError(f"{option}: expected a list of names or positions of parameters, found {given!r}")
    return found


_OPTIONS = (
    "version",
    "repr",
    "launch_metadata",
    "do_not_specialize",
    "do_not_specialize_on_alignment",
    "debug",
    "noinline",
    "target",
    "checks",
    "passes",
    "warp_specialize",
)

_OF_PARAMETERS = ("do_not_specialize", "do_not_specialize_on_alignment")

_OF_SOURCE = (*_OF_PARAMETERS, "noinline", "passes")
"""Those that say how the function is read."""

_OF_CPU = (*_OF_SOURCE, "debug", "target", "checks")
"""Those that mean something without Triton."""


def _kernel(fn: Callable[..., Any], options: Mapping[str, Any]) -> Kernel:
    chosen = {name: options[name] for name in _OF_PARAMETERS if options.get(name) is not None}
    options = {**options, **{name: _parameters(name, given) for name, given in chosen.items()}}
    if _Reading.active:
        return Kernel(fn, **{name: options[name] for name in _OF_SOURCE if name in options})
    settings = Settings.of(options.pop("warp_specialize", None))
    of_cpu = {name: options[name] for name in _OF_CPU if name in options}
    plain = CpuKernel(fn, **of_cpu) if settings is None else _specializing(fn, settings, of_cpu)
    if plain.target == "cpu" or not plain.is_launchable():
        return plain
    from .triton_kernel import TritonKernel

    try:
        if settings is not None:
            from .specializing import SpecializingTritonKernel

            return SpecializingTritonKernel(fn, settings=settings, **options)
        return TritonKernel(fn, **options)
    except (AttributeError, NameError, OSError, TypeError, ValueError) as error:
        # Triton reads the text in a way of its own, and computes annotations: it fails over some that we do not. What
        # is wrong with it is reported when the kernel is compiled.
        plain.refused = f"{type(error).__name__}: {error}"
        return plain


def _specializing(fn: Callable[..., Any], settings: Settings, options: Mapping[str, Any]) -> CpuKernel:
    from ..specialize.kernel import Specializing

    made = Specializing(fn, **options)
    made.settings = settings
    return made
