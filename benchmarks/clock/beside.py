"""The clock of the multiprocessors while a kernel runs, by one warp on another stream that notes cycles and time.

Under load the power limit takes the clock down within microseconds, and it is up again right after: a count of cycles
before or after a launch does not show it. The warp sleeps between its notes, and ends after `MOST` of them in any case,
so that a kernel that needs its multiprocessor goes on then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.clock.ptx_kernels import Loaded, assemble, kernel

MOST = 30_000
"""Notes of the warp, at least a microsecond apart."""
PAUSE_NS = 400

_NOTE = kernel(
    "note",
    f"""
    mov.u64 %d0, %out;
    mov.u32 %r0, 0;
again:
    mov.u64 %d1, %globaltimer;
    mov.u64 %d2, %clock64;
    st.volatile.global.v2.u64 [%d0+16], {{%d1, %d2}};
    add.u64 %d0, %d0, 16;
    add.u32 %r0, %r0, 1;
    nanosleep.u32 {PAUSE_NS};
    ld.volatile.global.u32 %r1, [%data];
    setp.eq.u32 %p0, %r1, 0;
    setp.lt.and.u32 %p1, %r0, %n, %p0;
    @%p1 bra again;
    st.global.u32 [%out], %r0;
    """,
    threads=32, registers=32,
)  # fmt: skip
_STAMP = kernel("stamp", "    mov.u64 %d0, %globaltimer;\n    st.global.u64 [%out], %d0;\n", threads=32)
_STOP = kernel("stop", "    mov.u32 %r0, 1;\n    st.volatile.global.u32 [%data], %r0;\n", threads=32)


class Beside:
    """Notes the clock beside launches on the current stream of torch."""

    def __init__(self, torch: Any, launches: int) -> None:
        """Prepare to look at so many launches at a time."""
        self.torch = torch
        self.notes = torch.zeros(2 * (MOST + 2), dtype=torch.int64, device="cuda")
        self.stamps = torch.zeros(launches, dtype=torch.int64, device="cuda")
        self.stop = torch.zeros(2, dtype=torch.int32, device="cuda")
        self.other = torch.cuda.Stream()
        stream = torch.cuda.current_stream().cuda_stream
        out, data = self.notes.data_ptr(), self.stop.data_ptr()
        self._note = Loaded(assemble(_NOTE), "note").bind(
            1, 32, out, data=data, n=MOST, stream=self.other.cuda_stream
        )  # fmt: skip
        self._stop = Loaded(assemble(_STOP), "stop").bind(1, 32, out, data=data, stream=stream)
        stamp = Loaded(assemble(_STAMP), "stamp")
        self._stamp = [
            stamp.bind(1, 32, self.stamps.data_ptr() + 8 * at, stream=stream) for at in range(launches)
        ]  # fmt: skip

    def begin(self) -> None:
        """Start to take notes."""
        self.stop.zero_()
        self.notes.zero_()
        self.torch.cuda.synchronize()
        self._note()

    def stamp(self, at: int) -> None:
        """Note when the launch `at`, which comes next, can begin."""
        self._stamp[at]()

    def end(self) -> None:
        """End the notes once all launches so far are done."""
        self._stop()
        self.torch.cuda.synchronize()

    def hertz(self, nanoseconds: float) -> list[float]:
        """Return the mean clock in the first nanoseconds after each stamp; none where no note is near."""
        count = int(self.notes[0].item()) & 0xFFFFFFFF
        times, cycles = self.notes[2 : 2 + 2 * count].reshape(-1, 2).cpu().numpy().T
        found: list[float] = []
        for stamp in self.stamps.tolist():
            first = int(np.searchsorted(times, stamp))
            last = int(np.searchsorted(times, stamp + nanoseconds, "right")) - 1
            if last - first < 2:
                first, last = max(0, first - 1), min(count - 1, last + 1)
            if 0 <= first < last < count and times[last] > times[first]:
                found.append(float(cycles[last] - cycles[first]) / float(times[last] - times[first]) * 1e9)
        return found
