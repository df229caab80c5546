"""Products of pairs of CTAs with A in tensor memory, and with 64 rows in each CTA, as they are compiled."""

# covers: tlx.mma

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.scheduler import POLICIES


@tlx_xdsl.jit
def pair_product(a_desc, b_desc, c_ptr, ROWS: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FORM: tl.constexpr):
    rank = tlx.cluster_cta_rank()
    a = tlx.local_alloc((ROWS, K), tl.float16, 1)
    b = tlx.local_alloc((K, N // 2), tl.float16, 1)
    acc = tlx.local_alloc((ROWS, N), tl.float32, 1, tlx.storage_kind.tmem)
    full, done = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    tlx.cluster_barrier()
    tlx.barrier_expect_bytes(full[0], (ROWS * K + K * N // 2) * 2)
    tlx.async_descriptor_load(a_desc, a[0], [rank * ROWS, 0], full[0])
    tlx.async_descriptor_load(b_desc, b[0], [0, rank * N // 2], full[0])
    tlx.barrier_wait(full[0], 0)
    if FORM == "a in tensor memory":
        left = tlx.local_alloc((ROWS, K), tl.float16, 1, tlx.storage_kind.tmem)
        tlx.local_store(left[0], tlx.local_load(a[0]))
        tlx.cluster_barrier()
        tlx.async_dot(left[0], b[0], acc[0], use_acc=False, pred=rank == 0, mBarriers=[done[0]], two_ctas=True)
    elif FORM == "synchronous":
        tlx.cluster_barrier()
        tlx.async_dot(a[0], b[0], acc[0], use_acc=False, two_ctas=True)
        tlx.async_dot(a[0], b[0], acc[0], two_ctas=True)
        if rank == 0:
            tlx.barrier_arrive(done[0])
            tlx.barrier_arrive(done[0], 1, remote_cta_rank=1)
    else:
        tlx.cluster_barrier()
        tlx.async_dot(a[0], b[0], acc[0], use_acc=False, pred=rank == 0, mBarriers=[done[0]], two_ctas=True)
    tlx.barrier_wait(done[0], 0)
    c = tlx.local_load(acc[0])
    rows, columns = rank * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, N)[None, :]
    tl.store(c_ptr + rows * N + columns, c)
    tlx.cluster_barrier()


def arguments(rows, n, k):
    rng = np.random.default_rng(1)
    a = rng.integers(-4, 5, (2 * rows, k)).astype(np.float16)
    b = rng.integers(-4, 5, (k, n)).astype(np.float16)
    return a, b, np.zeros((2 * rows, n), np.float32)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(("rows", "form"), [(64, ""), (128, "a in tensor memory"), (128, ""), (128, "synchronous")])
def test_pair_forms(rows, form, schedule):
    n, k = 128, 64
    a, b, c = arguments(rows, n, k)
    tlx_xdsl.interpret(
        pair_product, 2, tlx_xdsl.TensorDescriptor.from_tensor(a, [rows, k]),
        tlx_xdsl.TensorDescriptor.from_tensor(b, [k, n // 2]), c, rows, n, k, form,
        target="sm_100a", stage="ttgir", cluster=(2, 1, 1), schedule=schedule,
    )  # fmt: skip
    times = 2 if form == "synchronous" else 1
    np.testing.assert_array_equal(c, times * (a.astype(np.float32) @ b.astype(np.float32)))
