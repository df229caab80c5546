"""Blocks that loops carry, and branches that return: on all machines, against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tests.unit.ttl.metalium.metalium_programs import needs_compiler
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.frontend import compile_kernel
from tlx_xdsl.ttl.language.kernel import Kernel
from tlx_xdsl.ttl.runtime import MACHINES, run

STEPS = 3


@ttl.operation(grid=(1, 1))
def products(a, b, out, largest, mixed):
    """Compute a sum of products, a maximum, and a recurrence for each row of two blocks."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 1))
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 2))
    o_dfb = ttl.make_dataflow_buffer_like(out, shape=(2, 2))
    m_dfb = ttl.make_dataflow_buffer_like(out, shape=(2, 1))

    @ttl.datamovement()
    def read():
        for _ in range(2):
            for k in range(STEPS):
                with a_dfb.reserve() as x, b_dfb.reserve() as y:
                    ttl.copy(a[0:2, k : k + 1], x).wait()
                    ttl.copy(b[k : k + 1, 0:2], y).wait()

    @ttl.compute()
    def compute():
        for _ in range(2):
            total = ttl.block.fill(0, shape=(2, 2))
            most = ttl.block.fill(-100, shape=(2, 1))
            state = ttl.block.fill(1, shape=(2, 1))
            for k in range(STEPS):
                with a_dfb.wait() as x, b_dfb.wait() as y:
                    total += x @ y
                    most = ttl.math.max(most, x)
                    if k > 0:
                        total = ttl.block.fill(1, shape=(2, 2)) + total
                    state = x - state * 0.5
            with o_dfb.reserve() as o:
                o.store(ttl.math.relu(total))
            with m_dfb.reserve() as o:
                o.store(most)
            with m_dfb.reserve() as o:
                o.store(state)

    @ttl.datamovement()
    def write():
        for row in range(2):
            with o_dfb.wait() as o:
                ttl.copy(o, out[2 * row : 2 * row + 2, 0:2]).wait()
            with m_dfb.wait() as o:
                ttl.copy(o, largest[2 * row : 2 * row + 2, 0:1]).wait()
            with m_dfb.wait() as o:
                ttl.copy(o, mixed[2 * row : 2 * row + 2, 0:1]).wait()


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_sums_and_other_values(dtype: Any) -> None:
    """Small integers: f32 and bf16 hold them exactly."""
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-2, 3, shape).astype(dtype) for shape in ((64, 96), (96, 64)))
    wide = a.astype(np.float32)
    parts = np.split(wide, STEPS, axis=1)
    state = np.ones((64, 32), np.float32)
    for part in parts:
        state = part - state * np.float32(0.5)
    expected = [np.maximum(wide @ b.astype(np.float32) + 2, 0), np.max(parts, axis=0), state]
    for machine in MACHINES:
        results = [np.full((128, width), np.nan, dtype) for width in (64, 32, 32)]
        run(products, a, b, *results, machine=machine)
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result.astype(np.float32), np.vstack([wanted] * 2), err_msg=machine)


def operations(kernel: Kernel, *specs: Any) -> str:
    return str(compile_kernel(kernel, specs or (ttl.TensorSpec((32, 96)), ttl.TensorSpec((32, 32)))))


def kernel_of(body: Any) -> Kernel:
    @ttl.operation(grid=(1, 1))
    def kernel(a, out):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
        o_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

        @ttl.compute()
        def compute():
            body(a_dfb, o_dfb)

    return kernel


def sum_from_zero(a_dfb, o_dfb):
    z = ttl.block.fill(0, shape=(1, 1))
    for _ in range(3):
        with a_dfb.wait() as x:
            z += x
    o_dfb.reserve().store(z)


def sum_from_one(a_dfb, o_dfb):
    z = ttl.block.fill(1, shape=(1, 1))
    for _ in range(3):
        with a_dfb.wait() as x:
            z = z + x
    o_dfb.reserve().store(z)


def other(a_dfb, o_dfb):
    z = ttl.block.fill(0, shape=(1, 1))
    for _ in range(3):
        with a_dfb.wait() as x:
            z = z * x
    o_dfb.reserve().store(z)


