"""Pointers as texts have them and our frontend does not: the same bytes in the interpreter, in linalg and natively."""

# covers: triton-to-linalg, target.cpu

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tests.fuzz.pointers import lowered
from tests.unit.cpu.codegen.native import Guarded, compiled
from tests.unit.volume import is_full
from tlx_xdsl import interpret_text
from tlx_xdsl.text.parser import parse_module

RANGE = "%r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>"


def tensor(element: str) -> str:
    return f"tensor<8x!tt.ptr<{element}>>"


def moved(result: str, base: str, element: str, offset: str = "%r") -> str:
    """Pointers from a scalar one on."""
    type_ = tensor(element)
    return f"""{result}s = tt.splat {base} : !tt.ptr<{element}> -> {type_}
  {result} = tt.addptr {result}s, {offset} : {type_}, tensor<8xi32>"""


in_linalg = cache(lambda text: lowered(text)[0])
machine_code = cache(lambda text: compiled(parse_module(text)))


def check(text: str, values: Sequence[Any], expected: Sequence[Any]) -> None:
    """Run a text in three ways; `expected` are the arrays after it, the last ones of `values`."""

    def in_interpreter(source: str) -> Callable[[list[Any]], None]:
        return lambda given: interpret_text(source, 1, given)

    def natively(given: list[Any]) -> None:
        guarded = [Guarded(each) if isinstance(each, np.ndarray) else each for each in given]
        held = [each.array if isinstance(each, Guarded) else each for each in guarded]
        assert machine_code(text).run((1, 1, 1), held) is None
        for each, array in zip(guarded, given, strict=True):
            if isinstance(each, Guarded):
                each.check()
                array[...] = each.array

    for run in (in_interpreter(text), in_interpreter(in_linalg(text)), natively):
        given = [each.copy() if isinstance(each, np.ndarray) else each for each in values]
        run(given)
        found = [each for each in given if isinstance(each, np.ndarray)][-len(expected) :]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_bits_in_memory():
    """All bytes but 0 are true; what is stored is 0 or 1."""
    text = f"""tt.func public @kernel(%m: !tt.ptr<i1>, %x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %bits: !tt.ptr<i1>) {{
  {RANGE}
  {moved("%mp", "%m", "i1")}
  {moved("%xp", "%x", "f32")}
  {moved("%op", "%out", "f32")}
  {moved("%bp", "%bits", "i1")}
  %five = arith.constant dense<5.0> : tensor<8xf32>
  %true = arith.constant dense<true> : tensor<8xi1>
  %c6 = arith.constant dense<6> : tensor<8xi32>
  %below = arith.cmpi slt, %r, %c6 : tensor<8xi32>
  %bit = tt.load %mp, %below, %true : {tensor("i1")}
  %v = tt.load %xp, %bit, %five : {tensor("f32")}
  tt.store %op, %v : {tensor("f32")}
  %first = tt.load %m : !tt.ptr<i1>
  %firsts = tt.splat %first : i1 -> tensor<8xi1>
  %both = arith.xori %bit, %firsts : tensor<8xi1>
  tt.store %bp, %both, %below : {tensor("i1")}
  tt.return
}}"""
    bits = np.array([1, 0, 1, 1, 0, 0, 0, 0], np.bool_)
    seen = np.where(np.arange(8) < 6, bits, True)
    x = np.arange(8, dtype=np.float32) * 10
    expected = [np.where(seen, x, np.float32(5)), np.where(np.arange(8) < 6, seen ^ bits[0], True)]
    check(text, [bits, x, np.zeros(8, np.float32), np.ones(8, np.bool_)], expected)


JOINS = [("cat", "%y"), ("join", "%y"), ("cat", "%x"), ("join", "%x")]


