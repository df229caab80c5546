"""Products of matrices that TMA can't read, in the interpreter and compiled: strides, alignments, splits, copies."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit import volume
from tests.unit.kernels.references import DTYPES, TOLERANCE, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.calls.launching import Launch
from tlx_xdsl.kernels.calls.operands import operand, transposed
from tlx_xdsl.kernels.gemm.dense import gemm_launch
from tlx_xdsl.kernels.gemm.unaligned import copy_launch, placement, unaligned_launches, unaligned_workspace
from tlx_xdsl.kernels.gemm.unaligned_config import Direct, Placement, UnalignedPlan, plan_unaligned
from tlx_xdsl.kernels.gemm.unaligned_device import store_part_by_pointer
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

F16 = np.dtype(np.float16)

PLACES = {
    "rows": lambda m, n, t: np.empty((m, n), t),
    "columns": lambda m, n, t: np.empty((n, m), t).T,
    "slice": lambda m, n, t: np.empty((m, n + 1), t)[:, 1:],
    "strided": lambda m, n, t: np.empty((2 * m, 3 * n), t)[::2, ::3],
    "offset": lambda m, n, t: np.empty(m * n + 1, t)[1:].reshape(m, n),
    "padded": lambda m, n, t: np.empty((m, -(-n // 16) * 16), t)[:, :n],
    "padded columns": lambda m, n, t: np.empty((n, -(-m // 16) * 16), t)[:, :m].T,
}
"""How matrices lie."""


def matrix(rows, columns, place, dtype=F16, seed=None):
    """A random matrix, or without a seed one of NaN; what lies around it is NaN."""
    view = PLACES[place](rows, columns, dtype)
    (view if view.base is None else view.base)[...] = np.nan
    if seed is not None:
        view[...] = np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype)
    return view


def plan_of(a, b, c, microseconds=1e9, multiprocessors=2):
    places = [placement(operand("gemm", "m", each)) for each in (a, b, c)]
    return plan_unaligned(
        a.shape[0], b.shape[1], a.shape[1], *places, multiprocessors, lambda m, n, k: microseconds,
        stores_anywhere=False,
    )  # fmt: skip


def launches(a, b, c, plan):
    operands = operand("gemm", "a", a), operand("gemm", "b", b), operand("gemm", "out", c)
    workspace = np.full(unaligned_workspace(*operands, plan), 0xFF, np.uint8)
    return unaligned_launches(
        *operands, plan, workspace, lambda *each: gemm_launch(*(one.value for one in each), programs=2).parts
    )


def check(a, b, c, plan, **options):
    """Run a plan: C is right, nothing else is written, and the interpreter has nothing to say."""
    around = None if c.base is None else np.isnan(c.base).sum()
    for launch in launches(a, b, c, plan):
        result = launch.interpret(jobs=1, **options)
        assert [each for each in result.warnings if each.severity != "remark"] == []
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert relative_error(c, expected) < TOLERANCE["bf16" if a.dtype != F16 else "fp16"]
    assert around is None or around - np.isnan(c.base).sum() == c.size


@pytest.mark.parametrize("b_place", ["rows", "columns", "strided", "padded", "padded columns"])
@pytest.mark.parametrize("a_place", PLACES if volume.is_full() else ["rows", "padded columns"])
def test_direct_products_read_any_memory(a_place, b_place):
    for shape, c_place in (((70, 17, 131), "slice"), ((5, 72, 136), "columns")):
        m, n, k = shape
        a, b, c = matrix(m, k, a_place, seed=1), matrix(k, n, b_place, seed=2), matrix(m, n, c_place)
        check(a, b, c, plan_of(a, b, c))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 40, 9), (3, 2, 1000)])
def test_sizes(shape, dtype):
    m, n, k = shape
    a, b = matrix(m, k, "offset", DTYPES[dtype], seed=1), matrix(k, n, "offset", DTYPES[dtype], seed=2)
    c = matrix(m, n, "strided", DTYPES[dtype])
    check(a, b, c, plan_of(a, b, c))


@pytest.mark.parametrize("block", [(64, 16, 128), (128, 16, 64), (64, 64, 64)])
def test_programs_along_k(block):
    """The last program has fewer steps, and an incomplete one; their sums go to any C."""
    m, n, k = 67, 20, 5 * block[2] + 3
    for swapped in (False, True):
        rows, columns = (n, m) if swapped else (m, n)
        tiles = -(-rows // block[0]), -(-columns // block[1])
        plan = UnalignedPlan(0.0, Direct(*block, splits=3, steps=2, swapped=swapped, tiles=tiles))
        a, b, c = matrix(m, k, "rows", seed=1), matrix(k, n, "slice", seed=2), matrix(m, n, "strided")
        check(a, b, c, plan)


@pytest.mark.parametrize("policy", POLICIES)
def test_text_for_stock_triton(policy):
    """The text that a GPU's code is made of runs; its loops run once and more."""
    a, b, c = matrix(33, 140, "rows", seed=1), matrix(140, 9, "columns", seed=2), matrix(33, 9, "rows")
    check(a, b, c, plan_of(a, b, c), stage="ttgir", schedule=policy)


