"""Lowering of TTL kernels: the operations of their threads, with their types left out."""

# Kernels whose IR is checked: what they compute is not used.
# ruff: noqa: B007, F841, RUF059

from __future__ import annotations

import re
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import FileLineColLoc

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.ttl.dialects.ttcore import ARCHITECTURES
from tlx_xdsl.ttl.dialects.ttl import ComputeThreadOp, CopyOp, KernelOp
from tlx_xdsl.ttl.frontend import compile_kernel
from tlx_xdsl.ttl.language.kernel import Kernel

pytestmark = pytest.mark.quick

TILED = ttl.TensorSpec((64, 96))
FACTOR = 3
SIZES = types.SimpleNamespace(block=(1, 2))


def lines_of(kernel: Kernel, *specs: Any, thread: str | None = None) -> list[str]:
    """The operations of a thread, or of the kernel's own body, without types, attributes of the kernel and ends."""
    text = str(compile_kernel(kernel, specs or (TILED,)))
    lines = [re.sub(r" : (?![^{}]*\}).*?( \{)?$", r"\1", line.strip()) for line in text.splitlines()]
    starts = [at for at, line in enumerate(lines) if "_thread @" in line]
    if thread is None:
        return lines[2 : starts[0]]
    start = next(at for at in starts if f"@{thread} " in lines[at])
    end = lines.index("ttl.thread_return", start)
    return lines[start + 1 : end]


def check(found: list[str], expected: str) -> None:
    """Compare with the operations that are expected, one a line."""
    assert found == [line.strip() for line in expected.strip().splitlines()]


# --- blocks and computing -------------------------------------------------------------------------------------------


def test_with_gives_blocks_back_last_first() -> None:
    @ttl.kernel()
    def kernel(a):
        x_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
        o_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=4)

        @ttl.compute()
        def compute():
            with x_cb.wait() as x, o_cb.reserve() as o:
                o.store(-x)

    check(
        lines_of(kernel, thread="compute"),
        """
        %x = ttl.cb_wait %x_cb
        %o = ttl.cb_reserve %o_cb
        %0 = ttl.neg %x
        ttl.store %0, %o
        ttl.cb_push %o_cb
        ttl.cb_pop %x_cb
        """,
    )
    assert "buffer_factor=4" in lines_of(kernel)[1]


def test_blocks_and_buffers_give_back_the_same_way() -> None:
    @ttl.kernel()
    def kernel(a):
        cb = ttl.CircularBuffer(shape=(2, 1), element=ttl.bfloat16, buffer_factor=2)
        out = ttl.CircularBuffer(cb, (2, 1), 3)

        @ttl.compute
        def compute():
            x = cb.wait()
            o = out.reserve()
            o.store(x)
            cb.pop()
            o.push()

    check(
        lines_of(kernel, thread="compute"),
        """
        %x = ttl.cb_wait %cb
        %o = ttl.cb_reserve %out
        ttl.store %x, %o
        ttl.cb_pop %cb
        ttl.cb_push %out
        """,
    )


def test_numbers_count_for_each_element() -> None:
    @ttl.kernel()
    def kernel(a):
        cb = ttl.make_circular_buffer_like(a)

        @ttl.compute()
        def compute():
            with cb.wait() as x:
                1 - x * 2.0
                x**2 / FACTOR

    check(
        lines_of(kernel, thread="compute"),
        """
        %x = ttl.cb_wait %cb
        %0 = ttl.fill {value = 2.000000e+00 : f32}
        %1 = ttl.mul %x, %0
        %2 = ttl.fill {value = 1.000000e+00 : f32}
        %3 = ttl.sub %2, %1
        %4 = ttl.square %x
        %5 = ttl.fill {value = 3.000000e+00 : f32}
        %6 = ttl.div %4, %5
        ttl.cb_pop %cb
        """,
    )


UNARY = ("exp", "log", "sqrt", "rsqrt", "recip", "relu", "gelu", "tanh", "sigmoid", "neg", "abs", "square")
BINARY = ("add", "sub", "mul", "div", "max", "min")


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_elementwise_functions(name: str) -> None:
    function = getattr(ttl.math, name)

    @ttl.kernel()
    def unary(a):
        cb = ttl.make_circular_buffer_like(a)

        @ttl.compute()
        def compute():
            with cb.wait() as x:
                function(x)

    @ttl.kernel()
    def binary(a):
        cb = ttl.make_circular_buffer_like(a)

        @ttl.compute()
        def compute():
            with cb.wait() as x:
                function(x, x)

    found = lines_of(unary if name in UNARY else binary, thread="compute")[1]
    assert found == (f"%0 = ttl.{name} %x" if name in UNARY else f"%0 = ttl.{name} %x, %x")