@pytest.mark.parametrize(("joins", "other"), JOINS if is_full() else JOINS[:2])
def test_pointers_side_by_side(joins: str, other: str):
    result = "tensor<16x!tt.ptr<i32>>" if joins == "cat" else "tensor<8x2x!tt.ptr<i32>>"
    flat = "" if joins == "cat" else f"%q = tt.reshape %j : {result} -> tensor<16x!tt.ptr<i32>>"
    text = f"""tt.func public @kernel(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %out: !tt.ptr<i32>) {{
  {RANGE}
  %c3 = arith.constant dense<3> : tensor<8xi32>
  %moved = arith.addi %r, %c3 : tensor<8xi32>
  {moved("%a", "%x", "i32")}
  {moved("%b", other, "i32", "%moved")}
  %j = tt.{joins} %a, %b : {tensor("i32")} -> {result}
  {flat}
  %all = tt.make_range {{start = 0 : i32, end = 16 : i32}} : tensor<16xi32>
  %half = tt.addptr %{"j" if joins == "cat" else "q"}, %all : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %v = tt.load %half : tensor<16x!tt.ptr<i32>>
  %os = tt.splat %out : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %op = tt.addptr %os, %all : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  tt.store %op, %v : tensor<16x!tt.ptr<i32>>
  tt.return
}}"""
    x, y = np.arange(40, dtype=np.int32), np.arange(40, dtype=np.int32) + 100
    first, second = np.arange(8), np.arange(8) + 3
    both = {"%x": x, "%y": y}[other]
    parts = [(x, at) for at in first] + [(both, at) for at in second]
    if joins == "join":
        parts = [each for pair in zip(parts[:8], parts[8:], strict=True) for each in pair]
    expected = np.array([array[at + number] for number, (array, at) in enumerate(parts)], np.int32)
    check(text, [x, y, np.zeros(16, np.int32)], [expected])


@pytest.mark.parametrize("start", [0, 4, 8, 12] if is_full() else [0, 12])
def test_pointers_to_wider_types(start: int):
    """An i32 at a multiple of 4 bytes, wherever the array begins; steps of wider types through pointers in between."""
    text = f"""tt.func public @kernel(%x: !tt.ptr<i8>, %start: i32, %wide: !tt.ptr<i32>, %narrow: !tt.ptr<i16>) {{
  {RANGE}
  %c4 = arith.constant dense<4> : tensor<8xi32>
  %c2 = arith.constant dense<2> : tensor<8xi32>
  %bytes = arith.muli %r, %c4 : tensor<8xi32>
  %first = tt.addptr %x, %start : !tt.ptr<i8>, i32
  {moved("%xp", "%first", "i8", "%bytes")}
  %long = tt.bitcast %xp : {tensor("i8")} -> {tensor("i64")}
  %two = tt.addptr %long, %c2 : {tensor("i64")}, tensor<8xi32>
  %back = tt.bitcast %two : {tensor("i64")} -> {tensor("i32")}
  %v = tt.load %back : {tensor("i32")}
  {moved("%wp", "%wide", "i32")}
  tt.store %wp, %v : {tensor("i32")}
  %halves = tt.bitcast %back : {tensor("i32")} -> {tensor("i16")}
  %next = tt.addptr %halves, %c2 : {tensor("i16")}, tensor<8xi32>
  %h = tt.load %next : {tensor("i16")}
  {moved("%np", "%narrow", "i16")}
  tt.store %np, %h : {tensor("i16")}
  tt.return
}}"""
    x = np.random.default_rng(start).integers(-128, 128, 72).astype(np.int8)
    numbers = x[start + 16 : start + 16 + 36].view(np.int32)
    wide, narrow = np.zeros(8, np.int32), np.zeros(8, np.int16)
    check(text, [x, start, wide, narrow], [numbers[:8], numbers[1:].view(np.int16)[::2]])


def test_addresses_of_pointers():
    text = f"""tt.func public @kernel(%x: !tt.ptr<f32>, %out: !tt.ptr<i64>) {{
  {RANGE}
  {moved("%xp", "%x", "f32")}
  {moved("%op", "%out", "i64")}
  %at = tt.ptr_to_int %xp : {tensor("f32")} -> tensor<8xi64>
  %base = tt.ptr_to_int %x : !tt.ptr<f32> -> i64
  %bases = tt.splat %base : i64 -> tensor<8xi64>
  %bytes = arith.subi %at, %bases : tensor<8xi64>
  tt.store %op, %bytes : {tensor("i64")}
  tt.return
}}"""
    check(text, [np.zeros(8, np.float32), np.zeros(8, np.int64)], [np.arange(8) * 4])


BLOCK = "!tt.ptr<tensor<4x4xf32>>"


