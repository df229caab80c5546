"""Timelines made by hand: a ring of slots between a producer and two consumers, as in a GEMM on a Hopper GPU."""

from itertools import chain

from tlx_xdsl.timing.timeline import Place, Span, SpanKind, Timeline, Track, TrackKind

FILE = "examples/hopper_gemm_ws.py"
LINES = {
    54: "tlx.barrier_wait(empty[stage], ((k // NUM_STAGES) & 1) ^ 1)",
    57: "tlx.async_descriptor_load(a_desc, a[stage * 2], [off_m, off_k], full[stage])",
    66: "tlx.barrier_wait(full[stage], (k // NUM_STAGES) & 1)",
    67: "acc = tlx.async_dot(a[stage * 2 + half], b[stage], acc, use_acc=k > 0)",
    70: "tlx.barrier_arrive(empty[(k + NUM_STAGES - 1) % NUM_STAGES], pred=k > 0)",
    80: "tlx.async_descriptor_store(c_desc, c[half], [off_m + half * HALF_M, off_n])",
}
START, ISSUE, LATENCY, TRANSFER, PRODUCT, STORE = 300.0, 60, 900, 700, 512, 1400
"""Cycles: prologue, issue of a load or product, of a load's way and its bytes, of a consumer's product, its store."""


class Ring:
    """A timeline while it is made."""

    def __init__(self, stages: int, origin: str, slower: float):
        self.timeline = Timeline(
            "matmul", "H200", origin, places=[Place(FILE, line, text) for line, text in LINES.items()], hertz=1.755e9,
            configuration=f"NUM_STAGES={stages}", notes=["The L2 cache is taken to hold A and B."],
        )  # fmt: skip
        self.stages, self.transfer = stages, TRANSFER * slower
        self.producer = self.track("warp 0", "warp", "producer")
        self.consumers = [
            [self.track(f"warp {4 + 4 * half + warp}", "warp", f"consumer {half}") for warp in range(4)]
            for half in (0, 1)
        ]
        self.cores = [self.track(f"tensor core {number}", "tensor core", "units") for number in range(4)]
        self.tma = self.track("TMA", "tma", "units")
        self.full = [self.track(f"full[{slot}]", "barrier", "barriers") for slot in range(stages)]
        self.empty = [self.track(f"empty[{slot}]", "barrier", "barriers") for slot in range(stages)]
        self.slots = [self.track(f"slot {slot}", "buffer", "ring") for slot in range(stages)]
        self.clock, self.loaded, self.at = START, 0.0, [START, START]
        self.loads: list[int] = []
        self.products: list[int] = []
        """The last product of each step."""
        self.before = self.add(self.producer, 0, START, "work", "prologue")
        for warp in chain(*self.consumers):
            self.add(warp, 0, START, "work", "prologue")

    def track(self, name: str, kind: TrackKind, group: str) -> int:
        self.timeline.tracks.append(Track(name, kind, group))
        return len(self.timeline.tracks) - 1

    def add(
        self, track: int, start: float, end: float, kind: SpanKind, name: str, line: int = 0, cause: str = "", after=-1
    ) -> int:
        place = list(LINES).index(line) if line else -1
        self.timeline.spans.append(Span(track, start, end, kind, name, place, cause, after))
        return len(self.timeline.spans) - 1

    def produce(self, k: int) -> None:
        """Wait until the slot of a step is free, and load it."""
        slot, phase = k % self.stages, k // self.stages
        if phase:
            span = self.products[k - self.stages]
            end = self.timeline.spans[span].end
            if end > self.clock:
                self.before = self.add(self.producer, self.clock, end, "wait", f"wait empty[{slot}] phase {phase - 1}",
                                       54, "arrival of warp 8", span)  # fmt: skip
            self.add(self.empty[slot], end - PRODUCT, end, "phase", f"phase {phase - 1}", 70, "", span)
            self.clock = max(self.clock, end)
        self.before = self.add(self.producer, self.clock, self.clock + ISSUE, "issue", "TMA load", 57, "", self.before)
        self.clock += ISSUE
        self.loaded = max(self.clock + LATENCY, self.loaded) + self.transfer
        load = self.add(self.tma, self.clock, self.loaded, "copy", f"48 KiB to slot {slot}", 57, "", self.before)
        self.loads.append(load)
        self.add(self.full[slot], self.clock, self.loaded, "phase", f"phase {phase}", 57, "", load)

    def consume(self, k: int, half: int) -> int:
        """Wait for the slot of a step, and multiply what is in it; returns the last product."""
        load, begin = self.loads[k], max(self.at[half], self.loaded)
        waits = self.loaded > self.at[half]
        last = self.products[-1] if self.products and half == 0 else len(self.timeline.spans) - 5 if half else -1
        free = self.timeline.spans[last].end if last >= 0 else 0.0
        issued = -1
        for warp in self.consumers[half]:
            if waits:
                name = f"wait full[{k % self.stages}] phase {k // self.stages}"
                self.add(warp, self.at[half], self.loaded, "wait", name, 66, "TMA load of line 57", load)
            issued = self.add(warp, begin, begin + ISSUE, "issue", "wgmma m64n256k16", 67, "", load if waits else last)
        start = max(begin + ISSUE, free)
        for core in self.cores:
            last = self.add(core, start, start + PRODUCT, "product", f"consumer {half}, k = {k}", 67, "", issued)
        self.at[half] = start + PRODUCT
        for warp in self.consumers[half]:
            self.add(warp, begin + ISSUE, self.at[half], "wait", "wait for wgmma", 67, "products before it", last)
        return last


