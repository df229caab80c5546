"""Enumerations of `ttng` (TritonNvidiaGPUEnums.td)."""

from __future__ import annotations

from tlx_xdsl.dialects.base import Keyword


class CacheEvictionPriority(Keyword):
    """How soon a cache line may be evicted (PTX ISA, "Cache Eviction Priority Hints")."""

    NONE = 0, "none"
    EVICT_NORMAL = 1, "evict_normal"
    EVICT_UNCHANGED = 2, "evict_unchanged"
    EVICT_FIRST = 3, "evict_first"
    EVICT_LAST = 4, "evict_last"
    NO_ALLOCATE = 5, "no_allocate"


class TMEMWaitKind(Keyword):
    """Which accesses to tensor memory a wait is for."""

    LOAD = 0, "load"
    STORE = 1, "store"


class TMEMLoadReduceModifier(Keyword):
    """The reduction that a load from tensor memory makes along the way."""

    MIN = 1, "min"
    MAX = 2, "max"


class PackedArithOpKind(Keyword):
    """What a packed arithmetic instruction computes."""

    ADD = 0, "add"
    SUB = 1, "sub"
    MUL = 2, "mul"
    FMA = 3, "fma"
    MIN = 4, "min"
    MAX = 5, "max"


class TensorMemoryScalesBlockRepOrder(Keyword):
    """Whether blocks of scales advance along M (or N) first, or along K."""

    MN_THEN_K = 0, "mnThenK"
    K_THEN_MN = 1, "kThenMn"
