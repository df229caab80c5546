"""Linear layouts: functions from hardware indices to tensor coordinates that are linear over F2.

A layout maps the tuple of its input indices (say register, lane, warp and block) to the tuple of its output
coordinates (say dim0 and dim1). All sizes are powers of two, and `f(a ^ b) == f(a) ^ f(b)` for every pair of inputs.
So the images of the powers of two, called bases, say it all:

    register: (0, 1)                        index 1 of `register` is one column further
    lane: (0, 2) (0, 4) (1, 0)              lane 1 is two columns further, lane 4 is one row further
    -> dim0: 2, dim1: 8                     so lane 5 and register 1 hold element (1, 3)

See "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2" (arXiv 2505.23819). Inside, the
coordinates of one basis are packed into one integer, the first output in the lowest bits: the algebra is then
arithmetic on lists of integers (`f2`).

The laws that the docstrings state hold up to the order of dimensions only where they say so; `==` compares
dimensions, their order, sizes and bases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from tlx_xdsl.errors import InputError

from .encodings import Ints
from .f2 import Elimination, image

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Dims: TypeAlias = tuple[tuple[str, int], ...]
"""Names and sizes of dimensions, in order."""


def log2(size: int) -> int:
    """The number of bits of an index below `size`.

    Raises ValueError unless `size` is a power of two.
    """
    if size < 1 or size & (size - 1):
        raise InputError(f"expected a power of two, got {size}")
    return size.bit_length() - 1


@dataclass(frozen=True, slots=True)
class LinearLayout:
    """A linear function from named input indices to named output coordinates; immutable and hashable."""

    ins: tuple[tuple[str, Ints], ...]
    """Name and bases of each input; input d has 2**len(bases) indices. A basis is packed as `outs` says."""
    outs: Dims
    """Name and size of each output; the first takes the lowest bits of a packed coordinate."""

    def __post_init__(self) -> None:
        """Reject repeated names, sizes that are no powers of two, and bases outside the output."""
        for names in (self.in_names, self.out_names):
            if len(set(names)) != len(names):
                raise InputError(f"dimension named twice: {', '.join(names)}")
        limit = prod(1 << log2(size) for _, size in self.outs)
        for name, bases in self.ins:
            if any(not 0 <= basis < limit for basis in bases):
                raise InputError(f"a basis of '{name}' leaves the output of {limit} elements")

    # Construction ----------------------------------------------------------------------------------------------------

    @classmethod
    def from_bases(
        cls, bases: Mapping[str, Sequence[Sequence[int]]], outs: Mapping[str, int] | Sequence[str]
    ) -> LinearLayout:
        """The layout with these bases, each a coordinate per output.

        `outs` gives the outputs' sizes, or only their names: then a size is the least power of two that all bases
        stay below.
        """
        if not isinstance(outs, Mapping):
            columns = zip(*chain.from_iterable(bases.values()), strict=True)
            largest = [max(column) for column in columns] or [0] * len(outs)
            outs = {name: 1 << top.bit_length() for name, top in zip(outs, largest, strict=True)}
        dims = tuple(outs.items())
        return cls(
            tuple((name, tuple(pack(basis, dims) for basis in vectors)) for name, vectors in bases.items()), dims
        )

    @classmethod
    def identity_1d(cls, size: int, in_name: str, out_name: str) -> LinearLayout:
        """`f(x) = x` for x below `size`."""
        return cls(((in_name, tuple(1 << bit for bit in range(log2(size)))),), ((out_name, size),))

    @classmethod
    def zeros_1d(cls, size: int, in_name: str, out_name: str) -> LinearLayout:
        """`f(x) = 0` for x below `size`: all `size` holders hold the same element."""
        return cls(((in_name, (0,) * log2(size)),), ((out_name, 1),))

    @classmethod
    def empty(cls) -> LinearLayout:
        """The layout without inputs and outputs: `empty * f == f == f * empty`."""
        return cls((), ())

    # Parts -----------------------------------------------------------------------------------------------------------

    @property
    def in_names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(name for name, _ in self.ins)

    @property
    def out_names(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return tuple(name for name, _ in self.outs)

    @property
    def in_sizes(self) -> dict[str, int]:
        """The number of indices of each input."""
        return {name: 1 << len(bases) for name, bases in self.ins}

    @property
    def out_sizes(self) -> dict[str, int]:
        """The number of coordinates of each output."""
        return dict(self.outs)

    @property
    def in_bits(self) -> int:
        """The number of bits of all inputs together."""
        return sum(len(bases) for _, bases in self.ins)

    @property
    def out_bits(self) -> int:
        """The number of bits of all outputs together."""
        return sum(log2(size) for _, size in self.outs)

    @property
    def columns(self) -> Ints:
        """The packed bases of all inputs, first input first: the matrix of the layout, by columns."""
        return tuple(chain.from_iterable(bases for _, bases in self.ins))

    def packed_bases(self, in_name: str) -> Ints:
        """The bases of one input as packed integers."""
        return dict(self.ins)[in_name]

    def bases_of(self, in_name: str) -> tuple[tuple[int, ...], ...]:
        """The bases of one input, each as a coordinate per output."""
        return tuple(unpack(basis, self.outs) for basis in self.packed_bases(in_name))

    @property
    def bases(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """The bases of every input: `from_bases(f.bases, f.out_sizes) == f`."""
        return {name: self.bases_of(name) for name in self.in_names}

    # Application -----------------------------------------------------------------------------------------------------

    def apply(self, indices: Mapping[str, int]) -> dict[str, int]:
        """The coordinates of the element at `indices`, which names every input."""
        self._expect_inputs(indices)
        packed = 0
        for name, bases in self.ins:
            if not 0 <= indices[name] < 1 << len(bases):
                raise InputError(f"index {indices[name]} of '{name}' is not below {1 << len(bases)}")
            packed ^= image(bases, indices[name])
        return dict(zip(self.out_names, unpack(packed, self.outs), strict=True))

    def apply_array(self, indices: Mapping[str, NDArray[np.integer]]) -> dict[str, NDArray[np.int64]]:
        """`apply` to arrays of indices, which are broadcast against each other."""
        import numpy as np

        self._expect_inputs(indices)
        packed = np.zeros(np.broadcast_shapes(*(np.shape(index) for index in indices.values())), np.int64)
        for name, bases in self.ins:
            for bit, basis in enumerate(bases):
                packed ^= (np.asarray(indices[name], np.int64) >> bit & 1) * basis
        result: dict[str, NDArray[np.int64]] = {}
        for name, size in self.outs:
            result[name] = packed & (size - 1)
            packed = packed >> log2(size)
        return result

    def _expect_inputs(self, indices: Iterable[str]) -> None:
        if set(indices) != set(self.in_names):
            raise InputError(f"expected indices for {', '.join(self.in_names)}, got {', '.join(indices)}")

    # Combination -----------------------------------------------------------------------------------------------------

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """The product: `other` works on the high bits of inputs and outputs that both have; associative.

        `(f * g)(x + f.size * y) == f(x) + f.out_size * g(y)`, dimension by dimension: a tile `f`, repeated as `g` says.
        Dimensions stand in the order of `self`, then those that only `other` has.
        """
        sizes, more = self.out_sizes, other.out_sizes
        outs = {name: sizes.get(name, 1) * more.get(name, 1) for name in dict.fromkeys((*sizes, *more))}
        dims = tuple(outs.items())
        move_mine = _mover(self.outs, dims)
        # The other's coordinates start where mine end.
        move_theirs = _mover(other.outs, dims, {name: log2(sizes.get(name, 1)) for name in more})
        mine = {name: map(move_mine, bases) for name, bases in self.ins}
        theirs = {name: map(move_theirs, bases) for name, bases in other.ins}
        names = dict.fromkeys((*mine, *theirs))
        return LinearLayout(tuple((name, (*mine.get(name, ()), *theirs.get(name, ()))) for name in names), dims)

    def right_inverse(self) -> LinearLayout:
        """Map each element to its holder with zeros in all free bits: `f` after `f.right_inverse()` is the
        identity.

        Raises ValueError unless the layout is surjective.
        """
        unit_vectors = LinearLayout((("", tuple(1 << bit for bit in range(self.out_bits))),), self.outs)
        return unit_vectors.reshape_ins(self.outs).invert_and_compose(self)

    def invert_and_compose(self, outer: LinearLayout) -> LinearLayout:
        """The layout c that goes from my indices to those of `outer`, so that both name the same element:
        `g` after `f.invert_and_compose(g)` is `f`.

        Where several indices of `outer` hold an element, c takes the one with zeros in all free bits of `outer`
        (`free_variables`). Raises ValueError if `outer` holds no copy of an element that this layout holds, or if
        the outputs differ.
        """
        if self.out_sizes != outer.out_sizes:
            raise InputError(f"layouts of different outputs: {self.outs} and {outer.outs}")
        aligned = outer.transpose_outs(self.out_names)
        elimination = Elimination.of(aligned.columns)

        def solved(basis: int) -> int:
            found = elimination.solve(basis)
            if found is None:
                raise InputError(f"element {unpack(basis, self.outs)} has no holder in\n{outer}")
            return found

        return LinearLayout(
            tuple((name, tuple(solved(basis) for basis in bases)) for name, bases in self.ins),
            tuple(outer.in_sizes.items()),
        )

    # Shape -----------------------------------------------------------------------------------------------------------

    def sublayout(self, in_names: Sequence[str], out_names: Sequence[str]) -> LinearLayout:
        """The part from `in_names` to `out_names`, in that order: all other indices are zero, all other coordinates
        are dropped.
        """
        dims = tuple((name, self.out_sizes[name]) for name in out_names)
        move = _mover(self.outs, dims)
        return LinearLayout(tuple((name, tuple(map(move, self.packed_bases(name)))) for name in in_names), dims)

    def transpose_outs(self, names: Sequence[str]) -> LinearLayout:
        """The same function with its outputs listed in the order of `names`."""
        if sorted(names) != sorted(self.out_names):
            raise InputError(f"expected the outputs {self.out_names} in some order, got {tuple(names)}")
        return self.sublayout(self.in_names, names)

    def reshape_ins(self, dims: Sequence[tuple[str, int]]) -> LinearLayout:
        """The bits of all inputs, first input lowest, dealt anew to inputs of these names and sizes."""
        columns = list(self.columns)
        if sum(log2(size) for _, size in dims) != len(columns):
            raise InputError(f"cannot reshape inputs {self.in_sizes} to {tuple(dims)}")
        ins: list[tuple[str, Ints]] = []
        for name, size in dims:
            ins.append((name, tuple(columns[: log2(size)])))
            del columns[: log2(size)]
        return LinearLayout(tuple(ins), self.outs)

    def reshape_outs(self, dims: Sequence[tuple[str, int]]) -> LinearLayout:
        """The bits of all outputs, first output lowest, dealt anew to outputs of these names and sizes."""
        if sum(log2(size) for _, size in dims) != self.out_bits:
            raise InputError(f"cannot reshape outputs {self.outs} to {tuple(dims)}")
        return LinearLayout(self.ins, tuple(dims))

    def without_zero_bases(self, in_name: str) -> LinearLayout:
        """The layout without those bits of `in_name` that lead nowhere, so that it has no copies along them."""
        return LinearLayout(
            tuple((name, tuple(basis for basis in bases if basis or name != in_name)) for name, bases in self.ins),
            self.outs,
        )

    # Questions -------------------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """The dimension of the image: the layout reaches 2**rank elements."""
        return Elimination.of(self.columns).rank

    def is_surjective(self) -> bool:
        """Every element has a holder."""
        return self.rank == self.out_bits

    def is_injective(self) -> bool:
        """No element has two holders."""
        return self.rank == self.in_bits

    def free_variables(self) -> dict[str, int]:
        """Return a mask by input of the bits that choose between copies of the same element.

        A bit is free if its basis is a sum of bases of earlier bits, inputs in their order. All elements are reached
        with zeros in all free bits.
        """
        free = Elimination.of(self.columns).free
        masks: dict[str, int] = {}
        for name, size in self.in_sizes.items():
            masks[name] = free & (size - 1)
            free >>= log2(size)
        return masks

    def without_trivial_dims(self) -> LinearLayout:
        """The layout without inputs and outputs of size 1."""
        return LinearLayout(
            tuple((name, bases) for name, bases in self.ins if bases),
            tuple((name, size) for name, size in self.outs if size > 1),
        )

    def equal_ignoring_trivial(self, other: LinearLayout) -> bool:
        """Equality of all but inputs and outputs of size 1."""
        return self.without_trivial_dims() == other.without_trivial_dims()

    def __str__(self) -> str:
        """One line of bases per input, then the outputs' sizes."""
        lines = [
            f"{name}: {' '.join(str(basis) if len(basis) != 1 else f'({basis[0]})' for basis in bases)}".rstrip()
            for name, bases in self.bases.items()
        ]
        return "\n".join([*lines, f"-> {', '.join(f'{name}: {size}' for name, size in self.outs)}"])


