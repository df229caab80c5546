"""Boxes of tensors in memory: what TMA copies in one piece, found from the place and the mask of an access.

An access lies at `root + base + stride0 * i0 + stride1 * i1 + ...`. A box has a coordinate for each dimension of a
tensor, and so many elements from there on. The base is divided by the strides (`division.py`). A mask says `i < bound`:
then `coordinate + bound` is the extent of the tensor, and must follow from the arguments.

TMA gives the same elements if all of this holds, which is checked here, or asked of a launch as a condition:

- the coordinate is not negative where the mask has no lower bound, and else the lower bound is `-coordinate`;
- the tensor's first element, its strides and the first column of each box lie at multiples of 16 bytes;
- of stores, rows end at a multiple of 16 bytes, because TMA writes whole units of that size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.structure.places import Clamped, Place
from tlx_xdsl.analysis.structure.values import ONE, ZERO, Computed, Mask, Wrapped
from tlx_xdsl.layouts.encodings import Ints

from .division import Side, divide
from .facts import Facts, name_of

UNIT = 16
"""Bytes that addresses, strides and first columns are multiples of."""
LARGEST_SIDE = 256
"""Elements of a box along one dimension (cuTensorMapEncodeTiled)."""
LARGEST_RANK = 5
UNBOUNDED = (1 << 31) - 1
"""Extent of a dimension that nothing bounds, the largest that a descriptor can have."""
_ELEMENT_BITS = (8, 16, 32)


class NoBoxError(Exception):
    """A reason why an access is no box of a tensor."""


@dataclass(frozen=True)
class Box:
    """A box of a tensor; the last side is contiguous."""

    root: SSAValue
    """The tensor's first element."""
    sides: tuple[Side, ...]
    conditions: tuple[str, ...]
    """Conditions at a launch, in Python."""


def sides_of(place: Place, mask: Mask | None, shape: Ints, facts: Facts) -> tuple[list[Side], Polynomial]:
    """The sides of an access through a tensor of pointers, and what is left to divide.

    Raises NoBoxError with the reason why it is no box.
    """
    strides, bends, rest = list(place.offset.strides), dict[int, Polynomial](), place.offset.base
    for term, coefficient in place.offset.terms:
        if not isinstance(term, Wrapped | Clamped):
            raise NoBoxError("its addresses are not linear in the positions")
        if strides[term.dim].terms:
            raise NoBoxError("its addresses have two parts along one dimension")
        strides[term.dim] = coefficient
        bends[term.dim] = term.modulus - term.start if isinstance(term, Wrapped) else term.upper
        rest += term.start * coefficient
    sides = [
        # Elements beyond the bend would not be those of the box: they are left out of the tensor.
        Side(size, stride, dim, bound=bends.get(dim), bends_at=bends.get(dim))
        for dim, (size, stride) in enumerate(zip(shape, strides, strict=True))
        if size > 1
    ]
    if mask is not None:
        sides = _bounded(sides, mask, facts)
    return sides, rest


def _bounded(sides: list[Side], mask: Mask, facts: Facts) -> list[Side]:
    """Take the bounds of a mask for those of the tensor."""
    if mask.opaque:
        raise NoBoxError("its mask is not made of bounds")
    if mask.conditions:
        raise NoBoxError("its mask has a condition that is one for the whole block")
    found: list[Side] = []
    for side in sides:
        assert side.dim is not None
        lower, upper = mask.bounds[side.dim]
        if lower is None and upper is None:
            found.append(side)
            continue
        if side.bends_at is not None:
            if not is_at_most(upper, side.bends_at):
                raise NoBoxError("its mask does not hide what wraps around")
            side = replace(side, bound=None, bends_at=None)
        if lower is None and upper is not None and facts.natural_if(-facts.parts(upper)[1]) is None:
            # What lies beyond is in memory, too, and must make no difference.
            found.append(replace(side, bends_at=upper, is_open=True))
            continue
        coordinate = ZERO if lower is None else -lower
        found.append(replace(side, bound=upper, coordinate=coordinate, is_fixed=lower is not None))
    return found


def is_at_most(bound: Polynomial | None, limit: Polynomial) -> bool:
    """True if a mask that ends at `bound` hides every position from `limit` on."""
    if bound is None:
        return False
    if (number := (bound - limit).number) is not None:
        return number <= 0
    least = [symbol for symbol in bound.symbols if isinstance(symbol, Computed) and symbol.function == "min"]
    is_one = len(least) == 1 and bound == Polynomial.of(least[0])
    return is_one and any(is_at_most(each, limit) for each in least[0].arguments)


