"""A run of final PTX beside the interpreter's run of the TTGIR that it is made of: numbers and reports of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.grid import Grid
from tlx_xdsl.interpreter.faults import Fault, Unsupported
from tlx_xdsl.numerics.difference import Difference, difference, tolerance_of
from tlx_xdsl.ptx.read.faults import PtxBudget, PtxFault

from ..driver.host_values import flattened, is_constant, is_descriptor
from .interpret import Interpretation, interpret_source
from .options import TTGIR, Options


@dataclass(frozen=True)
class Comparison:
    """What a run of PTX and the interpreter's run have in common."""

    arrays: Mapping[str, Difference] = field(default_factory=dict[str, Difference])
    """How far the arrays are apart that one of the two runs has changed, by name."""
    seconds: float = 0.0
    """Time of the interpreter's run."""
    refusal: CompilationError | None = None
    """Why the interpreter could not run the kernel, where it could not."""

    @property
    def wrong(self) -> tuple[str, Difference] | None:
        """The first array that is not what the interpreter has."""
        return next(((name, each) for name, each in self.arrays.items() if each.wrong), None)


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
    arrays = _arrays(arguments)
    before = _values(arrays)
    result: Interpretation | PtxFault
    try:
        result = interpret_source(source, grid, arguments, options, types)
    except PtxFault as error:
        if isinstance(error, PtxBudget):
            raise
        result = error
    ours = _values(arrays)
    _restore(arrays, before)
    other: Interpretation | CompilationError
    try:
        other = interpret_source(source, grid, arguments, replace(options, stage=TTGIR, profile=False), types)
    except CompilationError as error:
        other = error
    finally:
        theirs = _values(arrays)
        _restore(arrays, ours)
    if isinstance(result, PtxFault):
        raise _with_note(result, _said(other))
    if _reports(other):
        raise _with_note(other, "the interpreter says this of the TTGIR; the run of the final PTX has no report")
    if isinstance(other, CompilationError):
        return result, Comparison(refusal=other)
    known = {(each.severity, each.message, each.location) for each in result.warnings}
    more = [each for each in other.warnings if (each.severity, each.message, each.location) not in known]
    changed = {
        name: difference(ours[name], theirs[name], tolerance_of(theirs[name].dtype))
        for name in arrays
        if any(each[name].tobytes() != before[name].tobytes() for each in (ours, theirs))
    }
    return replace(result, warnings=(*result.warnings, *more)), Comparison(changed, other.seconds)


def _reports(other: object) -> bool:
    return isinstance(other, Fault) and not isinstance(other, Unsupported)


def _said(other: Interpretation | CompilationError) -> str:
    if isinstance(other, Interpretation):
        return "the interpreter's run of the TTGIR has no report"
    kind = "says of the TTGIR" if _reports(other) else "could not run the TTGIR"
    where = "" if other.location is None else f"{other.location}: "
    return f"the interpreter {kind}: {where}{other.message}"


def _with_note(error: Any, note: str) -> Any:
    return type(error)(error.message, error.location, source_line=error.source_line, notes=(*error.notes, note))


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
