"""The text of a module that declares a region with its overlap tree and accesses the buffers.

The location of an access says which buffer the program means; the passes keep it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.transforms.storage_alias.storage_paths import PATHS, callee, index_line
from tests.unit.transforms.storage_alias.storage_trees import Buffers, Node, Program


def text_of(program: Program, size: int | None = None, *, accesses: bool = True, more: Sequence[str] = ()) -> str:
    """The module of `program`, with an explicit size where one is given; `accesses` may be left out.

    `more` are lines after the accesses.
    """
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
            body.append(index_line(leaf, f"%d{leaf.number}", f"%b{leaf.number}", "direct"))
            body += PATHS[path](leaf, program.storage)
            if path == "call":
                callees.append(callee(leaf))
    body += more
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