def blocks(body: str) -> str:
    pointers = "%z: !tt.ptr<f32>, %y: !tt.ptr<f32>"
    return f"""tt.func public @kernel(%x: !tt.ptr<f32>, %m: i64, %n: i64, %at: i32, {pointers}) {{
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %four = arith.constant 4 : i64
  %o = tt.make_tensor_ptr %y, [%four, %four], [%four, %one], [%c0, %c0] {{order = array<i32: 1, 0>}} : <tensor<4x4xf32>>
  %p = tt.make_tensor_ptr %x, [%m, %n], [%n, %one], [%at, %c1] {{order = array<i32: 1, 0>}} : <tensor<4x4xf32>>
  {body}
  tt.return
}}"""


ROWS, COLUMNS = 5, 7
TABLE = np.arange(1, 1 + ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)


def block(row: int, column: int, table: Any = TABLE, fill: float = 0) -> Any:
    """Four rows and columns from there on."""
    wide = np.full((64, 64), fill, np.float32)
    wide[16 : 16 + ROWS, 16 : 16 + COLUMNS] = table
    return wide[16 + row : 20 + row, 16 + column : 20 + column]


PADDINGS = [(", padding = 2 : i32", np.nan), ("", 0), (", padding = 1 : i32", 0)]


@pytest.mark.parametrize(("padding", "fill"), PADDINGS if is_full() else PADDINGS[:1])
def test_blocks_at_the_boundary(padding: str, fill: float):
    text = blocks(f"""%q = tt.advance %p, [%c1, %c3] : <tensor<4x4xf32>>
  %v = tt.load %q {{boundaryCheck = array<i32: 0, 1>{padding}}} : {BLOCK}
  tt.store %o, %v : {BLOCK}""")
    for at in (-3, 0, 3):
        out = np.zeros((4, 4), np.float32)
        check(text, [TABLE, ROWS, COLUMNS, at, TABLE, out], [block(at + 1, 4, fill=fill)])


def test_blocks_are_stored_inside_only():
    text = blocks(f"""%v = tt.load %p {{boundaryCheck = array<i32: 0>}} : {BLOCK}
  %q = tt.advance %o, [%c3, %c0] : <tensor<4x4xf32>>
  tt.store %q, %v {{boundaryCheck = array<i32: 0>}} : {BLOCK}""")
    expected = np.full((4, 4), -1, np.float32)
    expected[3] = block(2, 1)[0]
    check(text, [TABLE, ROWS, COLUMNS, 2, TABLE, np.full((4, 4), -1, np.float32)], [expected])


def test_blocks_of_a_loop():
    text = blocks(f"""%zeros = arith.constant dense<0.0> : tensor<4x4xf32>
  %sum, %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %zeros, %q = %p) -> (tensor<4x4xf32>, {BLOCK}) : i32 {{
    %v = tt.load %q {{boundaryCheck = array<i32: 0, 1>}} : {BLOCK}
    %t = arith.addf %s, %v : tensor<4x4xf32>
    %next = tt.advance %q, [%c0, %c3] : <tensor<4x4xf32>>
    scf.yield %t, %next : tensor<4x4xf32>, {BLOCK}
  }}
  %after = tt.load %last {{boundaryCheck = array<i32: 1>}} : {BLOCK}
  %all = arith.addf %sum, %after : tensor<4x4xf32>
  tt.store %o, %all : {BLOCK}""")
    expected = sum(block(1, 1 + 3 * turn) for turn in range(3))
    check(text, [TABLE, ROWS, COLUMNS, 1, TABLE, np.zeros((4, 4), np.float32)], [expected])


@pytest.mark.parametrize("at", [0, 1])
def test_blocks_of_one_of_two_tensors(at: int):
    text = blocks(f"""%c = arith.cmpi eq, %at, %c0 : i32
  %chosen = scf.if %c -> ({BLOCK}) {{
    scf.yield %p : {BLOCK}
  }} else {{
    %other = tt.make_tensor_ptr %z, [%n, %m], [%one, %n], [%c3, %c0] {{order = array<i32: 0, 1>}} : <tensor<4x4xf32>>
    scf.yield %other : {BLOCK}
  }}
  %v = tt.load %chosen {{boundaryCheck = array<i32: 0, 1>}} : {BLOCK}
  tt.store %o, %v : {BLOCK}""")
    z = TABLE * 100
    # The second one is seen transposed.
    expected = block(0, 1) if at == 0 else block(0, 3, z).T
    check(text, [TABLE, ROWS, COLUMNS, at, z, np.zeros((4, 4), np.float32)], [expected])