def test_functions_of_shapes() -> None:
    @ttl.kernel()
    def kernel(a):
        cb = ttl.make_circular_buffer_like(a, shape=(2, 3))
        out = ttl.make_circular_buffer_like(a, shape=(2, 2))

        @ttl.compute()
        def compute():
            with cb.wait() as x, out.reserve() as o:
                rows = ttl.math.reduce_sum(x, dims=[-1])
                o.store(ttl.math.broadcast(rows, o, dims=1) + x @ ttl.math.transpose(x))
                o.store(ttl.math.fill(o, 0.5), acc=True)
                ttl.math.broadcast(ttl.math.reduce_max(x, dims=[0, 1]), (4, 5), [1, 0])

    text = str(compile_kernel(kernel, [TILED]))
    tile = "!ttcore.tile<32x32, f32>"
    for expected in (
        f"%rows = ttl.reduce_sum %x {{dims = [1 : i64]}} : tensor<2x3x{tile}> -> tensor<2x1x{tile}>",
        f"ttl.bcast %rows {{dims = [1 : i64]}} : tensor<2x1x{tile}> -> tensor<2x2x{tile}>",
        f"ttl.transpose %x : tensor<2x3x{tile}> -> tensor<3x2x{tile}>",
        f"ttl.matmul %x, %1 : tensor<2x3x{tile}>, tensor<3x2x{tile}> -> tensor<2x2x{tile}>",
        f"{{accumulate}} : tensor<2x2x{tile}>",
        f"ttl.reduce_max %x {{dims = [0 : i64, 1 : i64]}} : tensor<2x3x{tile}> -> tensor<1x1x{tile}>",
        f"{{dims = [0 : i64, 1 : i64]}} : tensor<1x1x{tile}> -> tensor<4x5x{tile}>",
    ):
        assert expected in text


def test_store_of_a_number_and_several_blocks() -> None:
    @ttl.kernel()
    def kernel(a):
        cb = ttl.make_circular_buffer_like(a)

        @ttl.compute()
        def compute():
            first, second = cb.reserve(blocks=2)
            first.store(0.0)
            second.store(1)
            cb.push(blocks=2)

    check(
        lines_of(kernel, thread="compute"),
        """
        %0 = ttl.cb_reserve %cb {blocks = 2 : i64}
        %c0 = arith.constant 0
        %first = ttl.block %0, %c0
        %c1 = arith.constant 1
        %second = ttl.block %0, %c1
        %1 = ttl.fill {value = 0.000000e+00 : f32}
        ttl.store %1, %first
        %2 = ttl.fill {value = 1.000000e+00 : f32}
        ttl.store %2, %second
        ttl.cb_push %cb {blocks = 2 : i64}
        """,
    )


# --- accumulation ---------------------------------------------------------------------------------------------------


def accumulating(body: Any) -> list[str]:
    """The stores, comparisons and loops of a kernel whose compute thread calls `body(x_cb, o)`."""

    @ttl.kernel()
    def kernel(a):
        x_cb = ttl.make_circular_buffer_like(a)
        o_cb = ttl.make_circular_buffer_like(a)

        @ttl.compute()
        def compute():
            with o_cb.reserve() as o:
                body(x_cb, o)

    kept = ("ttl.store", "arith.cmpi", "arith.andi", "affine.for", "scf.if")
    return [line for line in lines_of(kernel, thread="compute") if any(each in line for each in kept)]


def test_first_addition_stores() -> None:
    def body(x_cb, o):
        with x_cb.wait() as x:
            o += x
            o += x

    check(accumulating(body), "ttl.store %x, %o\nttl.store %x, %o {accumulate}")


def test_first_iteration_stores() -> None:
    def body(x_cb, o):
        for i in range(2, 5):
            for j in range(3):
                with x_cb.wait() as x:
                    o += x
                    o += x
        with x_cb.wait() as x:
            o += x

    check(
        accumulating(body),
        """
        affine.for %i = 2 to 5 {
        affine.for %j = 0 to 3 {
        %0 = arith.cmpi eq, %i, %c2
        %1 = arith.cmpi eq, %j, %c0
        %2 = arith.andi %0, %1
        ttl.store %x, %o first %2 {accumulate}
        ttl.store %x, %o {accumulate}
        ttl.store %x_1, %o {accumulate}
        """,
    )


