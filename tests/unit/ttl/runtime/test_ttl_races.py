"""Accesses of two threads to one page that nothing orders, and the orders that are known: semaphores, buffers, pipes."""

import re

import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.interpreter.faults import Race
from tlx_xdsl.tools.tlx import main
from tlx_xdsl.ttl.interpreter.ttkernel.races import Clock, Trail
from tlx_xdsl.ttl.interpreter.ttkernel.threads import choices_of, choices_text
from tlx_xdsl.ttl.runtime import Prepared, run

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


@ttl.kernel(grid=(2, 1))
def unused(a, out):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

    @ttl.datamovement()
    def read():
        with cb.reserve() as block:
            ttl.copy(a[0, 0], block).wait()

    @ttl.compute()
    def compute():
        with cb.wait() as block:
            pass

    @ttl.datamovement()
    def write():
        pass
"""


def two_rows(number=2):
    return np.arange(32 * 32 * number, dtype=np.float32).reshape(32, 32 * number)


def load(tmp_path, text, name):
    from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

    path = tmp_path / "kernel.py"
    path.write_text(text)
    return load_ttl_kernel(f"{path}:{name}"), str(path)


@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_semaphore_orders_the_writes_of_a_page(tmp_path, machine, schedule):
    kernel, _ = load(tmp_path, KERNEL, "in_turns")
    a, out = two_rows(), np.full((32, 32), np.nan, np.float32)
    run(kernel, a, out, machine=machine, schedule=schedule, seed=1)
    np.testing.assert_array_equal(out, a[:, 32:])


@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
@pytest.mark.parametrize("machine", MACHINES)
def test_without_it_they_race(tmp_path, machine, schedule):
    """Whoever comes first in this schedule: it is said at the line of one, with that of the other."""
    text = KERNEL.replace("            done.wait_ge(1)\n", "").replace("            done.get_remote((1, 0)).inc(1)\n", "")
    kernel, path = load(tmp_path, text, "in_turns")
    with pytest.raises(Race) as caught:
        run(kernel, two_rows(), np.zeros((32, 32), np.float32), machine=machine, schedule=schedule, seed=1)
    error = caught.value
    assert "writes page 0 of tensor 'out' (tile row 0, column 0), which thread 'write' of core (" in error.message
    assert error.location is not None
    lines = {error.location.line, int(re.findall(r"kernel.py:(\d+):", error.notes[0])[0])}
    writes = [number for number, line in enumerate(text.split("\n"), 1) if "out[0, 0]" in line]
    assert lines == set(writes)
    assert "increment a semaphore" in error.notes[1]


@pytest.mark.parametrize("machine", MACHINES)
def test_an_increment_before_the_barrier_orders_nothing(tmp_path, machine):
    """The increment is a signal that comes before the write has landed: the compiler waits for the write before it.

    Where it is done by another thread, which knows nothing of the write, it does not.
    """
    moved = "            done.get_remote((1, 0)).inc(1)\n"
    text = KERNEL.replace(moved, "").replace(
        "            ttl.copy(a[0, ttl.core(dims=1)], block).wait()\n",
        "            ttl.copy(a[0, ttl.core(dims=1)], block).wait()\n"
        "        if ttl.core(dims=1) == 0:\n    " + moved.lstrip(" ").rjust(len(moved) - 4),
    )
    kernel, _ = load(tmp_path, text, "in_turns")
    with pytest.raises(Race, match="and nothing orders them"):
        run(kernel, two_rows(), np.zeros((32, 32), np.float32), machine=machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_racy_read_whose_value_nobody_uses(machine):
    @ttl.kernel(grid=(2, 1))
    def unused(a, out):
        cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

        @ttl.datamovement()
        def read():
            with cb.reserve() as block:
                ttl.copy(a[0, ttl.core(dims=1)], block).wait()

        @ttl.datamovement()
        def write():
            with cb.wait() as block:
                if ttl.core(dims=1) == 0:
                    ttl.copy(block, a[0, 1]).wait()
                else:
                    ttl.copy(block, out[0, 0]).wait()

    same = np.ones((32, 64), np.float32)
    with pytest.raises(Race, match=r"page 1 of tensor 'a' \(tile row 0, column 1\)"):
        run(unused, same, np.zeros((32, 32), np.float32), machine=machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_later_increment_is_not_waited_for(machine):
    """`wait_ge(1)` goes on after one of two increments: only what came before that one is ordered, whichever it is."""

    @ttl.kernel(grid=(3, 1))
    def gather(a, out):
        cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
        done = ttl.Semaphore(0)

        @ttl.datamovement()
        def read():
            with cb.reserve() as block:
                ttl.copy(a[0, 0], block).wait()

        @ttl.datamovement()
        def write():
            core = ttl.core(dims=1)
            if core == 2:
                done.wait_ge(1)
                with cb.wait() as block:
                    ttl.copy(block, out[0, 0]).wait()
                    ttl.copy(block, out[0, 1]).wait()
                done.wait_ge(2)
            else:
                with cb.wait() as block:
                    ttl.copy(block, out[0, core]).wait()
                done.get_remote((2, 0)).inc(1)

    for seed in range(4):
        with pytest.raises(Race):
            run(gather, two_rows(1), np.zeros((32, 64), np.float32), machine=machine, schedule="random", seed=seed)


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
    text = KERNEL.replace("            done.wait_ge(1)\n", "").replace("            done.get_remote((1, 0)).inc(1)\n", "")
    _, path = load(tmp_path, text, "in_turns")
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
