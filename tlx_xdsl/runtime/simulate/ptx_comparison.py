"""A run of final PTX beside the interpreter's run of the TTGIR that it is made of: numbers and reports of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from ml_dtypes import finfo
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.roundings import DECIDED, UNORDERED, Way, ways
from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.backend.defects import Defect, cause_of
from tlx_xdsl.backend.options import default_fp_fusion
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.grid import Grid
from tlx_xdsl.interpreter.faults import Fault, Unsupported
from tlx_xdsl.interpreter.out_of_range import other_answers
from tlx_xdsl.numerics.arrays import is_float
from tlx_xdsl.numerics.difference import Difference, difference, tolerance_of, wide
from tlx_xdsl.ptx.read.faults import PtxBudget, PtxFault

from ..driver.host_values import flattened, is_constant, is_descriptor
from .interpret import Interpretation, interpret_source, module_of
from .options import PTX, TTGIR, Options

DECIDED_SHARE = 1 / 16
"""Elements that may differ where a comparison of computed numbers decides about them: some lie at its edge."""


@dataclass(frozen=True)
class Compared:
    """An array of both runs."""

    difference: Difference
    tolerance: float
    """How far elements may be apart, of the largest one, by the narrowest type on their way."""
    most: int = 0
    """Elements that may be further apart."""
    writers: tuple[SourceLocation, ...] = ()
    """Where the kernel writes it."""

    @property
    def is_wrong(self) -> bool:
        """Return whether the runs differ in more than the order of sums."""
        return self.difference.wrong > self.most

    def sentence(self, name: str) -> str:
        """Return what differs, of the array of that name."""
        found = self.difference
        return (
            f"the PTX and the interpreter's run of the TTGIR differ: {found.wrong} of {found.size} elements of "
            f"'{name}' by more than {self.tolerance:g} of the largest value: element {list(found.at)} is "
            f"{found.found:g}, the interpreter has {found.expected:g}"
        )


@dataclass(frozen=True)
class Comparison:
    """Comparison of a run of PTX with the interpreter's run."""

    arrays: Mapping[str, Compared] = field(default_factory=dict[str, Compared])
    """The arrays that one of the two runs has changed, by name."""
    seconds: float = 0.0
    """Time of the interpreter's run."""
    refusal: CompilationError | None = None
    """Why the interpreter could not run the kernel, where it could not."""
    unordered: tuple[str, ...] = ()
    """Arrays that are not compared, since what they hold depends on the order of programs."""
    contracted: bool = False
    """Whether products that are contracted with sums are why arrays differ: without, they do not."""
    out_of_range: tuple[SourceLocation, ...] = ()
    """Conversions to integers of numbers that are out of range, where what comes of them is all that differs."""

    @property
    def wrong(self) -> tuple[str, Compared] | None:
        """The first array that is not what the interpreter has."""
        if self.contracted or self.out_of_range:
            return None
        return next(((name, each) for name, each in self.arrays.items() if each.is_wrong), None)


@dataclass(frozen=True)
class BothRuns:
    """Runs of the final PTX and of the interpreter with the same arguments."""

    ptx: Interpretation | PtxFault
    ttgir: Interpretation | CompilationError | None
    """None where the PTX has taken too long."""
    comparison: Comparison


def both_runs(
    run: Callable[[Mapping[str, Any]], Interpretation],
    arrays: Mapping[str, NDArray[Any]],
    module: Callable[[], ModuleOp],
    options: Options,
) -> BothRuns:
    """Run the PTX of a kernel and its TTGIR on the same arrays, which hold what the PTX has written at the end.

    `run` runs the kernel with these options besides `options`; `module` is what the frontend makes of it.

    Raises CompilationError for what does not compile, and PtxBudget where the PTX takes too long and is not to go on.
    """
    before = _values(arrays)
    ptx: Interpretation | PtxFault
    try:
        ptx = run({"stage": PTX})
    except PtxFault as error:
        if isinstance(error, PtxBudget):
            raise
        ptx = error
    ours = _values(arrays)
    if isinstance(ptx, Interpretation) and ptx.faults and isinstance(ptx.faults[-1], PtxBudget):
        return BothRuns(ptx, None, Comparison())
    _restore(arrays, before)
    ttgir: Interpretation | CompilationError
    try:
        ttgir = run({"stage": TTGIR, "profile": False})
    except CompilationError as error:
        ttgir = error
    theirs = _values(arrays)
    comparison = Comparison()
    if isinstance(ttgir, CompilationError):
        comparison = Comparison(refusal=ttgir)
    elif isinstance(ptx, Interpretation) and ptx.ptx is not None:
        changed = {name for name in arrays if _changes(name, before, ours, theirs)}
        passed = ways_to(arrays, module()) if changed else {}
        comparison = compared_arrays(changed, ours, theirs, passed, ttgir.seconds)
        if comparison.wrong is not None and _contracts(options):
            _restore(arrays, before)
            run({"stage": PTX, "enable_fp_fusion": False})
            apart = compared_arrays(changed, _values(arrays), theirs, passed, ttgir.seconds)
            comparison = replace(comparison, contracted=apart.wrong is None)
        if comparison.wrong is not None:

            def other() -> Mapping[str, NDArray[Any]]:
                _restore(arrays, before)
                # Places are noted in this process.
                run({"stage": TTGIR, "profile": False, "jobs": 1})
                return _values(arrays)

            places = undefined_conversions(other, ours, theirs, passed, changed)
            comparison = replace(comparison, out_of_range=places)
    _restore(arrays, ours)
    return BothRuns(ptx, ttgir, comparison)