@pytest.mark.parametrize("k", [40, 700])
def test_results_of_f32(k):
    """Aligned rows, stored in vectors; with programs along K, too."""
    a, b, c = matrix(20, k, "rows", seed=1), matrix(k, 24, "slice", seed=2), matrix(20, 24, "rows", np.float32)
    check(a, b, c, plan_of(a, b, c))
    assert np.abs(c - a.astype(np.float64) @ b.astype(np.float64)).max() < 1e-4


def test_offsets_of_64_bits():
    a, b, c = matrix(33, 70, "columns", seed=1), matrix(70, 9, "strided", seed=2), matrix(33, 9, "slice")
    for launch in launches(a, b, c, plan_of(a, b, c)):
        assert not launch.constexprs["WIDE"]
        replace(launch, constexprs={**launch.constexprs, "WIDE": True}).interpret(jobs=1)
    assert relative_error(c, a.astype(np.float64) @ b.astype(np.float64)) < TOLERANCE["fp16"]


def test_not_a_number_stays_in_its_row_and_column():
    a, b, c = matrix(66, 130, "slice", seed=1), matrix(130, 17, "columns", seed=2), matrix(66, 17, "rows")
    a[65, 129], b[0, 3] = np.nan, np.inf
    for launch in launches(a, b, c, plan_of(a, b, c)):
        launch.interpret(jobs=1)
    wrong = ~np.isfinite(c)
    assert wrong[65].all()
    assert wrong[:, 3].all()
    assert wrong.sum() == 17 + 66 - 1


# --- copies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a_place", "b_place", "c_place", "copies"),
    [
        ("slice", "padded", "padded", {"left"}),
        ("columns", "strided", "padded columns", {"left", "right"}),
        ("padded", "padded columns", "offset", {"target"}),
        ("padded", "padded", "padded", set()),
    ],
)
def test_what_tma_cannot_read_is_copied(a_place, b_place, c_place, copies):
    m, n, k = 67, 131, 69
    a, b, c = matrix(m, k, a_place, seed=1), matrix(k, n, b_place, seed=2), matrix(m, n, c_place)
    plan = plan_of(a, b, c, microseconds=-100.0)
    assert plan.direct is None
    assert plan.copies == copies
    check(a, b, c, plan)


COPIES = [*[(place, F16) for place in PLACES], ("slice", np.dtype(ml_dtypes.float8_e4m3fn))]


