"""Constants of the clock, one table a chip.

Cycles are those of a multiprocessor. Each constant says where it comes from: `measured` by the microbenchmarks under
`benchmarks/clock/` (card and date in the committed record there), a paper, or NVIDIA's data sheet. `Luo 2024` is Luo et
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
    """The clock that a launch is taken to run at where none was measured."""
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
    launch_cycles: float = 4_000.0
    """From the event before an empty launch to the one after it. Assumed: 2 microseconds."""
    cta_start_cycles: float = 600.0
    """From a free place on a multiprocessor to the first instruction of a CTA. Assumed."""

    # Tensor cores. Luo 2024, table of wgmma: m64nNk16 takes N/2 cycles, with at least that of N = 64 for A in memory.
    product_column_cycles: float = 0.5
    """Of a `wgmma` over 32 bytes of K, for each column of N."""
    product_least_cycles: float = 16.0
    """Of a `wgmma` over 32 bytes of K whose A lies in registers."""
    product_least_shared_cycles: float = 16.0
    """Of a `wgmma` over 32 bytes of K whose A lies in shared memory."""
    product_latency: float = 32.0
    """From the end of a tensor core's work to the end of the wait for it. Assumed."""
    products_queued: int = 4
    """Products of a sub-partition that may wait for the tensor core before its warps stop issuing. Assumed."""
    tensor_efficiency: float = 0.95
    """Part of the cycles of a product that the tensor cores reach in a long row of them. Assumed."""
    product5_cycles: float = 0.25
    """Of a `tcgen05.mma` of 128 rows over 32 bytes of K, for each column. From the data sheet, unvalidated."""

    # Shared memory.
    shared_latency: float = 29.0
    """Of a load. Luo 2024, table of latencies."""
    shared_bytes_per_cycle: float = 128.0
    """Luo 2024; a wavefront is one cycle."""
    shared_queue_cycles: float = 32.0
    """Wavefronts that wait for the banks before warps stop issuing. Assumed."""
    remote_latency: float = 200.0
    """Of an access to another CTA's memory, one way and back. Luo 2024: 180 cycles."""
    remote_bytes_per_cycle: float = 32.0
    """To other CTAs, for each multiprocessor. Luo 2024: 3.3 TB/s in all."""

    # Global memory.
    l2_latency: float = 273.0
    """Of a load that the L2 cache has. Luo 2024: 261.5 on an H100."""
    dram_latency: float = 650.0
    """Of a load that it has not. Luo 2024: 478.8 without the misses of the TLB; assumed."""
    l1_bytes: float = 256 * 1024
    """With shared memory. NVIDIA's tuning guide for Hopper."""
    l1_latency: float = 38.0
    """Of a load that the L1 cache has. Luo 2024: 40.7 on an H100."""
    lookups_per_cycle: float = 4.0
    """Lines that the L1 cache looks up for lanes whose bytes lie apart. Assumed."""
    l1_bytes_per_cycle: float = 64.0
    """What a multiprocessor can take from the L2 cache. NVIDIA's tuning guides."""
    l2_bytes_per_cycle: float = 6_000.0
    """What the L2 cache gives to all multiprocessors. Assumed."""
    l2_bytes: float = 50e6
    """NVIDIA's data sheet."""
    dram_bytes_per_second: float = 4.3e12
    """Reached by a copy from device to device, bytes read and written together."""
    dram_credit_cycles: float = 1_500.0
    """How much of a multiprocessor's share of the bandwidth that it left unused it may take later. Assumed."""
    lockstep: float = 0.5
    """Of the CTAs that share what DRAM gives, the part that asks for it before it has come. Assumed."""

    # TMA.
    tma_issue_cycles: float = 40.0
    """Of the unit for each instruction. Assumed."""
    tma_bytes_per_cycle: float = 64.0
    """Of the unit. Assumed to be as wide as the way from the L2 cache."""
    descriptor_cycles: float = 400.0
    """More that the first instruction with a descriptor takes on a multiprocessor. Assumed."""
    tma_latency: float = 660.0
    """From the instruction to the arrival of the first bytes that the L2 cache has, less the time of the bytes.
    Luo 2024 has about 170 cycles more than a load, and more for tensors."""
    tma_dram_latency: float = 1_030.0
    """As `tma_latency`, for bytes from DRAM."""
    tma_store_read_latency: float = 250.0
    """From a bulk store to the end of its reading of shared memory, less the time of the bytes. Assumed."""
    tma_store_latency: float = 700.0
    """From a bulk store to its end in global memory, less the time of the bytes. Assumed."""

    # Barriers.
    arrive_cycles: float = 20.0
    """From an arrival to the phase that it ends. Assumed."""
    wake_cycles: float = 24.0
    """From the end of a phase to the first instruction after the wait. Assumed."""
    try_wait_cycles: float = 20.0
    """Of a wait for a phase that is over. Assumed."""
    named_barrier_cycles: float = 16.0
    """From the last arrival at a named barrier to the first instruction after it. Assumed."""
    cluster_barrier_cycles: float = 180.0
    """From the last arrival at a cluster's barrier to the first instruction after it. Assumed."""
    atomic_latency: float = 500.0
    """Of an atomic operation on global memory that returns a value. Assumed."""
    tensor_load_latency: float = 40.0
    """Of accesses to tensor memory. Assumed, unvalidated."""

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Return the bytes that DRAM moves in a cycle of the multiprocessors."""
        return self.dram_bytes_per_second / self.hertz


H200 = Chip("H200", 132, 1.98e9, True)
H100 = replace(H200, name="H100", dram_bytes_per_second=3.0e12)
B200 = replace(
    H200, name="B200", multiprocessors=148, hertz=1.9e9, validated=False, l2_bytes=126e6, dram_bytes_per_second=7.2e12
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