def test_addition_to_what_was_stored_before() -> None:
    def body(x_cb, o):
        o.store(ttl.math.fill(o, 0.0))
        for i in range(3):
            if i > 1:
                with x_cb.wait() as x:
                    o += x

    check(
        accumulating(body),
        """
        ttl.store %0, %o
        affine.for %i = 0 to 3 {
        %1 = arith.cmpi sgt, %i, %c1
        scf.if %1 {
        ttl.store %x, %o {accumulate}
        """,
    )


def test_both_branches_store() -> None:
    def body(x_cb, o):
        x, _ = ttl.core(dims=2)
        if x == 0:
            o.store(0)
        else:
            o.store(1)
        o += 1

    check(
        accumulating(body),
        """
        %1 = arith.cmpi eq, %x, %c0
        scf.if %1 {
        ttl.store %2, %o
        ttl.store %3, %o
        ttl.store %4, %o {accumulate}
        """,
    )


# --- loops, branches and integers -----------------------------------------------------------------------------------


def copies(body: Any, *specs: ttl.TensorSpec) -> list[str]:
    """Return the operations of a datamovement thread with `body(a, cb)`."""

    @ttl.kernel(grid=(4, 2))
    def kernel(a):
        cb = ttl.make_circular_buffer_like(a, shape=(1, 1))

        @ttl.datamovement()
        def read():
            body(a, cb)

    return lines_of(kernel, *(specs or (ttl.TensorSpec((1024, 1024)),)), thread="read")