@pytest.mark.parametrize(("place", "dtype"), COPIES)
def test_copies(place, dtype):
    """Both ways; padding becomes zeros."""
    source, copied = matrix(35, 137, place, dtype, seed=1), matrix(35, 137, place, dtype)
    by_columns = "columns" in place
    padded = matrix(48, 137, "columns", dtype) if by_columns else matrix(35, 144, "rows", dtype)
    first, second, third = (operand("copy", "x", each) for each in (source, padded, copied))
    copy_launch(first, second).interpret(jobs=1)
    assert np.array_equal(padded[:35, :137], source)
    assert not (padded[35:] if by_columns else padded[:, 137:]).astype(np.float32).any()
    copy_launch(second, third).interpret(jobs=1)
    assert np.array_equal(copied, source)


# --- the rule -----------------------------------------------------------------------------------------------------


def test_placements():
    found = {place: placement(operand("gemm", "a", matrix(24, 40, place))) for place in PLACES}
    assert found["padded"] == Placement(vector=8, tma=True)
    assert found["padded columns"] == Placement(columns=True, vector=8, tma=True)
    assert found["slice"] == Placement()
    assert found["strided"] == Placement(dense=False)
    # Rows of 39 elements in 40: TMA reads them, vectors would reach beyond the last one.
    assert placement(operand("gemm", "a", np.empty((24, 40), F16)[:, :39])) == Placement(tma=True)
    # The stride of a single row or column means nothing.
    assert placement(operand("gemm", "a", np.empty((1, 39), F16))).tma
    assert placement(operand("gemm", "a", np.empty((39, 1), F16))).tma
    turned = transposed(operand("gemm", "a", np.empty((24, 39), F16)))
    assert placement(turned) == Placement(columns=True)


@pytest.mark.parametrize(
    ("shape", "is_direct"),
    [
        ((1, 4099, 8191), True),
        ((16, 8191, 8191), True),
        ((17, 129, 65), True),
        ((3000, 7, 5000), True),
        ((4099, 4097, 4101), False),
        ((513, 4097, 4101), False),
    ],
)
def test_the_way_follows_the_shape(shape, is_direct):
    m, n, k = shape
    near = Placement()
    plan = plan_unaligned(m, n, k, near, near, near, 132, lambda m, n, k: 8.0 + 2 * m * n * k / 650e6)
    assert (plan.direct is not None) == is_direct
    if plan.direct is not None:
        assert (plan.direct.splits - 1) * plan.direct.steps * plan.direct.block_k < k
        assert plan.direct.splits * plan.direct.steps * plan.direct.block_k >= k


def test_strides_that_are_negative_are_refused():
    with pytest.raises(ValueError, match=r"gemm: argument 'a': expected strides that are not negative, got \(-8, 1\)"):
        placement(operand("gemm", "a", np.empty((8, 8), F16)[::-1]))


