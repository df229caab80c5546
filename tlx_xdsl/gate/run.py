"""The gate: subjects, each for all Tritons, in several processes; what an earlier run has judged is not run again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tlx_xdsl.backend.assemble import ASSEMBLE_SECONDS
from tlx_xdsl.progress import Progress

from .judge import COMPILE_SECONDS, Manner, blanks, judge, needs_cubin
from .spread import Ended, spread
from .subject import Subject
from .verdict import Results, Verdict, counted

_WALL = 6
"""Seconds on the wall, on a machine that others use, too, for one of a processor."""


@dataclass(frozen=True)
class Report:
    """The verdicts of a gate."""

    verdicts: tuple[Verdict, ...]
    """In the order of subjects, and of Tritons for each."""
    seconds: float
    judged: int
    """How many are new; the others were known from an earlier run."""

    def __bool__(self) -> bool:
        """True where all code that was looked at is right, and some was."""
        counts = counted(self.verdicts)
        return not any(each.is_bad for each in self.verdicts) and counts["clean"] > 0


def gate(
    subjects: Sequence[Subject],
    manner: Manner,
    *,
    jobs: int = 1,
    results: Results | None = None,
    progress: bool | None = None,
    on_verdict: Callable[[Verdict], None] = lambda _: None,
) -> Report:
    """Judge subjects by the final code that each Triton makes of them; `on_verdict` gets each new verdict as it comes.

    `results` has what is known already, and gets what is new.
    """
    began = time.perf_counter()
    kept = results or Results()
    planned = [list(blanks(subject, manner)) for subject in subjects]
    todo = [number for number, each in enumerate(planned) if _missing(each, manner, kept)]
    texts = kept.by_text()
    known = frozenset(kept.known)

    def work(number: int) -> Iterator[Verdict]:
        return judge(subjects[number], manner, texts, known)

    new = 0
    with Progress(len(todo), "configurations", wanted=progress) as bar:
        # Over what prepares a case, its compile, its two runs and its cubins.
        limit = COMPILE_SECONDS + ASSEMBLE_SECONDS + _WALL * 3 * manner.seconds
        at = -1
        for number, item in spread(work, todo, jobs, limit):
            bar.advance(number != at)
            at = number
            found = [item] if isinstance(item, Verdict) else _ended(item, _missing(planned[number], manner, kept))
            for verdict in found:
                kept.add(verdict)
                on_verdict(verdict)
                new += 1
    ordered = tuple(kept.known[each.key] for of_one in planned for each, _ in of_one if each.key in kept.known)
    return Report(ordered, time.perf_counter() - began, new)


def _missing(planned: Sequence[tuple[Verdict, Verdict | None]], manner: Manner, kept: Results) -> list[Verdict]:
    """The verdicts that are not known: of cubins those alone whose PTX asks for it, or is not known either."""
    missing: list[Verdict] = []
    for each, of_ptx in planned:
        if each.key not in kept.known:
            judged = None if of_ptx is None else kept.known.get(of_ptx.key)
            if judged is None or needs_cubin(judged, manner):
                missing.append(each)
    return missing


def _ended(end: Ended, missing: Sequence[Verdict]) -> list[Verdict]:
    """The verdict on what a process was at when it ended; the ones after it have none yet, and say so."""
    first, *others = [each for each in missing if not each.assembler] or missing
    after = f"after another one: {end.why}"
    return [replace(first, message=end.why), *(replace(each, message=after) for each in others)]
