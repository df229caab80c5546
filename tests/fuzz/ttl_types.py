"""Random TTL kernels with tiles of mixed data formats, in two to four dimensions: three machines and numpy, to the bit.

`python -m tests.fuzz.ttl_types 100` compares 100 kernels. Numbers are small integers, so that sums are exact in any
order; what a circular buffer of a narrow format rounds, numpy rounds, too.
"""

from __future__ import annotations

import random
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tests.fuzz.pool import Ending, report
from tests.fuzz.ttl import has_compiler, kernel_of
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.formats import named
from tlx_xdsl.ttl.runtime import run
from tlx_xdsl.ttl.tiles import from_pages, to_pages

FLOATS = ("f32", "bf16", "bfp8_b", "bfp4_b")
INTEGERS = ("i32", "ui32", "ui16")
NAMES = {"f32": "float32", "bf16": "bfloat16", "bfp8_b": "bfloat8_b", "bfp4_b": "bfloat4_b",
         "i32": "int32", "ui32": "uint32", "ui16": "uint16"}  # fmt: skip
STORAGE = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "bfp8_b": np.float32, "bfp4_b": np.float32,
           "i32": np.int32, "ui32": np.uint32, "ui16": np.uint16}  # fmt: skip
LARGEST = 2.0**20
BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "neg": np.negative, "abs": np.abs, "relu": lambda x: np.maximum(x, x.dtype.type(0)),
}  # fmt: skip

KERNEL = """\
from typing import Annotated, Any

import tlx_xdsl.language.ttl as ttl


@ttl.kernel(grid=(1, 1))
def kernel({parameters}):
{buffers}

    @ttl.datamovement()
    def read():
        for i in range({count}):
{reads}

    @ttl.compute()
    def compute():
        for i in range({count}):
            with {waits}, out_cb.reserve() as o:
                o.store({expression})

    @ttl.datamovement()
    def write():
        for i in range({count}):
            with out_cb.wait() as o:
                ttl.copy(o, out[{piece}]).wait()
"""


@dataclass(frozen=True)
class Value:
    """A block: its text, its type, its numbers in registers, and whether a circular buffer may round it on its way."""

    text: str
    type: str
    numbers: np.ndarray
    is_made_in_buffer: bool = False

    def rounded(self) -> np.ndarray:
        return as_held(self.numbers, self.type)

    def used(self) -> np.ndarray:
        """The numbers as an operation of the vector unit finds them."""
        return self.rounded() if self.is_made_in_buffer else self.numbers


def as_held(numbers: np.ndarray, type_: str) -> np.ndarray:
    return from_pages(to_pages(numbers, type_), numbers.shape, type_)


def met(*types: str) -> str:
    """The type in which floats meet."""
    wide = {"bf16" if each.startswith("bfp") else each for each in types}
    return "f32" if "f32" in wide else wide.pop()