# --- C by pointers ------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def stored_by_pointer(
    a_desc, b_desc, c_ptr, stride_m, stride_n, M, N, K, C_COLUMNS: tl.constexpr, C_DENSE: tl.constexpr
):
    """C = A @ B for 128 columns, in two tasks of 64 rows."""
    a = tlx.local_alloc((64, 64), tl.float16, 2)
    b = tlx.local_alloc((64, 128), tl.float16, 1)
    c = tlx.local_alloc((128, 64) if C_COLUMNS else (64, 128), tl.float16, 2)
    full = tlx.alloc_barriers(1)
    empty = tlx.alloc_barriers(1, arrive_count=2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for k in range(tl.cdiv(K, 64)):
                tlx.barrier_wait(empty[0], (k & 1) ^ 1)
                tlx.barrier_expect_bytes(full[0], (128 + 128) * 64 * 2)
                tlx.async_descriptor_load(a_desc, a[0], [0, k * 64], full[0])
                tlx.async_descriptor_load(a_desc, a[1], [64, k * 64], full[0])
                tlx.async_descriptor_load(b_desc, b[0], [k * 64, 0], full[0])
        with tlx.async_task(num_warps=4, replicate=2, registers=232):
            half: tl.constexpr = tlx.async_task_replica_id()
            acc = tl.zeros((64, 128), tl.float32)
            for k in range(tl.cdiv(K, 64)):
                tlx.barrier_wait(full[0], k & 1)
                acc = tlx.async_dot_wait(0, tlx.async_dot(a[half], b[0], acc))
                tlx.barrier_arrive(empty[0])
            part = acc.to(tl.float16)
            store_part_by_pointer(part, c[half], c_ptr, stride_m, stride_n, half * 64, 0, M, N, C_COLUMNS, C_DENSE)


def pointer_launch(place):
    m, n, k = 101, 103, 136
    a, b, c = matrix(m, k, "rows", seed=1), matrix(k, 104, "rows", seed=2), matrix(m, n, place)
    where = operand("gemm", "out", c)
    lies = placement(where)
    arguments = {
        "a_desc": TensorDescriptor(a, [m, k], [k, 1], [64, 64]),
        "b_desc": TensorDescriptor(b, [k, 104], [104, 1], [64, 128]),
        "c_ptr": c,
        "stride_m": where.strides[0],
        "stride_n": where.strides[1],
        **{"M": m, "N": n, "K": k},
    }
    constexprs = {"C_COLUMNS": lies.columns, "C_DENSE": lies.dense}
    return Launch(stored_by_pointer, (1,), arguments, constexprs, None), (a @ b)[:, :n], c


@pytest.mark.parametrize("place", ["slice", "columns", "strided"])
def test_stores_by_pointer(place):
    launch, expected, c = pointer_launch(place)
    around = np.isnan(c.base).sum()
    result = launch.interpret(jobs=1)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    assert relative_error(c, expected.astype(np.float64)) < TOLERANCE["fp16"]
    assert around - np.isnan(c.base).sum() == c.size


# --- compiled -----------------------------------------------------------------------------------------------------


def compiled(launch):
    wanted = Specialization(launch.signature, launch.constexprs, "sm_90a", launch.num_warps)
    return compile_kernel(launch.kernel, wanted)


DIRECT = [((301, 64, 1001), "rows", "columns")]
MORE_DIRECT = [
    ((301, n, k), a_place, b_place)
    for n in (16, 32, 64)
    for k in (1001, 1024)
    for a_place in ("rows", "columns", "padded columns")
    for b_place in ("rows", "columns", "strided")
]


@pytest.mark.backend
@pytest.mark.parametrize(("shape", "a_place", "b_place"), DIRECT + (MORE_DIRECT if volume.is_full() else []))
def test_compiled_direct_products(shape, a_place, b_place):
    """Registers leave room for two CTAs of a multiprocessor and more, and only C changes its layout."""
    m, n, k = shape
    a, b, c = matrix(m, k, a_place), matrix(k, n, b_place), matrix(m, n, "rows")
    result = compiled(launches(a, b, c, plan_of(a, b, c, multiprocessors=132))[0])
    assert result.resources.registers <= 232
    assert (result.resources.spill_store_bytes, result.resources.stack_bytes) == (0, 0)
    assert result.warnings == ()
    assert result.ttgir.count("ttg.convert_layout") <= 1


@pytest.mark.backend
def test_compiled_copies():
    """A thread loads single elements beside its neighbours', and stores 16 bytes."""
    source, target = matrix(64, 201, "slice"), matrix(64, 208, "rows")
    result = compiled(copy_launch(operand("copy", "s", source), operand("copy", "t", target)))
    assert result.resources.registers <= 64
    assert "convert_layout" not in result.ttgir
    assert "st.global.v4" in result.ptx
    assert "sizePerThread = [1, 1], threadsPerWarp = [1, 32]" in result.ttgir


@pytest.mark.backend
def test_compiled_stores_by_pointer():
    result = compiled(pointer_launch("slice")[0])
    assert (result.resources.registers, result.resources.spill_store_bytes) == (168, 0)
    assert "convert_layout" not in result.ttgir
