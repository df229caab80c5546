"""Run scripts that were written for Meta's TLX on stock Triton, as they are.

    import tlx_xdsl.compat
    tlx_xdsl.compat.install()

After that `import triton.language.extra.tlx as tlx` finds our tlx, and kernels decorated with `@triton.jit` that use it
are compiled by tlx_xdsl; all other kernels remain stock Triton's. `uninstall()` takes everything back, and
`with tlx_xdsl.compat.installed():` does both. From a shell: `python -m tlx_xdsl.compat script.py --its --arguments`.

Importing this module changes nothing and imports neither Triton nor torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from tlx_xdsl.compat.installation import Installation

__all__ = ["install", "installed", "is_installed", "uninstall"]

_current: Installation | None = None


def install(*, mode: Literal["launch", "interpret", "compile"] = "launch", target: str = "sm_90a") -> None:
    """Let scripts find tlx, and `@triton.jit` hand kernels that use it to tlx_xdsl. Installing twice changes nothing.

    `mode` says what a launch does: `launch` runs on the GPU; `interpret` runs every kernel, plain ones too, in our
    interpreter, on tensors in the CPU's memory; `compile` makes cubins for `target` and runs nothing. The latter two
    need no GPU: Triton is told of one of the kind `target`. Under `TRITON_INTERPRET=1` a `launch` interprets, too.

    Raises ModuleNotFoundError without Triton, ValueError for an unknown mode or target, and RuntimeError where
    another mode or target is installed already.
    """
    _install(Installation(mode, target), lazily=False)


def uninstall() -> None:
    """Take back all that `install` has changed; without it, nothing happens. Kernels remain what they are."""
    global _current
    if _current is not None:
        _current.revert()
        _current = None


def is_installed() -> bool:
    """Whether the drop-in is in place."""
    return _current is not None


@contextmanager
def installed(
    *, mode: Literal["launch", "interpret", "compile"] = "launch", target: str = "sm_90a", lazily: bool = False
) -> Iterator[None]:
    """`install` for the body of a `with` statement. What is installed already stays so at its end.

    `lazily` waits for the first import of tlx: nothing is imported or changed where there is none.
    """
    before = _current
    _install(Installation(mode, target), lazily)
    try:
        yield
    finally:
        if before is None:
            uninstall()


def _install(wanted: Installation, lazily: bool) -> None:
    global _current
    if _current is None:
        wanted.begin(lazily)
        _current = wanted
    elif not lazily and (wanted.mode, wanted.target) != (_current.mode, _current.target):
        raise RuntimeError(
            f"tlx_xdsl.compat is installed for the mode '{_current.mode}' and {_current.target}: uninstall it first"
        )
