"""The effects of operations: the memory that they access, and how they synchronise.

An operation declares them beside its name:

    EFFECTS: ClassVar = Effects(reads("src"), writes("desc"), by=TMA, completes_on=Group.BULK)

Where properties or operands make a difference, the class has a method `effects` that gives the `Effects` of one
operation. What neither declares effects nor is known to have none may do anything (`UNKNOWN`). The memory effects of
xDSL follow from the declaration (`DeclaredEffects`), so that passes and analyses can't disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from enum import Enum, Flag, auto
from functools import cache, cached_property
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.traits import (
    EffectInstance,
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    NoMemoryEffect,
    RecursiveMemoryEffect,
)

from .pointer import Space as Space, Sync as Sync
from .tensors import scalar_type


class Proxy(Enum):
    """The path of an access to memory (PTX ISA, "Proxies")."""

    GENERIC = auto()
    """Threads, `cp.async` and `st.async`."""
    ASYNC = auto()
    """TMA and other bulk copies."""
    TENSOR_CORE = auto()
    """Tensor cores: to shared memory the async proxy as well."""


class Kind(Flag):
    """Kinds of access of an operation to the memory of one operand."""

    READ = auto()
    WRITE = auto()
    ATOMIC = auto()
    """With the others: no other access comes in between."""
    PREFETCH = auto()
    """Brings it into a cache."""
    ALLOC = auto()
    FREE = auto()
    INIT = auto()
    """Makes it an mbarrier, which arrivals and waits may use."""
    ARRIVE = auto()
    """Arrives at an mbarrier, which releases."""
    COMPLETE = auto()
    """Completes bytes at an mbarrier when an asynchronous access is over."""
    WAIT = auto()
    """Waits at an mbarrier, which acquires."""


class Group(Enum):
    """The end of asynchronous accesses that no mbarrier among the operands reports."""

    CP_ASYNC = "cp.async group"
    BULK = "bulk group"
    WGMMA = "wgmma group"
    TCGEN05 = "tcgen05.commit"


class MaskedResult(Enum):
    """The result of an access where its mask is false."""

    GIVEN = auto()
    """There is no mask, or an operand says what the result is."""
    ZERO = auto()
    """Stock Triton's code for NVIDIA GPUs sets the register to 0 before the access, which the mask skips."""
    ANY = auto()
    """Whatever lay in memory that the access does not write then."""


@dataclass(frozen=True)
class Engine:
    """Threads, or the hardware that accesses memory for them."""

    name: str
    """Subject of messages."""
    proxy: Proxy = Proxy.GENERIC


THREADS = Engine("threads")
TMA = Engine("TMA", Proxy.ASYNC)
BULK_COPY = Engine("a bulk copy", Proxy.ASYNC)
LAUNCH_CONTROL = Engine("cluster launch control", Proxy.ASYNC)
TENSORMAP = Engine("the encoder of tensormaps")
WGMMA = Engine("wgmma", Proxy.TENSOR_CORE)
TCGEN05 = Engine("tcgen05", Proxy.TENSOR_CORE)
TCGEN05_COPY = Engine("tcgen05.cp", Proxy.TENSOR_CORE)
TCGEN05_SHIFT = Engine("tcgen05.shift", Proxy.TENSOR_CORE)


@dataclass(frozen=True)
class Access:
    """An access to the memory that an operand refers to."""

    operand: str
    """Its name; that of a result for an allocation. An operand that is no address is not accessed."""
    kind: Kind
    cluster: bool = False
    """True if other CTAs' copies of the buffer are accessed, too."""


def reads(operand: str, *, cluster: bool = False) -> Access:
    """A read."""
    return Access(operand, Kind.READ, cluster)


def writes(operand: str, *, cluster: bool = False) -> Access:
    """A write."""
    return Access(operand, Kind.WRITE, cluster)


def updates(operand: str, *, cluster: bool = False) -> Access:
    """A read and a write."""
    return Access(operand, Kind.READ | Kind.WRITE, cluster)


def atomically(operand: str) -> Access:
    """An atomic update."""
    return Access(operand, Kind.READ | Kind.WRITE | Kind.ATOMIC)


def prefetches(operand: str) -> Access:
    """A prefetch into a cache."""
    return Access(operand, Kind.PREFETCH)


