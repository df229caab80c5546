"""Which synchronisation of a kernel is redundant: each wait, arrival and fence is deleted in turn, and what is left is
checked.

Where runs show something wrong, or other results, the deletion is refuted, and the operation needed. Where they show
nothing, the proof for all trip counts is asked, if the kernel itself is proved. An operation is deleted where it stands
in the source, so all copies of a line are deleted together, and if it is needed, so may be less than all of a barrier:
its arrivals and its waits are then deleted together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.protocol.prove import Proof, prove
from tlx_xdsl.errors import CompilationError, InputError, InputOverflowError, InputTypeError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.text.diagnostics import Diagnostic

from .deletions import Deleted, delete, deleted_by, forbid, sets_of, unjudged_in
from .explore import Limits, explore
from .launches import Arrays
from .report import Subject
from .sizes import Sizes

PROOF_SECONDS = 20.0
"""Time for the proof of a deletion."""


@dataclass(frozen=True)
class Deletion:
    """What comes of it where some operations are deleted."""

    what: tuple[Deleted, ...]
    wrong: Diagnostic | None
    """What goes wrong then; None where no run shows anything."""
    runs: int = 0
    sizes: int = 0
    is_exhaustive: bool = False
    """Whether these were all orders that make a difference, at these sizes."""
    proof: Proof | None = None
    """The proof of what is left, where the whole is proved, too."""
    never_runs: bool = False
    """Whether no run has come to any of it."""

    @property
    def blind(self) -> str:
        """What the interpreter does not see of these operations."""
        return next((each.blind for each in self.what if each.blind), "")

    @property
    def is_proved(self) -> bool:
        """Whether it is redundant for all trip counts."""
        return self.wrong is None and bool(self.proof) and not self.blind and not self.never_runs

    def __str__(self) -> str:
        """Return where it is, and the verdict."""
        first = self.what[0]
        rest = f" (with {', '.join(each.where for each in self.what[1:])})" if len(self.what) > 1 else ""
        return f"{first.where}: {self.verdict}: {first.text}{rest}"

    @property
    def verdict(self) -> str:
        """Whether it is needed, in a line."""
        if self.wrong is not None:
            return f"needed, without it: {self.wrong.message}"
        found = f"no finding in {self.runs} runs at {self.sizes} size{'s' * (self.sizes != 1)}"
        if self.is_exhaustive:
            found += ", all orders"
        if self.never_runs:
            return f"perhaps redundant, it never runs at {'this size' if self.sizes == 1 else 'these sizes'}"
        if self.blind:
            return f"perhaps redundant, {found}, but {self.blind}"
        if self.proof:
            turns = f"loops of {', '.join(self.proof.constants)}" if self.proof.constants else "all trip counts"
            return f"redundant, proved for {turns}; {found}"
        return f"perhaps redundant, {found}"


@dataclass(frozen=True)
class Minimized:
    """The verdicts on all synchronisation of a kernel."""

    deletions: tuple[Deletion, ...]
    together: Deletion | None
    """Several that can all be deleted at once."""
    unjudged: tuple[Deleted, ...]
    """Barriers between the threads of one task, which runs as a whole here."""
    proof: Proof | None
    """That of the kernel as it is."""

    @property
    def redundant(self) -> list[Deletion]:
        """What no run misses."""
        return [each for each in self.deletions if each.wrong is None]

    def __str__(self) -> str:
        """Return the verdicts, one in a line, and a line that sums up."""
        lines = [str(each) for each in self.deletions]
        lines += [f"{each.where}: not judged, a task runs as a whole: {each.text}" for each in self.unjudged]
        if self.together is not None:
            lines.append(f"together: {', '.join(each.where for each in self.together.what)}: {self.together.verdict}")
        needed = sum(each.wrong is not None for each in self.deletions)
        return "\n".join([*lines, f"{len(self.deletions)} deletions tried: {needed} needed, {len(self.redundant)} not"])


def minimize(subject: Subject, stages: Sequence[str], seconds: float) -> Minimized:
    """Delete each operation that synchronises, at all sizes and stages, for at most `seconds` each.

    Raises ValueError where something is wrong with the kernel as it is, and CompilationError where it does not compile.
    """
    return _Search(subject, stages, seconds).found()


class _Search:
    def __init__(self, subject: Subject, stages: Sequence[str], seconds: float):
        self.subject = subject
        self.stages = stages
        self.seconds = seconds

    def found(self) -> Minimized:
        """All verdicts."""
        limits = Limits(self.seconds, self.stages, 1, every=True)
        whole = explore(self.subject.scopes(), self.subject.settings, limits)
        if not whole:
            raise InputError(f"something is wrong with the kernel as it is:\n{whole.findings[0]}")
        self.sizes = [each.sizes for each in whole.cases if each.stage == self.stages[0]]
        self.results = self._results(None)
        module = self.subject.module(self.sizes[-1])
        self.proof = self._proof(module)
        judged = [self._judged((each,)) for each in deleted_by(module)]
        redundant = {each.what[0] for each in judged if each.wrong is None}
        sets = [each for each in sets_of(module) if not redundant.issuperset(each)]
        judged += [each for each in map(self._judged, sets) if each.wrong is None]
        return Minimized(tuple(judged), self._together(judged), unjudged_in(module), self.proof)

    def _together(self, judged: Sequence[Deletion]) -> Deletion | None:
        """The most that can be deleted at once, found from the first one on."""
        redundant = [each for each in judged if each.wrong is None and not each.blind]
        best: Deletion | None = redundant[0] if redundant else None
        for each in redundant[1:]:
            assert best is not None
            tried = self._judged(tuple(dict.fromkeys((*best.what, *each.what))))
            best = tried if tried.wrong is None else best
        return best if best is not None and len(redundant) > 1 and len(best.what) > 1 else None

    def _judged(self, what: tuple[Deleted, ...]) -> Deletion:
        """Delete and check."""

        def change(module: ModuleOp) -> None:
            delete(module, what)

        scopes = [self.subject.scope(at, change) for at in self.sizes]
        try:
            report = explore(
                scopes, self.subject.settings, Limits(self.seconds, self.stages, 1, stops=True, every=True)
            )
        except CompilationError as error:
            return Deletion(what, Diagnostic("error", error.message, error.location, error.notes))
        if report.findings:
            return Deletion(what, report.findings[0].diagnostic, report.runs)
        if (other := self._differs(change)) is not None:
            return Deletion(what, other, report.runs)
        proof = None
        if self.proof:
            module = self.subject.module(self.sizes[-1])
            delete(module, what)
            proof = self._proof(module)
        exhaustive = not any(case.unexplored for case in report.cases)
        sizes = len({str(case.sizes) for case in report.cases})
        return Deletion(what, None, report.runs, sizes, exhaustive, proof, not self._comes_to(what))

    def _comes_to(self, what: tuple[Deleted, ...]) -> bool:
        """Whether a run at one of the sizes comes to one of these operations."""

        def change(module: ModuleOp) -> None:
            forbid(module, what)

        for at in self.sizes:
            launch = self.subject.launchable(at, change)
            arrays = Arrays(launch.arrays)
            before = arrays.state()
            try:
                launch.run({"stage": self.stages[0]})
            except Fault:
                return True
            finally:
                arrays.restore(before)
        return False

    def _proof(self, module: ModuleOp) -> Proof | None:
        proofs = prove(module, seconds=PROOF_SECONDS)
        return next((each for each in proofs if not each), proofs[0] if proofs else None)

    def _results(self, change: Callable[[ModuleOp], None] | None) -> list[Mapping[str, NDArray[np.uint8]]]:
        """What the arrays hold afterwards, at each size."""
        found: list[Mapping[str, NDArray[np.uint8]]] = []
        for at in self.sizes:
            launch = self.subject.launchable(at, change)
            arrays = Arrays(launch.arrays)
            before = arrays.state()
            launch.run({"stage": self.stages[0]})
            found.append({name: np.frombuffer(each.tobytes(), np.uint8) for name, each in launch.arrays.items()})
            arrays.restore(before)
        return found

    def _differs(self, change: Callable[[ModuleOp], None]) -> Diagnostic | None:
        try:
            after = self._results(change)
        except (CompilationError, InputError, InputTypeError, InputOverflowError) as error:
            return Diagnostic("error", str(error), None)
        for at, one, other in zip(self.sizes, self.results, after, strict=True):
            for name in one:
                if not np.array_equal(one[name], other[name]):
                    return Diagnostic("error", f"'{name}' has other values{_at(at)}", None)
        return None


def _at(sizes: Sizes) -> str:
    return "".join(f" {name}={size}" for name, size in sizes.items())
