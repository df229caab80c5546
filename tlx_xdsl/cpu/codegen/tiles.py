"""AMX: products of tiles, each of 16 rows of 64 bytes, in registers of their own (Intel SDM, "Intel AMX").

| tiles | hold |
|---|---|
| 0 to 3 | 16 x 16 accumulators: two rows of two |
| 4, 5 | 16 rows of 16 words of A |
| 6, 7 | 16 words of the depth for 16 columns of B |

A program configures the tiles before each product, and releases them after it: functions that it calls in between may
use them, and the system saves no registers that are released.

`tdpbf16ps` sums the first and the second neighbours of a tile in f32, each by fused multiplications that round to
nearest even, then adds the two sums, and then the accumulator. It takes subnormal numbers for 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from .builder import I8, I32, Builder, Value, constant
from .views import Number, View, add, address, as_value, multiply

SIDE = 16
"""Rows of a tile, and words of 32 bits of each."""

_OF_A, _OF_B = 4, 6


def configure(b: Builder) -> None:
    """Give all tiles their shape: the palette, 64 bytes of a row for each of them, and 16 rows."""
    words = [1, *[0] * 3, *[0x400040] * 4, *[0] * 4, *[0x10101010] * 2, *[0] * 2]
    place = b.alloca("[64 x i8]", 64)
    b.store(Value(f"<{', '.join(f'i32 {word}' for word in words)}>", I32, len(words)), place, 64)
    b.call("llvm.x86.ldtilecfg", None, place)


def release(b: Builder) -> None:
    """Give the tiles back."""
    b.call("llvm.x86.tilerelease", None)


def write_tiles(b: Builder, name: str, of_a: View, panel: Sequence[View], words: Number, of_c: View) -> None:
    """Add the product of rows of A and a panel of B to C, a block of one or two tiles each way.

    `panel` has the words of 16 columns each, `words` from one of the depth to the next.
    """
    (rows, depth), columns = of_a.sizes, range(len(panel))
    assert isinstance(rows, int) and isinstance(depth, int)
    down = range(rows // SIDE)

    def move(kind: str, tile: int, where: Value, stride: Value) -> None:
        b.call(f"llvm.x86.tile{kind}d64", None, constant(tile, I8), where, stride)

    def place(view: View, row: int, column: int) -> Value:
        return address(b, view, add(b, view.place(b, (row * SIDE, 0)), column * SIDE))

    row_of_a, row_of_b, row_of_c = (
        as_value(multiply(b, stride, size)) for stride, size in
        ((of_a.strides[0], of_a.bytes), (words, 4), (of_c.strides[0], 4))
    )  # fmt: skip
    sums = [(2 * row + column, place(of_c, row, column)) for row in down for column in columns]
    starts = [place(of_a, row, 0) for row in down]
    for tile, where in sums:
        move("load", tile, where, row_of_c)
    with b.loop(b.index(0), b.index(depth), b.index(SIDE)) as (word, _, _):
        for row, start in enumerate(starts):
            move("load", _OF_A + row, b.gep(I32, start, word), row_of_a)
        for column, view in enumerate(panel):
            move("load", _OF_B + column, b.gep(I32, view.base, as_value(multiply(b, word, words))), row_of_b)
        for row in down:
            for column in columns:
                tiles = (2 * row + column, _OF_A + row, _OF_B + column)
                b.call(f"llvm.x86.{name}", None, *(constant(each, I8) for each in tiles))
    for tile, where in sums:
        move("store", tile, where, row_of_c)
