"""Layouts that a kernel may ask for: objects that hold numbers, made on the host or in a kernel.

What they mean stands with the classes of `tlx_xdsl.layouts.encodings` that they become: the reference shows them with
the dialects `ttg` and `ttng`. A layout in registers says which thread holds which element; a layout in shared memory
says where an element lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Self, TypeVar

from ..arguments import Flag
from ..compile_time import constexpr, constexpr_function
from ..core import builtin, dtype, unwrapped
from ..objects import tensor
from .cute import at_least, is_pair, modes, parse_cute, power_of_two
from .types import buffered_tensor

__all__ = [
    "DummyRegisterLayoutEncoding",
    "DummyTMEMLayoutEncoding",
    "TMemCTAMode",
    "assert_same_layout",
    "blocked_layout_encoding",
    "distributed_linear_layout_encoding",
    "dot_operand_layout",
    "dot_operand_layout_encoding",
    "dump_layout",
    "layout",
    "layout_encoding",
    "make_tensor_memory_layout",
    "make_tensor_memory_scales_layout",
    "nv_mma_layout",
    "nv_mma_shared_layout_encoding",
    "padded_shared_layout_encoding",
    "release_layout",
    "require_layout",
    "shared_layout_encoding",
    "shared_linear_layout_encoding",
    "slice_layout",
    "slice_layout_encoding",
    "swizzled_layout",
    "swizzled_shared_layout_encoding",
    "tensor_memory_layout_encoding",
    "tensor_memory_scales_layout_encoding",
]


def _ints(values: Sequence[Any], what: str) -> tuple[int, ...]:
    """`values` as plain integers."""
    numbers = tuple(unwrapped(value) for value in values)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{what} must hold integers, got {type(number).__name__}")
    return numbers


def _bases(values: Sequence[Sequence[Any]], what: str) -> list[list[int]]:
    return [list(_ints(basis, what)) for basis in values]


def _extents(bases: Sequence[Sequence[int]]) -> list[int]:
    """Elements along each dimension that sums of the bases, in F2, reach."""
    sizes = [0] * max(map(len, bases), default=0)
    for basis in bases:
        for dim, step in enumerate(basis):
            sizes[dim] |= step
    return [size + 1 for size in sizes]


def _one_cta(values: Sequence[Any] | None, what: str) -> None:
    """Check that a field that splits a tensor over CTAs does not: each CTA has tensors of its own here."""
    if values is not None and any(size != 1 for size in _ints(values, what)):
        raise ValueError(f"{what} must be 1 along every dimension: a TLX buffer belongs to one CTA")


def _permutation(order: Sequence[Any]) -> list[int]:
    numbers = list(_ints(order, "order"))
    if sorted(numbers) != list(range(len(numbers))):
        raise ValueError(f"order must be a permutation of the dimensions, got {numbers}")
    return numbers


def _row_major(rank: int) -> list[int]:
    return list(reversed(range(rank)))


class layout_encoding:
    """Base of all layouts."""

    def __eq__(self, other: object) -> bool:
        """Layouts of one class with the same numbers are equal."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Agree with equality; the numbers stand in lists, as in Meta's TLX."""
        return hash(repr(self))

    def __repr__(self) -> str:
        """Return the class with its numbers."""
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class shared_layout_encoding(layout_encoding):
    """Base of the layouts of buffers."""


class swizzled_shared_layout_encoding(shared_layout_encoding):
    """Shared memory swizzled in vectors of `vectorSize` elements: row r is XORed with (r / perPhase) mod maxPhase.

    `order` names the dimensions from the fastest varying to the slowest.

    Example:
    ```python
    layout: tl.constexpr = tlx.swizzled_shared_layout_encoding(8, 1, 8, [1, 0])
    tile = tlx.local_alloc((128, 64), tl.float16, 2, layout=layout)
    ```
    """

    def __init__(
        self,
        vectorSize: int,
        perPhase: int,
        maxPhase: int,
        order: Sequence[int],
        numCTAs: Sequence[int] | None = None,
        numCTAsPerCGA: Sequence[int] | None = None,
        numCTASplit: Sequence[int] | None = None,
        numCTAOrder: Sequence[int] | None = None,
    ):
        self.vectorSize = power_of_two(vectorSize, "vectorSize")
        self.perPhase = power_of_two(perPhase, "perPhase")
        self.maxPhase = power_of_two(maxPhase, "maxPhase")
        self.order = _permutation(order)
        for what, values in (("numCTAs", numCTAs), ("numCTAsPerCGA", numCTAsPerCGA), ("numCTASplit", numCTASplit)):
            _one_cta(values, what)

    @classmethod
    def make_default(cls, rank: int) -> swizzled_shared_layout_encoding:
        """Row-major shared memory of `rank` dimensions without swizzle."""
        return cls(1, 1, 1, _row_major(at_least(rank, 1, "rank")))