def form_box(
    root: SSAValue,
    sides: list[Side],
    rest: Polynomial,
    bits: int,
    facts: Facts,
    *,
    is_store: bool,
    may_wrap: bool,
    may_ask: bool = True,
) -> Box:
    """The box with these sides; `rest` is the base with the parts of all sides.

    With `may_ask`, multiples of 16 bytes that nothing proves are conditions of a launch.

    Raises NoBoxError with the reason why it is none.
    """
    _check(sides, bits)
    outer, inner, rest = divide(sides, rest, facts)
    inner = [_with_extent(side, facts) for side in inner]
    inner = [_with_end(side, root, [*outer, *inner], facts) if side.is_open else side for side in inner]
    ordered = [*outer, *(side for side in inner if side.stride != ONE), *(side for side in inner if side.stride == ONE)]
    if len(ordered) > LARGEST_RANK:
        raise NoBoxError(f"it lies in a tensor of {len(ordered)} dimensions, more than {LARGEST_RANK}")
    if rest.terms:
        raise NoBoxError(f"its tensor begins {rest} elements after the pointer")
    conditions = _Conditions(facts, bits // 8, may_ask=may_ask)
    conditions.first(root)
    for side in ordered:
        conditions.side(side, is_store=is_store)
    if may_wrap:
        conditions.offsets(ordered)
    return Box(root, tuple(ordered), tuple(dict.fromkeys(conditions.found)))


def _check(sides: list[Side], bits: int) -> None:
    if bits not in _ELEMENT_BITS:
        raise NoBoxError(f"its elements have {bits} bits")
    if any(not side.stride.terms for side in sides):
        raise NoBoxError("it accesses elements several times")
    contiguous = [side for side in sides if side.stride == ONE]
    if len(contiguous) != 1:
        raise NoBoxError(
            "two of its dimensions are contiguous" if contiguous else "none of its dimensions is contiguous"
        )
    if (large := max(side.size for side in sides)) > LARGEST_SIDE:
        raise NoBoxError(f"one of its sides has {large} elements, more than the {LARGEST_SIDE} of a box")
    if contiguous[0].size * bits % (8 * UNIT):
        raise NoBoxError(f"its rows have {contiguous[0].size * bits // 8} bytes, no multiple of {UNIT}")


def _with_extent(side: Side, facts: Facts) -> Side:
    """The side with the extent of the tensor; one that nothing bounds reaches to the last element, if that is known."""
    if side.bound is None:
        end = side.coordinate.number
        return side if end is None else replace(side, extent=Polynomial.constant(end + side.size))
    extent = side.bound + side.coordinate
    if not facts.is_of_launch(extent):
        raise NoBoxError(f"the extent {extent} of its tensor does not follow from the arguments")
    return replace(side, extent=extent)


def _with_end(side: Side, root: SSAValue, sides: list[Side], facts: Facts) -> Side:
    """The side with as many elements as there is memory for."""
    name, others = name_of(root), [other for other in sides if other is not side]
    stride = facts.factor_text(side.stride) if facts.is_of_launch(side.stride) else None
    extents = [other.extent for other in others if other.extent is not None]
    if name is None or stride is None or len(extents) < len(others):
        raise NoBoxError(f"its mask ends at {side.bends_at}, which is no end of a tensor that the arguments describe")
    last = sum(((extent - 1) * other.stride for extent, other in zip(extents, others, strict=True)), ONE)
    if (text := facts.factor_text(last)) is None:
        raise NoBoxError(f"the extent {last} of its tensor does not follow from the arguments")
    return replace(side, extent_text=f"(elements({name}) - {text}) // {stride} + 1")


class _Conditions:
    """Conditions that must hold at a launch, as far as it is not proved."""

    def __init__(self, facts: Facts, size: int, *, may_ask: bool):
        self._facts = facts
        self._may_ask = may_ask
        self._size = size
        self.found: list[str] = []

    def first(self, root: SSAValue) -> None:
        """The tensor begins at a multiple of 16 bytes."""
        if self._facts.pointer_divisor(root) % UNIT == 0:
            return
        if (name := name_of(root)) is None or not self._may_ask:
            raise NoBoxError(f"its tensor begins at no multiple of {UNIT} bytes as far as known")
        self.found.append(f"{name} % {UNIT} == 0")

    def side(self, side: Side, *, is_store: bool) -> None:
        """Require of a side what TMA wants of its stride, its extent and its coordinate."""
        is_contiguous = side.stride == ONE
        if not is_contiguous:
            self._whole_units(side.stride, "rows of its tensor begin")
            self._positive(side.stride, "stride")
        if side.extent is not None:
            self._positive(side.extent, "extent")
        elif side.extent_text:
            self.found.append(f"{side.extent_text} > 0")
        if is_contiguous:
            self._whole_units(side.coordinate, "its rows begin")
            if is_store and side.extent is not None:
                self._whole_units(side.extent, "rows of its tensor end")
        if not side.is_fixed:
            if (asked := self._facts.natural_if(side.coordinate)) is None:
                raise NoBoxError(f"its coordinate {side.coordinate} may be negative")
            self.found += asked

    def offsets(self, sides: list[Side]) -> None:
        """Offsets of elements that are accessed stay inside of 32 bits."""
        reach = [side.extent * side.stride for side in sides if side.extent is not None]
        total = sum(reach, ZERO)
        if total.number is None and (text := self._facts.text(total)) is not None:
            self.found.append(f"{text} < 2**31")

    def _whole_units(self, elements: Polynomial, what: str) -> None:
        wanted = UNIT // self._size
        of_launch, varying = self._facts.parts(elements)
        is_known = self._facts.divisor(of_launch) % wanted == 0
        if self._facts.divisor(varying) % wanted or not (is_known or self._may_ask):
            raise NoBoxError(f"{what} at {elements}, which is no multiple of {UNIT} bytes as far as known")
        if is_known:
            return
        text = self._facts.factor_text(of_launch)
        if text is None or of_launch.number is not None:
            raise NoBoxError(f"{what} at {elements}, which is no multiple of {UNIT} bytes")
        self._said(of_launch)
        self.found.append(f"{text} % {wanted} == 0")

    def _positive(self, form: Polynomial, what: str) -> None:
        if (number := form.number) is not None:
            if number <= 0:
                raise NoBoxError(f"its tensor has the {what} {number}")
            return
        if not self._facts.is_of_launch(form) or (text := self._facts.text(form)) is None:
            raise NoBoxError(f"the {what} {form} of its tensor does not follow from the arguments")
        self._said(form)
        ((product, number), *others) = form
        if others or number < 0:
            self.found.append(f"{text} > 0")
            return
        # A product of numbers that are above 0.
        for symbol in sorted((symbol for symbol, _ in product), key=str):
            self.found.append(f"{self._facts.text(Polynomial.of(symbol))} > 0")

    def _said(self, form: Polynomial) -> None:
        self.found += self._facts.said_if(form)
