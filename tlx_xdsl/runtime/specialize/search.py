"""The search for the decisions of a specialised kernel: proved or explored, compared, and ranked by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, prod
from typing import Any

from tlx_xdsl.errors import CompilationError, InputTypeError
from tlx_xdsl.frontend.python.source import Signature
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.language.compile_time import unwrapped

from .candidates import alternatives
from .decision import GIVEN, Alternative, Decision
from .equality import compared, plain_results
from .misfit import misfit
from .ranking import DOUBT, TIE, is_known, plain_milliseconds, specialised_milliseconds
from .rules import DEPTHS, FALLBACKS
from .settings import Settings
from .small import OTHER_SIZES, SmallLaunch, small_launches
from .specialized import Specialized, refused_by_choice, warp_specialized
from .turns import turns_of
from .verdict import Verdict, explored, proof_of

MOST_PREDICTED = 20
"""Candidates that the clock looks at: a prediction takes some seconds with the compile of the final code."""
MOST_EXPLORED = 2
"""Programs that share a loop of which all orders are run."""
MOST_MEASURED = 3
"""Candidates that a GPU measures beside the plain kernel."""

Measure = Callable[[Specialized], float]
"""Gives the milliseconds of a launch on a GPU; of the plain kernel where the argument is refused."""


@dataclass(frozen=True)
class Wanted:
    """The types, the constants and the target of a specialisation, and the launch that it is for."""

    kernel: Any
    signature: Mapping[str, Signature]
    constexprs: Mapping[str, Any]
    target: str = "sm_90a"
    num_warps: int = 4
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Launch options of the plain kernel."""
    grid: Grid | None = None
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The arguments of the launch by name; without `grid` there is none, and rules choose."""
    chip: str | None = None


@dataclass
class Candidate:
    """Decisions with what came of them."""

    decisions: Any
    specialized: Specialized
    milliseconds: float = inf
    why_not: str = ""
    is_compared: bool = False
    is_open: bool = False
    """True where it is not proved, and may be explored."""

    @property
    def counted(self) -> float:
        """Milliseconds by which candidates are compared: a loop that programs share has to be faster by `DOUBT`."""
        return self.milliseconds * (1 + DOUBT if self.specialized.host.split > 1 else 1)


def searched(wanted: Wanted, settings: Settings, measure: Measure | None = None) -> Specialized:
    """Return the specialised kernel that is to be launched, or the plain one with the reason.

    Nothing is returned as specialised that is neither proved nor explored. Without a launch the rules' decisions are
    taken. Raises CompilationError for a fault in the plain kernel, TypeError for a decision that there is not.
    """
    search = _Search(wanted, settings, measure)
    return replace(search.found(), is_defect=search.has_defects)


class _Search:
    def __init__(self, wanted: Wanted, settings: Settings, measure: Measure | None):
        self.wanted = wanted
        self.settings = settings
        self.measure = measure
        self.first = decisions_of(settings.decisions)
        self.until = time.perf_counter() + settings.seconds
        self.predicted = 0
        self.by_text: dict[str, Candidate] = {}
        self.expected: dict[str, Any] = {}
        self.has_defects = False
        self.is_clocked = settings.by != "rules" and wanted.grid is not None and is_known(wanted.target)

    def found(self) -> Specialized:
        """Return the choice."""
        base = self.by_rules()
        if not base.specialized:
            return base.specialized
        by = self.settings.by
        if not self.is_clocked or self.wanted.grid is None:
            return self._taken_by_rule(base)
        plain = plain_milliseconds(
            self.wanted.kernel, self.wanted.grid, self.wanted.named, self.wanted.target, self.wanted.options,
            self.wanted.chip,
        )  # fmt: skip
        best, decided = base, list[Decision]()
        if by != "clock":
            best, decided = self._descended(base)
        best = self._first_right(best)
        if best is None:
            return refused_by_choice(base.specialized, _plain_because(base.why_not))
        chosen = replace(
            best.specialized, milliseconds=best.milliseconds, decisions=(*decided, *best.specialized.decisions)
        )
        if by == "measure" and self.measure is not None:
            return self._measured(chosen, plain, base)
        if isinstance(plain, float):
            reason = f"the clock expects {plain:.4g} ms of it, and {best.milliseconds:.4g} ms when it is specialised"
            if plain * (1 + TIE) <= best.milliseconds:
                return refused_by_choice(chosen, _plain_because(reason))
            if chosen.untimed and plain < best.milliseconds * (1 + DOUBT):
                reason += f": of {chosen.untimed}, which no GPU has timed, it has to expect {DOUBT:.0%} more speed"
                return refused_by_choice(chosen, _plain_because(reason))
        value = f"{plain:.4g} ms" if isinstance(plain, float) else plain
        other = Alternative("plain", None, plain) if isinstance(plain, str) else Alternative("plain", plain)
        decision = Decision("specialise", True, f"the clock expects {value} of the plain kernel", alternatives=(other,))
        return replace(chosen, decisions=(decision, *chosen.decisions))

    # --- candidates ---------------------------------------------------------------------------------------------------

    def candidate(self, decisions: Any, *, explores: bool = True) -> Candidate:
        """Specialise with these decisions, and prove the result; candidates of the same source are one.

        With `explores` the orders of a small launch are run where there is no proof. What is refuted is not taken.
        """
        wanted = self.wanted
        made = warp_specialized(
            wanted.kernel, wanted.signature, wanted.constexprs, decisions, wanted.target, wanted.num_warps
        )
        self.has_defects = self.has_defects or made.is_defect
        if made.refused is not None:
            return Candidate(decisions, made, why_not=made.refused.message)
        made = replace(made, decisions=tuple(self._with_reason(each) for each in made.decisions))
        # The title names the decisions, also those that change nothing.
        text = made.source.split('"""', 2)[-1]
        found = self.by_text.get(text)
        if found is None:
            found = self.by_text[text] = Candidate(decisions, made)
            self._prove(found)
        if explores and found.is_open:
            self._explore(found)
        return found

    def _with_reason(self, decision: Decision) -> Decision:
        """A decision that this search has made is not one of the user."""
        if decision.reason != GIVEN or decision.name in self.first.given():
            return decision
        return replace(decision, reason="chosen by the search")

    def _prove(self, candidate: Candidate) -> None:
        made = candidate.specialized
        try:
            verdict = proof_of(made.kernel, made.specialization)
        except CompilationError as error:
            candidate.why_not = f"the written source does not compile: {error.message}"
            return
        if verdict and made.host.split > 1:
            verdict = Verdict("unknown", (f"rings are {verdict.answer}, and the proof does not follow other programs",))
        candidate.specialized = replace(made, verdict=verdict)
        if not verdict:
            candidate.is_open, candidate.why_not = (
                verdict.answer != "refuted",
                f"its synchronisation is {_said(verdict)}",
            )
        elif verdict.lines:
            turns = turns_of(made.source, verdict.lines)
            if isinstance(turns, int):
                candidate.why_not = f"its proof is for launches that can't be recognised: {verdict.details[0]}"
            else:
                candidate.specialized = replace(candidate.specialized, turns=tuple(turns))

    def _explore(self, candidate: Candidate) -> None:
        """Take a candidate that is not proved where small launches show nothing wrong with it, in any order."""
        candidate.is_open = False
        made = candidate.specialized
        assert made.verdict is not None, "it was to be proved"
        verdict = self._explored(made, made.verdict, candidate.decisions)
        candidate.specialized = replace(made, verdict=verdict)
        candidate.why_not = "" if verdict else f"its synchronisation is {_said(verdict)}"

    def _explored(self, made: Specialized, verdict: Verdict, decisions: Any) -> Verdict:
        """Run all orders of the smallest launch, where there is no proof and there is a launch.

        Programs that share a loop come in as many orders as there are permutations of them: two are explored, which
        have the same code with another number.
        """
        if self.small is None:
            return verdict
        if made.host.split > MOST_EXPLORED:
            fewer = self.candidate(replace(decisions, split=MOST_EXPLORED)).specialized
            if fewer.verdict is None or fewer.verdict.answer != "explored":
                why = str(fewer.refused or fewer.verdict)
                return Verdict("unknown", (f"the same loop for {MOST_EXPLORED} programs is not explored: {why}",))
            return self._at_sizes(made, verdict, replace(fewer.verdict, details=fewer.verdict.details[:1]))
        found = verdict
        # The CTAs of a cluster have a tile together, or one each.
        for tiles in range(1, made.host.cluster + 1):
            fitted = made.fitted((tiles, 1, 1), self.small.copied(), 1)
            if isinstance(fitted, str):
                return verdict
            found = explored(made.kernel, *fitted, made.run_options)
            if not found:
                return found
        return self._at_sizes(made, verdict, found)

    def _at_sizes(self, made: Specialized, verdict: Verdict, found: Verdict) -> Verdict:
        """Compare an explored kernel with the plain one at several sizes."""
        assert self.wanted.grid is not None, "there is a launch"
        count = 1
        for launch in small_launches(self.wanted.grid, self.wanted.named, OTHER_SIZES):
            expected = plain_results(made, launch)
            if isinstance(expected, str):
                continue
            if wrong := compared(made, launch, expected).wrong:
                return Verdict("refuted", (wrong,))
            count += 1
        return replace(found, details=(*found.details, f"and at {count} sizes in one order", *_reason(verdict)))

    def _predict(self, candidate: Candidate) -> None:
        """Have the clock look at a candidate that may be launched, or may turn out to, once."""
        if (candidate.why_not and not candidate.is_open) or candidate.milliseconds < inf:
            return
        assert self.wanted.grid is not None
        self.predicted += 1
        found = specialised_milliseconds(candidate.specialized, self.wanted.grid, self.wanted.named, self.wanted.chip)
        if isinstance(found, str):
            candidate.why_not, candidate.is_open = found, False
        else:
            candidate.milliseconds = found

    @cached_property
    def _programs(self) -> int:
        """The programs of the plain launch."""
        assert self.wanted.grid is not None
        return prod(grid_of(self.wanted.grid, {name: unwrapped(value) for name, value in self.wanted.named.items()}))

    def _descended(self, base: Candidate) -> tuple[Candidate, list[Decision]]:
        """Go along one decision after the other; return the best candidate, and what was decided.

        What is not proved is explored only where the clock expects it to be faster.
        """
        best, decided = base, list[Decision]()
        for name, values in alternatives(self.first, self.settings.decisions, self._programs):
            tried: list[Alternative] = []
            start = best
            for value in values:
                if self.predicted >= MOST_PREDICTED or time.perf_counter() > self.until:
                    break
                other = self._changed(best.decisions, name, value, start)
                if other is start:
                    continue
                is_faster = other.counted * (1 + TIE / 4) < best.counted
                if other.is_open and is_faster:
                    self._explore(other)
                if other.is_open:
                    tried.append(Alternative(value, other.milliseconds))
                    continue
                tried.append(Alternative(value, None if other.why_not else other.milliseconds, other.why_not))
                if is_faster and not other.why_not:
                    best = other
            if tried:
                chosen = getattr(best.decisions, name)
                value = "the compiler's" if chosen is None else chosen
                others = tuple(each for each in tried if each.value != chosen)
                reason = f"the clock expects {best.milliseconds:.4g} ms" if best.milliseconds < inf else ""
                decided.append(Decision(name, value, reason, alternatives=others))
        return best, decided

    def _changed(self, decisions: Any, name: str, value: Any, start: Candidate) -> Candidate:
        """Return the candidate with another value of a decision, and what the clock expects of it.

        The sums of a loop that programs share take memory: it has as many slots as fit then.
        """
        is_open = name == "split" and self.first.depth is None
        other = start
        for depth in DEPTHS if is_open else (decisions.depth,):
            other = self.candidate(replace(decisions, **{"depth": depth, name: value}), explores=False)
            if other is not start:
                self._predict(other)
            if other.milliseconds < inf or not other.specialized:
                break
        return other

    def by_rules(self) -> Candidate:
        """Return the candidate of the rules: the given decisions, and those that fit where they are not given."""
        variants = self._variants()
        tried: list[Candidate] = []
        # What a fallback costs in speed is more than what exploring costs once, where a launch is known.
        first = [(True, variants[0])] if self.is_clocked else []
        for explores, decisions in [*first, *((each, variant) for each in (False, True) for variant in variants)]:
            found = self._fitting(decisions, explores=explores)
            if not found.why_not:
                return found
            tried.append(found)
        return tried[0]

    def _variants(self) -> list[Any]:
        """The rules' decisions, and what is tried where those are refused or not proved."""
        open_ones = [(name, value) for name, value in FALLBACKS if getattr(self.first, name) is None]
        changes = [dict(open_ones[:count]) for count in range(len(open_ones) + 1)]
        return [replace(self.first, **change) for change in changes]

    def _fitting(self, decisions: Any, *, explores: bool) -> Candidate:
        """Return a candidate with as many buffers as fit, where their number is not given."""
        found: Candidate | None = None
        for depth in (decisions.depth,) if decisions.depth is not None else DEPTHS:
            found = self.candidate(replace(decisions, depth=depth), explores=explores)
            if found.why_not:
                break
            if self.is_clocked:
                self._predict(found)
            else:
                found.why_not = misfit(found.specialized)
            if not found.why_not:
                break
        assert found is not None, "there is a depth to try"
        return found

    def _taken_by_rule(self, base: Candidate) -> Specialized:
        """Return the rules' candidate where it may be launched."""
        if not base.why_not and self._is_right(base):
            return base.specialized
        return refused_by_choice(base.specialized, _plain_because(base.why_not))

    def _first_right(self, best: Candidate) -> Candidate | None:
        """The candidate, or where it computes something else, the fastest other that is right."""
        self._predict(best)
        order = sorted(self.by_text.values(), key=lambda each: each.counted)
        for each in [best, *(other for other in order if other is not best)]:
            if self._may_launch(each):
                return each
        return None

    def _may_launch(self, candidate: Candidate) -> bool:
        """Say whether a candidate fits, is proved or explored, and is right."""
        if candidate.is_open and candidate.milliseconds < inf:
            self._explore(candidate)
        return not candidate.why_not and candidate.milliseconds < inf and self._is_right(candidate)

    # --- comparison with the plain kernel -----------------------------------------------------------------------------

    @cached_property
    def small(self) -> SmallLaunch | None:
        """A small launch that the plain kernel can run."""
        if self.wanted.grid is None:
            return None
        any_form = Specialized(self.wanted.kernel, self.wanted.kernel)
        for each in small_launches(self.wanted.grid, self.wanted.named):
            found = plain_results(any_form, each)
            if not isinstance(found, str):
                self.expected = found
                return each
        return None

    def _is_right(self, candidate: Candidate) -> bool:
        """Compare a candidate with the plain kernel in the interpreter, where there is a small launch."""
        if candidate.is_compared or self.small is None:
            return True
        found = compared(candidate.specialized, self.small, self.expected)
        if found.wrong:
            candidate.why_not = f"it computes something else: {found.wrong}"
            candidate.milliseconds = inf
            return False
        candidate.is_compared = True
        return True

    # --- measurement --------------------------------------------------------------------------------------------------

    def _measured(self, chosen: Specialized, plain: float | str, base: Candidate) -> Specialized:
        """Measure the best few, those of the rules among them, and the plain kernel; return the fastest."""
        assert self.measure is not None
        order = sorted(
            (each for each in self.by_text.values() if each.is_open or not each.why_not),
            key=lambda each: each.milliseconds,
        )
        few = order[:MOST_MEASURED] if base in order[:MOST_MEASURED] else [*order[: MOST_MEASURED - 1], base]
        right = [each for each in few if self._may_launch(each)]
        refused = refused_by_choice(chosen, "measured")
        times = [(self.measure(each.specialized), at) for at, each in enumerate(right)]
        plain_time = self.measure(refused)
        fastest, at = min(times, default=(inf, 0))
        others = tuple(
            Alternative(_shown(right[number].decisions), milliseconds) for milliseconds, number in times if number != at
        )
        if plain_time < fastest:
            reason = f"it takes {plain_time:.4g} ms as measured, and {fastest:.4g} ms when it is specialised"
            return refused_by_choice(chosen, _plain_because(reason))
        decision = Decision(
            "specialise", True, f"measured: {fastest:.4g} ms", alternatives=(Alternative("plain", plain_time), *others)
        )
        best = right[at].specialized
        decided = chosen.decisions if best.source == chosen.source else best.decisions
        return replace(best, milliseconds=right[at].milliseconds, decisions=(decision, *decided))


def decisions_of(given: Mapping[str, Any]) -> Any:
    """Return the passes' decisions with those that are given.

    Raises TypeError for one that there is not.
    """
    from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

    try:
        return Decisions(**given)
    except TypeError as error:
        from dataclasses import fields

        known = ", ".join(each.name for each in fields(Decisions))
        raise InputTypeError(f"warp_specialize: {error}, the decisions are {known}") from error


def _plain_because(reason: str) -> str:
    return f"the plain kernel is launched: {reason}"


def _said(verdict: Verdict) -> str:
    words = {"refuted": "wrong", "unknown": "neither proved nor explored"}
    return f"{words[verdict.answer]}{': ' + verdict.details[0] if verdict.details else ''}"


def _reason(verdict: Verdict) -> tuple[str, ...]:
    """Return why there is no proof, in a line."""
    return (f"no proof: {verdict.details[0].splitlines()[0]}",) if verdict.details else ()


def _shown(decisions: Any) -> str:
    from dataclasses import fields

    named = ((each.name, getattr(decisions, each.name)) for each in fields(decisions))
    return ", ".join(f"{name}={value}" for name, value in named if value is not None) or "the compiler's"
