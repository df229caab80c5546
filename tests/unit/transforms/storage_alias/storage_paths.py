"""The ways in which a program reaches a buffer: lines of IR for each, as text.

The function around them has arrays `%b0`, `%b1`, ..., their types `!t0` and those of their buffers `!e0`, indices
`%i0`, a condition `%c`, and the constants `%c0`, `%c1`, `%c2`.
"""

from __future__ import annotations

from tests.unit.transforms.storage_alias.storage_trees import SMEM, Buffers, Storage


def _at(leaf: Buffers, path: str) -> str:
    """A location that says: this value is buffer %i of `leaf`, or the number after `path`."""
    return f'loc("access {path}":{leaf.number + 1}:1)'


def index_line(leaf: Buffers, name: str, array: str, path: str, index: str | None = None) -> str:
    n = leaf.number
    return f"{name} = ttg.memdesc_index {array}[{index or f'%i{n}'}] : !t{n} -> !e{n} {_at(leaf, path)}"


def _constant(leaf: Buffers, storage: Storage) -> list[str]:
    n, last = leaf.number, leaf.count - 1
    return [
        f"%k{n} = arith.constant {last} : i32",
        index_line(leaf, f"%v{n}", f"%b{n}", f"constant {last}", f"%k{n}"),
    ]


def _partition(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"ttg.warp_specialize(%b{n}, %i{n})",
        "default {",
        index_line(leaf, f"%u{n}", f"%b{n}", "default"),
        "ttg.warp_yield",
        "}",
        f"partition0(%p{n}: !t{n}, %q{n}: i32) num_warps(4) {{",
        index_line(leaf, f"%v{n}", f"%p{n}", "partition", f"%q{n}"),
        "ttg.warp_return",
        "}",
        f"partition1(%p{n}: !t{n}, %q{n}: i32) num_warps(4) {{",
        index_line(leaf, f"%v{n}", f"%p{n}", "second partition", f"%q{n}"),
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
        index_line(leaf, f"%v{n}", f"%r{n}", "branch"),
    ]


def _buffer_of_branch(leaf: Buffers, storage: Storage) -> list[str]:
    """Write a branch that hands out one buffer, not the array."""
    n = leaf.number
    return [
        f"%v{n} = scf.if %c -> (!e{n}) {{",
        index_line(leaf, f"%v{n}", f"%b{n}", "then"),
        f"scf.yield %v{n} : !e{n}",
        "} else {",
        f"%last{n} = arith.constant {leaf.count - 1} : i32",
        index_line(leaf, f"%v{n}", f"%b{n}", f"else {leaf.count - 1}", f"%last{n}"),
        f"scf.yield %v{n} : !e{n}",
        "}",
    ]


def _loop(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"%r{n} = scf.for %j{n} = %c0 to %c2 step %c1 iter_args(%x{n} = %b{n}) -> (!t{n}) : i32 {{",
        index_line(leaf, f"%v{n}", f"%x{n}", "loop"),
        f"scf.yield %x{n} : !t{n}",
        "}",
        index_line(leaf, f"%w{n}", f"%r{n}", "after the loop"),
    ]


def _while(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"%r{n}:2 = scf.while (%x{n} = %b{n}, %j{n} = %c0) : (!t{n}, i32) -> (!t{n}, i32) {{",
        f"%less{n} = arith.cmpi slt, %j{n}, %c2 : i32",
        index_line(leaf, f"%u{n}", f"%x{n}", "before"),
        f"scf.condition(%less{n}) %x{n}, %j{n} : !t{n}, i32",
        "} do {",
        f"^bb0(%x{n}: !t{n}, %j{n}: i32):",
        index_line(leaf, f"%v{n}", f"%x{n}", "body of while"),
        f"%next{n} = arith.addi %j{n}, %c1 : i32",
        f"scf.yield %x{n}, %next{n} : !t{n}, i32",
        "}",
        index_line(leaf, f"%w{n}", f"%r{n}#0", "after while"),
    ]


def _select(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"%r{n} = arith.select %c, %b{n}, %b{n} : !t{n}",
        index_line(leaf, f"%v{n}", f"%r{n}", "select"),
    ]


