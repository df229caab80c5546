"""`tlx_xdsl.check` at all combinations of small sizes: what only some show, which were run, and which were not."""

import io
import sys

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.ticking import tick
from tlx_xdsl import progress
from tlx_xdsl.runtime.check.report import combinations, listed, small_values
from tlx_xdsl.runtime.simulate.interpret import module_of
from tlx_xdsl.runtime.simulate.options import Options

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    tick(monkeypatch)


@tlx_xdsl.jit
def ring(src, dst, TURNS, SLOTS: tl.constexpr, PHASES: tl.constexpr):
    """Tiles through a ring; with wrong PHASES the phase is that of the turn instead of the round."""
    tiles = tlx.local_alloc((16, 16), tl.float32, SLOTS)
    full, empty = tlx.alloc_barriers(SLOTS), tlx.alloc_barriers(SLOTS)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TURNS):
                tlx.barrier_wait(empty[t % SLOTS], (t // SLOTS) & 1 ^ 1)
                tlx.barrier_expect_bytes(full[t % SLOTS], 16 * 16 * 4)
                tlx.async_descriptor_load(src, tiles[t % SLOTS], [t * 16, 0], full[t % SLOTS])
        with tlx.async_task(num_warps=4):
            for t in range(TURNS):
                tlx.barrier_wait(full[t % SLOTS], (t // SLOTS if PHASES else t) & 1)
                tlx.async_descriptor_store(dst, tiles[t % SLOTS], [t * 16, 0])
                tlx.async_descriptor_store_wait(0)
                tlx.barrier_arrive(empty[t % SLOTS])


def tensors(turns, *rest):
    arrays = (np.ones((max(turns, 1) * 16, 16), np.float32) for _ in range(2))
    return (*(tlx_xdsl.TensorDescriptor.from_tensor(each, [16, 16]) for each in arrays), turns, *rest)


def checked(phases=True, sizes=None, **options):
    sizes = sizes or {"TURNS": range(5), "SLOTS": (1, 2)}
    arguments = options.pop("arguments", lambda TURNS, SLOTS: tensors(TURNS, SLOTS, phases))
    return tlx_xdsl.check(ring, 1, sizes=sizes, arguments=arguments, stages=("frontend",), **options)


def test_all_combinations_are_run():
    report = checked(seconds=1)
    assert report
    assert report.runs >= 10
    assert [case.sizes for case in report.cases] == [dict(each) for each in combinations({
        "TURNS": (0, 1, 2, 3, 4), "SLOTS": (1, 2)
    })]  # fmt: skip
    assert str(report).startswith("run at 10 of 10 sizes: TURNS=0..4 SLOTS=1..2\n")


def test_a_finding_says_the_smallest_sizes_that_show_it():
    """The turn is the round with one buffer; with two the second turn waits for the wrong phase."""
    report = checked(phases=False, seconds=1)
    assert not report
    deadlock = next(each for each in report.findings if each.rule == "deadlock")
    assert deadlock.sizes == {"TURNS": 2, "SLOTS": 2}
    assert "--schedule round-robin --seed 0 --size TURNS=2 --size SLOTS=2" in str(report)
    wrong = [case.sizes for case in report.cases if case.findings]
    assert wrong
    assert all(sizes["SLOTS"] == 2 and sizes["TURNS"] >= 2 for sizes in wrong)


def test_small_sizes_are_around_the_rings():
    arguments = dict(zip(("src", "dst", "TURNS", "SLOTS", "PHASES"), tensors(1, 5, True), strict=True))
    assert small_values(module_of(ring.source, arguments, Options())[0]) == (0, 1, 2, 3, 4, 5, 6, 10, 11)
    report = checked(sizes={"TURNS": "small", "SLOTS": (2, 3)}, seconds=0)
    names = [each["TURNS"] for each in (*(case.sizes for case in report.cases), *report.left)]
    assert set(names) == {0, 1, 2, 3, 4, 6, 7}  # of the largest ring


def test_what_there_is_no_time_for_is_said():
    report = checked(seconds=0)
    assert len(report.cases) == 1
    assert len(report.left) == 9
    assert not report, "sizes that were asked for were not run"
    assert report.summary.endswith("nothing found, 9 sizes not run")
    run, left, orders, _ = str(report).splitlines()
    assert run == "run at 1 of 10 sizes: TURNS=0 SLOTS=1"
    assert left.startswith("not run for want of time, --seconds gives more: TURNS=0 SLOTS=2, TURNS=1 SLOTS=1,")
    assert orders.startswith(
        "not all orders were covered, only the first one was run at frontend with TURNS=0 SLOTS=1: "
    )


def test_without_the_sweep_the_first_values_are_run():
    report = checked(phases=False, sizes={"TURNS": (4, *range(4)), "SLOTS": (2, 1)}, sweep=False, seconds=0)
    assert [case.sizes for case in report.cases] == [{"TURNS": 4, "SLOTS": 2}]
    assert not report


def test_sizes_that_the_arguments_refuse_are_left_out():
    def arguments(TURNS, SLOTS):
        array = np.ones((TURNS * 16, 16), np.float32)
        return {name: tlx_xdsl.TensorDescriptor.from_tensor(array, [16, 16]) for name in ("src", "dst")}

    report = checked(arguments=arguments, PHASES=True, seconds=1, global_order=False)
    assert {each.sizes["TURNS"] for each in report.refusals} == {0}
    assert "refused at TURNS=0 SLOTS=1..2: shape[0]: expected 1 to" in str(report)
    assert {case.sizes["TURNS"] for case in report.cases} == {1, 2, 3, 4}
    with pytest.raises(ValueError, match="expected 1 to"):
        checked(arguments=arguments, sizes={"TURNS": 0, "SLOTS": 1}, PHASES=True)


@tlx_xdsl.jit
def fill(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, 1.0)


def test_a_size_that_is_no_multiple_of_the_block_and_the_grid():
    """Parameters with the name of a size have its value, and the grid may ask for it, too."""
    given = {"sizes": {"n": (16, 17, 32), "BLOCK": 16}, "arguments": lambda n, BLOCK: (np.ones(n, np.float32),)}
    report = tlx_xdsl.check(fill, lambda sizes: -(-sizes["n"] // sizes["BLOCK"]), seconds=1, **given)
    (finding,) = report.findings
    assert "store out of bounds" in finding.diagnostic.message
    assert finding.sizes == {"n": 17, "BLOCK": 16}
    assert tlx_xdsl.check(fill, lambda sizes: sizes["n"] // sizes["BLOCK"], seconds=0.2, **given)


def test_smaller_combinations_come_first():
    found = combinations({"M": (9, 0, 1), "K": (64, 32)})
    assert [tuple(each.values()) for each in found] == [(0, 32), (0, 64), (1, 32), (1, 64), (9, 32), (9, 64)]
    assert combinations({}) == [{}]
    assert combinations({"M": (9, 0), "K": (64, 32)}, sweep=False) == [{"M": 9, "K": 64}]
    with pytest.raises(ValueError, match="there are 1,000,000 combinations, at most 100,000"):
        combinations({"M": tuple(range(1000)), "K": tuple(range(1000))})


def test_sizes_in_a_line():
    assert listed(combinations({"M": (0, 1, 2, 5), "K": (64, 32)})) == "M=0..2,5 K=32,64"
    assert listed([{"M": 1, "K": 2}, {"M": 2, "K": 3}]) == "M=1 K=2, M=2 K=3"
    assert listed([{"M": n, "K": n} for n in range(10)]).endswith(", M=7 K=7 and 2 more")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sizes": {"TURNS": "many", "SLOTS": 1}}, "sizes: 'TURNS' must be an integer, several, or 'small', found 'm"),
        ({"sizes": {"TURNS": (), "SLOTS": 1}}, "sizes: 'TURNS' must be an integer"),
        ({"arguments": lambda TURNS: ()}, "arguments: got an unexpected keyword argument 'SLOTS'; it is called with"),
        ({"arguments": lambda TURNS, SLOTS: None}, "arguments must give a tuple or a dictionary, found NoneType"),
        ({"arguments": lambda TURNS, SLOTS: (1, 2)}, "ring: missing a required argument: 'PHASES'"),
    ],
)
def test_what_fits_no_kernel(given, message):
    with pytest.raises(TypeError, match="^" + message):
        checked(seconds=0, **given)


def test_progress_at_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    checked(seconds=1)
    assert "sizes |" in sys.stderr.getvalue()
    assert "of 10 " in sys.stderr.getvalue()
