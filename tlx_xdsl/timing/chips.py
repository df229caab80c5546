"""Constants of the clock, one table a chip.

Cycles are those of a multiprocessor. Each constant says where it comes from: `measured` by the microbenchmarks under
`benchmarks/clock/` (an H200, 2026-11-29: the record is there), a paper, or NVIDIA's data sheet. `Luo 2024` is Luo et
al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking" (arXiv 2402.13499). What is
marked `assumed` is none of these. `dataclasses.replace` makes a chip with other constants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Chip:
    """A GPU as the clock knows it; the defaults are those of an H200."""

    name: str
    multiprocessors: int
    hertz: float
    """The clock of the multiprocessors that the constants hold for: the highest one. `at` gives those of another."""
    validated: bool
    """False for what no run of ours was compared with."""

    # A multiprocessor: NVIDIA, "CUDA C++ Programming Guide", compute capability 9.0.
    registers: int = 65_536
    shared_bytes: int = 228 * 1024
    reserved_shared_bytes: int = 1024
    """What the system takes of shared memory for each CTA."""
    threads: int = 2048
    most_ctas: int = 32

    # Launches.
    launch_cycles: float = 2_200.0
    """Of a launch besides its CTAs, as a profiler sees it. Fitted; an event before and one after see 5,400."""
    cta_start_cycles: float = 450.0
    """From a free place on a multiprocessor to the first instruction of a CTA. Measured: 460, less for small ones."""
    specialised_start_cycles: float = 600.0
    """The more for a CTA that moves registers between its warps: it waits for them, and its tasks for instructions.
    Probes in three kernels: 500 to 900 more than its instructions say before the first wait of a task."""
    cta_interval_cycles: float = 180.0
    """Between the starts of two CTAs on a multiprocessor. Measured: 155 for empty CTAs."""

    # Tensor cores. Measured, as in Luo 2024, table of wgmma: m64nNk16 takes N/2 cycles, if its operands come in time.
    product_column_cycles: float = 0.5
    """Of a `wgmma` over 32 bytes of K, for each column of N."""
    product_least_cycles: float = 13.0
    """Of a `wgmma` over 32 bytes of K."""
    product_latency: float = 45.0
    """From the end of a tensor core's work to the end of the wait for it. Measured: 53 to 63 with the instructions."""
    products_queued: int = 7
    """Products of a sub-partition that may wait before its warps stop issuing. Probes say 6 to 8."""
    product5_cycles: float = 0.25
    """Of a `tcgen05.mma` of 128 rows over 32 bytes of K, for each column. From the data sheet, unvalidated."""

    work_factor: float = 1.15
    """Cycles of a warp alone for each that its instructions say: it waits for what they do not show, too, as the fetch
    of instructions. Fitted: attention."""
    product_slowdown: float = 2.1
    """By how much a warp computes slower while the tensor core of its sub-partition works, which reads and writes
    registers, too. Fitted: attention; probes in it say 1.85 of softmax, 2.5 of the rescaling."""

    # The clock of a launch, from a warp beside kernels of the training set that noted cycles and nanoseconds.
    plain_hertz: float = 1.95e9
    """The clock of a launch without products. Those of the training set have 1.92 to 1.97 GHz."""
    product_hertz: float = 1.78e9
    """The clock of one with products of tensor cores, however few. Those of the training set have 1.79 GHz at most."""
    cool_products: float = 0.55
    """Part of the time for which all tensor cores may work before the power limit lowers the clock. Fitted."""
    hertz_for_products: float = 0.8e9
    """By how much the clock falls for each part of the time more. Fitted."""

    # Shared memory.
    shared_latency: float = 23.0
    """Of a load. Measured."""
    shared_bytes_per_cycle: float = 128.0
    """Measured; a wavefront is one cycle."""
    shared_queue_cycles: float = 32.0
    """Wavefronts that wait for the banks before warps stop issuing. Assumed."""
    remote_latency: float = 195.0
    """Of a load from another CTA's memory. Measured."""
    remote_arrive_cycles: float = 400.0
    """From an arrival at another CTA's mbarrier to the end of the phase. Measured: 516 to the wake-up."""
    remote_bytes_per_cycle: float = 20.0
    """To or from other CTAs, for each multiprocessor. Measured: 17 to 21."""

    # Global memory.
    l1_bytes: float = 256 * 1024
    """With shared memory. NVIDIA's tuning guide for Hopper."""
    l1_latency: float = 40.0
    """Of a load that the L1 cache has. Luo 2024: 40.7 on an H100."""
    lookups_per_cycle: float = 0.7
    """Lines that the L1 cache looks up for lanes whose bytes lie apart. Fitted: loads of columns, two bytes each."""
    copy_bytes_per_cycle: float = 46.0
    """What `cp.async` copies of a multiprocessor take. Fitted: matrix products that load so."""
    l1_bytes_per_cycle: float = 106.0
    """What a multiprocessor can take from the L2 cache. Measured, by TMA."""
    store_bytes_per_cycle: float = 32.0
    """What a multiprocessor can store. Measured."""
    near_latency: float = 100.0
    """Part of the latencies of the L2 cache and DRAM that a multiprocessor's own clock makes. Assumed."""
    l2_latency: float = 265.0
    """Of a load that the L2 cache has. Measured: 282 with the instructions of a chain of loads."""
    dram_latency: float = 670.0
    """Of a load that it has not. Measured."""
    l2_bytes_per_cycle: float = 4_650.0
    """What the L2 cache gives to all multiprocessors, if each reads other bytes. Measured."""
    l2_shared_gain: float = 1.5
    """By how much it gives more where many read the same bytes. Products of matrices reach that."""
    l2_store_bytes_per_cycle: float = 2_400.0
    """What the L2 cache takes of all multiprocessors. Measured."""
    l2_bytes: float = 36e6
    """What a launch finds again. NVIDIA's data sheet has 50 MB, in two halves that hold some lines twice; assumed."""
    dram_bytes_per_second: float = 4.5e12
    """Measured: 4.7 for reads."""
    dram_write_factor: float = 1.25
    """Bytes read that a byte written stands for. Measured: a copy reaches 3.8 TB/s."""

    # TMA.
    tma_issue_cycles: float = 30.0
    """Of the unit for each instruction. Assumed; measured are less than 97 with a wait."""
    tma_bytes_per_cycle: float = 106.0
    """Of the unit. Measured."""
    descriptor_cycles: float = 400.0
    """More that the first instruction with a descriptor takes on a multiprocessor. Assumed."""
    tma_latency: float = 240.0
    """From the instruction to the end of a phase that a load from the L2 cache completes, less the time of its bytes.
    Measured: 337 for 1 KiB, with the wait."""
    tma_dram_latency: float = 1_050.0
    """As `tma_latency`, for bytes from DRAM. Measured: 470 more for contiguous bytes, 850 for a box."""
    tma_store_read_latency: float = 21.0
    """From a bulk store to the end of its reading of shared memory, less the time of the bytes. Measured."""
    tma_store_latency: float = 52.0
    """From a bulk store to its end in global memory, less the time of the bytes. Measured."""

    # Barriers.
    arrive_cycles: float = 30.0
    """From an arrival to the phase that it ends."""
    wake_cycles: float = 50.0
    """From the end of a phase to the first instruction after the wait. Measured: 87 with the arrival."""
    wait_loop_cycles: float = 42.0
    """Of a wait for a phase that is over, with the branch of its loop. Measured."""
    named_barrier_cycles: float = 13.0
    """From the last arrival at a named barrier to the first instruction after it. Measured."""
    named_barrier_warp_cycles: float = 2.0
    """The more for each warp. Measured."""
    cluster_barrier_cycles: float = 250.0
    """From the last arrival at a cluster's barrier to the first instruction after it. Measured: 83 to 357."""
    atomic_latency: float = 450.0
    """Of an atomic operation on global memory that returns a value. Measured: 475 with the instructions."""
    tensor_load_latency: float = 40.0
    """Of accesses to tensor memory. Assumed, unvalidated."""

    def at(self, hertz: float) -> Chip:
        """Return the constants in cycles of another clock of the multiprocessors.

        The L2 cache and DRAM have clocks of their own, so a slow multiprocessor gets more bytes from them in a cycle
        and waits for fewer.
        """
        part = hertz / self.hertz

        def wait(cycles: float) -> float:
            return self.near_latency + (cycles - self.near_latency) * part

        return replace(
            self, hertz=hertz, l2_bytes_per_cycle=self.l2_bytes_per_cycle / part,
            l2_store_bytes_per_cycle=self.l2_store_bytes_per_cycle / part, l2_latency=wait(self.l2_latency),
            dram_latency=wait(self.dram_latency), tma_latency=wait(self.tma_latency),
            tma_dram_latency=wait(self.tma_dram_latency), atomic_latency=wait(self.atomic_latency),
            launch_cycles=self.launch_cycles * part,
        )  # fmt: skip

    def clock(self, products: float | None) -> float:
        """Return the clock in Hz of a launch all of whose tensor cores work for this part of the time, None for none.

        Products take power, and so much of it and no more is what the limit allows.
        """
        if products is None:
            return self.plain_hertz
        return self.product_hertz - self.hertz_for_products * max(0.0, products - self.cool_products)

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Return the bytes that DRAM moves in a cycle of the multiprocessors."""
        return self.dram_bytes_per_second / self.hertz


H200 = Chip("H200", 132, 1.98e9, True)
H100 = replace(H200, name="H100", validated=False, dram_bytes_per_second=3.0e12)
B200 = replace(
    H200,
    name="B200",
    multiprocessors=148,
    hertz=1.9e9,
    plain_hertz=1.9e9,
    product_hertz=1.9e9,
    hertz_for_products=0.0,
    validated=False,
    l2_bytes=126e6,
    dram_bytes_per_second=7.2e12,
)
"""From NVIDIA's data sheet where it says a figure; else the constants of an H200."""

CHIPS = {chip.name: chip for chip in (H200, H100, B200)}


def chip_named(name: str) -> Chip:
    """Return the constants of a GPU, `H200`, `H100` or `B200`.

    Raises ValueError for another name.
    """
    try:
        return CHIPS[name.upper()]
    except KeyError:
        raise ValueError(f"the clock has no constants of '{name}', only of {', '.join(CHIPS)}") from None