def initialises(operand: str) -> Access:
    """The initialisation of an mbarrier."""
    return Access(operand, Kind.INIT)


def arrives(operand: str, *, cluster: bool = False) -> Access:
    """An arrival at an mbarrier."""
    return Access(operand, Kind.ARRIVE, cluster)


def waits(operand: str) -> Access:
    """A wait at an mbarrier."""
    return Access(operand, Kind.WAIT)


def allocates(result: str, *, initialised: bool = False) -> Access:
    """New memory, with or without initial values."""
    return Access(result, Kind.ALLOC | Kind.WRITE if initialised else Kind.ALLOC)


def frees(operand: str) -> Access:
    """The end of a lifetime."""
    return Access(operand, Kind.FREE)


@dataclass(frozen=True, init=False)
class Effects:
    """The effects of an operation."""

    accesses: tuple[Access, ...] | None
    """None where anything may be accessed."""
    by: Engine
    """Makes the accesses."""
    completes_on: str | Group | None
    """The mbarrier operand or the group that reports their end; None where the operation itself waits for it."""
    completes_in_cluster: bool
    """True if other CTAs' copies of that mbarrier may report it, too."""
    sync: Sync
    """Beyond what arrivals and waits among the accesses bring."""
    ends: Group | None
    """Asynchronous accesses of its threads that are over after it, or before it arrives at an mbarrier."""

    def __init__(
        self,
        *accesses: Access,
        by: Engine = THREADS,
        completes_on: str | Group | None = None,
        completes_in_cluster: bool = False,
        sync: Sync = Sync.NONE,
        ends: Group | None = None,
        known: bool = True,
    ):
        object.__setattr__(self, "accesses", accesses if known else None)
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "completes_on", completes_on)
        object.__setattr__(
            self, "completes_in_cluster", completes_in_cluster or any(access.cluster for access in accesses)
        )
        object.__setattr__(self, "sync", sync)
        object.__setattr__(self, "ends", ends)

    @cached_property
    def memory_effects(self) -> Set[EffectInstance]:
        """The same in xDSL's terms; what synchronises reads and writes, so that it stays where it is."""
        if self.accesses is None or self.sync or self.completes_on is not None:
            return _effects(MemoryEffectKind.READ, MemoryEffectKind.WRITE)
        return frozenset[EffectInstance]().union(*(_memory_effects(access.kind) for access in self.accesses))


NO_EFFECTS = Effects()
ORDERED = Effects(sync=Sync.ORDERED)
"""No access to memory, but the operation must stay where it is."""
UNKNOWN = Effects(sync=Sync.RELEASE | Sync.ACQUIRE, known=False)
"""Any access, and any synchronisation."""


def _effects(*kinds: MemoryEffectKind) -> frozenset[EffectInstance]:
    return frozenset(map(EffectInstance, kinds))


def _memory_effects(kind: Kind) -> frozenset[EffectInstance]:
    if Kind.ALLOC in kind:
        # Writing an initial value to new memory is seen by nothing before.
        return _effects(MemoryEffectKind.ALLOC)
    match kind:
        case Kind.READ:
            return _effects(MemoryEffectKind.READ)
        case Kind.WRITE:
            return _effects(MemoryEffectKind.WRITE)
        case Kind.FREE:
            return _effects(MemoryEffectKind.FREE)
        case _:
            return _effects(MemoryEffectKind.READ, MemoryEffectKind.WRITE)


def is_set(op: Operation, name: str) -> bool:
    """True if a flag among the properties is given, and not false."""
    flag = op.properties.get(name)
    return flag is not None and not (isinstance(flag, IntegerAttr) and not flag.value.data)


def effects_of(op: Operation) -> Effects:
    """The declared effects of an operation, without those of operations in its regions."""
    declared = _declaration(type(op))
    return declared if isinstance(declared, Effects) else declared(op)


@cache
def _declaration(cls: type[Operation]) -> Effects | Callable[[Operation], Effects]:
    """The effects of all operations of a class, or the method that gives those of one."""
    declared = getattr(cls, "effects", None) or getattr(cls, "EFFECTS", None)
    if declared is not None:
        return declared
    free = (NoMemoryEffect, RecursiveMemoryEffect, IsTerminator)
    return NO_EFFECTS if any(cls.has_trait(trait, value_if_unregistered=False) for trait in free) else UNKNOWN