class padded_shared_layout_encoding(shared_layout_encoding):
    """Shared memory with padding: after every `interval` elements come `padding` more, for each (interval, padding).

    Made by `with_identity_for` or `with_bases`, for a buffer of `shape` elements.

    Example:
    ```python
    layout: tl.constexpr = tlx.padded_shared_layout_encoding.with_identity_for([[64, 8]], [128, 64], [1, 0])
    tile = tlx.local_alloc((128, 64), tl.float16, 2, layout=layout)
    ```
    """

    def __init__(
        self,
        interval_padding_pairs: Sequence[Sequence[int]],
        offset_bases: Sequence[Sequence[int]],
        block_bases: Sequence[Sequence[int]] = (),
        shape: Sequence[int] | None = None,
        order: Sequence[int] | None = None,
    ):
        pairs = _bases(interval_padding_pairs, "interval_padding_pairs")
        if not pairs or any(len(pair) != 2 for pair in pairs):
            raise ValueError("interval_padding_pairs must hold pairs of an interval and a padding")
        self.intervals = [power_of_two(pair[0], "an interval") for pair in pairs]
        self.paddings = [power_of_two(pair[1], "a padding") for pair in pairs]
        bases, blocks = _bases(offset_bases, "offset_bases"), _bases(block_bases, "block_bases")
        self.shape = _extents([*bases, *blocks]) if shape is None else list(_ints(shape, "shape"))
        rank = len(self.shape)
        self.order = _row_major(rank) if order is None else _permutation(order)
        if len(self.order) != rank:
            raise ValueError(f"shape and order must have one length, got {rank} and {len(self.order)}")
        for what, vectors in (("offset_bases", bases), ("block_bases", blocks)):
            if any(len(basis) != rank for basis in vectors):
                raise ValueError(f"{what} must hold vectors of {rank} integers, one for each dimension")
        self.offset_bases, self.block_bases = bases, blocks

    @staticmethod
    def with_identity_for(
        interval_padding_pairs: Sequence[Sequence[int]], shape: Sequence[int], order: Sequence[int] | None = None
    ) -> padded_shared_layout_encoding:
        """Elements of `shape` that follow each other, the dimension `order[0]` first; by default the last one."""
        sizes = _ints(shape, "shape")
        dims = _row_major(len(sizes)) if order is None else _permutation(order)
        if len(sizes) != len(dims):
            raise ValueError(f"shape and order must have one length, got {len(sizes)} and {len(dims)}")
        bases: list[tuple[int, ...]] = []
        for dim in dims:
            bits = power_of_two(sizes[dim], "a size").bit_length() - 1
            bases += [tuple(1 << bit if d == dim else 0 for d in range(len(sizes))) for bit in range(bits)]
        return padded_shared_layout_encoding(interval_padding_pairs, bases, shape=sizes, order=dims)

    @staticmethod
    def with_bases(
        interval_padding_pairs: Sequence[Sequence[int]],
        offset_bases: Sequence[Sequence[int]],
        shape: Sequence[int] | None = None,
        block_bases: Sequence[Sequence[int]] | None = None,
    ) -> padded_shared_layout_encoding:
        """Elements of `shape` in the order that `offset_bases` spells out, one basis per bit of the offset.

        Without `shape` it is what the bases reach.
        Raises ValueError for a basis that has not one integer for each dimension of `shape`.
        """
        return padded_shared_layout_encoding(interval_padding_pairs, offset_bases, block_bases or (), shape)


