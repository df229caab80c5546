"""The elements that an access touches, as boxes of memory: the loops around a box, and the box.

The positions of an access are those inside of the bounds of its mask. Along the dimensions of opaque terms, of the
address or of the mask, they are visited one by one; what is left are boxes with strides. Along a dimension with a
remainder a box is cut where the remainder begins anew.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum

from xdsl.dialects import arith as upstream, cf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.structure.digits import Comparison, Digit, slope
from tlx_xdsl.analysis.structure.values import ONE, ZERO, Claim, Linear, Mask, Opaque, Wrapped, computed
from tlx_xdsl.dialects import arith
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.text.diagnostics import source_location

from .emitter import Emitter, Index
from .pieces import Cut, Point, element
from .scalars import conjunction


class Grade(Enum):
    """Grades of an access, by how much of its structure is known."""

    STRUCTURED = "structured"
    """One box with strides."""
    HALF_STRUCTURED = "half-structured"
    """A box for each index along one dimension: a gather, or a scatter, of rows."""
    UNSTRUCTURED = "unstructured"
    """An element, or a small box, at a time."""


@dataclass(frozen=True)
class Box:
    """A box of elements of the access, and the memory where they lie."""

    positions: tuple[Index, ...]
    """The first position along each dimension."""
    sizes: tuple[Index, ...]
    offset: Index
    """Elements from the base to the first one."""
    strides: tuple[Index, ...]

    @property
    def is_element(self) -> bool:
        """True for a single element."""
        return all(size == 1 for size in self.sizes)

    def is_empty_in(self, shape: Ints) -> bool:
        """True if it is known that no element is left; MLIR refuses a box that begins at the end of its block."""
        beyond = (isinstance(at, int) and at >= size for at, size in zip(self.positions, shape, strict=True))
        return 0 in self.sizes or any(beyond)


@dataclass(frozen=True)
class AccessPlan:
    """An access with linear offsets, in 64 bits, and a mask."""

    shape: Ints
    offset: Linear
    mask: Mask
    by_elements: bool = False
    """True if elements are to be visited one by one, whatever is known."""
    visited: tuple[int, ...] = field(init=False)
    """The dimensions that are visited one by one."""

    def __post_init__(self) -> None:
        """Find the dimensions."""
        visited = set(range(len(self.shape))) if self.by_elements else self._opaque_dims()
        object.__setattr__(self, "visited", tuple(sorted(visited)))

    def _opaque_dims(self) -> set[int]:
        """Find the dimensions of opaque terms; comparisons along several dimensions leave the best one out."""
        offset = (term for term, _ in self.offset.terms if isinstance(term, Opaque) and not isinstance(term, Digit))
        mask = (term for term in self.mask.opaque if not isinstance(term, Comparison))
        found = {dim for term in (*offset, *mask) for dim in term.varies}
        for term in self.mask.opaque:
            rest = term.varies - found
            if len(rest) > 1:
                found |= rest - {max(rest, key=lambda dim: (self._step(dim) == ONE, self.shape[dim]))}
        return found

    def _step(self, dim: int) -> Polynomial:
        """Return how much the address grows from a position of a piece to the next."""
        total = self.offset.strides[dim]
        for term, factor in self.offset.terms:
            if isinstance(term, Digit | Wrapped) and term.dim == dim:
                total += factor * slope(term)
        return total

    def cuts(self, emit: Emitter, at: Operation, *, keep_last: bool) -> list[Cut]:
        """The dimensions that are cut into pieces; a remainder is computed along a dimension that is visited, too."""
        found: list[Cut] = []
        for dim in range(len(self.shape)):
            is_visited = dim in self.visited
            terms = [
                (term, _index(factor, emit, at))
                for term, factor in self.offset.terms
                if isinstance(term, Wrapped if is_visited else Digit | Wrapped) and term.dim == dim
            ]
            comparisons = [] if is_visited else [
                term for term in self.mask.opaque if isinstance(term, Comparison) and dim in term.varies
            ]  # fmt: skip
            if terms or comparisons:
                is_last = keep_last and not is_visited and self._step(dim) == ZERO
                found.append(Cut(dim, terms, comparisons, is_last))
        return found

    def elements(self) -> list[tuple[Opaque, Polynomial]]:
        """The terms of the address that are elements of tensors, with their factors."""
        return [
            (term, factor)
            for term, factor in self.offset.terms
            if isinstance(term, Opaque) and not (isinstance(term, Digit) and term.dim not in self.visited)
        ]

    def bits(self) -> list[Opaque]:
        """The parts of the mask that are elements of tensors."""
        return [
            term
            for term in self.mask.opaque
            if not isinstance(term, Comparison) or term.varies <= frozenset(self.visited)
        ]

    @property
    def grade(self) -> Grade:
        """Structured without opaque dimensions; half-structured if boxes are left along the others."""
        if not self.visited:
            return Grade.STRUCTURED
        rest = [size for dim, size in enumerate(self.shape) if dim not in self.visited]
        is_half = len(self.visited) == 1 and any(size > 1 for size in rest)
        return Grade.HALF_STRUCTURED if is_half else Grade.UNSTRUCTURED

    def reason(self) -> str:
        """Return what keeps an access from being structured."""
        terms = [term for term, _ in self.elements() if term.varies]
        plain = [term for term in terms if not isinstance(term, Digit)]
        what = "its address" if plain else "its mask"
        found = plain or sorted(self.bits(), key=lambda each: str(each.dims)) or self.mask.opaque
        dims = ", ".join(map(str, self.visited))
        along = f"along dimension {dims}" if len(self.visited) == 1 else f"along dimensions {dims}"
        return f"{along} {what} is {_described(found[0].value)}"

    @property
    def is_full(self) -> bool:
        """True if the mask leaves nothing out, as far as that is known."""
        if self.mask.conditions or self.mask.opaque:
            return False
        ranges = (_range(self, dim, keep_last=False) for dim in range(len(self.shape)))
        return all(
            first == ZERO and count.number == size for (first, count), size in zip(ranges, self.shape, strict=True)
        )


def _described(value: SSAValue) -> str:
    """An opaque value, and where it is computed."""
    if isinstance(value, BlockArgument):
        return "an argument that control flow carries"
    op = value.owner
    assert isinstance(op, Operation)
    place = source_location(op.location)
    return f"the result of '{op.name}'" + ("" if place is None else f" at line {place.line}")


@contextmanager
def boxes(
    plan: AccessPlan, emit: Emitter, at: Operation, *, keep_last: bool = False, may_be_empty: bool = False
) -> Generator[Box]:
    """Emit the loops around a box; what is emitted inside of the context is done for each box.

    With `keep_last` only the last of positions with the same address is visited, where that is known. With
    `may_be_empty` a condition of the whole access is the size of its only box, and not a branch around it.
    """
    # All scalars come before the loops: some of them may not leave the place of the access.
    condition = _condition(plan.mask, emit, at)
    bounds = [_range(plan, dim, keep_last=keep_last) for dim in range(len(plan.shape))]
    numbers = [tuple(_index(each, emit, at) for each in bound) for bound in bounds]
    point = Point(
        [first for first, _ in numbers],
        [size for _, size in numbers],
        _index(plan.offset.base, emit, at),
        [_index(stride, emit, at) for stride in plan.offset.strides],
    )
    terms = [(term, _index(factor, emit, at)) for term, factor in plan.elements()]
    cuts = plan.cuts(emit, at, keep_last=keep_last)
    for cut in cuts:
        cut.prepare(emit, at)
    long = [dim for dim, size in enumerate(point.sizes) if size != 1]
    if may_be_empty and condition is not None and long and not (plan.visited or cuts or plan.bits()):
        sizes = [emit.operand(size) for size in (point.sizes[long[0]], 0)]
        point.sizes[long[0]] = emit.value(arith.SelectOp(condition, *sizes))
        condition = None
    with ExitStack() as stack:
        stack.enter_context(emit.when(condition))
        for dim in plan.visited:
            first, size = point.positions[dim], point.sizes[dim]
            if size == 1:
                continue
            point.positions[dim] = stack.enter_context(emit.loop(first, emit.plus(first, size)))
            point.sizes[dim] = 1
        stack.enter_context(emit.when(_opaque_condition(plan.bits(), point, emit)))
        for cut in cuts:
            stack.enter_context(cut.pieces(point, emit, at))
        for term, factor in terms:
            number = emit.as_index(element(term, point, emit), signed=term.signed)
            point.offset = emit.plus(point.offset, emit.times(number, factor))
        offset = point.offset
        for position, stride in zip(point.positions, point.strides, strict=True):
            offset = emit.plus(offset, emit.times(position, stride))
        yield Box(tuple(point.positions), tuple(point.sizes), offset, tuple(point.strides))


def _index(form: Polynomial, emit: Emitter, at: Operation) -> Index:
    return emit.scalars.emit(form, 64, for_=at) if (number := form.number) is None else number


# --- bounds and conditions -------------------------------------------------------------------------------------------


def _range(plan: AccessPlan, dim: int, *, keep_last: bool) -> tuple[Polynomial, Polynomial]:
    """The first position along a dimension that the mask's bounds leave, and the number of those."""
    lower, upper = plan.mask.bounds[dim]
    size = Polynomial.constant(plan.shape[dim])
    first = ZERO if lower is None else _least(_greatest(lower, ZERO), size)
    end = size if upper is None else _least(upper, size)
    count = end if first == ZERO and upper is None else end - first
    if lower is not None or upper is not None:
        count = _greatest(count, ZERO)
    # A comparison of digits leaves one position or another: the last one is found in each piece.
    varies = plan.offset.varies.union(plan.visited, *(term.varies for term in plan.mask.opaque))
    if keep_last and dim not in varies and plan.shape[dim] > 1:
        last = _least(count, ONE)
        return first + count - last, last
    return first, count


