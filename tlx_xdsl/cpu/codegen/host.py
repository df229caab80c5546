"""The CPU of this machine, and llvmlite, which knows it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType

from tlx_xdsl.errors import InputError, MissingLibraryError

_FAST_BF16 = "znver"
"""The beginning of LLVM's names of CPUs that multiply bf16 faster than f32: AMD's. Intel's emeraldrapids does 16 of
bf16 in a cycle and 32 of f32 (1.45e9 `vdpbf16ps` and 6.3e9 `vfmadd` of 512 bits in a second, 2026-11-30)."""

# What the processor has: the facts that choose between two ways of writing the same computation.


@dataclass(frozen=True, slots=True)
class Features:
    """Features of the processor that runs the code."""

    hardware_half: bool
    """Has instructions that convert between f16 and f32."""
    vector_bytes: int
    """Bytes of a register: 64, 32 or 16."""
    registers: int
    """Vector registers: 32 or 16."""
    sve: bool = False
    """Has Arm's vectors of no fixed length, in registers of at least `vector_bytes`."""
    bf16_products: bool = False
    """Has products of bf16 that are faster than those of f32 (AVX512-BF16)."""
    byte_products: bool = False
    """Has products of bytes (AVX512-VNNI, AVX-VNNI)."""
    tiles: bool = False
    """Has products of tiles of bf16 and of bytes (AMX), which this process may use."""

    @staticmethod
    def of(features: Mapping[str, bool], triple: str, cpu: str = "") -> Features:
        """Read LLVM's names of features (`llvmlite.binding.get_host_cpu_features()`) and a target triple.

        Every 64-bit Arm has conversions of f16, registers of 16 bytes and 32 of them (Arm ARM, "A64 Advanced SIMD").
        """
        if _is_arm(triple):
            return Features(hardware_half=True, vector_bytes=16, registers=32)
        has_512 = features.get("avx512f", False)
        vector_bytes = 64 if has_512 else 32 if features.get("avx2", False) or features.get("avx", False) else 16
        has_bytes = features.get("avx512vnni" if has_512 else "avxvnni", False)
        has_bf16 = has_512 and features.get("avx512bf16", False) and cpu.startswith(_FAST_BF16)
        has_tiles = has_512 and all(features.get(f"amx-{each}", False) for each in ("tile", "bf16", "int8"))
        return Features(
            features.get("f16c", False), vector_bytes, 32 if has_512 else 16, False, has_bf16, has_bytes, has_tiles
        )  # fmt: skip


REQUIRED = "pip install 'tlx-xdsl[cpu]'"

_V2 = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
LEVELS: dict[str, tuple[str, ...]] = {"x86-64": (), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
"""Instructions that many CPUs have in common, beside those of every x86-64: the x86-64 psABI, "Micro-Architecture
Levels". LLVM knows them as CPUs by these names."""

_ARM = {"arm64": 16, "arm64-sve256": 32, "arm64-sve512": 64}
"""64-bit Arms and the bytes of their vector registers: NEON is in all, those of SVE are at least so long."""

_SYSTEMS = {
    "linux": ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"),
    "macos": ("x86_64-apple-macosx10.15.0", "arm64-apple-macosx11.0.0"),
    "windows": ("x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc"),
}
"""Target triples for x86-64 and for Arm. Objects are ELF, Mach-O and COFF."""

NATIVE = "native"
"""The name of the CPU of this machine, whichever it is."""

_ANY_ARM = "generic"
"""LLVM's name of what every 64-bit Arm has."""

_OTHER_NAMES = {_ANY_ARM: "arm64", "aarch64": "linux-arm64"}


@dataclass(frozen=True)
class Host:
    """The CPU and the system that LLVM compiles for."""

    triple: str
    cpu: str
    """LLVM's name of it, such as `znver4`."""
    attributes: str
    """The instructions that it has, as LLVM's `+avx512f,-amx,...`."""
    features: Features

    def has(self, feature: str) -> bool:
        """Return whether it has the instructions that LLVM calls so."""
        return f"+{feature}" in self.attributes.split(",")


@cache
def llvm() -> ModuleType:
    """The module `llvmlite.binding`, ready to compile for this machine.

    Raises MissingLibraryError if llvmlite is missing, or cannot be loaded.
    """
    try:
        import llvmlite.binding as binding  # pyright: ignore[reportMissingTypeStubs, reportMissingImports]
    except (ImportError, OSError) as error:
        raise MissingLibraryError(f"kernels run natively on a CPU with llvmlite ({error}): {REQUIRED}") from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding  # pyright: ignore[reportUnknownVariableType]


@cache
def host() -> Host:
    """The machine that this process runs on.

    Raises InputError if llvmlite is missing, or does not know the CPU.
    """
    binding = llvm()
    try:
        cpu, held = binding.get_host_cpu_name(), dict(binding.get_host_cpu_features())
    except RuntimeError as error:
        raise InputError(f"LLVM does not know this CPU: {error}") from error
    triple = binding.get_process_triple()
    held["amx-tile"] = held.get("amx-tile", False) and may_use_tiles()
    attributes = ",".join(f"{'+' if has else '-'}{name}" for name, has in sorted(held.items()))
    return Host(triple, cpu, attributes, Features.of(held, triple, cpu))


def may_use_tiles() -> bool:
    """Ask Linux for AMX's registers, and return whether it has given them.

    A process has them from then on, and its children (Linux, "Using XSTATE features in user space applications").
    """
    number, ask, tile_data = 158, 0x1023, 18
    return sys.platform == "linux" and ctypes.CDLL(None).syscall(number, ask, tile_data) == 0


def named_host(name: str) -> Host:
    """Return this machine, or all CPUs that have some instructions, with this system or with another one.

    `x86-64-v3` and `arm64` are of this machine's architecture and system; `linux-arm64`, `macos-arm64` or
    `windows-x86-64-v3` name the system too, and their code can't be loaded on other machines.
    Raises InputError for an unknown name, and as `host` does.
    """
    own = host()
    if name == NATIVE:
        # Whoever loads a file has not asked for the registers of AMX.
        return replace(own, features=replace(own.features, tiles=False))
    level, triple = _OTHER_NAMES.get(name, name), own.triple
    system, _, rest = level.partition("-")
    if system in _SYSTEMS:
        level, triple = rest, _SYSTEMS[system][rest in _ARM]
        binding = llvm()
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
    if _is_arm(triple) and level in _ARM and (_ARM[level] == 16 or "linux" in triple):
        features = Features(hardware_half=True, vector_bytes=_ARM[level], registers=32, sve=_ARM[level] > 16)
        return Host(triple, "apple-m1" if "apple" in triple else _ANY_ARM, "+sve" if features.sve else "", features)
    if triple.startswith("x86_64") and level in LEVELS:
        attributes = ",".join(f"+{each}" for each in LEVELS[level])
        return Host(triple, level, attributes, Features.of(dict.fromkeys(LEVELS[level], True), triple))
    here = _ARM if _is_arm(own.triple) else LEVELS if own.triple.startswith("x86_64") else ()
    raise InputError(
        f"unknown CPU '{name}', expected one of {', '.join((NATIVE, *here))}, or one of a system: "
        f"{', '.join(f'{system}-{each}' for system in _SYSTEMS for each in ('x86-64-v3', 'arm64'))}, ..."
    )


def _is_arm(triple: str) -> bool:
    return triple.startswith(("aarch64", "arm64"))
