"""Accesses to global memory that nothing orders, of the warps and CTAs of a launch.

(PTX ISA, "Memory Consistency Model".)

Two accesses to one element conflict where one of them writes, but not where both are strong, each in the other's
scope: atomic operations, and loads and stores that are `.relaxed`, `.acquire`, `.release` or `.volatile`. A release
orders what its warp knows before the acquire that reads what it wrote, or what later atomic operations made of it. Here
an acquire takes all releases at its address so far: CTAs run in one order, and the read has the last value. A fence
makes a release of the strong writes after it, and an acquire of the strong reads before it. Scopes count: those of
`.cta` are for the same CTA only.

What is known of a wave's own agents is in its clocks; this has what its warps know of other waves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Booleans, Integers, distinct

from .dependent_launches import DependentLaunch
from .memory.global_shadow import AGENT, AGENT_BITS, AGENT_SHIFT, SEVERAL, GlobalShadow, cta_of
from .memory.surroundings import Trap
from .read.faults import PtxRace

Foreign: TypeAlias = "dict[int, NDArray[np.int32]]"
"""The last step that is known of each agent of each wave."""

WEAK, CTA, CLUSTER, GPU, SYS = range(5)
"""How strong an access is: its scope."""
_SCOPE, _STEP_SHIFT = 7, 4
"""The bits of an access's scope, and those after which its step begins (`global_shadow.SEVERAL` is between them)."""
SHARED, GLOBAL = range(2)
"""The memories whose accesses are acquired from other CTAs of a cluster, each in its own way."""
_SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "sys": SYS, "gl": GPU}
_SCOPE_NAMES = {CTA: "cta", CLUSTER: "cluster", GPU: "gpu"}
_STEP = (1 << AGENT_SHIFT - _STEP_SHIFT) - 1


class Sync(NamedTuple):
    """Scope of an access or a fence, and whether it acquires or releases."""

    scope: int = WEAK
    acquires: bool = False
    releases: bool = False


def sync_of(modifiers: tuple[str, ...], *, is_atomic: bool = False) -> Sync:
    """Return what the parts of an operation code say of order: `.acquire.gpu`, `.volatile` and the like."""
    scope = next((_SCOPES[part] for part in modifiers if part in _SCOPES), WEAK)
    said = {"relaxed", "acquire", "release", "acq_rel", "volatile", "mmio", "sc"} & set(modifiers)
    if not is_atomic and not said and not scope:
        return Sync()
    both = bool({"acq_rel", "sc"} & said)
    return Sync(scope or GPU, both or "acquire" in said, both or "release" in said)


def talks(program: Any) -> bool:
    """Return whether a kernel has strong accesses, or fences, by which CTAs may order what they do."""
    return any(
        (each.name in ("atom", "red") and not any(part.startswith("shared") for part in each.modifiers))
        or (each.name in ("ld", "st", "fence", "membar") and sync_of(each.modifiers).scope >= GPU)
        for each in program.function.instructions
    )


@dataclass(frozen=True, slots=True)
class Released:
    """Knowledge that was released at an address."""

    by_system: Foreign = field(default_factory=dict[int, "NDArray[np.int32]"])
    """That of scope `.sys`."""
    near: dict[tuple[int, int], Foreign] = field(default_factory=dict[tuple[int, int], "Foreign"])
    """All that was, by a narrower scope and the number of the CTA, the cluster or the GPU that has released it."""


