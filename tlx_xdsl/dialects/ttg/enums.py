"""Enumerations of `ttg` (TritonGPUEnums.td)."""

from __future__ import annotations

from ..base import Keyword


class SharedKind(Keyword):
    """Kinds of access to shared memory: by instructions, by an asynchronous engine, or as an mbarrier."""

    Generic = 0
    Async = 1
    Barrier = 2


class AddrSpace(Keyword):
    """Memory that a barrier orders; a bit mask."""

    Null = 0b00000, "none"
    Local = 0b00001
    GlobalRead = 0b00010, "global_read"
    GlobalWrite = 0b00100, "global_write"
    TensorRead = 0b01000, "tensor_read"
    TensorWrite = 0b10000, "tensor_write"
    All = 0b11111

    @staticmethod
    def of(mask: int) -> tuple[AddrSpace, ...]:
        """The fewest cases that make up `mask`, which must be within `All`."""
        for whole in (AddrSpace.Null, AddrSpace.All):
            if mask == whole.value:
                return (whole,)
        return tuple(space for space in AddrSpace if space not in (AddrSpace.Null, AddrSpace.All) and mask & space)
