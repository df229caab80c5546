"""Pieces of random plain kernels: axes of blocks, arrays in memory, and loads and stores of every kind.

A load goes through pointers, which a loop computes or carries, or through a descriptor of the host or of the kernel; it
is masked, wrapped around or neither, and what it loads may lie transposed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from tests.gallery.plain.family import Problem
from tests.gallery.plain.numpy_arrays import NumpyArrays

HEAD = """import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
"""
SIZES = 5
"""Launches of a kernel."""
ELEMENT_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "i32": 4, "fp8e4nv": 1, "fp8e5": 1, "i8": 1}

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Axis:
    """One axis of the blocks of a kernel."""

    size: str
    """The name of the extent, which is an argument; or the extent itself where it is the block's."""
    block: int
    vector: str
    """The name of the block's indices."""
    start: str
    """The first of them, as an expression."""
    is_looped: bool = False
    lanes: str = ""
    """The name of the numbers of the lanes, for an axis that a loop walks along."""

    @property
    def is_whole(self) -> bool:
        """True if the block has the whole axis: it needs no mask."""
        return self.size.isdigit()

    def extent(self, sizes: Sizes) -> int:
        return int(self.size) if self.is_whole else sizes[self.size]


@dataclass(frozen=True)
class Array:
    """An array in memory: axes from the outermost, the last one with a gap of bytes after each row."""

    name: str
    dtype: str
    axes: tuple[str, ...]
    """Names of sizes, or sizes."""
    kind: str = "normal"
    """`normal`, `out`, `sum` (of atomics: zeros), `small` (whole numbers), `flags`, `index` (numbers below `bound`) or
    `end` (whole numbers up to it)."""
    bound: str = ""
    is_aligned: bool = True
    """Whether rows begin at multiples of 16 bytes, whatever their length."""
    gap: int = 0
    """More elements at the end of each row, in groups of 16 bytes."""
    filled: tuple[str, int] | None = None
    """How much of a row is no NaN, where that is not all of it: a size, and a factor."""


@dataclass
class Program:
    """A kernel, and what makes its launches."""

    text: str
    num_warps: int
    arrays: list[Array]
    parameters: list[tuple[str, str]]
    """Name, and what it is: `pointer NAME`, `stride NAME AXIS`, `descriptor NAME ROWS COLUMNS`, `size NAME`."""
    sizes: list[dict[str, int]]
    grid: Callable[[Sizes], tuple[int, ...]]
    has_product: bool
    form: str
    dtype: str

    def problem(self, at: int, seed: int) -> tuple[Problem, NumpyArrays]:
        """The launch at one of the sizes, with fresh arrays."""
        sizes = self.sizes[at]
        new = NumpyArrays(seed)
        memory = {array.name: _array(array, sizes, new) for array in self.arrays}
        arguments: dict[str, Any] = {}
        for name, what in self.parameters:
            kind, *rest = what.split()
            match kind:
                case "pointer":
                    arguments[name] = memory[rest[0]][0]
                case "stride":
                    arguments[name] = memory[rest[0]][1][int(rest[1])]
                case "half":
                    arguments[name] = memory[rest[0]][1][int(rest[1])] // 2
                case "size":
                    arguments[name] = sizes[rest[0]]
                case _:
                    base, strides, shape = memory[rest[0]]
                    arguments[name] = _described(base, shape, strides, [int(each) for each in rest[1:]])
        outputs = tuple(array.name for array in self.arrays if array.kind in ("out", "sum"))
        arrays = {name: each[0] for name, each in memory.items()}
        return Problem(self.grid(sizes), arguments, arrays, outputs, lambda xp, x: {}, 0.0), new


def _described(base: Any, shape: Sequence[int], strides: Sequence[int], block: Sequence[int]) -> Any:
    from tlx_xdsl import TensorDescriptor

    return TensorDescriptor(base, list(shape), list(strides), list(block))


def _array(array: Array, sizes: Sizes, new: NumpyArrays) -> tuple[Any, list[int], list[int]]:
    """An array, its strides and its shape; what lies between rows is NaN."""
    shape = [int(each) if each.isdigit() else sizes[each] for each in array.axes]
    match array.kind:
        case "index":
            return new.below(max(1, sizes[array.bound]), *shape), _strides(shape), shape
        case "end":
            return new.integers(new.random.integers(0, sizes[array.bound] + 1, shape)), _strides(shape), shape
        case "flags":
            return new.integers(new.random.integers(0, 2, shape), array.dtype), _strides(shape), shape
        case "sum":
            return new.integers(np.zeros(shape), array.dtype), _strides(shape), shape
        case _:
            pass
    whole = [*shape[:-1], row_of(array, shape[-1])]
    if array.kind == "small":
        return new.integers(new.random.integers(-3, 4, whole), array.dtype), _strides(whole), shape
    memory = new.poisoned(*whole, dtype=array.dtype)
    if array.kind == "normal":
        size, factor = array.filled or (str(shape[-1]), 1)
        inner = memory[..., : (int(size) if size.isdigit() else sizes[size]) * factor]
        inner[...] = new.random.standard_normal(inner.shape).astype(memory.dtype)
    return memory, _strides(whole), shape