def _least(left: Polynomial, right: Polynomial) -> Polynomial:
    return _folded("min", left, right)


def _greatest(left: Polynomial, right: Polynomial) -> Polynomial:
    return _folded("max", left, right)


def _folded(function: str, left: Polynomial, right: Polynomial) -> Polynomial:
    difference = (left - right).number
    if difference is None:
        return computed(function, [left, right], 64)
    return left if (difference <= 0) == (function == "min") else right


def _condition(mask: Mask, emit: Emitter, at: Operation) -> SSAValue | None:
    if not mask.conditions:
        return None
    forms = sorted(mask.conditions, key=str)
    return emit.scalars.emit(conjunction(forms), 1, for_=at)


def _opaque_condition(terms: Sequence[Opaque], point: Point, emit: Emitter) -> SSAValue | None:
    found: SSAValue | None = None
    for term in sorted(terms, key=lambda each: emit.scalars.rank(each.value)):
        bit = element(term, point, emit)
        found = bit if found is None else emit.value(upstream.AndIOp(found, bit))
    return found


# --- claims ----------------------------------------------------------------------------------------------------------


class Claims:
    """Emits the claims of masks as assertions, each once in a block."""

    def __init__(self) -> None:
        self._asserted: set[tuple[Block | None, Claim]] = set()

    def check(self, state: Linear | Mask, emit: Emitter, at: Operation, what: str) -> None:
        """Assert before `at` what a mask, or offsets, rest on; what opaque terms take part in is left out."""
        for claim in sorted(state.claims, key=lambda each: (each.bits, str(each.base))):
            if not claim.checkable or (at.parent, claim) in self._asserted:
                continue
            self._asserted.add((at.parent, claim))
            if forms := _limits(claim):
                holds = emit.scalars.emit(conjunction(forms), 1, for_=at)
                emit.add(cf.AssertOp(holds, f"{what} wraps around in {claim.bits} bits"))


