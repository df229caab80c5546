"""References of the corpus's reductions and scans, of sorting, histograms and normalisation."""

import numpy as np

from tests.unit.interpreter.stock.control import normal
from tests.unit.interpreter.stock.running import Expected, Run, nan, reference


@reference("softmax")
def softmax(rng):
    rows, cols, stride = 3, 777, 784
    x = normal(rng, rows, stride)
    out = nan((rows, stride))
    expected = out.astype(np.float64)
    powers = np.exp(x[:, :cols].astype(np.float64))
    expected[:, :cols] = powers / powers.sum(1, keepdims=True)
    return Run({"x": x, "out": out, "stride": stride, "cols": cols}, {"out": Expected(expected, 1e-5)}, (rows,))


@reference("layernorm")
def layernorm(rng):
    rows, cols, eps = 3, 600, 1e-5
    x, w, b = (normal(rng, *shape, dtype=np.float16) for shape in ((rows, cols), (cols,), (cols,)))
    wide = x.astype(np.float64)
    mean = wide.mean(1)
    expected = (wide - mean[:, None]) / np.sqrt(wide.var(1) + eps)[:, None] * w + b
    return Run(
        {"x": x, "w": w, "b": b, "out": nan((rows, cols), np.float16), "mean": nan(rows), "cols": cols, "eps": eps},
        {"out": Expected(expected, 1e-3, 1), "mean": Expected(mean, 1e-5, 1)},
        (rows,),
    )


@reference("argmax_and_argmin")
def argmax_and_argmin(rng):
    m, n = 32, 128
    # Few different numbers, so that ties must be broken; but of the lowest, where any may be taken, there is one.
    x = rng.integers(-5, 5, (m, n)).astype(np.float32)
    x[np.arange(m), rng.integers(0, n, m)] = -9
    top, bottom = x.max(1), x.min(1)
    first = x.argmax(1)
    where = (first - x.argmin(1)).astype(np.int32)
    where[0] = x.argmin(0).argmax()
    arguments = {"x": x, "value": nan(m), "where": np.zeros(m, np.int32)}
    return Run(arguments, {"value": top - bottom, "where": where})


@reference("moments")
def moments(rng):
    x = normal(rng, 16, 64)
    wide = x.astype(np.float64)
    expected = {"mean": Expected(wide.mean(1), 1e-5, 1), "variance": Expected(wide.var(1), 1e-5)}
    return Run({"x": x, "mean": nan(16), "variance": nan(16)}, expected)


@reference("reductions_of_all_kinds")
def reductions_of_all_kinds(rng):
    m, n = 16, 32
    x, words = normal(rng, m, n), rng.integers(-(2**31), 2**31, (m, n)).astype(np.int32)
    expected = nan(m).astype(np.float64)
    expected[:] = np.bitwise_or.reduce(words, 1).astype(np.float32)
    arguments = {"x": x, "i": words, "out": nan(m)}
    # The last store covers the others.
    return Run(arguments, {"out": expected})


@reference("scans")
def scans(rng):
    m, n = 32, 64
    x = normal(rng, m, n)
    y = np.exp(0.1 * normal(rng, m, n)).astype(np.float32)
    a, b = x.astype(np.float64), y.astype(np.float64)
    total = np.cumsum(a, 1) + np.cumsum(a[::-1], 0)[::-1] + np.cumprod(b, 1) + np.cumprod(b, 0)
    scale, shift = np.ones(m), np.zeros(m)
    for k in range(n - 1, -1, -1):
        scale, shift = scale * a[:, k], shift * a[:, k] + b[:, k]
        total[:, k] += scale + shift
    return Run({"x": x, "y": y, "out": nan((m, n))}, {"out": Expected(total, 1e-5, 10)})


@reference("histogram")
def histogram(rng):
    x = rng.integers(0, 64, 1024).astype(np.int32)
    out = rng.integers(0, 9, 64).astype(np.int32)
    expected = out + np.bincount(x, minlength=64) + np.bincount(x[:1000], minlength=64)
    return Run({"x": x, "out": out}, {"out": expected.astype(np.int32)})


@reference("sort_and_top")
def sort_and_top(rng):
    x = normal(rng, 4, 16)
    down = -np.sort(-x, 1)
    return Run({"x": x, "out": nan((4, 16)), "best": nan((4, 4))}, {"out": down, "best": down[:, :4]})
