"""Run scripts that were written for Meta's TLX on stock Triton, as they are.

    import tlx_xdsl.compat
    tlx_xdsl.compat.install()

After that `import triton.language.extra.tlx as tlx` finds our tlx, and kernels decorated with `@triton.jit` that use it
are compiled by tlx_xdsl; all other kernels remain stock Triton's. `uninstall()` takes everything back, and
`with tlx_xdsl.compat.installed():` does both. From a shell: `python -m tlx_xdsl.compat script.py --its --arguments`.

Importing this module changes nothing and imports neither Triton nor torch.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tlx_xdsl.targets import target_named

from .installation import Installation, Mode, Replaced

if TYPE_CHECKING:
    from tlx_xdsl.runtime.check.report import Finding

NEEDS_TRITON = "it needs Triton: pip install 'tlx-xdsl[nvidia]' (Linux only)"
"""The note for a script that imports Triton where there is none."""

__all__ = [
    "NEEDS_TRITON",
    "findings",
    "install",
    "installed",
    "is_installed",
    "reading",
    "torch_without_gpu",
    "uninstall",
]


class _State:
    """The drop-in of this process."""

    current: Installation | None = None


def install(
    *, mode: Mode = "launch", target: str = "sm_90a", warp_specialize: bool | str | Mapping[str, Any] = False
) -> None:
    """Let scripts find tlx, and `@triton.jit` hand kernels that use it to tlx_xdsl. Installing twice changes nothing.

    `mode` says what a launch does: `launch` runs on the GPU; `cpu` runs every kernel as machine code of the CPU, on
    tensors in its memory, where torch then puts what is asked for on a GPU; `interpret` runs every kernel, plain ones
    too, in our interpreter, on tensors in the CPU's memory; `check` checks each launch in several orders before that,
    as `tlx check` does (`findings`); `ptx` runs the PTX that stock Triton makes of every kernel, on the same;
    `record` keeps each launch for `tlx gate`, and interprets it; `compile` makes cubins for `target` and runs nothing.
    All but `launch` need no GPU: Triton sees one of the kind `target`.
    Under `TRITON_INTERPRET=1` a `launch` interprets, too.

    With `warp_specialize`, which takes what that of `tlx_xdsl.jit` does, launches of plain kernels that multiply blocks
    in a loop are those of warp-specialised kernels where that is right and faster (docs/warp-specialize.md).

    Raises ModuleNotFoundError without Triton, ValueError for an unknown mode or target, and RuntimeError where
    another mode or target is installed already.
    """
    wanted = Installation(mode, target, warp_specialize or None)
    current = _State.current
    if current is None:
        wanted.begin()
        _State.current = wanted
    elif (mode, target, wanted.warp_specialize) != (current.mode, current.target, current.warp_specialize):
        raise RuntimeError(
            f"tlx_xdsl.compat is installed with mode='{current.mode}', target='{current.target}': uninstall it first"
        )


def uninstall() -> None:
    """Take back all that `install` has changed; without it, nothing happens. Kernels remain what they are."""
    if _State.current is not None:
        _State.current.revert()
        _State.current = None


def findings() -> Sequence[Finding]:
    """Return the findings of launches under `mode="check"` in this process: each line once, with one such launch."""
    from .checked import RECORD

    return RECORD.findings


def is_installed() -> bool:
    """Return whether the drop-in is in place."""
    return _State.current is not None


@contextmanager
def installed(
    *, mode: Mode = "launch", target: str = "sm_90a", warp_specialize: bool | str | Mapping[str, Any] = False
) -> Generator[None]:
    """`install` for the body of a `with` statement. What is installed already stays so at its end."""
    before = is_installed()
    install(mode=mode, target=target, warp_specialize=warp_specialize)
    try:
        yield
    finally:
        if not before:
            uninstall()


def torch_without_gpu(target: str = "sm_90a") -> AbstractContextManager[None]:
    """Put what is asked for on a GPU into the CPU's memory, and let `torch.cuda` say that there is a GPU.

    The GPU that is not there is of the kind `target`; its streams and events do nothing, and tensors say `is_cuda`.
    It holds for the whole process. `install(mode="cpu")` does so, too.

    Raises ModuleNotFoundError without torch, ValueError for an unknown target.
    """
    from .cuda_as_cpu import replacements_of_torch, torch_module

    target_named(target)
    torch_module()
    # It finds torch's functions by what their names stand for as it is imported: that must not be the replacements.
    import_module("torch._dynamo")
    return Replaced(partial(replacements_of_torch, target))


@contextmanager
def reading(target: str = "sm_90a") -> Generator[None]:
    """Let files that are written for Meta's TLX be imported, for their kernels to be looked at.

    Nothing is changed, nor Triton imported, before a file imports tlx. From then on Triton knows clusters in `Config`,
    and a GPU of the kind `target`; its `jit` stays stock's. Where the drop-in is installed, nothing happens.
    """
    if is_installed():
        yield
        return
    here = Installation("read", target)
    here.begin_lazily()
    try:
        yield
    finally:
        here.revert()
