"""Random TTL kernels as the text that a user writes, with the numbers that they must give.

A kernel walks over a grid of blocks, which its cores divide among them. In each step its compute thread makes values of
blocks that were read, of sums over an inner loop, and of other values, and stores some of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz import ttl_values as values
from tests.fuzz.ttl_threads import SPELLED, Threads
from tests.fuzz.ttl_values import DTYPES, Blocks

BINARY = ("add", "sub", "mul", "max", "min")
EXACT_UNARY = ("neg", "abs", "relu", "square")
LIBRARY_UNARY = ("exp", "log", "sqrt", "rsqrt", "recip", "gelu", "tanh", "sigmoid")
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
LARGEST = 1e4
"""Numbers beyond are not made: products of products would leave the range."""
L1 = 1_450_000
"""Bytes of circular buffers that fit into the memory of a core."""
TEETH = 2.0**-4
"""The largest slack, as a part of the largest number: a larger one would hide errors."""


@dataclass(frozen=True)
class Array:
    """An argument of the kernel: what it holds before, and, if the kernel writes it, what it must hold after."""

    before: np.ndarray
    numbers: np.ndarray | None = None
    slack: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    """A kernel and its arguments."""

    text: str
    arrays: dict[str, Array]
    options: dict[str, Any]
    is_exact: bool


@dataclass(eq=False)
class Value:
    """A block of tiles in the kernel's text."""

    text: str
    shape: tuple[int, int]
    compute: Callable[..., Blocks]
    operands: tuple[Value, ...] = ()
    reads_buffers: bool = False
    """Whether the operation reads its operands from circular buffers only."""
    is_computed: bool = True
    """Whether it is none that a circular buffer holds."""
    is_buffered: bool = False
    """Whether an operation reads it from a circular buffer though it is computed."""
    is_used: bool = False
    blocks: Blocks | None = None


