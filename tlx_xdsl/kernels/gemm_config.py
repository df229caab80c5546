"""The tile, the schedule and the division of work of a GEMM, by a model of the time; the same for the same shape.

`candidates` are all that fit a problem, `predict` says how many microseconds one should take, and `choose` takes the
first. The model counts what a multiprocessor does one after the other (steps along K, ends of tiles), what all of
them read and write together, and what a second kernel costs. Its constants were fitted to times on an H200 (SXM, 700 W,
132 multiprocessors); `benchmarks/gemm_fit.py` measures and fits them, on problems that are no part of those that
`benchmarks/gemm_every_shape.py` checks them with.

Why these tiles. Large ones read the fewest bytes for a product. With a short K the epilogue is a large part of the
work, and ping-pong overlaps it with the other consumer's MMAs. Columns in two strips (192 = 128 + 64) fill the last
round where powers of two leave it nearly empty. 16 to 64 columns, and 64 rows, are for products with few rows or
columns, which compute C^T = B^T A^T where that makes the long side the rows of the tensor cores' 64. Clusters of two
load tiles of B once for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Literal

Schedule = Literal["cooperative", "pingpong"]

SHARED_BYTES = 232448
"""Shared memory that a thread block can have on compute capability 9.0 (CUDA C++ Programming Guide)."""


BARRIER_BYTES = 1024
"""What is kept of it for mbarriers and what Triton adds."""


@dataclass(frozen=True)
class GemmConfig:
    """A tile of C of block_m x (block_n + tail_n), products of block_k columns of A, and who computes what.

    `stages` are tiles of A and B in shared memory, `subtiles` the parts in which the epilogue stores the columns
    block_n, of `part_n` columns each, `buffers` what a consumer has for them, `group_m` the tiles along M whose order
    is such that neighbours share tiles of B. `tail_n` are the columns of a second strip, `consumers` the warp groups
    that multiply, and `cluster` the CTAs that share their loads of B. See `gemm_cooperative`.
    """

    schedule: Schedule
    block_m: int
    block_n: int
    block_k: int
    stages: int
    subtiles: int
    buffers: int = 1
    group_m: int = 8
    tail_n: int = 0
    consumers: int = 2
    cluster: int = 1

    @property
    def rows(self) -> int:
        """Rows of a consumer, which are those of a copy of A and C."""
        return self.block_m // self.consumers if self.schedule == "cooperative" else self.block_m

    @property
    def shared_m(self) -> int:
        """Rows of the tiles of a cluster."""
        return self.block_m * self.cluster

    @property
    def part_n(self) -> int:
        """Columns of a part of the epilogue."""
        return self.block_n // self.subtiles

    @property
    def tile_n(self) -> int:
        """Columns of a tile of C, where it is not made of two halves of B."""
        return self.block_n + self.tail_n

    @property
    def strips(self) -> tuple[int, ...]:
        """Columns of each strip of a tile."""
        return (self.block_n, self.tail_n) if self.tail_n else (self.block_n,)

    def shared_bytes(self, element_bytes: int = 2) -> int:
        """Bytes of shared memory for the tiles, where elements of A and B have so many bytes, and those of C 2."""
        ring = self.stages * (self.block_m + self.tile_n) * self.block_k * element_bytes
        return ring + self.consumers * self.buffers * self.rows * self.part_n * 2

    def tiles(self, m: int, n: int) -> int:
        """Tiles of C, those of a cluster counted as one."""
        return -(-m // self.shared_m) * -(-n // self.tile_n)


def _cooperative(block_n: int, tail_n: int, stages: int, part_n: int, buffers: int, **more: int) -> GemmConfig:
    settings = {"block_m": 128, "block_k": 64, **more}
    return GemmConfig(
        "cooperative",
        block_n=block_n,
        tail_n=tail_n,
        stages=stages,
        subtiles=block_n // part_n,
        buffers=buffers,
        **settings,
    )


LARGE = _cooperative(256, 0, stages=3, part_n=128, buffers=2)
MEDIUM = GemmConfig("pingpong", 128, 128, 64, stages=6, subtiles=2)
SMALL = GemmConfig("pingpong", 64, 128, 64, stages=8, subtiles=1)
TINY = GemmConfig("pingpong", 64, 64, 128, stages=6, subtiles=1)


_ALONE = {
    "320": _cooperative(256, 64, stages=3, part_n=64, buffers=2),
    "288": _cooperative(256, 32, stages=3, part_n=32, buffers=3),
    "272": _cooperative(256, 16, stages=3, part_n=16, buffers=6),
    "large": LARGE,
    "192": _cooperative(128, 64, stages=4, part_n=64, buffers=3),
    "160": _cooperative(128, 32, stages=5, part_n=32, buffers=3),
    "144": _cooperative(128, 16, stages=5, part_n=16, buffers=9),
    "128": _cooperative(128, 0, stages=5, part_n=64, buffers=2),
    "96": _cooperative(64, 32, stages=3, part_n=32, buffers=3, block_k=128),
    "64": _cooperative(64, 0, stages=4, part_n=64, buffers=1, block_k=128),
    "32": _cooperative(32, 0, stages=5, part_n=32, buffers=1, block_k=128),
    "16": _cooperative(16, 0, stages=5, part_n=16, buffers=1, block_k=128),
    "192x192": _cooperative(128, 64, stages=3, part_n=64, buffers=3, block_m=192, consumers=3),
    "192x128": _cooperative(128, 0, stages=4, part_n=64, buffers=2, block_m=192, consumers=3),
    "192x96": _cooperative(64, 32, stages=5, part_n=32, buffers=3, block_m=192, consumers=3),
    "64x256": _cooperative(256, 0, stages=5, part_n=64, buffers=2, block_m=64, consumers=1),
    "64x192": _cooperative(128, 64, stages=6, part_n=64, buffers=2, block_m=64, consumers=1),
    "64x160": _cooperative(128, 32, stages=7, part_n=32, buffers=2, block_m=64, consumers=1),
    "64x128": _cooperative(128, 0, stages=4, part_n=64, buffers=2, block_m=64, block_k=128, consumers=1),
    "64x96": _cooperative(64, 32, stages=5, part_n=32, buffers=2, block_m=64, block_k=128, consumers=1),
    "64x64": _cooperative(64, 0, stages=6, part_n=64, buffers=1, block_m=64, block_k=128, consumers=1),
    "64x32": _cooperative(32, 0, stages=8, part_n=32, buffers=1, block_m=64, block_k=128, consumers=1),
    "64x16": _cooperative(16, 0, stages=10, part_n=16, buffers=1, block_m=64, block_k=128, consumers=1),
}

_SHARING: dict[int, dict[str, dict[str, int]]] = {
    2: {
        "320": {},
        "large": {"stages": 4, "subtiles": 4, "buffers": 1},
        "192": {},
        "272": {},
        "160": {"stages": 4},
        "144": {"stages": 4},
        "128": {"stages": 6, "buffers": 1},
        "96": {},
        "64": {},
        "192x192": {"stages": 4, "buffers": 1},
        "192x128": {},
        "192x96": {"stages": 4},
        "64x256": {"stages": 4},
        "64x192": {},
        "64x128": {},
    },
}
"""Configurations that also come in clusters of so many CTAs; their stages should be a multiple of that."""

CONFIGS = {
    **_ALONE,
    "medium": MEDIUM,
    "small": SMALL,
    "tiny": TINY,
    **{
        f"{name} by {cluster}": replace(_ALONE[name], cluster=cluster, **changes)
        for cluster, configs in _SHARING.items()
        for name, changes in configs.items()
    },
}
"""All that `choose` gives, by name."""


def step_of(config: GemmConfig) -> float:
    """Microseconds of a step's products at 1.7 GHz: 64 x n x 16 takes n / 2 cycles."""
    return config.block_m / 64 * config.block_k / 16 * config.tile_n / 2 / 1700