def pack(coordinates: Sequence[int], dims: Dims) -> int:
    """One integer that holds a coordinate per dimension, the first in the lowest bits.

    Raises ValueError if there are more or fewer coordinates than dimensions, or one is outside its dimension.
    """
    packed = start = 0
    if len(coordinates) != len(dims):
        raise InputError(f"expected {len(dims)} coordinates, got {tuple(coordinates)}")
    for coordinate, (name, size) in zip(coordinates, dims, strict=True):
        if not 0 <= coordinate < size:
            raise InputError(f"coordinate {coordinate} of '{name}' is not below {size}")
        packed |= coordinate << start
        start += log2(size)
    return packed


def unpack(packed: int, dims: Dims) -> Ints:
    """The coordinates that `pack` put into one integer."""
    coordinates: list[int] = []
    for _, size in dims:
        coordinates.append(packed & (size - 1))
        packed >>= log2(size)
    return tuple(coordinates)


def _mover(dims: Dims, target: Dims, up: Mapping[str, int] | None = None) -> Callable[[int], int]:
    """The function from a packed coordinate of `dims` to the same one of `target`, each dimension `up` so many bits.

    Dimensions that `target` lacks are dropped.
    """
    starts = _starts(target)
    moves = [
        (start, size - 1, starts[name] + (up or {}).get(name, 0))
        for (name, size), start in zip(dims, _starts(dims).values(), strict=True)
        if name in starts
    ]

    def move(packed: int) -> int:
        moved = 0
        for start, mask, new_start in moves:
            moved |= (packed >> start & mask) << new_start
        return moved

    return move


def _starts(dims: Dims) -> dict[str, int]:
    """Return the position of each dimension's lowest bit in a packed coordinate."""
    starts: dict[str, int] = {}
    start = 0
    for name, size in dims:
        starts[name] = start
        start += log2(size)
    return starts
