"""The verdicts on one subject: stock Triton's PTX of each version on the PTX machine, beside the interpreter's run."""

from __future__ import annotations

import hashlib
import linecache
import re
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.backend import BackendError, BackendResult, BackendTimeoutError, Toolchain, compile_ttgir
from tlx_xdsl.backend.assemble import assembled
from tlx_xdsl.backend.assemblers import Assembler, remedy_for_products
from tlx_xdsl.backend.defects import cause_of
from tlx_xdsl.backend.ptxas import products_of_registers
from tlx_xdsl.errors import CompilationError, InputError, InputOverflowError, InputTypeError
from tlx_xdsl.grid import grid_of
from tlx_xdsl.numerics.arrays import is_float
from tlx_xdsl.numerics.difference import wide
from tlx_xdsl.numerics.uninitialized import UninitializedArray
from tlx_xdsl.ptx.read.faults import PtxBudget
from tlx_xdsl.runtime.check.run import arrays_of
from tlx_xdsl.runtime.driver.compilation import Conversion, compile_text, frontend_module
from tlx_xdsl.runtime.driver.host_values import defaults_of, typed
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.runtime.simulate.interpret import interpret_source
from tlx_xdsl.runtime.simulate.options import FRONTEND, TTGIR, Options
from tlx_xdsl.runtime.simulate.ptx_comparison import (
    about_conversions,
    compared_arrays,
    reports,
    undefined_conversions,
    ways_to,
)
from tlx_xdsl.runtime.simulate.ptx_stage import FinalRun, is_stock, run_result
from tlx_xdsl.sass.check import validate
from tlx_xdsl.text.diagnostics import collected_diagnostics

from .machine_code import own_assembler
from .spread import TimeOver, time_limit
from .subject import Subject
from .verdict import Fault, Verdict

SECONDS = 10.0
"""Time of a processor for a run of the PTX, for the interpreter's, and for the look at a cubin, by default."""

COMPILE_SECONDS = 60.0
"""Time of a compile in stock Triton."""

Arrays = Mapping[str, NDArray[Any]]

_COMMENTS = re.compile(r"^\s*(?://.*|\.version.*|\.file.*)$|\s*//.*$", re.MULTILINE)
"""What of PTX says nothing about what it does."""

_NUMBERS = {
    "clean": "in the order that was run the numbers are right all the same",
    "differs": "in the order that was run the numbers are wrong, too",
}

_INPUT_ERRORS = (CompilationError, InputError, InputTypeError, InputOverflowError)


@dataclass(frozen=True)
class Manner:
    """Settings of a gate: toolchains, a limit of seconds, cubins that are looked at."""

    toolchains: Sequence[Toolchain]
    seconds: float = SECONDS
    with_mends: bool = False
    """Whether plain kernels, too, are compiled as we would: with what we mend of a version's defects."""
    assemblers: Sequence[Assembler] = ()
    """Those whose cubins are looked at; by default the one that a Triton takes by itself, where it is known to
    miscompile products and there are such."""
    with_cubins: bool = False
    """Whether cubins are looked at in any case."""

    def assemblers_of(self, toolchain: Toolchain, target: str) -> Sequence[Assembler]:
        """The assemblers of a Triton whose cubins may be looked at."""
        own = None if self.assemblers else own_assembler(toolchain, target)
        every = self.assemblers if own is None else (own,)
        return [each for each in every if self.with_cubins or not each.is_right]


def blanks(subject: Subject, manner: Manner) -> Iterator[tuple[Verdict, Verdict | None]]:
    """Yield each verdict that a subject may get, before anything is known; of a cubin with that of its PTX."""
    for toolchain in manner.toolchains:
        key = subject.key(triton=toolchain.version, mends=str(manner.with_mends))
        of_ptx = Verdict(key, subject.name, subject.shown, subject.target, toolchain.version, "not run")
        yield of_ptx, None
        for each in manner.assemblers_of(toolchain, subject.target):
            key = subject.key(triton=toolchain.version, mends=str(manner.with_mends), ptxas=each.release)
            yield replace(of_ptx, key=key, assembler=each.release), of_ptx


def needs_cubin(verdict: Verdict, manner: Manner) -> bool:
    """Return whether the cubin of judged PTX is to be looked at, too."""
    return verdict.text != "" and (manner.with_cubins or verdict.has_products_of_registers)


