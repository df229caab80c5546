"""Values of the names and expressions of a kernel while it is compiled."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from types import ModuleType
from typing import Any, cast

from xdsl.dialects.builtin import TensorType, bf16, f32
from xdsl.ir import Attribute, Block, SSAValue

from tlx_xdsl.dialects.base.tensors import attribute_of
from tlx_xdsl.element_types import BY_MLIR

from ..dialects.ttcore import FORMATS, MemorySpace, MemorySpaceAttr, TileType, format_of
from ..dialects.ttl.types import CBType, Direction, LayoutAttr, LayoutKind, TensorEncodingAttr
from ..language.tensors import TILE, Layout, TensorSpec, dtype
from .affine import Affine


class Value:
    """Base of all values."""

    def describe(self) -> str:
        """Describe the value, for messages."""
        raise NotImplementedError


@dataclass(frozen=True)
class Static(Value):
    """A value that is known at compile time: a number, a word, None, a type."""

    value: Any

    def describe(self) -> str:
        """Show the number or word, or what it is a name of."""
        if isinstance(self.value, ModuleType):
            return f"the module '{self.value.__name__}'"
        if isinstance(self.value, dtype | Layout):
            return f"{self.value}"
        if callable(self.value) and hasattr(self.value, "__name__"):
            return f"Python's '{self.value.__name__}'"
        return f"{self.value!r}"

    @property
    def is_plain(self) -> bool:
        """Return whether it is a number, a word or None, which can be compared."""
        return self.value is None or isinstance(self.value, int | float | str)


@dataclass(frozen=True)
class Text(Value):
    """A text with values that are known at run time only."""

    parts: tuple[Value, ...]

    def describe(self) -> str:
        """Show what is known of it."""
        return "".join(str(each.value) if isinstance(each, Static) else each.describe() for each in self.parts)


@dataclass(frozen=True)
class Items(Value):
    """A tuple, or a list: `items` can be added to if it is one."""

    items: list[Value]
    is_list: bool = False

    def describe(self) -> str:
        """Say how many items it has."""
        return f"a {'list' if self.is_list else 'tuple'} of {len(self.items)}"


@dataclass(frozen=True)
class Range(Value):
    """A slice `start:stop`; None where a bound is left out."""

    start: Value | None
    stop: Value | None
    step: Value | None

    def describe(self) -> str:
        """Say what it is."""
        return "a slice"


@dataclass(frozen=True)
class Index(Value):
    """An integer that is known at run time only."""

    affine: Affine
    is_affine: bool = True
    """Whether all its operands are loop indices and coordinates, so that affine maps may use them."""

    def describe(self) -> str:
        """Say what it is."""
        return "an integer that is known at run time only"


@dataclass(frozen=True)
class Condition(Value):
    """A truth value that is known at run time only."""

    ssa: SSAValue

    def describe(self) -> str:
        """Say what it is."""
        return "a condition"


@dataclass(frozen=True)
class Namespace(Value):
    """The language, or a part of it: `ttl`, `ttl.math`."""

    name: str

    def describe(self) -> str:
        """Say what it is."""
        return f"the module '{self.name}'"


@dataclass(frozen=True)
class Builtin(Value):
    """A function or a class of the language, or one of Python's that kernels know."""

    name: str
    """Such as `ttl.copy`, or `range`."""

    def describe(self) -> str:
        """Show the name."""
        return f"'{self.name}'"


@dataclass(frozen=True)
class Method(Value):
    """A method of a value: it takes what `call` takes."""

    owner: Value
    name: str

    def describe(self) -> str:
        """Show the name."""
        return f"the method '{self.name}' of {self.owner.describe()}"


@dataclass(frozen=True, eq=False)
class Thread(Value):
    """A function that became a thread."""

    name: str

    def describe(self) -> str:
        """Show the name."""
        return f"the thread '{self.name}'"


@dataclass(frozen=True)
class Program(Value):
    """The threads of the kernel, in an older spelling; it can be called, which means nothing."""

    def describe(self) -> str:
        """Say what it is."""
        return "a program"


@dataclass(eq=False)
class Tensor(Value):
    """An argument of the kernel."""

    name: str
    spec: TensorSpec
    ssa: SSAValue
    accessor: SSAValue | None = None
    """Made at its first use."""

    def describe(self) -> str:
        """Show name and shape."""
        return f"the tensor '{self.name}' of {'x'.join(map(str, self.spec.shape))}x{self.spec.dtype}"


@dataclass(frozen=True, eq=False)
class Piece(Value):
    """A piece of a tensor: `t[r0:r1, c0:c1]`."""

    tensor: Tensor
    starts: tuple[Value, ...]
    """In tiles, or in elements where the tensor has none; one number for a shard, a tile or a row."""
    sizes: tuple[int, ...] | None
    """Rows and columns, after other dimensions; None for what `starts` numbers."""

    def describe(self) -> str:
        """Say what it is."""
        return f"a piece of the tensor '{self.tensor.name}'"


@dataclass(frozen=True, eq=False)
class Buffer(Value):
    """A circular buffer."""

    ssa: SSAValue

    @property
    def type(self) -> CBType:
        """Return the type of the buffer."""
        assert isinstance(self.ssa.type, CBType)
        return self.ssa.type

    def describe(self) -> str:
        """Show name and type."""
        name = f" '{self.ssa.name_hint}'" if self.ssa.name_hint else ""
        return f"the circular buffer{name}"


