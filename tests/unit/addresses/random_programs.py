"""Random programs whose addresses are anything that integer arithmetic makes of program ids.

A program is TTIR text. Its scalars and tensors of i32 come from a pool that grows by one operation at a time; of the
operations, a fifth are divisions, a fifth remainders, and a fifth choices. Pointers made of what is in the pool are
loaded from, stored to and added to, in loops and under branches, too.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

GRIDS = ((4, 1, 1), (3, 2, 1), (2, 2, 2), (7, 1, 1), (1, 5, 1))
BASE = 1 << 20
ELEMENTS = {"f32": 4, "f16": 2, "i8": 1, "f64": 8}


@dataclass
class Program:
    """A program, and how to launch it."""

    text: str
    grid: tuple[int, int, int]
    arguments: list[int]


@dataclass
class _Writer:
    rng: random.Random
    lines: list[str] = field(default_factory=list)
    indent: str = "  "
    count: int = 0

    def emit(self, text: str) -> str:
        """Write an operation with a result."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{self.indent}{name} = {text}")
        return name

    def say(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"{self.indent}{text}")

    def constant(self, type_: str, number: int) -> str:
        """A constant."""
        value = str(number) if type_.startswith("i") else f"dense<{number}>"
        return self.emit(f"arith.constant {value} : {type_}")


def _number(rng: random.Random) -> int:
    """Mostly small, sometimes a power of two, seldom so large that products wrap around."""
    pick = rng.random()
    if pick < 0.55:
        return rng.choice((1, 2, 3, 4, 5, 7, 8, 12, 16))
    if pick < 0.9:
        return 1 << rng.randrange(2, 11)
    if pick < 0.95:
        return -rng.choice((1, 2, 3, 8, 16))
    return rng.randrange(1 << 20, 1 << 30)


def _pick(rng: random.Random, pool: list[str]) -> str:
    """Mostly one of the latest values, so that operations pile up on program ids."""
    return rng.choice(pool[-3:] if rng.random() < 0.6 else pool)


def _operation(writer: _Writer, pool: list[str], type_: str, divisors: list[str]) -> str:
    """One more value of a type."""
    rng = writer.rng
    left, right = _pick(rng, pool), _pick(rng, pool)

    def number() -> str:
        return writer.constant(type_, _number(rng))

    pick = rng.random()
    if pick < 0.4:
        name = "divsi" if pick < 0.2 else "remsi"
        divisor = rng.choice(divisors) if divisors and rng.random() < 0.25 else None
        by = divisor or writer.constant(type_, rng.choice((2, 3, 4, 5, 8, 16, 32, 100)))
        if rng.random() < 0.1:
            name = name[:-2] + "ui"
        return writer.emit(f"arith.{name} {left}, {by} : {type_}")
    if pick < 0.6:
        predicate = rng.choice(("slt", "sle", "sgt", "sge", "eq", "ne", "ult", "uge"))
        bits = type_.replace("i32", "i1")
        test = writer.emit(f"arith.cmpi {predicate}, {left}, {rng.choice((right, number()))} : {type_}")
        other = writer.emit(f"arith.addi {left}, {number()} : {type_}") if rng.random() < 0.5 else rng.choice(pool)
        types = f"{bits}, {type_}" if type_.startswith("tensor") else type_
        return writer.emit(f"arith.select {test}, {left}, {other} : {types}")
    if pick < 0.75:
        return writer.emit(f"arith.muli {left}, {number()} : {type_}")
    if pick < 0.87:
        return writer.emit(f"arith.{rng.choice(('addi', 'subi'))} {left}, {rng.choice((right, number()))} : {type_}")
    if pick < 0.91:
        by = writer.constant(type_, rng.randrange(0, 6))
        return writer.emit(f"arith.{rng.choice(('shli', 'shrsi', 'shrui'))} {left}, {by} : {type_}")
    if pick < 0.95:
        return writer.emit(f"arith.{rng.choice(('minsi', 'maxsi', 'minui'))} {left}, {number()} : {type_}")
    mask = writer.constant(type_, rng.choice((1, 3, 7, 15, 31, 255, -8, -16, 5)))
    return writer.emit(f"arith.{rng.choice(('andi', 'ori', 'xori'))} {left}, {mask} : {type_}")


