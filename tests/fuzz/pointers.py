"""Random addresses and masks, lowered to linalg: the same bytes as numpy computes, and no access where a mask is off.

Elements have any type; a load mostly says nothing of what its mask hides; pointers are those of one of up to three
arrays, two of which may be the same.

A program is a tree of expressions, of which the text of a kernel and the addresses by numpy are made. Arrays end right
after the elements that the program touches, so that any access beside them is a fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz.pool import Ending, report
from tlx_xdsl import CompilationError, interpret_text
from tlx_xdsl.cpu.linalg.triton_to_linalg import TritonToLinalgPass
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
PLAIN = ("addi", "addi", "subi", "rsubi", "muli", "remsi", "divsi", "digits", "shl", "wide", "twice")
OTHERS = ("remsi", "remui", "andi", "divui", "select", "minsi", "gather", "shrsi", "ori")
"""Operations of addresses: as kernels mostly have them, and those that make them irregular."""
ORDERS = ("eq", "slt", "sle", "sgt", "sge")
ELEMENTS: dict[str, tuple[Any, str]] = {
    "f32": (np.float32, ""), "f64": (np.float64, "arith.truncf"), "f16": (np.float16, "arith.extf"),
    "bf16": (ml_dtypes.bfloat16, "arith.extf"), "i8": (np.int8, "arith.sitofp"), "i16": (np.int16, "arith.sitofp"),
    "i32": (np.int32, "arith.sitofp"), "i64": (np.int64, "arith.sitofp"), "i1": (np.bool_, "arith.uitofp"),
    "f8E5M2": (ml_dtypes.float8_e5m2, "tt.fp_to_fp"), "f8E4M3FN": (ml_dtypes.float8_e4m3fn, "tt.fp_to_fp"),
}  # fmt: skip
"""The types of elements: the one in numpy, and the operation that makes it f32."""
UNTOUCHED = 1
"""What elements are that are not written."""
PROGRAMS = 2
INDICES = 16
"""Elements of the array that gathers take their indices from."""
SPREAD = 1 << 16
"""Elements between the first and the last that a program may touch."""

Env = dict[str, Any]


@dataclass(eq=False)
class Expr:
    """A scalar, a vector along dimension 0 or 1, or a block, of i32 or i1."""

    op: str
    args: tuple[Any, ...] = ()
    space: str = "scalar"
    """`scalar`, `0`, `1` or `block`."""
    element: str = "i32"


@dataclass
class Program:
    """A kernel's expressions, each of which is evaluated in each turn."""

    sizes: tuple[int, int]
    offset: Expr
    mask: Expr | None
    store_mask: Expr | None
    element: str
    has_other: bool
    """Without it the masked elements are 0."""
    outer: int
    inner: int
    """Turns of the loops; 0: there is no loop."""
    steps: tuple[Expr, Expr]
    """What each turn of a loop adds to the pointers."""
    carries_on: bool
    """True if the outer loop goes on where the inner one ends."""
    choice: str
    """How one of the bases is chosen: ``, `select`, `three`, `if`, or `elements`."""
    condition: Expr
    second: Expr
    """The condition of the third base, where the first does not hold."""
    is_same: bool
    """True if the second base is the first one."""
    store_choice: Expr | None
    """The condition under which the first of two results is written."""
    arguments: dict[str, int]
    indices: list[int]
    lines: list[str] = field(default_factory=list[str])

    @property
    def is_sum(self) -> bool:
        """True if the results are sums, of f32; without loops they are what was loaded."""
        return bool(self.outer or self.inner)


# --- making -----------------------------------------------------------------------------------------------------------


