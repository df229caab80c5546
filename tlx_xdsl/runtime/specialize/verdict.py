"""Verdicts on specialised kernels: the synchronisation is proved, or all orders of a small launch are run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tlx_xdsl.analysis.protocol.prove import ASSUMPTIONS, PROVED, Proof, Requirement, prove
from tlx_xdsl.errors import CompilationError

from ..check.run import check
from ..driver.compilation import frontend_module
from ..driver.specialization import Specialization
from ..kernel import Kernel

PROOF_STATES = 600
"""States of the search for a candidate's proof: those of the gallery that end do so after 479 at most."""
PROOF_SECONDS = 20.0
"""Seconds of a processor for it, a bound for large kernels: those of the gallery take 2 at most."""
EXPLORATION_SECONDS = 20.0
"""Seconds for all orders of a small launch, where there is no proof."""

Answer = Literal["proved", "proved on conditions", "explored", "refuted", "unknown"]


@dataclass(frozen=True)
class Verdict:
    """An answer with what it rests on, or what is wrong."""

    answer: Answer
    details: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    """Lines of loops in the written file that must turn at least once; 0 for a condition of another kind."""

    def __bool__(self) -> bool:
        """True where the kernel may be launched."""
        return self.answer not in ("refuted", "unknown")

    def __str__(self) -> str:
        """Return the answer, and a line for each thing that it rests on."""
        lines = [self.answer, *(f"  {each}" for each in self.details)]
        return "\n".join([*lines, *(f"  assumed: {each}" for each in self.assumed)])


APART = "memory that the kernel stores to does not overlap memory that it loads through rings"
"""The assumption of every specialisation whose loads are issued before earlier stores are done."""


def proof_of(kernel: Kernel, specialization: Specialization) -> Verdict:
    """Prove a kernel's synchronisation for all launches with these types."""
    return verdict_of(prove(frontend_module(kernel.source, specialization), seconds=PROOF_SECONDS, states=PROOF_STATES))


def verdict_of(proofs: Sequence[Proof]) -> Verdict:
    """Return what the proofs of a module's kernels say together."""
    for answer in ("refuted", "unproved"):
        for each in proofs:
            if each.answer == answer:
                reason = "" if each.reason is None else str(each.reason)
                return Verdict("refuted" if answer == "refuted" else "unknown", (reason,))
    conditions = tuple(str(required) for each in proofs for required in each.required)
    constants = tuple(loop for each in proofs for loop in each.constants)
    turns = (f"for these numbers of turns: {', '.join(constants)}",) if constants else ()
    answer = "proved on conditions" if conditions else "proved"
    lines = tuple(_line(required) for each in proofs for required in each.required)
    return Verdict(answer, (*conditions, *turns, *PROVED), (*ASSUMPTIONS, APART), lines)


def _line(required: Requirement) -> int:
    """Return the line of a loop that must turn; 0 for one that must end, which no launch can be looked at for."""
    found = re.search(r":(\d+)(:\d+)?$", required.loop)
    return 0 if required.otherwise is None or found is None else int(found.group(1))


def explored(kernel: Kernel, grid: tuple[int, int, int], args: Sequence[Any], options: Mapping[str, Any]) -> Verdict:
    """Run all orders of a small launch that make a difference."""
    try:
        report = check(
            kernel, grid, *args, all_orders=True, seconds=EXPLORATION_SECONDS, stages=("frontend",), options=options
        )
    except CompilationError as error:
        return Verdict("refuted", (str(error),))
    if report:
        return Verdict("explored", (f"in all orders of a launch of {grid} programs",), (APART,))
    if report.findings:
        return Verdict("refuted", (str(report.findings[0].diagnostic),))
    return Verdict("unknown", ("not all orders of a small launch could be run in the time there is",))