def _blocks(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [
        f"cf.cond_br %c, ^then{n}(%b{n} : !t{n}), ^else{n}",
        f"^then{n}(%x{n}: !t{n}):",
        index_line(leaf, f"%u{n}", f"%x{n}", "then block"),
        f"cf.br ^join{n}(%x{n} : !t{n})",
        f"^else{n}:",
        f"cf.br ^join{n}(%b{n} : !t{n})",
        f"^join{n}(%y{n}: !t{n}):",
        index_line(leaf, f"%v{n}", f"%y{n}", "join block"),
    ]


def _call(leaf: Buffers, storage: Storage) -> list[str]:
    n = leaf.number
    return [f"tt.call @callee{n}(%b{n}, %i{n}) : (!t{n}, i32) -> ()"]


def callee(leaf: Buffers) -> str:
    n = leaf.number
    access = index_line(leaf, "%v", "%x", "call", "%i")
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


def _trans(leaf: Buffers, storage: Storage) -> list[str]:
    n, tile = leaf.number, leaf.tile
    if tile.turned is None:
        return []
    rows, columns = tile.extents
    rest = f"{columns}x{rows}x{tile.element}, {tile.turned}, #space, mutable>"
    order = "order = array<i32: 0, 2, 1>"
    return [
        f"%x{n} = ttg.memdesc_trans %b{n} {{{order}}} : !t{n} -> !ttg.memdesc<{leaf.count}x{rest}",
        f"%v{n} = ttg.memdesc_index %x{n}[%i{n}] : !ttg.memdesc<{leaf.count}x{rest} -> !ttg.memdesc<{rest} "
        f"{_at(leaf, 'trans')}",
    ]


def _reshape(leaf: Buffers, storage: Storage) -> list[str]:
    n, tile = leaf.number, leaf.tile
    if tile.folded is None:
        return []
    rest = f"{tile.folded[0]}x{tile.element}, {tile.folded[1]}, #space, mutable>"
    return [
        f"%x{n} = ttg.memdesc_reshape %b{n} : !t{n} -> !ttg.memdesc<{leaf.count}x{rest}",
        f"%v{n} = ttg.memdesc_index %x{n}[%i{n}] : !ttg.memdesc<{leaf.count}x{rest} -> !ttg.memdesc<{rest} "
        f"{_at(leaf, 'reshape')}",
    ]


def _subslice(leaf: Buffers, storage: Storage) -> list[str]:
    """The second half of the columns of every buffer."""
    n, tile = leaf.number, leaf.tile
    if storage is not SMEM or tile.turned is None:
        return []
    rows, columns = tile.extents
    half = f"{rows}x{columns // 2}x{tile.element}, {tile.layout}, #space, mutable"
    whole = f"!ttg.memdesc<{leaf.count}x{half}, {leaf.count}x{tile.shape}>"
    return [
        f"%x{n} = ttg.memdesc_subslice %b{n}[0, 0, {columns // 2}] : !t{n} -> {whole}",
        f"%v{n} = ttg.memdesc_index %x{n}[%i{n}] : {whole} -> !ttg.memdesc<{half}, {leaf.count}x{tile.shape}> "
        f"{_at(leaf, 'subslice')}",
    ]


def _halves(leaf: Buffers, storage: Storage) -> list[str]:
    """Twice as many buffers of half the rows."""
    n, tile = leaf.number, leaf.tile
    if tile.turned is None or tile.extents[0] < 16:
        return []
    rows, columns = tile.extents
    rest = f"{rows // 2}x{columns}x{tile.element}, {tile.layout}, #space, mutable>"
    whole = f"!ttg.memdesc<{2 * leaf.count}x{rest}"
    return [
        f"%x{n} = ttg.memdesc_reinterpret %b{n} : !t{n} -> {whole}",
        f"%h{n} = arith.muli %i{n}, %c2 : i32",
        f"%v{n} = ttg.memdesc_index %x{n}[%h{n}] : {whole} -> !ttg.memdesc<{rest} {_at(leaf, 'halves')}",
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
        index_line(leaf, f"%v{n}", f"%y{n}", "nested", f"%q{n}"),
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
    "trans": _trans,
    "reshape": _reshape,
    "subslice": _subslice,
    "halves": _halves,
    "nested": _nested,
}
"""By name. No lines where the tile of the leaf has no such view."""