def row_of(array: Array, width: int) -> int:
    """Elements from one row of so many columns to the next."""
    unit = 16 // ELEMENT_BYTES[array.dtype]
    return (-(-width // unit) + array.gap) * unit if array.is_aligned else width + array.gap


def _strides(shape: Sequence[int]) -> list[int]:
    return [prod(shape[at + 1 :]) for at in range(len(shape))]


@dataclass
class Operands:
    """Writes the lines of one kernel that read and write arrays."""

    number: int
    arrays: list[Array] = field(default_factory=list[Array])
    parameters: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    before: list[str] = field(default_factory=list[str])
    """Lines before the loop."""
    body: list[str] = field(default_factory=list[str])
    """Lines of the loop."""
    advances: list[str] = field(default_factory=list[str])
    """Lines at the loop's end."""
    after: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.rng = random.Random(self.number)
        self.dtype = self.rng.choices(("fp16", "bf16", "fp32"), (45, 40, 15))[0]
        self.style = self.rng.choice(("pointers", "pointers", "descriptors", "mixed"))
        self.has_whole_blocks = self.rng.random() < 0.15
        """Whether all sizes are multiples of the blocks, and nothing is masked."""
        self.is_shifted = False
        """Whether the loop begins at an argument's value."""
        self.names: set[str] = set()

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def size(self, name: str) -> None:
        """Declare an extent as an argument."""
        if name not in self.names:
            self.names.add(name)
            self.parameters.append((name, f"size {name}"))

    # Operands --------------------------------------------------------------------------------------------------------

    def load(self, name: str, rows: Axis, columns: Axis, *, dtype: str = "", in_loop: bool = True) -> None:
        """Lines that give `name` a block of a matrix of its own."""
        lines = self.body if in_loop else self.before
        is_turned = self.chance(0.25)
        outer, inner = (columns, rows) if is_turned else (rows, columns)
        dtype = dtype or self.dtype
        aligned = self.chance(0.92)
        array = Array(
            name,
            dtype,
            (outer.size, inner.size),
            is_aligned=aligned,
            gap=self.rng.choice((0, 0, 0, 1, 2)) if aligned else 0,
        )
        self.arrays.append(array)
        form = self._form(outer, inner, array)
        if form in ("host", "device"):
            lines.append(self._from_descriptor(name, outer, inner, form, is_turned))
            return
        self.parameters += [(f"{name}_ptr", f"pointer {name}"), (f"stride_{name}", f"stride {name} 0")]
        if is_turned and self.chance(0.4):
            lines.append(self._pointers(name, outer, inner, "", form, lines) + ".T")
        else:
            lines.append(self._pointers(name, rows, columns, "turned" if is_turned else "plain", form, lines))

    def _form(self, outer: Axis, inner: Axis, array: Array) -> str:
        """Draw the form of an operand's addresses."""
        fits = array.is_aligned and inner.block * ELEMENT_BYTES[array.dtype] >= 16 and outer.block <= 256
        if (
            fits
            and inner.block <= 256
            and (self.style == "descriptors" or (self.style == "mixed" and self.chance(0.5)))
        ):
            return "device" if self.chance(0.2) else "host"
        looped = outer.is_looped or inner.is_looped
        if looped and self.chance(0.4):
            return "carried"
        return "wrapped" if self.chance(0.25) else "masked"

    def _from_descriptor(self, name: str, outer: Axis, inner: Axis, form: str, is_turned: bool) -> str:
        if form == "host":
            self.parameters.append((f"{name}_desc", f"descriptor {name} {outer.block} {inner.block}"))
        else:
            self.parameters += [(f"{name}_ptr", f"pointer {name}"), (f"stride_{name}", f"stride {name} 0")]
            extents = f"[{outer.size}, {inner.size}], strides=[stride_{name}, 1]"
            block = f"block_shape=[{outer.block}, {inner.block}]"
            self.before.append(f"{name}_desc = tl.make_tensor_descriptor({name}_ptr, shape={extents}, {block})")
        turned = ".T" if is_turned else ""
        return f"{name} = {name}_desc.load([{outer.start}, {inner.start}]){turned}"

    def _pointers(self, name: str, rows: Axis, columns: Axis, order: str, form: str, lines: list[str]) -> str:
        """A load through pointers; `order` says whether rows lie apart by the stride (as `plain` or by default)."""
        factors = {True: f" * stride_{name}", False: ""}
        parts, masks = [], []
        carried = form == "carried"
        for axis, place, by_stride in (
            (rows, "[:, None]", order != "turned"),
            (columns, "[None, :]", order == "turned"),
        ):
            index = axis.vector
            needs_mask = not axis.is_whole and not self.has_whole_blocks
            if axis.is_looped and carried:
                index = axis.lanes if not self.is_shifted else f"(BEGIN + {axis.lanes})"
            elif form == "wrapped" and not axis.is_looped and needs_mask:
                index, needs_mask = f"({axis.vector} % {axis.size})", False
            parts.append(f"{index}{place}{factors[by_stride]}")
            if needs_mask:
                left = axis.vector
                bound = axis.size
                if axis.is_looped and carried:
                    left, bound = axis.lanes, f"{axis.size} - {axis.start}"
                masks.append(f"({left}{place} < {bound})")
        base = f"{name}_ptr"
        address = f"{base} + {parts[0]} + {parts[1]}"
        if carried:
            self.before.append(f"{name}_ptrs = {address}")
            looped, by_stride = next(
                (axis, stride)
                for axis, stride in ((rows, order != "turned"), (columns, order == "turned"))
                if axis.is_looped
            )
            self.advances.append(f"{name}_ptrs += {looped.block}{factors[by_stride]}")
            address = f"{name}_ptrs"
        options = ""
        if masks:
            other = self.rng.choices((", other=0.0", "", ", other=1.0"), (86, 11, 3))[0]
            options = f", mask={' & '.join(masks)}{other}"
        return f"{name} = tl.load({address}{options})"

    def load_line(self, name: str, axis: Axis, *, in_loop: bool = True) -> None:
        """A vector along an axis, such as a bias, a scale or a gate."""
        dtype = self.rng.choice((self.dtype, "fp32"))
        self.arrays.append(Array(name, dtype, (axis.size,), is_aligned=False))
        self.parameters.append((f"{name}_ptr", f"pointer {name}"))
        mask = "" if axis.is_whole or self.has_whole_blocks else f", mask={axis.vector} < {axis.size}, other=0.0"
        (self.body if in_loop else self.after).append(
            f"{name} = tl.load({name}_ptr + {axis.vector}{mask}).to(tl.float32)"
        )

    def store(self, name: str, value: str, rows: Axis, columns: Axis | None, lines: list[str]) -> None:
        """Store a block or a vector along the rows."""
        dtype = self.rng.choice((self.dtype, "fp32"))
        if columns is None:
            self.arrays.append(Array(name, "fp32", (rows.size,), "out", is_aligned=False))
            self.parameters.append((f"{name}_ptr", f"pointer {name}"))
            mask = "" if self.has_whole_blocks or rows.is_whole else f", mask={rows.vector} < {rows.size}"
            lines.append(f"tl.store({name}_ptr + {rows.vector}, {value}{mask})")
            return
        aligned = self.chance(0.9)
        self.arrays.append(Array(name, dtype, (rows.size, columns.size), "out", is_aligned=aligned))
        fits = aligned and columns.block * ELEMENT_BYTES[dtype] >= 16 and columns.block <= 256
        if fits and (self.style == "descriptors" or (self.style == "mixed" and self.chance(0.5))):
            self.parameters.append((f"{name}_desc", f"descriptor {name} {rows.block} {columns.block}"))
            lines.append(f"{name}_desc.store([{rows.start}, {columns.start}], ({value}).to({name}_desc.dtype))")
            return
        self.parameters += [(f"{name}_ptr", f"pointer {name}"), (f"stride_{name}", f"stride {name} 0")]
        masks = [
            f"({axis.vector}{place} < {axis.size})"
            for axis, place in ((rows, "[:, None]"), (columns, "[None, :]"))
            if not axis.is_whole and not self.has_whole_blocks
        ]
        mask = f", mask={' & '.join(masks)}" if masks else ""
        address = f"{name}_ptr + {rows.vector}[:, None] * stride_{name} + {columns.vector}[None, :]"
        lines.append(f"tl.store({address}, ({value}).to({name}_ptr.dtype.element_ty){mask})")
