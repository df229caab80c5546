"""The result of a sweep: a verdict for each configuration, in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, TypeAlias, overload

from tlx_xdsl.backend import BackendError, BackendResult, BackendTimeoutError, KernelMetadata, KernelResources
from tlx_xdsl.backend.limits import REGISTERS, check_resources
from tlx_xdsl.errors import CompilationError, OverBudgetError
from tlx_xdsl.layouts.distributed import WARP_SIZE

from .jobs import Job
from .steps import Compiled, Failed, Lowered

Kind: TypeAlias = Literal["fits", "spills", "pruned", "does not fit", "error", "died", "timeout"]
"""`fits` and `spills` can be launched, the latter with registers in memory. `pruned` needs more than the target has,
and was left before LLVM and ptxas; `does not fit` is the same of what was compiled all the same. `error` is a fault in
the kernel, or something that Triton or ptxas refuse; `died`: stock Triton's process, or ours, ended over it."""

LAUNCHABLE: tuple[Kind, ...] = ("fits", "spills")
_NOTES = 3
"""Buffers that a verdict names."""


@dataclass(frozen=True)
class JobResult:
    """The verdict on one configuration."""

    job: Job
    kind: Kind
    text: str
    """The verdict in words, one line."""
    seconds: float
    """The time of the configuration, in the processes that worked on it; nothing when another one had the same text."""
    result: BackendResult | None = None
    """The binary and what a launcher must know, as far as the sweep keeps them."""
    error: CompilationError | None = None
    """Why it did not get through, with the place and all notes."""
    warnings: tuple[str, ...] = ()
    """Warnings of the compiler, Triton and ptxas."""
    same_as: int | None = None
    """Number of the configuration whose binary this is, because both have the same text."""

    @property
    def is_launchable(self) -> bool:
        """Return whether there is a binary that the target can run."""
        return self.kind in LAUNCHABLE

    @property
    def metadata(self) -> KernelMetadata | None:
        """Return what a launcher must know; None for what did not get through."""
        return None if self.result is None else self.result.metadata

    @property
    def resources(self) -> KernelResources | None:
        """Return what ptxas spent; None for what did not get through."""
        return None if self.result is None else self.result.resources

    @property
    def remark(self) -> str:
        """Return what is to be said of a binary that can be launched."""
        return self.text.split(" (")[0] if self.kind == "spills" else ""

    def __str__(self) -> str:
        """Return the verdict."""
        return self.text


def judged(
    job: Job, seconds: float, outcome: Compiled | Failed, lowered: Lowered | None, same_as: int | None
) -> JobResult:
    """The verdict on a configuration that is done with."""
    warnings = () if lowered is None else lowered.warnings
    if isinstance(outcome, Failed):
        kind, text = _failure(outcome.error)
        return JobResult(job, kind, text, seconds, error=outcome.error, warnings=warnings, same_as=same_as)
    result = outcome.result
    warnings += tuple(map(str, result.warnings))
    assert lowered is not None, "what was compiled has a text"
    try:
        check_resources(result.metadata, lowered.options, "")
        _check_registers(result)
    except OverBudgetError as error:
        text = f"does not fit: {error.message}"
        return JobResult(job, "does not fit", text, seconds, result, error, warnings, same_as)
    kind, text = _success(result, seconds, same_as)
    return JobResult(job, kind, text, seconds, result, None, warnings, same_as)


def _check_registers(result: BackendResult) -> None:
    """Refuse a binary whose threads have more registers than there are: ptxas gives tasks all that `maxnreg` says."""
    threads = result.metadata.num_warps * WARP_SIZE
    needed = threads * result.resources.registers
    if needed > REGISTERS:
        message = (
            f"{threads:,} threads of {result.resources.registers} registers are {needed:,}, an SM has {REGISTERS:,}"
        )
        raise OverBudgetError(message, resource="registers", required=needed, limit=REGISTERS)


def _failure(error: CompilationError) -> tuple[Kind, str]:
    where = f"{error.location}: " if error.location is not None else ""
    match error:
        case OverBudgetError():
            # Where each of them is made, and what is small, stands in the error itself.
            parts = [note.split(" at ")[0] for note in error.notes[:_NOTES] if _amount(note) * 100 >= error.required]
            return "pruned", f"pruned: {error.message}{': ' * bool(parts)}{'; '.join(parts)}"
        case BackendTimeoutError():
            return "timeout", f"timeout: {where}{error.message}"
        case BackendError() if error.death:
            return "died", f"died: {where}{error.message}"
        case _:
            return "error", f"error: {where}{error.message}"


