"""Enumerations of `tt` (TritonAttrDefs.td, TritonAttrEnums.td, TritonTypeEnums.td)."""

from __future__ import annotations

from tlx_xdsl.dialects.base import Keyword, Sync
from tlx_xdsl.dialects.base.pointer import PtrAddrSpace as PtrAddrSpace


class MemSemantic(Keyword):
    """Memory ordering of an atomic operation."""

    RELAXED = 1, "relaxed"
    ACQUIRE = 2, "acquire"
    RELEASE = 3, "release"
    ACQUIRE_RELEASE = 4, "acq_rel"

    @property
    def sync(self) -> Sync:
        """What the operation orders."""
        release = Sync.RELEASE if self in (MemSemantic.RELEASE, MemSemantic.ACQUIRE_RELEASE) else Sync.NONE
        return release | (Sync.ACQUIRE if self in (MemSemantic.ACQUIRE, MemSemantic.ACQUIRE_RELEASE) else Sync.NONE)


class MemSyncScope(Keyword):
    """The threads among which an atomic operation orders memory."""

    GPU = 1, "gpu"
    CTA = 2, "cta"
    SYSTEM = 3, "sys"


class CacheModifier(Keyword):
    """The caches that an access goes through (PTX ISA, "Cache Operators")."""

    NONE = 1, "none"
    CA = 2, "ca"
    CG = 3, "cg"
    WB = 4, "wb"
    CS = 5, "cs"
    WT = 6, "wt"
    CV = 7, "cv"


class EvictionPolicy(Keyword):
    """How soon a cache line may be evicted."""

    NORMAL = 1, "evict_normal"
    EVICT_FIRST = 2, "evict_first"
    EVICT_LAST = 3, "evict_last"


class PaddingOption(Keyword):
    """What a load through a descriptor yields outside the tensor."""

    PAD_ZERO = 1, "zero"
    PAD_NAN = 2, "nan"


class RMWOp(Keyword):
    """What an atomic read-modify-write does."""

    AND = 1, "and"
    OR = 2, "or"
    XOR = 3, "xor"
    ADD = 4, "add"
    FADD = 5, "fadd"
    MAX = 6, "max"
    MIN = 7, "min"
    UMAX = 8, "umax"
    UMIN = 9, "umin"
    XCHG = 10, "exch"


class DescriptorReduceKind(Keyword):
    """What a reducing store through a descriptor does."""

    ADD = 1, "add"
    MIN = 2, "min"
    MAX = 3, "max"
    INC = 4, "inc"
    DEC = 5, "dec"
    AND = 6, "and"
    OR = 7, "or"
    XOR = 8, "xor"


class ProgramIDDim(Keyword):
    """An axis of the grid."""

    X = 0, "x"
    Y = 1, "y"
    Z = 2, "z"


class RoundingMode(Keyword):
    """Rounding of a float conversion: towards zero, or to the nearest with ties to even."""

    RTZ = 0, "rtz"
    RTNE = 1, "rtne"


class PropagateNan(Keyword):
    """Whether a NaN operand makes the result NaN."""

    NONE = 0, "none"
    ALL = 0xFFFF, "all"


class InputPrecision(Keyword):
    """How a dot of f32 operands uses the tensor cores: rounded once, split into several products, or not at all."""

    TF32 = 0, "tf32"
    TF32x3 = 1, "tf32x3"
    IEEE = 2, "ieee"
    BF16x3 = 3, "bf16x3"
    BF16x6 = 4, "bf16x6"


class ScaleDotElemType(Keyword):
    """Element type of an operand of a scaled dot; the 4-bit ones come packed in pairs."""

    E4M3 = 0, "e4m3"
    E5M2 = 1, "e5m2"
    E2M3 = 2, "e2m3"
    E3M2 = 3, "e3m2"
    E2M1 = 4, "e2m1"
    BF16 = 5, "bf16"
    FP16 = 6, "fp16"
