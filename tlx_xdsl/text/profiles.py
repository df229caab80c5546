"""The spelling of the IR in each Triton version, in one file.

The IR in memory is version-neutral; a profile picks the spelling and refuses what its version can't express.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TypeAlias

from tlx_xdsl.errors import InputError

Version: TypeAlias = tuple[int, int]


FIRST_VERSION: dict[str, Version] = {
    "ttg.barrier": (3, 7),
    "ttg.local_gather": (3, 7),
    "ttg.local_scatter": (3, 7),
    "ttg.warp_id": (3, 7),
    "ttng.fence_mbarrier_init_release_cluster": (3, 7),
    "ttg.local_atomic_scatter_rmw": (3, 8),
    "ttng.async_shared_store": (3, 8),
    "ttng.clc_get_program_id": (3, 8),
    "ttng.clc_is_canceled": (3, 8),
    "ttng.clc_load_result": (3, 8),
    "ttng.clc_try_cancel": (3, 8),
    "ttng.cluster_barrier": (3, 8),
    "ttng.packed_arith": (3, 8),
    "tt.approx_divf": (3, 9),
    "tt.atomic_load": (3, 9),
    "tt.atomic_poll": (3, 9),
    "tt.atomic_store": (3, 9),
    "tt.grid_dependency_launch_dependents": (3, 9),
    "tt.grid_dependency_wait": (3, 9),
    "ttg.inline_asm": (3, 9),
    "ttng.clc_try_cancel_sync": (3, 9),
    "ttng.tmem_wait": (3, 9),
}
"""The first version of each operation that 3.6 lacks (asked of 3.6.0, 3.7.1, 3.8.0 and 3.9.0)."""

LAST_VERSION: dict[str, Version] = {
    "tt.advance": (3, 7),
    "tt.make_tensor_ptr": (3, 7),
    "ttg.local_barrier": (3, 6),
    "ttng.cluster_arrive": (3, 8),
    "ttng.cluster_wait": (3, 8),
}
"""The last version of each operation that 3.9 lacks."""


def version_name(version: Version) -> str:
    """The version as text, such as `3.9`."""
    return ".".join(map(str, version))


@dataclass(frozen=True)
class Profile:
    """The text conventions of one Triton version."""

    version: Version
    tensordesc_wraps_tensor: bool
    """`!tt.tensordesc<tensor<64x64xf16, #shared>>` (3.6, 3.7) or `!tt.tensordesc<64x64xf16, #shared>` (3.8, 3.9)."""
    tmem_cta_splits: bool
    """Tensor memory over two CTAs: `CTASplitM = 2` (3.6, 3.7) or `CGALayout = [[1, 0]]` (3.8, 3.9)."""
    cache_policy_as_keywords: bool
    """Cache hints: `cacheModifier = cg` (3.6 to 3.8) or an attribute `cachePolicy` (3.9)."""
    pointer_space_as_number: bool
    """Address spaces of pointers: `!tt.ptr<f32, 0>` (3.6 to 3.8) or `!tt.ptr<f32, "descriptor">` (3.9). That of
    pointers that are only read, "constant", came with 3.9."""
    tmem_subslice_n: bool
    """The offset of a `ttng.tmem_subslice`: `N` (3.6 to 3.8) or `offset` (3.9)."""

    gpu_barriers: bool
    """The barrier of the thread block: `gpu.barrier` (3.6), for all memory, or `ttg.barrier`, which says for what."""

    views_fill_allocations: bool
    """A `ttg.memdesc_reinterpret` must have as many bits as its source (3.8), not just no more."""

    selects_buffers: bool
    """An `arith.select` may choose between buffers of shared memory (from 3.8 on); older versions assert."""

    calls_beside_tasks: bool
    """Calls that are not inlined are right in a kernel with tasks (from 3.9 on). A barrier in the function that is
    called waits for the threads of all tasks in 3.6 and 3.7, which is a deadlock; 3.8 asserts."""

    sums_bfloat16: bool
    """`tl.sum`, `cumsum` and `cumprod` of bf16 are computed in bf16 (from 3.9 on), not in f32."""

    cached_loads: bool
    """TMA loads may have a cache policy (from 3.9 on); older versions refuse it."""

    dead_accesses: bool
    """Global accesses may stand where control never gets to (from 3.7 on); 3.6 asserts."""

    synchronized_captures: bool
    """What tasks capture is stored after a barrier of all threads (from 3.7 on); in 3.6 other warps may still read what
    lies there."""

    synchronized_tensor_memory: bool
    """Warps meet between accesses to tensor memory that depend on each other (from 3.8 on)."""

    synchronized_atomics: bool
    """The threads of a program meet before an atomic operation that releases, and after one that acquires (from 3.9
    on)."""

    misjudges: tuple[str, ...]
    """What the analysis of alignment gets wrong, as options of `tlx-hide-alignment`."""

    miscompiles: tuple[str, ...]
    """What is compiled wrong and can't be put right, as options of `tlx-check-miscompiled`."""

    keeps_sums_of_products: bool
    """`tl.sum(x[:, :, None] * y[None, :, :], axis)` is a dot along axis 1 only, with fp32 as precise (from 3.8 on)."""

    rounds_to_e5m2: bool
    """Conversions to f8E5M2 by software round to nearest even, and saturate (from 3.9 on)."""

    converts_halves: bool
    """Elements of 16 bits are converted to f8E5M2 in hardware where the target can (from 3.7 on)."""

    runs_empty_loops: bool
    """An inner loop of a flattened one runs once where its end lies before its begin (up to 3.8)."""

    allocates_for_pairs: bool
    """`ttng.two-ctas` is heeded where tensors do not span CTAs (from 3.8 on); older versions set it anew."""

    @property
    def has_clc(self) -> bool:
        """Return whether there are operations of the cluster launch control."""
        return self.version >= FIRST_VERSION["ttng.clc_try_cancel"]

    @property
    def has_local_gathers(self) -> bool:
        """Return whether there is an operation that picks from a buffer in shared memory."""
        return self.version >= FIRST_VERSION["ttg.local_gather"]

    @property
    def has_dependent_launches(self) -> bool:
        """Return whether there are operations of programmatic dependent launches."""
        return self.version >= FIRST_VERSION["tt.grid_dependency_wait"]

    @property
    def negates_from_zero(self) -> bool:
        """Return whether Triton's own frontend makes `0 - x` of `-x`, which is 0 for the zero (3.6 and 3.7)."""
        return self.version < (3, 8)

    @property
    def name(self) -> str:
        """The version as text, such as `3.9`."""
        return version_name(self.version)

    def why_missing(self, operation: str) -> str | None:
        """Return why this version can't express an operation, or None when it can."""
        if operation.startswith("tlx."):
            return f"'{operation}' is an operation of tlx_xdsl itself, which no pass has lowered for Triton"
        first, last = FIRST_VERSION.get(operation), LAST_VERSION.get(operation)
        if first is not None and self.version < first:
            return f"'{operation}' does not exist in Triton {self.name}, it came with {version_name(first)}"
        if last is not None and self.version > last:
            return (
                f"'{operation}' does not exist in Triton {self.name}, the last version with it was {version_name(last)}"
            )
        return None


