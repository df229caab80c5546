"""The pool of threads: jobs, their ends, and its settings."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import tlx_xdsl
from tlx_xdsl.cpu.runtime import pool as pools
from tlx_xdsl.cpu.runtime.pool import Job, Pool


@pytest.fixture
def pool():
    made = Pool(3)
    yield made
    made.stop()


def test_a_job_ends_when_all_that_began_have_ended(pool: Pool):
    began, done = threading.Event(), []

    def work() -> None:
        began.set()
        time.sleep(0.02)
        done.append(1)

    job = Job(work)
    pool.submit(job, 1)
    assert began.wait(5)
    job.close()
    assert done == [1]


def test_who_comes_late_does_nothing():
    done: list[int] = []
    job = Job(lambda: done.append(1))
    job.close()
    job.help()
    assert done == []


def test_what_a_helper_raises_is_kept(pool: Pool):
    job = Job(lambda: 1 / 0)
    job.help()
    job.close()
    assert isinstance(job.error, ZeroDivisionError)


def test_threads_end_when_the_pool_is_stopped():
    # Those of other tests may be about to end.
    made, before = Pool(4), set(threading.enumerate())
    made.submit(Job(lambda: None), 1)
    started = set(threading.enumerate()) - before
    assert len(started) == 3
    made.stop()
    for each in started:
        each.join(timeout=10)
        assert not each.is_alive()


def test_the_number_of_threads_is_set_and_asked(monkeypatch):
    tlx_xdsl.set_cpu_threads(5)
    assert tlx_xdsl.cpu_threads() == 5
    monkeypatch.setenv("TLX_CPU_THREADS", "3")
    tlx_xdsl.set_cpu_threads(None)
    assert tlx_xdsl.cpu_threads() == 3
    monkeypatch.delenv("TLX_CPU_THREADS")
    tlx_xdsl.set_cpu_threads(None)
    assert tlx_xdsl.cpu_threads() >= 1


@pytest.mark.parametrize("number", [0, -1, True, 2.0])
def test_a_number_that_is_none(number):
    with pytest.raises(ValueError, match="set_cpu_threads: expected a number of threads from 1"):
        tlx_xdsl.set_cpu_threads(number)


def test_a_variable_that_is_no_number(monkeypatch):
    monkeypatch.setenv("TLX_CPU_THREADS", "many")
    with pytest.raises(ValueError, match="TLX_CPU_THREADS: expected a number of threads from 1, found 'many'"):
        tlx_xdsl.set_cpu_threads(None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_threads_of_its_own():
    script = """
        import os, threading
        from tlx_xdsl.cpu.runtime import pool
        from tlx_xdsl.cpu.runtime.pool import Job
        pool.set_cpu_threads(2)
        pool.pool().submit(Job(lambda: None), 1)
        # As if another thread were in the midst of it.
        pool._State.lock.acquire()
        child = os.fork()
        if child == 0:
            seen = threading.Event()
            pool.pool().submit(Job(seen.set), 1)
            os._exit(0 if seen.wait(10) and pool.cpu_threads() == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=60)


def test_a_process_ends_while_threads_wait():
    script = "from tlx_xdsl.cpu.runtime.pool import Job, Pool; Pool(8).submit(Job(lambda: None), 7)"
    done = subprocess.run([sys.executable, "-c", script], check=True, timeout=60, capture_output=True, text=True)
    assert done.stderr == ""


def test_the_pool_of_the_process_is_one():
    assert pools.pool() is pools.pool()
