"""What the processor has: the facts that choose between two ways of writing the same computation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """Of the processor that runs the code."""

    hardware_half: bool
    """Has instructions that convert between f16 and f32."""
    vector_bytes: int
    """Of a register: 64, 32 or 16."""
    registers: int
    """Vector registers: 32 or 16."""

    @staticmethod
    def of(features: Mapping[str, bool], triple: str) -> Features:
        """From LLVM's names of features (`llvmlite.binding.get_host_cpu_features()`) and a target triple.

        Every 64-bit Arm has conversions of f16, registers of 16 bytes and 32 of them (Arm ARM, "A64 Advanced SIMD").
        """
        if triple.startswith(("aarch64", "arm64")):
            return Features(hardware_half=True, vector_bytes=16, registers=32)
        has_512 = features.get("avx512f", False)
        vector_bytes = 64 if has_512 else 32 if features.get("avx2", False) or features.get("avx", False) else 16
        return Features(features.get("f16c", False), vector_bytes, 32 if has_512 else 16)
