"""The shapes of the GEMM benchmarks: sixty to be judged by, others to fit the model to, and some with names.

`acceptance()` and `fitting()` draw from the same kinds of problems with different seeds, and have no (m, n, k) in
common: what is fitted never sees what is judged. Nothing but `random.random` is used, whose numbers Python keeps the
same for a seed; a test has their hash.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

LAYOUTS = ("NN", "NT", "TN")
"""A and B; N: by rows, T: by columns, as torch's `.T` leaves them."""

MOST_FLOPS = 1.2e12
MOST_BYTES = 8 << 30

ACCEPTANCE_SEED, FITTING_SEED, ALIGNED_SEED = 22, 1106, 50
COUNT = 60


@dataclass(frozen=True)
class Shape:
    """A problem: C (m, n) = A (m, k) @ B (k, n)."""

    m: int
    n: int
    k: int
    layout: str = "NN"
    dtype: str = "fp16"

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """A, B and C, once each."""
        return 2 * (self.m * self.k + self.k * self.n + self.m * self.n)

    @property
    def aligned(self) -> bool:
        """Return whether TMA can read A and B and write C: rows, or columns, of a multiple of 16 bytes."""
        a, b = self.layout
        return not any(
            each % 8 for each in ((self.m if a == "T" else self.k), (self.k if b == "T" else self.n), self.n)
        )

    def __str__(self) -> str:
        """Return a label."""
        return f"{self.m}x{self.n}x{self.k} {self.layout} {self.dtype}"


TARGETS = {
    (2048, 2048, 2048): 1.00,
    (4096, 4096, 4096): 1.00,
    (8192, 8192, 8192): 1.01,
    (8192, 8192, 512): 1.09,
    (4096, 14336, 4096): 1.00,
    (3072, 3072, 3072): 0.99,
    (1024, 1024, 1024): 0.97,
    (128, 4096, 4096): 0.98,
    (1536, 1536, 1536): 0.97,
    (5120, 5120, 5120): 0.99,
    (2560, 2560, 2560): 1.00,
    (512, 512, 16384): 1.00,
    (16, 8192, 8192): 1.05,
    (4104, 1048, 2056): 0.95,
}
"""(m, n, k) of problems with a name, by rows in fp16: the speed wanted, as a part of cuBLAS's."""

Kind = tuple[int, tuple[int, int], tuple[int, int], tuple[int, int]]

KINDS: tuple[Kind, ...] = (
    # How many of sixty; the smallest and the largest m, n and k.
    (22, (128, 16384), (128, 16384), (128, 16384)),
    (12, (1, 64), (256, 16384), (256, 16384)),
    (8, (65, 512), (512, 16384), (256, 16384)),
    (4, (256, 16384), (16, 128), (256, 16384)),
    (8, (16, 2048), (16, 2048), (8192, 65536)),
    (6, (16, 1024), (16, 1024), (16, 1024)),
)
"""All-round, skinny, medium rows, few columns, deep, small; sizes are uniform in their logarithm."""

SMALL_RESULTS: tuple[Kind, ...] = (
    (18, (16, 2048), (16, 2048), (4096, 65536)),
    (9, (64, 1024), (256, 4096), (2048, 16384)),
    (9, (256, 4096), (64, 1024), (2048, 32768)),
    (30, (512, 4096), (256, 1024), (8192, 65536)),
)
"""Problems of few tiles and a long K, whose division weighs most: more of them for the fit."""

ALIGNED_SIZES, ALIGNED_FLOPS = (256, 16384), 1 << 41
"""The smallest and the largest m, n and k of problems that are multiples of 64, and the most that one computes."""

_GRAINS = (64, 8, 1)
"""What sizes are multiples of, each for a third of the problems."""


def named() -> list[Shape]:
    """The problems with a name."""
    return [Shape(*each) for each in TARGETS]


def acceptance() -> list[Shape]:
    """The sixty that the kernels are judged by."""
    return _drawn(ACCEPTANCE_SEED, set(TARGETS))


def fitting() -> list[Shape]:
    """Sixty others, and the ones with a name."""
    taken = set(TARGETS) | {(each.m, each.n, each.k) for each in acceptance()}
    return named() + _drawn(FITTING_SEED, taken)


def fitting_small_results() -> list[Shape]:
    """More to be fitted to, of few tiles and a long K."""
    taken = {(each.m, each.n, each.k) for each in (*acceptance(), *fitting())}
    return _drawn(FITTING_SEED + 1, taken, SMALL_RESULTS)


def aligned() -> list[Shape]:
    """Sixty by rows in bf16 whose sizes are multiples of 64, and two with a name."""
    numbers = random.Random(ALIGNED_SEED).random
    found: dict[Shape, None] = {}
    while len(found) < COUNT:
        m, n, k = (_size(numbers(), *ALIGNED_SIZES, 64) for _ in range(3))
        shape = Shape(m, n, k, dtype="bf16")
        if shape.flops <= ALIGNED_FLOPS:
            found[shape] = None
    return [Shape(512, 512, 16384, dtype="bf16"), Shape(1536, 1536, 1536, dtype="bf16"), *found]


def _drawn(seed: int, taken: set[tuple[int, int, int]], kinds: Sequence[Kind] = KINDS) -> list[Shape]:
    numbers = random.Random(seed).random
    found: list[Shape] = []
    taken = set(taken)
    for count, *ranges in kinds:
        for _ in range(count):
            while True:
                # Every second problem by rows; the types and the grains take turns, so that each has its share.
                layout = LAYOUTS[max(0, int(numbers() * 4) - 1)]
                grain = _GRAINS[len(found) % 3]
                sizes = [_size(numbers(), *each, grain) for each in ranges]
                if ranges[0][0] == 1 and layout[0] == "N":
                    # How many rows there are is no question of alignment: any number.
                    sizes[0] = _size(numbers(), *ranges[0], 1)
                shape = Shape(sizes[0], sizes[1], sizes[2], layout, ("fp16", "bf16")[len(found) // 3 % 2])
                if shape.flops <= MOST_FLOPS and shape.bytes <= MOST_BYTES and tuple(sizes) not in taken:
                    break
            taken.add((shape.m, shape.n, shape.k))
            found.append(shape)
    return found


def _size(number: float, low: int, high: int, grain: int) -> int:
    """A size between two, a multiple of `grain`, where `number` is between 0 and 1."""
    drawn = exp(log(low) + number * (log(high) - log(low)))
    return max(round(drawn / grain), 1) * grain


if __name__ == "__main__":
    for title, shapes in {"acceptance": acceptance(), "fitting": fitting()}.items():
        print(f"{title}: {len(shapes)}, {sum(each.aligned for each in shapes)} aligned")
        print(
            f"{sum(each.flops for each in shapes) / 1e12:.1f} TFLOP, {sum(each.bytes for each in shapes) / 1e9:.1f} GB"
        )
        for each in shapes:
            print(f"    {each}")
