"""Layouts as text: the tiles that `layout_svg` draws, for `tlx explain --layout`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlx_xdsl.layouts.conversion_cost import conversion_cost
from tlx_xdsl.layouts.cute import describe_layout
from tlx_xdsl.layouts.encodings import DistributedLayout, SharedLayout, describe
from tlx_xdsl.layouts.pictures import flow, register_tiles, shared_tiles, tensor_memory_tiles
from tlx_xdsl.runtime.show.layout_svg import Drawn, up_to

from ..output import table


def layouts_as_text(layouts: Sequence[Drawn]) -> str:
    """The layouts, one below the other. Raises ValueError if one does not fit its shape."""
    return "\n\n".join("\n".join(_lines(each)) for each in layouts)


def _lines(drawn: Drawn) -> Iterator[str]:
    layout, shape = drawn.layout, drawn.shape
    yield f"{drawn.title}, {describe(layout)}"
    yield from describe_layout(layout, shape)
    if isinstance(layout, DistributedLayout):
        yield from _registers(drawn, layout)
    elif isinstance(layout, SharedLayout):
        yield from _shared(drawn, layout)
    else:
        tiles = tensor_memory_tiles(layout, shape, drawn.element_bits)
        yield f"rows and columns by lane and 32-bit column; a tile has {tiles.lanes} lanes, {tiles.columns:g} columns"
        yield from _table(
            [f"lane {i * tiles.lanes}" for i in range(tiles.rows.shape[0])],
            [f"{j * tiles.columns:g}" for j in range(tiles.rows.shape[1])],
            [
                [
                    f"{up_to(row, tiles.lanes)}|{up_to(start, tiles.width)}{'*' if copy else ''}"
                    for row, start, copy in zip(*each, strict=True)
                ]
                for each in zip(tiles.rows.rows, tiles.starts.rows, tiles.copy.rows, strict=True)
            ],
        )
        if any(map(any, tiles.copy.rows)):
            yield "* a copy"


def _registers(drawn: Drawn, layout: DistributedLayout) -> Iterator[str]:
    tiles = register_tiles(layout, drawn.shape)
    yield "thread and values by row and column"
    rows, columns = tiles.tile
    held, length = tiles.holders, max(tiles.tile)
    threads = held.threads
    yield from _table(
        [str(i * rows) for i in range(threads.shape[0])],
        [str(j * columns) for j in range(threads.shape[1])],
        [
            [f"t{thread}:{up_to(register, length)}" for thread, register in zip(*each, strict=True)]
            for each in zip(threads.rows, held.registers.rows, strict=True)
        ],
    )
    if drawn.comes_from is None:
        return
    yield f"converted {conversion_cost(drawn.comes_from, layout, drawn.shape, drawn.element_bits)}"
    moved = flow(drawn.comes_from, layout, drawn.shape)
    if moved.holders == "warp":
        yield "elements from each warp (a row) to each warp (a column)"
        rows_of_it, columns_of_it = moved.elements.shape
        yield from _table(
            [f"w{i}" for i in range(rows_of_it)],
            [f"w{j}" for j in range(columns_of_it)],
            [[str(count) for count in row] for row in moved.elements.rows],
        )


def _shared(drawn: Drawn, layout: SharedLayout) -> Iterator[str]:
    tiles = shared_tiles(layout, drawn.shape, drawn.element_bits)
    down, across = ("row", "column") if tiles.across else ("column", "row")
    yield f"byte and first bank by {down} and {across}"
    yield from _table(
        [str(i) for i in range(tiles.bytes.shape[0])],
        [str(j * tiles.elements) for j in range(tiles.bytes.shape[1])],
        [
            [f"@{byte}:{bank}" for byte, bank in zip(*each, strict=True)]
            for each in zip(tiles.bytes.rows, tiles.banks.rows, strict=True)
        ],
    )
    for access in drawn.accesses:
        yield access.words
        if words := access.words_of_banks():
            yield f"  words of banks 0 to 31 in one pass: {' '.join(map(str, words))}"


def _table(side: Sequence[str], head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return table([("", *head), *((name, *row) for name, row in zip(side, rows, strict=True))])
