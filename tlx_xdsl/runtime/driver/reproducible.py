"""Reproducers of failures, written where they happen: TLX_REPRO names the folder for them."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource

VARIABLE = "TLX_REPRO"
_WRITER = "tlx_xdsl.runtime.repro"
"""By its name, as a kernel's methods call theirs: it runs again what is guarded here."""


class _Writing:
    """True while a reproducer is being written, for which the failing step runs again."""

    active = False


@contextmanager
def reproducible(source: KernelSource, **what: Any) -> Generator[None]:
    """Write a reproducer of a failure where TLX_REPRO asks for it; a note of the error says where.

    `what` are the arguments of `runtime.repro.Failing` beside the source: what the kernel is compiled for, or a launch.
    """
    folder = os.environ.get(VARIABLE)
    if not folder or _Writing.active:
        yield
        return
    if "arguments" in what:
        # The run changes arrays.
        arguments: Mapping[str, Any] = what["arguments"]
        what["arguments"] = {name: copied(value) for name, value in arguments.items()}
    try:
        yield
    except CompilationError as error:
        if not any(note.startswith("reproducer: ") for note in error.notes):
            _Writing.active = True
            try:
                written = import_module(_WRITER).write_into(folder, source, error, **what)
            finally:
                _Writing.active = False
            error.notes = (*error.notes, f"reproducer: python {written}")
        raise


def note_failed_launch(source: KernelSource, grid: Any, args: Any, named: Mapping[str, Any], error: Exception) -> None:
    """Write a reproducer of a launch on a GPU where TLX_REPRO asks for it; a note of the exception says where."""
    folder = os.environ.get(VARIABLE)
    if folder and not _Writing.active:
        written = import_module(f"{_WRITER}.launch").write_launch(folder, source, grid, args, named, error)
        error.add_note(f"reproducer: python {written}")


def copied(value: Any) -> Any:
    """A value with arrays of its own."""
    # What `tlx compile` reads from its cache does without numpy.
    import numpy as np

    from .host_values import is_descriptor

    if isinstance(value, np.ndarray):
        return np.array(cast(Any, value))
    if isinstance(value, list):
        return [copied(each) for each in cast("list[Any]", value)]
    if (parts := getattr(value, "parts", None)) is not None:
        # What differs between ranks or launches.
        return type(value)(tuple(map(copied, parts)))
    base: Any = getattr(value, "base", None)
    if is_descriptor(value) and isinstance(base, np.ndarray):
        sizes = (value.shape, value.strides, value.block_shape)
        return type(value)(copied(cast(Any, base)), *sizes, getattr(value, "padding", "zero"))
    return value