def program(number: int) -> Program:
    """The program of a number, always the same."""
    rng = random.Random(number)
    sizes = (rng.choice((1, 2, 4, 8)), rng.choice((1, 2, 4, 8, 16)))
    outer, inner = rng.choice((0, 0, 2, 3)), rng.choice((0, 0, 2, 3))
    scalars = [Expr("arg", (name,)) for name in ("n", "m", "s", "t")] + [Expr("pid")]
    counters = [Expr("counter", (name,)) for name, turns in (("i", outer), ("j", inner)) if turns]
    make = _Maker(rng, scalars + counters, plain=rng.random() < 0.5)
    offset = make.offset()
    choice = rng.choice(("", "", "", "select", "three", "if", "" if make.plain else "elements"))
    condition = make.mask(2) if choice == "elements" else make.bit()
    return Program(
        sizes, offset, make.mask(3) if rng.random() < 0.8 else None, make.mask(2) if rng.random() < 0.6 else None,
        rng.choice(list(ELEMENTS)), rng.random() < 0.4, outer, inner, (make.step(), make.step()), rng.random() < 0.5,
        choice, condition, make.bit(), rng.random() < 0.2, make.bit() if rng.random() < 0.3 else None,
        {"n": rng.choice((0, 1, 3, 5, 7, 9, 13, 30, -2)), "m": rng.choice((1, 2, 3, 5, 6, 17, 100)),
         "s": rng.choice((0, 1, 2, 3, 7, 16, -1, -3)), "t": rng.choice((1, 2, 5, 20, -4))},
        [rng.randrange(0, 40) for _ in range(INDICES)],
    )  # fmt: skip


