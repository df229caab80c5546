"""Random programs of `tl`, run by the interpreter at two stages and by numpy: all give the same numbers.

A program is one text. Numpy runs it with the `tl` of `tests/fuzz/numpy_language.py`, in which every value is an array
of the type that the text says: where types meet they are equal, so that no rule of promotion is in question.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.fuzz import numpy_language
from tests.fuzz.pool import Ending, report
from tlx_xdsl import CompilationError, interpret, interpret_text
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.pipelines import run_pipeline, ttgir_pipeline

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTEGERS, FLOATS = SIGNED + UNSIGNED, ("float16", "bfloat16", "float32", "float64")
BYTES = ("float8e5", "float8e4nv", "int1")
"""Types that are moved and converted, but hardly computed with."""
EVERY = INTEGERS + FLOATS + BYTES
SPELLED = {**{name: name.replace("uint", "u").replace("int", "i") for name in (*INTEGERS, "int1")},
           **{name: name.replace("float", "fp") for name in FLOATS + BYTES[:2]}, "bfloat16": "bf16"}  # fmt: skip
WIDER = {**dict.fromkeys(("int1", "int8", "int16"), "int32"), **dict.fromkeys(("uint8", "uint16"), "uint32"),
         **dict.fromkeys(("float16", "bfloat16", "float8e5", "float8e4nv"), "float32")}  # fmt: skip
"""Types to compute in for the elements of a narrow one."""
LONGEST = 70
"""Elements of a row."""
WIDE = ("int32", "int64", "uint32", "uint64")
SHAPES = ((), (16,), (16, 16))
INDEX = {(): "n", (16,): "row", (16, 16): "grid"}

HEADER = """\
import tlx_xdsl
import tlx_xdsl.language as tl

@tlx_xdsl.jit
def tdiv(a, b):
    return a // b

@tlx_xdsl.jit
def trem(a, b):
    return a % b

@tlx_xdsl.jit
def kernel({parameters}):
    row = tl.arange(0, 16)
    grid = tl.reshape(tl.arange(0, 256), (16, 16))
