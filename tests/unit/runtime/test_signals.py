"""Exceptions of a signal's handler, during a compile or a run, are no defects of the kernel, nor of ours."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.versions import INSTALLED
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.global_memory import GlobalMemory

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"),
    reason="timers of the main thread",
)

MILLISECONDS = 150


class TooLate(Exception):
    """Raised by handlers."""


def plain(signum: int, frame: Any) -> None:
    raise TooLate


def helped(*_given: Any) -> None:
    plain(*_given)


def uninstalled(_signum: int, _frame: Any) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    raise TooLate


class Limit:
    def __init__(self) -> None:
        self.hits = 0

    def hit(self, signum: int, frame: Any) -> None:
        self.hits += 1
        raise TooLate

    def __call__(self, signum: int, frame: Any) -> None:
        self.hit(signum, frame)


@contextmanager
def limit(handler: Callable[..., None]) -> Iterator[None]:
    """Raise TooLate by a handler within."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, MILLISECONDS / 1000)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@tlx_xdsl.jit
def endless(x, n):
    total = tl.load(x)
    while total < n:
        total = tl.maximum(tl.minimum(total + 1, n - 1), total - 1)
    tl.store(x, total)


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Modules are imported before: Python makes other errors of what is raised in there."""
    endless.interpret((1,), np.full(1, 20, np.int32), 10, stage="ttgir")
    tlx_xdsl.check(endless, 1, np.full(1, 20, np.int32), 10, max_seconds=0.1)


@pytest.mark.parametrize("handler", [plain, helped, uninstalled, Limit().hit, Limit()])
def test_the_interpreter_lets_it_through(handler: Callable[..., None]):
    with pytest.raises(TooLate), limit(handler):
        endless.interpret((1,), np.zeros(1, np.int32), 10, max_seconds=20)


def test_a_check_lets_it_through():
    with pytest.raises(TooLate), limit(plain):
        tlx_xdsl.check(endless, 1, np.zeros(1, np.int32), 10, max_seconds=20)


def test_other_stages_let_it_through():
    with pytest.raises(TooLate), limit(plain):
        endless.interpret((1,), np.zeros(1, np.int32), 10, stage="ttgir", max_seconds=20)


@pytest.mark.backend
@pytest.mark.skipif(INSTALLED is None, reason="needs Triton")
def test_the_ptx_machine_lets_it_through():
    x = np.full(1, 20, np.int32)
    endless.interpret((1,), x, 10, stage="ptx")  # compiled
    with pytest.raises(TooLate), limit(plain):
        endless.interpret((1,), np.zeros(1, np.int32), 10, stage="ptx", max_seconds=20)


@tlx_xdsl.jit
def repeated(x, n):
    total = tl.load(x)
    for i in range(n):
        total = total * 3 + i
    tl.store(x, total)


def test_native_code_lets_it_through():
    """Python runs handlers when the machine code returns."""
    pytest.importorskip("llvmlite")
    x = np.zeros(1, np.int32)
    repeated[(1,)](x, 2)  # compiled
    with pytest.raises(TooLate), limit(plain):
        repeated[(1,)](x, 1 << 30)


@tlx_xdsl.jit
def called(x, f: tl.constexpr):
    tl.store(x, f())


def slow() -> int:
    number = 0
    while True:
        number ^= 1


def slow_with_arrays(*arrays: Any) -> int:
    return slow_with_arrays(np.zeros(2), np.zeros(2)) if not arrays else slow()


@pytest.mark.parametrize("function", [slow, slow_with_arrays])
def test_the_frontend_lets_it_through(function: Callable[..., int]):
    with pytest.raises(TooLate), limit(plain):
        called.interpret((1,), np.zeros(1, np.int32), function)


@tlx_xdsl.jit
def stored(x):
    tl.store(x, tl.load(x) + 1)


def test_our_own_defects_are_reported(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any) -> None:
        raise TooLate("ours")

    monkeypatch.setattr(GlobalMemory, "store", broken)
    with pytest.raises(CompilationError, match="internal error: TooLate: ours") as found:
        stored.interpret((1,), np.zeros(1, np.int32))
    assert "this is a defect of tlx_xdsl" in str(found.value)
