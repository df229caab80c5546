"""The entry point: text in, products out, errors located in the user's source."""

from __future__ import annotations

import linecache
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from tlx_xdsl.errors import Note, SourceLocation

from .client import CLIENT, WorkerClient, client_of
from .errors import BackendError, BackendTimeoutError, OutOfResourcesError
from .locate import SPECIALIZING, find_culprit, hints, intrinsic_of, place_of_call, specialized_loop
from .module_text import ModuleText
from .options import BackendOptions, Isolation, UpTo
from .protocol import Request
from .result import BackendResult
from .toolchain import Toolchain

_ABOUT_THE_MODULE = ("parse", "passes", "llir", "ptx", "cubin")
"""The stages whose failures have a place."""

_LOCATING_SECONDS = 60.0
"""Seconds for which a failure without a location is looked into."""

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
    locate: bool = True,
    on_stage: Callable[[str], None] | None = None,
    toolchain: Toolchain | None = None,
) -> BackendResult:
    """Compile a module in TTGIR text with the installed stock Triton, up to and including `stages`.

    The text must be fully encoded (a layout on every tensor), carry the `ttg.` module attributes and hold one
    public function. `source_name` stands for the text itself in errors and debug information, for operations
    without a `loc`.

    With `isolation="process"` a worker process compiles; it is started by the first compile (about 0.2 s),
    kept, and killed after `timeout_s` seconds. With `"none"` Triton is imported and run here: an assertion in
    Triton ends this process, standard output is redirected meanwhile, and there is no time limit.

    `on_stage` is called with the name of each stage (`parse`, `passes`, `llir`, `ptx`, `cubin`) that begins.

    `toolchain` is another Triton, whose workers are processes in any case.

    Where Triton names no place for a failure, it is looked for by compiling variants of the text, for up to a minute;
    without `locate` such a failure has the place of the kernel.

    Raises BackendError where Triton or ptxas refuse or die, OutOfResourcesError if the kernel could never
    launch on the target, BackendTimeoutError.
    """
    client = client_of(toolchain)
    if client is CLIENT and find_spec("triton") is None:
        raise BackendError("stock Triton is not installed: pip install 'tlx-xdsl[nvidia]' (Linux only)", stage="start")
    _refuse_unwritable(text, source_name)
    try:
        if client is not CLIENT or (isolation == "process" and CLIENT.is_used):
            result = client.compile(text, options, stages, source_name, timeout_s, on_stage)
        else:
            result = _compile_here(text, options, stages, source_name, on_stage)
    except BackendError as error:
        may_try = locate and isolation == "process" and client.is_used
        if any(SPECIALIZING in note for note in error.notes):
            _blame_specialized_loop(error, text, options, source_name, client if may_try else None)
        elif error.location is None and error.stage in _ABOUT_THE_MODULE and not isinstance(error, BackendTimeoutError):
            _locate(error, text, _Tries(options, source_name, client), may_try=may_try)
        error.source_line = _source_line(error.location, text, source_name)
        raise
    return _with_source_lines(result, text, source_name)


def compile_in_this_process() -> None:
    """Compile here from now on, whatever isolation is asked for: in a process whose end costs nothing but its work."""
    CLIENT.stop()
    CLIENT.is_used = False


