"""The two steps of a configuration, which run in any process: to text, and from text to a binary."""

from __future__ import annotations

import hashlib
import pickle
import time
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tlx_xdsl.backend import BackendError, BackendOptions, BackendResult, compile_ttgir, installed_triton_version
from tlx_xdsl.errors import CompilationError, InputError, InputTypeError, internal_error
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.text.diagnostics import collected_diagnostics

from ..driver.compilation import Specialization, compile_text
from .jobs import Job
from .kernels import KernelReference, UnreachableKernelError, reference_to, resolve

Keep: TypeAlias = Literal["nothing", "binary", "all"]
"""The results that are kept: the verdict alone, also the cubin and what a launcher must know, or every text."""


@dataclass(frozen=True)
class Request:
    """The options of all configurations of a sweep."""

    triton_version: str
    prune: bool = True
    timeout_s: float | None = 600.0
    keep: Keep = "binary"


@dataclass(frozen=True)
class Order:
    """A configuration on its way to another process."""

    reference: KernelReference
    payload: bytes
    """The specialization, pickled: its values may be of classes in the kernel's file, which is loaded before."""
    num_stages: int


@dataclass(frozen=True)
class Lowered:
    """The text of a configuration."""

    name: str
    ttgir: str
    options: BackendOptions
    seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Equal for configurations that stock Triton compiles alike."""
        return hashlib.sha256(f"{self.options}\n{self.name}\n{self.ttgir}".encode()).hexdigest()


@dataclass(frozen=True)
class Compiled:
    """The result of a compiled text."""

    result: BackendResult
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A configuration that did not get through."""

    error: CompilationError
    seconds: float

    def __post_init__(self) -> None:
        """Let the error be sent to another process."""
        self.error.without_history()


@dataclass(frozen=True)
class Unreachable:
    """The process that was asked can't have the kernel; the text is to be made where it was defined."""

    reason: str


def order(job: Job) -> Order:
    """A configuration for another process; raises UnreachableKernelError for what can't get there."""
    reference = reference_to(job.source)
    try:
        payload = pickle.dumps(replace(job.specialization, **_plain(job.specialization)))
    except Exception as error:
        raise UnreachableKernelError(f"its arguments can't be sent: {error}") from error
    return Order(reference, payload, job.num_stages)


def _plain(specialization: Specialization) -> dict[str, object]:
    """The mappings as dictionaries: others may not be picklable."""
    return {"signature": dict(specialization.signature), "constexprs": dict(specialization.constexprs)}


def lower_order(asked: Order, request: Request) -> Lowered | Failed | Unreachable:
    """Make the text of a configuration in this process, where its kernel may be unknown."""
    try:
        source = resolve(asked.reference)
        specialization = pickle.loads(asked.payload)
    except UnreachableKernelError as error:
        return Unreachable(str(error))
    except Exception as error:
        return Unreachable(f"its arguments can't be read there: {type(error).__name__}: {error}")
    return lower(source, specialization, asked.num_stages, request)


def lower(source: KernelSource, specialization: Specialization, num_stages: int, request: Request) -> Lowered | Failed:
    """Make the text of a configuration."""
    start = time.perf_counter()
    try:
        options = specialization.backend_options(num_stages=num_stages, check_resources=request.prune)
        with collected_diagnostics() as diagnostics:
            text = compile_text(
                source,
                specialization,
                triton_version=request.triton_version,
                keep_ttir=False,
                check_budget=request.prune,
            )
    except CompilationError as error:
        return Failed(error, time.perf_counter() - start)
    except (InputError, InputTypeError) as error:
        return Failed(CompilationError(str(error)), time.perf_counter() - start)
    except Exception as error:
        return Failed(internal_error(error), time.perf_counter() - start)
    return Lowered(text.name, text.ttgir, options, time.perf_counter() - start, tuple(map(str, diagnostics)))


def compile_lowered(lowered: Lowered, request: Request) -> Compiled | Failed:
    """Compile a text in this process's worker, whose death is no more than a verdict."""
    start = time.perf_counter()
    installed = installed_triton_version()
    try:
        if installed != request.triton_version:
            raise BackendError(
                f"expected stock Triton {request.triton_version}, for which the text was made, found "
                f"{installed or 'none'} in the process that compiles",
                stage="start",
            )
        result = compile_ttgir(
            lowered.ttgir,
            lowered.options,
            source_name=f"{lowered.name}.ttgir",
            timeout_s=request.timeout_s,
            # It takes up to a minute: `tlx compile` does it for the one configuration that is looked into.
            locate=False,
        )
    except CompilationError as error:
        return Failed(error, time.perf_counter() - start)
    except Exception as error:
        return Failed(internal_error(error), time.perf_counter() - start)
    if request.keep != "all":
        result = replace(result, ttgir="", llir="", ptx="", log="")
    if request.keep == "nothing":
        result = replace(result, cubin=b"")
    return Compiled(result, time.perf_counter() - start)
