"""Kernels as operators of torch: `tlx_xdsl.torch.op` makes one of the function that launches a kernel.

    @tlx_xdsl.torch.op("mylib::add")
    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        return out

`torch.compile` keeps such an operator in its graph instead of looking into it, and `torch.export` writes it down by its
name. Importing this module does not import torch; `op` does.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

__all__ = ["op"]


def op(
    name: str, *, mutates_args: str | Iterable[str] = (), fake: Callable[..., Any] | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Make an operator of torch of a function that launches kernels.

    name: `namespace::operator`.
    mutates_args: the names of the arguments that the function writes to; outputs must be new tensors.
    fake: what the outputs are like (shapes, types, strides) without computing them, a function of the same arguments.
        By default the function itself says it: it runs on tensors without data, and its launches do nothing. Give one
        where the function looks at the data, or allocates its outputs otherwise than with torch.
    options: those of `torch.library.custom_op`, such as `device_types` and `schema`.

    The result is called as the function is. It is torch's own `CustomOpDef`: `result.register_autograd(backward,
    setup_context=...)` gives it a derivative, and `register_vmap` and the others work as torch says.

    Raises ModuleNotFoundError without torch, and what torch raises for a bad name or signature.
    """
    torch: Any = import_module("torch")

    def make(fn: Callable[..., Any]) -> Any:
        made = torch.library.custom_op(name, fn, mutates_args=mutates_args, **options)
        made.register_fake(fake if fake is not None else _derived_fake(name, fn))
        return made

    return make


def _derived_fake(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` on tensors without data: what it allocates is what it returns, and launches do nothing."""

    @functools.wraps(fn)
    def fake(*args: Any, **kwargs: Any) -> Any:
        with no_launches():
            try:
                return fn(*args, **kwargs)
            except Exception as error:
                # torch acts on the types of such exceptions: they go on as they are.
                error.add_note(
                    f"'{name}' was run on tensors without data, to find out what its outputs are like; "
                    "tlx_xdsl.torch.op(..., fake=...) takes a function that says it"
                )
                raise

    return fake


_switching = threading.RLock()
"""Held while launches do nothing: what is replaced for that belongs to the whole process."""


@contextmanager
def no_launches() -> Generator[None]:
    """Turn launches of this thread into nothing: `kernel[grid](...)` of any kernel, tuned or not, `bind` and
    `interpret` of ours. Other threads' launches run.
    """
    me = threading.get_ident()

    def unless_mine(original: Callable[..., Any], instead: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            return (instead if threading.get_ident() == me else original)(*args, **kwargs)

        return call

    with _switching:
        replaced: list[tuple[Any, str, Any]] = []
        try:
            for owner, name, instead in _launches():
                original: Any = owner.__dict__[name]
                replaced.append((owner, name, original))
                setattr(owner, name, unless_mine(original, instead))
            yield
        finally:
            for owner, name, original in reversed(replaced):
                setattr(owner, name, original)


def _launches() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Return what launches: what has it, its name, and what does nothing in its place."""

    def nothing(*args: Any, **kwargs: Any) -> None:
        """The launch that does not take place."""

    def launch_nothing(*args: Any, **kwargs: Any) -> Callable[..., None]:
        return nothing

    yield import_module("tlx_xdsl.runtime.simulate.interpret"), "interpret_source", nothing
    try:
        KernelInterface: Any = import_module("triton.runtime.jit").KernelInterface
    except ModuleNotFoundError:
        return
    for cls in (KernelInterface, *_subclasses(KernelInterface)):
        for name in ("__getitem__", "bind"):
            if name in vars(cls):
                yield cls, name, launch_nothing
    from tlx_xdsl.runtime.jit.bound import BoundLaunch

    yield BoundLaunch, "__call__", nothing


def _subclasses(cls: type) -> Iterator[type]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)
