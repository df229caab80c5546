"""A mistake in a TTL kernel is said at its line, by an error, a warning or a remark; of its right twin nothing is."""

import re
from collections import Counter

import pytest

from tests.unit.ttl.mistakes import ttl_mistakes_in_one_core as one, ttl_mistakes_in_several_cores as several
from tests.unit.ttl.mistakes.ttl_mistakes import Mistake, Twin, findings_of, verdict
from tests.unit.volume import is_full
from tlx_xdsl.tools.tlx import main

TWINS = (*one.TWINS, *several.TWINS)
MISTAKES = [mistake for twin in TWINS for mistake in twin.mistakes]
SAMPLE = (
    "short producer", "left out a push", "pushed before the copy is done", "rows left out", "no broadcast",
    "always the same row written", "shifted in place", "all of one buffer first", "no semaphore between two writes",
    "a race whose value is not used", "waits for one of two", "no receiver",
)  # fmt: skip
"""Kinds that are tried each time."""
SMALL = (one.ADD, several.IN_TURNS, several.RELAY)


@pytest.mark.parametrize("machine", ["ttkernel", "tensors"])
@pytest.mark.parametrize(
    "twin", TWINS if is_full() else (one.ADD, several.IN_TURNS, several.RELAY), ids=lambda twin: twin.name
)
def test_nothing_is_said_of_a_kernel_that_is_right(twin: Twin, machine: str, tmp_path):
    assert findings_of(twin.text, twin.name, twin, tmp_path, machine) == []


@pytest.mark.parametrize("mistake", [each for each in MISTAKES if is_full() or each.kind in SAMPLE], ids=str)
def test_a_mistake_is_said_at_its_line(mistake: Mistake, tmp_path):
    assert verdict(mistake, findings_of(mistake.text, str(mistake), mistake.twin, tmp_path)) == ""


def test_the_kinds_are_many():
    """Counts, printed with `pytest -s`: how a mistake shows itself."""
    counts = Counter(each.how for each in MISTAKES)
    print(f"{len(MISTAKES)} mistakes in {len(TWINS)} kernels: {dict(counts)}")
    assert len({str(each) for each in MISTAKES}) == len(MISTAKES) >= 100
    assert set(SAMPLE) <= {each.kind for each in MISTAKES}


def test_what_only_another_order_shows_can_be_repeated(tmp_path, capsys):
    mistake = next(each for each in MISTAKES if each.how == "check")
    path = tmp_path / "kernel.py"
    path.write_text(mistake.text)
    shapes = {name: "x".join(map(str, array.shape)) for name, array in mistake.twin.arrays().items()}
    arguments = [f"{path}:{mistake.twin.name}"]
    arguments += [
        text for name, shape in shapes.items() for text in ("--arg", f"{name}=zeros[{shape.replace('x', ',')}]")
    ]
    assert main(["ttl", "run", *arguments]) == 0
    capsys.readouterr()
    assert main(["ttl", "check", *arguments]) == 1
    said = capsys.readouterr().err
    assert mistake.said in said
    schedule = re.search(r"found with (--schedule \S+)", said)
    assert schedule is not None
    assert main(["ttl", "run", *arguments, *schedule[1].rstrip(":").split()]) == 1
    assert mistake.said in capsys.readouterr().err
