"""Producer and consumer of kernels with nested loops, loops in sequence, branches and `while`: equal, and proved."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl import CompilationError, TensorDescriptor
from tlx_xdsl.transforms.warp_specialize.refusal import WarpSpecializeRefusal

PASSES = ["after:frontend=tlx-ws-form-tasks", "after:frontend=tlx-ws-prefetch-loads"]
DESCRIBED = TensorDescriptor.from_tensor


def persistent(a_desc, b_desc, c_desc, M, N, K, BLOCK: tl.constexpr):
    tiles = tl.cdiv(N, BLOCK)
    for tile in range(tl.program_id(0), tl.cdiv(M, BLOCK) * tiles, tl.num_programs(0)):
        m = tile // tiles * BLOCK
        n = tile % tiles * BLOCK
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, K, 32):
            acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
        c_desc.store([m, n], acc.to(tl.float16))


def two_loops(a_desc, b_desc, c_desc, M, N, K, BLOCK: tl.constexpr):
    """The second loop begins in the middle of the ring, or at its start where the first one does nothing."""
    m = tl.program_id(0) * BLOCK
    n = tl.program_id(1) * BLOCK
    middle = m % K
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, middle, 32):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    acc *= 2
    for k in range(middle, K, 32):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc.to(tl.float16))


def branches(a_desc, b_desc, c_desc, M, N, K, BLOCK: tl.constexpr):
    """A `while`, and loads that only some turns do, in two places of one turn."""
    m = tl.program_id(0) * BLOCK
    n = tl.program_id(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    k = 0
    while k < K:
        if k % 64 == 0:
            acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
        else:
            acc += a_desc.load([m, k]).to(tl.float32).sum(1)[:, None]
        k += 32
    for k in range(0, K, 32):
        if k % 64 == 32:
            acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc.to(tl.float16))


def scaled(a_desc, b_desc, c_desc, s_ptr, M, N, K, BLOCK: tl.constexpr):
    """A column of scales for each block of K, which comes a turn earlier."""
    m = tl.program_id(0) * BLOCK
    n = tl.program_id(1) * BLOCK
    rows = m + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, 32):
        s = tl.load(s_ptr + rows * tl.cdiv(K, 32) + k // 32, mask=rows < M, other=0.0)
        acc += tl.dot(a_desc.load([m, k]), b_desc.load([k, n])) * s[:, None]
    c_desc.store([m, n], acc.to(tl.float16))


def problem(fn, passes=PASSES):
    """The kernel, its grid, its arguments, and its result."""
    m, n, k = 200, 104, 128
    random = np.random.default_rng(0)
    a, b = random.standard_normal((m, k)).astype(np.float16), random.standard_normal((k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    scales = [random.standard_normal((m, k // 32)).astype(np.float32)] if fn is scaled else []
    grid = (3,) if fn is persistent else (4, 2)
    args = DESCRIBED(a, [64, 32]), DESCRIBED(b, [32, 64]), DESCRIBED(c, [64, 64]), *scales, m, n, k
    return tlx_xdsl.jit(fn, passes=passes), grid, args, c


@pytest.mark.parametrize("fn", [persistent, two_loops, branches, scaled])
def test_the_tasks_compute_what_the_plain_kernel_does(fn):
    plain, grid, args, expected = problem(fn, ())
    plain.interpret(grid, *args, BLOCK=64)
    assert not np.isnan(expected).any()
    kernel, grid, args, found = problem(fn)
    kernel.interpret(grid, *args, BLOCK=64, stage="ttgir")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("fn", [persistent, two_loops, branches, scaled])
def test_the_tasks_are_proved(fn):
    kernel, grid, args, _ = problem(fn)
    report = kernel.check(grid, *args, BLOCK=64, prove=True, stages=("frontend", "ttgir"))
    assert not report.findings
    assert [proof.answer for proof in report.proofs] == ["proved"]


def walks(a_desc, c_desc, p_ptr, BLOCK: tl.constexpr):
    """The next row is found in the block before."""
    row = 0
    for _ in range(4):
        block = a_desc.load([row, 0])
        row = tl.max(tl.max(block, 1), 0).to(tl.int32)
    tl.store(p_ptr, row)


def test_a_walk_through_memory_is_refused_at_its_load():
    a, c = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16)
    kernel = tlx_xdsl.jit(walks, passes=PASSES)
    with pytest.raises(CompilationError, match="depends on what the kernel computes from loaded blocks") as raised:
        kernel.compile(DESCRIBED(a, [64, 64]), DESCRIBED(c, [64, 64]), np.zeros(1, np.int32), BLOCK=64)
    assert raised.value.source_line.strip() == "block = a_desc.load([row, 0])"
    assert issubclass(WarpSpecializeRefusal, CompilationError)