_JUDGED_SINCE: dict[str, Version] = {"remainders": (3, 9), "sums": (3, 7), "selects": (3, 8), "shifts": (3, 9)}
"""The version from which on the alignment of each kind of offset is right."""


_COMPILED_SINCE: dict[str, Version] = {"atomics": (3, 9), "histograms": (3, 9), "reductions": (3, 8), "joins": (3, 9)}
"""The version from which on each kind of operation is right."""


def _profile(version: Version) -> Profile:
    return Profile(
        version,
        tensordesc_wraps_tensor=version < (3, 8),
        tmem_cta_splits=version < (3, 8),
        cache_policy_as_keywords=version < (3, 9),
        pointer_space_as_number=version < (3, 9),
        tmem_subslice_n=version < (3, 9),
        gpu_barriers=version < (3, 7),
        views_fill_allocations=version == (3, 8),
        selects_buffers=version >= (3, 8),
        calls_beside_tasks=version >= (3, 9),
        sums_bfloat16=version >= (3, 9),
        cached_loads=version >= (3, 9),
        dead_accesses=version >= (3, 7),
        synchronized_captures=version >= (3, 7),
        synchronized_tensor_memory=version >= (3, 8),
        synchronized_atomics=version >= (3, 9),
        misjudges=tuple(name for name, since in _JUDGED_SINCE.items() if version < since),
        miscompiles=tuple(name for name, since in _COMPILED_SINCE.items() if version < since),
        keeps_sums_of_products=version >= (3, 8),
        rounds_to_e5m2=version >= (3, 9),
        converts_halves=version >= (3, 7),
        runs_empty_loops=version < (3, 9),
        allocates_for_pairs=version >= (3, 8),
    )


