"""Enumerations of `tt` (TritonAttrDefs.td, TritonAttrEnums.td, TritonTypeEnums.td)."""

from __future__ import annotations

from ..base import Keyword, PtrAddrSpace as PtrAddrSpace, Sync


class MemSemantic(Keyword):
    """Memory ordering of an atomic operation."""

    RELAXED = 1
    ACQUIRE = 2
    RELEASE = 3
    ACQUIRE_RELEASE = 4, "acq_rel"

    @property
    def sync(self) -> Sync:
        """The ordering that the operation establishes."""
        release = Sync.RELEASE if self in (MemSemantic.RELEASE, MemSemantic.ACQUIRE_RELEASE) else Sync.NONE
        return release | (Sync.ACQUIRE if self in (MemSemantic.ACQUIRE, MemSemantic.ACQUIRE_RELEASE) else Sync.NONE)


class MemSyncScope(Keyword):
    """The threads among which an atomic operation orders memory."""

    GPU = 1
    CTA = 2
    SYSTEM = 3, "sys"


class CacheModifier(Keyword):
    """The caches that an access goes through (PTX ISA, "Cache Operators")."""

    NONE = 1
    CA = 2
    CG = 3
    WB = 4
    CS = 5
    WT = 6
    CV = 7


class EvictionPolicy(Keyword):
    """The eviction priority of a cache line."""

    NORMAL = 1, "evict_normal"
    EVICT_FIRST = 2
    EVICT_LAST = 3


class PaddingOption(Keyword):
    """The value that a load through a descriptor yields outside the tensor."""

    PAD_ZERO = 1, "zero"
    PAD_NAN = 2, "nan"


class RMWOp(Keyword):
    """The operation of an atomic read-modify-write."""

    AND = 1
    OR = 2
    XOR = 3
    ADD = 4
    FADD = 5
    MAX = 6
    MIN = 7
    UMAX = 8
    UMIN = 9
    XCHG = 10, "exch"


class DescriptorReduceKind(Keyword):
    """The operation of a reducing store through a descriptor."""

    ADD = 1
    MIN = 2
    MAX = 3
    INC = 4
    DEC = 5
    AND = 6
    OR = 7
    XOR = 8


class ProgramIDDim(Keyword):
    """An axis of the grid."""

    X = 0
    Y = 1
    Z = 2


class RoundingMode(Keyword):
    """Rounding of a float conversion: towards zero, or to the nearest with ties to even."""

    RTZ = 0
    RTNE = 1


class PropagateNan(Keyword):
    """True if a NaN operand makes the result NaN."""

    NONE = 0
    ALL = 0xFFFF, "all"


class InputPrecision(Keyword):
    """The use of tensor cores by a dot of f32 operands: rounded once, split into several MMAs, or not at all."""

    TF32 = 0
    TF32x3 = 1
    IEEE = 2
    BF16x3 = 3
    BF16x6 = 4


class ScaleDotElemType(Keyword):
    """Element type of an operand of a scaled dot; the 4-bit ones come packed in pairs."""

    E4M3 = 0
    E5M2 = 1
    E2M3 = 2
    E3M2 = 3
    E2M1 = 4
    BF16 = 5
    FP16 = 6
