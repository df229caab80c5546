"""The gate: subjects, each for all Tritons, in several processes; what an earlier run has judged is not run again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tlx_xdsl.progress import Progress

from .judge import COMPILE_SECONDS, Manner, blank, judge
from .spread import Ended, spread
from .subject import Subject
from .verdict import Results, Verdict, counted


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
    wanted = [[blank(subject, each, manner) for each in manner.toolchains] for subject in subjects]
    todo = [number for number, each in enumerate(wanted) if any(one.key not in kept.known for one in each)]
    known = kept.by_text()

    def work(number: int) -> Iterator[Verdict]:
        left = [
            toolchain
            for toolchain, each in zip(manner.toolchains, wanted[number], strict=True)
            if each.key not in kept.known
        ]
        return judge(subjects[number], replace(manner, toolchains=left), known)

    new = 0
    # Over the compile, the two runs and what prepares them, each of which has a limit of its own.
    limit = COMPILE_SECONDS + 3 * manner.seconds
    total = sum(one.key not in kept.known for each in wanted for one in each)
    with Progress(total, "verdicts", wanted=progress) as bar:
        for number, item in spread(work, todo, jobs, limit):
            found = [item] if isinstance(item, Verdict) else _ended(item, wanted[number], kept)
            for verdict in found:
                kept.add(verdict)
                on_verdict(verdict)
                new += 1
                bar.advance()
    ordered = tuple(kept.known[one.key] for each in wanted for one in each)
    return Report(ordered, time.perf_counter() - began, new)


def _ended(end: Ended, wanted: Sequence[Verdict], kept: Results) -> list[Verdict]:
    """The verdict on what a process was at when it ended; the ones after it have none yet, and say so."""
    left = [each for each in wanted if each.key not in kept.known]
    return [
        replace(each, message=end.why if at == 0 else f"after another one: {end.why}") for at, each in enumerate(left)
    ]