def not_carried(a_dfb, o_dfb):
    z = ttl.block.fill(0, shape=(1, 1))
    o_dfb.reserve().store(z)
    for _ in range(3):
        with a_dfb.wait() as x:
            z = x + x
            o_dfb.reserve().store(z)


@pytest.mark.parametrize(
    ("body", "buffers", "stores", "additions"),
    [
        # A sum is added to by the packer, and from zero needs no first store.
        (sum_from_zero, 1, 2, 1),
        (sum_from_one, 1, 3, 1),
        # Any other value takes places in turn: the first store, one in the loop, and the result's.
        (other, 1, 3, 0),
        (not_carried, 0, 2, 0),
    ],
)
def test_what_a_loop_needs(body: Any, buffers: int, stores: int, additions: int) -> None:
    text = operations(kernel_of(body))
    assert text.count("internal") == buffers
    assert text.count("ttl.store") == stores
    assert text.count("accumulate") == additions


def other_shape(a_dfb, o_dfb):
    z = ttl.block.fill(0, shape=(1, 1))
    for _ in range(3):
        with a_dfb.wait() as x:
            z = ttl.block.broadcast(x, dims=[1], shape=(1, 2)) + z


def lost_in_a_branch(a_dfb, o_dfb):
    z = ttl.block.fill(0, shape=(1, 1))
    for i in range(3):
        with a_dfb.wait() as x:
            if i > 1:
                z = x * z


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (other_shape, "the block has 1x1 tile of f32, found a value of 1x2 tiles"),
        (lost_in_a_branch, "'z' has no value here: the branches of an 'if' of the run leave it with different values"),
    ],
)
def test_what_a_loop_can_not_carry(body: Any, message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        operations(kernel_of(body))


@ttl.operation(grid=(3, 1))
def on_two_of_three(a, out):
    """Cores beyond the tensor return early."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    o_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    columns = a.shape[1] // 32
    if columns == 0:
        return

    @ttl.datamovement()
    def read():
        x, _ = ttl.node(dims=2)
        if x >= columns:
            return
        with a_dfb.reserve() as block:
            ttl.copy(a[0, x], block).wait()

    @ttl.compute()
    def compute():
        x, _ = ttl.node(dims=2)
        if x == 0:
            with a_dfb.wait() as block, o_dfb.reserve() as o:
                o.store(block)
            return
        if x >= columns:
            return
        with a_dfb.wait() as block, o_dfb.reserve() as o:
            o.store(block * 2)

    @ttl.datamovement()
    def write():
        x, _ = ttl.node(dims=2)
        if x < columns:
            with o_dfb.wait() as o:
                ttl.copy(o, out[0, x]).wait()
            return


@needs_compiler
@pytest.mark.parametrize("machine", MACHINES)
def test_branches_that_return(machine: str) -> None:
    a = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    out = np.full_like(a, np.nan)
    run(on_two_of_three, a, out, machine=machine)
    np.testing.assert_array_equal(out, a * np.repeat([1, 2], 32))


def returns_a_value(a_dfb, o_dfb):
    def chosen(i):
        if i > 1:
            return 1
        return 2

    for i in range(3):
        chosen(i)


def returns_in_a_loop(a_dfb, o_dfb):
    for i in range(3):
        if i > 1:
            return


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (returns_a_value, "a branch of the run can't return a value"),
        (returns_in_a_loop, "'return' can't stand in a loop of the run"),
    ],
)
def test_returns_that_are_refused(body: Any, message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        operations(kernel_of(body))


def test_a_sum_whose_type_is_open():
    """The buffers have two types, so that a fill without a type may be either."""

    @ttl.operation(grid=(1, 1))
    def unsaid(a, out):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
        o_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

        @ttl.compute()
        def compute():
            total = ttl.block.fill(0, shape=(1, 1))
            for _ in range(2):
                with a_dfb.wait() as x:
                    total += x
            with o_dfb.reserve() as o:
                o.store(total)

    a, out = np.zeros((64, 32), ml_dtypes.bfloat16), np.zeros((32, 32), np.float32)
    with pytest.raises(
        CompilationError, match=r"does not say the type of the elements of a block of 0: give it 'dtype='"
    ):
        run(unsaid, a, out)
