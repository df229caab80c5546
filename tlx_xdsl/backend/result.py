"""What a compile gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tlx_xdsl.backend.options import UpTo


@dataclass(frozen=True)
class KernelMetadata:
    """What a launcher must know about the kernel; the names are those of Triton's own metadata.

    `name` is the entry point in the PTX. `shared` is dynamic shared memory in bytes. `num_warps` counts ALL
    warps of a CTA, those of the warp-specialised partitions too. `tmem_size` is in tensor memory columns.
    `tensordesc_meta` holds one mapping per tensor descriptor argument (`swizzle`, `elem_size`, `elem_type`,
    `block_size`, ...), in argument order. The scratch sizes and alignments are in bytes, per CTA. `cluster`
    is the cluster shape that the binary demands (`.reqnctapercluster`), None if it leaves the cluster to the
    launch.
    """

    name: str = ""
    shared: int = 0
    num_warps: int = 0
    num_ctas: int = 1
    tmem_size: int = 0
    tensordesc_meta: tuple[Mapping[str, object], ...] = ()
    global_scratch_size: int = 0
    global_scratch_align: int = 1
    profile_scratch_size: int = 0
    profile_scratch_align: int = 1
    cluster: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class KernelResources:
    """What ptxas spent: registers per thread, and bytes per thread of spills and stack."""

    registers: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    stack_bytes: int = 0


@dataclass(frozen=True)
class BackendResult:
    """The products of a compile up to and including stage `upto`; those of later stages are empty.

    `ttgir` is the text after the stock passes. `metadata` is filled from `llir` on (`name` and
    `tensordesc_meta` from `ttgir` on, `cluster` from `ptx` on), `resources` by `cubin`. `warnings` holds one
    line each: ptxas's performance warnings (`C7510: ...`) and what else Triton and ptxas warned about.
    `times_ms` gives the wall time in milliseconds of `parse`, `passes`, `llir`, `ptx` and `cubin`, as far as
    they ran. `log` is everything that was printed meanwhile.
    """

    upto: UpTo
    triton_version: str
    ttgir: str
    llir: str = ""
    ptx: str = ""
    cubin: bytes = b""
    metadata: KernelMetadata = field(default_factory=KernelMetadata)
    resources: KernelResources = field(default_factory=KernelResources)
    warnings: tuple[str, ...] = ()
    times_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    log: str = ""