def _access(writer: _Writer, pool: list[str], type_: str, pointer: str, size: str, limit: str) -> None:
    """Load, store or add through pointers that are made of a value."""
    rng = writer.rng
    offset, shape = rng.choice(pool[-3:]), type_
    if rng.random() < 0.25:
        wide = type_.replace("i32", "i64")
        offset = writer.emit(f"arith.extsi {offset} : {type_} to {wide}")
        if rng.random() < 0.5:
            by = writer.constant(wide, rng.choice((2, 16, 1000, 1 << 33)))
            offset = writer.emit(f"arith.muli {offset}, {by} : {wide}")
        shape = wide
    pointers = type_.replace("i32", f"!tt.ptr<{size}>")
    values = type_.replace("i32", size)
    base = pointer if type_ == "i32" else writer.emit(f"tt.splat {pointer} : !tt.ptr<{size}> -> {pointers}")
    place = writer.emit(f"tt.addptr {base}, {offset} : {pointers}, {shape}")
    mask = ""
    if rng.random() < 0.4:
        bound = limit if type_ == "i32" else writer.emit(f"tt.splat {limit} : i32 -> {type_}")
        mask = writer.emit(f"arith.cmpi slt, {rng.choice(pool)}, {bound} : {type_}")
    kind = rng.choice(("load", "load", "store"))
    if kind == "load":
        writer.emit(f"tt.load {place}{', ' + mask if mask else ''} : {pointers}")
    else:
        zero = "dense<0.0>" if type_ != "i32" else "0.0"
        if size.startswith("i"):
            zero = zero.replace("0.0", "0")
        value = writer.emit(f"arith.constant {zero} : {values}")
        writer.say(f"tt.store {place}, {value}{', ' + mask if mask else ''} : {pointers}")


def make_program(seed: int) -> Program:
    """The random program of that number."""
    rng = random.Random(f"program address {seed}")
    writer = _Writer(rng)
    size = rng.choice(tuple(ELEMENTS))
    scalars = ["%n", "%m", writer.constant("i32", _number(rng))]
    if rng.random() < 0.3:
        scalars.append(writer.emit(f"tt.get_num_programs {rng.choice('xyz')} : i32"))
    scalars += [writer.emit(f"tt.get_program_id {axis} : i32") for axis in "xyz"[: rng.choice((1, 1, 2, 3))]]
    for _ in range(rng.randrange(1, 6)):
        scalars.append(_operation(writer, scalars, "i32", ["%n"]))
    pick = rng.random()
    loop, again, branch = pick < 0.25, 0.25 < pick < 0.4, 0.4 < pick < 0.5
    result = f"%r{seed}"
    if again:
        first = writer.emit(f"arith.remui {rng.choice(scalars)}, {writer.constant('i32', 40)} : i32")
        bound, other = writer.constant("i32", rng.choice((20, 47, 64))), rng.choice(scalars)
        writer.say(f"{result}:2 = scf.while (%a = {first}, %b = {other}) : (i32, i32) -> (i32, i32) {{")
        writer.indent = "    "
        test = writer.emit(f"arith.cmpi {rng.choice(('slt', 'sle'))}, %a, {bound} : i32")
        writer.say(f"scf.condition({test}) %a, %b : i32, i32")
        writer.say("} do {")
        writer.say("^bb0(%i: i32, %c: i32):")
        scalars += ["%i", "%c", "%i"]
    if loop:
        first, last, step = (writer.constant("i32", number) for number in (rng.randrange(3), rng.randrange(4, 9), 2))
        carried = rng.choice(scalars)
        writer.say(f"{result} = scf.for %i = {first} to {last} step {step} iter_args(%c = {carried}) -> (i32) : i32 {{")
        writer.indent = "    "
        outer = list(scalars)
        scalars += ["%i", "%c", "%i"]
    elif branch:
        test = writer.emit(f"arith.cmpi slt, {rng.choice(scalars)}, {writer.constant('i32', 3)} : i32")
        writer.say(f"scf.if {test} {{")
        writer.indent = "    "
    _body(writer, scalars, size)
    if loop:
        grown = "%c"
        if rng.random() < 0.8:
            by = rng.choice(outer) if rng.random() < 0.5 else writer.constant("i32", _number(rng))
            grown = writer.emit(f"arith.addi %c, {by} : i32")
        writer.say(f"scf.yield {grown} : i32")
    if again:
        grown, moved = writer.constant("i32", rng.choice((3, 7, 16))), writer.constant("i32", _number(rng))
        grown, moved = writer.emit(f"arith.addi %i, {grown} : i32"), writer.emit(f"arith.addi %c, {moved} : i32")
        writer.say(f"scf.yield {grown}, {moved} : i32, i32")
    if loop or branch or again:
        writer.indent = "  "
        writer.say("}")
    if loop or again:
        _access(writer, [result if loop else f"{result}#0"], "i32", "%p", size, "%n")
    body = "\n".join(writer.lines)
    text = (
        f"tt.func public @f(%p: !tt.ptr<{size}> {{tt.divisibility = 16 : i32}}, %n: i32, %m: i32) {{\n{body}\n"
        "  tt.return\n}\n"
    )
    arguments = [BASE + 16 * rng.randrange(64), rng.choice((1, 3, 8, 17, 64, 100)), rng.choice((0, 5, 16, 1000, -7))]
    return Program(text, rng.choice(GRIDS), arguments)