def _amount(note: str) -> int:
    """The bytes or columns that a note begins with; none in a note of another kind."""
    number = note.split(" ")[0].replace(",", "")
    return int(number) if number.isdecimal() else 0


def _success(result: BackendResult, seconds: float, same_as: int | None) -> tuple[Kind, str]:
    resources = result.resources
    spilled = max(resources.spill_store_bytes, resources.spill_load_bytes)
    parts = [f"{resources.registers} registers", *(() if spilled else ("0 spills",))]
    parts.append(f"{result.metadata.shared + resources.static_shared_bytes:,} B shared")
    if result.metadata.tmem_size:
        parts.append(f"{result.metadata.tmem_size} columns")
    parts.append(f"{seconds * 1e3:,.0f} ms" if same_as is None else f"as configuration {same_as}")
    codes = Counter(warning.text.split(":")[0] for warning in result.warnings)
    parts += [f"warning {code}" for code in codes]
    figures = ", ".join(parts)
    return ("spills", f"spills {spilled:,} B ({figures})") if spilled else ("fits", f"fits ({figures})")


def fewest_spills(result: JobResult) -> tuple[int, int]:
    """Bytes that are spilled per thread, then registers: a rough order for want of a measurement."""
    assert result.resources is not None
    return result.resources.spill_store_bytes + result.resources.spill_load_bytes, result.resources.registers


@dataclass(frozen=True)
class SweepReport(Sequence[JobResult]):
    """The verdicts in the order of the jobs."""

    results: tuple[JobResult, ...]
    seconds: float
    """Wall time."""
    workers: int | None
    """Processes of the sweep's own pool; None for an executor of the caller's."""
    notes: tuple[str, ...] = ()
    """Notes on what cost time and could be done better."""

    @overload
    def __getitem__(self, index: int) -> JobResult: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[JobResult, ...]: ...
    def __getitem__(self, index: int | slice) -> JobResult | tuple[JobResult, ...]:
        """The result of a job by its number."""
        return self.results[index]

    def __len__(self) -> int:
        """Return how many configurations there are."""
        return len(self.results)

    def of(self, *kinds: Kind) -> tuple[JobResult, ...]:
        """The results with one of these verdicts."""
        return tuple(result for result in self.results if result.kind in kinds)

    def best(self, key: Callable[[JobResult], Any] = fewest_spills) -> JobResult | None:
        """The configuration that can be launched with the smallest `key`; None if there is none.

        What a binary looks like says little about its speed: give a `key` that measures.
        """
        return min((result for result in self.results if result.is_launchable), key=key, default=None)

    @property
    def summary(self) -> str:
        """One line: how many of which verdict, and the time."""
        counts = Counter(result.kind for result in self.results)
        verdicts = ", ".join(f"{counts[kind]} {kind}" for kind in counts)
        same = sum(result.same_as is not None for result in self.results)
        again = f", {same} with the text of another one" if same else ""
        where = "" if self.workers is None else f" on {self.workers} worker{'s' * (self.workers != 1)}"
        total = f"{len(self.results)} configuration{'s' * (len(self.results) != 1)}"
        return f"{total}: {verdicts or 'none'}{again}; {self.seconds:.1f} s{where}"

    def table(self) -> str:
        """The configurations by what differs between them, each with its verdict, and the summary."""
        head, *rows = [*self._rows()]
        widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head) - 1)]
        lines = [
            "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
            for row in (head, *rows)
        ]
        return "\n".join([*lines, self.summary, *(f"note: {note}" for note in self.notes)])

    def __str__(self) -> str:
        """Return the table."""
        return self.table()

    def _rows(self) -> Iterable[tuple[str, ...]]:
        settings = [{"kernel": result.job.source.name, **result.job.settings} for result in self.results]
        names = list(dict.fromkeys(name for each in settings for name in each))
        varying = [name for name in names if len({repr(each.get(name)) for each in settings}) > 1]
        yield ("#", *varying, "verdict")
        for number, (result, each) in enumerate(zip(self.results, settings, strict=True)):
            yield (str(number), *(str(each.get(name, "")) for name in varying), result.text)

    def _repr_html_(self) -> str:
        """The table for a notebook; the notes of an error are shown when the mouse rests on it."""
        head, *rows = [*self._rows()]
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row[:-1])}"
            f'<td style="text-align:left" title="{escape(str(result.error or ""))}">{escape(row[-1])}</td></tr>'
            for row, result in zip(rows, self.results, strict=True)
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in (self.summary, *self.notes))
        return f"<div><table><tr>{cells}</tr>{body}</table>{notes}</div>"
