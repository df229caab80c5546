"""Every mistake of the zoo is found and named, and its clean twin gives no report; what is known to fail is marked.

CI checks the first mistake of each class and area, TLX_TEST_VOLUME=full all of them.
"""

import functools

import pytest

from tests.unit import volume
from tests.zoo.bugs import Bug, unknown_mistakes
from tests.zoo.table import AREAS, CLEAN

EVERY = [(area, bug) for area, bugs in AREAS.items() for bug in bugs]
FIRST = {(area, bug.kind): bug for area, bug in reversed(EVERY)}
CHOSEN = [bug for area, bug in EVERY if volume.is_full() or FIRST[area, bug.kind] is bug]
CHOSEN_CLEAN = CLEAN if volume.is_full() else CLEAN[::3]


def case(of, why):
    """A parameter of a test, which is known to fail where there is a reason."""
    return pytest.param(of, id=of.name, marks=[pytest.mark.xfail(strict=True, reason=why)] if why else [])


@functools.cache
def findings(bug: Bug):
    return bug.check()


def shown(found):
    return "\n".join(map(str, found))


@pytest.mark.parametrize("bug", [case(bug, bug.missed) for bug in CHOSEN])
def test_the_mistake_is_found(bug):
    assert findings(bug)


@pytest.mark.parametrize("bug", [case(bug, bug.missed or bug.badly_named) for bug in CHOSEN])
def test_the_report_names_the_cause(bug):
    assert any(map(bug.is_named_by, findings(bug))), shown(findings(bug))


@pytest.mark.parametrize("bug", [case(bug, bug.false_alarm) for bug in CHOSEN])
def test_the_twin_is_clean(bug):
    found = bug.check_twin()
    assert not found, shown(found)


@pytest.mark.parametrize("run", [case(run, run.false_alarm) for run in CHOSEN_CLEAN])
def test_what_is_right_gives_no_report(run):
    found = run.check()
    assert not found, shown(found)


def test_names_are_unique():
    names = [each.name for each in (*(bug for _, bug in EVERY), *CLEAN)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kernel", {bug.kernel: None for _, bug in EVERY}, ids=lambda kernel: kernel.source.name)
def test_table_and_text_have_the_same_mistakes(kernel):
    bugs = [bug for _, bug in EVERY if bug.kernel is kernel]
    known = {bug.mistake for bug in bugs} | {bug.twin["BUG"] for bug in bugs if "BUG" in bug.twin}
    known |= {run.settings["BUG"] for run in CLEAN if run.kernel is kernel} - {""}
    assert not unknown_mistakes(kernel, known)
    assert not [bug.name for bug in bugs if not bug.lines()]