"""


@dataclass(frozen=True)
class Variable:
    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass
class Program:
    """The lines of a kernel, and its arrays: inputs by type, scratch memory of atomics, and what it writes."""

    random: random.Random
    n: int
    """The run-time argument: a length, too."""
    lines: list[str] = field(default_factory=list[str])
    arrays: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """Type and number of elements."""
    same: dict[str, str] = field(default_factory=dict[str, str])
    """Arrays that are others under a second name."""
    variables: list[Variable] = field(default_factory=list[Variable])
    indent: str = "    "
    fresh: int = 0

    @property
    def text(self) -> str:
        """The file."""
        return HEADER.format(parameters=", ".join([*self.arrays, "n"])) + "\n".join(self.lines) + "\n"

    def say(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def name(self, letter: str) -> str:
        self.fresh += 1
        return f"{letter}{self.fresh}"

    def bind(self, text: str, dtype: str, shape: tuple[int, ...]) -> Variable:
        """Give an expression a name."""
        made = Variable(self.name("v"), dtype, shape)
        self.say(f"{made.name} = {text}")
        self.variables.append(made)
        return made

    def array(self, letter: str, dtype: str, size: int) -> str:
        name = self.name(letter)
        self.arrays[name] = (dtype, size)
        return name

    # --- values ------------------------------------------------------------------------------------------------------

    def some(self, dtypes: tuple[str, ...], shape: tuple[int, ...]) -> Variable:
        """A variable of one of these types, of this shape: one that there is, a cast of one, or a new load."""
        found = [v for v in self.variables if v.dtype in dtypes and v.shape == shape]
        if found and self.random.random() < 0.8:
            return self.random.choice(found)
        dtype = self.random.choice(dtypes)
        others = [v for v in self.variables if v.shape == shape]
        if others and self.random.random() < 0.5:
            return self.cast(self.random.choice(others), dtype)
        return self.load(dtype, shape)

    def load(self, dtype: str, shape: tuple[int, ...]) -> Variable:
        index = INDEX[shape]
        if not shape or self.random.random() < 0.4:
            return self.bind(f"tl.load({self.array('x', dtype, 256)} + {index})", dtype, shape)
        length, text = self.length()
        mask, size = f"{index} < {text}", length
        if self.random.random() < 0.4:
            mask, size = f"{index} % {self.random.randint(2, 5)} != 0", 256
        return self.bind(f"tl.load({self.array('x', dtype, size)} + {index}, mask={mask}{self.other()})", dtype, shape)

    def length(self) -> tuple[int, str]:
        """A length that the compiler knows, or the one of the launch."""
        if self.random.random() < 0.4:
            return self.n, "n"
        length = self.random.randint(1, LONGEST)
        return length, str(length)

    def other(self) -> str:
        """The argument of a masked load, which mostly says nothing of what the mask hides."""
        return f", other={self.random.choice((None, None, None, 0.0, 1.0, 9.0))}"

    def condition(self) -> str:
        """A scalar condition."""
        scalar = self.some(("int32", "int64"), ())
        return self.random.choice(
            (f"{scalar.name} > {self.random.randint(-5, 100)}", f"n % {self.random.randint(2, 5)} == 1")
        )

    def cast(self, value: Variable, dtype: str) -> Variable:
        """A cast with one right result: floats that an integer can't hold become 0 first."""
        text = value.name
        if value.dtype in BYTES[:2] or (
            dtype in ("bfloat16", *BYTES[:2]) and value.dtype in ("float64", "int1", *INTEGERS)
        ):
            return self.cast(self.bind(f"tl.cast({text}, tl.float32)", "float32", value.shape), dtype)
        if value.dtype in FLOATS and dtype in BYTES[:2]:
            text = f"tl.where(({text} < 100.0) & ({text} > -100.0), {text}, tl.cast(0.0, tl.{value.dtype}))"
        if value.dtype in FLOATS and dtype in INTEGERS:
            largest = 100 if dtype.endswith("8") else 1000
            low = "0.0" if dtype in UNSIGNED else f"-{largest}.0"
            text = f"tl.where(({text} < {largest}.0) & ({text} > {low}), {text}, tl.cast(0.0, tl.{value.dtype}))"
        if value.dtype in INTEGERS and dtype in FLOATS:
            # Few bits, so that there is nothing to round in two steps.
            text = f"({text} & 127)"
        return self.bind(f"tl.cast({text}, tl.{dtype})", dtype, value.shape)

    # --- statements --------------------------------------------------------------------------------------------------

    def expression(self, shape: tuple[int, ...]) -> tuple[str, str]:
        """An element-wise expression and its type."""
        if self.random.random() < 0.1:
            return self.bits(shape), "int1"
        if self.random.random() < 0.1:
            a = self.some(EVERY, shape)
            b, bit = self.some((a.dtype,), shape), self.some(("int1",), shape)
            return f"tl.where({bit.name}, {a.name}, {b.name})", a.dtype
        if self.random.random() < 0.35:
            a = self.some(FLOATS, shape)
            b = self.some((a.dtype,), shape)
            texts = [f"{a.name} + {b.name}", f"{a.name} - {b.name}", f"{a.name} * {b.name}", f"-{a.name}",
                     f"tl.minimum({a.name}, {b.name})", f"tl.maximum({a.name}, {b.name})", f"tl.abs({a.name})",
                     f"tl.where({a.name} < {b.name}, {a.name}, {b.name})"]  # fmt: skip
            if a.dtype not in ("float16", "bfloat16"):
                texts += [f"tl.floor({a.name})", f"tl.ceil({a.name})"]
            if a.dtype == "float32":
                texts += [f"tl.div_rn({a.name}, tl.abs({b.name}) + 1.0)", f"tl.sqrt_rn(tl.abs({a.name}))"]
            return self.random.choice(texts), a.dtype
        a = self.some(INTEGERS, shape)
        b = self.some((a.dtype,), shape)
        x, y, bits = a.name, b.name, int(a.dtype.lstrip("uint")) - 1
        texts = [f"{x} + {y}", f"{x} - {y}", f"{x} * {y}", f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}", f"~{x}",
                 f"{x} << ({y} & {min(bits, 31)})", f"{x} >> ({y} & {min(bits, 31)})", f"tdiv({x}, ({y} & 7) + 1)",
                 f"trem({x}, ({y} & 7) + 1)", f"tl.minimum({x}, {y})", f"tl.maximum({x}, {y})",
                 f"tl.where({x} <= {y}, {x}, {y})", f"tl.where(({x} == {y}) | ({x} > 3), {y}, {x})"]  # fmt: skip
        if a.dtype in SIGNED:
            texts += [f"-{x}", f"tl.abs({x} >> 1)"]
        return self.random.choice(texts), a.dtype

    def bits(self, shape: tuple[int, ...]) -> str:
        """An expression that is true or false."""
        if self.random.random() < 0.5:
            a = self.some(INTEGERS + FLOATS, shape)
            b = self.some((a.dtype,), shape)
            return f"{a.name} {self.random.choice(('<', '<=', '==', '!='))} {b.name}"
        a, b = self.some(("int1",), shape), self.some(("int1",), shape)
        return self.random.choice(
            (f"{a.name} & {b.name}", f"{a.name} | {b.name}", f"{a.name} ^ {b.name}", f"~{a.name}")
        )

    def statement(self, depth: int) -> None:
        makers: list[Callable[[], None]] = [self.elementwise] * 4 + [
            self.reduction,
            self.movement,
            self.atomic,
            self.one,
            self.chosen,
        ]
        if depth < 2:
            makers += [lambda: self.loop(depth), lambda: self.branch(depth), lambda: self.repeat(depth)]
        if depth == 0:
            makers += [self.product, self.scaled_product, self.rows, self.rows]
        self.random.choice(makers)()

    def elementwise(self) -> None:
        shape = self.random.choice(SHAPES)
        text, dtype = self.expression(shape)
        self.bind(text, dtype, shape)

    def reduction(self) -> None:
        axis, kind = self.random.randrange(2), self.random.choice(("sum", "max", "min", "argmax", "cumsum", "xor_sum"))
        value = self.some(WIDE, (16, 16))
        text = f"tl.{kind}({value.name}, {axis})"
        self.bind(text, "int32" if kind == "argmax" else value.dtype, (16, 16) if kind == "cumsum" else (16,))

    def movement(self) -> None:
        grid, row = self.some(EVERY, (16, 16)), self.some(EVERY, (16,))
        other, index = self.some((row.dtype,), (16,)), self.some(("int32",), (16,))
        match self.random.randrange(6):
            case 0:
                self.bind(f"tl.trans({grid.name})", grid.dtype, (16, 16))
            case 1:
                self.bind(f"tl.reshape(tl.trans(tl.reshape({grid.name}, (8, 32))), (16, 16))", grid.dtype, (16, 16))
            case 2:
                self.bind(f"tl.broadcast_to(tl.expand_dims({row.name}, {self.random.randrange(2)}), (16, 16))",
                          row.dtype, (16, 16))  # fmt: skip
            case 3:
                self.bind(
                    f"tl.sum(tl.reshape(tl.interleave({index.name}, {index.name} * 3), (16, 2)), 1)", "int32", (16,)
                )
            case 4:
                self.bind(f"tl.gather({row.name}, {index.name} & 15, 0)", row.dtype, (16,))
            case _:
                self.bind(f"tl.flip({other.name}, 0)", row.dtype, (16,))

    def one(self) -> None:
        """Operations of one row of integers."""
        value, other = self.some(("int32", "int64"), (16,)), self.some(("int32",), (16,))
        match self.random.randrange(4):
            case 0:
                self.bind(f"tl.sort({value.name})", value.dtype, (16,))
            case 1:
                self.bind(f"tl.broadcast_to(tl.max(tl.topk({value.name}, 4)), (16,))", value.dtype, (16,))
            case 2:
                self.bind(f"tl.histogram({other.name} & 15, 16)", "int32", (16,))
            case _:
                twice = self.some((value.dtype,), (16,))
                text = f"tl.sort(tl.cat({value.name}, {twice.name}, can_reorder=True))"
                self.bind(f"tl.sum(tl.reshape({text}, (16, 2)), 1)", value.dtype, (16,))

    def atomic(self) -> None:
        value = self.some(("int32", "int64"), (16,))
        memory = self.array("t", value.dtype, 16)
        if self.random.random() < 0.3:
            new = self.some((value.dtype,), (16,))
            self.bind(f"tl.atomic_cas({memory} + row, {value.name}, {new.name})", value.dtype, (16,))
            return
        kind = self.random.choice(("add", "max", "min", "and", "or", "xor", "xchg"))
        self.bind(f"tl.atomic_{kind}({memory} + row, {value.name})", value.dtype, (16,))

    def product(self) -> None:
        """A product of matrices of small integers, whose sums every type holds exactly."""
        kind = self.random.choice(("float16", "bfloat16", "float32", "float64", "int8", "float8e5", "float8e4nv"))
        # Elements of 8 bits need a K of 32.
        inner = 32 if kind in ("int8", "float8e5", "float8e4nv") else 16
        sides: list[str] = []
        for shape in ((16, inner), (inner, 16)):
            source, side = self.array("x", "int32", 16 * inner), self.name("d")
            loaded = f"tl.load({source} + tl.reshape(tl.arange(0, {16 * inner}), {shape})) & 3"
            small = f"tl.cast({loaded}, tl.{'int8' if kind == 'int8' else 'float32'})"
            self.say(f"{side} = {small if kind == 'int8' else f'tl.cast({small}, tl.{kind})'}")
            sides.append(side)
        result = {"int8": "int32", "float64": "float64"}.get(kind, "float32")
        precision = ', input_precision="ieee"' if kind == "float32" else ""
        out = f", out_dtype=tl.{result}" if kind in ("int8", "float64") else ""
        self.bind(f"tl.dot({sides[0]}, {sides[1]}{precision}{out})", result, (16, 16))

    def scaled_product(self) -> None:
        """A product of matrices in microscaling formats, whose scales are 1/2 to 4: the sums are exact, too."""
        sides: list[str] = []
        for number in range(2):
            form = self.random.choice(("e2m1", "e4m3", "e5m2", "bf16"))
            inner = 32 if form == "e2m1" else 64
            # Scales stand along K for each row of the left and each column of the right side.
            shape = (inner, 16) if number else (16, inner)
            elements, scales = self.array("x", "int32", 16 * inner), self.array("x", "int32", 32)
            loaded = f"tl.load({elements} + tl.reshape(tl.arange(0, {16 * inner}), {shape}))"
            text = f"tl.cast({loaded} & 255, tl.uint8)"
            if form != "e2m1":
                type_ = {"e4m3": "float8e4nv", "e5m2": "float8e5", "bf16": "bfloat16"}[form]
                text = f"tl.cast(tl.cast({loaded} & 3, tl.float32), tl.{type_})"
            side, scale = self.name("d"), self.name("e")
            self.say(f"{side} = {text}")
            self.say(
                f"{scale} = tl.cast((tl.load({scales} + tl.reshape(tl.arange(0, 32), (16, 2))) & 3) + 126, tl.uint8)"
            )
            sides += [side, scale, repr(form)]
        self.bind(f"tl.dot_scaled({', '.join(sides)})", "float32", (16, 16))

    # --- memory ------------------------------------------------------------------------------------------------------

    def rows(self) -> None:
        """Rows that touch each other, of any length: each is read and written, in place or not."""
        dtype, count = self.random.choice(EVERY), self.random.randint(1, 3)
        wide = WIDER.get(dtype, dtype)
        length, text = self.length()
        block = self.random.choice([size for size in (1, 2, 4, 8, 16, 32, 64, 128, 512) if size >= length][:3])
        source = self.array("x", dtype, length * count)
        target = source if self.random.random() < 0.5 else self.array("y", dtype, length * count)
        at, row, value, total = (self.name(letter) for letter in "aivs")
        self.say(f"{at} = tl.arange(0, {block})")
        self.say(f"for {row} in {self.random.choice(('tl.static_range', 'range'))}({count}):")
        place, mask = f"{row} * {text} + {at}", f"mask={at} < {text}"
        self.say(f"    {value} = tl.cast(tl.load({source} + {place}, {mask}{self.other()}), tl.{wide})")
        choices = [f"{value} + {value}", f"-{value}" if wide[0] != "u" else f"~{value}", value]
        if self.random.random() < 0.6:
            self.say(f"    {total} = tl.{self.random.choice(('sum', 'max'))}({value}, 0)")
            choices = [f"{value} - {total}", f"tl.where({value} < {total}, {value}, {value} - {value})"]
        # Elements of 8 bits hold no sums.
        result = choices[-1] if dtype in BYTES else self.random.choice(choices)
        self.say(f"    tl.store({target} + {place}, tl.cast({result}, tl.{dtype}), {mask})")

    def chosen(self) -> None:
        """A pointer that is one of several, for all elements or for each; a load and perhaps a store through it."""
        dtype, rng = self.random.choice(EVERY), self.random
        names = [self.array("x", dtype, 24) for _ in range(rng.randint(2, 3))]
        if rng.random() < 0.2:
            self.same[names[1]] = names[0]
        one, two, three = names[0], names[1], names[-1]
        p, q, condition = self.name("p"), self.name("q"), self.condition()
        _, text = self.length()
        place = f"{p} + row"
        match rng.randrange(6):
            case 0:
                self.say(f"{p} = tl.where({condition}, {one}, {two})")
            case 1:
                self.say(f"{p} = tl.where({condition}, {one} + 8, tl.where({self.condition()}, {two}, {three} + 4))")
            case 2:
                self.say(f"{p} = {one} + {rng.randint(0, 4)}")
                self.say(f"if {condition}:")
                self.say(f"    {p} = {two} + {rng.randint(0, 4)}")
            case 3:
                self.say(f"{p} = {one}\n{self.indent}{q} = {two}")
                self.say(f"for {self.name('i')} in range({rng.choice(('n & 3', '3'))}):")
                self.say(f"    {p}, {q} = {q}, {p} + 1")
            case 4:
                count = self.name("c")
                self.say(f"{p} = {one}\n{self.indent}{count} = n & 7")
                self.say(f"while {count} > 0:")
                self.say(
                    f"    {p} = tl.where({count} % 3 == 1, {two}, {p} + 1)\n{self.indent}    {count} = {count} - 1"
                )
            case _:
                bit = self.some(("int1",), (16,))
                self.say(f"{p} = tl.where({bit.name}, {one} + row, {two} + (row + {rng.randint(0, 8)}))")
                place = p
        mask = f", mask=row < {text}" if rng.random() < 0.6 else ""
        self.bind(f"tl.load({place}{mask}{self.other() if mask else ''})", dtype, (16,))
        if rng.random() < 0.6 and not (place == p and self.same.get(two) == one):
            value = self.some((dtype,), (16,))
            self.say(f"tl.store({place}, {value.name}{mask})")

    # --- control flow ------------------------------------------------------------------------------------------------

    def body(self, depth: int, target: Variable) -> None:
        """An indented block that assigns to a variable; what else it makes is not known after it."""
        outer, self.indent = list(self.variables), self.indent + "    "
        for _ in range(self.random.randint(0, 2)):
            self.statement(depth + 1)
        text = self.random.choice((f"{target.name} + {target.name}", f"{target.name} ^ 5", f"{target.name} - 3"))
        found = [v for v in self.variables if v.dtype == target.dtype and v.shape == target.shape]
        if self.random.random() < 0.7:
            text = f"{target.name} {self.random.choice('+-&^')} {self.random.choice(found).name}"
        self.say(f"{target.name} = {text}")
        self.variables, self.indent = outer, self.indent[4:]

    def target(self) -> Variable:
        """A new variable to assign to in blocks: others may be arguments of what was computed before."""
        shape = self.random.choice(SHAPES)
        value = self.some(("int32", "int64"), shape)
        return self.bind(f"{value.name} + 1", value.dtype, shape)

    def loop(self, depth: int) -> None:
        target = self.target()
        kind = self.random.choice(("range", "tl.static_range", "tl.range"))
        self.say(f"for {self.name('i')} in {kind}({self.random.randint(0, 4)}):")
        self.body(depth, target)

    def branch(self, depth: int) -> None:
        target = self.target()
        self.say(f"if {self.condition()}:")
        self.body(depth, target)
        if self.random.random() < 0.6:
            self.say("else:")
            self.body(depth, target)

    def repeat(self, depth: int) -> None:
        target, count = self.target(), self.name("c")
        self.say(f"{count} = n & {self.random.randint(1, 7)}")
        self.say(f"while {count} > 0:")
        self.body(depth, target)
        self.say(f"    {count} = {count} - 1")

    def end(self) -> None:
        """Store what there is."""
        for value in self.random.sample(self.variables, min(6, len(self.variables))):
            out = self.array("y", value.dtype, 256)
            self.say(f"tl.store({out} + {INDEX[value.shape] if value.shape else '0'}, {value.name})")


