"""The search with stand-ins for passes, proofs and the clock: what is chosen, what is left out, what is said."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

import tlx_xdsl
from tests.unit.runtime.specialize.plain_kernels import add_one
from tlx_xdsl.errors import CompilationError, InputError, InputTypeError
from tlx_xdsl.runtime.specialize import search
from tlx_xdsl.runtime.specialize.decision import GIVEN, Alternative, Decision
from tlx_xdsl.runtime.specialize.equality import Comparison
from tlx_xdsl.runtime.specialize.host_part import HostPart
from tlx_xdsl.runtime.specialize.search import Wanted, decisions_of, searched
from tlx_xdsl.runtime.specialize.settings import Settings
from tlx_xdsl.runtime.specialize.specialized import Specialized
from tlx_xdsl.runtime.specialize.verdict import Verdict

pytestmark = pytest.mark.quick

PROVED = Verdict("proved")


@dataclass
class World:
    """Answers of the parts of a search, by the decisions that a candidate was made with."""

    plain: float | str = 10.0
    times: object = staticmethod(lambda decisions: 8.0)
    verdicts: object = staticmethod(lambda decisions: PROVED)
    comparisons: object = staticmethod(lambda decisions: Comparison())
    misfits: object = staticmethod(lambda decisions: "")
    refusals: object = staticmethod(lambda decisions: None)
    code: object = staticmethod(str)
    decisions: tuple[Decision, ...] = ()
    predicted: int = 0


@pytest.fixture
def world(monkeypatch):
    found = World()
    made = {}

    def specialised(kernel, signature, constexprs, decisions, target, num_warps):
        refused = found.refusals(decisions)
        text = f'"""{decisions}"""{found.code(decisions)}'
        made[text] = decisions
        kernel = kernel if refused else tlx_xdsl.Kernel(add_one.fn)
        host = HostPart((), split=decisions.split or 1)
        return Specialized(add_one, kernel, text, host=host, decisions=found.decisions, refused=refused)

    def milliseconds(specialized, grid, given, chip):
        found.predicted += 1
        return found.times(made[specialized.source])

    def proof(kernel, specialization):
        return found.verdicts(made[list(made)[-1]])

    small = type("Small", (), {"copied": lambda self: {}})()
    monkeypatch.setattr(search, "warp_specialized", specialised)
    monkeypatch.setattr(search, "proof_of", proof)
    monkeypatch.setattr(search, "misfit", lambda specialized: found.misfits(made[specialized.source]))
    monkeypatch.setattr(search, "is_known", lambda target: True)
    monkeypatch.setattr(search, "specialised_milliseconds", milliseconds)
    monkeypatch.setattr(search, "plain_milliseconds", lambda *args: found.plain)
    monkeypatch.setattr(search, "small_launches", lambda grid, named, *sizes: iter([small]))
    monkeypatch.setattr(search, "plain_results", lambda specialized, launch: {})
    monkeypatch.setattr(search, "compared", lambda made_, *rest: found.comparisons(made[made_.source]))
    return found


WANTED = Wanted(add_one, {}, {}, grid=100)
FEW = replace(WANTED, grid=1)
"""A launch that leaves most of a GPU idle."""


def test_the_faster_one_is_taken(world):
    found = searched(WANTED, Settings())
    assert found
    assert found.milliseconds == 8.0
    assert found.decisions[0].alternatives == (Alternative("plain", 10.0),)
    assert "the clock expects 8 ms" in str(found)
    world.plain = 7.0
    found = searched(WANTED, Settings())
    assert not found
    assert found.kernel is add_one
    assert "the clock expects 7 ms of it, and 8 ms when it is specialised" in str(found)


def test_a_tie_is_specialised(world):
    world.plain = 7.9
    assert searched(WANTED, Settings())
    world.plain = "no prediction"
    found = searched(WANTED, Settings())
    assert found.decisions[0].alternatives == (Alternative("plain", None, "no prediction"),)


def test_copies_by_threads_must_be_expected_to_be_much_faster(world):
    world.plain = 8.7
    assert searched(WANTED, Settings())
    world.code = lambda decisions: f"tlx.async_load(pointers, buffer)  # {decisions}"
    found = searched(WANTED, Settings())
    assert not found
    assert "of copies by threads, which no GPU has timed, it has to expect 10% more speed" in str(found)
    world.plain = 8.9
    assert searched(WANTED, Settings())


def test_a_loop_that_programs_share_must_be_expected_to_be_much_faster(world, monkeypatch):
    """Faster than the plain kernel, and than the best form without it; two programs are explored for more."""
    seen = []

    def explored(kernel, grid, values, options):
        seen.append(kernel)
        return Verdict("explored", ("in all orders",))

    monkeypatch.setattr(search, "explored", explored)
    world.times = lambda decisions: 4.0 if decisions.split == 4 else 8.0
    found = searched(FEW, Settings(by="search"))
    assert found.host.split == 4
    assert found.verdict.answer == "explored"
    assert len(seen) == 1
    assert ("split", 4) in [(each.name, each.value) for each in found.decisions]
    world.times = lambda decisions: (
        "too much memory" if decisions.split and decisions.depth != 3 else 4.0 + (4.0 if decisions.split != 4 else 0.0)
    )
    found = searched(FEW, Settings(by="search"))
    assert (found.host.split, "depth=3" in found.source) == (4, True)
    world.times = lambda decisions: 7.4 if decisions.split == 4 else 8.0
    assert searched(FEW, Settings(by="search")).host.split == 1
    world.plain, world.times = 8.7, lambda decisions: 8.0
    found = searched(FEW, Settings(decisions={"split": 2}))
    assert not found
    assert "of loops that programs share, which no GPU has timed" in str(found)
    monkeypatch.setattr(search, "explored", lambda *rest: Verdict("refuted", ("a race",)))
    world.times = lambda decisions: 4.0 if decisions.split == 4 else 8.0
    assert searched(FEW, Settings(by="search")).host.split == 1
    monkeypatch.setattr(search, "explored", explored)
    assert searched(WANTED, Settings(by="search")).host.split == 1


def test_rules_ask_no_clock(world):
    world.plain = 1.0
    assert searched(WANTED, Settings(by="rules"))
    assert searched(replace(WANTED, grid=None), Settings())
    assert not world.predicted


def test_nothing_is_taken_that_is_neither_proved_nor_explored(world, monkeypatch):
    monkeypatch.setattr(search, "explored", lambda *rest: Verdict("unknown", ("not all orders",)))
    for answer in ("refuted", "unknown"):
        world.verdicts = lambda decisions, answer=answer: Verdict(answer, ("a reason",))
        for by in ("rules", "clock", "search"):
            found = searched(replace(WANTED, grid=None), Settings(by=by))
            assert not found
            assert "a reason" in str(found)


def test_only_what_the_user_has_given_is_said_to_be_given(world):
    made = [Decision("depth", 2, GIVEN), Decision("persistent", False, GIVEN), Decision("groups", 2, "two")]
    world.decisions = tuple(made)
    found = searched(replace(WANTED, grid=None), Settings(decisions={"depth": 2}))
    assert [each.reason for each in found.decisions] == [GIVEN, "chosen by the search", "two"]


def test_a_refusal_is_the_reason(world):
    reason = CompilationError("not warp-specialised: there is no loop")
    world.refusals = lambda decisions: reason
    found = searched(WANTED, Settings(by="search"))
    assert found.refused is reason


def test_two_groups_that_are_refused_are_tried_as_one(world):
    world.refusals = lambda decisions: None if decisions.groups == 1 else CompilationError("rows")
    assert "groups=1" in searched(WANTED, Settings(by="rules")).source
    assert not searched(WANTED, Settings(by="rules", decisions={"groups": 2}))


def test_buffers_are_as_many_as_fit(world):
    world.misfits = lambda decisions: "" if decisions.depth == 3 else "shared memory"
    assert "depth=3" in searched(WANTED, Settings(by="rules")).source
    found = searched(WANTED, Settings(by="rules", decisions={"depth": 5}))
    assert not found
    assert "shared memory" in str(found)


def test_the_search_keeps_the_best_and_names_the_others(world):
    def times(decisions):
        if decisions.depth == 5:
            return "too much shared memory"
        return 8.0 - (decisions.depth == 4) - 0.5 * (decisions.groups == 1) + 2 * (decisions.persistent is True)

    world.times = times
    found = searched(WANTED, Settings(by="search"))
    assert found.milliseconds == 6.5
    by_name = {each.name: each for each in found.decisions}
    assert (by_name["groups"].value, by_name["depth"].value) == (1, 4)
    assert Alternative(5, None, "too much shared memory") in by_name["depth"].alternatives
    assert Alternative(3, 7.5) in by_name["depth"].alternatives
    assert Alternative(True, 10.0) in by_name["persistent"].alternatives
    assert world.predicted <= search.MOST_PREDICTED + 1
    again = searched(WANTED, Settings(by="search"))
    assert again.decisions == found.decisions


def test_given_decisions_are_not_looked_for(world):
    found = searched(WANTED, Settings(by="search", decisions={"depth": 2}))
    assert "depth=2" in found.source
    assert "depth" not in [each.name for each in found.decisions]
    with pytest.raises(InputTypeError, match=r"deep.*the decisions are .*depth"):
        searched(WANTED, Settings(decisions={"deep": 2}))


def test_what_computes_something_else_is_left_out(world):
    world.times = lambda decisions: 5.0 if decisions.depth == 4 else 8.0
    world.comparisons = lambda decisions: Comparison("c[0] is 1") if decisions.depth == 4 else Comparison()
    found = searched(WANTED, Settings(by="search"))
    assert found
    assert found.milliseconds == 8.0
    world.comparisons = lambda decisions: Comparison("c[0] is 1")
    found = searched(WANTED, Settings())
    assert not found
    assert "computes something else: c[0] is 1" in str(found)
    assert not searched(WANTED, Settings(by="rules"))


def test_measurements_have_the_last_word(world):
    world.times = lambda decisions: 8.0 if str(decisions) == str(decisions_of({})) else 8.1 + (decisions.depth != 2)
    measured = []

    def measure(candidate):
        measured.append(candidate)
        if not candidate:
            return 9.0
        return 3.0 if "depth=2" in candidate.source else 5.0

    found = searched(WANTED, Settings(by="measure"), measure)
    assert "depth=2" in found.source
    assert len(measured) == search.MOST_MEASURED + 1
    assert Alternative("plain", 9.0) in found.decisions[0].alternatives
    found = searched(WANTED, Settings(by="measure"), lambda candidate: 5.0 if candidate else 4.0)
    assert not found
    assert "4 ms as measured" in str(found)


@pytest.mark.parametrize("given", [True, "search", {"by": "measure", "depth": 4, "check": True}])
def test_settings(given):
    assert Settings.of(given) is not None
    assert Settings.of(None) is Settings.of(False) is None
    assert Settings.of({"depth": 4, "seconds": 5.0}) == Settings(seconds=5.0, decisions={"depth": 4})


def test_settings_that_there_are_not():
    with pytest.raises(InputError, match="expected one of 'rules', 'clock', 'search', 'measure', found 'clok'"):
        Settings.of("clok")
    with pytest.raises(InputTypeError, match="found int"):
        Settings.of(3)


def test_a_proof_is_better_than_an_exploration(world, monkeypatch):
    monkeypatch.setattr(Specialized, "fitted", lambda self, *rest: ((1, 1, 1), []))
    monkeypatch.setattr(search, "explored", lambda *rest: Verdict("explored", ("all orders",)))
    world.verdicts = lambda decisions: Verdict("unknown", ("a loop",))
    found = searched(WANTED, Settings())
    assert found.verdict.answer == "explored"
    assert "no proof: a loop" in str(found)
    for answer in ("refuted", "unknown"):
        world.verdicts = lambda decisions, answer=answer: PROVED if decisions.split_masks is False else Verdict(answer)
        assert searched(WANTED, Settings(by="rules")).verdict is PROVED
    world.verdicts = lambda decisions: Verdict("refuted", ("a loop",))
    assert not searched(WANTED, Settings())
    world.comparisons = lambda decisions: Comparison("a deadlock")
    world.verdicts = lambda decisions: Verdict("unknown", ("a loop",))
    found = searched(WANTED, Settings())
    assert not found
    assert "its synchronisation is wrong: a deadlock" in str(found)


def test_a_cluster_is_explored_with_one_tile_and_with_two(world, monkeypatch):
    grids, answers = [], iter(["explored", "refuted"])
    monkeypatch.setattr(Specialized, "fitted", lambda self, grid, *rest: (grids.append(grid), (grid, []))[1])
    monkeypatch.setattr(search, "explored", lambda *rest: Verdict(next(answers), ("a reason",)))
    made = search.warp_specialized
    monkeypatch.setattr(search, "warp_specialized", lambda *args: replace(made(*args), host=HostPart((), cluster=2)))
    world.verdicts = lambda decisions: Verdict("unknown", ("a rank",))
    fixed = {name: False for name in ("join", "persistent", "split_masks")} | {"groups": 1, "depth": 2}
    assert "its synchronisation is wrong" in str(searched(WANTED, Settings(decisions=fixed)))
    assert grids[:2] == [(1, 1, 1), (2, 1, 1)]


def test_decisions_that_change_nothing_are_not_looked_at(world):
    """The title of a file names its decisions; what counts is the code below."""
    world.code = lambda decisions: f"depth={decisions.depth}, groups={decisions.groups}"
    world.times = lambda decisions: 8.0 - (decisions.depth == 4)
    found = searched(WANTED, Settings(by="search"))
    assert found.milliseconds == 7.0
    assert world.predicted == 1 + 2 + 5  # the rules', two numbers of groups, five of slots


def test_only_what_is_expected_to_be_faster_is_explored(world, monkeypatch):
    explored = []
    monkeypatch.setattr(Specialized, "fitted", lambda self, *rest: ((1, 1, 1), []))
    monkeypatch.setattr(search, "explored", lambda *rest: explored.append(rest) or Verdict("explored", ("all orders",)))
    world.verdicts = lambda decisions: PROVED if decisions.depth is None else Verdict("unknown", ("a loop",))
    world.times = lambda decisions: {3: 7.0, 4: 9.0}.get(decisions.depth, 8.0)
    found = searched(WANTED, Settings(by="search"))
    assert (found.milliseconds, found.verdict.answer, len(explored)) == (7.0, "explored", 1)
    (decision,) = [each for each in found.decisions if each.name == "depth"]
    assert Alternative(4, 9.0) in decision.alternatives
    # A GPU measures no candidate that is not explored.
    world.times = lambda decisions: 8.0 if decisions.depth is None else 9.0
    monkeypatch.setattr(search, "explored", lambda *rest: Verdict("unknown", ("not all orders",)))
    measured = []
    searched(WANTED, Settings(by="measure"), lambda candidate: measured.append(candidate) or 5.0)
    assert [bool(each.verdict) for each in measured if each] == [True] * search.MOST_MEASURED


def test_the_rules_choice_is_measured_whatever_the_clock_expects(world):
    world.times = lambda decisions: 8.0 if decisions.depth is None else 7.0 - decisions.depth / 10
    measured = []
    found = searched(
        WANTED, Settings(by="measure"), lambda each: measured.append(each) or 9.0 - (" depth=N" in each.source)
    )
    assert found.milliseconds == 8.0
    assert sum(" depth=None" in each.source for each in measured if each) == 1
