"""Sums of products in a loop: in registers where they fit, by the packer elsewhere, and equal to numpy's either way."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

import tlx_xdsl.ttl.language as ttl
from tests.unit.ttl.metalium.metalium_programs import needs_compiler
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.ttl.frontend import compile_kernel as frontend
from tlx_xdsl.ttl.language.kernel import Kernel
from tlx_xdsl.ttl.runtime import MACHINES, compile_kernel, run
from tlx_xdsl.ttl.transforms.lower_compute import LowerComputePass
from tlx_xdsl.ttl.transforms.pipeline import ttl_pipeline

F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
STEPS = 4


def product(rows: int = 2, columns: int = 2, start: int = 0, kind: str = "value") -> Kernel:
    """A kernel that adds up a product of `rows` by `columns` tiles, from `start` on, as a value."""

    def summand(x, y):
        return ttl.math.relu(x @ y) - ttl.math.relu(-(x @ y)) if kind == "function" else x @ y

    @ttl.kernel(grid=(1, 1))
    def summed(a, b, out):
        a_cb = ttl.make_circular_buffer_like(a, shape=(rows, 1))
        b_cb = ttl.make_circular_buffer_like(b, shape=(1, columns))
        o_cb = ttl.make_circular_buffer_like(out, shape=(rows, columns))

        @ttl.datamovement()
        def read():
            for k in range(STEPS):
                with a_cb.reserve() as x, b_cb.reserve() as y:
                    ttl.copy(a[0:rows, k : k + 1], x).wait()
                    ttl.copy(b[k : k + 1, 0:columns], y).wait()

        @ttl.compute()
        def compute():
            total = ttl.block.fill(start, shape=(rows, columns))
            other = ttl.block.fill(0, shape=(rows, 1))
            column, _ = ttl.core(dims=2)
            for _ in range(STEPS + column if kind == "core" else STEPS):
                with a_cb.wait() as x, b_cb.wait() as y:
                    total += summand(x, y)
                    if kind == "two":
                        other += x
            with o_cb.reserve() as o:
                o.store(total + ttl.math.broadcast(other, total, dims=[1]) * 0 if kind == "two" else total)

        @ttl.datamovement()
        def write():
            with o_cb.wait() as o:
                ttl.copy(o, out[0:rows, 0:columns]).wait()

    return summed


def reserved(kind: str) -> Kernel:
    """A kernel that adds up a product of 2 by 2 tiles: in a block that it reserves, or in a branch."""

    @ttl.kernel(grid=(1, 1))
    def summed(a, b, out):
        a_cb = ttl.make_circular_buffer_like(a, shape=(2, 1))
        b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2))
        o_cb = ttl.make_circular_buffer_like(out, shape=(2, 2))

        @ttl.datamovement()
        def read():
            for k in range(STEPS):
                with a_cb.reserve() as x, b_cb.reserve() as y:
                    ttl.copy(a[0:2, k : k + 1], x).wait()
                    ttl.copy(b[k : k + 1, 0:2], y).wait()

        @ttl.compute()
        def compute():
            with o_cb.reserve() as o:
                if kind == "branch":
                    o.store(ttl.math.fill(o, 0.0))
                for k in range(2):
                    for _ in range(STEPS // 2):
                        with a_cb.wait() as x, b_cb.wait() as y:
                            if kind == "block" or k < 2:
                                o += x @ y

        @ttl.datamovement()
        def write():
            with o_cb.wait() as o:
                ttl.copy(o, out[0:2, 0:2]).wait()

    return summed


def arrays(rows: int, columns: int, dtype: np.dtype[Any]) -> list[Any]:
    """Small integers, whose sums every type holds."""
    generator = np.random.default_rng(0)
    shapes = (32 * rows, 32 * STEPS), (32 * STEPS, 32 * columns)
    return [generator.integers(-1, 2, shape).astype(dtype) for shape in shapes]


def loop_and_rest(kernel: Kernel, operands: list[Any], out: Any) -> tuple[str, str]:
    """The text of the compute thread's loop, and what is after it."""
    specs = [ttl.TensorSpec(each.shape, each.dtype) for each in (*operands, out)]
    text = compile_kernel(kernel, specs).sources["compute.cpp"]
    body, _, rest = text.partition("  for (")[2].partition("\n  }")
    return body, rest


@needs_compiler
@pytest.mark.parametrize(
    ("options", "dtype", "in_registers", "why"),
    [
        ({}, F32, True, "four tiles, four registers"),
        ({"start": 3}, F32, True, "the packer adds to what was there, once"),
        ({"kind": "block"}, F32, True, "two loops around one block that the kernel reserves"),
        ({"rows": 3}, F32, False, "six tiles"),
        ({}, BF16, False, "16 bits are rounded in each iteration"),
        ({"kind": "two"}, F32, False, "two sums"),
        ({"kind": "branch"}, F32, False, "a branch"),
        ({"kind": "function"}, F32, False, "no product"),
        ({"kind": "core"}, F32, False, "a number of iterations that a core knows"),
    ],
)
def test_the_choice(options: dict[str, Any], dtype: np.dtype[Any], in_registers: bool, why: str) -> None:
    rows, columns = options.get("rows", 2), options.get("columns", 2)
    operands = arrays(rows, columns, dtype)
    expected = options.get("start", 0) + operands[0].astype(F32) @ operands[1].astype(F32)
    kernel = reserved(options["kind"]) if options.get("kind") in ("block", "branch") else product(**options)
    for machine in MACHINES:
        out = np.full((32 * rows, 32 * columns), np.nan, dtype)
        run(kernel, *operands, out, machine=machine)
        np.testing.assert_array_equal(out.astype(F32), expected, err_msg=f"{why}, {machine}")
    body, rest = loop_and_rest(kernel, operands, out)
    assert ("pack_tile" not in body and "tile_regs_" not in body) is in_registers, body
    if in_registers:
        assert ("pack_reconfig_l1_acc(1);" in rest) is (options.get("start", 0) != 0)
        assert rest.index("tile_regs_commit();") < rest.index("pack_")
    else:
        assert "pack_reconfig_l1_acc(" in body


@pytest.mark.parametrize(("number", "in_registers"), [(0, True), (1, False)])
def test_the_condition_is_that_of_the_first_iteration(number: int, in_registers: bool) -> None:
    """A block that another iteration overwrites is no sum of all of them."""
    specs = [ttl.TensorSpec(shape) for shape in ((64, 128), (128, 64), (64, 64))]
    module = frontend(product(), specs)
    for each in ttl_pipeline(to="registers"):
        each.apply(make_context(), module)
    compare = next(op for op in module.walk() if isinstance(op, arith.CmpiOp))
    other = arith.ConstantOp(IntegerAttr.from_index_int_value(number))
    Rewriter.insert_op(other, InsertPoint.before(compare))
    compare.operands[1] = other.result
    LowerComputePass().apply(make_context(), module)
    (loop,) = (op for op in module.walk() if isinstance(op, affine.ForOp) and any(map(_multiplies, op.walk())))
    assert any(op.name == "ttkernel.pack_reconfig_l1_acc" for op in loop.walk()) is not in_registers


def _multiplies(op: Operation) -> bool:
    return op.name == "ttkernel.matmul_block"
