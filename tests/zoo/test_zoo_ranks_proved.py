"""No mistake in a protocol of several ranks is ever proved, and most of the twins are.

A mistake shows on the first number of ranks that its table has. On another one the kernel may be right: a ring of two
needs no second counter. What is proved there, all orders of runs find nothing in.
"""

import pytest

import tlx_xdsl
from tests.unit import volume
from tests.zoo.bugs import Bug
from tests.zoo.ranks.table import BUGS, twins
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.check.across_ranks.prove import RanksProof
from tlx_xdsl.runtime.check.run import subject_of
from tlx_xdsl.runtime.ranks.simulated import PerLaunch
from tlx_xdsl.runtime.simulate.options import FRONTEND

TWINS = twins()
UNPROVED = {
    "shared_work": "how often it turns depends on data",
    "resident": "17 programs need not all be resident at once on 16 multiprocessors",
    "send_by_bulk": "'ttng.fence_async_shared' is not followed across ranks",
    "load_by_tma": "'nvvm.fence.proxy' is not followed across ranks",
    # The fence of other threads than the one that raises the flag orders nothing without a barrier.
    "put_with_signal-right: fence before the flag": "nothing that is followed orders it after rank 0",
    "barriers_in_a_row-right: three counters": "a counter is added to, and set",
}
"""Why there is no proof of a twin."""


def proof_of(bug: Bug, settings, ranks, arguments) -> RanksProof:
    """The proof for any number of launches, or for one where the kernel is for one."""
    given = {**bug.constants, **settings, **bug.options}
    subject = subject_of(
        bug.kernel, bug.grid, (), given, {"ranks": (ranks,)}, arguments, sweep=False, options=None, on_ranks=True
    )
    repeats = any(isinstance(each, PerLaunch) for each in arguments(ranks))
    proved = subject.scopes()[0].make().proved
    assert proved is not None
    return proved(None if repeats else 1)


def test_none_of_the_mistakes_is_proved(capsys):
    proved, reasons = list[str](), list[str]()
    for bug in BUGS:
        try:
            found = proof_of(bug, {"BUG": bug.mistake}, bug.ranks[0], bug.arguments)
        except CompilationError:
            continue
        if found:
            proved.append(bug.name)
        else:
            assert found.reason is not None, bug.name
            assert found.reason.location is not None, bug.name
            reasons.append(found.reason.message)
    assert not proved
    assert len(BUGS) == 86
    deadlocks = sum(each.startswith("deadlock") for each in reasons)
    assert deadlocks >= 12, reasons
    with capsys.disabled():
        print(f" 0 of {len(BUGS)} mistakes on several ranks proved, {deadlocks} refuted", end="")


@pytest.mark.parametrize("bug", TWINS, ids=lambda bug: f"{bug.kernel.source.name}-{bug.twin.get('BUG', '')}")
def test_twins_are_proved(bug):
    name = bug.kernel.source.name
    reason = UNPROVED.get(f"{name}-{bug.twin.get('BUG', '')}") or UNPROVED.get(name)
    for ranks in bug.ranks if volume.is_full() else bug.ranks[-1:]:
        found = proof_of(bug, {"BUG": "", **bug.twin}, ranks, bug.twin_arguments or bug.arguments)
        if reason is None:
            assert found, found.reason
        else:
            assert not found
            assert found.reason is not None
            assert reason in found.reason.message


def test_most_twins_are_proved():
    without = [
        bug for bug in TWINS
        if {f"{bug.kernel.source.name}-{bug.twin.get('BUG', '')}", bug.kernel.source.name} & {*UNPROVED}
    ]  # fmt: skip
    assert len(TWINS) - len(without) == 15


@pytest.mark.skipif(not volume.is_full(), reason="TLX_TEST_VOLUME=full: minutes of runs")
def test_what_is_proved_on_other_numbers_of_ranks_is_right_there():
    for bug in BUGS:
        for ranks in bug.ranks[1:]:
            try:
                found = proof_of(bug, {"BUG": bug.mistake}, ranks, bug.arguments)
            except CompilationError:
                continue
            if found:
                settings = {**bug.constants, "BUG": bug.mistake, **bug.options, "stages": [FRONTEND]}
                report = tlx_xdsl.check(
                    bug.kernel, bug.grid, seconds=30.0, ranks=(ranks,), arguments=bug.arguments, **settings
                )
                assert not report.findings, (bug.name, ranks)