def ring(stages: int, steps: int = 12, *, origin="predicted", slower: float = 1.0) -> Timeline:
    """Return what a warp-specialised GEMM with so many stages does in one CTA, for `steps` tiles of K."""
    made = Ring(stages, origin, slower)
    for k in range(steps):
        made.produce(k)
        begun = made.timeline.spans[made.loads[k]].start
        made.consume(k, 0)
        made.products.append(made.consume(k, 1))
        made.add(made.slots[k % stages], begun, made.at[1], "buffer", f"k = {k}", 57, "", made.products[k])
    stored = -1
    for half, warps in enumerate(made.consumers):
        for warp in warps:
            end = made.at[half] + STORE
            stored = made.add(warp, made.at[half], end, "store", "store of C", 80, "", made.products[-1])
    timeline = made.timeline
    timeline.end = max(span.end for span in timeline.spans)
    timeline.launch_cycles = timeline.end * 4
    timeline.critical = critical_path(timeline, stored)
    busy = 100 * 2 * PRODUCT * steps / timeline.end
    timeline.sentences = [
        f"The tensor cores work {busy:.0f} % of the time.",
        "The consumers wait for TMA loads of line 57." if stages < 3 else "The products are what limits this kernel.",
        f"The ring has {stages} stages, and a load takes {LATENCY + TRANSFER:,} cycles.",
    ]
    return timeline


def critical_path(timeline: Timeline, last: int) -> list[int]:
    path = [last]
    while (before := timeline.spans[path[-1]].after) >= 0:
        path.append(before)
    return path[::-1]


def many(spans: int) -> Timeline:
    """Return a timeline with so many spans on 24 tracks."""
    tracks = [Track(f"warp {number}", "warp", f"task {number // 4}") for number in range(24)]
    kinds: tuple[SpanKind, ...] = ("work", "wait", "issue", "wait")
    each = -(-spans // len(tracks))
    return Timeline(
        "many", "H200", "predicted", tracks,
        [
            Span(track, 10.0 * at, 10.0 * at + 9, kinds[at % 4], f"{kinds[at % 4]} {at}", at % 5)
            for track in range(len(tracks)) for at in range(each)
        ],
        [Place("many.py", line, f"line({line})") for line in range(1, 6)], end=10.0 * each,
    )  # fmt: skip
