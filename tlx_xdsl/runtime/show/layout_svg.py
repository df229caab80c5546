"""Layouts as pictures: (thread, value) tiles, banks and their conflicts, tensor memory, the flow of a conversion.

A picture is 400 units wide with letters of 10 units, so that it can be read on a phone; its colours follow the reader's
choice of light or dark. The numbers come from `layouts/pictures.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear
from tlx_xdsl.layouts.conversion_cost import ConversionKind, conversion_cost
from tlx_xdsl.layouts.cute import describe_layout
from tlx_xdsl.layouts.encodings import DistributedLayout, Ints, Layout, SharedLayout, TmemLayout, describe
from tlx_xdsl.layouts.pictures import (
    ACROSS,
    bank_words,
    copies,
    flow,
    register_tiles,
    shared_tiles,
    tensor_memory_tiles,
)
from tlx_xdsl.layouts.shared_access import WORD_BYTES

from .storage_map_svg import COLOURS

WIDTH, LEFT, RIGHT = 400, 30, 8
"""Units of the picture, and what stays free at its sides."""
SHOWN = 640
"""Pixels that it takes where there is room."""
TILE = (WIDTH - LEFT - RIGHT) / ACROSS
_ROW, _LINE = 25, 13
_LETTERS = {"title": 48, "head": 60, "mono": 60}
"""Letters of a line, of which others have 66."""
_CONFLICTS = ((8, "#f2a08f"), (4, "#f6c98f"), (2, "#f6ee9c"), (1, "#8fd6bf"))
"""Words that a bank gives one after the other, at least, and the colour for it."""
_MOST = 32
"""Holders on either side of a flow."""
_STYLE = (
    ".tlx-layout{--ink:#222;--paper:#fff;--faint:#565e67;--edge:#888}"
    "@media(prefers-color-scheme:dark){.tlx-layout{--ink:#e6edf3;--paper:#0d1117;--faint:#b4bcc6;--edge:#8b949e}}"
    ".tlx-layout text{font:10px Helvetica,Arial,sans-serif;fill:var(--ink)}"
    ".tlx-layout .title{font-size:13px;font-weight:bold}.tlx-layout .head{font-weight:bold}"
    ".tlx-layout .mono{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:9.5px}"
    ".tlx-layout .faint{fill:var(--faint)}.tlx-layout .on{fill:#222;text-anchor:middle}"
    ".tlx-layout .edge{stroke:var(--edge);stroke-width:.6}.tlx-layout .paper{fill:var(--paper)}"
)


@dataclass(frozen=True)
class Access:
    """An access to a buffer."""

    words: str
    registers: DistributedLayout | None = None
    """The layout of the tensor, where threads move it; what follows is of that, too."""
    buffer: SharedLayout | None = None
    """The layout of the part of the buffer that they see, which may be turned around."""
    shape: Ints = ()
    whole: Ints | None = None
    """The shape of the allocation, in as many dimensions as `shape` has."""
    element_bits: int = 0
    matrices: bool = False
    """Whether ldmatrix or stmatrix moves it."""

    def words_of_banks(self) -> list[int]:
        """The words that each bank gives in one pass (`bank_words`); none where threads have no part in it."""
        if self.registers is None or self.buffer is None:
            return []
        return bank_words(
            self.registers,
            self.buffer,
            self.shape,
            self.element_bits,
            matrices=self.matrices,
            alloc_shape=self.whole,
        )


@dataclass(frozen=True)
class Drawn:
    """A layout to draw, of a tensor or buffer of `shape`."""

    title: str
    layout: Layout
    shape: Ints
    element_bits: int
    accesses: Sequence[Access] = ()
    """Of a buffer in shared memory."""
    comes_from: DistributedLayout | None = None
    """The layout of the same tensor before it was converted to this one."""


def layouts_as_svg(layouts: Sequence[Drawn]) -> str:
    """The text of an SVG file of some layouts, one below the other.

    Raises ValueError if a layout does not fit its shape.
    """
    parts: list[str] = []
    y = 0.0
    for each in layouts:
        picture = _Picture(each)
        picture.draw()
        parts += [f'<g transform="translate(0 {y:.0f})">', *picture.parts, "</g>"]
        y += picture.y + 8
    size = f'width="{SHOWN}" height="{y * SHOWN / WIDTH:.0f}" viewBox="0 0 {WIDTH} {y:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="tlx-layout" {size}><style>{_STYLE}</style>'
    ground = f'<rect class="paper" width="{WIDTH}" height="{y:.0f}"/>'
    return "\n".join([head, ground, *parts, "</svg>"])


class _Picture:
    def __init__(self, drawn: Drawn):
        self.drawn = drawn
        self.parts: list[str] = []
        self.y = 8.0

    def draw(self) -> None:
        """Draw the title, the layout in words, and its picture, from top to bottom."""
        drawn = self.drawn
        self._line(drawn.title, "title")
        self._line(describe(drawn.layout))
        for line in describe_layout(drawn.layout, drawn.shape):
            self._line(line, "mono")
        if isinstance(drawn.layout, DistributedLayout):
            self._registers(drawn.layout)
            if drawn.comes_from is not None:
                self._flow(drawn.comes_from, drawn.layout)
        elif isinstance(drawn.layout, SharedLayout):
            self._shared(drawn.layout)
        else:
            self._tensor_memory(drawn.layout)

    # --- registers -----------------------------------------------------------------------------------------------

    def _registers(self, layout: DistributedLayout) -> None:
        shape = self.drawn.shape
        tiles = register_tiles(layout, shape)
        blocks = tiles.blocks.part(slice(ACROSS), slice(ACROSS))
        count = blocks.shape
        rows, columns = (number * size for number, size in zip(count, tiles.block, strict=True))
        whole = "the whole tensor" if blocks.shape == tiles.blocks.shape else "the first part of the tensor"
        self._head(f"warps of {whole}, {rows} x {columns}")
        height = 18.0 * count[0]
        wide, high = (WIDTH - LEFT - RIGHT) / count[1], 18.0
        for (i, j), warp in blocks.each():
            hint = f"rows from {i * tiles.block[0]}, columns from {j * tiles.block[1]}: warp {warp}"
            box = (LEFT + j * wide, self.y + i * high, wide, high)
            self._cell(box, COLOURS[warp % len(COLOURS)], [f"w{warp}"] if wide > 22 and high > 10 else [], hint)
        self._scale(count[1], tiles.block[1], wide, self.y - 3)
        self._side(count[0], tiles.block[0], high)
        self.y += height + 4
        held = tiles.holders
        values = "values" if tiles.tile != (1, 1) else "value"
        self._head(f"thread and {values} of the first {held.lanes.shape[0] * tiles.tile[0]} rows, "
                   f"{held.lanes.shape[1] * tiles.tile[1]} columns; a colour for each four lanes")  # fmt: skip
        length, spread = max(tiles.tile), any(map(any, held.ctas.rows))
        for (i, j), lane in held.lanes.each():
            warp, register, cta = held.warps[i, j], held.registers[i, j], held.ctas[i, j]
            span = f"v{register}" if length == 1 else f"v{register}-{register + length - 1}"
            box = (LEFT + j * TILE, self.y + i * _ROW, TILE, _ROW)
            hint = f"{self._elements(i, j, *tiles.tile)}: CTA {cta}, warp {warp}, lane {lane}, {span}"
            self._cell(
                box,
                COLOURS[lane // 4 % len(COLOURS)],
                [f"{f'c{cta} ' if spread else ''}t{32 * warp + lane}", span],
                hint,
            )
        self._scale(held.lanes.shape[1], tiles.tile[1], TILE, self.y - 3)
        self._side(held.lanes.shape[0], tiles.tile[0], _ROW)
        self.y += held.lanes.shape[0] * _ROW
        if (number := copies(distributed_to_linear(layout, shape))) > 1:
            self._line(f"each element has {number} holders, of which the first is shown", "faint")

    @staticmethod
    def _elements(i: int, j: int, rows: int, columns: int) -> str:
        down = f"row {i}" if rows == 1 else f"rows {i * rows}-{(i + 1) * rows - 1}"
        return f"{down}, column{'' if columns == 1 else 's'} {up_to(j * columns, columns)}"

    # --- shared memory -------------------------------------------------------------------------------------------

    def _shared(self, layout: SharedLayout) -> None:
        drawn = self.drawn
        tiles = shared_tiles(layout, drawn.shape, drawn.element_bits)
        across, down = ("columns", "rows") if tiles.across else ("rows", "columns")
        size = tiles.elements * max(1, drawn.element_bits // 8)
        self._head(f"byte and first bank of {tiles.elements} element{'' if tiles.elements == 1 else 's'} each "
                   f"({size} bytes), {across} to the right, {down} downward")  # fmt: skip
        words, banks = max(1, size // WORD_BYTES), tiles.banks
        for (i, j), byte in tiles.bytes.each():
            bank = banks[i, j]
            box = (LEFT + j * TILE, self.y + i * _ROW, TILE, _ROW)
            hint = f"{down} {i}, {across} {up_to(j * tiles.elements, tiles.elements)}: bytes {up_to(byte, size)}"
            self._cell(box, COLOURS[bank // words % len(COLOURS)], [f"@{byte}", f"bank {bank}"], hint)
        self._scale(tiles.bytes.shape[1], tiles.elements, TILE, self.y - 3)
        self._side(tiles.bytes.shape[0], 1, _ROW)
        self.y += tiles.bytes.shape[0] * _ROW
        for access in drawn.accesses:
            self._access(access)

    def _access(self, access: Access) -> None:
        self.y += 6
        self._line(access.words, "head")
        words = access.words_of_banks()
        if not words:
            return
        self._line("words that each of the 32 banks gives, in one pass of a warp", "faint")
        side = (WIDTH - LEFT - RIGHT) / 16
        for bank, count in enumerate(words):
            colour = next((colour for least, colour in _CONFLICTS if count >= least), "none")
            box = (LEFT + bank % 16 * side, self.y + bank // 16 * 19, side, 19)
            hint = f"bank {bank}: {count} word{'' if count == 1 else 's'}"
            self._cell(box, colour, [str(count)] if count else [], hint)
        for row, first in enumerate((0, 16)):
            self._text(LEFT - 4, self.y + row * 19 + 13, str(first), "faint", "end")
        self.y += 2 * 19

    # --- tensor memory -------------------------------------------------------------------------------------------

    def _tensor_memory(self, layout: TmemLayout) -> None:
        tiles = tensor_memory_tiles(layout, self.drawn.shape, self.drawn.element_bits)
        columns = f"{tiles.columns:g} column{'' if tiles.columns == 1 else 's'}"
        self._head(f"lanes downward, columns of 32 bits to the right; a tile is {tiles.lanes} lanes x {columns}")
        count = min(ACROSS, tiles.rows.shape[1])
        wide, high = (WIDTH - LEFT - RIGHT) / count, 34.0 if tiles.rows.shape[0] < 6 else _ROW
        for (i, j), row in tiles.rows.part(slice(None), slice(count)).each():
            first = f"rows {up_to(row, tiles.lanes)}"
            second = (
                f"columns {up_to(tiles.starts[i, j], tiles.width)}"
                if wide > 70
                else up_to(tiles.starts[i, j], tiles.width)
            )
            copy = bool(tiles.copy[i, j])
            colour = "none" if copy else COLOURS[(row // tiles.lanes) % len(COLOURS)]
            box = (LEFT + j * wide, self.y + i * high, wide, high)
            self._cell(box, colour, [first if wide > 52 else up_to(row, tiles.lanes), second],
                       f"lanes {up_to(i * tiles.lanes, tiles.lanes)}: {first}, {second}{', a copy' if copy else ''}",
                       on="" if copy else "on")  # fmt: skip
        self._scale(count, tiles.columns, wide, self.y - 3)
        self._side(tiles.rows.shape[0], tiles.lanes, high)
        self.y += tiles.rows.shape[0] * high
        if (left := tiles.rows.shape[1] - count) > 0:
            self._line(f"{left} more such columns of tiles follow", "faint")
        if any(map(any, tiles.copy.rows)):
            self._line("without a colour: copies", "faint")

    # --- conversions ---------------------------------------------------------------------------------------------

    def _flow(self, source: DistributedLayout, target: DistributedLayout) -> None:
        drawn = self.drawn
        moved = flow(source, target, drawn.shape)
        cost = conversion_cost(source, target, drawn.shape, drawn.element_bits)
        self.y += 8
        self._line(f"converted {cost}", "head")
        self._line(f"from {describe(source)}")
        what = {"register": "registers of a thread", "lane": "lanes of a warp", "warp": "warps"}[moved.holders]
        self._line(f"{what}: those that hold at the left, those that want at the right", "faint")
        left, right = (min(_MOST, size) for size in moved.elements.shape)
        high = 12.0 if max(left, right) > 8 else 24.0
        box, start = 46.0, self.y + 4
        letter = {"register": "v", "lane": "t", "warp": "w"}[moved.holders]
        most = max(map(sum, moved.elements.rows))
        for (i, j), count in moved.elements.part(slice(left), slice(right)).each():
            if not count:
                continue
            width = max(0.8, (high - 4) * count / most)
            ends = (LEFT + box, start + (i + 0.5) * high, WIDTH - RIGHT - box, start + (j + 0.5) * high)
            middle = (ends[0] + ends[2]) / 2
            bend = f"C{middle:.1f} {ends[1]:.1f} {middle:.1f} {ends[3]:.1f}"
            path = f"M{ends[0]:.1f} {ends[1]:.1f}{bend} {ends[2]:.1f} {ends[3]:.1f}"
            hint = f"{letter}{i} to {letter}{j}: {count} elements"
            self.parts.append(
                f'<path d="{path}" fill="none" stroke="{_STRONG[i % len(_STRONG)]}" stroke-width="{width:.1f}" '
                f'stroke-opacity=".75"><title>{hint}</title></path>'
            )
        for x, size in ((LEFT, left), (WIDTH - RIGHT - box, right)):
            for i in range(size):
                colour = COLOURS[i % len(COLOURS)] if x == LEFT else "#e4e4e4"
                self._cell((x, start + i * high, box, high), colour, [f"{letter}{i}"], f"{moved.holders} {i}")
        self.y = start + max(left, right) * high + 4
        if moved.kind is ConversionKind.IN_CTA:
            self._line("bands go through shared memory; their widths count elements", "faint")
        if max(moved.elements.shape) > _MOST:
            self._line(f"the first {_MOST} of {max(moved.elements.shape)} are shown", "faint")

    # --- SVG -----------------------------------------------------------------------------------------------------

    def _head(self, text: str) -> None:
        self.y += 6
        self._line(text, "head")
        # The scale stands below.
        self.y += 14

    def _line(self, text: str, kind: str = "") -> None:
        """Write a text in as many lines as it takes."""
        for line in wrap(text, _LETTERS.get(kind, 66), subsequent_indent="  " if kind == "mono" else ""):
            self.y += _LINE
            self._text(LEFT - 22, self.y - 2, line, kind)

    def _scale(self, count: int, step: float, wide: float, y: float) -> None:
        for number in range(count):
            self._text(LEFT + number * wide + 1, y, f"{number * step:g}", "faint")

    def _side(self, count: int, step: int, high: float) -> None:
        # Where rows are thinner than letters, some have a number.
        every = max(1, -(-10 // max(1, int(high))))
        for number in range(0, count, every):
            self._text(LEFT - 4, self.y + (number + 0.5) * high + 3.5, str(number * step), "faint", "end")

    def _cell(
        self, box: tuple[float, float, float, float], fill: str, lines: Sequence[str], hint: str, on: str = "on"
    ) -> None:
        x, y, width, height = box
        size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect class="edge" {size} fill="{fill}"><title>{escape(hint)}</title></rect>')
        base = y + height / 2 + 3.5 - 5.5 * (len(lines) - 1)
        for number, line in enumerate(lines):
            self._text(x + width / 2, base + 11 * number, line, on, "middle")

    def _text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        style = f' class="{kind}"' if kind else ""
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        keep = ' xml:space="preserve"' if "  " in text else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{style}{place}{keep}>{escape(text)}</text>')


_STRONG = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b59b00", "#56b4e9", "#8a5a44", "#808080")
"""Okabe and Ito's colours for lines, which light and dark grounds both show."""


def up_to(first: int, count: int) -> str:
    """`8` for one number, `8-15` for eight."""
    return str(first) if count == 1 else f"{first}-{first + count - 1}"
