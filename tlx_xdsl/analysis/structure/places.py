"""Places that pointers point to: one pointer for all elements, and offsets from it that are linear in the positions.

Tensors of offsets and of pointers that a loop advances by the same number in each turn are solved: their base grows
with the loop's `Counter`. Polynomials are those of `sums.py`, so that two ways to compute a number compare equal.

Two kinds of offsets keep a block inside of a tensor without a mask: `offset % size`, a `Wrapped` term, and
`where(offset < size, offset, 0)` or `minimum(offset, size - 1)`, a `Clamped` one. Both are linear up to some position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith as upstream, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import as_tensor

from ..integers.polynomials import Polynomial
from ..integers.transfer import shape_of, transfer
from .analysis import Structure
from .domain import StructureDomain, widened
from .sums import Sums, counter, is_invariant, loop_of, turned
from .values import ONE, ZERO, Linear, Mask, Opaque, State, Wrapped


@dataclass(frozen=True)
class Clamped(Opaque):
    """The elements `start + i` up to the position `upper` along `dim`, and others from there on."""

    start: Polynomial = ZERO
    upper: Polynomial = ZERO
    dim: int = 0

    def moved(self, places: dict[int, int]) -> Clamped:
        """The same elements along another dimension."""
        dims = tuple(None if dim is None else places[dim] for dim in self.dims)
        return replace(self, dims=dims, dim=places[self.dim])


@dataclass(frozen=True)
class Place:
    """The elements at `root + offset`; offsets count elements, in 64 bits."""

    root: SSAValue
    offset: Linear

    @property
    def may_wrap(self) -> bool:
        """True if an offset is computed in fewer bits, and nothing proves that it stays inside of them."""
        return bool(self.offset.claims)


@dataclass(frozen=True)
class Block:
    """The block at some offsets of a tensor, which a block pointer points to."""

    tensor: tt.MakeTensorPtrOp
    offsets: tuple[Polynomial, ...]


class _PlaceDomain(StructureDomain):
    """The domain of structure with offsets that are clamped, and with pointers as the offsets from their roots."""

    def add_pointer(self, op: tt.AddPtrOp, pointer: State, offset: State) -> State | None:
        """The sum in 64 bits."""
        if not isinstance(pointer, Linear) or not isinstance(offset, Linear):
            return None
        return pointer.plus(widened(offset, pointer.bits, signed=True))

    def select(self, op: arith.SelectOp, condition: State, left: State, right: State) -> State | None:
        """Return offsets that are clamped where they reach an upper bound."""
        known = super().select(op, condition, left, right)
        if known is not None or not isinstance(condition, Mask) or not isinstance(left, Linear):
            return known
        if condition.conditions or condition.opaque or not isinstance(right, Linear) or not right.is_uniform:
            return None
        bounds = [(dim, bound) for dim, bound in enumerate(condition.bounds) if bound != (None, None)]
        if len(bounds) != 1 or (upper := bounds[0][1][1]) is None or bounds[0][1][0] is not None:
            return None
        return _clamped(op, left, upper, bounds[0][0], condition)

    def binary(self, op: Operation, function: str, left: State, right: State, *, signed: bool) -> State | None:
        """Return offsets that are clamped where they reach a number."""
        known = super().binary(op, function, left, right, signed=signed)
        if known is not None or function != "min" or not isinstance(left, Linear) or not isinstance(right, Linear):
            return known
        if left.is_uniform:
            left, right = right, left
        along = [dim for dim, stride in enumerate(left.strides) if stride.terms]
        if not signed or not right.is_uniform or len(along) != 1:
            return None
        return _clamped(op, left, right.base + 1 - left.base, along[0], right)


def _clamped(op: Operation, value: Linear, upper: Polynomial, dim: int, other: State) -> State | None:
    """`value` up to the position `upper`, where it grows by 1 along `dim` and is the same along all others."""
    if value.terms or any(stride != (ONE if at == dim else ZERO) for at, stride in enumerate(value.strides)):
        return None
    dims = tuple(at if at == dim else None for at in range(len(value.shape)))
    term = Clamped(op.results[0], dims, True, value.base, upper, dim)
    claims = tuple(dict.fromkeys((*value.claims, *other.claims)))
    return Linear(value.shape, value.bits, ZERO, (ZERO,) * len(value.shape), ((term, ONE),), claims)


_DOMAIN = _PlaceDomain()
_MOVING = (tt.SplatOp, tt.ExpandDimsOp, tt.BroadcastOp, tt.TransOp, tt.ReshapeOp, tt.AddPtrOp)
"""Operations whose pointers have the root of their first operand."""


class _Solved(Structure):
    """Structure with tensors of offsets that loops advance, in polynomials that are not yet expanded."""

    def __init__(self, function: Operation, sums: Sums):
        self._sums = sums
        super().__init__(function, _DOMAIN)

    def of(self, value: SSAValue) -> State:
        """The state of an integer, or of a tensor of integers, which may stand further down."""
        op = value.owner
        is_new = value not in self._states and isinstance(op, Operation) and as_tensor(value.type) is not None
        if is_new and isinstance(op, Operation) and not op.regions:
            self._states[value] = self._computed(op, value)
        return super().of(value)

    def _atom(self, value: SSAValue, bits: int) -> State:
        atom = super()._atom(value, bits)
        if not isinstance(value, BlockArgument) or as_tensor(value.type) is None or bits == 1:
            return atom
        self._states[value] = atom
        if (loop := loop_of(value)) is None or (step := self._step(value, loop)) is None:
            return atom
        initial = self.of(loop.iter_args[value.index - 1])
        return _advanced(initial, step, loop) if isinstance(initial, Linear) else atom

    def _step(self, argument: BlockArgument, loop: scf.ForOp) -> Polynomial | None:
        total, value = ZERO, turned(argument)
        while value is not argument:
            op = value.owner
            if not isinstance(op, upstream.AddiOp):
                return None
            value, other = (op.rhs, op.lhs) if op.rhs is argument else (op.lhs, op.rhs)
            if (number := self.uniform(other)) is None:
                return None
            total += number
        return total if is_invariant(total, loop) else None

    def uniform(self, value: SSAValue) -> Polynomial | None:
        """The number that all elements are."""
        state = self.of(value)
        return self._sums.expanded(state.base) if isinstance(state, Linear) and state.is_uniform else None


def _advanced(initial: Linear, step: Polynomial, loop: scf.ForOp) -> Linear:
    return replace(initial, base=initial.base + step * counter(loop))


class Places:
    """The places of the pointers of one function, the structure of its masks, and its scalars."""

    def __init__(self, function: Operation):
        """Analyse `function`."""
        self.sums = Sums()
        self._structure = _Solved(function, self.sums)
        self._known: dict[SSAValue, Place | None] = {}

    def of(self, pointer: SSAValue) -> Place | None:
        """The place of a pointer or of a tensor of pointers, in expanded polynomials; None where it has no one root."""
        if (place := self._place(pointer)) is None:
            return None
        return Place(place.root, self._expanded(place.offset))

    def mask(self, value: SSAValue) -> Mask | None:
        """The structure of a mask, in expanded polynomials."""
        state = self._structure.of(value)
        if not isinstance(state, Mask):
            return None
        sums = self.sums
        bounds = tuple(
            (None if low is None else sums.expanded(low), None if high is None else sums.expanded(high))
            for low, high in state.bounds
        )
        return replace(state, bounds=bounds, conditions=tuple(map(sums.expanded, state.conditions)))

    def linear(self, value: SSAValue) -> Linear | None:
        """The structure of a tensor of integers, in expanded polynomials."""
        state = self._structure.of(value)
        return self._expanded(state) if isinstance(state, Linear) else None

    def block(self, pointer: SSAValue) -> Block | None:
        """The block that a block pointer points to; None where it is not known."""
        op = pointer.owner
        match op:
            case tt.MakeTensorPtrOp():
                return Block(op, tuple(map(self.sums.of, op.offsets)))
            case tt.AdvanceOp():
                return self._moved(self.block(op.ptr), list(map(self.sums.of, op.offsets)))
            case _ if isinstance(pointer, BlockArgument) and (loop := loop_of(pointer)) is not None:
                if (step := self._block_step(pointer, loop)) is None:
                    return None
                return self._moved(
                    self.block(loop.iter_args[pointer.index - 1]), [each * counter(loop) for each in step]
                )
            case _:
                return None

    def _moved(self, block: Block | None, by: Sequence[Polynomial]) -> Block | None:
        return block and replace(block, offsets=tuple(a + b for a, b in zip(block.offsets, by, strict=True)))

    def _block_step(self, argument: BlockArgument, loop: scf.ForOp) -> list[Polynomial] | None:
        total: list[Polynomial] | None = None
        value = turned(argument)
        while value is not argument:
            if not isinstance(op := value.owner, tt.AdvanceOp):
                return None
            by = list(map(self.sums.of, op.offsets))
            total = by if total is None else [a + b for a, b in zip(total, by, strict=True)]
            value = op.ptr
        return total if total is not None and all(is_invariant(each, loop) for each in total) else None

    def _place(self, pointer: SSAValue) -> Place | None:
        if pointer not in self._known:
            self._known[pointer] = None
            self._known[pointer] = self._found(pointer)
        return self._known[pointer]

    def _found(self, pointer: SSAValue) -> Place | None:
        if isinstance(pointer, BlockArgument) and (loop := loop_of(pointer)) is not None:
            return self._carried(pointer, loop)
        op = pointer.owner
        if isinstance(op, _MOVING):
            if (place := self._place(op.operands[0])) is None:
                return None
            moved = transfer(_DOMAIN, op, [place.offset, *(self._structure.of(each) for each in op.operands[1:])])
            return Place(place.root, moved) if isinstance(moved, Linear) else None
        return None if as_tensor(pointer.type) is not None else Place(pointer, Linear((), 64, ZERO, ()))

    def _carried(self, pointer: BlockArgument, loop: scf.ForOp) -> Place | None:
        """A pointer that each turn moves on by one number."""
        total, value = ZERO, turned(pointer)
        while value is not pointer:
            if not isinstance(op := value.owner, tt.AddPtrOp) or (by := self._uniform(op.offset)) is None:
                return None
            total, value = total + by, op.ptr
        initial = self._place(loop.iter_args[pointer.index - 1])
        if initial is None or not is_invariant(total, loop):
            return None
        return Place(initial.root, _advanced(initial.offset, total, loop))

    def _uniform(self, offset: SSAValue) -> Polynomial | None:
        return self._structure.uniform(offset) if shape_of(offset) else self.sums.of(offset)

    def _expanded(self, value: Linear) -> Linear:
        expanded = self.sums.expanded
        terms: dict[object, Polynomial] = {}
        for term, coefficient in value.terms:
            match term:
                case Clamped():
                    term = replace(term, start=expanded(term.start), upper=expanded(term.upper))
                case Wrapped():
                    term = replace(term, start=expanded(term.start), modulus=expanded(term.modulus))
                case _:
                    pass
            terms[term] = expanded(coefficient)
        strides = tuple(map(expanded, value.strides))
        return replace(value, base=expanded(value.base), strides=strides, terms=tuple(terms.items()))  # pyright: ignore