def judge(subject: Subject, manner: Manner, texts: Mapping[str, Verdict], kept: Container[str]) -> Iterator[Verdict]:
    """Yield the verdicts whose keys are not `kept`; `texts` are verdicts by the digest of PTX and launch."""
    planned = list(blanks(subject, manner))
    try:
        case = _Case(subject, manner)
    except _INPUT_ERRORS as error:
        yield from (
            _refused(each, error, "the kernel does not compile")
            for each, of_ptx in planned
            if of_ptx is None and each.key not in kept
        )
        return
    seen = dict(texts)
    for toolchain in manner.toolchains:
        of_ptx, *of_cubins = [each for each, _ in planned if each.triton == toolchain.version]
        began = time.perf_counter()
        compiled = case.compiled(of_ptx, toolchain)
        if isinstance(compiled, Verdict):
            if of_ptx.key not in kept:
                yield compiled
            continue
        verdict, result = compiled
        if of_ptx.key not in kept:
            done = replace(case.run(verdict, result, seen), seconds=_since(began))
            if done.outcome != "not run":
                seen[done.text] = done
            yield done
        if needs_cubin(verdict, manner):
            tools = manner.assemblers_of(toolchain, subject.target)
            for blank, tool in zip(of_cubins, tools, strict=True):
                if blank.key not in kept:
                    began = time.perf_counter()
                    yield replace(case.of_cubin(blank, result, tool), seconds=_since(began))


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 2)


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
            **{name: value for name, value in options.items() if value is not None},
        )  # fmt: skip
        self._grid = grid_of(subject.grid, {**defaults_of(subject.source), **arguments})
        with collected_diagnostics():
            self._module = frontend_module(subject.source, self._specialization)
        self._plain = is_stock(self._module)
        self._place = subject.source.place
        self._toolchains = {each.version: each for each in manner.toolchains}
        lenient: dict[str, Any] = {"unwritten": "warn", "tensor_core_order": "issue"} if subject.is_lenient else {}
        self._options = Options(
            num_warps=self._specialization.num_warps, num_ctas=self._specialization.num_ctas,
            cluster=self._specialization.cluster, target=subject.target, jobs=1, reachable=subject.reachable,
            enable_fp_fusion=self._specialization.enable_fp_fusion, keep_going=True, **lenient,
        )  # fmt: skip
        self._data = _digest(arguments, self._grid)
        self._reference: Arrays | CompilationError | None = None

    def compiled(self, verdict: Verdict, toolchain: Toolchain) -> Verdict | tuple[Verdict, BackendResult]:
        """The PTX of a Triton, and the verdict with its digest; the verdict alone where there is no PTX."""
        result = self._backend(self._specialization, toolchain)
        if isinstance(result, BackendTimeoutError):
            return _refused(verdict, result, f"Triton {toolchain.version} compiles for too long")
        if isinstance(result, BackendError):
            return _refused(verdict, result, f"Triton {toolchain.version} refuses it")
        if isinstance(result, Exception):
            return _refused(verdict, result, f"no text for Triton {toolchain.version}")
        digest = hashlib.sha256(f"{self._data} {_COMMENTS.sub('', result.ptx)}".encode()).hexdigest()[:32]
        has_products = bool(products_of_registers(result.ptx))
        return replace(verdict, text=digest, has_products_of_registers=has_products), result

    def _backend(self, specialization: Specialization, toolchain: Toolchain) -> BackendResult | CompilationError:
        """The PTX of a Triton, or why there is none."""
        conversion: Conversion = "stock" if self._plain else "auto"
        mends = self._manner.with_mends or not self._plain
        try:
            with collected_diagnostics():
                text = compile_text(
                    self._subject.source, specialization, triton_version=toolchain.version, conversion=conversion,
                    keep_ttir=False, as_stock=not mends,
                )  # fmt: skip
            return compile_ttgir(
                text.ttgir, specialization.backend_options(num_stages=self._stages, mends=mends), stages="ptx",
                source_name=f"{text.name}.ttgir", timeout_s=COMPILE_SECONDS, locate=False, toolchain=toolchain,
            )  # fmt: skip
        except CompilationError as error:
            return error

    def run(self, verdict: Verdict, result: BackendResult, texts: Mapping[str, Verdict]) -> Verdict:
        """Run PTX, or take what is known of it."""
        if (same := texts.get(verdict.text)) is not None:
            names = ("key", "kernel", "configuration", "triton")
            return self._with_cause(replace(same, **{name: getattr(verdict, name) for name in names}))
        before, after, done = self._ran(result)
        if done is None:
            return replace(verdict, message=f"the PTX machine ran for {self._manner.seconds:g} s")
        if not isinstance(done, FinalRun):
            return _refused(verdict, done, "the PTX machine can't run it")
        reference = self._interpreted()
        numbers = None if done.run is None else self._compared(verdict, result, before, after, reference)
        if done.faults:
            first, *others = done.faults
            notes = [_said(reference), *([] if numbers is None else [_NUMBERS[numbers.outcome]])]
            made = verdict.about(first, "finding", _fault(reference), *notes)
            also = tuple(f"also at {each.location}: {each.message}" for each in others)
            return self._with_cause(replace(made, notes=(*made.notes, *also)))
        assert numbers is not None
        if isinstance(reference, CompilationError) and reports(reference):
            return verdict.about(reference, "finding", "kernel", "the interpreter says this; the PTX has no report")
        return numbers

    def _ran(self, result: BackendResult) -> tuple[Arrays, Arrays, FinalRun | Exception | None]:
        """The arrays before and after a run of the PTX, and how it went: None where its time was over."""
        arguments = self._subject.arguments()
        values = typed(self._subject.source, arguments, self._subject.types).values
        before = _copied(arguments)
        name, cluster = self._subject.source.name, self._specialization.cluster
        done: FinalRun | Exception | None
        try:
            with collected_diagnostics(), time_limit(self._manner.seconds):
                done = run_result(result, name, cluster, values, self._grid, self._options)
        except TimeOver:
            done = None
        except _INPUT_ERRORS as error:
            done = error
        if isinstance(done, FinalRun) and done.faults and isinstance(done.faults[-1], PtxBudget):
            done = replace(done, run=None, faults=done.faults[:-1]) if len(done.faults) > 1 else None
        return before, _copied(arguments), done

    def of_cubin(self, verdict: Verdict, result: BackendResult, tool: Assembler) -> Verdict:
        """Compare a cubin with its PTX."""
        try:
            cubin, _ = assembled(
                result.ptx, tool, self._subject.target, triton_version=result.triton_version, fp_fusion=result.fp_fusion
            )
            with time_limit(self._manner.seconds):
                report = validate(result.ptx, cubin)
        except TimeOver:
            return replace(verdict, message=f"the look at the cubin took {self._manner.seconds:g} s")
        except CompilationError as error:
            return _refused(verdict, error, "the cubin can't be looked at")
        verdict = replace(verdict, compared=report.compared, undecided=report.undecided)
        if not report.findings:
            return replace(verdict, outcome="clean")
        first, *others = report.findings
        notes = [f"{tool} has made it, at {first.sass_address}; {remedy_for_products(None)}"]
        if first.ptx_expression:
            notes.append(f"the PTX has {first.ptx_expression}, the machine code {first.sass_expression}")
        notes += [f"also {each.location}: {each.message}" for each in others]
        return verdict.about(CompilationError(first.message, first.location, notes=tuple(notes)), "finding", "ptxas")

    def _with_cause(self, verdict: Verdict) -> Verdict:
        """The verdict with the known defect of its Triton that makes the PTX machine say this."""
        said = "\n".join((verdict.message, *verdict.notes))
        defect = cause_of(said, verdict.triton) if verdict.outcome == "finding" else None
        if defect is None or verdict.defect:
            return verdict
        return replace(verdict, defect=defect.name, notes=(defect.sentence(verdict.triton), *verdict.notes))

    def _compared(
        self,
        verdict: Verdict,
        result: BackendResult,
        before: Arrays,
        after: Arrays,
        reference: Arrays | CompilationError,
    ) -> Verdict:
        """Compare what the PTX has written with the interpreter's arrays."""
        if isinstance(reference, CompilationError):
            return replace(verdict, outcome="clean", notes=(_said(reference),))
        changed = {
            name
            for name, array in before.items()
            if any(each[name].tobytes() != array.tobytes() for each in (after, reference))
        }
        passed = ways_to(before, self._module) if changed else {}
        comparison = compared_arrays(changed, after, reference, passed, 0.0)
        if (wrong := comparison.wrong) is None:
            notes = [f"what '{name}' holds depends on the order of programs" for name in comparison.unordered]
            return replace(verdict, outcome="clean", notes=tuple(notes))
        name, array = wrong
        if result.fp_fusion and self._is_right_without_fusion(result, changed, reference):
            return replace(verdict, outcome="clean", notes=(f"contracted products and sums change '{name}'",))
        if places := undefined_conversions(self._interpreted_again, after, reference, passed, changed):
            return replace(verdict, outcome="clean", notes=(about_conversions(places),))
        if self._is_noise([each for each, found in comparison.arrays.items() if found.is_wrong], after, reference):
            return replace(verdict, outcome="clean", notes=(f"the last bits of what goes in change '{name}' as much",))
        place = array.writers[0] if array.writers else self._place
        error = CompilationError(array.sentence(name), place, source_line=linecache.getline(place.filename, place.line))
        return verdict.about(error, "differs", "Triton")

    def _is_right_without_fusion(self, result: BackendResult, changed: set[str], reference: Arrays) -> bool:
        """Return whether the code has the interpreter's numbers where no product is contracted with a sum."""
        apart = replace(self._specialization, enable_fp_fusion=False)
        other = self._backend(apart, self._toolchains[result.triton_version])
        if isinstance(other, Exception):
            return False
        before, after, done = self._ran(other)
        if not isinstance(done, FinalRun) or done.run is None:
            return False
        return compared_arrays(changed, after, reference, ways_to(before, self._module), 0.0).wrong is None

    def _is_noise(self, names: Sequence[str], after: Arrays, reference: Arrays) -> bool:
        """Return whether arrays differ no more than the interpreter's do when the last bits of its inputs are others.

        Sums whose parts cancel each other have few right digits, in whatever order they are computed.
        """
        arguments = self._subject.arguments()
        for array in arrays_of(arguments).values():
            _nudge(array)
        near = self._interpret(arguments)
        if isinstance(near, CompilationError):
            return False
        return all(
            _apart(after[name], reference[name]) <= _NOISE * _apart(near[name], reference[name]) for name in names
        )

    def _interpreted(self) -> Arrays | CompilationError:
        """Return the arrays after the interpreter's run of what the frontend, or our passes, make; or its error."""
        if self._reference is None:
            self._reference = self._interpret(self._subject.arguments())
        return self._reference

    def _interpreted_again(self) -> Arrays:
        found = self._interpret(self._subject.arguments())
        if isinstance(found, CompilationError):
            raise found
        return found

    def _interpret(self, arguments: Mapping[str, Any]) -> Arrays | CompilationError:
        # Of a plain kernel stock Triton gets what the frontend makes.
        options = replace(self._options, stage=FRONTEND if self._plain else TTGIR)
        try:
            with collected_diagnostics(), time_limit(self._manner.seconds):
                interpret_source(self._subject.source, self._grid, arguments, options, self._subject.types)
        except TimeOver:
            return CompilationError(f"it ran for {self._manner.seconds:g} s")
        except CompilationError as error:
            return error
        return _copied(arguments)