def _limits(claim: Claim) -> list[Polynomial]:
    """The conditions under which a sum stays inside of its type."""
    bits = claim.bits
    low = high = ZERO
    for size, stride in zip(claim.shape, claim.strides, strict=True):
        if not stride.terms:
            continue
        step = _wide(stride, bits) * (size - 1)
        low, high = low + _least(step, ZERO), high + _greatest(step, ZERO)
    # 64 bits leave no room for the sum itself.
    top = (1 << (bits - 1)) - 1 if bits < 64 else 1 << 62
    bottom = (-top - 1 if bits < 64 else -top) if claim.signed else 0
    base = claim.base
    numbers = (low.number, high.number)
    if None not in numbers and abs(numbers[0] or 0) + abs(numbers[1] or 0) < top:
        limits = [(">=", bottom - (numbers[0] or 0))] if numbers[0] or not claim.signed or bits == 64 else []
        limits += [("<=", top - (numbers[1] or 0))] if numbers[1] or bits == 64 else []
        return [computed(f"compare {sign}", [base, Polynomial.constant(limit)], bits) for sign, limit in limits]
    exact = _wide(base, bits)
    return [
        computed("compare >=", [exact + low, Polynomial.constant(bottom)], 64),
        computed("compare <=", [exact + high, Polynomial.constant(top)], 64),
    ]


def _wide(form: Polynomial, bits: int) -> Polynomial:
    return form if bits == 64 or form.number is not None else computed("sext", [form], bits)
