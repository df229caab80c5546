"""The cost of bringing a tensor from one register layout to another.

From cheap to dear: every thread has what it needs in its own registers; the lanes of a warp exchange registers; the
warps of a CTA exchange through shared memory; CTAs of a cluster exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from tlx_xdsl.errors import InputError

from .conversion.distributed import distributed_to_linear
from .conversion.tiling import BLOCK, LANE, REGISTER, WARP
from .encodings import DistributedLayout, Ints
from .f2 import Elimination, bits_of, image
from .linear_layout import LinearLayout, log2
from .shared_access import (
    BANKS,
    MAX_ACCESS_BITS,
    WORD_BYTES,
    Offsets,
    SharedAccess,
    lanes_per_pass,
    linear_access,
    vector_elements,
)

WORD_BITS = 8 * WORD_BYTES
"""Bits of a register, and of what one shuffle moves."""


class ConversionKind(Enum):
    """The means by which the threads of a conversion exchange registers."""

    IN_THREAD = "in the thread"
    IN_WARP = "within a warp"
    IN_CTA = "through shared memory"
    IN_CLUSTER = "between CTAs"


@dataclass(frozen=True, slots=True)
class ConversionCost:
    """The cost of a layout conversion; what its kind does not need is zero or None."""

    kind: ConversionKind
    shuffles: int = 0
    """Registers of 32 bits that each lane gets from others: instructions of a warp."""
    scratch_bytes: int = 0
    """Shared memory of a CTA that holds what is exchanged at one time.

    This and the wavefronts are those of vector instructions; with ldmatrix and stmatrix stock Triton sometimes needs
    less.
    """
    store: SharedAccess | None = None
    load: SharedAccess | None = None
    warps: int = 1
    scratch: LinearLayout | None = None
    """A layout of the scratch memory, from `offset` to elements, in which neither side has bank conflicts."""

    @property
    def wavefronts(self) -> int:
        """Passes through the banks of shared memory, of all warps together."""
        return self.warps * sum(access.wavefronts for access in (self.store, self.load) if access is not None)

    def __str__(self) -> str:
        """One line in words and numbers."""
        match self.kind:
            case ConversionKind.IN_THREAD:
                return "in the thread: registers change names, nothing moves"
            case ConversionKind.IN_WARP:
                return f"within a warp: {self.shuffles} shuffles per warp"
            case ConversionKind.IN_CTA:
                return (
                    f"through shared memory: at most {self.scratch_bytes} bytes and {self.wavefronts} wavefronts, "
                    "and a barrier"
                )
            case ConversionKind.IN_CLUSTER:
                return "between CTAs: through the shared memory of the cluster"


@lru_cache(maxsize=4096)
def conversion_cost(
    source: DistributedLayout, target: DistributedLayout, shape: Ints, element_bits: int
) -> ConversionCost:
    """The cost of converting a tensor of `shape` from one layout to another.

    Raises ValueError if a layout does not fit the shape.
    """
    return linear_conversion_cost(
        distributed_to_linear(source, shape), distributed_to_linear(target, shape), element_bits
    )


def linear_conversion_cost(source: LinearLayout, target: LinearLayout, element_bits: int) -> ConversionCost:
    """`conversion_cost` of linear layouts with the same outputs."""
    kind = conversion_kind(source, target)
    if kind is ConversionKind.IN_WARP:
        return ConversionCost(kind, shuffles=_shuffles(source, target, element_bits))
    if kind is ConversionKind.IN_CTA:
        return _through_shared_memory(source, target, max(8, element_bits))
    return ConversionCost(kind)


def conversion_kind(source: LinearLayout, target: LinearLayout) -> ConversionKind:
    """Return how far the elements must move.

    Threads have what they need if the registers of each span what the target's do, and a step to the next lane, warp
    or CTA leads to the same place in both, but for what registers span. So for warps and CTAs.
    """
    reach: list[int] = []
    levels = (REGISTER, LANE, WARP, BLOCK)
    kinds = (ConversionKind.IN_THREAD, ConversionKind.IN_WARP, ConversionKind.IN_CTA)
    for level, kind in enumerate(kinds, 1):
        reach += _bases(source, levels[level - 1])
        spanned = Elimination.of(reach)
        wanted = [basis for name in levels[:level] for basis in _bases(target, name)]
        wanted += [step for name in levels[level:] for step in _differences(source, target, name)]
        if all(spanned.solve(each) is not None for each in wanted):
            return kind
    return ConversionKind.IN_CLUSTER


def _bases(layout: LinearLayout, name: str) -> Sequence[int]:
    return layout.packed_bases(name) if name in layout.in_names else ()


def _differences(source: LinearLayout, target: LinearLayout, name: str) -> list[int]:
    """Return how much further a step of one bit of the index `name` leads in one layout than in the other."""
    ours, theirs = list(_bases(source, name)), list(_bases(target, name))
    length = max(len(ours), len(theirs))
    ours += [0] * (length - len(ours))
    theirs += [0] * (length - len(theirs))
    return [a ^ b for a, b in zip(ours, theirs, strict=True)]


def _shuffles(source: LinearLayout, target: LinearLayout, element_bits: int) -> int:
    """Registers that each lane must get from another one.

    Elements that both layouts hold together in a thread travel together, as many as a register takes. If in both
    layouts a step to the next lane (or warp) leads to the same place but for what the registers of either hold, each
    lane has one such group already; else there is a lane that has none, and an instruction is for all lanes.
    """
    ours, theirs = Elimination.of(_bases(source, REGISTER)), Elimination.of(_bases(target, REGISTER))
    either = Elimination.of([*_bases(source, REGISTER), *_bases(target, REGISTER)])
    together = ours.rank + theirs.rank - either.rank
    groups = 1 << (theirs.rank - together)
    steps = [step for name in (LANE, WARP, BLOCK) for step in _differences(source, target, name)]
    stays = all(either.solve(step) is not None for step in steps)
    return (groups - stays) * -(-(element_bits << together) // WORD_BITS)


# --- through shared memory ------------------------------------------------------------------------------------------


def _through_shared_memory(source: LinearLayout, target: LinearLayout, element_bits: int) -> ConversionCost:
    basis, rounds = conflict_free_scratch(source, target, element_bits)
    limit = MAX_ACCESS_BITS // element_bits
    accesses: list[SharedAccess] = []
    for layout in (source, target):
        offsets = linear_offsets(layout, basis)
        accesses.append(linear_access(offsets, vector_elements(offsets, limit), element_bits))
    return ConversionCost(
        ConversionKind.IN_CTA,
        scratch_bytes=(element_bits // 8) << (len(basis) - rounds),
        store=accesses[0],
        load=accesses[1],
        warps=max(source.in_sizes[WARP], target.in_sizes[WARP]),
        scratch=LinearLayout((("offset", tuple(basis)),), source.outs),
    )


def conflict_free_scratch(source: LinearLayout, target: LinearLayout, element_bits: int) -> tuple[list[int], int]:
    """The (packed) elements at the offsets 1, 2, 4, ... of a scratch buffer without bank conflicts on either side, and
    how many of these bits, the highest, count rounds that can use the same memory one after the other.

    What both layouts hold in registers together is one vector, as long as that is at most 16 bytes; what is left of
    it are rounds. The rest of the space needs a subspace of rows (elements that share their banks) that meets neither
    the lanes that store together nor those that load together. Two subspaces of one dimension always have such a
    complement: of bases a and b that lead out of their intersection take the sums a + b ("Linear Layouts", section on
    optimal swizzling, arXiv 2505.23819).
    """
    common = [each for each in _bases(source, REGISTER) if each and each in _bases(target, REGISTER)]
    size = min(len(common), log2(MAX_ACCESS_BITS // element_bits))
    vector, rounds = common[:size], common[size:]
    everything = [basis for name in (REGISTER, LANE, WARP) for basis in _bases(source, name)]
    word = log2(WORD_BITS // element_bits) if element_bits < WORD_BITS else 0
    # Elements narrower than a word share it with what the next lanes store.
    filling = _independent([*vector, *rounds], [*_bases(source, LANE), *everything])[: max(0, word - size)]
    inside = [*vector, *filling]
    known = [*inside, *rounds]
    lanes = log2(lanes_per_pass((element_bits // 8) << size))
    shared, stores, loads = _meeting(known, list(_bases(source, LANE)[:lanes]), list(_bases(target, LANE)[:lanes]))
    rest = _independent([*known, *shared, *stores, *loads], everything)
    pairs = min(len(stores), len(loads))
    banks = [*shared, *stores, *loads[pairs:]]
    rows = [a ^ b for a, b in zip(stores[:pairs], loads[:pairs], strict=True)]
    width = log2(BANKS * WORD_BITS // element_bits) - len(inside)
    missing = max(0, width - len(banks))
    return [*inside, *banks, *rest[:missing], *rows, *rest[missing:], *rounds], len(rounds)


def _independent(known: Sequence[int], candidates: Iterable[int]) -> list[int]:
    """Return the candidates that are no sums of `known` and earlier candidates."""
    candidates = list(candidates)
    free = Elimination.of([*known, *candidates]).free >> len(known)
    return [each for index, each in enumerate(candidates) if not free >> index & 1]


def _meeting(known: Sequence[int], ours: list[int], theirs: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Bases, up to sums of `known`, of the intersection of two spans, and what completes it to each of the two."""
    columns = [*known, *ours]
    elimination = Elimination.of([*columns, *theirs])
    more: list[int] = []
    meeting: list[int] = []
    for index, each in enumerate(theirs):
        if not elimination.free >> (len(columns) + index) & 1:
            more.append(each)
            continue
        used = Elimination.of([*columns, *theirs[:index]]).solve(each)
        assert used is not None
        meeting.append(image(columns, sum(1 << bit for bit in bits_of(used) if len(known) <= bit < len(columns))))
    shared = _independent(known, meeting)
    return shared, _independent([*known, *shared], ours), more


def linear_offsets(layout: LinearLayout, basis: Sequence[int]) -> Offsets:
    """The offsets of a register layout in a buffer whose offset 2**i holds the (packed) element `basis[i]`.

    Raises ValueError if the buffer lacks an element of the layout.
    """
    elimination = Elimination.of(basis)

    def offset(element: int) -> int:
        found = elimination.solve(element)
        if found is None:
            raise InputError("the buffer lacks an element of the layout")
        return found

    lanes, warps = (tuple(map(offset, layout.packed_bases(name))) for name in (LANE, WARP))
    return Offsets(tuple(offset(each) for each in layout.packed_bases(REGISTER) if each), lanes, warps)
