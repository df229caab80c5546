"""Plain kernels at whose order a naive split into tasks errs: slots of one turn, other programs, prints."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl import CompilationError, TensorDescriptor
from tlx_xdsl.transforms.warp_specialize.refusal import WarpSpecializeRefusal

B = 64
PASSES = ["after:frontend=tlx-ws-form-tasks{depth=1}", "after:frontend=tlx-ws-async-dots"]


@tlx_xdsl.jit
def put(out, value, B: tl.constexpr):
    rows = tl.arange(0, B)
    tl.store(out + rows[:, None] * B + rows[None, :], value)


@tlx_xdsl.jit(noinline=True)
def put_apart(out, value, B: tl.constexpr):
    put(out, value, B)


def around_a_loop(a, b, out, N, B: tl.constexpr):
    """Two loads of one product, with a loop between them that a ring of one slot feeds."""
    acc = tl.zeros((B, B), tl.float32)
    for i in range(N):
        x = a.load([i * B, 0])
        total = tl.zeros((B, B), tl.float32)
        for j in range(3):
            total += b.load([j * B, 0]).to(tl.float32)
        y = b.load([i * B, 0])
        acc = tl.dot(x, y, acc) + total
    put(out, acc, B)


def nested_in_a_turn(a, b, out, N, B: tl.constexpr):
    """Three blocks of one type, all held at a time, some in branches."""
    acc = tl.zeros((B, B), tl.float32)
    for i in range(N):
        x = a.load([i * B, 0])
        if i % 2 == 0:
            y = a.load([(N - 1 - i) * B, 0])
            if i % 4 == 0:
                acc = tl.dot(y, b.load([0, 0]), acc)
            acc = tl.dot(x, y, acc)
        acc = tl.dot(x, x, acc)
    put(out, acc, B)


def either_arm(a, b, out, N, B: tl.constexpr):
    """One slot, which either arm of a branch fills."""
    acc = tl.zeros((B, B), tl.float32)
    for i in range(N):
        if i % 3 == 0:
            x = a.load([i * B, 0])
            acc = tl.dot(x, x, acc)
        else:
            y = b.load([i * B, 0])
            acc = tl.dot(y, tl.trans(y), acc)
    put(out, acc, B)


def long_integers(a, b, out, N, B: tl.constexpr):
    """Turns that i64 counts, downwards, from below zero, by steps that do not divide."""
    acc = tl.zeros((B, B), tl.float32)
    for i in range(tl.cast(N, tl.int64) - 2, tl.cast(-3, tl.int64), -2):
        row = i.to(tl.int32) * B
        acc = tl.dot(a.load([row, 0]), b.load([row, 0]), acc)
    put(out, acc, B)


def swapped_sums(a, b, out, N, B: tl.constexpr):
    """Sums that change places with each turn may not stay in flight across it."""
    u = tl.zeros((B, B), tl.float32)
    v = tl.full((B, B), 1.0, tl.float32)
    for i in range(N):
        x = a.load([i * B, 0])
        u, v = tl.dot(x, tl.trans(x), v), tl.dot(x, b.load([0, 0]), u)
    put(out, u - 2 * v, B)


def carried_past_a_branch(a, b, out, N, B: tl.constexpr):
    """A product in flight that a branch would wait for, were it taken: its slot is given back after the other wait."""
    u = tl.zeros((B, B), tl.float32)
    v = tl.zeros((B, B), tl.float32)
    for i in range(N):
        x = a.load([i * B, 0])
        u = tl.dot(x, b.load([i * B, 0]), u)
        if i % 2 == 0:
            v = tl.dot(x, x, v)
    put(out, u + v, B)


def arguments(n):
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((n * B, B)).astype(np.float16) for _ in range(2))
    return TensorDescriptor.from_tensor(a, [B, B]), TensorDescriptor.from_tensor(b, [B, B])


def result(fn, n, passes):
    out = np.full((B, B), np.nan, np.float32)
    stage = "ttgir" if passes else "frontend"
    tlx_xdsl.jit(fn, passes=passes).interpret((1,), *arguments(5), out, n, B=B, stage=stage, schedule="adversarial")
    return out


IN_ONE_SLOT = [around_a_loop, nested_in_a_turn, either_arm, long_integers, swapped_sums, carried_past_a_branch]


@pytest.mark.parametrize("fn", IN_ONE_SLOT)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_one_slot_is_enough_for_what_the_plain_kernel_does(fn, n):
    np.testing.assert_allclose(result(fn, n, PASSES), result(fn, n, ()), rtol=1e-5, atol=1e-4)


def a_row_around_a_loop(a, b, out, line, N, B: tl.constexpr):
    """A row that is needed before the inner loop, and a block after it: one slot would wait for the loop's end."""
    for i in range(N):
        row = tl.load(line + i * B + tl.arange(0, B))
        total = tl.zeros((B, B), tl.float32)
        for j in range(3):
            total = tl.dot(a.load([j * B, 0]), b.load([j * B, 0]), total + row[None, :])
        out.store([i * B, 0], total + b.load([i * B, 0]).to(tl.float32))


