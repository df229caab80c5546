"""The resources of one CTA on each target, the check against it, and how many CTAs a multiprocessor holds at once.

Stock Triton compares shared memory with the device's limit only when it loads the binary, so that a kernel
which can never launch costs a whole compile and fails far from its source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.targets import Target, target_named

from .errors import OutOfResourcesError
from .module_text import ModuleText
from .options import BackendOptions
from .result import KernelMetadata, KernelResources

MOST_THREADS = 1024
"""Threads of a CTA. Source: CUDA C++ Programming Guide, "Compute Capabilities"."""

REGISTERS = 64 * 1024
"""32-bit registers of an SM, all of which one CTA can have. Source: the same."""

_WARP_SIZE = 32
_SHOWN = 5
_MEMORY_OF = {"ttg.local_alloc": "shared memory", "ttng.tmem_alloc": "tensor memory"}
_BUFFER = re.compile(r"-> !ttg\.memdesc<(?P<shape>(?:\d+x)+)(?P<element>!tt\.ptr|[a-z]+(?P<bits>\d+))")
_POINTER_BITS = 64
_REGISTER_BOUND = re.compile(r'"?ttg\.maxnreg"? = (\d+)')


def check_resources(metadata: KernelMetadata, options: BackendOptions, ttgir: str) -> None:
    """Raise OutOfResourcesError if the kernel can never launch on the target of `options`.

    `ttgir` is the module's text after the stock passes, from which the largest buffers are named.
    """
    target = target_named(options.target)
    if metadata.shared > target.shared_bytes:
        raise _over("shared memory", "bytes", metadata.shared, target.shared_bytes, target, ttgir)
    if metadata.tmem_size > target.tmem_columns:
        raise _over("tensor memory", "columns", metadata.tmem_size, target.tmem_columns, target, ttgir)
    threads = metadata.num_warps * _WARP_SIZE
    if threads > MOST_THREADS:
        raise _too_many_threads(metadata.num_warps, options)
    # ptxas lowers the bound of any other kernel to what its threads can have; one whose tasks trade registers gets
    # all that it asks for.
    bound = _REGISTER_BOUND.search(ttgir)
    if bound is not None and "ttg.warp_specialize" in ttgir and threads * int(bound[1]) > REGISTERS:
        raise _too_many_registers(threads, int(bound[1]))


def _too_many_threads(warps: int, options: BackendOptions) -> OutOfResourcesError:
    tasks = warps - options.num_warps
    parts = f" ({options.num_warps} of num_warps, {tasks} of its tasks)" if tasks else ""
    needed = warps * _WARP_SIZE
    message = f"the kernel needs {needed} threads in {warps} warps{parts}, but a CTA has at most {MOST_THREADS}"
    return _out_of("threads", needed, MOST_THREADS, message)


def _too_many_registers(threads: int, bound: int) -> OutOfResourcesError:
    most = REGISTERS // threads // 8 * 8
    needed = threads * bound
    message = (
        f"the kernel needs {needed} registers ({threads} threads, those of its tasks included, of maxnreg = "
        f"{bound}), but an SM has {REGISTERS}: maxnreg can be at most {most}"
    )
    return _out_of("registers", needed, REGISTERS, message)


def _out_of(resource: str, required: int, limit: int, message: str) -> OutOfResourcesError:
    return OutOfResourcesError(message, resource=resource, required=required, limit=limit, stage="llir")


def _over(resource: str, unit: str, required: int, limit: int, target: Target, ttgir: str) -> OutOfResourcesError:
    buffers = largest_buffers(ttgir, resource)
    message = f"the kernel needs {required} {unit} of {resource}, but a CTA on {target.name} has at most {limit}"
    error = _out_of(resource, required, limit, message)
    if buffers:
        error.location = buffers[0].location
        error.notes = (
            *(f"{buffer.bytes} bytes: {buffer.shape} at {buffer.location}" for buffer in buffers[:_SHOWN]),
            *((f"and {len(buffers) - _SHOWN} smaller buffers",) if len(buffers) > _SHOWN else ()),
        )
    return error


@dataclass(frozen=True)
class Buffer:
    """An allocation in a module: `shape` as its type writes it, such as `2x64x128xf16`, without any padding."""

    bytes: int
    shape: str
    location: SourceLocation


def largest_buffers(ttgir: str, resource: str) -> list[Buffer]:
    """Return the allocations of shared or tensor memory in a module's text, largest first."""
    module = ModuleText(ttgir)
    found: list[Buffer] = []
    for operation in module.operations():
        if _MEMORY_OF.get(operation.name) != resource:
            continue
        if match := _BUFFER.search(module.lines[operation.line]):
            bits = int(match["bits"] or _POINTER_BITS)
            size = prod(int(extent) for extent in match["shape"].split("x") if extent) * bits // 8
            location, _ = module.place_of(operation, "<kernel>")
            found.append(Buffer(size, match["shape"] + match["element"], location))
    return sorted(found, key=lambda buffer: -buffer.bytes)


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
_CTAS = {86: 16, 87: 16, 89: 24, 120: 24, 121: 24}
"""CTAs that a multiprocessor holds, by compute capability; 32 on the others."""
_WARP = 32
_SYSTEM_BYTES = 1024
"""Shared memory that the system takes of each CTA, from sm_80 on (the guide's "Shared Memory" of each capability)."""
_WARP_UNIT = 256
"""Registers that a warp gets at a time (CUDA's occupancy calculator, "register allocation unit size")."""


@dataclass(frozen=True)
class Occupancy:
    """CTAs that are resident on one multiprocessor."""

    ctas: int
    limit: str
    """What there is too little of for one more: `threads`, `registers`, `shared memory`, or `CTAs`."""
    warps: int
    most_warps: int

    @property
    def share(self) -> float:
        """Resident warps as a share of the most that there can be."""
        return self.warps / self.most_warps

    def __str__(self) -> str:
        """Return the figures in words."""
        ctas = f"{self.ctas} CTA{'s' * (self.ctas != 1)}"
        return f"{ctas} with {self.warps} of {self.most_warps} warps ({self.share:.0%}), limited by {self.limit}"


def occupancy_of(metadata: KernelMetadata, resources: KernelResources, target: Target) -> Occupancy:
    """The occupancy of a binary on a target; registers are those at the launch, before tasks trade theirs."""
    warps = max(1, metadata.num_warps)
    registers = warps * -(-resources.registers * _WARP // _WARP_UNIT) * _WARP_UNIT
    shared = metadata.shared + resources.static_shared_bytes + _SYSTEM_BYTES
    most_warps = target.resident_threads // _WARP
    limits = {
        "CTAs": _CTAS.get(target.capability, 32),
        "threads": most_warps // warps,
        "registers": REGISTERS // registers if registers else most_warps,
        # A multiprocessor has what one CTA may have, and the system's part.
        "shared memory": (target.shared_bytes + _SYSTEM_BYTES) // shared,
    }
    limit = min(limits, key=lambda each: limits[each])
    return Occupancy(limits[limit], limit, limits[limit] * warps, most_warps)
