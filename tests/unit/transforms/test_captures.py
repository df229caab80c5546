"""Captures of tasks: the smallest set of values, the rest is computed again."""

# covers: tl.compile_time

import re

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.frontend.kernels import compile_source
from tlx_xdsl import CompilationError

KERNEL = """
@tlx_xdsl.jit
def kernel(out, a, b, c, d):
    {before}
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(out, a)
        with tlx.async_task(num_warps=4):
            {inside}
"""


def captured(tmp_path, before: str, inside: str) -> tuple[list[str], str]:
    """The captures of the kernel's task, and the task's text."""
    source = KERNEL.format(before="\n    ".join(before.split("; ")), inside="\n            ".join(inside.split("; ")))
    text = compile_source(tmp_path, source, dict.fromkeys("abcd", "i32") | {"out": "*i32"})
    names = re.search(r"ttg\.warp_specialize\(([^)]*)\)", text)[1]
    return [name for name in names.split(", ") if name], text.split("partition0")[1]


@pytest.mark.parametrize(
    ("before", "inside", "expected"),
    [
        # The result of two unknowns is one value, not two.
        ("x = a + b", "tl.store(out, x)", ["%out", "%x"]),
        # Two results of one unknown: the unknown.
        ("x = a + 1; y = a * 2", "tl.store(out, x); tl.store(out, y)", ["%out", "%a"]),
        # One of the unknowns is needed anyway, but the other is not.
        ("x = a + b", "tl.store(out, x); tl.store(out, a)", ["%out", "%x", "%a"]),
        # Four unknowns meet in two values on their way to three results.
        (
            "x = a + b; y = c + d; p = x + y; q = x - y; r = x * y",
            "tl.store(out, p); tl.store(out, q); tl.store(out, r)",
            ["%out", "%x", "%y"],
        ),
        # What can be computed from nothing is.
        ("x = tl.program_id(0) * 4 + 1; z = tl.zeros((16,), tl.int32)", "tl.store(out + z, x)", ["%out"]),
        # Blocks of scalars, too, however many scalars they need; what these have in common is one.
        ("x = tl.arange(0, 16) + a; y = x * b", "tl.store(out + x, y)", ["%out", "%a", "%b"]),
        ("y = a * b + c; x = tl.arange(0, 16) + y", "tl.store(out + x, x)", ["%out", "%y"]),
        # A flow that must be rerouted: the first path goes through x, which both others need.
        ("x = a + b; y = x + c; z = x + a", "tl.store(out, y); tl.store(out, z)", ["%out", "%y", "%z"]),
        ("x = a + 1; y = x + b; z = x + c", "tl.store(out, y); tl.store(out, z)", ["%out", "%y", "%z"]),
        # Whatever a load gives is known at its place only.
        ("x = tl.load(out) + 1", "tl.store(out, x)", ["%out", "%x"]),
        # A view is made again from its buffers.
        (
            "bars = tlx.alloc_barriers(4); first = bars[0]; last = bars[3]",
            "tlx.barrier_wait(first, 0); tlx.barrier_wait(last, 0)",
            ["%bars"],
        ),
    ],
)
def test_the_fewest_values_are_captured(tmp_path, before, inside, expected):
    names, _ = captured(tmp_path, before, inside)
    assert len(names) == len(expected)
    assert set(names) == set(expected)


def test_a_load_is_not_repeated(tmp_path):
    _, task = captured(tmp_path, "x = tl.load(out); y = x + a; z = x + b", "tl.store(out, y); tl.store(out, x)")
    assert "tt.load" not in task
    assert "arith.addi" not in task


def test_what_is_computed_again_stands_before_its_uses(tmp_path):
    _, task = captured(tmp_path, "x = tl.program_id(0) + 1; y = x * 2; z = x * 3", "tl.store(out, y); tl.store(out, z)")
    assert task.index("arith.addi") < task.index("arith.muli") < task.index("tt.store")
    assert task.count("arith.addi") == 1


def test_a_captured_block_is_refused_with_the_fix(tmp_path):
    with pytest.raises(CompilationError, match="compute it inside, or pass it through shared memory") as error:
        captured(tmp_path, "x = tl.load(out + tl.arange(0, 16)) + a", "tl.store(out + tl.arange(0, 16), x)")
    assert error.value.source_line.strip() == "tl.store(out + tl.arange(0, 16), x)"


def test_buffers_over_the_memory_of_others_are_captured_not_made_again(tmp_path):
    """Made in each task, they would be other buffers, of which one overwrites the other."""
    names, text = captured(
        tmp_path,
        "first = tlx.local_alloc((64,), tl.float32, 1); second = tlx.local_alloc((64,), tl.float32, 1, reuse=first)",
        "tlx.local_store(second[0], tl.zeros((64,), tl.float32))",
    )
    assert names == ["%second"]
    assert "tlx.local_alias" not in text


@tlx_xdsl.jit
def the_block_in_both(out, start, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE) + start
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(out + at, at)
        with tlx.async_task(num_warps=4):
            tl.store(out + SIZE + at, at * 2)


def test_a_block_is_the_same_in_each_task():
    found = np.zeros(131, np.int32)
    tlx_xdsl.interpret(the_block_in_both, 1, found, 3, 64, stage="ttgir")
    at = np.arange(3, 67)
    assert (found[3:] == np.concatenate([at, at * 2])).all()
