"""The GPUs that kernels are compiled for: the features of each, and the message for a kernel that requires more.

A *feature* is a group of PTX instructions that come and go together. Operations of the dialects name the features that
they need (`dialects/base/operation.py`), and `Feature` alone lists the GPUs that have them:
the frontend and the pass `tlx-check-target` both use it, and the message of `refusal`. The rows were compared with what
ptxas assembles (tests/unit/targets/test_features_against_ptxas.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tlx_xdsl.errors import InputError


class Feature(Enum):
    """Instructions that some GPUs have and others lack.

    The value is the name that messages use, the targets in words, the capabilities that have it, and the section of
    the PTX ISA that says so.
    """

    CP_ASYNC = "cp.async", "sm_80 or later", (80,), "cp.async"
    MBARRIER = "mbarriers", "sm_80 or later", (80,), "mbarrier.init"
    """mbarriers that threads and `cp.async` arrive on, one by one."""
    FP8_CONVERSION = "fp8e4nv conversions", "sm_89 or later", (89,), "cvt"
    MBARRIER_COUNTS = "mbarriers that count bytes and several arrivals", "sm_90a or later", (90,), "mbarrier.arrive"
    """Arrivals that count for several, bytes that a phase waits for, and waits that suspend the thread."""
    ASYNC_PROXY = "the async proxy", "sm_90a or later", (90,), "membar/fence"
    BULK_COPY = "bulk copies", "sm_90a or later", (90,), "cp.async.bulk"
    TMA = "TMA", "sm_90a or later", (90,), "cp.async.bulk.tensor"
    CLUSTER = "thread-block clusters", "sm_90a or later", (90,), "barrier.cluster"
    SETMAXNREG = "setmaxnreg", "sm_90a or later", (90,), "setmaxnreg"
    DEPENDENT_LAUNCH = "programmatic dependent launch", "sm_90a or later", (90,), "griddepcontrol"
    ELECT = "elect.sync", "sm_90a or later", (90,), "elect.sync"
    WGMMA = "wgmma", "sm_90a", ((90, 90),), "wgmma.mma_async"
    PACKED_F32 = "packed fp32 arithmetic", "sm_100a or later", (100,), "add"
    PACKED_FP8 = "packed fp8 arithmetic", "sm_100a or sm_103a", ((100, 103),), "add"
    CLUSTER_LAUNCH_CONTROL = (
        "cluster launch control",
        "sm_100a or later",
        (100,),
        "clusterlaunchcontrol.try_cancel",
    )
    TCGEN05 = "tcgen05", "sm_100a", ((100, 119),), "tcgen05"
    TENSOR_MEMORY = "tensor memory", "sm_100a", ((100, 119),), "tensor memory"
    TCGEN05_INT8 = "tcgen05 on int8", "sm_100a or sm_110a, not sm_103a", ((100, 100), (110, 110)), "tcgen05.mma"
    TCGEN05_LOAD_REDUCE = "tcgen05.ld.red", "sm_103a", ((103, 119),), "tcgen05.ld"
    TMA_GATHER = "TMA gather", "sm_100a or later", (100,), "cp.async.bulk.tensor"
    TMA_SCATTER = "TMA scatter", "sm_100a", ((100, 119),), "cp.async.bulk.tensor"
    CTA_PAIRS = "CTA pairs", "sm_100a", ((100, 119),), "cp.async.bulk.tensor"
    STOCHASTIC_ROUNDING = "stochastic rounding", "sm_100a", ((100, 107),), "cvt"

    def __init__(
        self, display_name: str, where: str, capabilities: tuple[int | tuple[int, int], ...], section: str
    ) -> None:
        self.display_name = display_name
        """Its name in messages."""
        self.where = where
        """The targets that have it, in words."""
        self._capabilities = capabilities
        self.section = section
        """The section of the PTX ISA whose "Target ISA Notes" say which GPUs have it."""

    def on(self, capability: int) -> bool:
        """True if GPUs of a compute capability (90 for sm_90a) have it."""
        return any(_covers(each, capability) for each in self._capabilities)

    def __str__(self) -> str:
        """Name and targets: `wgmma (sm_90a)`."""
        return f"{self.display_name} ({self.where})"


def _covers(capabilities: int | tuple[int, int], capability: int) -> bool:
    """True if the range, or all from a number on, holds `capability`."""
    if isinstance(capabilities, int):
        return capability >= capabilities
    low, high = capabilities
    return low <= capability <= high


@dataclass(frozen=True)
class Target:
    """A GPU architecture."""

    name: str
    """As ptxas spells it. From 9.0 on this is the architecture-specific variant (sm_90a), the one that stock Triton
    always compiles for."""
    shared_bytes: int
    """Shared memory that one CTA may opt into (CUDA C++ Programming Guide, "Technical Specifications per Compute
    Capability", "Maximum amount of shared memory per thread block"; for sm_107a the limit that ptxas 13.4 names)."""
    first_triton: tuple[int, int] = (3, 6)
    """The first version of stock Triton whose ptxas knows it."""

    @property
    def capability(self) -> int:
        """The compute capability as Triton writes it: 90 for sm_90a."""
        return int("".join(character for character in self.name if character.isdigit()))

    @property
    def multiprocessors(self) -> int:
        """Multiprocessors of the largest GPU with it that is sold, or for a new one of H100 and H200."""
        return _MULTIPROCESSORS.get(self.capability, _MULTIPROCESSORS[90])

    @property
    def resident_threads(self) -> int:
        """Threads that a multiprocessor holds at once (CUDA C++ Programming Guide, the table of `shared_bytes`)."""
        return 1536 if self.capability in (86, 87, 89, 120, 121) else 2048

    @property
    def tmem_columns(self) -> int:
        """Columns of tensor memory that a CTA has."""
        return TMEM_COLUMNS if self.has(Feature.TENSOR_MEMORY) else 0

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features that it has."""
        return tuple(feature for feature in Feature if self.has(feature))

    def has(self, feature: Feature) -> bool:
        """True if it has `feature`."""
        return feature.on(self.capability)

    def runs_on(self, capability: int) -> bool:
        """True if a GPU of a compute capability, such as 90, runs binary code that was made for this target.

        Architecture-specific code (sm_90a) runs on its own capability only. Other code also runs on later ones with
        the same first figure, but not between Jetson's GPUs and others (CUDA C++ Programming Guide, "Binary
        Compatibility" and "Architecture-Specific Features").
        """
        if self.name.endswith("a") or JETSON in (self.capability, capability):
            return capability == self.capability
        return capability // 10 == self.capability // 10 and capability >= self.capability


TMEM_COLUMNS = 512
"""Columns of tensor memory, each of 128 lanes of 32 bits (PTX ISA, "Tensor Memory Addressing")."""

_MULTIPROCESSORS = {80: 108, 86: 84, 87: 16, 89: 142, 90: 132, 100: 148, 103: 160, 110: 20, 120: 188, 121: 48}
"""By compute capability: A100, RTX A6000, Orin, RTX 6000 Ada, H100, B200, B300, Thor, RTX PRO 6000, GB10 (their data
sheets)."""

JETSON = 87
"""The capability of Jetson's GPUs (Orin)."""

_KIB = 1024

TARGETS = (
    Target("sm_80", 163 * _KIB),
    Target("sm_86", 99 * _KIB),
    Target("sm_87", 163 * _KIB),
    Target("sm_89", 99 * _KIB),
    Target("sm_90a", 227 * _KIB),
    Target("sm_100a", 227 * _KIB),
    Target("sm_103a", 227 * _KIB),
    Target("sm_107a", 227 * _KIB, first_triton=(3, 9)),
    Target("sm_110a", 227 * _KIB, first_triton=(3, 7)),
    Target("sm_120a", 99 * _KIB),
    Target("sm_121a", 99 * _KIB),
)
"""All targets, by rising capability."""

NO_TARGETS = {
    "sm_75": "stock Triton supports compute capability 8.0 and later: its dots use no tensor cores below",
    "sm_88": "the ptxas that stock Triton takes for it does not know it",
    "sm_101": "ptxas calls it sm_110a since CUDA 13",
    "sm_100f": "stock Triton compiles for sm_100a, not for its family",
}
"""GPUs and names of ptxas that are no targets, and why."""

TMA_UNIT = 16
"""Bytes that a copy by TMA begins at multiples of, and that it writes a row in."""

_SPELLING = re.compile(r"(sm_\d{2,3})a?")


def target_named(name: str) -> Target:
    """The target that a user names; sm_90 and sm_90a are one, for stock Triton always compiles for the latter.

    Raises ValueError, which lists the targets, for any other name.
    """
    match = _SPELLING.fullmatch(name)
    found = next(
        (target for target in TARGETS if match is not None and target.name in (name, match[1], f"{name}a")), None
    )
    if found is None:
        why = NO_TARGETS.get(name.removesuffix("a"))
        known = ", ".join(target.name for target in TARGETS)
        raise InputError(f"unknown target '{name}': the targets are {known}{f'; {why}' if why else ''}")
    return found


def target_of(capability: int) -> Target:
    """The target of a compute capability, such as 90.

    Raises ValueError, which lists the targets, for another capability.
    """
    return target_named(f"sm_{capability}")


def targets_of(triton: tuple[int, int]) -> tuple[Target, ...]:
    """The targets that a version of stock Triton, such as (3, 6), compiles for."""
    return tuple(target for target in TARGETS if target.first_triton <= triton)


def refusal(what: str, alternatives: Sequence[Feature], target: Target) -> str:
    """The message for `what` needing one of `alternatives` where the target has none of them.

    Example: `tlx.async_dot needs wgmma (sm_90a) or tcgen05 (sm_100a); target is sm_89`
    """
    return f"{what} needs {' or '.join(map(str, alternatives))}; target is {target.name}"
