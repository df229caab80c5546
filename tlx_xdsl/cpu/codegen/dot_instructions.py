"""Instructions that multiply neighbours along the depth of a product, and add them to a wider element.

| CPU has | multiplies | adds | per lane |
|---|---|---|---|
| AVX512-BF16, `vdpbf16ps` | bf16 | f32 | 2 |
| AVX512-VNNI or AVX-VNNI, `vpdpbusd` | unsigned bytes by signed ones | i32 | 4 |
| AMX, `tdpbf16ps` and `tdpbssd` | bf16; signed bytes | f32; i32 | 2; 4 |

Both operands hold the neighbours in words of 32 bits: A those of a row, B those of a column.

`vdpbf16ps` adds the high half of a word first, then the low one, each by a fused multiplication that rounds to nearest
even: with the first of two neighbours in the high half, sums have the bits of a chain of f32's `fma`. It takes
subnormal numbers for 0, and gives 0 for them (Intel SDM, "VDPBF16PS").

`vpdpbusd` takes A as unsigned. With 128 added to its elements, a sum is too large by 128 times the elements of B's
column, which is subtracted from the accumulator before: integers wrap around, so that the result is exact.

Those of AMX multiply tiles of 16 x 16 words, and read A where it lies (`tiles.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, i8, i32

from .builder import F32, I8, I32, Builder, Value, constant
from .function import FunctionEmitter
from .host import Features
from .nest import Access, Nest, write_nest
from .tiles import SIDE
from .views import View, add, as_value, multiply

_SIGNS = 0x80808080 - (1 << 32)
"""The sign bits of four bytes, as an i32."""


@dataclass(frozen=True)
class DotInstruction:
    """An instruction on words of neighbours."""

    name: str
    """LLVM's intrinsic, without the number of bits of its vectors."""
    group: int
    """Number of neighbours in a word."""
    narrow: str
    """Their type in the operands of the intrinsic."""
    offset: int = 0
    """What A's elements are too large by."""
    in_tiles: bool = False
    """Whether it multiplies tiles, by the intrinsic of this name."""

    def added(self, b: Builder, word: Value, vector: Value, total: Value) -> Value:
        """Add a word of A times words of B."""
        lanes = total.lanes
        operands = [Value("", self.narrow, lanes * self.group)] * 2
        name = f"llvm.x86.{self.name}.{32 * lanes}"
        b.externals.declare(name, total.type, [total.type, *(each.type for each in operands)])
        given = [
            b.emit(f"bitcast {each.typed} to {operands[0].type}", self.narrow, lanes * self.group)
            for each in (b.splat(word, lanes), vector)
        ]
        text = ", ".join(each.typed for each in (total, *given))
        return b.emit(f"call {total.type} @{name}({text})", total.element, lanes)

    def excess(self, b: Builder, vector: Value, total: Value) -> Value:
        """Add what words of B make a sum too large by."""
        return self.added(b, constant(_SIGNS, I32), vector, total)

    def write_a(self, fn: FunctionEmitter, a: View, copy: View) -> None:
        """Write the words of A's rows, whose elements lie one after the other."""
        b = fn.b
        rows, words = copy.sizes
        assert isinstance(rows, int) and isinstance(words, int)
        lanes = 16
        while words % lanes:
            lanes //= 2
        with b.loop(b.index(0), b.index(rows), b.index(1)) as (row, _, _):
            start = b.gep(a.in_memory, a.base, as_value(add(b, a.offset, multiply(b, row, a.strides[0]))))
            written = b.gep(I32, copy.base, as_value(multiply(b, row, words)))
            with b.loop(b.index(0), b.index(words), b.index(lanes)) as (word, _, _):
                found = b.load(I32, b.gep(I32, start, word), lanes, a.bytes)
                b.store(self._of_a(b, found), b.gep(I32, written, word), 4)

    def _of_a(self, b: Builder, words: Value) -> Value:
        if self.offset:
            return b.binary("xor", words, constant(_SIGNS, I32))
        half = constant(16, I32)
        return b.binary("or", b.binary("shl", words, half), b.binary("lshr", words, half))

    def write_b(self, fn: FunctionEmitter, sizes: tuple[int, int, int], read: Access, written: Access) -> None:
        """Write the words of B's columns, by their panel, their place in the depth, and their column."""
        b, along = fn.b, read.strides[1]
        panel, _, column = read.strides
        strides = (panel, multiply(b, self.group, along), column)
        neighbours = tuple(
            Access(read.view, add(b, read.offset, multiply(b, each, along)), strides) for each in range(self.group)
        )

        def words(found: Sequence[Value]) -> Sequence[Value]:
            bits, turns = 32 // self.group, self is BF16
            total = constant(0, I32)
            for each, value in enumerate(found):
                place = self.group - 1 - each if turns else each
                wide = b.resized(value, I32, signed=False)
                total = b.binary("or", total, b.binary("shl", wide, constant(bits * place, I32)))
            return [total]

        write_nest(fn, Nest(
            sizes, (False,) * 3, neighbours, (written,), (False,), lambda found, _old, _indices: words(found), 4,
            vectorizable=True, has_indices=False,
        ))  # fmt: skip


BF16 = DotInstruction("avx512bf16.dpbf16ps", 2, "bfloat")
BYTES = DotInstruction("avx512.vpdpbusd", 4, I8, 128)
BF16_TILES = DotInstruction("tdpbf16ps", 2, "bfloat", in_tiles=True)
BYTE_TILES = DotInstruction("tdpbssd", 4, I8, in_tiles=True)

WORD = i32
"""The element of a view of words."""


def dot_instruction(features: Features, a: View, b: View, c: View, lanes: int) -> DotInstruction | None:
    """Return the instruction for a product whose accumulators have so many lanes, if the CPU has a fast one."""
    types = [each.element for each in (a, b)]
    rows, depth = a.sizes
    assert isinstance(rows, int) and isinstance(depth, int)
    if a.strides[1] != 1 or lanes not in (4, 8, 16):
        return None
    has_tiles = features.tiles and lanes == SIDE and rows % SIDE == 0
    if all(isinstance(each, BFloat16Type) for each in types) and c.in_register == F32:
        known = (has_tiles, BF16_TILES), (features.bf16_products, BF16)
    elif all(each == i8 for each in types) and c.in_register == I32:
        known = (has_tiles, BYTE_TILES), (features.byte_products, BYTES)
    else:
        return None
    fit = (each for has, each in known if has and depth % (each.group * (SIDE if each.in_tiles else 1)) == 0)
    return next(fit, None)