class shared_linear_layout_encoding(shared_layout_encoding):
    """Shared memory in the order that `offset_bases` spells out, one basis per bit of the element's offset.

    `alignment` is what the buffer's address is a multiple of, in bytes.
    """

    def __init__(
        self, offset_bases: Sequence[Sequence[int]], block_bases: Sequence[Sequence[int]] = (), alignment: int = 16
    ):
        self.offset_bases = _bases(offset_bases, "offset_bases")
        self.block_bases = _bases(block_bases, "block_bases")
        self.alignment = power_of_two(alignment, "alignment")

    @classmethod
    def from_nv_mma(
        cls, atom_layout: nv_mma_shared_layout_encoding, tile_shape: Sequence[int], alignment: int = 1024
    ) -> shared_linear_layout_encoding:
        """Tiles in `atom_layout`, as many as a buffer of `tile_shape` elements has, in the atom's order.

        Raises ValueError where the tile does not divide the shape.
        """
        shape = list(_ints(tile_shape, "tile_shape"))
        if len(shape) != len(atom_layout.shape) or any(
            each % part for each, part in zip(shape, atom_layout.shape, strict=True)
        ):
            raise ValueError(f"tiles of {atom_layout.shape} elements do not divide {shape}")
        result = cls((), (), alignment)
        result.atom, result.tile_shape = atom_layout, shape
        return result

    atom: nv_mma_shared_layout_encoding | None = None
    """The layout of one tile, where the buffer consists of them."""
    tile_shape: Sequence[int] = ()
    """The shape of a buffer that consists of tiles."""


class nv_mma_shared_layout_encoding(shared_layout_encoding):
    """The tile layout that TMA writes and the tensor cores read, with the widest swizzle that `shape` fills.

    With `swizzled` false there is none; with `order` (0, 1) the tile is transposed. `fp4Padded` gives pairs of fp4
    values the space of two bytes.

    Example:
    ```python
    layout: tl.constexpr = tlx.nv_mma_shared_layout_encoding([128, 64], [1, 0], tl.float16)
    tile = tlx.local_alloc((128, 64), tl.float16, 2, layout=layout)
    ```
    """

    def __init__(
        self,
        shape: Sequence[int],
        order: Sequence[int],
        elemType: dtype,
        numCTAsPerCGA: Sequence[int] | None = None,
        numCTASplit: Sequence[int] | None = None,
        numCTAOrder: Sequence[int] | None = None,
        fp4Padded: bool = False,
        swizzled: bool = True,
    ):
        self.shape = list(_ints(shape, "shape"))
        self.order = _permutation(order)
        if len(self.shape) < 2 or len(self.shape) != len(self.order):
            raise ValueError(
                f"shape and order must have one length of at least 2, got {len(self.shape)} and {len(self.order)}"
            )
        self.elemType = unwrapped(elemType)
        if not isinstance(self.elemType, dtype):
            raise TypeError(f"elemType must be an element type, got {type(self.elemType).__name__}")
        _one_cta(numCTAsPerCGA, "numCTAsPerCGA")
        _one_cta(numCTASplit, "numCTASplit")
        self.fp4Padded = bool(unwrapped(fp4Padded))
        self.swizzled = bool(unwrapped(swizzled))

    @classmethod
    def make_default(
        cls, shape: Sequence[int], elemType: dtype, fp4Padded: bool = False
    ) -> nv_mma_shared_layout_encoding:
        """The row-major tile."""
        return cls(shape, tuple(reversed(range(len(shape)))), elemType, fp4Padded=fp4Padded)

    def tile_to_shape(self, tile_shape: Sequence[int], alignment: int = 1024) -> shared_linear_layout_encoding:
        """A buffer of `tile_shape` elements that consists of tiles with this layout (`from_nv_mma`)."""
        return shared_linear_layout_encoding.from_nv_mma(self, tile_shape, alignment)

    def make_shared_linear(
        self, alignment: int = 1024, tile_shape: Sequence[int] | None = None
    ) -> shared_linear_layout_encoding:
        """Return `tile_to_shape`, by default of one tile."""
        return self.tile_to_shape(self.shape if tile_shape is None else tile_shape, alignment)


