"""Programs on several processes: the same results, the same reports, and no hang when one dies."""

import contextlib
import copyreg
import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.gallery.synchronisation.example_runs import gemm
from tlx_xdsl.interpreter import workers
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.workers import PROBE
from tlx_xdsl.numerics import blas
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module

pytestmark = pytest.mark.skipif(not workers.can_fork(), reason="processes can't be forked here")

PROGRAMS = 40


@tlx_xdsl.jit
def squares(out):
    pid = tl.program_id(0)
    tl.store(out + pid, pid * pid)


@pytest.mark.parametrize("jobs", [2, 3])
def test_every_program_runs_once(jobs):
    out = np.zeros(PROGRAMS, np.int32)
    result = squares.interpret(PROGRAMS, out, jobs=jobs)
    alone = squares.interpret(PROGRAMS, np.zeros_like(out), jobs=1)
    assert (out == np.arange(PROGRAMS) ** 2).all()
    assert (result.jobs, result.clusters, result.turns) == (jobs, PROGRAMS, alone.turns)


def test_there_are_no_more_processes_than_programs():
    assert squares.interpret(PROBE + 2, np.zeros(PROBE + 2, np.int32), jobs=8).jobs == 2
    assert squares.interpret(PROBE, np.zeros(PROBE, np.int32), jobs=8).jobs == 1
    assert squares.interpret(0, np.zeros(2, np.int32), jobs=8).clusters == 0


def test_where_nothing_can_fork_one_process_does_it_all(monkeypatch):
    monkeypatch.setattr(workers, "can_fork", lambda: False)
    out = np.zeros(PROGRAMS, np.int32)
    assert squares.interpret(PROGRAMS, out, jobs=4).jobs == 1
    assert (out == np.arange(PROGRAMS) ** 2).all()


@pytest.mark.parametrize("schedule", ["round-robin", "adversarial"])
def test_a_gemm_is_the_same_bit_for_bit(schedule):
    outputs = []
    for jobs in (1, 2):
        case = gemm("hopper_gemm_ws.py", 400, 600, 128)
        case.run(schedule=schedule, seed=3, jobs=jobs)
        outputs.append(case.arguments[2].base)
    assert outputs[0].tobytes() == outputs[1].tobytes()


@tlx_xdsl.jit
def count(total, COUNT: tl.constexpr):
    for _ in range(COUNT):
        tl.atomic_add(total, 1)


def test_atomics_are_atomic_across_processes():
    total = np.zeros(1, np.int32)
    count.interpret(PROGRAMS, total, COUNT=200, jobs=4)
    assert total[0] == PROGRAMS * 200


@tlx_xdsl.jit
def fails_late(out):
    pid = tl.program_id(0)
    # The lowest program that is wrong takes longest to get there.
    for at in range((40 - pid) * 20):
        tl.store(out + pid, at)
    tl.store(out + pid + 1000 * (pid >= 5), 1)


def test_the_fault_of_the_lowest_program_is_reported():
    reports = []
    for jobs in (1, 4):
        with pytest.raises(Fault) as caught:
            fails_late.interpret(PROGRAMS, np.zeros(PROGRAMS, np.int32), jobs=jobs)
        reports.append(str(caught.value))
    assert reports[0] == reports[1]
    assert "program (5, 0, 0)" in reports[0]


def test_a_fault_comes_back_where_exceptions_are_pickled_with_their_tracebacks(monkeypatch):
    """A traceback of many frames is nested too deeply for pickle as tblib has it, which dask.distributed installs."""

    def reduced(error):
        assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)
        return error.__reduce__()

    monkeypatch.setitem(copyreg.dispatch_table, Fault, reduced)
    with pytest.raises(Fault, match="out of bounds") as caught:
        fails_late.interpret(PROGRAMS, np.zeros(PROGRAMS, np.int32), jobs=2)
    assert "program (5, 0, 0)" in str(caught.value)


def test_what_was_written_before_a_fault_is_there():
    out = np.zeros(PROGRAMS, np.int32)
    with pytest.raises(Fault):
        fails_late.interpret(PROGRAMS, out, jobs=2)
    assert (out[:5] == 1).all()


@tlx_xdsl.jit
def talkative(out):
    pid = tl.program_id(0)
    barrier = tlx.alloc_barriers(1, arrive_count=2)
    tlx.barrier_arrive(barrier[0])
    tl.device_print("pid", pid)
    tl.store(out + pid, 1)


