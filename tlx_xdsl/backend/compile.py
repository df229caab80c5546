"""The room's front door: text in, products out, errors located in the user's source."""

from __future__ import annotations

import linecache
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path

from tlx_xdsl.backend.client import CLIENT
from tlx_xdsl.backend.errors import BackendError
from tlx_xdsl.backend.options import BackendOptions, Isolation, UpTo
from tlx_xdsl.backend.protocol import Request
from tlx_xdsl.backend.result import BackendResult

_IN_PROCESS = threading.Lock()
"""Held while standard output is redirected, which concerns the whole process."""


def compile_ttgir(
    text: str,
    options: BackendOptions,
    *,
    isolation: Isolation = "process",
    stages: UpTo = "cubin",
    source_name: str = "<kernel>",
    timeout_s: float | None = 600.0,
) -> BackendResult:
    """Compile a module in TTGIR text with the installed stock Triton, up to and including `stages`.

    The text must be fully encoded (a layout on every tensor), carry the `ttg.` module attributes and hold one
    public function. `source_name` stands for the text itself in errors and debug information, for operations
    without a `loc`.

    With `isolation="process"` a worker process compiles; it is started by the first compile (about 0.2 s),
    kept, and killed after `timeout_s` seconds. With `"none"` Triton is imported and run here: an assertion in
    Triton ends this process, standard output is redirected meanwhile, and there is no time limit.

    Raises BackendError where Triton or ptxas refuse or die, OutOfResourcesError if the kernel could never
    launch on the target, BackendTimeoutError.
    """
    if find_spec("triton") is None:
        raise BackendError("stock Triton is not installed: pip install 'tlx-xdsl[nvidia]' (Linux only)", stage="start")
    try:
        if isolation == "process":
            return CLIENT.compile(text, options, stages, source_name, timeout_s)
        return _compile_here(text, options, stages, source_name)
    except BackendError as error:
        _show_source(error, text, source_name)
        raise


def _compile_here(text: str, options: BackendOptions, stages: UpTo, source_name: str) -> BackendResult:
    # Only here, so that a parent with a worker never imports what imports Triton.
    from tlx_xdsl.backend.stages import compile_request

    with _IN_PROCESS, tempfile.TemporaryDirectory(prefix="tlx-xdsl-") as directory:
        request = Request(Path(directory), options, stages, source_name)
        request.input_path.write_text(text)
        return compile_request(request, lambda stage: None)


def _show_source(error: BackendError, text: str, source_name: str) -> None:
    """Quote the line at fault. Not the worker's task: it knows no notebook cells."""
    location = error.location
    if location is None:
        return
    if location.filename == source_name:
        lines = text.splitlines()
        error.source_line = lines[location.line - 1] if 0 < location.line <= len(lines) else None
    else:
        linecache.checkcache(location.filename)
        error.source_line = linecache.getline(location.filename, location.line) or None
