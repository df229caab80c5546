"""The picture of what ranks do beside each other: `python -m docs.site.ranks` draws it. No GPU is needed."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np

from tlx_xdsl import SimulatedRanks
from tlx_xdsl.kernels.comm import products
from tlx_xdsl.runtime.clock.schedule import schedule
from tlx_xdsl.timing.show.picture import ranks_picture
from tlx_xdsl.timing.timeline import Timeline

from .ring import IMAGES

PICTURE = "all-gather-gemm.svg"
RANKS = 2
ROWS = {
    "partition 2": "copier 1",
    "partition 3": "copier 2",
    "partition 4": "copier 3",
    "partition 1": "producer",
    "the default task": "consumer",
    "wgmmas of the default task": "tensor core",
}
"""The tracks of a rank that the picture has, by the names that they have there."""


def timeline() -> Timeline:
    """Return what one program of each rank does for 128 rows of A on each, K of 64 and N of 256."""
    shapes = (128, 64), (64, 256)
    a, b = ([np.zeros(shape, ml_dtypes.bfloat16) for _ in range(RANKS)] for shape in shapes)
    (launch,) = products.ALL_GATHER_GEMM.prepare((a, b, None), (SimulatedRanks(RANKS), None)).launches
    named = {**launch.arguments, **launch.constexprs, "num_warps": launch.num_warps, "ranks": RANKS}
    return schedule(launch.kernel, 1, (), named, None)


def picture() -> str:
    """Return the picture."""
    return ranks_picture(timeline(), "all_gather_gemm on two simulated ranks", ROWS)


def main() -> int:
    """Write the file; returns the exit status."""
    (IMAGES / PICTURE).write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
