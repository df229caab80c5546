"""Buffers in shared memory: gathers, scatters, atomic updates, and their end."""

# covers: ttg.local

import numpy as np
import pytest

from tests.unit.interpreter.small_texts import pointers, pointers2, run
from tlx_xdsl.interpreter.faults import Fault

MEM = "!ttg.memdesc<16x32xf32, #s2, #smem, mutable>"
FLOATS, INTS = "tensor<16x32xf32, #b2>", "tensor<16x32xi32, #b2>"
LOADED = (
    pointers2("x", "f32", 16, 32, "xs") + pointers2("at", "i32", 16, 32, "is") + pointers2("out", "f32", 16, 32, "os")
    + """
    %a = tt.load %xs : tensor<16x32x!tt.ptr<f32>, #b2>
    %i = tt.load %is : tensor<16x32x!tt.ptr<i32>, #b2>
"""
)  # fmt: skip
ARGUMENTS = "%x: !tt.ptr<f32>, %at: !tt.ptr<i32>, %out: !tt.ptr<f32>"


def matrices(rng: np.random.Generator, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = rng.standard_normal((16, 32)).astype(np.float32)
    return x, rng.integers(0, limit, (16, 32)).astype(np.int32), np.full((16, 32), np.nan, np.float32)


@pytest.mark.parametrize(("axis", "limit"), [(0, 16), (1, 32)])
def test_gather_picks_along_an_axis(axis: int, limit: int) -> None:
    x, at, out = matrices(np.random.default_rng(1), limit)
    body = f"""{LOADED}
    %buf = ttg.local_alloc %a : ({FLOATS}) -> {MEM}
    %r = ttg.local_gather %buf[%i] {{axis = {axis} : i32}} : {MEM}, {INTS} -> {FLOATS}
    tt.store %os, %r : tensor<16x32x!tt.ptr<f32>, #b2>"""
    run(ARGUMENTS, body, [x, at, out])
    np.testing.assert_array_equal(out, np.take_along_axis(x, at, axis))


def test_scatter_puts_along_an_axis() -> None:
    rng = np.random.default_rng(2)
    x, at, out = matrices(rng, 16)
    at[:] = rng.permuted(np.tile(np.arange(16, dtype=np.int32)[:, None], (1, 32)), axis=0)
    body = f"""{LOADED}
    %buf = ttg.local_alloc : () -> {MEM}
    ttg.local_scatter %buf[%i], %a {{axis = 0 : i32}} : {MEM}, {INTS}, {FLOATS}
    %r = ttg.local_load %buf : {MEM} -> {FLOATS}
    tt.store %os, %r : tensor<16x32x!tt.ptr<f32>, #b2>"""
    run(ARGUMENTS, body, [x, at, out])
    expected = np.empty_like(x)
    np.put_along_axis(expected, at, x, 0)
    np.testing.assert_array_equal(out, expected)


def test_what_a_scatter_leaves_out_is_poison() -> None:
    x, at, out = matrices(np.random.default_rng(2), 1)
    body = f"""{LOADED}
    %buf = ttg.local_alloc : () -> {MEM}
    ttg.local_scatter %buf[%i], %a {{axis = 0 : i32}} : {MEM}, {INTS}, {FLOATS}
    %r = ttg.local_load %buf : {MEM} -> {FLOATS}
    tt.store %os, %r : tensor<16x32x!tt.ptr<f32>, #b2>"""
    with pytest.raises(Fault, match="read before it is written"):
        run(ARGUMENTS, body, [x, at, out])


def test_an_index_outside_of_the_buffer_is_a_fault() -> None:
    x, at, out = matrices(np.random.default_rng(3), 16)
    at[3, 4] = 16
    body = f"""{LOADED}
    %buf = ttg.local_alloc %a : ({FLOATS}) -> {MEM}
    %r = ttg.local_gather %buf[%i] {{axis = 0 : i32}} : {MEM}, {INTS} -> {FLOATS}"""
    with pytest.raises(Fault, match=r"index 16 at \[3, 4\] is outside of the 16 elements of 'buf' along 0"):
        run(ARGUMENTS, body, [x, at, out])


@pytest.mark.parametrize("kind", ["add", "max", "umin", "xor", "exch"])
def test_atomic_updates_happen_one_after_the_other(kind: str) -> None:
    """Many indices are the same: what an update finds is what the one before it has left."""
    rng = np.random.default_rng(4)
    x, values = (rng.integers(-100, 100, 64).astype(np.int32) for _ in range(2))
    at, mask = rng.integers(0, 9, 64).astype(np.int32), rng.integers(0, 2, 64).astype(np.bool_)
    old, out = np.full(64, -7, np.int32), np.zeros(64, np.int32)
    mem, t = "!ttg.memdesc<64xi32, #s, #smem, mutable>", "tensor<64xi32, #b>"
    names = (("x", "i32"), ("v", "i32"), ("at", "i32"), ("m", "i1"), ("old", "i32"), ("out", "i32"))
    body = "".join(pointers(name, element, 64, f"{name}s") for name, element in names)
    body += "".join(
        f"%{name}l = tt.load %{name}s : tensor<64x!tt.ptr<{element}>, #b>\n    " for name, element in names[:4]
    )
    body += f"""
    %buf = ttg.local_alloc %xl : ({t}) -> {mem}
    %o = ttg.local_atomic_scatter_rmw {kind}, %buf[%atl], %vl, %ml {{axis = 0 : i32}}
      : ({mem}, {t}, {t}, tensor<64xi1, #b>) -> {t}
    %r = ttg.local_load %buf : {mem} -> {t}
    tt.store %olds, %o, %ml : tensor<64x!tt.ptr<i32>, #b>
    tt.store %outs, %r : tensor<64x!tt.ptr<i32>, #b>"""
    run(", ".join(f"%{name}: !tt.ptr<{element}>" for name, element in names), body, [x, values, at, mask, old, out])
    combine = {
        "add": lambda a, b: a + b, "max": max, "umin": lambda a, b: min((a, b), key=lambda n: n % 2**32),
        "xor": lambda a, b: a ^ b, "exch": lambda _a, b: b,
    }[kind]  # fmt: skip
    memory, found = x.tolist(), [-7] * 64
    for index, value, chosen, lane in zip(at.tolist(), values.tolist(), mask.tolist(), range(64), strict=True):
        if chosen:
            found[lane], memory[index] = memory[index], combine(memory[index], value)
    assert (out.tolist(), old.tolist()) == (memory, found)


@pytest.mark.parametrize("waits", [True, False])
def test_a_buffer_must_not_end_while_a_copy_may_write_it(waits: bool) -> None:
    body = pointers("x", "f32", 64, "xs")
    body += """
    %buf = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %t = ttg.async_copy_global_to_local %xs, %buf : tensor<64x!tt.ptr<f32>, #b> -> <64xf32, #s, #smem, mutable>
    %g = ttg.async_commit_group tokens %t"""
    wait = "\n    %w = ttg.async_wait %g {num = 0 : i32}"
    end = "\n    ttg.local_dealloc %buf : !ttg.memdesc<64xf32, #s, #smem, mutable>"
    x = np.zeros(64, np.float32)
    if waits:
        run("%x: !tt.ptr<f32>", body + wait + end, [x])
        return
    with pytest.raises(Fault, match=r"frees 'buf', and nothing orders it after the cp\.async.*by which it is written"):
        run("%x: !tt.ptr<f32>", body + end + wait, [x])
