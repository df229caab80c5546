"""Timelines made by hand: a ring of slots between a producer and two consumers, as in a GEMM on a Hopper GPU."""

from dataclasses import dataclass, field

from tlx_xdsl.timing.timeline import Place, Span, SpanKind, Timeline, Track, TrackKind

LINES = {
    54: "tlx.barrier_wait(empty[stage], ((k // NUM_STAGES) & 1) ^ 1)",
    57: "tlx.async_descriptor_load(a_desc, a[stage * 2], [off_m, off_k], full[stage])",
    66: "tlx.barrier_wait(full[stage], (k // NUM_STAGES) & 1)",
    67: "acc = tlx.async_dot(a[stage * 2 + half], b[stage], acc, use_acc=k > 0)",
    70: "tlx.barrier_arrive(empty[(k + NUM_STAGES - 1) % NUM_STAGES], pred=k > 0)",
    80: "tlx.async_descriptor_store(c_desc, c[half], [off_m + half * HALF_M, off_n])",
}
FILE = "examples/hopper_gemm_ws.py"
ISSUE, LATENCY, TRANSFER, PRODUCT, STORE = 60, 900, 700, 512, 1400
"""Cycles: issue of a load or product, of a load's way and its bytes, of one consumer's product, of its store."""


@dataclass
class Ring:
    """A timeline while it is made."""

    timeline: Timeline
    tracks: dict[str, int] = field(default_factory=dict)

    def track(self, name: str, kind: TrackKind, group: str) -> int:
        if name not in self.tracks:
            self.tracks[name] = len(self.timeline.tracks)
            self.timeline.tracks.append(Track(name, kind, group))
        return self.tracks[name]

    def add(
        self, track: int, start: float, end: float, kind: SpanKind, name: str, line: int = 0, cause: str = "", after=-1
    ) -> int:
        place = list(LINES).index(line) if line else -1
        self.timeline.spans.append(Span(track, start, end, kind, name, place, cause, after))
        return len(self.timeline.spans) - 1


def ring(stages: int, steps: int = 12, *, origin="predicted", slower: float = 1.0) -> Timeline:
    """Return what a warp-specialised GEMM with so many stages does in one CTA, for `steps` tiles of K."""
    timeline = Timeline(
        "matmul", "H200", origin, places=[Place(FILE, line, text) for line, text in LINES.items()], hertz=1.755e9,
        configuration=f"NUM_STAGES={stages}", notes=["The L2 cache is taken to hold A and B."],
    )  # fmt: skip
    made = Ring(timeline)
    producer = made.track("warp 0", "warp", "producer")
    consumers = [
        [made.track(f"warp {4 + 4 * half + warp}", "warp", f"consumer {half}") for warp in range(4)] for half in (0, 1)
    ]
    cores = [made.track(f"tensor core {number}", "tensor core", "units") for number in range(4)]
    tma = made.track("TMA", "tma", "units")
    full = [made.track(f"full[{slot}]", "barrier", "barriers") for slot in range(stages)]
    empty = [made.track(f"empty[{slot}]", "barrier", "barriers") for slot in range(stages)]
    slots = [made.track(f"slot {slot}", "buffer", "ring") for slot in range(stages)]

    clock, loaded = 300.0, 0.0
    made.add(producer, 0, clock, "work", "prologue")
    loads: list[int] = []
    ends: list[tuple[float, int]] = []
    """The end of the products of each step, and the span of the last."""
    before = -1
    at = [clock, clock]
    for warps in consumers:
        for warp in warps:
            made.add(warp, 0, clock, "work", "prologue")
    for k in range(steps):
        slot, phase = k % stages, k // stages
        if k >= stages and ends[k - stages][0] > clock:
            end, span = ends[k - stages]
            before = made.add(producer, clock, end, "wait", f"wait empty[{slot}] phase {phase - 1}", 54,
                              "arrival of warp 8", span)  # fmt: skip
            made.add(empty[slot], max(end - PRODUCT, 0), end, "phase", f"phase {phase - 1}", 70, "", span)
            clock = end
        issued = made.add(producer, clock, clock + ISSUE, "issue", "TMA load", 57, "", before)
        before = issued
        clock += ISSUE
        loaded = max(clock + LATENCY, loaded) + TRANSFER * slower
        loads.append(made.add(tma, clock, loaded, "copy", f"48 KiB to slot {slot}", 57, "", issued))
        made.add(full[slot], clock, loaded, "phase", f"phase {phase}", 57, "", loads[k])
        last = -1
        for half, warps in enumerate(consumers):
            if loaded > at[half]:
                for warp in warps:
                    made.add(warp, at[half], loaded, "wait", f"wait full[{slot}] phase {phase}", 66,
                             "TMA load of line 57", loads[k])  # fmt: skip
            begin = max(at[half], loaded)
            free = ends[-1][0] if half == 0 and ends else at[0] if half else 0
            for warp in warps:
                issued = made.add(warp, begin, begin + ISSUE, "issue", "wgmma m64n256k16 x 4", 67, "",
                                  loads[k] if loaded > at[half] else last if half else ends[-1][1])  # fmt: skip
            start = max(begin + ISSUE, free)
            for core in cores:
                last = made.add(core, start, start + PRODUCT, "product", f"consumer {half}, k = {k}", 67, "", issued)
            at[half] = start + PRODUCT
            for warp in warps:
                made.add(warp, begin + ISSUE, at[half], "wait", "wait for wgmma", 67, "products before it", last)
        ends.append((at[1], last))
        made.add(slots[slot], clock, at[1], "buffer", f"k = {k}", 57, "", last)
    stores: list[int] = []
    for half, warps in enumerate(consumers):
        for warp in warps:
            stores.append(made.add(warp, at[half], at[half] + STORE, "store", "store of C", 80, "", ends[-1][1]))
    timeline.end = max(span.end for span in timeline.spans)
    timeline.launch_cycles = timeline.end * 4
    timeline.critical = critical_path(timeline, stores[-1])
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
    each = spans // len(tracks)
    return Timeline(
        "many", "H200", "predicted", tracks,
        [
            Span(track, 10.0 * at, 10.0 * at + 9, kinds[at % 4], f"{kinds[at % 4]} {at}", at % 5)
            for track in range(len(tracks)) for at in range(each)
        ],
        [Place("many.py", line, f"line({line})") for line in range(1, 6)], end=10.0 * each,
    )  # fmt: skip
