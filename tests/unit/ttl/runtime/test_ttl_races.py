"""Accesses of two threads to one page that nothing orders, and the orders that are known: semaphores and buffers."""

import re
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.interpreter.faults import Race
from tlx_xdsl.interpreter.limits import POLICIES
from tlx_xdsl.tools.tlx import main
from tlx_xdsl.ttl.interpreter.ttkernel.clocks import Clock, Trail
from tlx_xdsl.ttl.interpreter.ttkernel.threads import choices_of, choices_text
from tlx_xdsl.ttl.runtime import Prepared, run
from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

MACHINES = ("ttkernel", "tensors")

KERNEL = """\
import ttl


@ttl.kernel(grid=(2, 1))
def in_turns(a, out):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    done = ttl.Semaphore(0)

    @ttl.datamovement()
    def read():
        with cb.reserve() as block:
            ttl.copy(a[0, ttl.core(dims=1)], block).wait()

    @ttl.datamovement()
    def write():
        core = ttl.core(dims=1)
        if core == 0:
            with cb.wait() as block:
                ttl.copy(block, out[0, 0]).wait()
            done.get_remote((1, 0)).inc(1)
        if core == 1:
            done.wait_ge(1)
            with cb.wait() as block:
                ttl.copy(block, out[0, 0]).wait()

"""


UNORDERED = KERNEL.replace("            done.wait_ge(1)\n", "").replace(
    "            done.get_remote((1, 0)).inc(1)\n", ""
)


def two_rows():
    return np.arange(32 * 64, dtype=np.float32).reshape(32, 64)


def load(tmp_path, text, name):
    path = tmp_path / "kernel.py"
    path.write_text(text)
    return load_ttl_kernel(f"{path}:{name}"), str(path)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_semaphore_orders_the_writes_of_a_page(tmp_path, machine):
    kernel, _ = load(tmp_path, KERNEL, "in_turns")
    a, out = two_rows(), np.full((32, 32), np.nan, np.float32)
    prepared = Prepared(kernel, [a, out], machine)
    for schedule in POLICIES:
        prepared.run([a, out], schedule=schedule, seed=1)
        np.testing.assert_array_equal(out, a[:, 32:])


@pytest.mark.parametrize("machine", MACHINES)
def test_without_it_they_race(tmp_path, machine):
    """Whoever comes first in a schedule: it is said at the line of one, with that of the other."""
    kernel, _ = load(tmp_path, UNORDERED, "in_turns")
    arrays = [two_rows(), np.zeros((32, 32), np.float32)]
    prepared = Prepared(kernel, arrays, machine)
    said: set[str] = set()
    for schedule in POLICIES:
        with pytest.raises(Race) as caught:
            prepared.run(arrays, schedule=schedule, seed=1)
        error = caught.value
        assert "writes page 0 of tensor 'out' (tile row 0, column 0), which thread 'write' of core (" in error.message
        assert error.location is not None
        lines = {error.location.line, int(re.findall(r"kernel.py:(\d+):", error.notes[0])[0])}
        assert lines == {number for number, line in enumerate(UNORDERED.split("\n"), 1) if "out[0, 0]" in line}
        assert "increment a semaphore" in error.notes[1]
        said |= {error.message, error.notes[1]}
    page = (Path(__file__).parents[4] / "docs" / "ttl.md").read_text(encoding="utf-8")
    assert len([each for each in said if each in page]) == 2, "the page shows one of the two, and the advice"


@pytest.mark.parametrize("machine", MACHINES)
def test_a_signal_of_a_thread_that_knows_nothing_of_the_write(tmp_path, machine):
    signal = "            done.get_remote((1, 0)).inc(1)\n"
    read = "            ttl.copy(a[0, ttl.core(dims=1)], block).wait()\n"
    moved = KERNEL.replace(signal, "").replace(read, f"{read}        if ttl.core(dims=1) == 0:\n{signal}")
    kernel, _ = load(tmp_path, moved, "in_turns")
    with pytest.raises(Race, match="and nothing orders them"):
        run(kernel, two_rows(), np.zeros((32, 32), np.float32), machine=machine)


def test_the_warning_about_reads_is_about_one_thread(tmp_path):
    """Two cores read the first row of a tensor once each: that the second row is not used is no warning."""

    @ttl.kernel(grid=(2, 1))
    def first_row(a, out):
        cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

        @ttl.datamovement()
        def read():
            with cb.reserve() as block:
                ttl.copy(a[0, 0], block).wait()

        @ttl.datamovement()
        def write():
            with cb.wait() as block:
                ttl.copy(block, out[0, ttl.core(dims=1)]).wait()

    arrays = np.ones((64, 32), np.float32), np.zeros((32, 64), np.float32)
    report = Prepared(first_row, arrays).run(arrays)
    assert report is not None
    assert report.warnings == ()


def test_check_says_where_and_how_to_repeat_it(tmp_path, capsys):
    _, path = load(tmp_path, UNORDERED, "in_turns")
    arguments = [f"{path}:in_turns", "--arg", "a=randn[32,64]", "--arg", "out=nan[32,32]"]
    assert main(["ttl", "check", *arguments]) == 1
    said = capsys.readouterr().err
    assert "kernel.py:24:" in said or "kernel.py:19:" in said
    found = re.search(r"found with (--schedule \S+ --seed \d+): ", said)
    assert found is not None
    assert main(["ttl", "run", *arguments, *found[1].split()]) == 1
    assert "error: race: " in capsys.readouterr().err


def test_choices_are_a_word():
    choices = (0, 0, 0, 1, -1, -1, 2)
    assert choices_text(choices) == "0*3,1,-1*2,2"
    assert choices_of(choices_text(choices)) == choices
    assert choices_of("fair") is None


# Clocks --------------------------------------------------------------------------------------------------------------


def test_knowledge_is_handed_on():
    one, two, three = Clock(0), Clock(1), Clock(2)
    first = one.release()
    two.acquire(first)
    three.acquire(two.release())
    assert three.known == {0: 1, 1: 1}
    later = one.now
    assert later.epoch == 2
    assert two.known == {0: 1}, "what a thread does after it has given something on is its own"


def test_a_trail_gives_the_first_moment():
    clock, trail = Clock(0), Trail()
    for count in (2, 4, 8):
        trail.add(count, clock.release())
    assert [trail.reached(count).epoch for count in (0, 1, 2, 3, 5, 8)] == [0, 1, 1, 2, 3, 3]
