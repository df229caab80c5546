"""Traces by hand: a GEMM with a producer, a ring of buffers and consumers, and rows that are read and written."""

from tlx_xdsl.timing.instructions import PIPES
from tlx_xdsl.timing.pieces import BlockCost, Work
from tlx_xdsl.timing.trace import Event, Launch, Point, Step, Trace, Warp

FREE = frozenset()
# The instructions of the programs below.
PRODUCER_WAIT, LOAD_A, LOAD_B, CONSUMER_WAIT, PRODUCT, COMMIT, PRODUCT_WAIT, RELEASE, LOAD, STORE = range(10)


def work(slots, latency=None, first=0, **pipes):
    """Return work that takes so many issue slots, and as many cycles if nothing else is said."""
    of_pipes = tuple(float(pipes.get(pipe, 0)) for pipe in PIPES)
    return Work(float(slots), of_pipes, float(slots if latency is None else latency), first, first + 1)


def block(*ats, slots=4, results=None):
    """Return the cost of a block with an event at each of these instructions, and a little work between them."""
    pieces = tuple(work(slots, first=at) for at in (*ats, ats[-1] if ats else 0))
    filled = tuple((results or {}).get(at, ()) for at in ats)
    return BlockCost(pieces, ats, (FREE,) * len(pieces), filled)


COSTS = [
    block(PRODUCER_WAIT, LOAD_A, LOAD_B),
    block(CONSUMER_WAIT, PRODUCT, COMMIT, PRODUCT_WAIT, RELEASE),
]


def ring(stages, rounds, *, n=256, k=64, consumers=2, cta=0):
    """Return the trace of a CTA: warp 0 loads tiles of A and B, groups of four warps multiply them."""
    points, full, empty = [], [], []
    for number in range(rounds):
        slot = number % stages
        full.append(len(points))
        points.append(Point("mbarrier", 8 * slot, 0, number // stages, 2))
        empty.append(len(points))
        points.append(Point("mbarrier", 8 * (stages + slot), 0, number // stages, 4 * consumers))
    producer = Warp(0, 4 * consumers)
    warps = [Warp(0, number) for number in range(4 * consumers)]
    pages_a, pages_b = (size * k * 2 // 2048 for size in (64 * consumers, n))
    for number in range(rounds):
        before = number - stages
        waits = (Event(PRODUCER_WAIT, "wait", (empty[before],)),) if before >= 0 else ()
        first = (pages_a + pages_b) * number
        middle, end = first + pages_a, first + pages_a + pages_b
        producer.steps.append(
            Step(0, (
                *waits,
                Event(LOAD_A, "tma_load", (full[number],), size=64 * consumers * k * 2, lines=(first, middle - 1)),
                Event(LOAD_B, "tma_load", (full[number],), size=n * k * 2, lines=(middle, end - 1)),
            ))
        )  # fmt: skip
        for warp in warps:
            products = tuple(Event(PRODUCT, "wgmma", shape=(64, n, 16), element="f16") for _ in range(k // 16))
            warp.steps.append(
                Step(1, (
                    Event(CONSUMER_WAIT, "wait", (full[number],)),
                    *products,
                    Event(COMMIT, "wgmma_commit"),
                    Event(PRODUCT_WAIT, "wgmma_wait", count=0),
                    Event(RELEASE, "signal", (empty[number],), count=1),
                ))
            )  # fmt: skip
    return Trace([cta], [*warps, producer], points)


def ring_launch(ctas, rounds, *, n=256, k=64, consumers=2):
    """Return a launch of such CTAs, whose arrays are read by all of them."""
    size = (64 * consumers + n) * k * rounds * 2
    return Launch((ctas, 1, 1), 1, 4 * consumers + 1, 100_000, 168, (size,))
