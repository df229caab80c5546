"""The microseconds that a GEMM should take, from the launch to the end: `predict`.

The model counts what a multiprocessor does one after the other (steps along K, ends of tiles), what all of them read
and write together, and what a second kernel costs. Its constants were fitted to times on an H200 (SXM, 700 W, 132
multiprocessors); `benchmarks/gemm/fit.py` measures and fits them, on problems that are no part of those that
`benchmarks/gemm/every_shape.py` checks the choices with.
"""

from __future__ import annotations

from dataclasses import dataclass

from .division import Choice
from .tiles import CONFIGS


@dataclass(frozen=True)
class Matrix:
    """Layout of an operand: elements along K side by side (`along_k`) or not, and the cost of a line (`line_cost`)."""

    along_k: bool = True
    cost: float = 1.0

    def lines(self, block_k: int, *extents: int) -> float:
        """Return the cost of loading a tile of so many rows of A or columns of B, in strips, in lines of 128 bytes."""
        if self.along_k:
            return self.cost * sum(extents) * block_k / 64
        return self.cost * block_k * sum(-(-extent // 64) for extent in extents)


@dataclass(frozen=True)
class Reading:
    """Layouts of both operands."""

    a: Matrix = Matrix()
    b: Matrix = Matrix()

    def swapped(self) -> Reading:
        """The same for C^T = B^T A^T."""
        return Reading(self.b, self.a)


BY_LINES = Reading()
"""Both by rows of A and columns of B, along K, that begin at multiples of 128 bytes."""


def line_cost(pitch: int) -> float:
    """Return the cost of loading lines `pitch` bytes apart, where 1 is for those that begin at multiples of 128 bytes.

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

    launch: float = 5.65
    """From a launch to the first product, and from the last store to the end."""
    memory: float = 5.48e6
    """Bytes of operands that the memory gives in a microsecond."""
    cache: float = 47e6
    """Bytes of the L2 cache, which are written back where something else has written them, ..."""
    write_back: float = 6.18e6
    """... so many in a microsecond."""
    overlap: float = 0.429
    """The part of the shorter of work and reading that does not hide under the longer."""
    line: float = 0.000521
    """What a multiprocessor needs to load a line of 128 bytes from the L2 cache."""
    lines: float = 131867
    """Such lines that all multiprocessors together load in a microsecond."""
    shared_line: float = 0.418
    """What a line costs that the two CTAs of a cluster load together, where 0.5 would be half."""
    second_launch: float = 1.03
    """From the end of the product to the first sums of the reducing kernel, and its end."""
    sums: float = 7.71e6
    """Bytes of f32 sums that are written and read again in a microsecond."""
    piece: float = 2.06
    """A piece's end, for 128 columns."""
    added: float = 0.042
    """The time to add one piece, of as many as a tile has."""
    uneven: float = 1.35
    """How much longer steps take where pieces begin anywhere along K, so that programs share no tiles in the cache."""
    cluster: float = 0.0785
    """How much later the CTAs of a cluster end, for each but one."""
    exchange: float = 0.0923
    """From the products of a cluster that shares a tile along K to the sums of its CTAs' parts, ..."""
    member: float = 0.168
    """... more for each CTA of it, ..."""
    exchanged: float = 23855
    """... and the bytes of sums that a CTA hands on in a microsecond."""
    power: float = 12.2
    """How much slower a launch at the power limit is, times the rows and columns loaded for each element of a tile."""
    warm: float = 649.8
    """Microseconds of products until the power limit counts in full."""


MODEL = Model()

FIRST_END = 0.3
"""The part of one tile's end that is not counted as the end of a launch."""

TIMES = {
    "128": Times(0.304, 0.18),
    "128 by 2": Times(0.309, 0.10),
    "144": Times(0.377, 1.29),
    "144 by 2": Times(0.457, 1.30),
    "144 by 4": Times(0.452, 1.04),
    "16": Times(0.080, 0.08),
    "160": Times(0.392, 0.52),
    "160 by 2": Times(0.442, 0.54),
    "160 by 4": Times(0.436, 0.26),
    "192": Times(0.448, 0.46),
    "192 by 2": Times(0.453, 0.28),
    "192 by 4": Times(0.447, 0.23),
    "192x128": Times(0.452, 0.40),
    "192x128 by 2": Times(0.463, 0.27),
    "192x192": Times(0.820, 0.08),
    "192x192 by 2": Times(0.660, 1.30),
    "192x96": Times(0.391, 0.65),
    "192x96 by 2": Times(0.501, 0.40),
    "272": Times(0.724, 8.01),
    "272 by 2": Times(0.949, 0.84),
    "288": Times(0.778, 6.08),
    "32": Times(0.160, 0.30),
    "320": Times(0.767, 1.66),
    "320 by 2": Times(0.892, 0.93),
    "64": Times(0.400, 2.01),
    "64 by 2": Times(0.475, 1.25),
    "64x128": Times(0.311, 0.10),
    "64x128 by 2": Times(0.386, 1.39),
    "64x16": Times(0.040, 0.12),
    "64x160": Times(0.190, 0.21),
    "64x192": Times(0.228, 0.04),
    "64x192 by 2": Times(0.261, 0.09),
    "64x256": Times(0.289, 0.07),
    "64x256 by 2": Times(0.351, 2.94),
    "64x32": Times(0.080, 0.03),
    "64x64": Times(0.155, 0.12),
    "64x96": Times(0.267, 0.03),
    "96": Times(0.666, 0.49),
    "96 by 2": Times(0.733, 15.53),
    "large": Times(0.583, 0.84),
    "large by 2": Times(0.568, 2.56),
    "large by 4": Times(0.576, 0.66),
    "medium": Times(0.295, 0.53),
    "small": Times(0.146, 0.26),
    "tiny": Times(0.155, 0.50),
}
"""By name of `CONFIGS`; fitted to 1,282 times of 99 problems (H200, fp16, Triton 3.6.0, 2026-11-23), with steps that
stay close to those of an earlier fit to 2,548 times of 88 problems: the choice of the model runs at 0.98 of the best
measured one on average. By hand: ends of "large by 2" 1 us longer than the fit, so that of two that are equal within
0.5 % the one without clusters is taken; a step of `tiny` as that of "64x64", which has the same tile."""

_NAMES = {config: name for name, config in CONFIGS.items()}


def predict(
    choice: Choice,
    m: int,
    n: int,
    k: int,
    reading: Reading = BY_LINES,
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
    active = choice.ctas if choice.share and not choice.full_rounds else min(tiles, choice.programs) * config.cluster
    step = max(constants.step, loaded * model.line, loaded * active / model.lines)
    after = model.cluster * (config.cluster - 1)
    if choice.split > 1:
        busy = choice.share * step + FIRST_END * end
        after += model.exchange + model.member * choice.split + config.block_m * config.tile_n * 4 / model.exchanged
    elif choice.streamed:
        rounds = choice.full_rounds
        rest = choice.rest(tiles)
        pieces = 1 if choice.steps(tiles, steps) % choice.share == 0 else 2
        busy = (rounds * steps + choice.share * (model.uneven if pieces == 2 else 1.0)) * step
        busy += (max(rounds - 1, 0) + FIRST_END) * end + pieces * model.piece * config.tile_n / 128
        width = config.shared_m * config.tile_n * 4
        after += model.second_launch + min(choice.programs * pieces, rest * steps) * width / model.sums
        after += model.added * (-(-steps // choice.share) + pieces - 1)
    else:
        rounds = -(-tiles // choice.programs)
        busy = rounds * steps * step
        busy += (rounds - 1 + FIRST_END if config.schedule == "cooperative" else FIRST_END) * end
    # The bytes that the tensor cores are fed with for each product take power, and long launches run at its limit.
    fed = (config.block_m + config.tile_n) / (config.block_m * config.tile_n)
    busy *= 1 + model.power * fed * min(busy / model.warm, 1.0)
    return after + together(busy, fetching(m, n, k, model), model)


def fetching(m: int, n: int, k: int, model: Model = MODEL) -> float:
    """The microseconds in which the memory gives A and B and takes C."""
    operands = 2.0 * (m * k + k * n + m * n)
    return operands / model.memory + min(operands, model.cache) / model.write_back


def together(busy: float, fetching: float, model: Model = MODEL) -> float:
    """The microseconds of a launch whose multiprocessors are busy, and whose memory is, for so long."""
    return model.launch + max(busy, fetching) + model.overlap * min(busy, fetching)
