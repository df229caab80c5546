"""Warp-specialised tasks: captures, replicas and what is refused."""

import re

import pytest

from tests.unit.frontend.kernels import compile_source
from tlx_xdsl import CompilationError

TASKS = """
@tlx_xdsl.jit
def kernel(out, n):
    limit = n * 2
    unused = n * 3
    bars = tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_arrive(bars[0])
        with tlx.async_task(num_warps=4, replicate=2, registers=232):
            which = tlx.async_task_replica_id()
            tlx.barrier_wait(bars[which], 0)
            tl.store(out + which, limit)
        with tlx.async_task(num_warps=1, registers=24):
            tlx.barrier_arrive(bars[1])
"""


def test_partitions_capture_what_they_use_and_nothing_else(tmp_path):
    text = compile_source(tmp_path, TASKS, {"out": "*i32", "n": "i32"})
    captures = re.search(r"ttg\.warp_specialize\(([^)]*)\)", text)[1]
    assert captures == "%bars, %out, %limit"
    assert "requestedRegisters = array<i32: 232, 232, 24>" in text
    assert [int(n) for n in re.findall(r"num_warps\((\d+)\)", text)] == [4, 4, 1]


def test_constants_are_made_again_inside(tmp_path):
    text = compile_source(tmp_path, TASKS, {"out": "*i32", "n": "i32"})
    partition = text.split("partition1")[1].split("partition2")[0]
    assert "arith.constant 1 : i32" in partition


def test_a_lone_default_task_is_inlined(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(out, n)
"""
    text = compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})
    assert "warp_specialize" not in text
    assert "tt.store" in text


def test_tasks_may_be_chosen_by_a_constexpr(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n, HELP: tl.constexpr):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(out, n)
        if HELP:
            with tlx.async_task(num_warps=2):
                tl.store(out + 1, n)
"""
    signature = {"out": "*i32", "n": "i32"}
    assert "num_warps(2)" in compile_source(tmp_path, source, signature, HELP=True)
    assert "warp_specialize" not in compile_source(tmp_path, source, signature, HELP=False)


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("with tlx.async_task(num_warps=4):\n            pass", 8, "needs exactly one task"),
        (
            'with tlx.async_task("default"):\n            pass\n'
            "        with tlx.async_task(num_warps=3):\n            pass",
            10,
            "'num_warps' must be a power of two, found 3",
        ),
        (
            'with tlx.async_task("default"):\n            pass\n        with tlx.async_task():\n            pass',
            10,
            "needs num_warps",
        ),
        (
            'with tlx.async_task("default"):\n            pass\n'
            "        with tlx.async_task(num_warps=4, registers=100):\n            pass",
            10,
            "must be a multiple of 8",
        ),
        ("n = n + 1", 8, "may hold `with tlx.async_task(...):` only"),
    ],
)
def test_wrong_tasks_are_located_errors(tmp_path, body, line, message):
    source = f"""
@tlx_xdsl.jit
def kernel(out, n):
    with tlx.async_tasks():
        {body}
"""
    with pytest.raises(CompilationError, match=re.escape(message)) as error:
        compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})
    assert abs(error.value.location.line - line) <= 1
    assert error.value.source_line is not None


def test_a_block_can_not_be_captured(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    block = tl.arange(0, 128) + n
    with tlx.async_tasks():
        with tlx.async_task("default"):
            pass
        with tlx.async_task(num_warps=4):
            tl.store(out + block, block)
"""
    with pytest.raises(CompilationError, match="a task can't use the block 'block'") as error:
        compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})
    assert error.value.location.line == 13
