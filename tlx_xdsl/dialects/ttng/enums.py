"""Enumerations of `ttng` (TritonNvidiaGPUEnums.td)."""

from __future__ import annotations

from ..base import Keyword


class CacheEvictionPriority(Keyword):
    """The eviction priority of a cache line (PTX ISA, "Cache Eviction Priority Hints")."""

    NONE = 0
    EVICT_NORMAL = 1
    EVICT_UNCHANGED = 2
    EVICT_FIRST = 3
    EVICT_LAST = 4
    NO_ALLOCATE = 5


class TMEMWaitKind(Keyword):
    """The accesses to tensor memory that a wait is for."""

    LOAD = 0
    STORE = 1


class TMEMLoadReduceModifier(Keyword):
    """The reduction that a load from tensor memory makes along the way."""

    MIN = 1
    MAX = 2


class PackedArithOpKind(Keyword):
    """The function that a packed arithmetic instruction computes."""

    ADD = 0
    SUB = 1
    MUL = 2
    FMA = 3
    MIN = 4
    MAX = 5


class TensorMemoryScalesBlockRepOrder(Keyword):
    """The dimension along which blocks of scales advance first: M (or N), or K."""

    MN_THEN_K = 0, "mnThenK"
    K_THEN_MN = 1, "kThenMn"
