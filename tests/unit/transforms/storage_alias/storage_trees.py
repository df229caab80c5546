"""Random overlap trees over arrays of buffers, in shared memory or tensor memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm

from hypothesis import strategies as st


@dataclass(frozen=True)
class Tile:
    """The kind of a buffer. Bytes, alignment and columns are written out, not computed by what is tested."""

    shape: str
    element: str
    layout: str
    unit: int
    """Bytes, or TMEM columns."""
    alignment: int = 1
    """Bytes that a view needs, or TMEM columns."""
    twin: tuple[str, str] | None = None
    """Element type and layout of a view with the same bytes."""
    turned: str | None = None
    """The layout of the transposed buffer."""
    folded: tuple[str, str] | None = None
    """Shape and layout of the same elements in another shape."""

    @property
    def extents(self) -> list[int]:
        """The shape."""
        return [int(extent) for extent in self.shape.split("x")]


@dataclass(frozen=True)
class Storage:
    """Shared memory or tensor memory, with tiles that fit it."""

    name: str
    space: str
    layouts: str
    tiles: tuple[Tile, ...]


SMEM = Storage(
    "smem",
    "#ttg.shared_memory",
    """
#f32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#f32t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>
#f16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#f16t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#n64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#n64t = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>
#f8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#f8t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8}>
#n0 = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#n0t = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = true, elementBitWidth = 16}>
#row = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#columns = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
""",
    (
        Tile("64x64", "f32", "#f32", 16384, 1024, ("i32", "#f32"), turned="#f32t"),
        Tile("64x64", "f16", "#f16", 8192, 1024, ("bf16", "#f16"), turned="#f16t"),
        Tile("16x64", "f16", "#f16", 2048, 1024, ("bf16", "#f16"), turned="#f16t"),
        Tile("8x64", "f16", "#f16", 1024, 1024, ("i16", "#f16"), turned="#f16t"),
        Tile("64x128", "f8E4M3FN", "#f8", 8192, 1024, ("i8", "#f8"), turned="#f8t"),
        Tile("8x32", "f16", "#n64", 512, 512, ("i16", "#n64"), turned="#n64t"),
        Tile("8x16", "f16", "#n0", 256, 128, ("i16", "#n0"), turned="#n0t"),
        Tile("64", "f32", "#row", 256, 16, ("i32", "#row"), folded=("8x8", "#rows")),
        Tile("16", "i8", "#row", 16, 16),
        Tile("2", "f32", "#row", 8, 16, ("i32", "#row")),
        Tile("1", "i64", "#row", 8, 16),
        Tile("4x8", "i32", "#rows", 128, 16, ("f32", "#rows"), "#columns", ("32", "#row")),
    ),
)

TMEM = Storage(
    "tmem",
    "#ttng.tensor_memory",
    """
#m64 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#m32 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
#m16 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 16, colStride = 1>
#m16s = #ttng.tensor_memory_encoding<blockM = 128, blockN = 16, colStride = 2>
#m1 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 1, colStride = 1>
""",
    (
        Tile("128x64", "f32", "#m64", 64, 1, ("i32", "#m64")),
        Tile("128x64", "f16", "#m64", 32, 1, ("bf16", "#m64")),
        Tile("128x32", "f16", "#m32", 16, 1, ("bf16", "#m32")),
        Tile("128x16", "f32", "#m16", 16, 1, ("i32", "#m16")),
        Tile("128x16", "f16", "#m16", 8, 1),
        Tile("128x16", "i8", "#m16", 4, 1),
        # Unpacked: each number has a column of its own.
        Tile("128x16", "f16", "#m16s", 16, 1),
        Tile("128x1", "f32", "#m1", 1, 1, ("i32", "#m1")),
    ),
)


@dataclass(frozen=True)
class Buffers:
    """A leaf."""

    number: int
    tile: Tile
    count: int
    group_size: int
    """The product of the group sizes above."""


@dataclass(frozen=True)
class Node:
    """A reuse_group."""

    kind: str
    group_size: int
    children: tuple[Node | Buffers, ...]

    def leaves(self) -> Iterator[Buffers]:
        """The leaves, from left to right: they are numbered in this order."""
        for child in self.children:
            if isinstance(child, Buffers):
                yield child
            else:
                yield from child.leaves()

    def groups(self) -> Iterator[Node]:
        """Yield this group and those below."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.groups()

    @property
    def depth(self) -> int:
        """Groups on the longest way down."""
        return 1 + max((child.depth for child in self.children if isinstance(child, Node)), default=0)


def relation(node: Node, one: Buffers, other: Buffers) -> str:
    """The kind of the innermost group that holds both leaves."""
    for child in node.children:
        if isinstance(child, Node) and {one, other} <= set(child.leaves()):
            return relation(child, one, other)
    return node.kind


@dataclass(frozen=True)
class Program:
    """A region, and how its buffers are accessed."""

    storage: Storage
    tree: Node
    groups: int
    has_tree: bool
    """Whether the tree is declared: if not, it only lists the leaves."""
    paths: tuple[str, ...]
    """One of `storage_paths.PATHS` for every leaf, beside the direct access."""

    @property
    def leaves(self) -> list[Buffers]:
        return list(self.tree.leaves())


MAX_LEAVES = 6


@st.composite
def programs(draw: st.DrawFn, storage: Storage, paths: tuple[str, ...]) -> Program:
    """A tree at most four groups deep, whose leaves have equally many groups of buffers."""
    groups = draw(st.integers(1, 4))
    # Tensor memory has 512 columns.
    most = 12 if storage is SMEM else 4
    leaves = 0

    def node(depth: int, above: int) -> Node:
        nonlocal leaves
        size = draw(st.sampled_from([factor for factor in (1, 1, 2, 3, 4) if above * factor <= most]))
        children: list[Node | Buffers] = []
        for position in range(draw(st.integers(1, 3))):
            if leaves >= MAX_LEAVES:
                break
            # The first member goes down as far as is asked for, the others at random.
            if depth > 1 and (position == 0 or draw(st.booleans())):
                children.append(node(depth - 1, above * size))
            else:
                tile = draw(st.sampled_from(storage.tiles))
                children.append(Buffers(leaves, tile, groups * above * size, above * size))
                leaves += 1
        return Node(draw(st.sampled_from(["shared", "distinct", "distinct"])), size, tuple(children))

    tree = node(draw(st.sampled_from([1, 2, 3, 3, 3, 4])), 1)
    chosen = tuple(draw(st.sampled_from(paths)) for _ in range(leaves))
    return Program(storage, tree, groups, draw(st.integers(0, 9)) > 0, chosen)


def strict_layout(program: Program) -> tuple[dict[int, int], int, int]:
    """Offsets by leaf, size of a group of buffers, and alignment, in the declared order and without padding."""
    offsets: dict[int, int] = {}

    def alignment(node: Node | Buffers) -> int:
        if isinstance(node, Buffers):
            return node.tile.alignment
        return lcm(*(alignment(child) for child in node.children))

    def put(node: Node | Buffers, start: int) -> int:
        if isinstance(node, Buffers):
            offsets[node.number] = start
            return start + node.group_size * node.tile.unit
        ends = [start]
        for child in node.children:
            begin = ends[-1] if node.kind == "distinct" else start
            ends.append(put(child, -(-begin // alignment(child)) * alignment(child)))
        return max(ends)

    size = put(program.tree, 0)
    return offsets, size, alignment(program.tree)