class TMemCTAMode(Enum):
    """Distribution of an accumulator in tensor memory over a pair of CTAs."""

    DEFAULT = 0
    """Each CTA has accumulators of its own."""
    TwoCTA_LHS = 1
    """The pair works on one accumulator; this CTA holds half of the rows."""
    TwoCTA_RHS = 2
    """The pair works on one accumulator; this CTA holds half of the columns."""


class tensor_memory_layout_encoding(shared_layout_encoding):
    """Tensor memory in blocks of `blockM` (64 or 128) by `blockN` elements.

    `colStride` is the distance of the elements of a row: 1, or 32 divided by the bits of an element where they are
    kept unpacked, as an accumulator of 16 bits is.

    Example:
    ```python
    layout: tl.constexpr = tlx.tensor_memory_layout_encoding(128, 128)
    sums = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem, layout=layout)
    ```
    """

    def __init__(
        self,
        blockM: int,
        blockN: int,
        colStride: int = 1,
        ctaMode: TMemCTAMode = TMemCTAMode.DEFAULT,
        CTASplitM: int = 1,
        CTASplitN: int = 1,
    ):
        _one_cta((CTASplitM, CTASplitN), "CTASplitM and CTASplitN")
        self.blockM = power_of_two(blockM, "blockM")
        if self.blockM not in (64, 128):
            raise ValueError(f"blockM must be 64 or 128, got {self.blockM}")
        self.blockN = power_of_two(blockN, "blockN")
        self.colStride = power_of_two(colStride, "colStride")
        if self.colStride not in (1, 2, 4):
            raise ValueError(f"colStride must be 1, 2 or 4, got {self.colStride}")
        self.ctaMode = unwrapped(ctaMode)
        if not isinstance(self.ctaMode, TMemCTAMode):
            raise TypeError(f"ctaMode must be a TMemCTAMode, got {type(self.ctaMode).__name__}")

    @classmethod
    def make_default(cls, shape: Sequence[int]) -> tensor_memory_layout_encoding:
        """Return one block of `shape` elements, kept packed."""
        return cls(shape[0], shape[1])


class tensor_memory_scales_layout_encoding(shared_layout_encoding):
    """Tensor memory with the scales of a block-scaled MMA: 8 bits each, in lanes of 32 rows.

    Example:
    ```python
    layout: tl.constexpr = tlx.tensor_memory_scales_layout_encoding()
    scale = tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem, layout=layout)
    ```
    """

    def __init__(self, CTASplitM: int = 1, CTASplitN: int = 1):
        _one_cta((CTASplitM, CTASplitN), "CTASplitM and CTASplitN")

    @classmethod
    def make_default(cls) -> tensor_memory_scales_layout_encoding:
        """Return the layout: there is one."""
        return cls()


class DummyTMEMLayoutEncoding(layout_encoding):
    """Stands for a layout of tensor memory that the compiler chooses: of scales, or of an operand."""


make_tensor_memory_layout = tensor_memory_layout_encoding
make_tensor_memory_scales_layout = tensor_memory_scales_layout_encoding


class swizzled_layout(shared_layout_encoding):
    """CuTe's Swizzle<bits, base, shift> of a buffer that is row-major, or in `order`.

    Vectors of `2**base` elements are XORed: bits `base + shift` and up of the offset into bits `base` and up.

    Example: `rows = tlx.local_alloc((64, 64), tl.float16, 2, layout=tlx.swizzled_layout(3, 3, 3))`
    """

    def __init__(self, bits: int, base: int = 0, shift: int = 0, order: Sequence[int] | None = None):
        self.bits = at_least(bits, 0, "bits")
        self.base = at_least(base, 0, "base")
        self.shift = at_least(shift, 0, "shift")
        self.order = None if order is None else _permutation(order)

    @property
    def maxPhase(self) -> int:
        """The number of rows after which the pattern repeats."""
        return 1 << self.bits

    @property
    def vectorSize(self) -> int:
        """Elements that stay together."""
        return 1 << self.base

    @classmethod
    def make_default(cls, rank: int) -> swizzled_layout:
        """Row-major shared memory of `rank` dimensions without swizzle."""
        return cls(0, order=_row_major(at_least(rank, 1, "rank")))


