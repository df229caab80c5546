"""Subject of a check, and its report: what was found, at which sizes, and how to see it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.protocol.prove import ASSUMPTIONS, PROVED, Proof
from tlx_xdsl.dialects.base.effects import Kind, accesses_of
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.errors import CompilationError, InputError, InputTypeError
from tlx_xdsl.text.diagnostics import Diagnostic

from ..simulate.interpret import Change
from ..simulate.options import PTX, SMALL, Options
from .across_ranks.prove import RanksProof
from .launches import UNRUN, Left, Run

RULES = (
    "deadlock", "fault", "stock", "warning", "relaunch", "dependent", "overflow", "bounds", "masked", "proof", *UNRUN
)  # fmt: skip
"""The kinds of findings. What only the final PTX does wrong, and neither the kernel nor our passes, is `stock`. What
only a launch after the first one shows is a `relaunch`, and `dependent` where it begins before the one before has
ended. What a mask hides of a load and is computed with all the same is `masked`. `proof` is
what stops or refutes one, `unsupported` what can't be run, `compile` what the compiler refuses, `budget` what never
fits on the target."""


OF_PASSES = "a fault of tlx_xdsl's passes, please report it"


@dataclass(frozen=True)
class Finding:
    """A fault, and how to see it again."""

    diagnostic: Diagnostic
    rule: str
    """One of `RULES`."""
    options: Mapping[str, Any]
    """The `stage`, `schedule` and `seed` of the first run that has shown it; on several ranks `ranks` and `launches`,
    too."""
    sizes: Sizes = field(default_factory=dict[str, int])
    """The smallest sizes at which it was seen."""
    left: Left | None = None
    """Of a `relaunch`: what makes the later launch go wrong."""

    def __str__(self) -> str:
        """Return the report, with the options that show it."""
        return f"{self.diagnostic}\nnote: {self.seen_with}" if self.options or self.sizes else str(self.diagnostic)

    @property
    def seen_with(self) -> str:
        """The options of a command line that show it."""
        options = [f"--{name} {value}" for name, value in self.options.items()]
        # The number of ranks is a size of a check, and an option of a run.
        numbers = {name: value for name, value in self.sizes.items() if name != "ranks" or name not in self.options}
        sizes = [f"--size {name}={value}" for name, value in numbers.items()]
        return f"seen with {' '.join([*options, *sizes])}"


@dataclass(frozen=True)
class Case:
    """The runs at one stage and at some sizes, and all that they have shown."""

    stage: str
    sizes: Sizes
    runs: int
    seconds: float
    findings: tuple[Finding, ...]
    orders: int = 0
    """The orders of these runs that make a difference; other runs were given up, since they repeated one of those."""
    unexplored: str = ""
    """Why orders are left out; empty where all that make a difference were run."""

    @property
    def name(self) -> str:
        """Return what it is of."""
        return " ".join([self.stage, *([shown(self.sizes)] if self.sizes else [])])


@dataclass(frozen=True)
class Refusal:
    """Sizes for which there are no arguments, or which the kernel does not compile for."""

    sizes: Sizes
    error: Exception

    @property
    def reason(self) -> str:
        """Return the reason in one line."""
        return self.error.message if isinstance(self.error, CompilationError) else str(self.error)


@dataclass(frozen=True)
class ProofAt:
    """Proof of the kernel that some sizes give."""

    sizes: Sizes
    proof: Proof

    @property
    def _turns(self) -> str:
        constants = self.proof.constants
        return f"these numbers of turns: {', '.join(constants)}" if constants else "all trip counts"

    @property
    def answer(self) -> str:
        """The answer in two words."""
        if self.proof.answer == "proved":
            return "proved on conditions" if self.proof.required else "proved"
        return _ANSWERS[self.proof.answer]

    def __str__(self) -> str:
        """Return the answer, and what it rests on or fails at."""
        proof = self.proof
        which = f"'{proof.kernel}'{f' at {shown(self.sizes)}' if self.sizes else ''}"
        spent = f"{proof.states} states, {proof.seconds:.1f} s"
        if proof.reason is not None:
            reason = replace(proof.reason, severity="remark", message=f"{self.answer}: {proof.reason.message}")
            return f"{reason}\nthe synchronisation of {which} is {self.answer} ({spent})"
        if isinstance(proof, RanksProof):
            return "\n".join(proof.lines(which, spent))
        lines = [f"the synchronisation of {which} in shared memory is {self.answer} for {self._turns} ({spent})"]
        for each in proof.required:
            lines.append(f"  {each}")
        lines.append(f"  proved: {'; '.join(PROVED)}")
        lines.append(f"  not looked at: {', '.join(proof.unseen)}")
        lines.append(f"  assumed: {'; '.join(ASSUMPTIONS)}")
        return "\n".join(lines)


_ANSWERS = {"refuted": "refuted", "unproved": "not proved"}


@dataclass(frozen=True)
class Report:
    """The result of a check."""

    tool: ClassVar = "tlx check"
    rules: ClassVar = RULES
    """Names of what findings are about."""

    findings: tuple[Finding, ...]
    runs: int
    stages: tuple[str, ...]
    seconds: float
    remarks: tuple[Finding, ...] = ()
    """What is wrong only if the host leaves arrays as they are between launches, and was not said to; what other sizes
    do; masked elements that are computed with."""
    cases: tuple[Case, ...] = ()
    """What was run, by sizes and stage."""
    refusals: tuple[Refusal, ...] = ()
    """Sizes that were left out."""
    left: tuple[Sizes, ...] = ()
    """Sizes that were not run for want of time."""
    proofs: tuple[ProofAt, ...] = ()
    """Where they were asked for: one for each kernel that the sizes give."""
    wants_all_sizes: bool = True
    """Whether sizes that are refused were asked for."""
    wants_all_orders: bool = False
    """Whether all orders were asked for."""
    final: str = ""
    """Why the final PTX was not looked at, or not to its end; empty where it was."""
    ranks: int = 0
    """The most GPUs that have run it side by side; 0 where it has run on one alone."""
    wants_final: bool = False
    """Whether the final PTX was asked for by name."""
    allows_unrun: bool = False
    """Whether the report is true where something that was asked for was not run."""

    def __bool__(self) -> bool:
        """True where nothing was found and all that was asked for was run; remarks do not count."""
        return not (self.findings or (self.unrun and not self.allows_unrun))

    @property
    def unrun(self) -> str:
        """Return what was asked for and not run, in words; empty where all was."""
        sizes = len(self.left) + len(self.refusals) * self.wants_all_sizes
        orders = self.wants_all_orders and any(case.unexplored for case in self.cases)
        parts = [f"{sizes} size{'' if sizes == 1 else 's'}"] * bool(sizes) + ["some orders"] * orders
        parts += ["the PTX"] * (self.wants_final and bool(self.final))
        return f"{' and '.join(parts)} not run" if parts else ""

    def __str__(self) -> str:
        """Return all findings and remarks, the sizes, and a line that sums up."""
        return "\n".join(
            [
                *map(str, self.findings), *map(str, self.remarks), *self.sizes(), *self.orders(),
                *self.unlooked(), *map(str, self.proofs), self.summary,
            ]
        )  # fmt: skip

    def orders(self) -> list[str]:
        """Lines that say whether all orders were run: where one ends in a fault, it is not known what else follows."""
        if any(each.rule in ("deadlock", "fault", *UNRUN) for each in self.findings):
            return []
        ordered = [case for case in self.cases if case.stage != PTX]
        if not ordered:
            return []
        where = f"each stage{' and size' if any(case.sizes for case in ordered) else ''}"
        if not any(case.unexplored for case in ordered):
            if all(case.orders <= 1 for case in ordered):
                return [f"all orders were covered: one at {where}, all others do the same"]
            counts = {
                stage: sum(case.orders for case in self.cases if case.stage == stage)
                for stage in self.stages
                if stage != PTX
            }
            numbers = ", ".join(f"{count} at {stage}" for stage, count in counts.items())
            return [f"all orders were covered, those that make a difference by a run of each: {numbers}"]
        reasons: dict[str, list[Case]] = {}
        for case in ordered:
            if case.unexplored:
                reasons.setdefault(case.unexplored, []).append(case)
        return [
            f"not all orders were covered, {_orders(cases)} at {_named(cases)}: {reason}"
            for reason, cases in reasons.items()
        ]

    def unlooked(self) -> list[str]:
        """The line that says why the final PTX was not looked at, where that is so."""
        return [f"{PTX} not looked at: {self.final}"] if self.final else []

    def sizes(self) -> list[str]:
        """Lines that say which sizes were run, which were refused and why, and which remain."""
        out = [each.sizes for each in self.refusals]
        run = [case.sizes for case in self.cases if case.stage == self.stages[0] and case.sizes not in out]
        if not any(run):
            return []
        number = len(run) + len(self.refusals) + len(self.left)
        lines = [f"run at {len(run)} of {number} sizes: {listed(run)}"]
        reasons: dict[str, list[Sizes]] = {}
        for each in self.refusals:
            reasons.setdefault(each.reason, []).append(each.sizes)
        lines.extend(f"refused at {listed(sizes)}: {reason}" for reason, sizes in reasons.items())
        if self.left:
            lines.append(f"not run for want of time, --seconds gives more: {listed(self.left)}")
        return lines

    @property
    def summary(self) -> str:
        """The line that sums up."""
        found = _count(self.findings, "finding") if self.findings else "nothing found"
        if self.remarks:
            found += f", {_count(self.remarks, 'remark')}"
        orders = f"{self.runs} run{'' if self.runs == 1 else 's'}"
        if self.proofs:
            answers = [each.answer for each in self.proofs]
            found += "".join(f", {answers.count(each)} {each}" for each in dict.fromkeys(answers))
        found += f", {self.unrun}" * bool(self.unrun)
        return f"{orders} at {_and(self.stages)} in {self.seconds:.1f} s: {found}"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _orders(cases: Sequence[Case]) -> str:
    """Return how many orders were run: the first one of each case, and those after it."""
    count = sum(case.orders for case in cases)
    return f"{count} were run" if count else "only the first one was run"


def _named(cases: Sequence[Case]) -> str:
    stages = " and ".join(dict.fromkeys(case.stage for case in cases))
    sizes = [*{str(case.sizes): case.sizes for case in cases if case.sizes}.values()]
    return f"{stages} with {listed(sizes)}" if sizes else stages


def _count(items: Sequence[Any], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"


@dataclass(frozen=True)
class Subject:
    """Subject of a check: a kernel at some sizes."""

    sizes: Sequence[Sizes]
    """The smallest ones first."""
    settings: Options
    launchable: Callable[[Sizes, Change | None], Launchable]
    """The launch at some sizes, of what the frontend makes of the kernel or of a change of it."""
    module: Callable[[Sizes], ModuleOp]
    """The kernel for arguments of these types, whatever their values."""
    others: Callable[[], Iterable[Finding]]
    """Remarks on what goes wrong at sizes that are not run, where none are named."""
    is_asked: bool = True
    """False where a size is one of `small`, which are tried as they come."""

    def scope(self, at: Sizes, change: Change | None = None) -> Scope:
        """The launch at some sizes."""
        return Scope(at, lambda: self.launchable(at, change))

    def scopes(self, change: Change | None = None) -> list[Scope]:
        """The launches at all sizes."""
        return [self.scope(at, change) for at in self.sizes]


# --- sizes ------------------------------------------------------------------------------------------------------------
#
# Small scopes: a kernel at all combinations of small sizes, the smallest first.
#
# What is wrong in the protocol of a ring or in the last tile of a loop mostly shows with two or three turns already:
# with none, with one, with one less and one more than there are buffers.


Sizes: TypeAlias = Mapping[str, int]
"""The value of each named size."""

MOST = 100_000
"""Combinations of sizes at most: all are listed before the first one is run."""


@dataclass(frozen=True)
class Launchable:
    """A launch at some sizes, and the arrays among its arguments by name."""

    run: Run
    arrays: Mapping[str, NDArray[Any]]
    ranks: int = 0
    """GPUs that run it side by side; 0 for one alone."""
    launches: int = 0
    """Launches of each rank for which arguments have values; 0 where none has several."""
    proved: Callable[[int | None], RanksProof] | None = None
    """Proves the protocol across ranks, for so many launches or for any number of them."""


@dataclass(frozen=True)
class Scope:
    """Sizes, and how to make the arguments for them."""

    sizes: Sizes
    make: Callable[[], Launchable]


def shown(sizes: Sizes) -> str:
    """The sizes as a report says them."""
    return " ".join(f"{name}={size}" for name, size in sizes.items())


MOST_LISTED = 8
"""Sizes that a line of a report names one by one."""


def listed(all_sizes: Sequence[Sizes]) -> str:
    """Several sizes in a line: each one, or where they are all combinations of some values, those."""
    values = {name: sorted({sizes[name] for sizes in all_sizes}) for name in all_sizes[0]}
    if len(all_sizes) > 1 and prod(map(len, values.values())) == len(all_sizes):
        return " ".join(f"{name}={_ranges(each)}" for name, each in values.items())
    more = f" and {len(all_sizes) - MOST_LISTED} more" if len(all_sizes) > MOST_LISTED else ""
    return ", ".join(map(shown, all_sizes[:MOST_LISTED])) + more


def _ranges(values: Sequence[int]) -> str:
    """Rising numbers as a command line may give them: `0..3,7`."""
    parts: list[tuple[int, int]] = []
    for value in values:
        if parts and value == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], value)
        else:
            parts.append((value, value))
    return ",".join(str(low) if low == high else f"{low}..{high}" for low, high in parts)


def values_of(name: str, given: Any) -> tuple[int, ...]:
    """The values that a caller gives a size: an integer or several. Raises ValueError and TypeError for others."""
    values: tuple[Any, ...] = tuple(cast(Iterable[Any], given)) if isinstance(given, Iterable) else (given,)
    if not values or not all(isinstance(each, int | np.integer) and not isinstance(each, bool) for each in values):
        raise InputTypeError(f"sizes: '{name}' must be an integer, several, or '{SMALL}', found {given!r}")
    return tuple(dict.fromkeys(int(each) for each in values))


def combinations(values: Mapping[str, tuple[int, ...]], *, sweep: bool = True) -> list[dict[str, int]]:
    """All combinations of the values, the smallest first; without `sweep`, that of the first ones alone.

    Raises ValueError for too many.
    """
    if not sweep:
        return [{name: each[0] for name, each in values.items()}]
    if (count := prod(map(len, values.values()))) > MOST:
        raise InputError(f"sizes: there are {count:,} combinations, at most {MOST:,} can be listed")
    ranks = {name: {value: rank for rank, value in enumerate(sorted(each))} for name, each in values.items()}
    found = [dict(zip(values, each, strict=True)) for each in product(*map(sorted, values.values()))]
    # How far each value is from the smallest one of its size, together: one that is large alone comes early.
    return sorted(found, key=lambda sizes: sum(ranks[name][size] for name, size in sizes.items()))


def small_values(module: ModuleOp) -> tuple[int, ...]:
    """Numbers of turns with which a kernel's rings of buffers go wrong, if they do.

    None, one, two and three; one less and one more than a ring has buffers; all of them twice, and one more.
    """
    rings = {
        type_.shape[0]
        for op in module.walk()
        if any(Kind.ALLOC in access.kind for access in accesses_of(op) or ())
        for result in op.results
        if isinstance(type_ := result.type, MemDescType)
    }
    around = {number for ring in rings if ring > 1 for number in (ring - 1, ring, ring + 1, 2 * ring, 2 * ring + 1)}
    return tuple(sorted({0, 1, 2, 3, *(each for each in around if each <= MOST_SMALL)}))


MOST_SMALL = 64
"""The largest of the small values: longer rings are not gone round in a check that is to be quick."""
