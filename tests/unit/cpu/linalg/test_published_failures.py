"""Reports of users of other lowerings of Triton to linalg: each gives the numbers of the kernel, or did nothing
wrong in the first place."""

# covers: triton-to-linalg

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.cpu.linalg.side_by_side import compare, lowered, run
from tlx_xdsl.cpu.linalg.access_plan import Grade
from tlx_xdsl.cpu.linalg.access_report import access_facts
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.text.diagnostics import collected_diagnostics


@tlx_xdsl.jit
def size_1_dimension(x, out, n):
    rows, cols = tl.arange(0, 1)[:, None], tl.arange(0, 16)[None, :]
    mask = (rows < n) & (cols < 16)
    tl.store(out + rows * 16 + cols, tl.load(x + rows * 16 + cols, mask=mask, other=-1.0))


@tlx_xdsl.jit
def splat_mask(x, out, n):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + at, mask=tl.full((16,), 1, tl.int1) & (n > 3), other=5.0), mask=n > 0)


@tlx_xdsl.jit
def quotients(x, out, n):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + at // 3 + (at % 4) % 3))


@tlx_xdsl.jit
def selected_offsets(x, out, n):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + tl.where(at < n, at, at + n)))


@tlx_xdsl.jit
def extended_offsets(x, out, n):
    at = tl.arange(0, 16).to(tl.int64) + n
    narrow = at.to(tl.int16)
    tl.store(out + at - n, tl.load(x + narrow))


@tlx_xdsl.jit
def pointer_by_branch(x, out, n):
    at = tl.arange(0, 8)
    # A conditional expression is a select, not a branch.
    if n > 3:  # noqa: SIM108
        pointer = x + at
    else:
        pointer = x + 8 + at
    tl.store(out + at, tl.load(pointer))


@tlx_xdsl.jit
def double_remainder(x, out, n):
    at = ((tl.program_id(0) * 16 + tl.arange(0, 16)) % 21) % 8
    tl.store(out + tl.arange(0, 16), tl.load(x + at))


@tlx_xdsl.jit
def discrete_mask(x, out, n):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + at, mask=(at % 3 == 0) | (at > n), other=0.0))


@tlx_xdsl.jit
def comparisons_of_all_kinds(x, out, n):
    at = tl.arange(0, 16)
    a = tl.load(x + at, mask=at <= n, other=0.0) + tl.load(x + at, mask=n >= at, other=0.0)
    a += tl.load(x + at, mask=at > n, other=0.0) + tl.load(x + at, mask=n < at, other=1.0)
    a += tl.load(x + at, mask=at == n, other=0.0) + tl.load(x + at, mask=at != n, other=2.0)
    tl.store(out + at, a, mask=at.to(tl.uint32) < 12)


@tlx_xdsl.jit
def rows_as_inductor_writes_them(x, out, n):
    """A reduction with masks that are true, a loop over blocks, and a value that is kept for the second pass."""
    row = tl.program_id(0) * 4 + tl.arange(0, 4)[:, None]
    inside = row < n
    base = tl.arange(0, 8)[None, :]
    total = tl.full([4, 8], 0, tl.float32)
    for offset in range(0, 16, 8):
        index = offset + base
        mask = index < 13
        value = tl.load(x + (index + 16 * row), mask & inside, eviction_policy="evict_last", other=0.0)
        total = tl.where(mask & inside, total + value, total)
    mean = tl.sum(total, 1)[:, None] / 13.0
    for offset in range(0, 16, 8):
        index = offset + base
        mask = (index < 13) & inside
        tl.store(out + (index + 16 * row), tl.load(x + (index + 16 * row), mask, other=0.0) - mean, mask)


@tlx_xdsl.jit
def atomics_of_overlapping_lanes(x, out, n):
    at = tl.arange(0, 16)
    tl.atomic_add(out + at % 5, tl.load(x + at), mask=at < n)
    tl.atomic_max(out + 8 + at // 8, tl.load(x + at))


@tlx_xdsl.jit
def offsets_by_branch(x, out, n):
    at = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
    if n > 3:  # noqa: SIM108
        source = at + n
    else:
        source = tl.arange(0, 4)[:, None] + tl.arange(0, 8)[None, :] * 4
    tl.store(out + at, tl.load(x + source))


@tlx_xdsl.jit
def mask_that_a_loop_carries(x, out, n):
    at = tl.arange(0, 16)
    inside = at < n
    total = tl.zeros((16,), tl.float32)
    for step in range(4):
        total += tl.load(x + at + step * 16, mask=inside, other=1.0)
        inside = (at >= step) & (at < n + step)
    tl.store(out + at, total, mask=inside)


KERNELS = [
    offsets_by_branch, mask_that_a_loop_carries,
    size_1_dimension, splat_mask, quotients, selected_offsets, extended_offsets, pointer_by_branch, double_remainder,
    discrete_mask, comparisons_of_all_kinds, rows_as_inductor_writes_them, atomics_of_overlapping_lanes,
]  # fmt: skip


@pytest.mark.parametrize("n", [0, 2, 7])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.source.name)
def test_numbers_are_those_of_the_kernel(kernel, n):
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    module = plain_module(source_of(kernel), Specialization(signature, {}))
    values = [np.random.default_rng(n).standard_normal(128).astype(np.float32), np.full(128, 7, np.float32), n]
    with collected_diagnostics():
        linalg = lowered(module)
    names = list(signature)
    compare(run(module, (2, 1, 1), values, names), run(linalg, (2, 1, 1), values, names), names, 2)


@pytest.mark.parametrize(
    "kernel",
    [size_1_dimension, splat_mask, extended_offsets, pointer_by_branch, offsets_by_branch, mask_that_a_loop_carries,
     rows_as_inductor_writes_them],
    ids=lambda kernel: kernel.source.name,
)  # fmt: skip
def test_every_access_is_structured(kernel):
    module = plain_module(source_of(kernel), Specialization({"x": "*fp32", "out": "*fp32", "n": "i32"}, {}))
    assert {facts.grade for facts in access_facts(module)} == {Grade.STRUCTURED}


@tlx_xdsl.jit
def half_scalars(x, out, scale):
    tl.store(out, tl.load(x) * scale + tl.sum(tl.load(x + tl.arange(0, 8))))


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_scalars_of_16_bits(dtype):
    import ml_dtypes

    held = np.dtype(np.float16 if dtype == "fp16" else ml_dtypes.bfloat16)
    signature = {"x": f"*{dtype}", "out": f"*{dtype}", "scale": dtype}
    module = plain_module(source_of(half_scalars), Specialization(signature, {}))
    values = [np.arange(1, 9).astype(held), np.zeros(1, held), 0.5]
    linalg = lowered(module)
    names = list(signature)
    before, after = (run(each, (1, 1, 1), values, names) for each in (module, linalg))
    compare(before, after, names, 1)
    # The sum is made in f32, and rounded once.
    assert "arith.extf" in str(linalg)
    assert float(after[1][0]) == 36.5


def test_a_mask_of_a_dimension_of_size_1_leaves_nothing():
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    module = plain_module(source_of(size_1_dimension), Specialization(signature, {}))
    # No element of x may be touched: there is none.
    values = [np.zeros(0, np.float32), np.zeros(16, np.float32), 0]
    (_, out, _) = run(lowered(module), (1, 1, 1), values, list(signature))
    np.testing.assert_array_equal(out, -1)
