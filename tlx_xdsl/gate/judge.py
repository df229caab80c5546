"""The verdicts on one subject: stock Triton's PTX of each version on the PTX machine, beside the interpreter's run."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.backend import BackendError, BackendResult, BackendTimeoutError, Toolchain, compile_ttgir
from tlx_xdsl.backend.defects import cause_of
from tlx_xdsl.errors import CompilationError, InputError, InputOverflowError, InputTypeError
from tlx_xdsl.grid import grid_of
from tlx_xdsl.interpreter.faults import Fault as InterpreterFault, Unsupported
from tlx_xdsl.numerics.difference import difference, tolerance_of
from tlx_xdsl.ptx.read.faults import PtxBudget, PtxFault
from tlx_xdsl.runtime.check.run import arrays_of
from tlx_xdsl.runtime.driver.compilation import Conversion, compile_text, frontend_module
from tlx_xdsl.runtime.driver.host_values import defaults_of, typed
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.runtime.simulate.interpret import interpret_source
from tlx_xdsl.runtime.simulate.options import FRONTEND, TTGIR, Options
from tlx_xdsl.runtime.simulate.ptx_stage import run_result
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.transforms.pipelines import first_beyond_plain

from .spread import TimeOver, time_limit
from .subject import Subject
from .verdict import Fault, Verdict

SECONDS = 10.0
"""Time of a run of the PTX, and of the interpreter's, by default."""

COMPILE_SECONDS = 60.0
"""Time of a compile in stock Triton."""

Arrays = Mapping[str, NDArray[Any]]

_COMMENTS = re.compile(r"^\s*(?://.*|\.version.*|\.file.*)$|\s*//.*$", re.MULTILINE)
"""What of PTX says nothing about what it does."""


@dataclass(frozen=True)
class Manner:
    """How a gate looks at a subject."""

    toolchains: Sequence[Toolchain]
    seconds: float = SECONDS
    with_mends: bool = False
    """Whether plain kernels, too, are compiled as we would: with what we mend of a version's defects."""


def judge(subject: Subject, manner: Manner, known: Mapping[str, Verdict]) -> Iterator[Verdict]:
    """Yield the verdict for each of the Tritons; `known` are verdicts by the digest of PTX and launch."""
    try:
        case = _Case(subject, manner)
    except (CompilationError, InputError, InputTypeError, InputOverflowError) as error:
        for each in manner.toolchains:
            yield _refused(blank(subject, each, manner), error, "the kernel does not compile")
        return
    seen = dict(known)
    for each in manner.toolchains:
        began = time.perf_counter()
        verdict = case.verdict(each, seen)
        verdict = replace(verdict, seconds=round(time.perf_counter() - began, 2))
        if verdict.text and verdict.outcome != "not run":
            seen[verdict.text] = verdict
        yield verdict


def blank(subject: Subject, toolchain: Toolchain, manner: Manner) -> Verdict:
    """The verdict before anything is known."""
    key = subject.key(triton=toolchain.version, mends=str(manner.with_mends))
    return Verdict(key, subject.name, subject.shown, subject.target, toolchain.version, "not run")


def _refused(verdict: Verdict, error: Exception, why: str) -> Verdict:
    known = error if isinstance(error, CompilationError) else CompilationError(" ".join(str(error).split()))
    made = verdict.about(known, "not run")
    return replace(made, message=f"{why}: {made.message}")