@dataclass(frozen=True)
class Choice:
    """A configuration and how the work is divided.

    `swapped` computes C^T = B^T A^T. `programs` (clusters, where CTAs share tiles) share `full_rounds` rounds of whole
    tiles; of the other tiles' steps along K each program takes `share` in a row (0: none is left, tiles are dealt out
    whole).
    """

    config: GemmConfig
    programs: int
    swapped: bool = False
    full_rounds: int = 0
    share: int = 0

    @property
    def streamed(self) -> bool:
        """Whether a second kernel adds up pieces of tiles."""
        return self.share > 0


@dataclass(frozen=True)
class Matrix:
    """How an operand lies: elements along K side by side (`along_k`) or not, and what a line costs (`line_cost`)."""

    along_k: bool = True
    cost: float = 1.0

    def lines(self, block_k: int, *extents: int) -> float:
        """What it costs to load a tile of so many rows of A or columns of B, in strips, in lines of 128 bytes."""
        if self.along_k:
            return self.cost * sum(extents) * block_k / 64
        return self.cost * block_k * sum(-(-extent // 64) for extent in extents)


@dataclass(frozen=True)
class Reading:
    """How both operands lie."""

    a: Matrix = Matrix()
    b: Matrix = Matrix()

    def swapped(self) -> Reading:
        """The same for C^T = B^T A^T."""
        return Reading(self.b, self.a)


def line_cost(pitch: int) -> float:
    """What it costs to load lines `pitch` bytes apart, where 1 is for those that begin at multiples of 128 bytes.

    Measured on an H200 (2026-11-23, 4096 x 2048 x 2048): A and B with 16 bytes more in each row take 1.3 to 1.6 times
    as long, with 32 bytes 1.04 to 1.15 times, with 64 and 128 bytes the same. The numbers are those of the fit.
    """
    if pitch % 128 == 0:
        return 1.0
    return 1.45 if pitch % 64 == 0 else 1.36 if pitch % 32 == 0 else 2.30


@dataclass(frozen=True)
class Times:
    """Constants of the model for one configuration: microseconds of a step of a tile along K and of a tile's end.

    Ends of ping-pong overlap with the other consumer's steps, but for the last one.
    """

    step: float
    end: float


@dataclass(frozen=True)
class Model:
    """Constants of the model for a GPU, in microseconds and bytes: see `predict`."""

    launch: float = 5.58
    """From a launch to the first product, and from the last store to the end."""
    memory: float = 5.82e6
    """Bytes of operands that the memory gives in a microsecond."""
    cache: float = 50e6
    """Bytes of the L2 cache, which are written back where something else has written them, ..."""
    write_back: float = 5.71e6
    """... so many in a microsecond."""
    overlap: float = 0.49
    """The part of the shorter of work and reading that does not hide under the longer."""
    line: float = 0.000578
    """What a multiprocessor needs to load a line of 128 bytes from the L2 cache."""
    lines: float = 146851
    """Such lines that all multiprocessors together load in a microsecond."""
    shared_line: float = 0.63
    """What a line costs that the two CTAs of a cluster load together, where 0.5 would be half."""
    second_launch: float = 1.44
    """From the end of the product to the first sums of the reducing kernel, and its end."""
    sums: float = 2.45e6
    """Bytes of f32 sums that are written and read again in a microsecond."""
    piece: float = 1.08
    """A piece's end, for 128 columns."""
    added: float = 0.012
    """The time to add one piece, of as many as a tile has."""
    uneven: float = 1.15
    """How much longer steps take where pieces begin anywhere along K, so that programs share no tiles in the cache."""
    power: float = 12.0
    """How much slower a launch at the power limit is, times the rows and columns loaded for each element of a tile."""
    warm: float = 500.0
    """Microseconds of products until the power limit counts in full."""


MODEL = Model()

FIRST_END = 0.3
"""The part of one tile's end that is not counted as the end of a launch."""

TIMES = {
    "128": Times(0.295, 0.08),
    "128 by 2": Times(0.307, 0.14),
    "144": Times(0.374, 0.84),
    "144 by 2": Times(0.458, 1.52),
    "16": Times(0.080, 0.13),
    "160": Times(0.386, 0.56),
    "160 by 2": Times(0.442, 0.45),
    "192": Times(0.450, 0.24),
    "192 by 2": Times(0.465, 0.54),
    "192x128": Times(0.446, 0.17),
    "192x128 by 2": Times(0.465, 0.39),
    "192x192": Times(0.818, 0.07),
    "192x192 by 2": Times(0.676, 0.82),
    "192x96": Times(0.391, 0.17),
    "192x96 by 2": Times(0.501, 0.40),
    "272": Times(0.719, 1.00),
    "272 by 2": Times(0.949, 0.84),
    "288": Times(0.776, 0.69),
    "32": Times(0.160, 0.37),
    "320": Times(0.763, 1.09),
    "320 by 2": Times(0.888, 0.37),
    "64": Times(0.399, 0.08),
    "64 by 2": Times(0.475, 0.69),
    "64x128": Times(0.307, 0.04),
    "64x128 by 2": Times(0.385, 0.63),
    "64x16": Times(0.040, 0.12),
    "64x160": Times(0.189, 0.45),
    "64x192": Times(0.229, 0.19),
    "64x192 by 2": Times(0.258, 0.12),
    "64x256": Times(0.290, 0.26),
    "64x256 by 2": Times(0.348, 0.45),
    "64x32": Times(0.080, 0.06),
    "64x64": Times(0.155, 0.06),
    "64x96": Times(0.265, 0.17),
    "96": Times(0.665, 0.23),
    "96 by 2": Times(0.733, 0.54),
    "large": Times(0.579, 0.60),
    "large by 2": Times(0.583, 0.96),
    "medium": Times(0.298, 0.51),
    "small": Times(0.146, 0.37),
    "tiny": Times(0.183, 0.43),
}
"""By name of `CONFIGS`; fitted to 2,548 times of 88 problems (H200, fp16, Triton 3.6.0, 2026-11-23): the choice of the
model runs at 0.97 of the best measured one on average. By hand: `medium` 4 % and "192x192 by 2" 2 % slower than the
fit, which knows too little of long launches."""

_NAMES = {config: name for name, config in CONFIGS.items()}

_STEPS = {config: TIMES[name].step for name, config in CONFIGS.items()}


def candidates(m: int, n: int, k: int, multiprocessors: int = 132) -> Iterator[Choice]:
    """All ways to compute C (m x n) = A (m x k) @ B (k x n) on a GPU with so many multiprocessors."""
    for config, swapped in _orientations(m, n):
        rows, columns = (n, m) if swapped else (m, n)
        yield from divisions(config, rows, columns, k, multiprocessors, swapped)


def _orientations(m: int, n: int) -> Iterator[tuple[GemmConfig, bool]]:
    """The configurations for C (m x n), and for its transpose, but those that are far from the best."""
    for config in CONFIGS.values():
        for swapped in (False, True):
            columns = m if swapped else n
            if swapped and config.schedule == "pingpong":
                continue  # as the cooperative one, which is there for both
            if (config.tile_n < columns // 8 and config.tile_n <= 64) or config.tile_n >= max(2 * columns, 32):
                continue
            yield config, swapped


def divisions(
    config: GemmConfig, m: int, n: int, k: int, multiprocessors: int, swapped: bool = False
) -> Iterator[Choice]:
    """The ways to divide the tiles of C (m x n) among programs: whole ones, and those of the last round along K."""
    tiles = config.tiles(m, n)
    programs = clusters_on(multiprocessors, config.cluster)
    if not programs:
        return
    yield Choice(config, min(tiles, programs), swapped)
    if config.schedule != "cooperative":
        return
    full_rounds, rest = divmod(tiles, programs)
    num_k = -(-k // config.block_k)
    if not rest or num_k < 2:
        return
    splits = min(programs // rest, num_k)
    shares = {-(-num_k // splits)} if splits > 1 else set[int]()
    shares.add(-(-rest * num_k // programs))
    for share in sorted(shares):
        needed = -(-rest * num_k // share)
        if share < num_k:
            yield Choice(config, programs if full_rounds else needed, swapped, full_rounds, share)


def covers(choice: Choice, m: int, n: int, k: int) -> bool:
    """Whether the programs of a choice compute all tiles of C (m x n), each step along K once."""
    if choice.swapped:
        m, n = n, m
    rest = choice.config.tiles(m, n) - choice.full_rounds * choice.programs
    if not choice.streamed:
        return choice.programs > 0
    return 0 < rest * -(-k // choice.config.block_k) <= choice.programs * choice.share


def clusters_on(multiprocessors: int, cluster: int) -> int:
    """Clusters of so many CTAs that run at once."""
    return multiprocessors // cluster


def predict(
    choice: Choice,
    m: int,
    n: int,
    k: int,
    reading: Reading = Reading(),
    ending: float = 0.0,
    model: Model = MODEL,
    times: Times | None = None,
) -> float:
    """The microseconds that a choice should take, from the launch to the end.

    `reading` is how A and B lie. `ending` are the microseconds of an epilogue's
    arithmetic for 128 x 256 elements.
    """
    config = choice.config
    constants = times or TIMES[_NAMES[config]]
    end = constants.end
    if config.schedule == "cooperative":  # else it hides under the other consumer's products
        end += ending * config.rows * config.tile_n / (64 * 256)
    if choice.swapped:
        m, n, reading = n, m, reading.swapped()
    steps = -(-k // config.block_k)
    tiles = config.tiles(m, n)
    far = model.shared_line if config.cluster > 1 else 1.0
    loaded = reading.a.lines(config.block_k, config.block_m) + far * reading.b.lines(config.block_k, *config.strips)
    active = min(tiles, choice.programs) if not choice.streamed or choice.full_rounds else choice.programs
    step = max(constants.step, loaded * model.line, loaded * active * config.cluster / model.lines)
    after = 0.0
    if choice.streamed:
        rounds = choice.full_rounds
        rest = tiles - rounds * choice.programs
        pieces = 1 if steps % choice.share == 0 or choice.share * (choice.programs // rest) >= steps else 2
        busy = (rounds * steps + choice.share * (model.uneven if pieces == 2 else 1.0)) * step
        busy += (max(rounds - 1, 0) + FIRST_END) * end + pieces * model.piece * config.tile_n / 128
        width = config.shared_m * config.tile_n * 4
        after = model.second_launch + min(choice.programs * pieces, rest * steps) * width / model.sums
        after += model.added * (-(-steps // choice.share) + pieces - 1)
    else:
        rounds = -(-tiles // choice.programs)
        busy = rounds * steps * step
        busy += (rounds - 1 + FIRST_END if config.schedule == "cooperative" else FIRST_END) * end
    operands = 2.0 * (m * k + k * n + m * n)
    # The bytes that the tensor cores are fed with for each product take power, and long launches run at its limit.
    fed = (config.block_m + config.tile_n) / (config.block_m * config.tile_n)
    busy *= 1 + model.power * fed * min(busy / model.warm, 1.0)
    fetching = operands / model.memory + min(operands, model.cache) / model.write_back
    return model.launch + max(busy, fetching) + model.overlap * min(busy, fetching) + after


@lru_cache(maxsize=4096)
def choose(
    m: int,
    n: int,
    k: int,
    multiprocessors: int = 132,
    reading: Reading = Reading(),
    ending: float = 0.0,
) -> Choice:
    """The candidate that should be done first; `reading` and `ending` are as for `predict`.

    Configurations whose products alone would take longer than a choice that was found are passed over.
    """
    best, least = None, inf
    for config, swapped in _orientations(m, n):
        rows, columns = (n, m) if swapped else (m, n)
        programs = clusters_on(multiprocessors, config.cluster)
        if programs == 0 or config.tiles(rows, columns) * (k // config.block_k) * _STEPS[config] > least * programs:
            continue
        for choice in divisions(config, rows, columns, k, multiprocessors, swapped):
            time = predict(choice, m, n, k, reading, ending)
            if time < least:
                best, least = choice, time
    assert best is not None, "a cluster of one always runs"
    return best


def choose_config(m: int, n: int, k: int, multiprocessors: int = 132) -> GemmConfig:
    """The configuration of the choice for operands that lie by rows and begin at lines of 128 bytes."""
    return choose(m, n, k, multiprocessors).config


def whole(config: GemmConfig, m: int, n: int, multiprocessors: int) -> Choice:
    """A choice of this configuration whose tiles are dealt out whole."""
    return Choice(config, min(config.tiles(m, n), clusters_on(multiprocessors, config.cluster)))


def fit_output(config: GemmConfig, element_bytes: int) -> GemmConfig:
    """The configuration for elements of C of so many bytes: the same buffers hold half as many columns of f32."""
    return config if element_bytes == 2 else replace(config, subtiles=config.subtiles * element_bytes // 2)


def for_sums(config: GemmConfig) -> GemmConfig:
    """The configuration for a product some of whose tiles are stored as f32 sums.

    With a buffer for each part of them none waits for another's store; stages make way, where four are left.
    """
    buffers = 2 * config.tile_n // config.part_n
    for stages in range(config.stages, 3, -1):
        changed = replace(config, buffers=buffers, stages=stages)
        if stages % config.cluster == 0 and changed.shared_bytes() + BARRIER_BYTES <= SHARED_BYTES:
            return changed
    return config