_NOISE = 8.0
"""How many times as far as noise of the inputs makes them arrays may be apart."""

_NOISE_BITS = {4: 8, 8: 8}
"""Steps by which inputs are changed at most, by the bytes of an element: of narrower types one is a good deal."""


def _nudge(array: NDArray[Any]) -> None:
    """Change the last bits of floating-point numbers in place; zeros, infinities and what nothing has written stay."""
    if not is_float(array.dtype) or not array.size or isinstance(array, UninitializedArray):
        return
    bits = np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}")
    most = _NOISE_BITS.get(array.dtype.itemsize, 1)
    random = np.random.default_rng(array.size)
    moved = (bits + random.integers(-most, most + 1, bits.shape).astype(bits.dtype)).view(array.dtype)
    values = wide(array)
    array[...] = np.where(np.isfinite(values) & (values != 0) & np.isfinite(wide(moved)), moved, array)


def _apart(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The largest distance of two elements; infinity where one is finite or a number, and the other is not."""
    ours, theirs = wide(one), wide(other)
    with np.errstate(invalid="ignore"):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        far = np.where(same, 0.0, np.abs(ours - theirs).astype(np.float64))
    return float(np.max(np.where(np.isnan(far), np.inf, far), initial=0.0))


def _fault(reference: Arrays | CompilationError) -> Fault:
    if not isinstance(reference, CompilationError):
        return "Triton"
    return "kernel" if reports(reference) else ""


def _said(reference: Arrays | CompilationError) -> str:
    if not isinstance(reference, CompilationError):
        return "the interpreter has no report: the kernel is right as it is written"
    what = "says of the kernel" if reports(reference) else "can't say whether the kernel is right"
    where = "" if reference.location is None else f"{reference.location}: "
    return f"the interpreter {what}: {where}{reference.message}"


def _copied(arguments: Mapping[str, Any]) -> Arrays:
    return {name: array.view(np.ndarray).copy() for name, array in arrays_of(arguments).items()}


def _digest(arguments: Mapping[str, Any], grid: tuple[int, int, int]) -> str:
    """The digest of what a launch gets."""
    digest = hashlib.sha256(repr(grid).encode())
    for name, array in arrays_of(arguments).items():
        digest.update(f"{name} {array.shape} {array.strides} {array.dtype}".encode())
        digest.update(np.ascontiguousarray(array.view(np.ndarray)).tobytes())
    digest.update(repr([(n, v) for n, v in arguments.items() if isinstance(v, bool | int | float)]).encode())
    return digest.hexdigest()
