"""Runs of machine code: every program once, on how many threads ever, faults, scratch memory and printing."""

from __future__ import annotations

import struct
import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tests.unit.cpu.runtime.hand_written import COUNTS, program
from tlx_xdsl.cpu.codegen.metadata import Site
from tlx_xdsl.cpu.runtime import pool as pools
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault

FAILS_AT_77 = """
define i32 @program(ptr %arguments, ptr %scratch, i64 %pid) {
  %is = icmp eq i64 %pid, 77
  %status = select i1 %is, i32 2, i32 0
  ret i32 %status
}
"""

SCRATCH = """
define i32 @program(ptr %arguments, ptr %scratch, i64 %pid) {
  %out = load ptr, ptr %arguments
  %last = getelementptr i8, ptr %scratch, i64 4992
  store i64 %pid, ptr %last, align 64
  %again = load i64, ptr %last, align 64
  %at = getelementptr i64, ptr %out, i64 %pid
  store i64 %again, ptr %at
  ret i32 0
}
"""

PRINTS = """
declare void @printI64(i64)
declare void @printF32(float)
declare void @printNewline()
define i32 @program(ptr %arguments, ptr %scratch, i64 %pid) {
  call void @printI64(i64 %pid)
  call void @printF32(float 0x3FB99999A0000000)
  call void @printNewline()
  ret i32 0
}
"""


@pytest.fixture
def threads():
    """Sets the number of threads within a test."""
    yield pools.set_cpu_threads
    pools.set_cpu_threads(None)


def packed(*arrays: Any) -> bytes:
    return struct.pack(f"<{len(arrays)}Q", *(each.ctypes.data for each in arrays))


def worth_a_thread(made: Any) -> Any:
    """The program, as if each of its programs took a millisecond."""
    made.ns_per_program = 1e6
    return made


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (11, 13, 17)])
def test_every_program_runs_once(threads, number: int, grid: tuple[int, int, int]):
    threads(number)
    made, counts = program(COUNTS, ["ptr"]), np.zeros(grid[0] * grid[1] * grid[2] + 1, np.int64)
    for runs in range(1, 4):
        worth_a_thread(made).run(packed(counts), grid)
        assert (counts[:-1] == runs).all()
    assert counts[-1] == 0


def test_an_empty_grid_runs_nothing():
    program("define i32 @program(ptr %a, ptr %s, i64 %p) {\n  ret i32 1\n}\n").run(b"", (4, 0, 2))


def test_threads_are_woken_where_that_pays(threads):
    threads(4)
    pool = pools.pool()
    wake_up = pool.wake_up_ns()
    assert pool.helpers(100, wake_up) == 0
    assert pool.helpers(100, 1000 * wake_up) == 3
    assert pool.helpers(2, 1000 * wake_up) == 1
    assert pool.helpers(1, 1000 * wake_up) == 0
    threads(1)
    assert pools.pool().helpers(100, 1000 * wake_up) == 0


def test_the_time_of_a_program_is_measured():
    made = program(COUNTS, ["ptr"])
    assert made.ns_per_program == 0
    made.run(packed(np.zeros(64, np.int64)), (64, 1, 1))
    assert 0 < made.ns_per_program < 1e7


@pytest.mark.parametrize("number", [1, 3])
def test_a_failed_site_is_a_fault_at_its_line(threads, tmp_path, number: int):
    threads(number)
    file = tmp_path / "kernel.py"
    file.write_text("def kernel(x):\n    tl.device_assert(x > 0)\n")
    sites = [Site("", 0, 0, "another"), Site(str(file), 2, 5, "assertion failed: x")]
    made = worth_a_thread(program(FAILS_AT_77, sites=sites))
    with pytest.raises(Fault) as caught:
        made.run(b"", (10, 4, 5))
    assert isinstance(caught.value, CompilationError)
    # 77 is 7 + 3 * 10 + 1 * 40.
    assert str(caught.value).splitlines() == [
        f"{file}:2:5: error: assertion failed: x",
        "    " + "    tl.device_assert(x > 0)",
        "    " + "    ^",
        "note: in program (7, 3, 1)",
    ]
    # It may run again.
    made.run(b"", (10, 4, 1))


def test_a_failure_stops_the_others(threads):
    threads(2)
    counts = np.zeros(1 << 20, np.int64)
    body = COUNTS.replace("ret i32 0", "%bad = icmp eq i64 %pid, 3\n  %s = zext i1 %bad to i32\n  ret i32 %s")
    with pytest.raises(Fault):
        worth_a_thread(program(body, ["ptr"], sites=[Site("", 0, 0, "bad")])).run(packed(counts), (len(counts), 1, 1))
    assert counts.sum() < len(counts)


def test_each_thread_has_scratch_memory_of_its_own(threads):
    threads(3)
    made, out = worth_a_thread(program(SCRATCH, ["ptr"], scratch_bytes=5056)), np.zeros(20_000, np.int64)
    made.run(packed(out), (len(out), 1, 1))
    assert (out == np.arange(len(out))).all()


def test_python_threads_launch_at_once(threads):
    threads(2)
    made = program(COUNTS, ["ptr"])
    arrays = [np.zeros(3000, np.int64) for _ in range(16)]

    def launch(array: Any) -> None:
        for _ in range(20):
            made.ns_per_program = 1e5
            made.run(packed(array), (len(array), 1, 1))

    running = [threading.Thread(target=launch, args=(array,)) for array in arrays]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert all((array == 20).all() for array in arrays)


def test_lines_are_printed_whole_and_in_order(threads, capsys):
    threads(4)
    symbols = ["printI64", "printF32", "printNewline"]
    worth_a_thread(program(PRINTS, symbols=symbols)).run(b"", (50, 1, 1))
    assert capsys.readouterr().out == "".join(f"{at}0.1\n" for at in range(50))


def test_a_function_that_no_library_has():
    body = "declare void @no_library_has_this()\ndefine i32 @program(ptr %a, ptr %s, i64 %p) {\n"
    with pytest.raises(CompilationError, match="no_library_has_this"):
        program(body + "  call void @no_library_has_this()\n  ret i32 0\n}\n", symbols=["no_library_has_this"])
