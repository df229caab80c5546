"""Random programs that share storage: overlap trees, the text of a module that declares them, and accesses.

An access reaches a buffer by one of the paths that a kernel has: through the result of a branch, an argument of a
loop, a partition, a called function. Its location says which buffer the program means; the passes keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm, prod

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
#f16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#n64 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#f8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#n0 = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#row = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
""",
    (
        Tile("64x64", "f32", "#f32", 16384, 1024, ("i32", "#f32")),
        Tile("64x64", "f16", "#f16", 8192, 1024, ("bf16", "#f16")),
        Tile("16x64", "f16", "#f16", 2048, 1024, ("bf16", "#f16")),
        Tile("64x128", "f8E4M3FN", "#f8", 8192, 1024, ("i8", "#f8")),
        Tile("8x32", "f16", "#n64", 512, 512, ("i16", "#n64")),
        Tile("8x16", "f16", "#n0", 256, 128, ("i16", "#n0")),
        Tile("64", "f32", "#row", 256, 16, ("i32", "#row")),
        Tile("16", "i8", "#row", 16, 16),
        Tile("2", "f32", "#row", 8, 16, ("i32", "#row")),
        Tile("1", "i64", "#row", 8, 16),
        Tile("4x8", "i32", "#rows", 128, 16, ("f32", "#rows")),
        # No power of two, so that least common multiples are no maxima.
        Tile("48", "f32", "#row", 192, 16, ("i32", "#row")),
        Tile("3x8", "i32", "#rows", 96, 16, ("f32", "#rows")),
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
        """This group and those below."""
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
    """One of `PATHS` for every leaf, beside the direct access."""

    @property
    def leaves(self) -> list[Buffers]:
        return list(self.tree.leaves())


MAX_LEAVES = 6
MAX_GROUP_SIZE = 12


@st.composite
def programs(draw: st.DrawFn, storage: Storage, paths: tuple[str, ...]) -> Program:
    """A tree at most four groups deep, whose leaves have equally many groups of buffers."""
    groups = draw(st.integers(1, 4))
    leaves = 0

    def node(depth: int, above: int) -> Node:
        nonlocal leaves
        size = draw(st.sampled_from([factor for factor in (1, 1, 2, 3, 4) if above * factor <= MAX_GROUP_SIZE]))
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


# --- text -----------------------------------------------------------------------------------------------------------


def text_of(program: Program, size: int | None = None, *, accesses: bool = True) -> str:
    """The module of `program`, with an explicit size where one is given; `accesses` may be left out."""
    spec = program.storage.name if size is None else f"{program.storage.name}, {size}"
    asked = "" if size is None else f", size = {size}"
    head = [program.storage.layouts, f"#space = {program.storage.space}"]
    body = [
        f"%s = tlx.storage_alias_spec storage = {program.storage.name}{asked} : !tlx.storage_alias_spec<{spec}> "
        'loc("kernel.py":1:1)'
    ]
    for leaf in program.leaves:
        tile = leaf.tile
        rest = f"{tile.layout}, #space, mutable>"
        head.append(f"!t{leaf.number} = !ttg.memdesc<{leaf.count}x{tile.shape}x{tile.element}, {rest}")
        head.append(f"!e{leaf.number} = !ttg.memdesc<{tile.shape}x{tile.element}, {rest}")
        body.append(
            f"%b{leaf.number} = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<{spec}> -> !t{leaf.number} "
            f'loc("kernel.py":{leaf.number + 2}:1)'
        )
    if program.has_tree:
        lines: list[str] = []
        root, type_ = _group(program.tree, lines)
        body += lines
        body.append(
            f"tlx.set_buffer_overlap(%s, {root}) : (!tlx.storage_alias_spec<{spec}>, {type_}) -> () "
            'loc("kernel.py":9:1)'
        )
    callees: list[str] = []
    if accesses:
        body += ["%c0 = arith.constant 0 : i32", "%c1 = arith.constant 1 : i32", "%c2 = arith.constant 2 : i32"]
        for leaf, path in zip(program.leaves, program.paths, strict=True):
            body.append(_index(leaf, f"%d{leaf.number}", f"%b{leaf.number}", "direct"))
            body += PATHS[path](leaf, program.storage)
            if path == "call":
                callees.append(_callee(leaf))
    arguments = ", ".join(f"%i{leaf.number}: i32" for leaf in program.leaves)
    lines = [*head, *callees, f"tt.func @main({arguments}, %c: i1) {{", *body, "tt.return", "}"]
    return "\n".join(lines) + "\n"


def _group(node: Node, lines: list[str]) -> tuple[str, str]:
    """Append the lines of `node`; the name and type of its value."""
    members = [
        (f"%b{child.number}", f"!t{child.number}") if isinstance(child, Buffers) else _group(child, lines)
        for child in node.children
    ]
    name, type_ = f"%g{len(lines)}", f"!tlx.reuse_group<{node.kind}>"
    size = "" if node.group_size == 1 else f", group_size = {node.group_size}"
    names, types = (", ".join(column) for column in zip(*members, strict=True))
    lines.append(f"{name} = tlx.reuse_group({names}) group_kind = {node.kind}{size} : ({types}) -> {type_}")
    return name, type_


def _at(leaf: Buffers, path: str) -> str:
    """A location that says: this value is buffer %i of `leaf`, or the number behind `path`."""
    return f'loc("{path}":{leaf.number + 1}:1)'


def _index(leaf: Buffers, name: str, array: str, path: str, index: str | None = None) -> str:
    n = leaf.number
    return f"{name} = ttg.memdesc_index {array}[{index or f'%i{n}'}] : !t{n} -> !e{n} {_at(leaf, path)}"


def _constant(leaf: Buffers, storage: Storage) -> list[str]:
    n, last = leaf.number, leaf.count - 1
    return [
        f"%k{n} = arith.constant {last} : i32",
        _index(leaf, f"%v{n}", f"%b{n}", f"constant {last}", f"%k{n}"),
    ]


def _partition(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"ttg.warp_specialize(%b{n}, %i{n})",
        "default {",
        _index(leaf, f"%u{n}", f"%b{n}", "default"),
        "ttg.warp_yield",
        "}",
        f"partition0(%p{n}: !t{n}, %q{n}: i32) num_warps(4) {{",
        _index(leaf, f"%v{n}", f"%p{n}", "partition", f"%q{n}"),
        "ttg.warp_return",
        "}",
        f"partition1(%p{n}: !t{n}, %q{n}: i32) num_warps(4) {{",
        _index(leaf, f"%v{n}", f"%p{n}", "second partition", f"%q{n}"),
        "ttg.warp_return",
        f"}} : (!t{n}, i32) -> ()",
    ]


PATHS = {"constant": _constant, "partition": _partition}
"""How an access gets at its buffer, as lines of a function that has `%b0` (arrays), `%i0` (indices) and `%c`."""


def _callee(leaf: Buffers) -> str:
    n = leaf.number
    access = _index(leaf, "%v", "%x", "call", "%i")
    return f"tt.func private @callee{n}(%x: !t{n}, %i: i32) {{\n{access}\ntt.return\n}}"


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


def elements(tile: Tile) -> int:
    """Elements of a buffer."""
    return prod(int(extent) for extent in tile.shape.split("x"))
