"""The fuzzers at a small volume; `python -m tests.fuzz.mlir 20000` and its neighbours run them at any."""

# covers: tlx compile, tlx run, target.cpu, triton-to-linalg

import pytest

from tests.fuzz import clusters, kernels, mlir, native, pointers, programs, trees
from tests.fuzz.pool import BAD, Ending, ending, endings, volume

TRIALS = [
    (mlir, 40, 2000), (kernels, 12, 500), (native, 48, 5000), (pointers, 20, 1000), (programs, 3, 200), (trees, 1, 100),
    (clusters, 2, 500),
]  # fmt: skip


@pytest.mark.parametrize(("fuzzer", "small", "full"), TRIALS, ids=[each.__name__ for each, _, _ in TRIALS])
def test_nothing_ends_badly(fuzzer, small, full):
    bad = {
        number: how
        for number in range(volume(small, full))
        if (how := ending(fuzzer.trial, number)).kind in (*BAD, "unlocated")
    }
    assert not bad, "\n".join(f"{number}: {how.kind}: {how.detail}" for number, how in bad.items())


def test_inputs_are_always_the_same():
    assert mlir.case(7) == mlir.case(7) != mlir.case(8)
    assert kernels.case(7) == kernels.case(7)
    assert programs.program(7).text == programs.program(7).text


def test_a_trial_may_end_its_process():
    def trial(number):
        if number == 3:
            raise SystemExit(5)
        return Ending("ok")

    assert {number: how.kind for number, how in endings(trial, range(5), 1)} == {
        0: "ok",
        1: "ok",
        2: "ok",
        3: "died",
        4: "ok",
    }