def test_indices_are_one_affine_map() -> None:
    def body(a, cb):
        x, y = ttl.core(dims=2)
        for i in range(4):
            row = (y * 4 + i) * 2
            ttl.copy(a[row - i, x], cb.reserve())
            ttl.copy(a[row - i, row // 4 + row % 3], cb.reserve())

    check(
        copies(body),
        """
        %x, %y = ttl.core(dims = 2)
        affine.for %i = 0 to 4 {
        %0 = ttl.cb_reserve %cb
        %1 = affine.apply affine_map<(d0, d1) -> (((d0 * 8) + d1))> (%y, %i)
        %2 = ttl.copy %a_accessor[%1, %x], %0
        %3 = ttl.cb_reserve %cb
        %4 = affine.apply affine_map<(d0, d1) -> ((((d0 * 2) + ((d1 * 2) floordiv 4)) + (((d0 * 8) + (d1 * 2)) mod 3)))> (%y, %i)
        %5 = ttl.copy %a_accessor[%1, %4], %3
        }
        """,  # noqa: E501
    )


def test_what_is_known_is_folded() -> None:
    def body(a, cb):
        x = ttl.core(dims=1)
        for i in range(0):
            ttl.copy(a[i, 0], cb.reserve())
        if x + 1 > x and ttl.grid_size(dims=1) == 8 and ttl.grid_size() == (4, 2):
            ttl.copy(a[x, 2 * x - x], cb.reserve())
        if a.shape[0] < 5 or not FACTOR:
            ttl.copy(a[0, 0], cb.reserve())

    check(
        copies(body),
        """
        %x = ttl.core(dims = 1)
        %0 = ttl.cb_reserve %cb
        %1 = ttl.copy %a_accessor[%x, %x], %0
        """,
    )


def test_bounds_and_steps() -> None:
    def body(a, cb):
        x = ttl.core(dims=1)
        for i in range(x, x + 4):
            for j in range(i, 9, 3):
                for k in range(5, -1, -2):
                    ttl.copy(a[j, k], cb.reserve())

    check(
        copies(body),
        """
        %x = ttl.core(dims = 1)
        affine.for %i = affine_map<(d0) -> (d0)>(%x) to affine_map<(d0) -> ((d0 + 4))>(%x) {
        affine.for %j = affine_map<(d0) -> (d0)>(%i) to 9 step 3 {
        affine.for %k = 0 to 3 {
        %0 = ttl.cb_reserve %cb
        %1 = affine.apply affine_map<(d0) -> (((d0 * -2) + 5))> (%k)
        %2 = ttl.copy %a_accessor[%j, %1], %0
        }
        }
        }
        """,
    )


def test_what_is_not_affine() -> None:
    def body(a, cb):
        x, y = ttl.core(dims=2)
        for i in range(min(x + 2, 3)):
            ttl.copy(a[i + 1, x * y % 3], cb.reserve())

    check(
        copies(body),
        """
        %x, %y = ttl.core(dims = 2)
        %0 = affine.apply affine_map<(d0) -> ((d0 + 2))> (%x)
        %c3 = arith.constant 3
        %1 = arith.minsi %0, %c3
        %c0 = arith.constant 0
        %c1 = arith.constant 1
        scf.for %i = %c0 to %1 step %c1 {
        %2 = arith.muli %x, %y
        %3 = ttl.cb_reserve %cb
        %4 = arith.addi %i, %c1
        %5 = arith.floordivsi %2, %c3
        %6 = arith.muli %5, %c3
        %7 = arith.subi %2, %6
        %8 = ttl.copy %a_accessor[%4, %7], %3
        }
        """,
    )


def test_branches_and_conditions() -> None:
    def body(a, cb):
        x, y = ttl.core(dims=2)
        if (x, y) == (1, 0) or 0 < x < 3:
            ttl.copy(a[0, 0], cb.reserve())
        elif not y:
            ttl.copy(a[0, x if x > 1 else 5], cb.reserve())

    check(
        copies(body),
        """
        %x, %y = ttl.core(dims = 2)
        %c1 = arith.constant 1
        %0 = arith.cmpi eq, %x, %c1
        %c0 = arith.constant 0
        %1 = arith.cmpi eq, %y, %c0
        %2 = arith.andi %0, %1
        %3 = arith.cmpi slt, %c0, %x
        %c3 = arith.constant 3
        %4 = arith.cmpi slt, %x, %c3
        %5 = arith.andi %3, %4
        %6 = arith.ori %2, %5
        scf.if %6 {
        %7 = ttl.cb_reserve %cb
        %8 = ttl.copy %a_accessor[%c0, %c0], %7
        } else {
        %9 = arith.cmpi ne, %y, %c0
        %10 = arith.constant true
        %11 = arith.xori %9, %10
        scf.if %11 {
        %12 = arith.cmpi sgt, %x, %c1
        %c5 = arith.constant 5
        %13 = arith.select %12, %x, %c5
        %14 = ttl.cb_reserve %cb
        %15 = ttl.copy %a_accessor[%c0, %13], %14
        }
        }
        """,
    )


def test_loops_over_tuples_are_repeated() -> None:
    @ttl.kernel()
    def kernel(a, b):
        buffers = [ttl.make_circular_buffer_like(t, shape=SIZES.block) for t in (a, b)]

        @ttl.datamovement()
        def read():
            for i, (cb, t) in enumerate(zip(buffers, (a, b), strict=True)):
                with cb.reserve() as block:
                    ttl.copy(t[i : i + 1, 0:2], block).wait()

    check(
        lines_of(kernel, TILED, TILED, thread="read"),
        """
        %block = ttl.cb_reserve %cb
        %c0 = arith.constant 0
        %0 = ttl.copy %a_accessor[%c0, %c0], %block
        ttl.wait %0
        ttl.cb_push %cb
        %block_1 = ttl.cb_reserve %cb_1
        %c1 = arith.constant 1
        %1 = ttl.copy %b_accessor[%c1, %c0], %block_1
        ttl.wait %1
        ttl.cb_push %cb_1
        """,
    )


def double(x, factor=2):
    """A function of the module, which is compiled where it is called."""
    return x * factor


def test_functions_are_compiled_where_they_are_called() -> None:
    def body(a, cb):
        def at(i, *, plus=1):
            return double(i) + plus

        for i in range(4):
            ttl.copy(a[at(i), double(3)], cb.reserve())
            ttl.copy(a[(lambda j: j + 2)(i), 0], cb.reserve())

    found = copies(body)
    assert "%1 = affine.apply affine_map<(d0) -> (((d0 * 2) + 1))> (%i)" in found
    assert "%c6 = arith.constant 6" in found
    assert "%4 = affine.apply affine_map<(d0) -> ((d0 + 2))> (%i)" in found


# --- layouts --------------------------------------------------------------------------------------------------------


def test_pieces_of_all_layouts() -> None:
    rows = ttl.TensorSpec((8, 40), ttl.bfloat16, ttl.interleaved, "L1")
    shards = ttl.TensorSpec((64, 64), ttl.float16, ttl.sharded((1, 2), (2, 1)))

    @ttl.kernel(grid=(2, 1))
    def kernel(tiles, rows, shards):
        tiles_cb = ttl.make_circular_buffer_like(tiles)
        rows_cb = ttl.make_circular_buffer_like(rows, shape=(2, 40))
        row_cb = ttl.make_circular_buffer_like(rows, shape=(1, 40))
        shards_cb = ttl.make_circular_buffer_like(shards, shape=(2, 1))

        @ttl.datamovement()
        def read():
            core = ttl.core(dims=1)
            ttl.copy(tiles[core], tiles_cb.reserve())
            ttl.copy(rows[2:4, :], rows_cb.reserve())
            ttl.copy(rows[core + 1 : core + 3], rows_cb.reserve())
            ttl.copy(rows[7], row_cb.reserve())
            ttl.copy(shards[core], shards_cb.reserve())
            ttl.copy(shards[:, core : core + 1], shards_cb.reserve())

    specs = TILED, rows, shards
    found = [line.split("ttl.copy ")[1] for line in lines_of(kernel, *specs, thread="read") if "ttl.copy" in line]
    assert found == [
        "%tiles_accessor[%core], %0",
        "%rows_accessor[%c2, %c0], %2",
        "%rows_accessor[%5, %c0], %4",
        "%rows_accessor[%c7], %7",
        "%shards_accessor[%core], %9",
        "%shards_accessor[%c0, %core], %11",
    ]
    text = str(compile_kernel(kernel, specs))
    for expected in (
        "%rows: tensor<8x40xbf16, #ttl.tensor_encoding<L1, #ttl.layout<interleaved>>>",
        "tensor<64x64xf16, #ttl.tensor_encoding<DRAM, #ttl.layout<sharded, grid=[1, 2], tiles_per_shard=[2, 1]>>>",
        "!ttl.cb<[2, 40], bf16, 2>",
        "!ttl.cb<[2, 1], !ttcore.tile<32x32, f16>, 2>",
    ):
        assert expected in text


# --- pipes and semaphores -------------------------------------------------------------------------------------------


def test_pipes() -> None:
    @ttl.kernel(grid=(4, 2))
    def kernel(a):
        cb = ttl.make_circular_buffer_like(a)
        down = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=(x, 1)) for x in range(2)])
        along = ttl.Pipe((0, 0), dst_range=(slice(1, None), 0))
        everywhere = ttl.Pipe((1, 1), (slice(None), slice(None)))

        @ttl.datamovement()
        def read():
            with cb.reserve() as block:

                def send(pipe):
                    x, _ = pipe.src
                    ttl.copy(a[0, x], block).wait()
                    ttl.copy(block, pipe)

                down.if_src(send)
                along.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

    assert [line for line in lines_of(kernel) if "pipe" in line] == [
        "%0 = ttl.create_pipe src=[0, 0] dst_range=[[0, 1], [0, 1]]",
        "%1 = ttl.create_pipe src=[1, 0] dst_range=[[1, 1], [1, 1]]",
        "%along = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]]",
        "%everywhere = ttl.create_pipe src=[1, 1] dst_range=[[0, 0], [3, 1]]",
    ]
    check(
        lines_of(kernel, thread="read"),
        """
        %block = ttl.cb_reserve %cb
        ttl.if_src %0 {
        %c0 = arith.constant 0
        %2 = ttl.copy %a_accessor[%c0, %c0], %block
        ttl.wait %2
        %3 = ttl.copy %block, %0
        }
        ttl.if_src %1 {
        %c0_1 = arith.constant 0
        %c1 = arith.constant 1
        %4 = ttl.copy %a_accessor[%c0_1, %c1], %block
        ttl.wait %4
        %5 = ttl.copy %block, %1
        }
        ttl.if_dst %along {
        %6 = ttl.copy %along, %block
        ttl.wait %6
        }
        ttl.cb_push %cb
        """,
    )