def _body(writer: _Writer, scalars: list[str], size: str) -> None:
    rng = writer.rng
    if rng.random() < 0.2:
        _access(writer, scalars, "i32", "%p", size, "%n")
    rows, columns = rng.choice((4, 8)), rng.choice((8, 16, 32))
    is_matrix = rng.random() < 0.4
    line = f"tensor<{columns}xi32>"
    row = writer.emit(f"tt.make_range {{start = 0 : i32, end = {columns} : i32}} : {line}")
    if is_matrix:
        type_ = f"tensor<{rows}x{columns}xi32>"
        high = f"tensor<{rows}xi32>"
        column = writer.emit(f"tt.make_range {{start = 0 : i32, end = {rows} : i32}} : {high}")
        low, tall = f"tensor<1x{columns}xi32>", f"tensor<{rows}x1xi32>"
        row = writer.emit(f"tt.expand_dims {row} {{axis = 0 : i32}} : {line} -> {low}")
        column = writer.emit(f"tt.expand_dims {column} {{axis = 1 : i32}} : {high} -> {tall}")
        tensors = [
            writer.emit(f"tt.broadcast {row} : {low} -> {type_}"),
            writer.emit(f"tt.broadcast {column} : {tall} -> {type_}"),
        ]
        by = writer.constant(type_, _number(rng))
        tensors.append(writer.emit(f"arith.muli {tensors[1]}, {by} : {type_}"))
        tensors.append(writer.emit(f"arith.addi {tensors[0]}, {tensors[-1]} : {type_}"))
    else:
        type_, tensors = line, [row]
    divisors = [writer.emit(f"tt.splat %n : i32 -> {type_}")]
    for scalar in {_pick(rng, scalars): None, _pick(rng, scalars): None}:
        tensors.append(writer.emit(f"tt.splat {scalar} : i32 -> {type_}"))
        tensors.append(writer.emit(f"arith.addi {tensors[-1]}, {rng.choice(tensors[:-1])} : {type_}"))
    for _ in range(rng.randrange(0, 5)):
        tensors.append(_operation(writer, tensors, type_, divisors))
    if rng.random() < 0.5:
        place = writer.emit(f"tt.splat {scalars[-1]} : i32 -> {type_}")
        tensors.append(writer.emit(f"arith.addi {tensors[-1]}, {place} : {type_}"))
    for _ in range(rng.randrange(1, 4)):
        _access(writer, tensors, type_, "%p", size, "%n")
    if rng.random() < 0.1:
        # An address that comes from memory.
        found = writer.emit(f"tt.splat %p : !tt.ptr<{size}> -> {type_.replace('i32', f'!tt.ptr<{size}>')}")
        cast = writer.emit(
            f"tt.bitcast {found} : {type_.replace('i32', f'!tt.ptr<{size}>')} -> {type_.replace('i32', '!tt.ptr<i32>')}"
        )
        loaded = writer.emit(f"tt.load {cast} : {type_.replace('i32', '!tt.ptr<i32>')}")
        _access(writer, [loaded], type_, "%p", size, "%n")