def _refuse_unwritable(text: str, source_name: str) -> None:
    """Refuse a text that no file can hold; only a half of a surrogate pair is of that kind."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        before = text[: error.start].splitlines() or [""]
        place = SourceLocation(source_name, len(before), len(before[-1]) + 1)
        raise BackendError(f"the text is not Unicode: {error.reason}", place, stage="parse") from error


def _compile_here(
    text: str, options: BackendOptions, stages: UpTo, source_name: str, on_stage: Callable[[str], None] | None
) -> BackendResult:
    # Only here, so that a parent with a worker never imports what imports Triton.
    from .stages import compile_request

    with _IN_PROCESS, tempfile.TemporaryDirectory(prefix="tlx-xdsl-") as directory:
        request = Request(Path(directory), options, stages, source_name)
        request.input_path.write_text(text, encoding="utf-8")
        return compile_request(request, on_stage or (lambda stage: None))


def _locate(error: BackendError, text: str, tries: _Tries, *, may_try: bool) -> None:
    """Give an error the location that stock Triton did not report."""
    module, source_name = ModuleText(text), tries.source_name
    kernel = module.place_of_function(source_name) or module.place_of_module(source_name)
    if isinstance(error, OutOfResourcesError):
        error.location = kernel
        return
    if error.stage == "parse" and not error.death:
        # Our own checks of the module as a whole: what stock's parser refuses has a place.
        error.location = module.place_of_module(source_name)
        return
    try:
        place = _culprit(error, module, tries, may_try=may_try)
    except BackendTimeoutError:
        place = None
    if place is None:
        place = (kernel, ("stock Triton does not say which operation: the place is that of the kernel",))
    error.location, notes = place
    error.notes += notes


_WARPS_OF_TWO_GROUPS = 8
"""Warps among which the pass divides a product of 128 rows: two groups, with 64 rows each."""


def _blame_specialized_loop(
    error: BackendError, text: str, options: BackendOptions, source_name: str, client: WorkerClient | None
) -> None:
    """Say of a failure to specialise a loop that it is about the loop, and whether more warps do."""
    place = specialized_loop(ModuleText(text))
    if place is None:
        return
    said, error.location = error.message, place
    error.message = f"this loop with warp_specialize=True can't be divided among {options.num_warps} warps"
    error.notes = (said, *error.notes)
    if client is not None and options.num_warps < _WARPS_OF_TWO_GROUPS:
        more = replace(options, num_warps=_WARPS_OF_TWO_GROUPS)
        try:
            client.compile(text, more, "cubin", source_name, _LOCATING_SECONDS)
        except BackendError:
            return
        remedy = Note(f"with num_warps={_WARPS_OF_TWO_GROUPS} the kernel compiles", is_remedy=True)
        error.notes = (remedy, *error.notes)


def _culprit(
    error: BackendError, module: ModuleText, tries: _Tries, *, may_try: bool
) -> tuple[SourceLocation, tuple[str, ...]] | None:
    """The place of what an error is about, with notes; None if it can't be found out."""
    if (intrinsic := intrinsic_of(error.message)) is not None:
        place = place_of_call(tries.llir(module.text), intrinsic) if may_try else None
        return None if place is None else (place, ())
    died = may_try and bool(error.death)
    culprit = find_culprit(
        module, error.stage, error.message, lambda candidate: tries.fails_alike(candidate, error), died=died
    )
    if culprit is None:
        return None
    place, callers = module.place_of(culprit, tries.source_name)
    return place, (*callers, *hints(module, culprit))


class _Tries:
    """Compiles variants of a module in workers, for a limited time; raises BackendTimeoutError after it."""

    def __init__(self, options: BackendOptions, source_name: str, client: WorkerClient):
        self.source_name = source_name
        self._client = client
        self._options = options
        self._deadline = time.monotonic() + _LOCATING_SECONDS

    def fails_alike(self, text: str, error: BackendError) -> bool:
        """Return whether a text fails as another one did."""
        try:
            self._compile(text, "cubin")
        except BackendTimeoutError:
            raise
        except BackendError as other:
            return (other.stage, other.message) == (error.stage, error.message)
        return False

    def llir(self, text: str) -> str:
        """Return the LLVM IR of a text that fails later."""
        return self._compile(text, "llir").llir

    def _compile(self, text: str, upto: UpTo) -> BackendResult:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise BackendTimeoutError("no more tries")
        return self._client.compile(text, self._options, upto, self.source_name, remaining)


def _with_source_lines(result: BackendResult, text: str, source_name: str) -> BackendResult:
    warnings = [replace(w, source_line=_source_line(w.location, text, source_name)) for w in result.warnings]
    return replace(result, warnings=tuple(warnings))


def _source_line(location: SourceLocation | None, text: str, source_name: str) -> str | None:
    """Quote the line that is meant. Not the worker's task: it knows no notebook cells."""
    if location is None:
        return None
    if location.filename == source_name:
        lines = text.splitlines()
        return lines[location.line - 1] if 0 < location.line <= len(lines) else None
    linecache.checkcache(location.filename)
    return linecache.getline(location.filename, location.line) or None