def shape_text(shape: tuple[int, ...], unit: Attribute) -> str:
    """Show a shape: `2x1 tiles of f32`."""
    sizes = "x".join(map(str, shape))
    if isinstance(unit, TileType):
        return f"{sizes} tile{'' if prod(shape) == 1 else 's'} of {format_of(unit.data_type)}"
    return f"{sizes} elements of {unit}"


def in_tiles(type_: TensorType[Attribute]) -> TensorType[Attribute] | None:
    """The type of a block as tiles; None for rows that are no whole tiles of f32 or bf16."""
    unit = type_.get_element_type()
    if isinstance(unit, TileType):
        return type_
    *others, rows, columns = type_.get_shape()
    if rows % TILE or columns % TILE or unit not in (f32, bf16):
        return None
    return TensorType(TileType.get(unit), [*others, rows // TILE, columns // TILE])


@dataclass(frozen=True, eq=False)
class Tiles(Value):
    """A value of tiles: the result of a function or an operator."""

    ssa: SSAValue

    @property
    def type(self) -> TensorType[Attribute]:
        """Return the type of the tiles."""
        return cast(TensorType[Attribute], self.ssa.type)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns, in tiles."""
        return tuple(self.type.get_shape())

    @property
    def unit(self) -> Attribute:
        """The type of a tile."""
        return self.type.get_element_type()

    def describe(self) -> str:
        """Show the shape."""
        return shape_text(self.shape, self.unit)


@dataclass(frozen=True, eq=False)
class Unsettled(Value):
    """A block whose shape or type of elements its user says: the block that it is combined with, or stored to."""

    make: Callable[[TensorType[Attribute], ast.AST], Tiles]
    """The block of a type, at a node; raises CompilationError for one that it can't have."""
    known: TensorType[Attribute] | None
    """The type where no user says one."""
    what: str
    argument: str
    """The argument that would say what is not known: `shape` or `dtype`."""

    def describe(self) -> str:
        """Say what it is."""
        return self.what


@dataclass(frozen=True, eq=False)
class Acquired(Tiles):
    """A block that was reserved or waited for."""

    buffer: Buffer
    reserved: bool
    state: BlockState
    tiles: Tiles | None = None
    """The same as tiles, where it was waited for as rows by a thread that computes."""

    def describe(self) -> str:
        """Say what was done, and the shape."""
        return (
            f"a block of {shape_text(self.shape, self.unit)} that was {'reserved' if self.reserved else 'waited for'}"
        )


@dataclass(frozen=True, eq=False)
class Sum(Acquired):
    """The place of a block that a loop adds to, and does not read."""


@dataclass(eq=False)
class BlockState:
    """History of an acquired block: the stores to it, and its release."""

    block: Block
    """Of the IR, in which it was acquired."""
    stored: set[Block] = field(default_factory=set[Block])
    """Blocks of the IR in which something was stored to it."""
    released: ast.AST | None = None
    """Where it was given back."""


@dataclass(frozen=True, eq=False)
class Transfer(Value):
    """A transfer that was begun."""

    ssa: SSAValue

    def describe(self) -> str:
        """Say what it is."""
        return "a transfer"


@dataclass(eq=False)
class TransferGroup(Value):
    """Transfers that are waited for together."""

    directions: dict[Direction, None] = field(default_factory=dict[Direction, None])
    """Those of the transfers so far."""
    is_done: bool = False
    """Whether they were waited for."""

    def describe(self) -> str:
        """Say what it is."""
        return "a group of transfers"


@dataclass(frozen=True)
class Signpost(Value):
    """The name of a part of a thread, for a profiler."""

    name: str

    def describe(self) -> str:
        """Show the name."""
        return f"the signpost '{self.name}'"


@dataclass(frozen=True, eq=False)
class Pipe(Value):
    """A pipe."""

    ssa: SSAValue
    src: tuple[int, int]
    first: tuple[int, int]
    last: tuple[int, int]

    def describe(self) -> str:
        """Show both ends."""
        end = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"the pipe from {self.src} to {end}"


@dataclass(frozen=True, eq=False)
class PipeNet(Value):
    """Several pipes."""

    pipes: tuple[Pipe, ...]

    def describe(self) -> str:
        """Say how many there are."""
        return f"a net of {len(self.pipes)} pipes"


@dataclass(frozen=True, eq=False)
class Semaphore(Value):
    """A semaphore: of the own core, or of others."""

    ssa: SSAValue
    coordinates: tuple[Value, ...] = ()
    """None for the own core, (x, y) of another one, or (x, y, x, y) of the corners of a range."""
    loopback: bool = False

    def describe(self) -> str:
        """Say whose it is."""
        whose = {0: "a semaphore", 2: "the semaphore of another core"}
        return whose.get(len(self.coordinates), "the semaphores of a range of cores")


NONE = Static(None)
"""What a call without a result gives."""


# Types of the IR for element types, tensors and blocks of the language.


def element_type(element: dtype) -> Attribute:
    """The type of an element."""
    return FORMATS.get(element.name) or attribute_of(BY_MLIR[element.name])


def unit_of(spec: TensorSpec) -> Attribute:
    """The type of what a block of the tensor consists of: tiles, or elements where it has none."""
    element = element_type(spec.dtype)
    return element if spec.layout.kind == "interleaved" else TileType.get(element)


def tensor_type(spec: TensorSpec) -> Attribute:
    """The type of a kernel's argument."""
    layout = LayoutAttr.get(LayoutKind(spec.layout.kind), spec.layout.grid or (), spec.layout.tiles_per_shard or ())
    space = MemorySpaceAttr(MemorySpace(spec.memory_space.lower()))
    return TensorType(element_type(spec.dtype), list(spec.shape), TensorEncodingAttr(space, layout))