class GlobalOrder:
    """The accesses of a launch."""

    def __init__(
        self, cluster_size: int, dependent: DependentLaunch | None, *, compares: bool, of_gpu: int | None = None
    ) -> None:
        self._parts = ((CTA, 1), (CLUSTER, cluster_size), (GPU, of_gpu or 1 << 40))
        """How many CTAs a scope has: those of the next GPU are numbered after them."""
        self._widest = GPU if of_gpu is None else SYS
        """The scope that has all CTAs."""
        self.compares = compares
        self.dependent = dependent
        """What is accessed before and after the wait for earlier launches, where the kernel has one."""
        self.waves: list[Any] = []
        """The clocks of each wave."""
        self.writes = 0
        """How many accesses have written."""
        self._shadows: dict[int, GlobalShadow] = {}
        self._released: list[Released] = [Released()]
        self._grown: dict[tuple[int, int, int], int] = {}
        self._snapshots: list[Foreign] = []

    def join(self, clocks: Any) -> int:
        """The number of a wave."""
        self.waves.append(clocks)
        return len(self.waves) - 1

    # Accesses --------------------------------------------------------------------------------------------------------

    def access(
        self, view: WaveView, buffer: Any, addresses: Integers, size: int, owner: Any, code: Any, what: str
    ) -> None:
        """An access of warps `owner`: a `read`, a `write`, or an `update`, which does both."""
        if (shadow := self._shadows.get(buffer.start)) is None:
            shadow = self._shadows[buffer.start] = GlobalShadow(buffer, min(size, 16), view.warps)
        strength = int(np.ravel(code)[0]) & _SCOPE
        self.writes += what != "read"

        def check(found: Integers, at: Integers, past: str) -> None:
            self._check(view, owner, strength, found, (at, buffer.name, past, what))

        (shadow.read if what == "read" else shadow.write)(addresses, size, code, check)

    def _check(self, view: WaveView, owner: Any, strength: int, found: Integers, report: Any) -> None:
        owners = np.broadcast_to(owner if isinstance(owner, int) else np.asarray(owner)[:, None], found.shape)
        late = found != 0
        if strength >= self._widest:
            late &= found & _SCOPE < self._widest
        agents, steps = found >> AGENT_SHIFT, found >> _STEP_SHIFT & _STEP
        mine = agents >> AGENT_BITS == view.number
        local = np.where(mine, agents & AGENT, 0)
        late &= ~mine | view.clocks.unordered(owners, local, steps, GLOBAL)
        if late.any() and not isinstance(owner, int):
            late &= ~self._is_copy(view, owners, found, late, report)
        if not late.any():
            return
        for code, warp in np.unique(np.stack([found[late], owners[late]], 1), axis=0).tolist():
            if not view.knows(warp, code) and not self._are_strong(view, warp, strength, code):
                at = tuple(np.argwhere(late & (found == code) & (owners == warp))[0])
                view.clocks.report(self._race(view, warp, strength, code, int(report[0][at]), *report[1:]))

    @staticmethod
    def _is_copy(view: WaveView, owners: Integers, found: Integers, late: Booleans, report: Any) -> Booleans:
        """Reads that other warps of the CTA make at once, of which one is in order with the write, and their twins."""
        at, _, past, what = report
        own = owners // view.warps
        near = cta_of(found, view.warps) == view.number << AGENT_BITS | own
        if past == "read":
            return near & (found & SEVERAL != 0)
        if what != "read":
            return np.zeros_like(late)
        keys = own << 44 | at
        return near & np.isin(keys, keys[(found != 0) & ~late])

    def _are_strong(self, view: WaveView, warp: int, strength: int, code: int) -> bool:
        """Return whether both accesses are strong, and each in the other's scope."""
        scope = min(strength, code & _SCOPE)
        if scope in (WEAK, SYS):
            return scope == SYS
        number, agent = code >> AGENT_SHIFT + AGENT_BITS, code >> AGENT_SHIFT & AGENT
        other = self.waves[number].view
        cta, of = view.cta(warp), other.cta(other.clocks.warp_of_agent(agent))
        part = dict(self._parts)[scope]
        return cta // part == of // part

    def _race(
        self, view: WaveView, warp: int, strength: int, code: int, at: int, name: str, past: str, what: str
    ) -> Trap:
        number, agent = code >> AGENT_SHIFT + AGENT_BITS, code >> AGENT_SHIFT & AGENT
        step = code >> _STEP_SHIFT & _STEP
        other = self.waves[number]
        where = other.view.cta_name(other.warp_of_agent(agent))
        verb = {"read": "reads", "write": "writes", "update": "updates"}[what]
        scope = min(strength, code & _SCOPE)
        wide = "gpu" if view.gpu == other.view.gpu else "sys"
        if scope:
            whom = "all CTAs of a launch" if wide == "gpu" else "other GPUs"
            remedy = f"scope .{_SCOPE_NAMES[scope]} is not enough: .{wide} is for {whom}"
        elif view.cta(warp) == other.view.cta(other.warp_of_agent(agent)):
            remedy = "a barrier must come in between"
        else:
            remedy = (
                f"a release of scope .{wide} after that, and an acquire of scope .{wide} before this that reads what "
                "it wrote, order them; a barrier must order each with the other threads of its CTA"
            )
        return Trap(
            f"this {verb} byte {at} of '{name}' in global memory, and nothing orders it after what was {past} by "
            f"{other.name(agent)} of CTA {where}",
            (f"{past} at {other.places(agent, step)}", remedy),
            PtxRace,
        )

    # Releases and acquires -------------------------------------------------------------------------------------------

    def shadow(self, buffer: Any) -> GlobalShadow:
        """The accesses to a buffer, of which there was one."""
        return self._shadows[buffer.start]

    def keep(self, snapshot: Foreign) -> int:
        """The number of what a warp knows."""
        self._snapshots.append(snapshot)
        return len(self._snapshots) - 1

    def grow(self, held: int, snapshot: int, cta: int, scope: int) -> int:
        """The number of what is released where `held` is, and now a snapshot with a scope by a CTA."""
        key = (held, snapshot, scope)
        if (found := self._grown.get(key)) is None:
            before, new = self._released[held], self._snapshots[snapshot]
            near = dict(before.near)
            for level, part in self._parts[: min(scope, GPU)]:
                near[level, cta // part] = joined(near.get((level, cta // part)), new)
            by_system = joined(before.by_system, new) if scope == SYS else before.by_system
            self._released.append(Released(by_system, near))
            found = self._grown[key] = len(self._released) - 1
        return found

    def taken(self, held: int, cta: int, scope: int) -> list[Foreign]:
        """Return what an acquire with a scope by a CTA takes of what is released."""
        released = self._released[held]
        near = [(level, cta // part) for level, part in self._parts[: min(scope, GPU)]]
        found = [released.near[each] for each in near if each in released.near]
        return [released.by_system, *found] if scope == SYS else found


class WaveView:
    """Knowledge of the warps of a wave about other waves, and what they have released and read."""

    def __init__(self, order: GlobalOrder, clocks: Any):
        self.order, self.clocks = order, clocks
        self.warps = clocks.warps // clocks.wave.ctas
        """Warps of a CTA."""
        self.number = order.join(clocks)
        self.foreign: dict[int, Foreign] = {}
        """By warp."""
        self._fences: dict[int, tuple[int, int]] = {}
        """What each warp knew at its last fence, by number, and its scope."""
        self._seen: dict[int, set[int]] = {}
        """What was released where a warp has read by strong reads since its last fence."""

    def cta(self, warp: int) -> int:
        """The number of a warp's CTA in the launch, in the order of clusters."""
        return self.clocks.wave.first_cta + warp // self.warps

    @property
    def gpu(self) -> int | None:
        """The rank of the GPU that the wave is on; None where there is one."""
        return self.clocks.wave.machine.rank

    def cta_name(self, warp: int) -> str:
        """The place of a warp's CTA in the grid."""
        wave = self.clocks.wave
        name = str(tuple(map(int, wave.coordinates[self.cta(warp) - wave.first_cta])))
        return name if self.gpu is None else f"{name} of rank {self.gpu}"

    def code(self, agents: Any, steps: Any, strength: int) -> Any:
        """The numbers of accesses of this wave's agents."""
        return (self.number << AGENT_BITS | agents) << AGENT_SHIFT | steps << _STEP_SHIFT | strength

    def access(self, buffer: Any, addresses: Integers, size: int, owner: Any, code: Any, what: str) -> None:
        """An access to an array, with what the warps `owner` know. Raises Trap for a race."""
        if self.order.compares:
            self.order.access(self, buffer, addresses, size, owner, code, what)

    def of_others(self, warps: Integers) -> Foreign | None:
        """Return what warps know of other waves."""
        result: Foreign | None = None
        for warp in warps.tolist() if self.foreign else ():
            if (found := self.foreign.get(warp)) is not None:
                result = joined(result, found)
        return result

    def knows(self, warp: int, code: int) -> bool:
        """Return whether a warp knows an access of another wave."""
        number, agent = code >> AGENT_SHIFT + AGENT_BITS, code >> AGENT_SHIFT & AGENT
        step = code >> _STEP_SHIFT & _STEP
        if number == self.number:
            return not self.clocks.unordered(warp, agent, step, GLOBAL)
        steps = (self.foreign.get(warp) or {}).get(number)
        return steps is not None and agent < len(steps) and bool(steps[agent] >= step)

    def take(self, warp: int, what: Foreign) -> None:
        """A warp knows now what was released."""
        for number, steps in what.items():
            if number == self.number:
                self.clocks.take_all(warp, steps)
        others = {number: steps for number, steps in what.items() if number != self.number}
        if others:
            self.foreign[warp] = joined(self.foreign.get(warp), others)

    def snapshot(self, warp: int) -> Foreign:
        """All that a warp knows."""
        return {**self.foreign.get(warp, {}), self.number: self.clocks.known[warp].copy()}

    def fence(self, warp: int, scope: int) -> None:
        """A warp fences with a scope."""
        for held in self._seen.pop(warp, ()):
            for each in self.order.taken(held, self.cta(warp), scope):
                self.take(warp, each)
        self._fences[warp] = self.order.keep(self.snapshot(warp)), scope

    def _acquire(self, held: Integers, owners: Integers, sync: Sync) -> None:
        for number, warp in np.unique(np.stack([held, owners], 1)[held != 0], axis=0).tolist():
            if sync.acquires:
                for each in self.order.taken(number, self.cta(warp), sync.scope):
                    self.take(warp, each)
            else:
                self._seen.setdefault(warp, set()).add(number)

    def synchronize(
        self, buffer: Any, addresses: Integers, size: int, owners: Integers, sync: Sync, what: str
    ) -> list[int]:
        """Strong accesses of warps acquire what is released at their addresses, and release; gives who has."""
        writes = what != "read"
        can_release = writes and (sync.releases or bool(self._fences))
        if (found := self.order.shadow(buffer).sets(addresses, size, makes=can_release)) is None:
            return []
        held, at = found
        if what != "write":
            self._acquire(held[at], owners, sync)
        if not can_release:
            return []
        warps = distinct(owners).tolist()
        released: dict[int, tuple[int, int]] = {}
        for warp in warps:
            if sync.releases:
                released[warp] = self.order.keep(self.snapshot(warp)), sync.scope
            elif (fenced := self._fences.get(warp)) is not None:
                released[warp] = fenced[0], min(fenced[1], sync.scope)
        for warp, (snapshot, scope) in released.items():
            own = at[owners == warp]
            before = held[own]
            for number in distinct(before).tolist():
                held[own[before == number]] = self.order.grow(number, snapshot, self.cta(warp), scope)
        return warps if sync.releases else []


def joined(one: Foreign | None, other: Foreign) -> Foreign:
    """Return what is known to one or the other."""
    if not one:
        return dict(other)
    result = dict(one)
    for number, steps in other.items():
        result[number] = steps if (held := result.get(number)) is None else longest(held, steps)
    return result


def longest(one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
    """The later steps of each agent, which are the last axis."""
    if one.shape[-1] < other.shape[-1]:
        one, other = other, one
    result, count = one.copy(), other.shape[-1]
    result[..., :count] = np.maximum(one[..., :count], other)
    return result
