"""The clock of the multiprocessors, by a kernel of one thread that counts cycles against `%globaltimer`."""

from __future__ import annotations

from typing import Any

from benchmarks.clock.ptx_kernels import Loaded, assemble, kernel

NANOSECONDS = 40_000

_PTX = kernel(
    "spin",
    """
    mov.u64 %d0, %globaltimer;
edge:
    mov.u64 %d1, %globaltimer;
    setp.eq.u64 %p0, %d0, %d1;
    @%p0 bra edge;
    mov.u64 %t0, %clock64;
    cvt.u64.u32 %d2, %n;
    add.u64 %d2, %d2, %d1;
inside:
    mov.u64 %d3, %globaltimer;
    setp.lt.u64 %p0, %d3, %d2;
    @%p0 bra inside;
    mov.u64 %t1, %clock64;
    sub.u64 %t1, %t1, %t0;
    sub.u64 %d3, %d3, %d1;
    st.global.u64 [%out], %t1;
    st.global.u64 [%out+8], %d3;
    """,
)


class Spin:
    """Counts cycles on the current stream of torch."""

    def __init__(self, torch: Any) -> None:
        self.out = torch.zeros(2, dtype=torch.int64, device="cuda")
        loaded = Loaded(assemble(_PTX), "spin")
        self.launch = loaded.bind(
            1, 32, self.out.data_ptr(), n=NANOSECONDS, stream=torch.cuda.current_stream().cuda_stream
        )

    def hertz(self) -> float:
        """The clock of the last launch, which has ended."""
        cycles, nanoseconds = self.out.tolist()
        return cycles / nanoseconds * 1e9
