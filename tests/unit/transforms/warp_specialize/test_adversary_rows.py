"""Kernels in which a group of warps would come to places of another one, and others that look alike."""

import pytest
from xdsl.context import Context

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.transforms.rewriting import ops_of

SIGNATURE = {"a": "*fp16:16", "b": "*fp16:16", "c": "*fp32:16", "n": "i32:16", "stride": "i32:16"}


@tlx_xdsl.jit
def through_memory(a, b, c, n, stride, CASE: tl.constexpr):
    rows = tl.arange(0, 128)
    columns = tl.arange(0, 64)
    acc = tl.zeros((128, 64), tl.float32)
    for k in range(0, n, 64):
        x = tl.load(a + rows[:, None] * n + k + columns[None, :])
        y = tl.load(b + (k + columns[:, None]) * 64 + columns[None, :])
        acc = tl.dot(x, y, acc)
        if CASE == "a number for all":
            total = tl.load(c)
            tl.store(c, total + 1.0)
            acc += total
        elif CASE == "two windows":
            tl.store(c + rows[:, None] * stride + columns[None, :], acc)
            tl.store(c + (rows[:, None] + 64) * stride + columns[None, :], acc + 1)
            # Along the columns nothing can be cut.
            acc = acc / tl.sum(acc, 1)[:, None]
        elif CASE == "a moving window":
            tl.store(c + (k + rows[:, None]) * stride + columns[None, :], acc)
            acc = acc / tl.sum(acc, 1)[:, None]
        elif CASE == "a window that moves by all rows":
            tl.store(c + (2 * k + rows[:, None]) * stride + columns[None, :], acc)
            acc = acc / tl.sum(acc, 1)[:, None]
        elif CASE == "tiles":
            place = c + (k // 64 % 3 * 128 + rows[:, None]) * stride + k // 64 // 3 * 64 + columns[None, :]
            tl.store(place, acc + tl.load(place))
            acc = acc / tl.sum(acc, 1)[:, None]
        elif CASE == "rows that share elements":
            place = c + rows % 64
            tl.store(place, tl.load(place) + 1.0)
            acc = acc / tl.sum(acc, 1)[:, None]
        elif CASE == "sums in any order":
            tl.atomic_add(c + rows % 64, tl.sum(acc, 1))
    tl.store(a + rows[:, None] * 64 + columns[None, :], acc.to(tl.float16)) if CASE == "tiles" else None


@pytest.mark.parametrize(
    ("case", "is_split"),
    [
        ("a number for all", False),
        ("two windows", False),
        ("a moving window", False),
        ("a window that moves by all rows", True),
        ("tiles", False),
        ("rows that share elements", False),
        ("sums in any order", True),
    ],
)
def test_the_places_of_groups_are_apart(case, is_split, capsys):
    module = build_module(source_of(through_memory), SIGNATURE, {"CASE": case})
    pass_class("tlx-ws-split-rows")(groups=2).apply(Context(), module)
    (function,) = ops_of(module, FuncOp)
    assert ("tlx.replicas" in function.attributes) is is_split
