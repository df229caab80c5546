"""Warp-specialised tasks: captures, replicas and what is refused."""

# covers: ttg.warp_specialize

import re

import pytest

from tests.unit.frontend.kernels import compile_source
from tlx_xdsl import CompilationError

pytestmark = pytest.mark.quick

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
    at = tl.arange(0, 128)
    block = tl.load(out + at) + n
    with tlx.async_tasks():
        with tlx.async_task("default"):
            pass
        with tlx.async_task(num_warps=4):
            tl.store(out + at, block)
"""
    with pytest.raises(CompilationError, match="a task can't use the block 'block'") as error:
        compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})
    assert error.value.location.line == 14


def tasks(*headers: str) -> str:
    """A kernel with a task for each header."""
    lines = [f"        with tlx.async_task({header}):\n            tl.store(out, n)\n" for header in headers]
    return "@tlx_xdsl.jit\ndef kernel(out, n):\n    with tlx.async_tasks():\n" + "".join(lines)


def test_a_task_s_functions_know_its_warps_and_copy(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    with tlx.async_tasks():
        with tlx.async_task("default", replicate=2):
            tl.store(out, tlx.async_task_replica_id() + 10 * tl.extra.cuda.num_warps())
        with tlx.async_task(num_warps=2, replicate=2):
            tl.store(out, tlx.async_task_replica_id() + 10 * tl.extra.cuda.num_warps())
"""
    text = compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})
    assert re.findall(r"tt\.store %\w+, %c(\d+)", text) == ["40", "41", "20", "21"]
    assert re.findall(r"num_warps\((\d)\)", text) == ["4", "2", "2"]


@pytest.mark.parametrize(
    ("headers", "line", "message"),
    [
        (("[0, 1]",), 8, 'a list of task ids is not taken any more: write "default"'),
        (('"consumer"',), 8, 'the only task that has a name is "default"'),
        (('"default", num_warps=4',), 8, "runs on the kernel's own num_warps"),
        (('"default", num_regs=24, registers=24',), 8, "mean the same: give one of them"),
        (('"default"', "num_warps=4, registers=264"), 10, "a multiple of 8 of at most 256, found 264"),
        (('"default"', "num_warps=4, registers=24", "num_warps=4"), 12, "state their registers, or none does"),
        (
            ('"default"', "num_warps=4, warp_group_start_id=4", "num_warps=4"),
            12,
            "state their warp_group_start_id, or none does",
        ),
        (
            ('"default"', "num_warps=4, warp_group_start_id=2"),
            10,
            "warps 2 to 5 overlap warps 0 to 3 of the default task",
        ),
        (
            ('"default"', "num_warps=2, replicate=2, warp_group_start_id=4", "num_warps=4, warp_group_start_id=6"),
            12,
            "warps 6 to 9 overlap warps 4 to 7 of the task on line 10",
        ),
        (('"default", replicate=2', "num_warps=4, registers=24"), 8, "the copies of the default task need registers"),
        (
            ('"default", replicate=2', "num_warps=4, warp_group_start_id=4"),
            8,
            "leave no warps to copies of the default",
        ),
        (('"default"', '"default"'), 7, "needs exactly one task"),
    ],
)
def test_options_that_contradict_are_refused(tmp_path, headers, line, message):
    with pytest.raises(CompilationError, match=re.escape(message)) as error:
        compile_source(tmp_path, tasks(*headers), {"out": "*i32", "n": "i32"})
    assert error.value.location.line == line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("exclusive=n", "'exclusive' must be a constexpr bool"),
        ("warp_specialize=False", "tasks always run on warps of their own"),
        ("mbarrier_try_wait_suspend_ns=-1", "must be a constexpr integer of at least 0"),
    ],
)
def test_options_of_all_tasks_are_constexprs(tmp_path, options, message):
    source = tasks('"default"').replace("async_tasks()", f"async_tasks({options})")
    with pytest.raises(CompilationError, match=re.escape(message)):
        compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})


def test_one_statement_may_open_the_tasks_and_the_only_one(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    with tlx.async_tasks(), tlx.async_task("default", replicate=2):
        tl.store(out, n)
"""
    assert compile_source(tmp_path, source, {"out": "*i32", "n": "i32"}).count("tt.store") == 2


def test_tasks_do_not_nest(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            with tlx.async_tasks():
                with tlx.async_task("default"):
                    pass
"""
    with pytest.raises(CompilationError, match="tasks can't be split into tasks"):
        compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})


def test_what_changes_nothing_may_be_said(tmp_path):
    said = tasks('"default", warp_group_start_id=0', "num_warps=4, warp_group_start_id=4")
    said = said.replace("async_tasks()", "async_tasks(warp_specialize=True)")
    unsaid = tasks('"default"', "num_warps=4, warp_group_start_id=4")
    signature = {"out": "*i32", "n": "i32"}
    texts = [compile_source(tmp_path, source, signature) for source in (said, unsaid)]
    assert [re.sub(r"loc\(.*", "", text) for text in texts[:1]] == [re.sub(r"loc\(.*", "", text) for text in texts[1:]]
