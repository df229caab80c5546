"""Random protocols: nothing that a simulator of all schedules finds wrong is proved, and most of the rest is.

`python -m tests.fuzz.protocols 2000` runs more.
"""

import pytest

from tests.fuzz.protocol_model import Act, Barriers, Buffers, For, Protocol
from tests.fuzz.protocol_simulator import wrong
from tests.fuzz.protocols import SIZES, answer
from tests.unit import volume

# pyright: basic

COUNT = 2000 if volume.is_full() else 100
CHOSEN = SIZES if volume.is_full() else [each for each in SIZES if each["n"] < 7]


def test_nothing_wrong_is_proved():
    answers = [each for seed in range(COUNT) if (each := answer(seed, CHOSEN)) is not None]
    assert not [f"seed {each.seed}: {each.wrong}\n{each.text}" for each in answers if each.is_false]
    right = [each for each in answers if not each.wrong]
    assert len(right) > len(answers) // 4
    assert sum(bool(each.proof) for each in right) >= 0.85 * len(right)


def ring(parity="(t // 2) & 1", order=("write", "arrive"), turns="n"):
    """A ring of two blocks."""
    put = tuple(
        Act("write", "tile", "t % 2") if each == "write" else Act("arrive", "full", "t % 2") for each in order
    )  # fmt: skip
    first = (For("t", "0", turns, 1, (Act("wait", "empty", "t % 2", "((t // 2) & 1) ^ 1"), *put)),)
    second = (
        For("t", "0", "n", 1, (
            Act("wait", "full", "t % 2", parity), Act("read", "tile", "t % 2"), Act("arrive", "empty", "t % 2"),
        )),
    )  # fmt: skip
    barriers = (Barriers("full", 2), Barriers("empty", 2))
    return Protocol(barriers, (Buffers("tile", 2),), (), (first, second))


@pytest.mark.parametrize(("changes", "n", "found"), [
    ({}, 5, ""),
    ({"parity": "t & 1"}, 1, ""),
    ({"parity": "t & 1"}, 2, "a read of what is not there"),
    ({"parity": "((t - 4) // 2) & 1"}, 1, ""),
    ({"parity": "((t - 4) // 2) & 1"}, 2, "a read of what is not there"),
    ({"order": ("arrive", "write")}, 1, "a race"),
    ({"turns": "n - n // 4"}, 3, ""),
    ({"turns": "n - n // 4"}, 4, "deadlock"),
])  # fmt: skip
def test_the_simulator(changes, n, found):
    message, _ = wrong(ring(**changes), {"n": n, "m": 1})
    assert message == found