def program(number: int) -> Program:
    """The program of a number: always the same one."""
    made = Program(random.Random(number), 1 + number % LONGEST)
    for _ in range(made.random.randint(3, 9)):
        made.statement(0)
    if not made.variables:
        made.elementwise()
    made.end()
    return made


# --- running ---------------------------------------------------------------------------------------------------------


def arguments(made: Program, number: int) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays for a program: mostly small numbers, and some at the ends of their type."""
    chance = np.random.default_rng(number)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, (dtype, size) in made.arrays.items():
        if name in made.same:
            found[name] = found[made.same[name]]
        elif dtype in INTEGERS:
            limits = np.iinfo(dtype)
            values = chance.integers(0 if limits.min == 0 else -100, 100, size).astype(dtype)
            wide = chance.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)
            found[name] = np.where(chance.random(size) < 0.3, wide, values)
        elif dtype == "int1":
            found[name] = chance.random(size) < 0.5
        else:
            values = chance.integers(-999, 999, size) / 8
            found[name] = values.astype(getattr(numpy_language.LANGUAGE, dtype))
    return found


def _module(text: str, folder: str) -> ModuleType:
    path = Path(folder) / "fuzzed.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("fuzzed", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _lowered(kernel: Any, made: Program) -> str:
    """The text after the whole pipeline, with our own conversion."""
    source = source_of(kernel)
    assert source is not None
    signature = {name: f"*{SPELLED[dtype]}" for name, (dtype, _) in made.arrays.items()}
    module = frontend_module(source, Specialization({**signature, "n": "i32"}, {}, "sm_90a"))
    run_pipeline(module, ttgir_pipeline(), make_context())
    return print_module(module)


def differences(made: Program, number: int) -> str:
    """Compare numpy, the interpreter at the frontend's stage, and the interpreter of the final text."""
    n = made.n
    expected = arguments(made, number)
    numpy_language.run(made.text, expected, n)
    with tempfile.TemporaryDirectory() as folder:
        kernel = _module(made.text, folder).kernel
        early, late = arguments(made, number), arguments(made, number)
        interpret(kernel, 1, **early, n=n, jobs=1)
        interpret_text(_lowered(kernel, made), 1, [*late.values(), n], jobs=1)
    said: list[str] = []
    for stage, found in (("frontend", early), ("ttgir", late)):
        for name, array in expected.items():
            same = (found[name] == array) | ((found[name] != found[name]) & (array != array))
            if not same.all():
                at = int(np.argmin(same))
                said.append(f"{stage}: {name}[{at}] is {found[name][at]}, expected {array[at]}")
    return "\n".join(said)


def compared(differ: Callable[[Program, int], str], number: int) -> Ending:
    """Compare the program of a number by `differ`, which says what differs."""
    try:
        found = differ(program(number), number)
    except CompilationError as error:
        return Ending("internal" if "internal error" in str(error) else "wrong", f"refused: {error}")
    return Ending("wrong", found) if found else Ending("ok")


def trial(number: int) -> Ending:
    """Compare the program of a number."""
    return compared(differences, number)


def show(number: int) -> str:
    """The text of a program."""
    return program(number).text


if __name__ == "__main__":
    sys.exit(report("programs", trial, show))