class layout(layout_encoding):
    """A register layout in CuTe's terms: from (thread, value) to the element's number in the row-major block.

    `shape` and `stride` are pairs of equally nested tuples of integers, for the threads and for the values of one;
    or `spec` says the same as text, `((4,8),2):((2,8),1)`. The first 32 threads are a warp. The strides must not carry
    into each other: no bit of the element's number belongs to two of them.

    A `swizzled_layout` as `spec` is the layout of a buffer, and the result: one without a swizzle, whose dimensions
    have an order, as a `swizzled_shared_layout_encoding`.

    Raises ValueError when shape and stride do not match or a size is no power of two.
    """

    def __new__(cls, spec: Any = None, *, shape: Any = None, stride: Any = None) -> Any:
        """A layout of registers, or that of a buffer."""
        if not isinstance(spec := unwrapped(spec), swizzled_layout):
            return super().__new__(cls)
        if shape is not None or stride is not None:
            raise ValueError("a layout takes either a spec or shape and stride")
        if spec.bits or spec.order is None:
            return spec
        return swizzled_shared_layout_encoding(1 << spec.base, 1, 1, spec.order)

    def __init__(self, spec: str | swizzled_layout | None = None, *, shape: Any = None, stride: Any = None):
        if spec is not None:
            if shape is not None or stride is not None:
                raise ValueError("a layout takes either a spec or shape and stride")
            shape, stride = parse_cute(unwrapped(spec))
        if not is_pair(shape) or not is_pair(stride):
            raise ValueError("shape and stride of a layout must be pairs, for the threads and for the values")
        self.threads = modes(shape[0], stride[0])
        self.values = modes(shape[1], stride[1])


class DummyRegisterLayoutEncoding(layout_encoding):
    """Stands for a register layout that the compiler chooses for a block of `shape` elements of `element_type`.

    With `tmem_compatible` it is one that tensor memory can be loaded into.
    """

    def __init__(self, shape: Sequence[int], element_type: dtype, tmem_compatible: bool = False):
        self.shape = _ints(shape, "shape")
        self.element_type = unwrapped(element_type)
        if not isinstance(self.element_type, dtype):
            raise TypeError(f"element_type must be an element type, got {type(self.element_type).__name__}")
        self.tmem_compatible = bool(unwrapped(tmem_compatible))


class _register_layout_encoding(layout_encoding):
    @classmethod
    def make(cls, *args: Any, **named: Any) -> Self:
        """Return the layout of the same arguments: the spelling of kernels that can't call classes."""
        return cls(*args, **named)


class blocked_layout_encoding(_register_layout_encoding):
    """Registers in blocks of `size_per_thread`, of `threads_per_warp` threads, of `warps_per_cta` warps: in each
    dimension, those of `order` first.

    Example: `tile = tlx.require_layout(block, tlx.blocked_layout_encoding([1, 8], [4, 8], [4, 1], [1, 0]))`
    """

    def __init__(
        self,
        size_per_thread: Sequence[int],
        threads_per_warp: Sequence[int],
        warps_per_cta: Sequence[int],
        order: Sequence[int],
        cga_bases: Sequence[Sequence[int]] | None = None,
    ):
        self.size_per_thread = list(_ints(size_per_thread, "size_per_thread"))
        self.threads_per_warp = list(_ints(threads_per_warp, "threads_per_warp"))
        self.warps_per_cta = list(_ints(warps_per_cta, "warps_per_cta"))
        self.order = _permutation(order)
        if cga_bases:
            raise ValueError("cga_bases must be empty: a TLX block belongs to one CTA")


class distributed_linear_layout_encoding(_register_layout_encoding):
    """Registers by bases: the coordinates that each bit of the register's, lane's and warp's number moves by."""

    def __init__(
        self,
        reg_bases: Sequence[Sequence[int]],
        lane_bases: Sequence[Sequence[int]],
        warp_bases: Sequence[Sequence[int]],
        block_bases: Sequence[Sequence[int]],
        shape: Sequence[int],
    ):
        self.reg_bases = _bases(reg_bases, "reg_bases")
        self.lane_bases = _bases(lane_bases, "lane_bases")
        self.warp_bases = _bases(warp_bases, "warp_bases")
        self.block_bases = _bases(block_bases, "block_bases")
        self.shape = list(_ints(shape, "shape"))


