"""Every mistake in a protocol of several ranks is found and named, and its twin gives no report on 2, 3 and 4 ranks.

CI runs what the frontend makes of the kernels: the first mistake of each kind, and all published ones.
TLX_TEST_VOLUME=full runs all of them, and the end of the pipeline, too.
"""

import functools

import pytest

from tests.unit import volume
from tests.zoo.bugs import Bug, unknown_mistakes
from tests.zoo.ranks.table import BUGS, CAGES, twins
from tlx_xdsl.runtime.simulate.options import FRONTEND, STAGES

WHERE = STAGES if volume.is_full() else (FRONTEND,)
FIRST = {bug.kind: bug for bug in reversed(BUGS)}
CHOSEN = [bug for bug in BUGS if volume.is_full() or FIRST[bug.kind] is bug or bug.module == "published"]
TWINS = [bug for bug in twins() if volume.is_full() or not bug.twin]


@functools.cache
def findings(bug: Bug):
    return bug.check(WHERE)


def shown(found):
    return "\n".join(map(str, found))


@pytest.mark.parametrize("bug", CHOSEN, ids=lambda bug: bug.name)
def test_the_mistake_is_found_and_named(bug):
    assert any(map(bug.is_named_by, findings(bug))), shown(findings(bug))


@pytest.mark.parametrize("bug", TWINS, ids=lambda bug: f"{bug.kernel.source.name}-{bug.twin.get('BUG', '')}")
def test_the_twin_is_clean(bug):
    found = bug.check_twin(WHERE)
    assert not found, shown(found)


def test_all_are_found(capsys):
    found = [bug for bug in CHOSEN if any(map(bug.is_named_by, findings(bug)))]
    with capsys.disabled():
        print(f" {len(found)} of {len(CHOSEN)} mistakes on several ranks found, {len(TWINS)} twins", end="")
    assert len(found) == len(CHOSEN) >= 40


@pytest.mark.parametrize("kernel", {cage.kernel: None for cage in CAGES}, ids=lambda kernel: kernel.source.name)
def test_table_and_text_have_the_same_mistakes(kernel):
    bugs = [bug for bug in BUGS if bug.kernel is kernel]
    known = {bug.mistake for bug in bugs} | {bug.twin["BUG"] for bug in bugs if "BUG" in bug.twin}
    assert not unknown_mistakes(kernel, known)
    assert not [bug.name for bug in bugs if not bug.lines()]


def test_names_are_unique():
    names = [bug.name for bug in BUGS]
    assert len(names) == len(set(names))
