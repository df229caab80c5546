"""Steps of values on their way to each array: roundings, decisions about computed numbers, orders of programs."""

from __future__ import annotations

from pathlib import Path

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.analysis.roundings import DECIDED, UNORDERED, ways
from tlx_xdsl.frontend.compile import build_module

# Kernels are read by the frontend, not run by Python.
# pyright: basic
pytestmark = pytest.mark.quick


@tlx_xdsl.jit
def kernel(x, h, out, other, counts, n, CASE: tl.constexpr):  # noqa: C901
    at = tl.arange(0, 32)
    block = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    if CASE == "copy":
        tl.store(out + at, tl.load(x + at))
    elif CASE == "sum of halves":
        # Halves are exact in fp32.
        tl.store(out + at, tl.load(h + at).to(tl.float32) + tl.load(x + at))
    elif CASE == "rounded on the way":
        tl.store(out + at, (tl.load(x + at) * 3).to(tl.float16).to(tl.float32) * 2)
        tl.store(other + at, tl.load(x + at) * 3)
    elif CASE == "rounded in memory":
        tl.store(h + at, tl.load(x + at) * 3)
        tl.debug_barrier()
        tl.store(out + at, tl.load(h + at))
    elif CASE == "in a buffer":
        buffer = tlx.local_alloc((32,), tl.bfloat16, 1)[0]
        tlx.local_store(buffer, (tl.load(x + at) + 1).to(tl.bfloat16))
        tl.store(out + at, tlx.local_load(buffer).to(tl.float32))
    elif CASE == "carried by a loop":
        total, exact = tl.zeros((32,), tl.float16), tl.zeros((32,), tl.float32)
        for _ in range(n):
            total += tl.load(h + at)
            exact += tl.load(x + at)
        tl.store(out + at, total.to(tl.float32))
        tl.store(other + at, exact)
    elif CASE == "tf32":
        a = tl.load(x + block)
        tl.store(out + block, tl.dot(a, a, input_precision="tf32"))
        tl.store(other + block, tl.dot(a, a, input_precision="ieee"))
    elif CASE == "decided":
        v = tl.load(x + at)
        tl.store(out + at, tl.where(v * v > 1, 1.0, 0.0))
        tl.store(other + at, tl.where(v > 1, 1.0, 0.0))
        tl.store(counts + at, tl.floor(v * 3).to(tl.int32))
    elif CASE == "ticket":
        tl.store(counts + 1 + tl.program_id(0), tl.atomic_add(counts, 1))
        tl.store(out + at, tl.load(x + at))
    elif CASE == "counted":
        tl.atomic_add(counts + at, 1)
    elif CASE == "summed":
        tl.atomic_add(h + at, tl.load(h + at))
    elif CASE == "in any order":
        tl.store(out + tl.arange(0, 1024), tl.reshape(tl.load(x + block), 1024, can_reorder=True))


TYPES = {"x": "*fp32", "h": "*fp16", "out": "*fp32", "other": "*fp32", "counts": "*i32", "n": "i32"}
POINTERS = ("x", "h", "out", "other", "counts")


def marks(case):
    found = ways(build_module(kernel.source, TYPES, {"CASE": case}))
    return {name: set(found[number].marks) for number, name in enumerate(POINTERS) if found[number].writers}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("copy", {"out": set()}),
        ("sum of halves", {"out": {"f32"}}),
        ("rounded on the way", {"out": {"f32", "f16"}, "other": {"f32"}}),
        ("rounded in memory", {"h": {"f32", "f16"}, "out": {"f32", "f16"}}),
        ("in a buffer", {"out": {"f32", "bf16"}}),
        ("carried by a loop", {"out": {"f16"}, "other": {"f32"}}),
        ("tf32", {"out": {"f32", "tf32"}, "other": {"f32"}}),
        ("decided", {"out": {"f32", DECIDED}, "other": set(), "counts": {"f32", DECIDED}}),
        ("ticket", {"out": set(), "counts": {UNORDERED}}),
        ("counted", {"counts": set()}),
        ("summed", {"h": {"f16"}}),
        ("in any order", {"out": {UNORDERED}}),
    ],
)
def test_what_values_pass(case, expected):
    assert marks(case) == expected


def test_where_an_array_is_written():
    found = ways(build_module(kernel.source, TYPES, {"CASE": "rounded on the way"}))
    (place,) = found[POINTERS.index("out")].writers
    assert place.filename == __file__
    assert "tl.store(out + at, (tl.load(x + at) * 3)" in Path(__file__).read_text().splitlines()[place.line - 1]
