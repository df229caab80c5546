"""Masked elements are not touched: arrays end where a page begins that no launch may read."""

# covers: target.cpu

from __future__ import annotations

import ctypes
import mmap
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("llvmlite")
import tlx_xdsl
import tlx_xdsl.language as tl

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="mprotect is of POSIX")


@tlx_xdsl.jit
def scaled_rows(x, factors, out, n):
    at = tl.arange(0, 16)
    factor = tl.load(factors + at, mask=at < n, other=2.0)
    tile = tl.load(x + at[:, None] * 16 + at[None, :])
    tl.store(out + at, tl.sum(tile * factor[:, None], 0))


@tlx_xdsl.jit
def one_for_all(x, factors, out, n):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(factors + at * 0, mask=at < n, other=2.0) + tl.load(x + at))


@tlx_xdsl.jit
def rows_in_a_loop(x, factors, out, n):
    at = tl.arange(0, 16)
    rows = factors + at
    for turn in range(0, 4):
        factor = tl.load(rows, mask=at + turn * 4 < n, other=0.0)
        tl.store(out + at, tl.sum(tl.load(x + at)[None, :] * factor[:, None], 0))
        rows += 4


@tlx_xdsl.jit
def without_mask(x, factors, out, n):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(factors + at) + tl.load(x + at), mask=at < n)


def _launch(name: str, n: int) -> None:
    """Launch a kernel with `n` factors that end where memory ends."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    array = np.frombuffer(memory, np.float32)
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(array.ctypes.data + page), page, 0) == 0
    factors = array[page // 4 - n : page // 4]
    factors[...] = 3
    x, out = np.ones((16, 16), np.float32), np.zeros(16, np.float32)
    globals()[name][(1,)](x, factors, out, n)
    print(out[0], flush=True)


LENGTHS = (0, 1, 12, 16)
RIGHT = {
    "scaled_rows": [3 * n + 2 * (16 - n) for n in LENGTHS],
    "one_for_all": [1 + (3 if n else 2) for n in LENGTHS],
    "rows_in_a_loop": [3 * max(0, n - 12) for n in LENGTHS],
}


def test_what_a_mask_hides_is_not_touched():
    ended = _run(*(f"{name}:{n}" for name in RIGHT for n in LENGTHS))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [float(line) for line in ended.stdout.split()] == [
        number for numbers in RIGHT.values() for number in numbers
    ]


def test_the_page_is_found_without_a_mask():
    ended = _run("without_mask:16", "without_mask:12")
    assert ended.returncode in (-signal.SIGSEGV, -signal.SIGBUS)
    assert ended.stdout.split() == ["4.0"]


def _run(*launches: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, __file__, *launches]
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    for launch in sys.argv[1:]:
        kernel, length = launch.split(":")
        _launch(kernel, int(length))