def undefined_conversions(
    other: Callable[[], Mapping[str, NDArray[Any]]],
    ours: Mapping[str, NDArray[Any]],
    theirs: Mapping[str, NDArray[Any]],
    passed: Mapping[str, Way],
    names: set[str],
) -> tuple[SourceLocation, ...]:
    """Return where numbers out of range become integers, if all that differs comes of that; else nothing.

    `other` makes the interpreter's run once more and returns the arrays.
    """
    found = {name: ours[name] for name in names}
    places: list[SourceLocation] = []
    # Of a comparison with what is converted, one of the two answers turns the result.
    for largest in (False, True):
        try:
            with other_answers(largest=largest) as places:
                answers = other()
        except CompilationError:
            # With another answer it may go to where it must not: that says nothing about this one.
            return ()
        if not places:
            return ()
        found = {
            name: np.where(_same_bits(answers[name], theirs[name]), array, theirs[name])
            for name, array in found.items()
        }  # fmt: skip
    return () if compared_arrays(names, found, theirs, passed, 0.0).wrong else tuple(places)


def about_conversions(places: Sequence[SourceLocation]) -> str:
    """Say what such conversions do."""
    where = ", ".join(map(str, places))
    return f"the kernel converts numbers that are out of range to integers, which may be anything, at {where}"


