"""Every mistake of the zoo is found and named, and its clean twin gives no report; what is known to fail is marked.

CI checks the first mistake of each class and area, TLX_TEST_VOLUME=full all of them.
"""

import functools

import pytest

from tests.unit import volume
from tests.zoo.bugs import Bug, unknown_mistakes
from tests.zoo.table import AREAS

EVERY = [(area, bug) for area, bugs in AREAS.items() for bug in bugs]
FIRST = {(area, bug.kind): bug for area, bug in reversed(EVERY)}
CHOSEN = [bug for area, bug in EVERY if volume.is_full() or FIRST[area, bug.kind] is bug]


def cases(known):
    """The chosen mistakes, those that are known to fail with the reason."""
    return [
        pytest.param(
            bug, id=bug.name, marks=[pytest.mark.xfail(strict=True, reason=why)] if (why := known(bug)) else []
        )
        for bug in CHOSEN
    ]


@functools.cache
def findings(bug: Bug):
    return bug.check()


@pytest.mark.parametrize("bug", cases(lambda bug: bug.missed))
def test_the_mistake_is_found(bug):
    assert findings(bug)


@pytest.mark.parametrize("bug", cases(lambda bug: bug.missed or bug.badly_named))
def test_the_report_names_the_cause(bug):
    named = [finding for finding in findings(bug) if bug.is_named_by(finding)]
    assert named, "\n".join(map(str, findings(bug)))


@pytest.mark.parametrize("bug", cases(lambda bug: bug.false_alarm))
def test_the_twin_is_clean(bug):
    found = bug.check_twin()
    assert not found, "\n".join(map(str, found))


def test_names_are_unique():
    names = [bug.name for _, bug in EVERY]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kernel", {bug.kernel: None for _, bug in EVERY}, ids=lambda kernel: kernel.source.name)
def test_table_and_text_have_the_same_mistakes(kernel):
    bugs = [bug for _, bug in EVERY if bug.kernel is kernel]
    known = {bug.mistake for bug in bugs} | {bug.twin["BUG"] for bug in bugs if "BUG" in bug.twin}
    assert not unknown_mistakes(kernel, known)
    assert not [bug.name for bug in bugs if not bug.lines()]