class Maker:
    """Makes one kernel."""

    def __init__(self, number: int, size: int | None = None) -> None:
        self.random, self.chance = random.Random(number), np.random.default_rng(number)
        self.lead = self.random.choice(((), (), (2,), (3,), (2, 1), (1, 2)))
        self.count = self.random.randint(1, 2)
        """Blocks along the rows."""
        self.rows, self.columns = self.random.randint(1, 2), self.random.randint(1, 3)
        self.integer = self.random.choice((None, None, *INTEGERS))
        """The type of integers in the kernel."""
        self.arrays: dict[str, np.ndarray] = {}
        self.types: dict[str, str] = {}
        self.size = self.random.randint(1, 7) if size is None else size

    @property
    def shape(self) -> tuple[int, ...]:
        return *self.lead, self.count * self.rows * 32, self.columns * 32

    def read(self, type_: str) -> Value:
        name = f"t{len(self.arrays)}"
        low = 0 if type_.startswith("u") else -4
        array = self.chance.integers(low, 5, self.shape).astype(STORAGE[type_])
        self.arrays[name], self.types[name] = array, type_
        return Value(name, type_, as_held(array, type_))

    def make(self) -> Value:
        value = self.read(self.random.choice(FLOATS) if self.integer is None or self.random.random() < 0.4
                          else self.integer)  # fmt: skip
        for _ in range(self.size):
            with np.errstate(over="ignore"):
                made = self.step(value)
            if made is not None and (np.abs(made.numbers.astype(np.float64)) < LARGEST).all():
                value = made
        return value

    def step(self, value: Value) -> Value | None:
        is_float = value.type in FLOATS
        kinds = ["binary"] * 4 + ["unary", "scalar", "typecast", "typecast"] + ["memory"] * (2 * is_float)
        match self.random.choice(kinds):
            case "binary":
                return self.binary(value)
            case "unary":
                name = self.random.choice([*UNARY])
                if not is_float and value.type != "i32":
                    return None
                text = f"-{value.text}" if name == "neg" else f"ttl.math.{name}({value.text})"
                return Value(f"({text})", met(value.type) if is_float else value.type, UNARY[name](value.used()))
            case "scalar":
                number, sign = self.random.randint(1, 3), self.random.choice("+-*")
                other = np.asarray(number, value.numbers.dtype)
                type_ = met(value.type) if is_float else value.type
                return Value(f"({value.text} {sign} {number})", type_, BINARY[sign](value.used(), other))
            case "typecast":
                return self.typecast(value)
            case _:
                return self.through_memory(value)

    def binary(self, value: Value) -> Value | None:
        is_float = value.type in FLOATS
        if len(self.arrays) < 4 and self.random.random() < 0.6:
            other = self.read(self.random.choice(FLOATS) if is_float else value.type)
        else:
            name = self.random.choice([each for each in self.types if (self.types[each] in FLOATS) == is_float] or [""])
            if not name or (not is_float and self.types[name] != value.type):
                return None
            other = Value(name, self.types[name], as_held(self.arrays[name], self.types[name]))
        sign = self.random.choice([*BINARY])
        if value.type == "ui16" and sign in ("max", "min"):
            return None
        first, second = self.random.sample((value, other), 2)
        spelled = f"({first.text} {sign} {second.text})" if len(sign) == 1 else None
        text = spelled or f"ttl.math.{sign}({first.text}, {second.text})"
        type_ = met(value.type, other.type) if is_float else value.type
        return Value(text, type_, BINARY[sign](first.used(), second.used()))

    def typecast(self, value: Value) -> Value | None:
        targets = [each for each in (*FLOATS, *([self.integer] if self.integer else [])) if each != value.type]
        target = self.random.choice(targets)
        if {value.type, target} == {"i32", "ui32"} or (value.type in INTEGERS and target.startswith("bfp")):
            return None
        text = f"ttl.math.typecast({value.text}, ttl.{NAMES[target]})"
        if value.type in FLOATS and target in FLOATS:
            if target == "f32":
                # What was computed is computed as f32: no buffer rounds it.
                return Value(text, target, value.numbers, value.is_made_in_buffer)
            numbers = value.used()
            return Value(text, target, as_held(numbers, "bf16") if (value.type, target) == ("f32", "bf16") else numbers)
        numbers = value.used().astype(np.float64)
        if target in INTEGERS:
            limits = np.iinfo(STORAGE[target])
            return Value(text, target, np.clip(np.trunc(numbers), limits.min, limits.max).astype(STORAGE[target]))
        if (numbers != np.rint(numbers)).any() or (np.abs(numbers) > 256).any():
            return None
        return Value(text, target, numbers.astype(np.float32))

    def through_memory(self, value: Value) -> Value | None:
        """Make a value by an operation that reads its operand from a circular buffer."""
        x, type_, rank = value.rounded(), met(value.type), len(self.shape)
        blocks = x.reshape(*self.lead, self.count, self.rows * 32, self.columns * 32)
        match self.random.choice(("reduce", "transpose", "matmul")):
            case "reduce":
                dim = self.random.choice((-1, -2))
                sums = blocks.sum(axis=dim, keepdims=True)
                narrow = f"ttl.math.reduce_sum({value.text}, dims=[{rank + dim}])"
                shape = (*self.lead, self.rows, self.columns)
                text = f"ttl.math.broadcast({narrow}, {shape}, dims=[{rank + dim}])"
                found = as_held(np.broadcast_to(sums, blocks.shape).reshape(x.shape), type_)
            case "transpose" if self.rows == self.columns:
                text, found = f"ttl.math.transpose({value.text})", blocks.swapaxes(-1, -2).reshape(x.shape)
            case "matmul" if self.rows == self.columns:
                text = f"({value.text} @ ttl.math.transpose({self.again(value)}))"
                right = self.arrays[self.again(value)].astype(np.float32)
                right = as_held(right, self.types[self.again(value)]).reshape(blocks.shape)
                if self.types[self.again(value)] in INTEGERS:
                    return None
                type_ = met(type_, self.types[self.again(value)])
                found = (blocks @ right.swapaxes(-1, -2)).reshape(x.shape)
            case _:
                return None
        return Value(text, type_, found, is_made_in_buffer=True)

    def again(self, value: Value) -> str:
        """The name of an input of floats that is used once more."""
        return next((name for name, type_ in self.types.items() if type_ in FLOATS), next(iter(self.types)))