class _Case:
    """A subject with its types, and with the interpreter's run once that was made."""

    def __init__(self, subject: Subject, manner: Manner):
        self._subject, self._manner = subject, manner
        options = dict(subject.options)
        self._stages = int(options.pop("num_stages", None) or 3)
        arguments = subject.arguments()
        found = typed(subject.source, arguments, subject.types)
        self._specialization = Specialization(
            found.signature, found.constexprs, subject.target,
            num_warps=int(options.pop("num_warps", None) or 4), num_ctas=int(options.pop("num_ctas", None) or 1),
            **{name: value for name, value in options.items() if value is not None and name != "passes"},
        )  # fmt: skip
        self._grid = grid_of(subject.grid, {**defaults_of(subject.source), **arguments})
        with collected_diagnostics():
            module = frontend_module(subject.source, self._specialization)
        self._plain = first_beyond_plain(module, barriers=True) is None
        lenient: dict[str, Any] = {"unwritten": "warn", "tensor_core_order": "issue"} if subject.is_lenient else {}
        self._options = Options(
            num_warps=self._specialization.num_warps, num_ctas=self._specialization.num_ctas,
            cluster=self._specialization.cluster, target=subject.target, jobs=1, reachable=subject.reachable,
            enable_fp_fusion=self._specialization.enable_fp_fusion, max_seconds=manner.seconds,
            **lenient,
        )  # fmt: skip
        self._data = _digest(arguments, self._grid)
        self._reference: Arrays | CompilationError | None = None

    def verdict(self, toolchain: Toolchain, known: Mapping[str, Verdict]) -> Verdict:
        """What the PTX of a Triton does, beside the interpreter."""
        verdict = blank(self._subject, toolchain, self._manner)
        try:
            result = self._compiled(toolchain)
        except BackendTimeoutError as error:
            return _refused(verdict, error, f"Triton {toolchain.version} compiles for too long")
        except BackendError as error:
            return _refused(verdict, error, f"Triton {toolchain.version} refuses it")
        except CompilationError as error:
            return _refused(verdict, error, f"no text for Triton {toolchain.version}")
        text = hashlib.sha256(f"{self._data} {_COMMENTS.sub('', result.ptx)}".encode()).hexdigest()[:32]
        verdict = replace(verdict, text=text)
        if (same := known.get(text)) is not None:
            return replace(
                same, key=verdict.key, kernel=verdict.kernel, configuration=verdict.configuration,
                triton=toolchain.version, notes=(*same.notes, *self._cause(same, toolchain)),
            )  # fmt: skip
        return self._run(verdict, toolchain, result)

    def _cause(self, verdict: Verdict, toolchain: Toolchain) -> tuple[str, ...]:
        """The known defect that makes the PTX machine say this."""
        defect = cause_of(verdict.message, toolchain.version) if verdict.outcome == "finding" else None
        return () if defect is None else (defect.sentence(toolchain.version),)

    def _compiled(self, toolchain: Toolchain) -> BackendResult:
        conversion: Conversion = "stock" if self._plain else "auto"
        with collected_diagnostics():
            text = compile_text(
                self._subject.source, self._specialization, triton_version=toolchain.version, conversion=conversion,
                keep_ttir=False, as_stock=not self._manner.with_mends,
            )  # fmt: skip
        mends = self._manner.with_mends or not self._plain
        options = self._specialization.backend_options(num_stages=self._stages, mends=mends)
        return compile_ttgir(
            text.ttgir, options, stages="ptx", source_name=f"{text.name}.ttgir", timeout_s=COMPILE_SECONDS,
            locate=False, toolchain=toolchain,
        )  # fmt: skip

    def _run(self, verdict: Verdict, toolchain: Toolchain, result: BackendResult) -> Verdict:
        seconds = self._manner.seconds
        arguments = self._subject.arguments()
        values = typed(self._subject.source, arguments, self._subject.types).values
        before = _copied(arguments)
        found: CompilationError | None = None
        try:
            with collected_diagnostics(), time_limit(seconds):
                run_result(
                    result, self._subject.source.name, self._specialization.cluster, values, self._grid, self._options
                )
        except (TimeOver, PtxBudget):
            return replace(verdict, message=f"the PTX machine ran for {seconds:g} s")
        except PtxFault as error:
            found = error
        except (CompilationError, InputError, InputTypeError, InputOverflowError) as error:
            return _refused(verdict, error, "the PTX machine can't run it")
        after = _copied(arguments)
        reference = self._interpreted()
        if found is not None:
            made = verdict.about(found, "finding", self._fault(reference), _said(reference))
            return replace(made, notes=(*self._cause(made, toolchain), *made.notes))
        if isinstance(reference, CompilationError):
            if _reports(reference):
                return verdict.about(reference, "finding", "kernel", "the interpreter says this; the PTX has no report")
            return replace(verdict, outcome="clean", notes=(_said(reference),))
        return self._compared(verdict, before, after, reference)

    def _compared(self, verdict: Verdict, before: Arrays, after: Arrays, reference: Arrays) -> Verdict:
        for name, expected in reference.items():
            ours = after[name]
            if ours.tobytes() == before[name].tobytes() == expected.tobytes():
                continue
            apart = difference(ours, expected, tolerance_of(expected.dtype))
            if apart.wrong:
                where = ", ".join(map(str, apart.at))
                return replace(
                    verdict, outcome="differs", fault="Triton", file=self._subject.source.filename,
                    line=self._subject.source.fn.__code__.co_firstlineno,
                    message=f"{name}[{where}] is {apart.found:g} and should be {apart.expected:g}: {apart.wrong} of "
                    f"{apart.size} elements differ, the largest error is {apart.largest:.1e}",
                )  # fmt: skip
        return replace(verdict, outcome="clean")

    def _interpreted(self) -> Arrays | CompilationError:
        """What the arrays hold after the interpreter's run of what the frontend, or our passes, make; or its error."""
        if self._reference is None:
            arguments = self._subject.arguments()
            # Of a plain kernel stock Triton gets what the frontend makes.
            options = replace(self._options, stage=FRONTEND if self._plain else TTGIR)
            self._reference = CompilationError(f"it ran for {self._manner.seconds:g} s")
            try:
                with collected_diagnostics(), time_limit(self._manner.seconds):
                    interpret_source(self._subject.source, self._grid, arguments, options, self._subject.types)
                self._reference = _copied(arguments)
            except TimeOver:
                pass
            except CompilationError as error:
                self._reference = error
        return self._reference

    def _fault(self, reference: Arrays | CompilationError) -> Fault:
        if not isinstance(reference, CompilationError):
            return "Triton"
        return "kernel" if _reports(reference) else ""


def _reports(error: CompilationError) -> bool:
    return isinstance(error, InterpreterFault) and not isinstance(error, Unsupported)


def _said(reference: Arrays | CompilationError) -> str:
    if not isinstance(reference, CompilationError):
        return "the interpreter has no report: the kernel is right as it is written"
    what = "says of the kernel" if _reports(reference) else "can't say whether the kernel is right"
    where = "" if reference.location is None else f"{reference.location}: "
    return f"the interpreter {what}: {where}{reference.message}"


def _copied(arguments: Mapping[str, Any]) -> Arrays:
    return {name: array.view(np.ndarray).copy() for name, array in arrays_of(arguments).items()}


def _digest(arguments: Mapping[str, Any], grid: tuple[int, int, int]) -> str:
    """The digest of what a launch gets."""
    digest = hashlib.sha256(repr((grid, prod(grid))).encode())
    for name, array in arrays_of(arguments).items():
        digest.update(f"{name} {array.shape} {array.strides} {array.dtype}".encode())
        digest.update(np.ascontiguousarray(array.view(np.ndarray)).tobytes())
    digest.update(repr([(n, v) for n, v in arguments.items() if isinstance(v, bool | int | float)]).encode())
    return digest.hexdigest()
