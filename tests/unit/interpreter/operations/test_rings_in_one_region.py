"""Rings with different numbers of buffers that share memory, one after the other; numpy is the oracle."""

# covers: tlx.memory

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.operations.stages import STAGES, at


@tlx_xdsl.jit
def phases(x_ptr, y_ptr, sums_ptr, FIRST: tl.constexpr, SECOND: tl.constexpr):
    spec = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    a = tlx.local_alloc((32, 32), tl.float32, FIRST, reuse=spec)
    b = tlx.local_alloc((32, 32), tl.float16, SECOND, reuse=spec)
    spec.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.shared))
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    for n in tl.static_range(FIRST):
        tlx.local_store(a[n], tl.load(x_ptr + n * 1024 + i))
    for n in tl.static_range(FIRST):
        tl.store(x_ptr + n * 1024 + i, tlx.local_load(a[n]) + 1)
    for n in tl.static_range(SECOND):
        tlx.local_store(b[n], tl.load(y_ptr + n * 1024 + i))
    for n in tl.static_range(SECOND):
        tl.store(y_ptr + n * 1024 + i, tlx.local_load(b[n]) * 2)
    tl.store(sums_ptr + i, tlx.local_load(b[0]).to(tl.float32) + tlx.local_load(b[SECOND - 1]).to(tl.float32))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("first", "second"), [(2, 3), (3, 2)])
def test_rings_of_two_phases(first, second, stage):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((first, 32, 32)).astype(np.float32)
    y = rng.standard_normal((second, 32, 32)).astype(np.float16)
    found = x.copy(), y.copy(), np.zeros((32, 32), np.float32)
    tlx_xdsl.interpret(phases, 1, *found, first, second, target="sm_90a", jobs=1, **at(stage))
    expected = x + 1, y * 2, y[0].astype(np.float32) + y[-1].astype(np.float32)
    for array, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)