@dataclass(frozen=True)
class MlirProfile:
    """The text conventions of upstream MLIR, for modules that hold no operation of Triton."""

    name: str
    """The LLVM release, such as `19`, or `newest`."""
    to_tensor_of_memref: bool
    """`bufferization.to_tensor %m : memref<4xf32>` (up to LLVM 19), or with `to tensor<4xf32>` after it."""
    to_memref: bool
    """`bufferization.to_memref` (up to LLVM 20), which is `to_buffer` now."""
    kinds_of_update: int
    """Operations of `memref.atomic_rmw`: 15, or with `xori` 16."""

    def spelling_of(self, operation: str) -> str:
        """The name of an operation in this release."""
        return FORMER_NAMES.get(operation, operation) if self.to_memref else operation

    def why_missing(self, operation: str) -> str | None:
        """Return why upstream MLIR can't express an operation, or None when it may."""
        if operation.partition(".")[0] in _OF_TRITON:
            return f"'{operation}' is no operation of upstream MLIR, and no pass has lowered it"
        return None


FORMER_NAMES = {"bufferization.to_buffer": "bufferization.to_memref"}
"""Names of operations in older releases of LLVM."""

NEWER_NAMES = {former: name for name, former in FORMER_NAMES.items()} | {
    "ttng.shared_cluster_memory": "tlx.shared_cluster_memory"
}
"""Names of operations and attributes here, by their former ones and by those of Meta's Triton."""

_OF_TRITON = ("tlx", "tt", "ttg", "ttng")

MLIR_PROFILES: tuple[MlirProfile, ...] = (
    MlirProfile("19", to_tensor_of_memref=True, to_memref=True, kinds_of_update=15),
    MlirProfile("newest", to_tensor_of_memref=False, to_memref=False, kinds_of_update=16),
)
"""From the oldest release to the newest; their text was read by `mlir-opt` 19.1.7 and by LLVM 24."""


def mlir_profile(name: str) -> MlirProfile:
    """The profile of a release of LLVM by its name.

    Raises ValueError for a name that is not listed.
    """
    for profile in MLIR_PROFILES:
        if profile.name == name:
            return profile
    raise InputError(f"expected one of {', '.join(each.name for each in MLIR_PROFILES)}, found '{name}'")


PROFILES: tuple[Profile, ...] = tuple(_profile(version) for version in ((3, 6), (3, 7), (3, 8), (3, 9)))
"""From the oldest version to the newest."""

NEUTRAL = PROFILES[-1]
"""The spelling of IR between our own passes, which may hold operations of every version."""


def parse_version(text: str) -> Version:
    """The major and minor number in `text` (`3.9`, `3.9.0`, `3.9.0+git123`).

    Raises ValueError for anything else.
    """
    match = re.match(r"(\d+)\.(\d+)(?![\d])", text)
    if match is None:
        raise InputError(f"expected a Triton version such as 3.9, found '{text}'")
    return int(match[1]), int(match[2])


def nearest_profile(version: str) -> Profile | None:
    """The profile of a Triton version, or of the nearest lower one; None below the oldest.

    Raises ValueError when `version` is no version.
    """
    wanted = parse_version(version)
    return max((each for each in PROFILES if each.version <= wanted), key=lambda each: each.version, default=None)


def profile_for(version: str) -> Profile:
    """The profile of a Triton version; an unlisted one gets the nearest lower profile and a warning.

    Raises ValueError when `version` is no version or lies below the oldest profile.
    """
    profile = nearest_profile(version)
    if profile is None:
        raise InputError(f"Triton {version} is not supported, the oldest supported version is {PROFILES[0].name}")
    if profile.version != parse_version(version):
        warnings.warn(f"Triton {version} is not known, its text is written as for {profile.name}", stacklevel=2)
    return profile


_VALID_NAME = re.compile(r"[\w$.-]+", re.ASCII)
_VALID_BYTE = re.compile(rb"[\w$.-]")


def ascii_name(name: str) -> str:
    """`name` as MLIR prints the name of a value: a blank is `_`, any other byte that it can't hold two hex digits."""
    if _VALID_NAME.fullmatch(name):
        return name
    return "".join(
        chr(byte) if _VALID_BYTE.fullmatch(bytes([byte])) else "_" if byte == 0x20 else f"{byte:02X}"
        for byte in name.encode()
    )
