"""Reads of uninitialized memory: a fault, or with `unwritten="warn"` a warning and poison."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.gallery.synchronisation import example_runs
from tests.gallery.synchronisation.rescaled_attention import attention
from tests.unit.interpreter.reports import at, expect_fault, fault, run
from tests.unit.volume import is_full
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.interpreter.workers import can_fork
from tlx_xdsl.runtime.simulate.options import Options

pytestmark = pytest.mark.quick

BLACKWELL = {"target": "sm_100a"}
STAGES = ["frontend", "aliased", "ttgir"] if is_full() else ["frontend", "ttgir"]


def reported_once(result, place: str, name: str):
    """The only warning of a run, which must be at that place and about that buffer."""
    (warning,) = (each for each in result.warnings if each.severity == "warning")
    assert f"{warning.location}" == place
    assert warning.message.startswith(f"'{name}' is read before it is written, and reads as ")
    return warning


# An attention that rescales what is not there ---------------------------------------------------------------------


class Attention:
    """Operands of an attention, and the expected result."""

    def __init__(self, blocks: int = 3, programs: int = 2):
        rng = np.random.default_rng(0)
        self.length, self.programs = 64 * blocks, programs
        self.q = rng.standard_normal((128 * programs, 64)).astype(np.float16)
        self.k, self.v = (rng.standard_normal((self.length, 64)).astype(np.float16) for _ in range(2))
        scores = self.q.astype(np.float64) @ self.k.T.astype(np.float64) / 8
        weights = np.exp(scores - scores.max(1, keepdims=True))
        self.expected = weights / weights.sum(1, keepdims=True) @ self.v.astype(np.float64)
        self.out = np.zeros((128 * programs, 64), np.float32)
        tile = tlx_xdsl.TensorDescriptor.from_tensor
        descs = (tile(self.q, [128, 64]), tile(self.k, [64, 64]), tile(self.v, [64, 64]))
        self.arguments = (*descs, self.out, self.length, 0.125, 128, 64, 64)

    def run(self, *, adds: bool = False, jobs: int = 1, **options):
        return tlx_xdsl.interpret(attention, self.programs, *self.arguments, adds, jobs=jobs, **BLACKWELL, **options)

    @property
    def error(self) -> float:
        return float(np.abs(self.out - self.expected).max())


@pytest.mark.parametrize("stage", STAGES)
def test_by_default_it_is_a_fault(stage):
    report = expect_fault(
        attention, "'o[0]' is read before it is written: 8192 of its 8192 elements, element [0, 0] first",
        *Attention().arguments, mark="reads", stage=stage, **BLACKWELL,
    )  # fmt: skip
    written, by_product, hint, *story, program = report.notes
    assert written.startswith(f"'o' is written at {at(attention, 'writes')}, the default task: tlx.local_store(o[0]")
    assert ", partition 1: tlx.async_dot(p[0], v[0], o[0]" in by_product
    assert "--unwritten warn" in hint
    assert story[0].startswith("the default task has ")
    assert program.startswith("in program (0, 0, 0)")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("schedule", POLICIES)
def test_where_it_is_a_warning_the_first_product_ignores_it(stage, schedule):
    case = Attention()
    warning = reported_once(
        case.run(unwritten="warn", stage=stage, schedule=schedule, seed=1), at(attention, "reads"), "o"
    )
    assert case.error < 2e-3
    assert warning.message.endswith(" NaN")
    of, *written, program = warning.notes
    assert of == "of 'o[0]' that is 8192 of its 8192 elements, element [0, 0] first"
    assert written[0].startswith(f"'o' is written at {at(attention, 'writes')}, the default task")
    assert program.startswith(f"in program (0, 0, 0), schedule '{schedule}'")


@pytest.mark.skipif(not can_fork(), reason="processes can't be forked here")
def test_several_processes_report_it_once():
    case = Attention(blocks=1, programs=8)
    result = case.run(unwritten="warn", jobs=2)
    assert result.jobs == 2
    reported_once(result, at(attention, "reads"), "o")
    assert case.error < 2e-3


def test_what_comes_of_it_shows():
    """The first product adds to uninitialized memory: one warning, since that was multiplied and written back."""
    case = Attention()
    reported_once(case.run(adds=True, unwritten="warn"), at(attention, "reads"), "o")
    assert np.isnan(case.out).all()


def test_a_hopper_attention_keeps_its_output_in_registers():
    case = example_runs.CASES["ws-attention-causal"]()
    assert not case.run(unwritten="warn", jobs=1).warnings


# Accumulators -----------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def scaled_products(a_ptr, b_ptr, c_ptr, TILES: tl.constexpr, ADDS: tl.constexpr):
    """C = A @ B for each tile, in an accumulator of its own, which is halved before."""
    a, b = tlx.local_alloc((128, 64), tl.float16, 1), tlx.local_alloc((64, 64), tl.float16, 1)
    acc = tlx.local_alloc((128, 64), tl.float32, TILES, tlx.storage_kind.tmem)
    rows, columns = tl.arange(0, 128)[:, None], tl.arange(0, 64)[None, :]
    tlx.local_store(a[0], tl.load(a_ptr + rows * 64 + columns))
    tlx.local_store(b[0], tl.load(b_ptr + tl.arange(0, 64)[:, None] * 64 + columns))
    tlx.fence_async_shared()
    for tile in range(TILES):
        tlx.local_store(acc[tile], tlx.local_load(acc[tile]) * 0.5)  # here
        tlx.async_dot(a[0], b[0], acc[tile], use_acc=ADDS)
        tl.store(c_ptr + (tile * 128 + rows) * 64 + columns, tlx.local_load(acc[tile]))


@pytest.mark.parametrize("adds", [False, True])
def test_each_line_is_reported_once(adds):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal((64, 64)).astype(np.float16)
    c = np.zeros((3, 128, 64), np.float32)
    arguments = (a, b, c, 3, adds)
    expect_fault(scaled_products, "'acc[0]' is read", *arguments, text="tlx.local_load", **BLACKWELL)
    result = run(scaled_products, *arguments, unwritten="warn", **BLACKWELL)
    reported_once(result, at(scaled_products, text="tlx.local_load"), "acc")
    if adds:
        assert np.isnan(c).all()
    else:
        np.testing.assert_allclose(c, np.broadcast_to(a.astype(np.float32) @ b.astype(np.float32), c.shape), atol=1e-4)


@tlx_xdsl.jit
def product_of_nothing(b_ptr, c_ptr):
    """A is not written, but the product reads it."""
    a, b = tlx.local_alloc((128, 64), tl.float16, 1), tlx.local_alloc((64, 64), tl.float16, 1)
    acc = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    columns = tl.arange(0, 64)[None, :]
    tlx.local_store(b[0], tl.load(b_ptr + tl.arange(0, 64)[:, None] * 64 + columns))
    tlx.fence_async_shared()
    tlx.async_dot(a[0], b[0], acc[0], use_acc=False)  # here
    tl.store(c_ptr + tl.arange(0, 128)[:, None] * 64 + columns, tlx.local_load(acc[0]))


def test_an_uninitialized_operand():
    c = np.zeros((128, 64), np.float32)
    arguments = (np.ones((64, 64), np.float16), c)
    expect_fault(product_of_nothing, "'a[0]' is read before it is written", *arguments, **BLACKWELL)
    reported_once(run(product_of_nothing, *arguments, unwritten="warn", **BLACKWELL), at(product_of_nothing), "a")
    assert np.isnan(c).all()


# Shared memory ----------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def differences(x_ptr, out_ptr, LINES: tl.constexpr, DTYPE: tl.constexpr, CHOOSES: tl.constexpr):
    """Each line less the one before, which is in shared memory; there is none before the first."""
    last = tlx.local_alloc((64,), DTYPE, 1)
    columns = tl.arange(0, 64)
    for line in range(LINES):
        value = tl.load(x_ptr + line * 64 + columns)
        before = tlx.local_load(last[0])  # here
        if CHOOSES:
            before = tl.where(line > 0, before, tl.zeros_like(before))
        tlx.local_store(last[0], value)
        tl.store(out_ptr + line * 64 + columns, value - before)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("chooses", [False, True])
def test_shared_memory(dtype, chooses):
    x = np.arange(256, dtype=dtype).reshape(4, 64)
    out = np.zeros_like(x)
    arguments = (x, out, 4, getattr(tl, np.dtype(dtype).name), chooses)
    expect_fault(differences, "'last[0]' is read before it is written", *arguments)
    warning = reported_once(run(differences, *arguments, unwritten="warn"), at(differences), "last")
    np.testing.assert_array_equal(out[1:], np.diff(x, axis=0))
    if chooses:
        np.testing.assert_array_equal(out[0], x[0])
    elif dtype == np.float32:
        assert np.isnan(out[0]).all()
    else:
        assert warning.message.endswith("a number whose every bit is set")
        np.testing.assert_array_equal(out[0], x[0] + 1)


@tlx_xdsl.jit
def parts(out_ptr, DTYPE: tl.constexpr, WRITTEN: tl.constexpr, FIRST: tl.constexpr):
    """Write some bytes of 16 elements, as bytes: `WRITTEN` of them from `FIRST` on."""
    values = tlx.local_alloc((16,), DTYPE, 1)
    raw = tlx.local_reinterpret(values[0], tl.uint8, [16 * tlx.size_of(DTYPE)])
    tlx.local_store(tlx.local_slice(raw, [FIRST], [WRITTEN]), tl.zeros((WRITTEN,), tl.uint8))
    tl.store(out_ptr + tl.arange(0, 16), tlx.local_load(values[0]).to(tl.float32))


@pytest.mark.parametrize("dtype", [tl.float32, tl.float16, tl.bfloat16, tl.float8e4nv, tl.float8e5])
def test_each_element_counts_for_itself(dtype):
    size = dtype.primitive_bitwidth // 8
    out = np.zeros(16, np.float32)
    run(parts, out, dtype, 8 * size, 0, unwritten="warn")
    np.testing.assert_array_equal(np.isnan(out), np.arange(16) >= 8)


@pytest.mark.parametrize("first", [0, 2])
def test_an_element_is_uninitialized_where_one_byte_is(first):
    out = np.zeros(16, np.float32)
    # Of element 0 two bytes are written. With bytes 2 and 3 written, the bits alone are no NaN.
    run(parts, out, tl.float32, 2, first, unwritten="warn")
    assert np.isnan(out).all()
    # With bytes 0 and 1 written, the bits alone are not those of -1.
    run(parts, out, tl.int32, 2, first, unwritten="warn")
    np.testing.assert_array_equal(out, np.full(16, -1))


@tlx_xdsl.jit
def bulk_stored(out_ptr, WRITTEN: tl.constexpr):
    values = tlx.local_alloc((2, 32), tl.float32, 1)
    tlx.local_store(tlx.local_slice(values[0], [0, 0], [WRITTEN, 32]), tl.zeros((WRITTEN, 32), tl.float32))
    tlx.fence_async_shared()
    tlx.async_store(out_ptr, values[0], 256)  # here
    tlx.async_descriptor_store_wait(0)


def test_a_copy_of_bytes():
    out = np.zeros((2, 32), np.float32)
    assert not run(bulk_stored, out, 2, unwritten="warn").warnings
    warning = reported_once(run(bulk_stored, out, 1, unwritten="warn"), at(bulk_stored), "values")
    assert warning.notes[0] == "of 'values[0]' that is 128 of 256 bytes"
    np.testing.assert_array_equal(np.isnan(out), [[False] * 32, [True] * 32])


# What stays a fault -----------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def overwritten(out_ptr, ALL: tl.constexpr):
    storage = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    a = tlx.local_alloc((64,), tl.float32, 1, reuse=storage)
    b = tlx.local_alloc((16,), tl.float32, 1, reuse=storage)
    storage.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.shared))
    if ALL:
        tlx.local_store(a[0], tl.zeros((64,), tl.float32))
    tlx.local_store(b[0], tl.zeros((16,), tl.float32))
    tl.store(out_ptr + tl.arange(0, 64), tlx.local_load(a[0]))


@pytest.mark.parametrize("all_", [True, False])
def test_what_another_buffer_has_overwritten(all_):
    """The rest of the buffer may be uninitialized."""
    report = fault(overwritten, np.zeros(64, np.float32), all_, unwritten="warn")
    assert "is read, but 'b', which lies at the same place, has overwritten it: 16 of its 64 elements" in report.message


@tlx_xdsl.jit
def unordered(out_ptr):
    values = tlx.local_alloc((64,), tl.float32, 1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(out_ptr + tl.arange(0, 64), tlx.local_load(values[0]))
        with tlx.async_task(num_warps=4):
            tlx.local_store(values[0], tl.zeros((64,), tl.float32))


def test_a_race():
    report = fault(unordered, np.zeros(64, np.float32), unwritten="warn")
    assert "nothing orders it after the default task" in report.message


@tlx_xdsl.jit
def answer_without_a_question(out_ptr):
    response = tlx._alloc_clc_responses(1)
    tl.store(out_ptr, tlx._clc_query(response[0]))


def test_a_response_of_cluster_launch_control():
    """All bits set would be a cluster."""
    report = fault(answer_without_a_question, np.zeros(1, np.int32), unwritten="warn", **BLACKWELL)
    assert "'response[0]' is read before it is written" in report.message


# The option -------------------------------------------------------------------------------------------------------


def test_there_is_no_other_choice():
    with pytest.raises(ValueError, match="unwritten must be error or warn or poison, found 'ignore'"):
        Options(unwritten="ignore")