@dataclass
class _Maker:
    rng: random.Random
    scalars: Sequence[Expr]
    plain: bool
    """True for addresses and masks as kernels mostly have them."""

    def number(self) -> Expr:
        """A scalar."""
        if self.rng.random() < 0.4:
            return Expr("const", (self.rng.choice((-5, -1, 0, 1, 2, 3, 4, 8, 10)),))
        found = self.rng.choice(self.scalars)
        if self.rng.random() < 0.3:
            return Expr(self.rng.choice(("addi", "subi", "muli", "maxsi")), (found, self.number()))
        return found

    def bit(self) -> Expr:
        """A scalar i1."""
        return Expr("cmpi", (self.rng.choice(PREDICATES), self.number(), self.number()), element="i1")

    def step(self) -> Expr:
        """A scalar that is small."""
        names = {"arg", "const"}
        fitting = [each for each in self.scalars if each.op in names]
        return self.rng.choice([Expr("const", (self.rng.choice((1, 4, -2, 16)),)), *fitting])

    def vector(self, dim: str, depth: int) -> Expr:  # noqa: C901
        """Integers along a dimension."""
        if depth == 0:
            return Expr("range", (), dim)
        x = self.vector(dim, depth - 1)

        def both(op: str, a: Expr, b: Expr) -> Expr:
            return Expr(op, (a, b), dim)

        def constant(*numbers: int) -> Expr:
            return Expr("const", (self.rng.choice(numbers),))

        match self.rng.choice(PLAIN if self.plain else PLAIN + OTHERS):
            case "addi" | "subi" as op:
                return both(op, x, self.number())
            case "rsubi":
                return both("subi", self.number(), x)
            case "muli":
                return both("muli", x, constant(-2, -1, 2, 3) if self.rng.random() < 0.6 else Expr("arg", ("s",)))
            case "remsi" | "remui" | "divsi" | "divui" as op:
                return both(op, x, Expr("arg", ("m",)) if self.rng.random() < 0.6 else constant(3, 4, 5, -7, 64))
            case "digits":
                # A row and a column, moved and put together.
                divisor = Expr("arg", ("m",)) if self.rng.random() < 0.6 else constant(2, 4, 5, 7)
                row = both("addi", both("divsi", x, divisor), constant(-1, 0, 1, 2))
                if self.rng.random() < 0.3:
                    row = both("remsi", row, constant(2, 3, 5))
                return both("addi", both("muli", row, self.number()), both("remsi", x, divisor))
            case "andi":
                return both("andi", x, constant(1, 3, 7, 5, 127))
            case "shl":
                return both("shli", x, constant(0, 1, 2))
            case "shrsi":
                return both("shrsi", x, constant(0, 1, 2))
            case "ori":
                return both("ori", x, constant(0, 1, 4))
            case "minsi":
                return both("minsi", x, self.number())
            case "select":
                condition = self.bit() if self.rng.random() < 0.6 else self.compare(dim)
                return Expr("select", (condition, x, self.vector(dim, depth - 1)), dim)
            case "gather":
                return Expr("gather", (both("andi", x, Expr("const", (INDICES - 1,))),), dim)
            case "wide":
                return Expr("wide", (x,), dim)
            case _:
                return both("addi", x, self.vector(dim, depth - 1))

    def offset(self) -> Expr:
        """A block of offsets."""
        rng = self.rng
        parts: list[Expr] = []
        for dim in "01":
            x = self.vector(dim, rng.choice((0, 1, 1, 2, 3)))
            scale = rng.choice((Expr("const", (1,)), Expr("const", (rng.choice((3, 16, -8)),)), Expr("arg", ("t",))))
            parts.append(Expr("spread", (Expr("muli", (x, scale), dim),), "block"))
        total = Expr("addi", (parts[0], parts[1]), "block")
        if not self.plain and rng.random() < 0.3:
            total = Expr(rng.choice(("remsi", "remui")), (total, Expr("arg", ("m",))), "block")
        return total

    def compare(self, dim: str) -> Expr:
        """A comparison along a dimension, of either order."""
        sides: list[Expr] = [
            self.vector(dim, self.rng.choice((0, 0, 1) if self.plain else (0, 0, 1, 2))),
            self.number(),
        ]
        self.rng.shuffle(sides)
        return Expr("cmpi", (self.rng.choice(ORDERS if self.plain else PREDICATES), *sides), dim, "i1")

    def mask(self, depth: int) -> Expr:
        """A block of i1."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            if rng.random() < 0.15:
                return Expr("splat", (self.bit(),), "block", "i1")
            if rng.random() < 0.1:
                return Expr("const", (rng.choice((0, 1)),), "block", "i1")
            return Expr("spread", (self.compare(rng.choice("01")),), "block", "i1")
        match rng.choice(
            ("andi", "andi", "not") if self.plain else ("andi", "andi", "andi", "ori", "xori", "not", "select")
        ):
            case "not":
                return Expr("xori", (self.mask(depth - 1), Expr("const", (1,), "block", "i1")), "block", "i1")
            case "select":
                condition = self.bit() if rng.random() < 0.5 else self.mask(depth - 1)
                return Expr("select", (condition, self.mask(depth - 1), self.mask(depth - 1)), "block", "i1")
            case op:
                return Expr(op, (self.mask(depth - 1), self.mask(depth - 1)), "block", "i1")


# --- by numpy ---------------------------------------------------------------------------------------------------------


def evaluate(expr: Expr, p: Program, env: Env) -> Any:
    """The value of an expression, of shape (), (M, 1), (1, N) or (M, N)."""
    with np.errstate(all="ignore"):
        return _value(expr, p, env)


def _value(expr: Expr, p: Program, env: Env) -> Any:
    def value(each: Expr) -> Any:
        return _value(each, p, env)

    match expr.op, expr.args:
        case "arg", (name,):
            return np.asarray(p.arguments[name], np.int32)
        case "pid", ():
            return np.asarray(env["pid"], np.int32)
        case "counter", (name,):
            return np.asarray(env[name], np.int32)
        case "const", (number,):
            return np.asarray(number, np.bool_ if expr.element == "i1" else np.int32)
        case "range", ():
            size = p.sizes[int(expr.space)]
            return np.arange(size, dtype=np.int32).reshape((-1, 1) if expr.space == "0" else (1, -1))
        case "cmpi", (predicate, a, b):
            return _compare(predicate, value(a), value(b))
        case "select", (condition, a, b):
            return np.where(value(condition), value(a), value(b))
        case "gather", (a,):
            return np.asarray(p.indices, np.int32)[value(a)]
        case (("wide" | "spread" | "splat"), (a,)):
            return value(a)
        case op, (a, b):
            return _arith(op, value(a), value(b))
        case _:
            raise AssertionError(expr.op)


def _compare(predicate: str, a: Any, b: Any) -> Any:
    if predicate[0] == "u":
        a, b = a.astype(np.uint32), b.astype(np.uint32)
    names = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    return getattr(np, names[predicate[-2:]])(a, b)


def _arith(op: str, a: Any, b: Any) -> Any:
    match op:
        case "addi" | "subi" | "muli":
            function = {"addi": np.add, "subi": np.subtract, "muli": np.multiply}[op]
            return function(a.astype(np.int64), b.astype(np.int64)).astype(np.int32)
        case "remsi":
            return np.fmod(a, b).astype(np.int32)
        case "remui" | "divui":
            function = np.remainder if op == "remui" else np.floor_divide
            return function(a.astype(np.uint32), b.astype(np.uint32)).astype(np.int32)
        case "divsi":
            quotient = np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64))
            return (quotient * np.sign(a) * np.sign(b)).astype(np.int32)
        case "shli":
            return (a.astype(np.int64) << b).astype(np.int32)
        case "shrsi":
            return a >> b
        case "minsi":
            return np.minimum(a, b)
        case "maxsi":
            return np.maximum(a, b)
        case "andi" | "ori" | "xori":
            return {"andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor}[op](a, b)
        case _:
            raise AssertionError(op)


@dataclass
class Turn:
    """The addresses of one turn, relative to the bases."""

    program: int
    offset: Any
    mask: Any
    base: Any
    """The number of the base."""


def turns(p: Program) -> list[Turn]:
    """All turns of all programs, in order."""
    found: list[Turn] = []
    for pid in range(PROGRAMS):
        start: dict[str, Any] = {"pid": pid, "i": 0, "j": 0}
        first = np.broadcast_to(evaluate(p.offset, p, start), p.sizes).astype(np.int64)
        condition = evaluate(p.condition, p, start) if p.choice else np.True_
        last = 1 if p.choice != "three" or evaluate(p.second, p, start) else 2
        base = np.broadcast_to(np.where(condition, 0, last), p.sizes)
        by = [int(evaluate(step, p, start)) for step in p.steps]
        moved = 0
        for i in range(p.outer or 1):
            inside = moved
            for j in range(p.inner or 1):
                env: dict[str, Any] = {"pid": pid, "i": i, "j": j}
                mask = np.True_ if p.mask is None else evaluate(p.mask, p, env)
                found.append(Turn(pid, first + inside, np.broadcast_to(mask, p.sizes), base))
                if p.inner:
                    inside += by[1]
            if p.outer:
                moved = (inside if p.carries_on and p.inner else moved) + by[0]
    return found


# --- text -------------------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(self, p: Program):
        self.p = p
        self.lines: list[str] = []
        self.count = 0
        self.indent = "  "
        self.counters = {"i": "%i", "j": "%j"}

    def put(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"{self.indent}%v{self.count} = {text}")
        return f"%v{self.count}"

    def type(self, space: str, element: str) -> str:
        m, n = self.p.sizes
        shapes = {"scalar": "", "0": f"{m}x", "1": f"{n}x", "block": f"{m}x{n}x"}
        return element if space == "scalar" else f"tensor<{shapes[space]}{element}>"

    def as_(self, expr: Expr, space: str) -> str:
        """An expression in a space that its own goes into."""
        name = self.write(expr)
        if expr.space == space:
            return name
        assert expr.space == "scalar", (expr.op, expr.space, space)
        return self.put(f"tt.splat {name} : {expr.element} -> {self.type(space, expr.element)}")

    def write(self, expr: Expr) -> str:  # noqa: C901
        """Write an expression; gives its name."""
        space, type_ = expr.space, self.type(expr.space, expr.element)
        match expr.op, expr.args:
            case "arg", (name,):
                return f"%{name}"
            case "pid", ():
                return "%pid"
            case "counter", (name,):
                return self.counters[name]
            case "const", (number,):
                if space == "scalar":
                    return self.put(f"arith.constant {number} : i32")
                return self.put(f"arith.constant dense<{'true' if number else 'false'}> : {type_}")
            case "range", ():
                return self.put(f"tt.make_range {{start = 0 : i32, end = {self.p.sizes[int(space)]} : i32}} : {type_}")
            case "cmpi", (predicate, a, b):
                names = [self.as_(each, space) for each in (a, b)]
                return self.put(f"arith.cmpi {predicate}, {', '.join(names)} : {self.type(space, 'i32')}")
            case "select", (condition, a, b):
                names = [self.as_(each, space) for each in (a, b)]
                chosen = self.write(condition)
                if condition.space != "scalar":
                    return self.put(f"arith.select {chosen}, {', '.join(names)} : {self.type(space, 'i1')}, {type_}")
                return self.put(f"arith.select {chosen}, {', '.join(names)} : {type_}")
            case "gather", (a,):
                pointers = self.type(space, "!tt.ptr<i32>")
                bases = self.put(f"tt.splat %indices : !tt.ptr<i32> -> {pointers}")
                at = self.put(f"tt.addptr {bases}, {self.write(a)} : {pointers}, {type_}")
                return self.put(f"tt.load {at} : {pointers}")
            case "wide", (a,):
                wide = self.type(space, "i64")
                return self.put(
                    f"arith.trunci {self.put(f'arith.extsi {self.write(a)} : {type_} to {wide}')} : {wide} to {type_}"
                )
            case "splat", (a,):
                return self.as_(a, space)
            case "spread", (a,):
                m, n = self.p.sizes
                column = f"tensor<{m}x1x{a.element}>" if a.space == "0" else f"tensor<1x{n}x{a.element}>"
                axis = 1 if a.space == "0" else 0
                source = self.type(a.space, a.element)
                name = self.put(f"tt.expand_dims {self.write(a)} {{axis = {axis} : i32}} : {source} -> {column}")
                return name if column == type_ else self.put(f"tt.broadcast {name} : {column} -> {type_}")
            case op, (a, b):
                names = [self.as_(each, space) for each in (a, b)]
                return self.put(f"arith.{op} {', '.join(names)} : {type_}")
            case _:
                raise AssertionError(expr.op)

    def linear(self) -> str:
        """The position in the block, row by row."""
        n = Expr("const", (self.p.sizes[1],))
        rows = Expr("spread", (Expr("muli", (Expr("range", (), "0"), n), "0"),), "block")
        return self.write(Expr("addi", (rows, Expr("spread", (Expr("range", (), "1"),), "block")), "block"))


def text(p: Program) -> str:
    """The kernel, which adds what it loads in all turns, and writes the sums."""
    w = _Writer(p)
    m, n = p.sizes
    pointers, numbers = w.type("block", f"!tt.ptr<{p.element}>"), w.type("block", "i32")
    block = w.type("block", "f32" if p.is_sum else p.element)
    w.lines.append("  %pid = tt.get_program_id x : i32")
    w.lines.append("  %i = arith.constant 0 : i32\n  %j = arith.constant 0 : i32")
    offset = w.write(p.offset)
    current = _chosen(w, p, offset, pointers, numbers)
    steps = [w.as_(each, "block") for each in p.steps]
    sums = w.put(f"arith.constant dense<0.0> : {block}") if p.is_sum else ""
    w.lines.append("  %zero = arith.constant 0 : i32\n  %one = arith.constant 1 : i32")
    w.lines.append(f"  %outer = arith.constant {p.outer} : i32\n  %inner = arith.constant {p.inner} : i32")
    types = f"{pointers}, {block}"
    if p.outer:
        carried = f"iter_args(%p1 = {current}, %a1 = {sums}) -> ({types}) : i32 {{"
        w.lines.append(f"  %po, %ao = scf.for %i2 = %zero to %outer step %one {carried}")
        current, sums, w.counters["i"] = "%p1", "%a1", "%i2"
    if p.inner:
        carried = f"iter_args(%p2 = {current}, %a2 = {sums}) -> ({types}) : i32 {{"
        w.lines.append(f"  %pi, %ai = scf.for %j2 = %zero to %inner step %one {carried}")
        before, current, sums, w.counters["j"] = current, "%p2", "%a2", "%j2"
    sums = _add_loaded(w, p, current, sums, pointers)
    if p.inner:
        moved = w.put(f"tt.addptr {current}, {steps[1]} : {pointers}, {numbers}")
        w.lines.append(f"  scf.yield {moved}, {sums} : {types}\n  }}")
        current, sums = "%pi", "%ai"
        if not p.carries_on:
            current = before
    if p.outer:
        moved = w.put(f"tt.addptr {current}, {steps[0]} : {pointers}, {numbers}")
        w.lines.append(f"  scf.yield {moved}, {sums} : {types}\n  }}")
        sums = "%ao"
    w.counters = {"i": "%i", "j": "%j"}
    _store(w, p, sums, m * n)
    parameters = ", ".join(f"%{name}: i32" for name in p.arguments)
    pointers = ", ".join(f"%{name}: !tt.ptr<{p.element}>" for name in "xyz")
    results = ", ".join(f"%{name}: !tt.ptr<{_result(p)}>" for name in ("out", "out2"))
    pointers = f"{pointers}, {results}, %indices: !tt.ptr<i32>"
    head = f"tt.func public @kernel({pointers}, {parameters}, %first: i32) {{"
    return "\n".join([head, *w.lines, "  tt.return", "}"])


def _chosen(w: _Writer, p: Program, offset: str, pointers: str, numbers: str) -> str:
    def moved(base: str) -> str:
        shifted = w.put(f"tt.addptr {base}, %first : {scalar}, i32")
        return w.put(f"tt.splat {shifted} : {scalar} -> {pointers}")

    scalar = f"!tt.ptr<{p.element}>"

    if not p.choice:
        return w.put(f"tt.addptr {moved('%x')}, {offset} : {pointers}, {numbers}")
    condition = w.write(p.condition)
    if p.choice == "elements":
        both = [w.put(f"tt.addptr {moved(base)}, {offset} : {pointers}, {numbers}") for base in ("%x", "%y")]
        return w.put(f"arith.select {condition}, {', '.join(both)} : {w.type('block', 'i1')}, {pointers}")
    if p.choice in ("select", "three"):
        other = "%y"
        if p.choice == "three":
            other = w.put(f"arith.select {w.write(p.second)}, %y, %z : {scalar}")
        base = w.put(f"arith.select {condition}, %x, {other} : {scalar}")
        return w.put(f"tt.addptr {moved(base)}, {offset} : {pointers}, {numbers}")
    w.lines.append(f"  %chosen = scf.if {condition} -> ({pointers}) {{")
    first = w.put(f"tt.addptr {moved('%x')}, {offset} : {pointers}, {numbers}")
    w.lines.append(f"  scf.yield {first} : {pointers}\n  }} else {{")
    second = w.put(f"tt.addptr {moved('%y')}, {offset} : {pointers}, {numbers}")
    w.lines.append(f"  scf.yield {second} : {pointers}\n  }}")
    return "%chosen"


def _result(p: Program) -> str:
    return "f32" if p.is_sum else p.element


def _add_loaded(w: _Writer, p: Program, current: str, sums: str, pointers: str) -> str:
    operands, loaded = [current], w.type("block", p.element)
    if p.mask is not None:
        operands.append(w.write(p.mask))
        if p.has_other:
            hidden = "true" if p.element == "i1" else "-7" if p.element[0] == "i" else "-7.0"
            operands.append(w.put(f"arith.constant dense<{hidden}> : {loaded}"))
    value = w.put(f"tt.load {', '.join(operands)} : {pointers}")
    if not p.is_sum:
        return value
    block = w.type("block", "f32")
    if conversion := ELEMENTS[p.element][1]:
        value = w.put(f"{conversion} {value} : {loaded} {'->' if conversion[0] == 't' else 'to'} {block}")
    return w.put(f"arith.addf {sums}, {value} : {block}")


def _store(w: _Writer, p: Program, sums: str, count: int) -> None:
    scalar = f"!tt.ptr<{_result(p)}>"
    pointers = w.type("block", scalar)
    size = w.put(f"arith.constant {count} : i32")
    shift = w.put(f"arith.muli %pid, {size} : i32")
    out = "%out"
    if p.store_choice is not None:
        out = w.put(f"arith.select {w.write(p.store_choice)}, %out, %out2 : {scalar}")
    out = w.put(f"tt.addptr {out}, {shift} : {scalar}, i32")
    bases = w.put(f"tt.splat {out} : {scalar} -> {pointers}")
    at = w.put(f"tt.addptr {bases}, {w.linear()} : {pointers}, {w.type('block', 'i32')}")
    mask = "" if p.store_mask is None else f", {w.write(p.store_mask)}"
    w.lines.append(f"  tt.store {at}, {sums}{mask} : {pointers}")


# --- trials -----------------------------------------------------------------------------------------------------------


def lowered(source: str) -> tuple[str, list[str]]:
    """The module in linalg, and the remarks on its accesses."""
    module = parse_module(source, filename="pointers.mlir")
    with collected_diagnostics() as found:
        TritonToLinalgPass().apply(make_context(), module)
    verify_module(module)
    return print_module(module), [each.message for each in found]


def arrays(p: Program, seed: int) -> tuple[list[Any], list[Any]] | None:
    """The arguments of the launch, and its two results after it; None where addresses are too far apart."""
    rng = np.random.default_rng(seed)
    found = turns(p)
    touched = [turn.offset[turn.mask] for turn in found if turn.mask.any()]
    low = min((int(each.min()) for each in touched), default=0)
    high = max((int(each.max()) for each in touched), default=0)
    if high - low > SPREAD:
        return None
    dtype = ELEMENTS[p.element][0]
    # Half of them are false.
    x, y, z = (np.maximum(rng.integers(-50, 50, high - low + 1), -50 if dtype is not np.bool_ else 0).astype(dtype)
               for _ in range(3))  # fmt: skip
    if p.is_same:
        y = x
    m, n = p.sizes
    outs = [np.full(PROGRAMS * m * n, UNTOUCHED, ELEMENTS[_result(p)][0]) for _ in range(2)]
    expected = [each.reshape(PROGRAMS, m, n).copy() for each in outs]
    sums = np.zeros((PROGRAMS, m, n), ELEMENTS[_result(p)][0])
    hidden = np.array(-7 if p.has_other else 0).astype(dtype)
    for turn in found:
        at = np.where(turn.mask, turn.offset - low, 0)
        loaded = np.where(turn.mask, np.choose(turn.base, [each[at] for each in (x, y, z)]), hidden)
        sums[turn.program] = sums[turn.program] + loaded.astype(np.float32) if p.is_sum else loaded
    for pid in range(PROGRAMS):
        env = {"pid": pid, "i": 0, "j": 0}
        mask = True if p.store_mask is None else evaluate(p.store_mask, p, env)
        target = expected[0 if p.store_choice is None or evaluate(p.store_choice, p, env) else 1]
        target[pid] = np.where(np.broadcast_to(mask, (m, n)), sums[pid], target[pid])
    values = [x, y, z, *outs, np.asarray(p.indices, np.int32), *p.arguments.values(), -low]
    return values, [each.reshape(-1) for each in expected]


def guarded(values: Sequence[Any], guard: Callable[[Any], Any]) -> list[Any]:
    """The arguments of a launch with what `guard` makes of each array: one for those that are the same."""
    made = {id(each): guard(each) for each in values if isinstance(each, np.ndarray)}
    return [made.get(id(each), each) for each in values]


def mismatch(given: Sequence[Any], expected: Sequence[Any]) -> str | None:
    """Say how the results of a launch differ from the expected ones."""
    for found, right in zip(given[3:5], expected, strict=True):
        if found.tobytes() != right.tobytes():
            return f"{found} is not {right}"
    return None


def trial(number: int) -> Ending:
    """Lower a program, run it, and compare; programs with addresses that are too far apart are left out."""
    p = program(number)
    if (made := arrays(p, number)) is None:
        return Ending("far")
    values, expected = made
    try:
        linalg, remarks = lowered(text(p))
    except CompilationError as error:
        # All that the programs are made of has a lowering.
        return Ending("wrong", f"refused: {error}")
    for what, module in (("tt", text(p)), ("linalg", linalg)):
        given = guarded(values, np.copy)
        try:
            interpret_text(module, PROGRAMS, given)
        except CompilationError as error:
            return Ending("wrong", f"{what}: {error}")
        if (said := mismatch(given, expected)) is not None:
            return Ending("wrong", f"{what}: {said}")
    grades = [word for remark in remarks for word in ("half-structured", "unstructured") if f"is {word}" in remark]
    return Ending(f"ok, {max(grades, default='structured')}")


def show(number: int) -> str:
    """A program, and what becomes of it."""
    source = text(program(number))
    try:
        return f"{source}\n// -----\n{lowered(source)[0]}"
    except CompilationError as error:
        return f"{source}\n{error}"


if __name__ == "__main__":
    raise SystemExit(report("pointers", trial, show))
