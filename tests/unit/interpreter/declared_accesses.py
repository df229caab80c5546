"""Accesses that operations declare and make, in the same terms."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from tlx_xdsl.dialects.base.effects import Group, Kind, Proxy, Space, Sync, accesses_of, effects_of, sync_of

DATA = Kind.READ | Kind.WRITE
"""Accesses to data, which have a proxy and an end."""


@dataclass(frozen=True)
class Item:
    """An access of one kind to the memory of an operand: one that is declared, or one that was made."""

    operand: str
    kind: Kind
    """One flag."""
    space: Space | None = None
    proxy: Proxy | None = None
    """None where it is not observed; of data only. It is not where an operation itself waits for an access to global
    memory: the interpreter has one order of those, whatever the proxy."""
    end: str | Group | None = None
    """The mbarrier operand or the group that reports its end; of data only."""
    cluster: bool = False
    has_end: bool = True
    """Whether the end is observed."""

    def __str__(self) -> str:
        parts = [str(self.kind.name), f"'{self.operand}'", "" if self.space is None else self.space.name]
        parts += ["" if self.proxy is None else self.proxy.name, f"until {self.end}" if self.has_end else ""]
        return " ".join(part for part in (*parts, "of other CTAs" if self.cluster else "") if part)

    def allows(self, made: Item) -> bool:
        """Return whether this declaration covers what was made."""
        return (
            self.operand == made.operand
            and self.kind == made.kind
            and (self.space == made.space or (self.space, made.space) == (Space.CLUSTER, Space.SHARED))
            and made.proxy in (None, self.proxy)
            and (self.end == made.end or not made.has_end)
            and self.cluster >= made.cluster
        )

    def is_made_by(self, made: Item) -> bool:
        """Return whether an access is just what is declared, where that promises less."""
        is_whole = made.has_end or made.kind not in DATA
        return self.allows(made) and is_whole and self.space == made.space and self.cluster == made.cluster


def declares(class_: type[Operation]) -> bool:
    """Return whether operations of a class declare effects."""
    return hasattr(class_, "EFFECTS") or hasattr(class_, "effects")


@dataclass(frozen=True)
class Declaration:
    """Declaration of an operation, with one item for each flag."""

    items: frozenset[Item] | None
    """None where it may access anything."""
    sync: Sync


def declared(op: Operation) -> Declaration:
    """The declaration of an operation."""
    accesses, sync = accesses_of(op), sync_of(op) & ~(Sync.ORDERED | Sync.THREADS)
    if accesses is None:
        return Declaration(None, sync)
    items: set[Item] = set()
    for access in effects_of(op).accesses or ():
        if Kind.ALLOC in access.kind:
            items.add(Item(access.operand, Kind.ALLOC, has_end=False))
    for access in accesses:
        for flag in access.kind:
            if flag is Kind.ALLOC:
                continue
            is_data = flag in DATA
            proxy, end = (access.proxy, access.completes_on) if is_data else (None, None)
            items.add(Item(access.operand, flag, access.space, proxy, end, access.cluster, is_data))
    return Declaration(frozenset(items), sync)


@functools.lru_cache(maxsize=4096)
def names_of(op: Operation) -> dict[Any, list[str]]:
    """The names of each operand and result in the definition of an operation."""
    names: dict[Any, list[str]] = defaultdict(list)
    definition = type(op).get_irdl_definition()  # pyright: ignore
    for name, _ in (*definition.operands, *definition.results):
        value = getattr(op, name)
        for each in () if value is None else value if isinstance(value, tuple) else (value,):
            names[each].append(name)
    return names


@dataclass(frozen=True)
class Finding:
    """Difference between the accesses that operations of a class have made and those that they declare."""

    op: str
    what: str
    """An `Item`, or a flag of `Sync`."""
    is_declared: bool
    """Whether it is declared and was never made; else it was made and is not declared."""

    def __str__(self) -> str:
        verb = "declares, and never makes" if self.is_declared else "makes, and does not declare"
        return f"{self.op} {verb}: {self.what}"