@dataclass(frozen=True)
class Case:
    """A kernel, its inputs, and the numbers that it must give."""

    text: str
    arrays: dict[str, np.ndarray]
    out: np.ndarray
    wanted: np.ndarray


def case(number: int, size: int | None = None) -> Case:
    made = Maker(number, size)
    value = made.make()
    out = value.type if value.type in INTEGERS else made.random.choice(FLOATS)
    types = {**made.types, "out": out}
    block = (*made.lead, made.rows, made.columns)
    leading = [f"0:{size}" for size in made.lead]
    first = "i" if made.rows == 1 else f"i * {made.rows}"
    piece = ", ".join([*leading, f"{first} : {first} + {made.rows}", f"0:{made.columns}"])
    text = KERNEL.format(
        parameters=", ".join(
            f"{name}: Annotated[Any, ttl.tensor({made.shape}, ttl.{NAMES[type_]})]" for name, type_ in types.items()
        ),
        buffers="\n".join(f"    {name}_cb = ttl.make_circular_buffer_like({name}, shape={block})" for name in types),
        reads="\n".join(
            f"            with {name}_cb.reserve() as block:\n                ttl.copy({name}[{piece}], block).wait()"
            for name in made.types
        ),
        waits=", ".join(f"{name}_cb.wait() as {name}" for name in made.types),
        count=made.count,
        expression=value.text,
        piece=piece,
    )
    storage = np.dtype(STORAGE[out])
    return Case(
        text, made.arrays, np.full(made.shape, np.nan if named(out).register.kind == "f" else 77, storage),
        as_held(value.numbers, out),
    )  # fmt: skip


def differences(made: Case, number: int, folder: str) -> str:
    kernel = kernel_of(made.text, folder, number)
    said: list[str] = []
    for machine in ("tensors", "ttkernel", "cpp") if has_compiler() else ("tensors", "ttkernel"):
        out = made.out.copy()
        run(kernel, *(each.copy() for each in made.arrays.values()), out, machine=machine, seed=number % 5)
        same = out.astype(np.float64) == made.wanted.astype(np.float64)
        if not same.all():
            at = tuple(int(each) for each in np.unravel_index(int(np.argmin(same)), same.shape))
            said.append(f"{machine}: out{list(at)} is {out[at]}, expected {made.wanted[at]}; {(~same).sum()} differ")
    return "\n".join(said)


def trial(number: int) -> Ending:
    """Compare the kernel of a number; where it ends badly, find a shorter one that does, too."""
    ended = Ending("ok")
    for size in (None, *range(7)):
        made = case(number, size)
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = differences(made, number, folder)
                again = Ending("wrong", f"{made.text}\n{found}") if found else Ending("ok")
            except CompilationError as error:
                again = Ending("wrong", f"{made.text}\nrefused: {error}")
            except Exception:
                again = Ending("traceback", f"{made.text}\n{traceback.format_exc()}")
        if again.kind == "ok" and size is None:
            return again
        if size is None or again.kind == ended.kind:
            ended = again
            if size is not None:
                return ended
    return ended


if __name__ == "__main__":
    sys.exit(report("ttl_types", trial, lambda number: case(number).text))
