"""Random programs that share storage: overlap trees, the text of a module that declares them, and accesses.

An access reaches a buffer by one of the paths that a kernel has: through the result of a branch, an argument of a
loop, a partition, a called function. Its location says which buffer the program means; the passes keep it.
"""

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
    return f'loc("access {path}":{leaf.number + 1}:1)'


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


def _branch(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"%r{n} = scf.if %c -> (!t{n}) {{",
        f"scf.yield %b{n} : !t{n}",
        "} else {",
        f"scf.yield %b{n} : !t{n}",
        "}",
        _index(leaf, f"%v{n}", f"%r{n}", "branch"),
    ]


def _buffer_of_branch(leaf: Buffers, storage: Storage) -> list[str]:
    """What a branch hands out is one buffer, not the array."""
    n = leaf.number
    return [
        f"%v{n} = scf.if %c -> (!e{n}) {{",
        _index(leaf, f"%v{n}", f"%b{n}", "then"),
        f"scf.yield %v{n} : !e{n}",
        "} else {",
        f"%last{n} = arith.constant {leaf.count - 1} : i32",
        _index(leaf, f"%v{n}", f"%b{n}", f"else {leaf.count - 1}", f"%last{n}"),
        f"scf.yield %v{n} : !e{n}",
        "}",
    ]


def _loop(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"%r{n} = scf.for %j{n} = %c0 to %c2 step %c1 iter_args(%x{n} = %b{n}) -> (!t{n}) : i32 {{",
        _index(leaf, f"%v{n}", f"%x{n}", "loop"),
        f"scf.yield %x{n} : !t{n}",
        "}",
        _index(leaf, f"%w{n}", f"%r{n}", "after the loop"),
    ]


def _while(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"%r{n}:2 = scf.while (%x{n} = %b{n}, %j{n} = %c0) : (!t{n}, i32) -> (!t{n}, i32) {{",
        f"%less{n} = arith.cmpi slt, %j{n}, %c2 : i32",
        _index(leaf, f"%u{n}", f"%x{n}", "before"),
        f"scf.condition(%less{n}) %x{n}, %j{n} : !t{n}, i32",
        "} do {",
        f"^bb0(%x{n}: !t{n}, %j{n}: i32):",
        _index(leaf, f"%v{n}", f"%x{n}", "body of while"),
        f"%next{n} = arith.addi %j{n}, %c1 : i32",
        f"scf.yield %x{n}, %next{n} : !t{n}, i32",
        "}",
        _index(leaf, f"%w{n}", f"%r{n}#0", "after while"),
    ]


def _select(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"%r{n} = arith.select %c, %b{n}, %b{n} : !t{n}",
        _index(leaf, f"%v{n}", f"%r{n}", "select"),
    ]


def _blocks(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"cf.cond_br %c, ^then{n}(%b{n} : !t{n}), ^else{n}",
        f"^then{n}(%x{n}: !t{n}):",
        _index(leaf, f"%u{n}", f"%x{n}", "then block"),
        f"cf.br ^join{n}(%x{n} : !t{n})",
        f"^else{n}:",
        f"cf.br ^join{n}(%b{n} : !t{n})",
        f"^join{n}(%y{n}: !t{n}):",
        _index(leaf, f"%v{n}", f"%y{n}", "join block"),
    ]


def _call(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [f"tt.call @callee{n}(%b{n}, %i{n}) : (!t{n}, i32) -> ()"]


def _callee(leaf: Buffers) -> str:
    n = leaf.number
    access = _index(leaf, "%v", "%x", "call", "%i")
    return f"tt.func private @callee{n}(%x: !t{n}, %i: i32) attributes {{noinline = true}} {{\n{access}\ntt.return\n}}"


def _reinterpret(leaf: Buffers, storage: Storage) -> list[str]:
    n, tile = leaf.number, leaf.tile
    if tile.twin is None:
        return []
    rest = f"{tile.shape}x{tile.twin[0]}, {tile.twin[1]}, #space, mutable>"
    whole, one = f"!ttg.memdesc<{leaf.count}x{rest}", f"!ttg.memdesc<{rest}"
    return [
        f"%x{n} = ttg.memdesc_reinterpret %b{n} : !t{n} -> {whole}",
        f"%v{n} = ttg.memdesc_index %x{n}[%i{n}] : {whole} -> {one} {_at(leaf, 'reinterpret')}",
        f"%y{n} = tlx.local_alias %b{n} : !t{n} -> {whole}",
        f"%w{n} = ttg.memdesc_index %y{n}[%i{n}] : {whole} -> {one} {_at(leaf, 'alias')}",
    ]


def _nested(leaf: Buffers, storage: Storage) -> list[str]:
    """An argument of a loop in a partition."""
    n = leaf.number
    return [
        f"ttg.warp_specialize(%b{n}, %i{n})",
        "default {",
        "ttg.warp_yield",
        "}",
        f"partition0(%p{n}: !t{n}, %q{n}: i32) num_warps(4) {{",
        f"%low{n} = arith.constant 0 : i32",
        f"%high{n} = arith.constant 2 : i32",
        f"%step{n} = arith.constant 1 : i32",
        f"%r{n} = scf.for %j{n} = %low{n} to %high{n} step %step{n} iter_args(%x{n} = %p{n}) -> (!t{n}) : i32 {{",
        f"%odd{n} = arith.cmpi eq, %j{n}, %low{n} : i32",
        f"%y{n} = scf.if %odd{n} -> (!t{n}) {{",
        f"scf.yield %x{n} : !t{n}",
        "} else {",
        f"scf.yield %p{n} : !t{n}",
        "}",
        _index(leaf, f"%v{n}", f"%y{n}", "nested", f"%q{n}"),
        f"scf.yield %y{n} : !t{n}",
        "}",
        "ttg.warp_return",
        f"}} : (!t{n}, i32) -> ()",
    ]


PATHS = {
    "constant": _constant,
    "partition": _partition,
    "branch": _branch,
    "buffer of a branch": _buffer_of_branch,
    "loop": _loop,
    "while": _while,
    "select": _select,
    "blocks": _blocks,
    "call": _call,
    "reinterpret": _reinterpret,
    "nested": _nested,
}
"""How an access gets at its buffer, as lines of a function that has `%b0` (arrays), `%i0` (indices) and `%c`."""


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