def test_semaphores() -> None:
    @ttl.kernel(grid=(4, 2))
    def kernel(a):
        ready = ttl.Semaphore(initial=1)
        everyone = ready.get_remote_multicast()
        some = ready.get_remote_multicast((slice(1, 3), 0))

        @ttl.datamovement()
        def read():
            x, y = ttl.core(dims=2)
            ready.wait_eq(0)
            ready.wait_ge(x)
            ready.set(2)
            ready.get_remote((x + 1, 0)).inc(1)
            everyone.set(3)
            some.set(3)

    assert "%ready = ttl.create_semaphore {initial = 1 : i32}" in lines_of(kernel)
    check(
        lines_of(kernel, thread="read"),
        """
        %x, %y = ttl.core(dims = 2)
        %0 = arith.constant 0
        ttl.semaphore_wait_eq %ready, %0
        %1 = arith.index_cast %x
        ttl.semaphore_wait_min %ready, %1
        %2 = arith.constant 2
        ttl.semaphore_set %ready, %2
        %3 = arith.constant 1
        %4 = affine.apply affine_map<(d0) -> ((d0 + 1))> (%x)
        %c0 = arith.constant 0
        ttl.semaphore_inc %ready, %3 [%4, %c0]
        %5 = arith.constant 3
        %c3 = arith.constant 3
        %c1 = arith.constant 1
        ttl.semaphore_set %ready, %5 [%c0, %c0, %c3, %c1] {loopback}
        %c2 = arith.constant 2
        ttl.semaphore_set %ready, %5 [%c1, %c0, %c2, %c0]
        """,
    )


