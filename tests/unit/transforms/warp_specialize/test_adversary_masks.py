"""Masks of loops that a naive split misplaces: bounds that each turn loads, places that are not linear in turns."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl import TensorDescriptor

B = 64
PASSES = [f"after:frontend=tlx-ws-{name}" for name in ("form-tasks{depth=2}", "split-masks", "async-dots")]


def masked(a, out, ends, N, CASE: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for i in range(N):
        x = a.load([i * B, 0])
        s = tl.dot(x, x)
        columns = i * B + rows[None, :]
        if CASE == "a bound of each turn":
            s = tl.where(columns < tl.load(ends + i), s, 1.0)
        elif CASE == "two masks":
            s = tl.where((columns < 100) & (i * 7 + rows[:, None] <= 80), s, 1.0)
        elif CASE == "falling":
            s = tl.where(300 - columns > 10, s, 1.0)
        elif CASE == "by twos":
            s = tl.where(columns + i // 2 * B < 200, s, 1.0)
        acc = tl.dot(x, s.to(tl.float16), acc * 0.5)
    tl.store(out + rows[:, None] * B + rows[None, :], acc)


def result(case, n, passes):
    random = np.random.default_rng(0)
    a, out = (random.standard_normal((5 * B, B)) / 8).astype(np.float16), np.full((B, B), np.nan, np.float32)
    args = TensorDescriptor.from_tensor(a, [B, B]), out, np.array([64, 64, 140, 999, 0], np.int32), n
    stage = "ttgir" if passes else "frontend"
    tlx_xdsl.jit(masked, passes=passes).interpret((1,), *args, CASE=case, B=B, stage=stage)
    return out


@pytest.mark.parametrize("case", ["a bound of each turn", "two masks", "falling", "by twos"])
def test_masks_hide_what_they_did(case):
    for n in (0, 1, 5):
        np.testing.assert_allclose(result(case, n, PASSES), result(case, n, ()), rtol=1e-3, atol=1e-4)
