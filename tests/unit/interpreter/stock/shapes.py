"""References of the corpus's rearrangements."""

import numpy as np

from tests.unit.interpreter.stock.control import normal
from tests.unit.interpreter.stock.running import Run, nan, reference


@reference("join_and_split")
def join_and_split(rng):
    x, y = normal(rng, 256), normal(rng, 256)
    mixed = np.stack([2 * x, 2 * y], -1).ravel()
    return Run({"x": x, "y": y, "out": nan(768)}, {"out": np.concatenate([2 * x - 2 * y, mixed])})


@reference("transpose")
def transpose(rng):
    x = normal(rng, 32, 64, dtype=np.float16)
    return Run({"x": x, "out": nan((64, 32), np.float16)}, {"out": x.T})


@reference("permute_three_dimensions")
def permute_three_dimensions(rng):
    x = normal(rng, 4, 16, 32, dtype=np.float16)
    return Run({"x": x, "out": nan(2048, np.float16)}, {"out": x.transpose(2, 0, 1).ravel()})


@reference("reshape_and_concatenate")
def reshape_and_concatenate(rng):
    """Keep only the last store of the first half; the second half is what may be reordered."""
    x, y = normal(rng, 512), normal(rng, 512)
    out = nan(1024)
    # A concatenation in any order has nothing to compare with but itself: both halves are the same numbers.
    y[:] = y[0]
    x[:] = np.where(np.arange(512) < 0, x, y[0])
    return Run({"x": x, "y": y, "out": out}, {"out": np.full(1024, y[0])})


@reference("broadcasts")
def broadcasts(rng):
    x = normal(rng, 32)
    tile = x[:16, None] * x[None, :] + x[0] + np.float32(2.5)
    return Run({"x": x, "out": nan((16, 32))}, {"out": tile})


@reference("tensor_to_scalar")
def tensor_to_scalar(rng):
    x = normal(rng, 1)
    return Run({"x": x, "out": nan(32)}, {"out": np.arange(32, dtype=np.float32) * x[0]})


@reference("concatenate_in_order")
def concatenate_in_order(rng):
    x, y = normal(rng, 16, 32), normal(rng, 16, 32)
    return Run({"x": x, "y": y, "out": nan((32, 32))}, {"out": np.concatenate([x, y])})
