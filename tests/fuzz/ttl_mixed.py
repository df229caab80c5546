"""Random TTL kernels that mix what the language has: three machines and numpy, to the bit.

A kernel has a grid of up to 64 cores of either chip, tensors of two to four dimensions in mixed data formats, in DRAM
or L1, in shards or not, blocks that come by reads, by multicasts along rows, columns or both, or from a neighbour, a
product that is summed up over an inner loop, and a graph of operations that may have more values alive than DST has
registers.

`python -m tests.fuzz.ttl_mixed 500` compares 500 kernels. Numbers are small integers, so that sums are exact in any
order. A value that several operations use is one that its type holds: which of them reads it rounded is the compiler's
choice.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.fuzz.pool import Ending, report
from tests.fuzz.ttl import TOGETHER, has_compiler, prepare, trial as compare
from tests.fuzz.ttl_programs import Array, Case, Unfit, case as case_of
from tests.fuzz.ttl_types import BINARY, FLOATS, INTEGERS, NAMES, STORAGE, UNARY, as_held, met
from tlx_xdsl.ttl.formats import named

GRIDS = ((1, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3), (3, 2), (2, 3), (4, 4))
LARGE_GRIDS = {"wormhole": ((8, 1), (8, 4), (8, 8)), "blackhole": ((13, 1), (9, 3), (10, 2), (2, 10))}
LARGEST = 2.0**22
"""Integers beyond are not made: not all of their sums are f32 numbers."""
NETS = 4
"""Inputs that come by pipes, at most: a core has 16 semaphores."""
MORE_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {"square": np.square, "sign": np.sign}


@dataclass(eq=False)
class Value:
    """A block: its text, its type, and its numbers in registers, over the whole of a result."""

    text: str
    type: str
    numbers: np.ndarray
    is_made_in_buffer: bool = False
    """Whether a circular buffer may round it on its way."""
    uses: int = 0

    def rounded(self) -> np.ndarray:
        return as_held(self.numbers, self.type)

    def used(self) -> np.ndarray:
        """The numbers as an operation of the vector unit finds them."""
        return self.rounded() if self.is_made_in_buffer else self.numbers

    @property
    def is_held(self) -> bool:
        """Return whether the type holds all of the numbers."""
        return np.array_equal(self.rounded(), self.numbers)

    @property
    def is_float(self) -> bool:
        return self.type in FLOATS


@dataclass
class Lines:
    """The lines of a thread in the innermost loop."""

    body: list[str] = field(default_factory=list[str])


class Maker:
    """Makes one kernel."""

    def __init__(self, number: int, size: int | None = None) -> None:
        self.random, self.chance = random.Random(number), np.random.default_rng(number)
        pick = self.random.choice
        self.arch = pick(("wormhole", "wormhole", "blackhole"))
        self.grid = pick(GRIDS) if self.maybe(0.85) else pick(LARGE_GRIDS[self.arch])
        wide, high = self.grid
        many = wide * high > 9
        # Whole turns of the grid let blocks come by pipes; otherwise some cores have more blocks, or none.
        self.counts = (
            high * self.random.randint(1, 1 if many else 2) if self.maybe(0.7) else self.random.randint(1, 3),
            wide * self.random.randint(1, 1 if many else 2) if self.maybe(0.7) else self.random.randint(1, 3),
        )
        """Rows and columns of the grid of blocks."""
        self.lead = pick(((), (), (2,), (3,), (2, 1), (1, 2), (2, 2))) if not many else ()
        self.walks = bool(self.lead) and self.maybe(0.5)
        """Whether a loop takes one matrix after the other; otherwise a block has them all."""
        self.rows, self.columns = (1, 1) if many else (self.random.randint(1, 2), self.random.randint(1, 3))
        self.is_tree = self.maybe(0.5)
        """Whether there are many values alive at once."""
        self.integer = pick((None, None, *INTEGERS))
        self.size = (
            size if size is not None else self.random.randint(3, 12) if self.is_tree else self.random.randint(1, 6)
        )
        self.inputs = self.random.randint(2, 7) if self.is_tree else self.random.randint(1, 4)
        self.kind = pick((None, None, *FLOATS))
        """The type of most inputs."""
        self.arrays: dict[str, Array] = {}
        self.annotations: dict[str, str] = {}
        self.buffers: list[str] = []
        self.threads = {"read": Lines(), "compute": Lines(), "write": Lines()}
        self.values: list[Value] = []
        self.waits: list[str] = []
        self.nets = 0
        self.fresh = 0

    # --- names and shapes --------------------------------------------------------------------------------------------

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def name(self, letter: str) -> str:
        self.fresh += 1
        return f"{letter}{self.fresh}"

    @property
    def block(self) -> tuple[int, ...]:
        """The shape of a block in tiles."""
        if self.walks:
            return self.rows, self.columns
        return *self.lead, self.rows, self.columns

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a whole result, in elements, with its padding."""
        return *self.lead, self.counts[0] * self.rows * 32, self.counts[1] * self.columns * 32

    def blocks(self, x: np.ndarray) -> np.ndarray:
        """Cut the last two dimensions: [..., row of blocks, column of blocks, row, column]."""
        *lead, rows, columns = x.shape
        height, width = self.rows * 32, self.columns * 32
        return x.reshape(*lead, rows // height, height, columns // width, width).swapaxes(-3, -2)

    def whole(self, blocks: np.ndarray) -> np.ndarray:
        *lead, rows, columns, height, width = blocks.shape
        return blocks.swapaxes(-3, -2).reshape(*lead, rows * height, columns * width)

    @property
    def turns(self) -> tuple[bool, bool]:
        """Say whether all cores of a column, and all of a row, have as many blocks."""
        (rows, columns), (wide, high) = self.counts, self.grid
        return rows % high == 0, columns % wide == 0

    def piece(self, name: str, row: str, column: str, sizes: tuple[int, int], lead: Sequence[str]) -> str:
        places = list(lead)
        for start, size in zip((row, column), sizes, strict=True):
            first = "0" if start == "0" else f"{start} * {size}" if size > 1 else start
            places.append(f"{first} : {first} + {size}" if start != "0" else f"0:{size}")
        return f"{name}[{', '.join(places)}]"

    @property
    def leading(self) -> list[str]:
        """Places along the first dimensions."""
        return [f"b{at}" if self.walks else f"0:{size}" for at, size in enumerate(self.lead)]

    def declare(self, name: str, type_: str, array: Array, shard: tuple[int, int]) -> None:
        """Add an argument, somewhere; `shard` is the block's size in tiles."""
        self.arrays[name] = array
        shape = array.before.shape
        said = [f"{shape}", f"ttl.{NAMES[type_]}"]
        tiles = int(np.prod(shape[:-2], dtype=int)) * -(-shape[-2] // 32), -(-shape[-1] // 32)
        if self.maybe(0.3):
            if self.maybe(0.5):
                # Any shards: rows, columns, or both.
                shard = self.random.randint(1, tiles[0]), self.random.randint(1, tiles[1])
                shard = self.random.choice((shard, (tiles[0], shard[1]), (shard[0], tiles[1])))
            grid = tuple(-(-all_ // size) for all_, size in zip(tiles, shard, strict=True))
            said.append(f"layout=ttl.sharded(grid={grid}, tiles_per_shard={shard})")
        if self.maybe(0.3):
            said.append('memory_space="L1"')
        self.annotations[name] = f"ttl.tensor({', '.join(said)})"

    def buffer(self, like: str, block: tuple[int, ...]) -> str:
        name = self.name("cb")
        self.buffers.append(f"{name} = ttl.make_dataflow_buffer_like({like}, shape={block}, "
                            f"block_count={self.random.randint(1, 3)})")  # fmt: skip
        return name

    # --- inputs ------------------------------------------------------------------------------------------------------

    def numbers(self, type_: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return an array, which may end within a tile, and what its tiles hold."""
        low = 0 if type_.startswith("u") else -3
        cut = tuple(size - (self.random.randint(1, 31) if self.maybe(0.12) else 0) for size in shape[-2:])
        array = self.chance.integers(low, 4, (*shape[:-2], *cut)).astype(STORAGE[type_])
        held = np.zeros(shape, as_held(array, type_).dtype)
        held[..., : cut[0], : cut[1]] = as_held(array, type_)
        return array, held

    def read(self) -> None:
        """A block of an input in each iteration."""
        type_ = self.kind or self.random.choice(FLOATS)
        if self.integer and self.maybe(0.4):
            type_ = self.integer
        mode = self.random.choice(("ij", "ij", "i0", "0j", "00"))
        rows = self.counts[0] if mode[0] == "i" else 1
        columns = self.counts[1] if mode[1] == "j" else 1
        once = self.walks and self.maybe(0.3)
        lead = (1,) * len(self.lead) if once else self.lead
        array, held = self.numbers(type_, (*lead, rows * self.rows * 32, columns * self.columns * 32))
        name = self.name("t")
        self.declare(name, type_, Array(array), (self.rows, self.columns))
        places = ["0"] * len(self.lead) if once else self.leading
        piece = self.piece(name, mode[0], mode[1], (self.rows, self.columns), places)
        cb = self.buffer(name, self.block)
        blocks = self.blocks(held)
        blocks = np.broadcast_to(blocks, (*self.lead, *self.counts, *blocks.shape[-2:]))
        if mode == "ij" and self.nets < NETS and self.grid != (1, 1) and all(self.turns) and self.maybe(0.3):
            blocks = self.from_neighbour(name, cb, piece, blocks)
        else:
            self.arrive(cb, piece, mode, self.threads["read" if self.maybe(0.7) else "write"])
        value = self.name("x")
        self.waits.append(f"{cb}.wait() as {value}")
        self.values.append(Value(value, type_, self.whole(blocks)))

    def arrive(self, cb: str, piece: str, mode: str, thread: Lines, indent: str = "") -> None:
        """Bring a piece into a block: each core reads it, or one does and sends it to those that need the same."""
        equal_rows, equal_columns = self.turns
        axes = ("x" if mode[1] != "j" and self.grid[0] > 1 and equal_columns else "") + (
            "y" if mode[0] != "i" and self.grid[1] > 1 and equal_rows else ""
        )
        if axes == "xy" and self.maybe(0.5):
            axes = self.random.choice("xy")
        view = self.name("r")
        lines = [f"with {cb}.reserve() as {view}:"]
        if not axes or self.nets >= NETS or self.maybe(0.2):
            lines.append(f"    ttl.copy({piece}, {view}).wait()")
        else:
            self.nets += 1
            net, (x, y) = self.name("net"), (self.random.randrange(size) for size in self.grid)
            self.buffers.append(f"{net} = ttl.PipeNet([{', '.join(self.pipes(x, y, axes))}])")
            tests = {"x": f"x == {x}", "y": f"y == {y}", "xy": f"x == {x} and y == {y}"}
            lines += [
                f"    if {tests[axes]}:",
                f"        ttl.copy({piece}, {view}).wait()",
                f"    {net}.if_src(lambda pipe: ttl.copy({view}, pipe).wait())",
                f"    {net}.if_dst(lambda pipe: ttl.copy(pipe, {view}).wait())",
            ]
        thread.body += [indent + line for line in lines]

    def pipes(self, x: int, y: int, axes: str) -> list[str]:
        """Pipes to all others along the axes, from the core or from each one of its row or column."""
        wide, high = self.grid
        found: list[str] = []
        for x_from in (x,) if "x" in axes else range(wide):
            for y_from in (y,) if "y" in axes else range(high):
                left, right = (0, wide) if "x" in axes else (x_from, x_from + 1)
                top, bottom = (0, high) if "y" in axes else (y_from, y_from + 1)
                for x0, x1, y0, y1 in (
                    (left, x_from, y_from, y_from + 1),
                    (x_from + 1, right, y_from, y_from + 1),
                    (left, right, top, y_from),
                    (left, right, y_from + 1, bottom),
                ):
                    if x0 < x1 and y0 < y1:
                        found.append(f"ttl.Pipe(src=({x_from}, {y_from}), dst=(slice({x0}, {x1}), slice({y0}, {y1})))")
        return found

    def from_neighbour(self, name: str, cb: str, piece: str, blocks: np.ndarray) -> np.ndarray:
        """Let each core read a block and send it to the one at a distance, around the edges; return who gets what."""
        self.nets += 1
        (rows, columns), (wide, high) = self.counts, self.grid
        far = self.random.randrange(1, wide * high)
        far_x, far_y = far % wide, far // wide
        pipes = ", ".join(
            f"ttl.Pipe(src=({x}, {y}), dst=({(x + far_x) % wide}, {(y + far_y) % high}))"
            for y in range(high)
            for x in range(wide)
        )
        net, own, view = self.name("net"), self.buffer(name, self.block), self.name("r")
        self.buffers.append(f"{net} = ttl.PipeNet([{pipes}])")
        self.threads["read"].body += [
            f"with {own}.reserve() as {view}:",
            f"    ttl.copy({piece}, {view}).wait()",
            f"with {own}.wait() as {view}:",
            f"    {net}.if_src(lambda pipe: ttl.copy({view}, pipe).wait())",
        ]
        self.threads["write"].body += [
            f"with {cb}.reserve() as {view}:",
            f"    {net}.if_dst(lambda pipe: ttl.copy(pipe, {view}).wait())",
        ]
        i, j = np.arange(rows), np.arange(columns)
        from_i, from_j = i - i % high + (i - far_y) % high, j - j % wide + (j - far_x) % wide
        return blocks[..., from_i[:, None], from_j[None, :], :, :]

    def product_of_steps(self) -> None:
        """Sum up products over an inner loop, `total += a @ b`: the rows get `a`, the columns `b`."""
        steps, inner = self.random.randint(1, 4), self.random.randint(1, 2)
        types = [self.random.choice(FLOATS) for _ in range(2)]
        # All matrices get the same sum: a loop over them makes it anew, a block of them repeats it.
        ones = (1,) * len(self.lead)
        sides: list[np.ndarray] = []
        texts: list[str] = []
        loop = f"for k in range({steps}):"
        for mode, type_ in zip(("ik", "kj"), types, strict=True):
            count = {"i": self.counts[0], "j": self.counts[1], "k": steps}
            size = {"i": self.rows, "j": self.columns, "k": inner}
            sizes = size[mode[0]], size[mode[1]]
            is_block = mode == "ik" and not self.walks
            lead = ones if is_block or self.walks else ()
            shape = (count[mode[0]] * sizes[0] * 32, count[mode[1]] * sizes[1] * 32)
            array, held = self.numbers(type_, (*lead, *shape))
            name, value = self.name("t"), self.name("x")
            self.declare(name, type_, Array(array), sizes)
            cb = self.buffer(name, (*ones, *sizes) if is_block else sizes)
            piece = self.piece(name, mode[0], mode[1], sizes, ["0:1" if is_block else "0"] * len(lead))
            thread = self.threads["read" if mode == "ik" or self.maybe(0.5) else "write"]
            if loop not in thread.body:
                thread.body.append(loop)
            self.arrive(cb, piece, mode, thread, "    ")
            sides.append(held.reshape(shape))
            texts.append(f"{cb}.wait() as {value}")
        left, right = (text.split()[-1] for text in texts)
        type_ = self.random.choice(FLOATS)
        total = np.zeros((sides[0].shape[0], sides[1].shape[1]), np.float32)
        width = inner * 32
        for k in range(steps):
            term = sides[0][:, k * width : (k + 1) * width] @ sides[1][k * width : (k + 1) * width]
            total = total + term
            if not (np.array_equal(as_held(term, type_), term) and np.array_equal(as_held(total, type_), total)):
                raise Unfit
        value, shape = self.name("v"), (*(() if self.walks else ones), self.rows, self.columns)
        self.threads["compute"].body += [
            f"{value} = ttl.block.fill(0, shape={shape}, dtype=ttl.{NAMES[type_]})",
            loop,
            f"    with {', '.join(texts)}:",
            f"        {value} += {left} @ {right}",
        ]
        if shape != self.block:
            dims = [at for at, size in enumerate(self.lead) if size > 1]
            value = self.bound(f"ttl.math.broadcast({value}, {self.block}, dims={dims})")
        self.values.append(Value(value, type_, np.broadcast_to(total, self.shape).copy()))

    # --- operations --------------------------------------------------------------------------------------------------

    def bound(self, text: str) -> str:
        """A name of an expression in the innermost loop, or the expression."""
        if self.maybe(0.2):
            return f"({text})"
        name = self.name("v")
        self.threads["compute"].body.append(f"{name} = {text}")
        return name

    def add(
        self, text: str, type_: str, numbers: np.ndarray, *operands: Value, is_made_in_buffer: bool = False
    ) -> bool:
        """Keep a value, if its numbers are fit."""
        if (np.abs(numbers.astype(np.float64)) > LARGEST).any():
            return False
        made = Value(text, type_, numbers, is_made_in_buffer)
        if self.is_tree and not made.is_held:
            # Registers of 16 bits round what is spilled.
            return False
        for each in operands:
            each.uses += 1
        made.text = self.bound(text)
        self.values.append(made)
        return True

    def some(self, is_float: bool | None = None, type_: str | None = None) -> Value | None:
        """A value that may be used."""
        found = [
            each
            for each in self.values
            if (is_float is None or each.is_float == is_float)
            and (type_ is None or each.type == type_)
            and (not each.uses or each.is_held)
        ]
        unused = [each for each in found if not each.uses]
        if not found:
            return None
        if self.is_tree:
            return self.random.choice(unused if unused and self.maybe(0.5) else found)
        return self.random.choice(unused[-2:] if unused and self.maybe(0.8) else found[-4:])

    def step(self) -> None:
        value = self.some()
        if value is None:
            return
        kinds = ["binary"] * 5 + ["unary"] * 2 + ["scalar", "typecast"] + ["memory"] * (2 * value.is_float)
        with np.errstate(over="ignore"):
            match self.random.choice(kinds):
                case "binary":
                    self.binary(value)
                case "unary":
                    self.unary(value)
                case "scalar":
                    number, sign = self.random.randint(1, 3), self.random.choice("+-*")
                    other = np.asarray(number, value.numbers.dtype)
                    type_ = met(value.type) if value.is_float else value.type
                    self.add(f"{value.text} {sign} {number}", type_, BINARY[sign](value.used(), other), value)
                case "typecast":
                    targets = [*FLOATS, *([self.integer] if self.integer else [])]
                    self.typecast(value, self.random.choice(targets))
                case _:
                    self.through_memory(value)

    def twist(self) -> None:
        """A chain of values, which are all used again in the order from the last to the first."""
        value = self.some()
        if value is None:
            return
        chain: list[Value] = []
        signs = ("+", "-", "max", "min") if value.type != "ui16" else ("+",)
        for _ in range(self.random.randint(5, 9)):
            other = self.some(True) if value.is_float else self.some(type_=value.type)
            if other is None or not value.is_held or not self.combine(self.random.choice(signs), value, other):
                return
            value = self.values[-1]
            chain.append(value)
        for each in reversed(chain[:-1]):
            if not self.combine(self.random.choice(signs), value, each):
                return
            value = self.values[-1]

    def binary(self, value: Value) -> None:
        other = self.some(True) if value.is_float else self.some(type_=value.type)
        if other is None or (other is value and not value.is_held):
            return
        sign = self.random.choice([*BINARY])
        if value.type == "ui16" and sign in ("max", "min"):
            return
        self.combine(sign, *self.random.sample((value, other), 2))

    def combine(self, sign: str, first: Value, second: Value) -> bool:
        """Add `first sign second`."""
        text = (
            f"{first.text} {sign} {second.text}" if len(sign) == 1 else f"ttl.math.{sign}({first.text}, {second.text})"
        )
        type_ = met(first.type, second.type) if first.is_float else first.type
        with np.errstate(over="ignore"):
            return self.add(text, type_, BINARY[sign](first.used(), second.used()), first, second)

    def unary(self, value: Value) -> None:
        names = UNARY | MORE_UNARY if value.is_float else UNARY
        name = self.random.choice([*names])
        if not value.is_float and value.type != "i32":
            return
        text = f"-{value.text}" if name == "neg" else f"ttl.math.{name}({value.text})"
        self.add(text, met(value.type) if value.is_float else value.type, names[name](value.used()), value)

    def typecast(self, value: Value, target: str) -> bool:
        """Add the value in another type, if that is exact or rounds in one way only."""
        if target == value.type or {value.type, target} == {"i32", "ui32"}:
            return False
        if not value.is_float and target.startswith("bfp"):
            return False
        text = f"ttl.math.typecast({value.text}, ttl.{NAMES[target]})"
        if value.is_float and target in FLOATS:
            if target == "f32":
                # What was computed is computed as f32: no buffer rounds it.
                return self.add(text, target, value.numbers, value, is_made_in_buffer=value.is_made_in_buffer)
            numbers = value.used()
            narrows = (value.type, target) == ("f32", "bf16")
            return self.add(text, target, as_held(numbers, "bf16") if narrows else numbers, value)
        numbers = value.used().astype(np.float64)
        if target in INTEGERS:
            limits = np.iinfo(STORAGE[target])
            cut = np.clip(np.trunc(numbers), limits.min, limits.max).astype(STORAGE[target])
            return self.add(text, target, cut, value)
        if (np.abs(numbers) > 256).any():
            return False
        return self.add(text, target, numbers.astype(np.float32), value)

    def through_memory(self, value: Value) -> None:
        """Make a value by an operation that reads its operand from a circular buffer."""
        type_, rank, square = met(value.type), len(self.block), self.rows == self.columns
        blocks = self.blocks(value.rounded())
        match self.random.choice(("reduce", "reduce", "transpose", "matmul")):
            case "reduce":
                dim, kind = self.random.choice((-1, -2)), self.random.choice(("sum", "max"))
                reduced = (blocks.sum if kind == "sum" else blocks.max)(axis=dim, keepdims=True)
                dims = f"dims=[{rank + dim}]"
                text = f"ttl.math.broadcast(ttl.math.reduce_{kind}({value.text}, {dims}), {self.block}, {dims})"
                found, operands = as_held(self.whole(np.broadcast_to(reduced, blocks.shape)), type_), (value,)
            case "transpose" if square:
                text, found, operands = (
                    f"ttl.math.transpose({value.text})",
                    self.whole(blocks.swapaxes(-1, -2)),
                    (value,),
                )
            case "matmul" if square:
                other = self.some(True)
                if other is None or (other is value and not value.is_held):
                    return
                type_ = met(value.type, other.type)
                text = f"{value.text} @ {other.text}"
                found, operands = self.whole(blocks @ self.blocks(other.rounded())), (value, other)
            case _:
                return
        self.add(text, type_, found, *operands, is_made_in_buffer=True)

    # --- the kernel --------------------------------------------------------------------------------------------------

    def outputs(self) -> list[tuple[str, Value]]:
        """Store what nothing uses; of many such values, meet some first."""
        while len(free := [each for each in self.values if not each.uses]) > 3:
            first, second = free[0], free[1]
            if first.is_float and second.is_float:
                met_ = self.add(f"ttl.math.max({first.text}, {second.text})", met(first.type, second.type),
                                np.maximum(first.used(), second.used()), first, second)  # fmt: skip
            elif first.type == second.type and first.type != "ui16":
                met_ = self.add(f"ttl.math.min({first.text}, {second.text})", first.type,
                                np.minimum(first.used(), second.used()), first, second)  # fmt: skip
            else:
                met_ = False
            if not met_:
                break
        return [(self.name("out"), each) for each in self.values if not each.uses]

    def case(self) -> Case:
        if self.maybe(0.35):
            self.product_of_steps()
        while len(self.values) < self.inputs:
            self.read()
        for _ in range(self.size):
            self.step()
        if self.is_tree and self.size:
            self.twist()
        outputs = self.outputs()
        stores: list[str] = []
        for name, value in outputs:
            type_ = value.type if not value.is_float else self.random.choice(FLOATS)
            cut = tuple(size - (self.random.randint(1, 31) if self.maybe(0.1) else 0) for size in self.shape[-2:])
            held = as_held(value.numbers, type_)[..., : cut[0], : cut[1]]
            nothing = np.nan if named(type_).register.kind == "f" else 77
            before = np.full(held.shape, nothing, STORAGE[type_])
            self.declare(name, type_, Array(before, held, np.zeros(held.shape)), (self.rows, self.columns))
            cb, view = self.buffer(name, self.block), self.name("o")
            stores += [f"with {cb}.reserve() as {view}:", f"    {view}.store({value.text})"]
            piece = self.piece(name, "i", "j", (self.rows, self.columns), self.leading)
            self.threads["write"].body += [f"with {cb}.wait() as {view}:", f"    ttl.copy({view}, {piece}).wait()"]
        return Case(self.text(stores), self.arrays, self.options(), True)

    def options(self) -> dict[str, object]:
        pick = self.random.choice
        return {
            "capacity": None,
            "schedule": self.maybe(0.5),
            "fpu": pick(("auto", "auto", "always", "never")),
            "block_calls": self.maybe(0.7),
            "arch": self.arch,
        }

    def text(self, stores: list[str]) -> str:
        (rows, columns), (wide, high) = self.counts, self.grid
        loops = [f"for b{at} in range({size}):" for at, size in enumerate(self.lead)] if self.walks else []
        loops += [f"for i in range(y, {rows}, {high}):", f"for j in range(x, {columns}, {wide}):"]
        arguments = [f"grid={self.grid}", *(f"{each}=True" for each in ("fp32_dest_acc_en", "dst_full_sync_en")
                                            if self.maybe(0.15))]  # fmt: skip
        compute = self.threads["compute"].body
        # The sum over steps comes first, since its blocks do.
        held = (
            compute.index(next((line for line in compute if line.startswith("for ")), "")) + 3 if self.has_steps else 0
        )
        bodies = {
            "read": self.threads["read"].body or ["pass"],
            "compute": [*compute[:held], *self.within(self.waits, [*compute[held:], *stores])],
            "write": self.threads["write"].body,
        }
        lines = ["import tlx_xdsl.ttl.language as ttl", "", "", f"@ttl.kernel({', '.join(arguments)})"]
        lines += [f"def kernel({', '.join(f'{name}: {self.annotations[name]}' for name in self.arrays)}):"]
        lines += ["    " + line for line in self.buffers]
        for name, body in bodies.items():
            kind = "compute" if name == "compute" else "datamovement"
            lines += ["", f"    @ttl.{kind}()", f"    def {name}():", "        x, y = ttl.node(dims=2)"]
            for depth, loop in enumerate(loops):
                lines.append("    " * (depth + 2) + loop)
            lines += ["    " * (len(loops) + 2) + line for line in body]
        return "\n".join(lines) + "\n"

    @property
    def has_steps(self) -> bool:
        return any(" += " in line for line in self.threads["compute"].body)

    @staticmethod
    def within(waits: list[str], body: list[str]) -> list[str]:
        return [f"with {', '.join(waits)}:", *("    " + line for line in body)] if waits else body


def case(number: int, size: int | None = None) -> Case:
    """The case of a number: always the same one. With `size`, that many operations."""
    return case_of(number, size, Maker)


def trial(number: int) -> Ending:
    """Compare the kernel of a number; where it ends badly, find a shorter one that does, too."""
    return compare(number, case)


def batched(number: int) -> Ending:
    """A trial of the command line, which goes through all numbers."""
    if has_compiler():
        first = number - number % TOGETHER
        prepare(range(first, first + TOGETHER), case)
    return trial(number)


if __name__ == "__main__":
    sys.exit(report("ttl_mixed", batched, lambda number: f"{case(number).text}\n{case(number).options}"))