# --- the kernel as a whole ------------------------------------------------------------------------------------------


@ttl.operation(grid="full", fp32_dest_acc_en=True, dst_full_sync_en=True)
def whole(a, n, scale=2.0):
    cb = ttl.make_circular_buffer_like(a, shape=(n, 1))

    @ttl.compute()
    def compute():
        with cb.wait() as x, late.reserve() as o:
            o.store(x * scale)

    # Threads see what the kernel makes after them.
    late = ttl.make_circular_buffer_like(a, shape=(n, 1))
    return ttl.Program(compute)(a)


def kernel_op(kernel: Kernel, *specs: Any, **options: Any) -> KernelOp:
    (op,) = compile_kernel(kernel, specs, **options).ops
    assert isinstance(op, KernelOp)
    return op


def test_attributes_and_locations() -> None:
    op = kernel_op(whole, TILED, 2, chip=replace(ARCHITECTURES["wormhole"], columns=3, rows=5))
    assert (op.grid.x, op.grid.y, op.fp32_dest_acc_en, op.dst_full_sync_en) == (3, 5, True, True)
    source = Path(__file__).read_text().splitlines()
    line = source.index("def whole(a, n, scale=2.0):") + 1
    assert op.attributes["python_source_file"].data == __file__
    assert op.attributes["python_source_line"].value.data == line
    for inner in op.walk():
        location = inner.location
        assert isinstance(location, FileLineColLoc)
        assert location.filename.data == __file__
        assert line <= location.line.data <= line + 10
        assert location.column.data >= 1
    (store,) = (each for each in op.walk() if each.name == "ttl.store")
    text = source[store.location.line.data - 1]
    assert text[store.location.column.data - 1 :] == "o.store(x * scale)"
    (mul,) = (each for each in op.walk() if each.name == "ttl.mul")
    assert text[mul.location.column.data - 1 :] == "x * scale)"


def test_text_is_read_again() -> None:
    module = compile_kernel(whole, (TILED, 2))
    text = print_module(module)
    again = parse_module(text)
    verify_module(again)
    assert print_module(again) == text


def test_copies_need_no_wait() -> None:
    @ttl.kernel()
    def kernel(a):
        cb = ttl.make_circular_buffer_like(a)

        @ttl.datamovement()
        def read():
            with cb.reserve() as block:
                ttl.copy(a[0, 0], block)

    (copy,) = (each for each in kernel_op(kernel, TILED).walk() if isinstance(each, CopyOp))
    assert not copy.handle.uses.get_length()


def test_a_foreign_module_is_mapped_by_name() -> None:
    """Kernels that were written for another package of the name `ttl` have the meaning of our names."""
    source = Path(__file__).parents[4] / "examples" / "ttl" / "add.py"
    foreign = types.ModuleType("ttl")
    foreign.kernel = ttl.kernel  # type: ignore[attr-defined]
    names: dict[str, Any] = {"ttl": foreign, "__name__": "elsewhere"}
    text = source.read_text().replace("import tlx_xdsl.ttl.language as ttl", "").replace("import numpy as np", "")
    exec(compile(text, str(source), "exec"), names)
    op = kernel_op(names["add"], TILED, TILED, TILED)
    assert [type(thread) for thread in op.threads].count(ComputeThreadOp) == 1


def test_what_comes_after_return_is_not_compiled() -> None:
    @ttl.kernel()
    def kernel(a):
        @ttl.compute()
        def compute():
            """Documented."""
            if FACTOR == 3:
                return
            nothing_of_the_kind()  # noqa: F821

    check(lines_of(kernel, thread="compute"), "")


def test_surplus_arguments() -> None:
    with pytest.raises(CompilationError, match=r"'whole' has the parameters a, n, scale, found 4 arguments"):
        compile_kernel(whole, (TILED, 2, 3, 4))
