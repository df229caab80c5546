"""Compiling in forked processes: order, answers, errors, and processes that die."""

from __future__ import annotations

import os
import signal
import time
import warnings

import pytest

pytest.importorskip("triton")

from triton import knobs
from triton.runtime.driver import driver

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.runtime.jit.jit_kernels import FakeTensor
from tlx_xdsl.errors import CompilationError, OverBudgetError
from tlx_xdsl.runtime.jit import ahead
from tlx_xdsl.runtime.jit.ahead import Answer, compiled_ahead
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target


def numbers(found):
    return sorted(each.number if isinstance(each, Answer) else each for each in found)


def test_each_task_is_answered_once_and_in_other_processes(tmp_path):
    def note(number):
        (tmp_path / str(number)).write_text(str(os.getpid()))

    found = list(compiled_ahead(note, range(7), 2))
    assert numbers(found) == list(range(7))
    assert all(isinstance(each, Answer) and each.error is None for each in found)
    seen = {path.read_text() for path in tmp_path.iterdir()}
    assert len(seen) == 2
    assert str(os.getpid()) not in seen


def test_no_processes_give_the_tasks_back():
    assert list(compiled_ahead(lambda number: 1 / 0, range(3), 0)) == [0, 1, 2]


def test_where_processes_can_not_be_forked_the_tasks_come_back(monkeypatch):
    monkeypatch.setattr(ahead, "can_fork", lambda: False)
    assert list(compiled_ahead(lambda number: 1 / 0, range(3), 2)) == [0, 1, 2]


def test_errors_of_the_kernel_arrive_and_others_as_text():
    def fail(number):
        if number == 0:
            raise OverBudgetError("too much", resource="threads", required=2, limit=1)
        if number == 1:
            raise RuntimeError("no GPU in here")

    over, other = sorted(compiled_ahead(fail, range(2), 1), key=lambda each: each.number)
    assert isinstance(over.error, OverBudgetError)
    assert (over.error.message, over.error.limit) == ("too much", 1)
    assert other == Answer(1, failure="RuntimeError: no GPU in here")


def test_warnings_arrive():
    (found,) = compiled_ahead(lambda number: warnings.warn_explicit("spills", UserWarning, "k.py", 7), [0], 1)
    assert found.warnings == (("spills", UserWarning, "k.py", 7),)


def test_a_process_that_dies_takes_no_task_with_it():
    def die(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    found = list(compiled_ahead(die, range(4), 2))
    assert numbers(found) == [0, 1, 2, 3]
    assert 1 in [each for each in found if isinstance(each, int)]


def test_all_processes_dead_give_the_rest_back():
    found = list(compiled_ahead(lambda number: os.kill(os.getpid(), signal.SIGKILL), range(4), 2))
    assert sorted(found) == [0, 1, 2, 3]


def test_processes_that_say_nothing_are_ended(monkeypatch):
    monkeypatch.setattr(ahead, "SECONDS", 0.3)
    started = time.monotonic()
    assert list(compiled_ahead(lambda number: time.sleep(60), range(3), 2)) == [0, 1, 2]
    assert time.monotonic() - started < 30


def test_closing_ends_the_processes(tmp_path):
    def write(number):
        (tmp_path / str(number)).write_text(str(os.getpid()))
        if number:
            time.sleep(60)

    found = compiled_ahead(write, range(2), 1)
    next(found)
    deadline = time.monotonic() + 20
    while not (tmp_path / "1").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    found.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "1").read_text()), 0)


@pytest.mark.backend
def test_what_another_process_compiles_is_in_the_cache(tmp_path, monkeypatch):
    """No file holds the kernel under a name, and one of its configurations has a fault."""

    @tlx_xdsl.jit
    def local(x, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK != 64)
        tl.store(x + tl.arange(0, BLOCK), 1)

    blocks = (32, 64)

    def compile_one(number):
        from tlx_xdsl.runtime.jit.stand_in_driver import leave_the_gpu

        leave_the_gpu(90)
        local.warmup(FakeTensor(64), BLOCK=blocks[number], grid=(1,))

    with knobs.cache.scope(), assume_target("sm_90a"):
        knobs.cache.dir = str(tmp_path)
        before = driver.active
        found = {each.number: each for each in compiled_ahead(compile_one, range(2), 1)}
        assert driver.active is before
        assert found[0].error is None
        assert isinstance(found[1].error, CompilationError)
        assert found[1].error.location.filename == __file__

        def refuse(*_, **__):
            raise AssertionError("this is compiled again")

        monkeypatch.setattr("tlx_xdsl.runtime.jit.triton_compile._compile", refuse)
        assert local.warmup(FakeTensor(64), BLOCK=32, grid=(1,)).metadata.num_warps == 4
        with pytest.raises(AssertionError, match="compiled again"):
            local.warmup(FakeTensor(64), BLOCK=16, grid=(1,))