def test_a_row_and_a_block_around_a_loop_come_apart():
    line = np.random.default_rng(1).standard_normal(2 * B).astype(np.float32)
    found = []
    for passes, stage in (((), "frontend"), (PASSES, "ttgir")):
        found.append(np.full((2 * B, B), np.nan, np.float32))
        kernel = tlx_xdsl.jit(a_row_around_a_loop, passes=passes)
        kernel.interpret(
            (1,), *arguments(5), TensorDescriptor.from_tensor(found[-1], [B, B]), line, 2, B=B, stage=stage
        )
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-4)


def around_other_loads(a, b, out, N, B: tl.constexpr):
    """No ring but that of an outer loop: the inner one's block has no load that TMA can do."""
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for i in range(N):
        total = tl.zeros((B, B), tl.float32)
        for j in range(2):
            total += tl.load(out + rows[:, None] * B + (rows[None, :] + j) % B)
        acc = tl.dot(a.load([i * B, 0]), b.load([i * B, 0]), acc) + total * 0
    put(out + B * B, acc, B)


@pytest.mark.parametrize("depth", [0, 2])
def test_a_ring_around_a_loop_has_slots_where_it_is_the_only_one(depth):
    passes = [f"after:frontend=tlx-ws-form-tasks{{depth={depth}}}", PASSES[1]]
    found = []
    for each, stage in (((), "frontend"), (passes, "ttgir")):
        found.append(np.zeros((2, B, B), np.float32))
        kernel = tlx_xdsl.jit(around_other_loads, passes=each)
        kernel.interpret((1,), *arguments(5), found[-1], 5, B=B, stage=stage)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-4)


def after_a_flag(a, b, out, flag, B: tl.constexpr):
    """Loads of what another program has stored before it raised the flag."""
    if tl.program_id(0) == 0:
        tl.atomic_xchg(flag, 1)
    else:
        while tl.atomic_add(flag, 0) == 0:
            pass
        acc = tl.zeros((B, B), tl.float32)
        for i in range(2):
            acc = tl.dot(a.load([i * B, 0]), b.load([i * B, 0]), acc)
        put(out, acc, B)


def volatile_flag(a, b, out, flag, B: tl.constexpr):
    acc = tl.zeros((B, B), tl.float32)
    for i in range(2):
        while tl.load(flag + i, volatile=True) == 0:
            pass
        acc = tl.dot(a.load([i * B, 0]), b.load([i * B, 0]), acc)
    put(out, acc, B)


def calls_unknown_code(a, b, out, flag, B: tl.constexpr):
    acc = tl.zeros((B, B), tl.float32)
    for i in range(2):
        acc = tl.dot(a.load([i * B, 0]), b.load([i * B, 0]), acc)
        put_apart(out, acc, B)


@pytest.mark.parametrize(
    ("fn", "line"),
    [
        (after_a_flag, "while tl.atomic_add(flag, 0) == 0:"),
        (volatile_flag, "while tl.load(flag + i, volatile=True) == 0:"),
        (calls_unknown_code, "put_apart(out, acc, B)"),
    ],
)
def test_what_a_producer_may_not_overtake_is_refused_at_its_line(fn, line):
    flag, out = np.zeros(2, np.int32), np.zeros((B, B), np.float32)
    with pytest.raises(CompilationError) as raised:
        tlx_xdsl.jit(fn, passes=PASSES).compile(*arguments(2), out, flag, B=B)
    assert isinstance(raised.value, WarpSpecializeRefusal)
    assert raised.value.source_line.strip() == line


def says_things(a, b, out, N, B: tl.constexpr):
    acc = tl.zeros((B, B), tl.float32)
    for i in range(N):
        acc = tl.dot(a.load([i * B, 0]), b.load([i * B, 0]), acc)
        tl.device_print("turn", i)
        tl.device_assert(i < 2, "two turns")
    put(out, acc, B)


def test_prints_and_assertions_stay(capfd):
    out = np.zeros((B, B), np.float32)
    kernel = tlx_xdsl.jit(says_things, passes=PASSES)
    kernel.interpret((1,), *arguments(2), out, 2, B=B, stage="ttgir")
    assert capfd.readouterr().out.count("turn: 1") == 1
    with pytest.raises(CompilationError, match="two turns"):
        kernel.interpret((1,), *arguments(3), out, 3, B=B, stage="ttgir")


def nest(a, b, out, N, B: tl.constexpr):
    """The slot that an inner loop gives back last, at a place that counts the turns of all."""
    for tile in range(tl.program_id(0), N, tl.num_programs(0)):
        acc = tl.zeros((B, B), tl.float32)
        for i in range(tl.cdiv(N, 2)):
            acc = tl.dot(a.load([i * B, 0]), b.load([i * B, 0]), acc)
        put(out + tile * B * B, acc, B)


def test_counts_over_a_nest_are_proved():
    out = np.zeros((5, B, B), np.float32)
    kernel = tlx_xdsl.jit(nest, passes=["after:frontend=tlx-ws-form-tasks{depth=2}", PASSES[1]])
    report = kernel.check((2,), *arguments(5), out, 5, B=B, prove=True, stages=("ttgir",))
    assert not report.findings
    assert [proof.answer for proof in report.proofs] == ["proved"]