class Maker(Threads):
    """Makes one case."""

    def __init__(self, number: int, size: int | None = None) -> None:
        super().__init__(random.Random(number))
        self.chance = np.random.default_rng(number)
        self.is_exact = self.random.random() < 0.6
        self.base = self.random.randint(1, 3), self.random.choice((1, 1, 2, 3, 5))
        """Rows and columns of a block, in tiles."""
        self.size = self.random.randint(1, 9) if size is None else size
        self.arrays: dict[str, Array] = {}
        self.annotations: dict[str, str] = {}
        self.values: list[Value] = []

    # --- tensors -----------------------------------------------------------------------------------------------------

    def elements(self, tiles: tuple[int, int]) -> tuple[int, int]:
        """A shape in elements with that many tiles, the last of which may be parts."""
        rows, columns = (32 * each - (self.random.randint(1, 31) if self.maybe(0.25) else 0) for each in tiles)
        return rows, columns

    def shard(self, name: str, tiles: Sequence[int], block: tuple[int, int]) -> None:
        """Perhaps let each block of a tensor be a shard."""
        if self.maybe(0.12):
            grid = tuple(all_ // size for all_, size in zip(tiles, block, strict=True))
            self.shards[name] = grid[1]
            dtype = SPELLED[self.dtype]
            layout = f"ttl.sharded(grid={grid}, tiles_per_shard={block})"
            self.annotations[name] = f"ttl.tensor({self.arrays[name].before.shape}, ttl.{dtype}, layout={layout})"

    def add_array(self, name: str, array: Array) -> None:
        self.arrays[name] = array
        self.parameters.append(name)

    def tensor(
        self, tiles: tuple[int, int], block: tuple[int, int], low: float = -4, high: float = 4
    ) -> tuple[str, np.ndarray]:
        """A new input, and its numbers with the padding."""
        shape = self.elements(tiles)
        numbers = self.chance.integers(int(low), int(high), shape, endpoint=True).astype(np.float32)
        if not self.is_exact:
            numbers = self.chance.uniform(low, high, shape).astype(np.float32)
        elif self.maybe(0.2):
            numbers /= 2
        stored = numbers.astype(DTYPES[self.dtype])
        name = self.name("t")
        self.add_array(name, Array(stored))
        self.shard(name, tiles, block)
        padded = np.zeros((tiles[0] * 32, tiles[1] * 32), np.float32)
        padded[: shape[0], : shape[1]] = stored.astype(np.float32)
        return name, padded

    def blocks_at(self, padded: np.ndarray, shape: tuple[int, int], index: Callable[[int, int], tuple[int, int]]):
        """The block of each iteration."""
        height, width = shape[0] * 32, shape[1] * 32
        found = []
        for i, j in self.iterations():
            row, column = index(i, j)
            found.append(padded[row * height : (row + 1) * height, column * width : (column + 1) * width])
        return values.exact(np.stack(found))

    def range_(self) -> tuple[float, float]:
        if self.is_exact:
            return self.random.choice(((-4, 4), (-2, 2), (0, 3)))
        return self.random.choice(((-2, 2), (0.25, 2), (0.5, 4)))

    # --- values ------------------------------------------------------------------------------------------------------

    def read(self, shape: tuple[int, int]) -> Value:
        """A block of an input."""
        mode = self.random.choice(("ij", "ij", "ij", "ij", "i0", "0j", "00", "ji"))
        rows, columns = self.counts
        axes = {"i": rows, "j": columns, "0": 1}
        tensor, padded = self.tensor((axes[mode[0]] * shape[0], axes[mode[1]] * shape[1]), shape, *self.range_())
        blocks = self.blocks_at(padded, shape, lambda i, j: tuple({"i": i, "j": j, "0": 0}[axis] for axis in mode))
        least = 2 if "j" in mode else 1 if "i" in mode else 0
        level = self.random.choice([each for each in (2, 2, 1, 0) if each >= least])
        # Without iterations a core would not read what it waits for.
        if (self.split == "linear" and level == 1) or not self.is_busy:
            level = 2
        cb, name = self.buffer(shape, tensor), self.name("a")
        reader = self.threads["read" if self.maybe(0.8) else "write"]
        view = self.name("r")
        copied = self.arriving(self.piece(tensor, (mode[0], mode[1]), shape), view, mode, level)
        reader.before[level] += self.acquired(f"{cb}.reserve()", view, copied)
        self.hold("compute", level, f"{cb}.wait()", name)
        value = Value(name, shape, lambda: blocks, is_computed=False)
        return self.add(value)

    def add(self, value: Value) -> Value:
        value.blocks = value.compute(*(each.blocks for each in value.operands))
        self.values.append(value)
        return value

    def is_fit(self, blocks: Blocks) -> bool:
        numbers = np.abs(blocks.numbers)
        if not np.isfinite(numbers).all() or numbers.max() > LARGEST:
            return False
        if self.is_exact:
            return blocks.is_exact
        return bool(blocks.slack.max() <= TEETH * max(float(numbers.max()), 2.0**-6))

    def bind(self, text: str, shape: tuple[int, int], compute: Callable[..., Blocks], *operands: Value,
             reads_buffers: bool = False) -> Value | None:  # fmt: skip
        """A new value in the innermost loop, if its numbers are fit."""

        def rounding(*given: Blocks) -> Blocks:
            if not reads_buffers:
                return compute(*given)
            return values.rounded(compute(*(values.rounded(each, self.dtype) for each in given)), self.dtype)

        with np.errstate(all="ignore"):
            if not self.is_fit(rounding(*(each.blocks for each in operands))):
                return None
        if reads_buffers:
            self.bytes += self.block_bytes(shape) + sum(self.block_bytes(each.shape) for each in operands)
        for each in operands:
            each.is_used = True
            each.is_buffered |= reads_buffers
        name = self.name("v")
        if self.maybe(0.15):
            name = f"({text})"
        else:
            self.threads["compute"].before[2].append(f"{name} = {text}")
        return self.add(Value(name, shape, rounding, operands, reads_buffers))

    def some(self, shape: tuple[int, int] | None = None) -> Value:
        found = [each for each in self.values if shape is None or each.shape == shape]
        if not found or (len(self.values) < 6 and self.maybe(0.15)):
            return self.read(shape or self.base)
        unused = [each for each in found if not each.is_used]
        return self.random.choice(unused if unused and self.maybe(0.5) else found[-4:])

    def operation(self) -> None:
        kinds = [self.binary] * 5 + [self.unary] * 4 + [self.scalar] * 2
        kinds += [self.reduction, self.broadcast, self.broadcast, self.transposed, self.product, self.through]
        self.random.choice(kinds)()

    def binary(self) -> None:
        a = self.some()
        b = self.some(a.shape)
        kind = self.random.choice(BINARY if self.is_exact else (*BINARY, "div", "div"))
        if kind == "div":
            b = self.positive(b)
        text = f"{a.text} {SIGNS[kind]} {b.text}" if kind in SIGNS and self.maybe(0.7) else None
        text = text or f"ttl.math.{kind}({a.text}, {b.text})"
        self.bind(text, a.shape, lambda x, y: values.binary(kind, x, y), a, b)

    def unary(self) -> None:
        x = self.some()
        kinds = EXACT_UNARY if self.is_exact else (*EXACT_UNARY, *LIBRARY_UNARY * 5)
        kind = self.random.choice(kinds)
        if kind in ("log", "sqrt", "rsqrt", "recip"):
            x = self.positive(x)
        if kind == "exp" and float(x.blocks.numbers.max()) > 8:
            bounded = self.bind(f"-ttl.math.abs({x.text})", x.shape,
                                lambda a: values.unary("neg", values.unary("abs", a)), x)  # fmt: skip
            assert bounded is not None, "it is no larger than what there is"
            x = bounded
        text = f"ttl.math.{kind}({x.text})"
        if kind in ("neg", "square") and self.maybe(0.5):
            text = f"-{x.text}" if kind == "neg" else f"{x.text} ** 2"
        self.bind(text, x.shape, lambda a: values.unary(kind, a), x)

    def positive(self, x: Value) -> Value:
        """A value without numbers near zero, where functions are steep."""
        if float(x.blocks.numbers.min()) > 0.2:
            return x
        half = values.exact(np.full(x.blocks.numbers.shape, 0.5))
        made = self.bind(f"ttl.math.abs({x.text}) + 0.5", x.shape,
                         lambda a: values.binary("add", values.unary("abs", a), half), x)  # fmt: skip
        assert made is not None, "it is no larger than what there is"
        return made

    def scalar(self) -> None:
        x, kind = self.some(), self.random.choice(("add", "sub", "mul", "max", "fill"))
        number = float(self.random.choice((1, 2, 3, 0.5) if self.is_exact else (1.5, 0.1, 2, 0.3)))
        filled = values.exact(np.full(x.blocks.numbers.shape, number))
        if kind == "fill":
            self.bind(f"ttl.math.fill({x.text}, {number})", x.shape, lambda: filled)
        elif kind in SIGNS and self.maybe(0.5):
            self.bind(f"{number} {SIGNS[kind]} {x.text}", x.shape, lambda a: values.binary(kind, filled, a), x)
        else:
            text = f"{x.text} {SIGNS[kind]} {number}" if kind in SIGNS else f"ttl.math.{kind}({x.text}, {number})"
            self.bind(text, x.shape, lambda a: values.binary(kind, a, filled), x)

    def reduction(self) -> None:
        x, dims, kind = self.some(), self.random.choice(([0], [1], [0, 1])), self.random.choice(("sum", "max"))
        shape = tuple(1 if dim in dims else x.shape[dim] for dim in range(2))
        spelled = dims[0] if len(dims) == 1 and self.maybe(0.3) else dims
        text = f"ttl.math.reduce_{kind}({x.text}, dims={spelled})"
        made = self.bind(text, shape, lambda a: values.reduce(kind, a, dims), x, reads_buffers=True)
        if made is not None and self.maybe(0.7):
            self.spread(made, dims, x.shape)

    def spread(self, x: Value, dims: Sequence[int], shape: tuple[int, int]) -> None:
        text = f"ttl.math.broadcast({x.text}, {shape}, dims={list(dims)})"
        self.bind(text, shape, lambda a: values.broadcast(a, shape, dims), x, reads_buffers=True)

    def broadcast(self) -> None:
        dims = self.random.choice(([0], [1], [0, 1]))
        narrow = tuple(1 if dim in dims else self.base[dim] for dim in range(2))
        self.spread(self.some(narrow), dims, self.base)

    def transposed(self) -> None:
        x = self.some()
        self.bind(f"ttl.math.transpose({x.text})", x.shape[::-1], values.transpose, x, reads_buffers=True)

    def product(self) -> None:
        a = self.some()
        partners = [each for each in self.values if each.shape[0] == a.shape[1]]
        b = self.random.choice(partners) if partners else self.read((a.shape[1], self.random.randint(1, 3)))
        text = f"{a.text} @ {b.text}" if self.maybe(0.8) else f"ttl.math.matmul({a.text}, {b.text})"
        self.bind(text, (a.shape[0], b.shape[1]), values.matmul, a, b, reads_buffers=True)

    def through(self) -> None:
        """A value that goes through a circular buffer of the user's."""
        if self.values:
            x = self.some()
            self.kept(self.name("a"), x.shape, [f"{{}}.store({x.text})"],
                      lambda a: values.rounded(a, self.dtype), x)  # fmt: skip

    def kept(
        self, name: str, shape: tuple[int, int], body: list[str], compute: Callable[..., Blocks], *operands: Value
    ) -> Value:
        """Let the compute thread store a value to a circular buffer, push it, and wait for it itself."""
        cb, view = self.buffer(shape), self.name("m")
        lines = self.threads["compute"].before[2]
        lines += self.acquired(f"{cb}.reserve()", view, [line.format(view) for line in body])
        if self.style == "implicit" and lines[-1].startswith(" ") is False and "with" not in lines[-1]:
            lines.append(f"{view}.push()")
        self.hold("compute", 2, f"{cb}.wait()", name)
        for each in operands:
            each.is_used = True
        return self.add(Value(name, shape, compute, operands, is_computed=False))

    # --- sums over an inner loop -------------------------------------------------------------------------------------

    def sum(self) -> None:
        """`o += a @ b`, or another term, over an inner loop."""
        count, kind = self.random.randint(1, 4), self.random.choice(("matmul", "matmul", "matmul", "add", "reduce"))
        rows, columns = self.base
        inner = self.random.randint(1, 2) if kind == "matmul" else columns
        low, high = (-1, 1) if self.is_exact else (-1.0, 1.0)
        # Steps that the compute thread waits for at once.
        together = 2 if count % 2 == 0 and self.maybe(0.4) else 1
        left = self.stepped((rows, inner), "ik", count, low, high, together)
        sides, shape, text = [left], (rows, columns), left[0]
        term: Callable[..., Blocks] = values.itself
        if kind == "matmul":
            sides.append(self.stepped((inner, columns), "kj", count, low, high, together))
            text, term = f"{left[0]} @ {sides[1][0]}", values.matmul
        elif kind == "reduce":
            shape = (rows, 1)
            text, term = f"ttl.math.reduce_sum({left[0]}, dims=[1])", lambda a: values.reduce("sum", a, [1])
        elif self.maybe(0.5):
            text, term = f"ttl.math.square({left[0]})", lambda a: values.unary("square", a)
        total: Blocks | None = None
        for step in zip(*(blocks for *_, blocks in sides), strict=True):
            total = values.accumulate(total, term(*step), self.dtype)
        assert total is not None
        if not self.is_fit(total):
            # The readers have pushed what would not be waited for: the case is made again.
            raise Unfit
        added = "{} += " + text if self.maybe(0.7) else "{}.store(" + text + ", acc=True)"
        waits = ", ".join(f"{cb}.wait() as {name}" for name, cb, _ in sides)
        lines = [f"for k in range({count}):", f"    with {waits}:", f"        {added}"]
        if together == 2:
            names = [name for name, _, _ in sides]
            second = re.sub(rf"\b({'|'.join(names)})\b", r"\1b", added)
            lines = [
                f"for k in range({count // 2}):",
                *(f"    {name}, {name}b = {cb}.wait(blocks=2)" for name, cb, _ in sides),
                f"    {added}",
                f"    {second}",
                *(f"    {cb}.pop(blocks=2)" for _, cb, _ in sides),
            ]
        self.kept(self.name("s"), shape, lines, lambda: total)

    def stepped(
        self, shape: tuple[int, int], mode: str, count: int, low: float, high: float, together: int
    ) -> tuple[str, str, list[Blocks]]:
        """A block of an input for each step of an inner loop: its name, its buffer and its numbers."""
        rows, columns = self.counts
        axes = {"i": rows, "j": columns, "k": count}
        tensor, padded = self.tensor((axes[mode[0]] * shape[0], axes[mode[1]] * shape[1]), shape, low, high)
        found = [
            self.blocks_at(padded, shape, lambda i, j, k=k: tuple({"i": i, "j": j, "k": k}[axis] for axis in mode))
            for k in range(count)
        ]
        cb, view = self.buffer(shape, tensor, None if together == 1 else self.random.choice((2, 4))), self.name("r")
        copied = self.arriving(self.piece(tensor, (mode[0], mode[1]), shape), view, mode, 2)
        body = self.acquired(f"{cb}.reserve()", view, copied)
        reader = self.threads["read"].before[2]
        loop = f"for k in range({count}):"
        if reader and self.merges == loop:
            reader += ["    " + line for line in body]
        else:
            reader += [loop, *("    " + line for line in body)]
        self.merges = loop
        return self.name("x"), cb, found

    merges = ""
    """The loop of the reader that the next block may be read in, too."""

    # --- the end -----------------------------------------------------------------------------------------------------

    def outputs(self) -> None:
        """Store values that nothing uses, and some others; numbers are made anew, since all uses are known now."""
        for value in self.values:
            given = [
                values.maybe_rounded(each.blocks, self.dtype)
                if each.is_buffered and each.is_computed and not value.reads_buffers
                else each.blocks
                for each in value.operands
            ]
            value.blocks = value.compute(*given)
        # All that nothing uses: a block that is waited for must be read.
        for value in self.values:
            if not value.is_used or self.maybe(0.08):
                self.output(value)

    def output(self, value: Value) -> None:
        name, cb, view = self.name("out"), "", self.name("o")
        rows, columns = self.counts
        mode = "ji" if self.maybe(0.15) else "ij"
        axes = {"i": rows, "j": columns}
        # Tiles that no iteration writes.
        beyond = [int(self.maybe(0.15)), int(self.maybe(0.15))]
        tiles = tuple(axes[axis] * size + more for axis, size, more in zip(mode, value.shape, beyond, strict=True))
        shape = self.elements(tiles)
        stored = values.rounded(value.blocks, self.dtype)
        if value.is_buffered and value.is_computed:
            stored = values.rounded(values.maybe_rounded(value.blocks, self.dtype), self.dtype)
        numbers = np.full((tiles[0] * 32, tiles[1] * 32), np.nan, np.float32)
        slack = np.zeros(numbers.shape)
        height, width = value.shape[0] * 32, value.shape[1] * 32
        for at, (i, j) in enumerate(self.iterations()):
            row, column = (i, j) if mode == "ij" else (j, i)
            place = np.s_[row * height : (row + 1) * height, column * width : (column + 1) * width]
            numbers[place], slack[place] = stored.numbers[at], stored.slack[at]
        cut = np.s_[: shape[0], : shape[1]]
        before = np.full(shape, np.nan, DTYPES[self.dtype])
        self.add_array(name, Array(before, numbers[cut], slack[cut]))
        if not any(beyond):
            self.shard(name, tiles, value.shape)
        cb = self.buffer(value.shape, name)
        self.threads["compute"].before[2] += self.acquired(f"{cb}.reserve()", view, [f"{view}.store({value.text})"])
        taken = self.name("w")
        copied = self.copied(taken, self.piece(name, (mode[0], mode[1]), value.shape))
        self.threads["write"].before[2] += self.acquired(f"{cb}.wait()", taken, copied)

    def case(self) -> Case:
        if self.maybe(0.3):
            self.sum()
        if not self.values or self.maybe(0.7):
            self.read(self.base)
        for _ in range(self.size):
            self.operation()
        self.outputs()
        if self.bytes > L1:
            raise Unfit
        options = {}
        arguments = []
        if self.grid != (1, 1) or self.maybe(0.5):
            arguments.append(f"grid={self.grid}")
        arguments += [f"{name}=True" for name in ("fp32_dest_acc_en", "dst_full_sync_en") if self.maybe(0.15)]
        options["capacity"] = self.random.choice((None, 4, 8, 16))
        options["schedule"] = self.maybe(0.5)
        options["fpu"] = self.random.choice(("auto", "auto", "always", "never"))
        parameters = [f"{name}: {self.annotations[name]}" if name in self.annotations else name for name in self.arrays]
        lines = ["import tlx_xdsl.ttl.language as ttl", "", "", f"@ttl.kernel({', '.join(arguments)})",
                 f"def kernel({', '.join(parameters)}):"]  # fmt: skip
        lines += ["    " + line for line in self.body]
        for name, thread in self.threads.items():
            kind = "compute" if name == "compute" else "datamovement"
            lines += ["", f"    @ttl.{kind}()", f"    def {name}():"]
            lines += ["        " + line for line in self.thread_text(thread)]
        return Case("\n".join(lines) + "\n", self.arrays, options, self.is_exact)


class Unfit(Exception):
    """The numbers of a case are too large, or its blocks."""


def case(number: int, size: int | None = None, maker: Any = Maker) -> Case:
    """The case of a number that `maker` makes: always the same one. With `size`, that many operations."""
    for attempt in range(100):
        try:
            return maker(number + 1_000_003 * attempt, size).case()
        except Unfit:
            continue
    raise AssertionError(number)