def _same_bits(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    bits = f"u{one.itemsize}"
    return np.ascontiguousarray(one).view(bits) == np.ascontiguousarray(other).view(bits)


def _contracts(options: Options) -> bool:
    if options.enable_fp_fusion is None:
        return default_fp_fusion(installed_triton_version() or "")
    return options.enable_fp_fusion


def _changes(name: str, before: Mapping[str, NDArray[Any]], *after: Mapping[str, NDArray[Any]]) -> bool:
    return any(each[name].tobytes() != before[name].tobytes() for each in after)


def ways_to(arrays: Mapping[str, NDArray[Any]], module: ModuleOp) -> dict[str, Way]:
    """The way to each array; where arguments and arrays are not the same in number, all ways are one."""
    found = ways(module)
    if len(found) == len(arrays):
        return dict(zip(arrays, found.values(), strict=True))
    marks = frozenset[str]().union(*(each.marks for each in found.values()))
    return dict.fromkeys(arrays, Way(marks))


def compared_arrays(
    names: set[str],
    ours: Mapping[str, NDArray[Any]],
    theirs: Mapping[str, NDArray[Any]],
    passed: Mapping[str, Way],
    seconds: float,
) -> Comparison:
    """Compare the arrays of these names, by the ways to them."""
    compared: dict[str, Compared] = {}
    unordered: list[str] = []
    for name in (each for each in ours if each in names):
        way, expected = passed[name], theirs[name]
        if UNORDERED in way.marks:
            unordered.append(name)
            continue
        limit = _limit(expected, way)
        most = int(expected.size * DECIDED_SHARE) if DECIDED in way.marks else 0
        found = _but_overflows(ours[name], expected, way)
        compared[name] = Compared(difference(found, expected, limit), limit, most, way.writers)
    return Comparison(compared, seconds, unordered=tuple(unordered))


def _but_overflows(found: NDArray[Any], expected: NDArray[Any], way: Way) -> NDArray[Any]:
    """Put what was expected where numbers are as large as a type goes: which sum overflows is a question of order."""
    if not is_float(expected.dtype):
        return found
    most = min(float(_narrowest(way).max), float(cast(Any, finfo)(expected.dtype).max)) / 2
    size = np.abs(wide(expected))
    edge = size > most
    if edge.any():
        edge |= ~np.isfinite(wide(found))
    return np.where(edge, expected, found)


def _narrowest(way: Way) -> Any:
    """The type with the smallest range, of fp16 and fp32."""
    return np.finfo(np.float16 if "f16" in way.marks else np.float32)


_LEAST_STEPS = 4
"""Steps of the smallest numbers of a type, which may be flushed to zero, that results may be apart."""


def _limit(expected: NDArray[Any], way: Way) -> float:
    """Return how far results may be apart, relative to the largest one."""
    limit = tolerance_of(expected.dtype, way.marks)
    if not limit:
        return limit
    values = np.abs(wide(expected))
    largest = float(np.max(values[np.isfinite(values)], initial=0.0)) or 1.0
    narrow = _narrowest(way)
    step = float(narrow.smallest_subnormal if "f16" in way.marks else narrow.smallest_normal)
    return max(limit, _LEAST_STEPS * step / largest)


def run_compared(
    source: KernelSource,
    grid: Grid,
    arguments: Mapping[str, Any],
    options: Options,
    types: Mapping[str, Signature] | None = None,
) -> tuple[Interpretation, Comparison]:
    """Run the PTX of a kernel as `interpret_source` does, and the TTGIR on the same arguments in the interpreter.

    The arrays hold what the PTX has written at the end; warnings are those of both runs.

    Raises PtxFault for what the PTX does wrong, with a note about what the interpreter says; the interpreter's Fault
    where only that has a report.
    """

    def run(more: Mapping[str, Any]) -> Interpretation:
        return interpret_source(source, grid, arguments, replace(options, **more), types)

    both = both_runs(run, _arrays(arguments), lambda: module_of(source, arguments, options, types)[0], options)
    result, other = both.ptx, both.ttgir
    if isinstance(result, PtxFault):
        raise with_notes(result, *_said(result, other))
    if result.faults:
        faults = (with_notes(each, *_said(each, other)) for each in result.faults)
        result = replace(result, faults=tuple(faults))
        return result, both.comparison
    if isinstance(other, CompilationError):
        if reports(other):
            raise with_notes(other, "the interpreter says this of the TTGIR; the run of the final PTX has no report")
        return result, both.comparison
    assert other is not None
    known = {(each.severity, each.message, each.location) for each in result.warnings}
    more = [each for each in other.warnings if (each.severity, each.message, each.location) not in known]
    return replace(result, warnings=(*result.warnings, *more)), both.comparison


def reports(other: object) -> bool:
    """Return whether the interpreter has found something wrong."""
    return isinstance(other, Fault) and not isinstance(other, Unsupported)


def defect_of(fault: PtxFault) -> Defect | None:
    """Return what the installed Triton is known to do wrong, where that is what a fault says."""
    return cause_of("\n".join([fault.message, *fault.notes]), installed_triton_version() or "")


def _said(fault: PtxFault, other: Interpretation | CompilationError | None) -> list[str]:
    """Return what the interpreter says beside a fault of the PTX, and whose fault it is where that is known."""
    if other is None:
        return []
    if not isinstance(other, CompilationError):
        found = ["the interpreter's run of the TTGIR has no report"]
        if (defect := defect_of(fault)) is not None:
            found.append(f"{defect.sentence(installed_triton_version() or '')}; --keep-going goes on past it")
        return found
    kind = "says of the TTGIR" if reports(other) else "could not run the TTGIR"
    where = "" if other.location is None else f"{other.location}: "
    return [f"the interpreter {kind}: {where}{other.message}"]


def with_notes(error: Any, *notes: str) -> Any:
    """The same error with more notes."""
    return type(error)(error.message, error.location, source_line=error.source_line, notes=(*error.notes, *notes))


def _arrays(arguments: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The memory of the arguments, as arrays of numpy's own class."""
    parts = [part for name, value in arguments.items() if not is_constant(value) for part in flattened(name, value)]
    found = {name: value.base if is_descriptor(value) else value for name, value in parts}
    return {name: value.view(np.ndarray) for name, value in found.items() if isinstance(value, np.ndarray)}


def _values(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: array.copy() for name, array in arrays.items()}


def _restore(arrays: Mapping[str, NDArray[Any]], values: Mapping[str, NDArray[Any]]) -> None:
    for name, array in arrays.items():
        array[...] = values[name]