class nv_mma_layout(layout_encoding):
    """Registers of the accumulator of `wgmma`, or of `mma.sync` where `instr_shape` has two sizes: (16, 8).

    `instr_shape` is M, N and K of one instruction of a warp; for `wgmma` M is 16, a quarter of its warpgroup's.

    Example: `sums = tlx.require_layout(acc, tlx.nv_mma_layout((4, 1), (16, 128, 16)))`
    """

    def __init__(self, warps_per_cta: Sequence[int], instr_shape: Sequence[int]):
        self.warps_per_cta = list(_ints(warps_per_cta, "warps_per_cta"))
        self.instr_shape = list(_ints(instr_shape, "instr_shape"))
        if len(self.instr_shape) not in (2, 3):
            raise ValueError(f"instr_shape must have two or three sizes, got {self.instr_shape}")


def _parent(parent: Any) -> layout_encoding:
    parent = unwrapped(parent)
    if not isinstance(parent, layout_encoding):
        raise TypeError(f"parent must be a layout, got {type(parent).__name__}")
    return parent


class slice_layout_encoding(_register_layout_encoding):
    """Registers as the reduction of a block in the layout `parent` along `dim` leaves them."""

    def __init__(self, dim: int, parent: layout_encoding):
        self.dim, self.parent = at_least(dim, 0, "dim"), _parent(parent)


@constexpr_function
def slice_layout(parent: layout_encoding, dim: int) -> slice_layout_encoding:
    """Return `slice_layout_encoding(dim, parent)`.

    Example:
    ```python
    parent: tl.constexpr = tlx.blocked_layout_encoding([1, 8], [4, 8], [4, 1], [1, 0])
    row = tlx.require_layout(at, tlx.slice_layout(parent, 1))
    ```
    """
    return slice_layout_encoding(dim, parent)


class dot_operand_layout_encoding(_register_layout_encoding):
    """Registers of operand 0 or 1 of a product whose result has the layout `parent`.

    A thread holds `k_width` elements in a row along K; without it 32 bits of them.
    """

    def __init__(self, operand_index: int, parent: layout_encoding, k_width: int | None = None):
        self.operand_index, self.parent = at_least(operand_index, 0, "operand_index"), _parent(parent)
        self.k_width = None if k_width is None else power_of_two(k_width, "k_width")


@constexpr_function
def dot_operand_layout(
    operand_index: int, parent: layout_encoding, k_width: int | None = None
) -> dot_operand_layout_encoding:
    """Return `dot_operand_layout_encoding` of the same arguments.

    Example:
    ```python
    sums: tl.constexpr = tlx.nv_mma_layout((4, 1), (16, 8))
    tile = tlx.require_layout(block, tlx.dot_operand_layout(0, sums, 2))
    ```
    """
    return dot_operand_layout_encoding(operand_index, parent, k_width)


X = TypeVar("X", "tensor", "buffered_tensor")

_tlx = builtin("tlx")


@builtin("tlx", spellings={"src": "x"})
def require_layout(
    x: X, layout: layout_encoding | constexpr, pin: Flag = True, late_address_compute: Flag = False
) -> X:
    """`x` in the given layout, which with `pin` no pass may change.

    `late_address_compute` is a hint for AMD GPUs and means nothing here.

    Example: `tile = tlx.require_layout(block, tlx.blocked_layout_encoding([1, 8], [4, 8], [4, 1], [1, 0]))`
    """
    ...


@builtin("tlx", spellings={"src": "x"})
def release_layout(x: X, relaxed: Flag = False) -> X:
    """`x` in any layout that the compiler likes again. `relaxed` lets it ignore that, and means nothing here.

    Example: `free = tlx.release_layout(tlx.local_load(a[0]))`
    """
    ...


@_tlx
def dump_layout(x: tensor | buffered_tensor) -> None:
    """Print the final layout of a block or buffer while compiling.

    Example: `tlx.dump_layout(block)`
    """


@_tlx
def assert_same_layout(
    lhs: tensor | buffered_tensor, rhs: tensor | buffered_tensor | layout_encoding | constexpr
) -> None:
    """Refuse to compile unless the block or buffer `lhs` ends up in the layout of `rhs`, or in the layout `rhs`.

    Example: `tlx.assert_same_layout(block, block)`
    """