def test_prints_and_warnings_come_in_order(capsys):
    said = []
    for jobs in (1, 3):
        result = talkative.interpret(PROGRAMS, np.zeros(PROGRAMS, np.int32), jobs=jobs)
        said.append((capsys.readouterr().out, result.warnings))
    assert said[0] == said[1]
    assert len(said[0][0].splitlines()) == PROGRAMS
    assert len(said[0][1]) == 1


def test_a_process_that_dies_is_an_error(monkeypatch):
    inside = os.getpid()

    def run_clusters(launch, firsts, settings, observer=None, idle=None):
        if os.getpid() != inside and firsts[0][0] > 10:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from [1] * len(firsts)

    monkeypatch.setattr(workers, "run_clusters", run_clusters)
    began = time.monotonic()
    with pytest.raises(
        tlx_xdsl.CompilationError, match=r"ended by signal 9 while it ran the programs from \(1\d, 0, 0\)"
    ):
        squares.interpret(PROGRAMS, np.zeros(PROGRAMS, np.int32), jobs=2)
    assert time.monotonic() - began < 20


@tlx_xdsl.jit
def long(out, n):
    for i in range(n):
        tl.atomic_add(out, i)


def test_processes_end_with_a_parent_that_is_killed():
    """Each process inherits the connections of those before it."""

    def parent(link):
        os.setsid()
        link.send(os.getpid())
        long.interpret(4, np.zeros(1, np.int32), n=1 << 30, jobs=2)

    def group(leader: int) -> list[Path]:
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, number = stat.read_text().rpartition(")")[2].split()[:3]
                found += [stat.parent] if int(number) == leader and state != "Z" else []
        return found

    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=parent, args=(there,))
    process.start()
    leader = here.recv()
    deadline = time.monotonic() + 30
    try:
        while len(group(leader)) < 3:
            assert time.monotonic() < deadline, "the processes have not started"
            time.sleep(0.02)
        process.kill()
        process.join()
        while group(leader):
            assert time.monotonic() < deadline, "a process still runs"
            time.sleep(0.02)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)


def test_a_defect_in_a_process_is_reported_as_one(monkeypatch):
    inside = os.getpid()

    def run_clusters(launch, firsts, settings, observer=None, idle=None):
        if os.getpid() != inside:
            raise KeyError("oh")
        yield from [1] * len(firsts)

    monkeypatch.setattr(workers, "run_clusters", run_clusters)
    with pytest.raises(tlx_xdsl.CompilationError, match="internal error: KeyError: 'oh'"):
        squares.interpret(PROGRAMS, np.zeros(PROGRAMS, np.int32), jobs=2)


def no_time():
    pass


def work():
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass


def wait():
    """Act as a thread that is ready, but has no processor."""
    time.sleep(0.05)


@pytest.mark.parametrize(("each", "jobs"), [(no_time, 1), (work, 2), (wait, 1)])
def test_more_processes_run_where_there_is_work_for_them(monkeypatch, each, jobs):
    def run_clusters(launch, firsts, settings, observer=None, idle=None):
        for _ in firsts:
            each()
            yield 1

    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(workers, "run_clusters", run_clusters)
    result = squares.interpret(16, np.zeros(16, np.int32))
    assert (result.jobs, result.turns) == (jobs, 16)


def test_programs_that_talk_run_in_order():
    def module(kernel, **constexprs):
        return frontend_module(
            kernel.source, Specialization({next(iter(kernel.source.parameters)).name: "*i32"}, constexprs)
        )

    assert workers.talks(module(count, COUNT=1))
    assert not workers.needs_one_process(module(count, COUNT=1))
    assert not workers.talks(module(squares))
    assert workers.needs_one_process(module(polls))


@tlx_xdsl.jit
def polls(flags):
    pid = tl.program_id(0)
    if pid == 0:
        tl.atomic_poll(flags + 1, 1)
    tl.atomic_xchg(flags + pid, 1)


def test_programs_that_need_each_other_stay_in_one_process():
    flags = np.zeros(PROGRAMS, np.int32)
    assert polls.interpret(PROGRAMS, flags, jobs=4).jobs == 1
    assert flags.all()


def test_blas_has_one_thread_while_kernels_run():
    controls = blas._controls()
    if not controls:
        pytest.skip("numpy's BLAS is not known here")
    getter, setter = controls[0]
    before = getter()
    try:
        setter(2)
        with blas.one_thread():
            assert getter() == 1
        assert getter() == 2
    finally:
        setter(before)