def sync_of(op: Operation) -> Sync:
    """The synchronisation that an operation brings."""
    effects = effects_of(op)
    sync = effects.sync
    for access in (effects.accesses and accesses_of(op)) or ():
        if Kind.ARRIVE in access.kind:
            sync |= Sync.RELEASE
        elif Kind.WAIT in access.kind:
            sync |= Sync.ACQUIRE
    return sync


class OperandAccess(NamedTuple):
    """An access of one operation to the memory of one of its values."""

    operand: str
    """Its name in the definition of the operation."""
    value: SSAValue
    space: Space
    kind: Kind
    proxy: Proxy
    completes_on: str | Group | None
    cluster: bool

    @property
    def is_async(self) -> bool:
        """True if it goes through the async proxy."""
        return self.proxy is not Proxy.GENERIC


def accesses_of(op: Operation) -> tuple[OperandAccess, ...] | None:
    """The accesses of an operation to the values that it has; None where anything may be accessed."""
    effects = effects_of(op)
    if effects.accesses is None:
        return None
    if not effects.accesses and effects.completes_on is None:
        return ()
    found = [
        OperandAccess(access.operand, value, space, access.kind, effects.by.proxy, effects.completes_on, access.cluster)
        for access in effects.accesses
        for value, space in _addresses(op, access.operand)
    ]
    if isinstance(effects.completes_on, str):
        cluster, complete = effects.completes_in_cluster, Kind.COMPLETE
        for value, space in _addresses(op, effects.completes_on):
            found.append(OperandAccess(effects.completes_on, value, space, complete, effects.by.proxy, None, cluster))
    return tuple(found)


def global_access(op: Operation, kinds: Kind = Kind.READ | Kind.WRITE) -> OperandAccess | None:
    """The access to global memory that an operation makes, of one of `kinds`; the bytes of descriptors do not count."""
    if effects_of(op).by is TENSORMAP:
        return None
    for access in accesses_of(op) or ():
        if access.space is Space.GLOBAL and access.kind & kinds:
            return access
    return None


def pointers_of(op: Operation) -> SSAValue | None:
    """The pointer, or tensor of pointers, through which threads access global memory; None for other operations."""
    access = global_access(op)
    return None if access is None or access.is_async else access.value


def kind_of(use: Use) -> Kind | None:
    """Kinds of access of an operation to the memory of one of its operands; None for any access."""
    accesses, value = accesses_of(use.operation), use.operation.operands[use.index]
    if accesses is None:
        return None
    kind = Kind(0)
    for access in accesses:
        if access.value is value:
            kind |= access.kind
    return kind


def _addresses(op: Operation, name: str) -> Iterator[tuple[SSAValue, Space]]:
    """The values of an operand or result that refer to memory."""
    found: SSAValue | tuple[SSAValue, ...] | None = getattr(op, name)
    values = () if found is None else (found,) if isinstance(found, SSAValue) else tuple(found)
    for value in values:
        if (space := space_of(value.type)) is not None:
            yield value, space


def space_of(type_: Attribute) -> Space | None:
    """The memory that values of a type, or the elements of a tensor type, refer to; None for other types."""
    space: Space | None = getattr(scalar_type(type_), "space", None)
    return space


class DeclaredEffects(MemoryEffect):
    """The memory effects that an operation declares; it reads and writes where it declares nothing."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        """The effects of `op` in xDSL's terms."""
        return effects_of(op).memory_effects


class ViewLayout(Enum):
    """The relation of the layout of a view to that of its buffer."""

    SAME = auto()
    FOLLOWS = auto()
    """The dimensions change, and the layout with them."""
    OWN = auto()
    """The bytes are seen in any layout."""


@dataclass(frozen=True)
class View:
    """A view of the buffer, or array of buffers, that is the first operand: it moves no data.

    An operation that is one declares it beside its name: `VIEW: ClassVar = View(ViewLayout.SAME)`.
    """

    layout: ViewLayout
    of_array: bool = False
    """True if a view of an array is one of as many of its buffers as its type says, which are known when compiling."""


def view_of(op: Operation) -> View | None:
    """The declaration of an operation that is a view of a buffer; None for all others."""
    view: View | None = getattr(op, "VIEW", None)
    return view if view is not None and space_of(op.operands[0].type) is not None else None
