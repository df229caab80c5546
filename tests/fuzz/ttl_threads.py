"""Threads of random TTL kernels: loops over blocks, steps of circular buffers, transfers and pipes, as text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

SPELLED = {"f32": "float32", "bf16": "bfloat16"}


@dataclass
class Thread:
    """The lines of a thread before its loops (0), in the loop over rows (1), in that over columns (2)."""

    before: list[list[str]] = field(default_factory=lambda: [[], [], []])
    after: list[list[str]] = field(default_factory=lambda: [[], [], []])


class Threads:
    """Three threads whose cores walk over a grid of blocks, each over its share."""

    def __init__(self, chosen: random.Random) -> None:
        self.random = chosen
        pick = chosen.choice
        self.dtype = pick(("f32", "f32", "bf16"))
        self.grid = pick(((1, 1), (1, 1), (1, 1), (2, 1), (1, 2), (2, 2), (2, 2), (3, 1), (1, 3)))
        self.counts = chosen.randint(1, 3), chosen.randint(1, 3)
        """Rows and columns of the grid of blocks."""
        self.split = pick(("blocked", "strided", "linear", "bounded")) if self.grid != (1, 1) else "plain"
        (rows, columns), (wide, high) = self.counts, self.grid
        self.is_busy = rows * columns >= wide * high if self.split == "linear" else rows >= high and columns >= wide
        """Whether each core has blocks."""
        self.style = pick(("with", "explicit", "implicit"))
        """How blocks are given back."""
        self.parameters: list[str] = []
        self.body: list[str] = []
        """Lines of the kernel's own body: circular buffers and pipes."""
        self.pipes = 0
        self.bytes = 0
        """Of circular buffers, those of the compiler's counted as far as they can be known."""
        self.shards: dict[str, int] = {}
        """Of tensors whose shards are blocks, the number of shards in a row."""
        self.threads = {"read": Thread(), "compute": Thread(), "write": Thread()}
        self.fresh = 0

    def iterations(self) -> Iterator[tuple[int, int]]:
        return ((i, j) for i in range(self.counts[0]) for j in range(self.counts[1]))

    # --- names and text ----------------------------------------------------------------------------------------------

    def name(self, letter: str) -> str:
        self.fresh += 1
        return f"{letter}{self.fresh}"

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def buffer(self, shape: tuple[int, int], like: str | None = None, factor: int | None = None) -> str:
        name, factor = self.name("cb"), factor or self.random.randint(1, 3)
        self.bytes += factor * self.block_bytes(shape)
        if like is None:
            like = self.random.choice(self.parameters)
            if self.maybe(0.5):
                dtype = f"ttl.{SPELLED[self.dtype]}"
                self.body.append(f"{name} = ttl.CircularBuffer(shape={shape}, dtype={dtype}, buffer_factor={factor})")
                return name
        if self.maybe(0.2):
            self.body.append(f"{name} = ttl.make_dataflow_buffer_like({like}, shape={shape}, block_count={factor})")
        else:
            factor_text = "" if factor == 2 and self.maybe(0.5) else f", buffer_factor={factor}"
            self.body.append(f"{name} = ttl.make_circular_buffer_like({like}, shape={shape}{factor_text})")
        return name

    def block_bytes(self, shape: tuple[int, int]) -> int:
        return shape[0] * shape[1] * (4096 if self.dtype == "f32" else 2048)

    def piece(self, tensor: str, index: tuple[str, str], shape: tuple[int, int]) -> str:
        if tensor in self.shards and self.maybe(0.7):
            row, column = index
            columns = self.shards[tensor]
            return f"{tensor}[{column if row == '0' else f'{row} * {columns} + {column}'}]"
        if shape == (1, 1) and self.maybe(0.5):
            return f"{tensor}[{index[0]}, {index[1]}]"
        slices = [self._slice(start, size) for start, size in zip(index, shape, strict=True)]
        return f"{tensor}[{', '.join(slices)}]"

    def _slice(self, start: str, size: int) -> str:
        if start == "0":
            return self.random.choice((f"0:{size}", f":{size}"))
        first = start if size == 1 else f"{start} * {size}" if start.isidentifier() else f"({start}) * {size}"
        last = f"({start} + 1) * {size}" if self.maybe(0.5) else f"{first} + {size}"
        return f"{first} : {last}"

    def copied(self, source: str, target: str) -> list[str]:
        match self.random.randrange(3):
            case 0:
                return [f"ttl.copy({source}, {target}).wait()"]
            case 1:
                name = self.name("tx")
                return [f"{name} = ttl.copy({source}, {target})", f"{name}.wait()"]
            case _:
                return [f"ttl.copy({source}, {target})"]

    # --- pipes -------------------------------------------------------------------------------------------------------

    def arriving(self, piece: str, view: str, mode: str, level: int) -> list[str]:
        """Bring a piece of a tensor into a block: each core reads it, or one does and sends it to others."""
        axes = self.sharing(mode, level)
        if not axes or self.pipes > 3 or self.maybe(0.25):
            return self.copied(piece, view)
        (wide, high), net = self.grid, self.name("net")
        source = [self.random.randrange(size) for size in self.grid]
        pipes: list[str] = []
        for x in range(wide) if "x" not in axes else source[:1]:
            for y in range(high) if "y" not in axes else source[1:]:
                pipes += self.pipes_from(x, y, axes)
        self.pipes += len(pipes)
        self.body.append(f"{net} = ttl.PipeNet([{', '.join(pipes)}])")
        sent, received = self.copied(view, "pipe"), self.copied("pipe", view)
        lines = ["def send(pipe):", *("    " + line for line in sent),
                 "def receive(pipe):", *("    " + line for line in received)]  # fmt: skip
        if len(sent) == len(received) == 1 and self.maybe(0.5):
            lines = []
            ends = [f"{net}.if_src(lambda pipe: {sent[0]})", f"{net}.if_dst(lambda pipe: {received[0]})"]
        else:
            ends = [f"{net}.if_src(send)", f"{net}.if_dst(receive)"]
        is_source = {"x": f"x == {source[0]}", "y": f"y == {source[1]}"}
        test = is_source.get(axes, f"x + {wide} * y == {source[0] + wide * source[1]}")
        if self.split == "linear":
            test = f"core == {source[0] + wide * source[1]}"
        return [*lines, f"if {test}:", *("    " + line for line in self.copied(piece, view)), *ends]

    def sharing(self, mode: str, level: int) -> str:
        """Return the coordinates of cores along which the blocks of an input are the same, in the same order."""
        (rows, columns), (wide, high) = self.counts, self.grid
        if self.split == "linear" and level:
            return ""
        found = ""
        if "j" not in mode and wide > 1 and (level < 2 or columns % wide == 0):
            found += "x"
        if "i" not in mode and high > 1 and (level < 1 or rows % high == 0):
            found += "y"
        # Of both directions, along one only; where it is the number of a core, there is one source.
        return self.random.choice("xy") if found == "xy" and self.split != "linear" and self.maybe(0.5) else found

    def pipes_from(self, x: int, y: int, axes: str) -> list[str]:
        """Pipes from a core to all others along the axes, each to a rectangle."""
        wide, high = self.grid
        left, right = (0, wide) if "x" in axes else (x, x + 1)
        top, bottom = (0, high) if "y" in axes else (y, y + 1)
        ranges = [(left, x, y, y + 1), (x + 1, right, y, y + 1), (left, right, top, y), (left, right, y + 1, bottom)]
        found: list[str] = []
        for x0, x1, y0, y1 in ranges:
            if x0 < x1 and y0 < y1:
                ends = [f"slice({a}, {b})" if b - a > 1 or self.maybe(0.2) else str(a) for a, b in ((x0, x1), (y0, y1))]
                single = "slice" not in "".join(ends)
                found.append(f"ttl.Pipe(src=({x}, {y}), {'dst' if single else 'dst_range'}=({', '.join(ends)}))")
        return found

    # --- holding blocks ----------------------------------------------------------------------------------------------

    def acquired(self, acquire: str, name: str, body: list[str]) -> list[str]:
        """A block that is held for some lines only."""
        if self.maybe(0.5):
            return [f"with {acquire} as {name}:", *("    " + line for line in body)]
        give = [f"{name}.{'push' if 'reserve' in acquire else 'pop'}()"] if self.style != "implicit" else []
        return [f"{name} = {acquire}", *body, *give]

    def hold(self, thread: str, level: int, acquire: str, name: str) -> None:
        """A block that is held until the end of a level."""
        made = self.threads[thread]
        made.before[level].append(f"{name} = {acquire}")
        if self.style != "implicit":
            give = f"{name}.{'push' if 'reserve' in acquire else 'pop'}()"
            made.after[level].insert(self.random.randint(0, len(made.after[level])), give)

    # --- loops -------------------------------------------------------------------------------------------------------

    def thread_text(self, thread: Thread) -> list[str]:
        """A thread's body with its loops."""
        (rows, columns), (wide, high) = self.counts, self.grid
        per_row, per_column = -(-rows // high), -(-columns // wide)
        outer: list[str]
        inner: list[str]
        match self.split:
            case "plain":
                outer, inner = [f"for i in range({rows}):"], [f"for j in range({columns}):"]
            case "strided":
                outer, inner = [f"for i in range(y, {rows}, {high}):"], [f"for j in range(x, {columns}, {wide}):"]
            case "bounded":
                outer = [f"for i in range(y * {per_row}, min((y + 1) * {per_row}, {rows})):"]
                inner = [f"for j in range(x * {per_column}, min((x + 1) * {per_column}, {columns})):"]
            case "linear":
                outer = []
                inner = [f"for n in range(core, {rows * columns}, {wide * high}):"]
                inner += [f"    i = n // {columns}", f"    j = n % {columns}"]
            case _:
                outer = [f"for p in range({per_row}):", f"    i = y * {per_row} + p"]
                inner = [f"for q in range({per_column}):", f"    j = x * {per_column} + q"]
                if rows % high:
                    outer.append(f"    if i < {rows}:")
                if columns % wide:
                    inner.append(f"    if j < {columns}:")
        lines = self.core_text()
        lines += thread.before[0]
        depth = 0
        for level, loop in ((1, outer), (2, inner)):
            lines += ["    " * depth + line for line in loop]
            if loop:
                depth += 2 if loop[-1].lstrip().startswith("if") else 1
            lines += ["    " * depth + line for line in thread.before[level]]
            if level == 1 and not loop:
                continue
            if level == 2:
                body = thread.after[2] if thread.before[2] else ["pass"]
                lines += ["    " * depth + line for line in body]
                depth -= 2 if loop[-1].lstrip().startswith("if") else 1
                lines += ["    " * depth + line for line in thread.after[1]]
        return lines + thread.after[0]

    def core_text(self) -> list[str]:
        match self.split:
            case "plain":
                return []
            case "linear":
                return ["core = ttl.core(dims=1)"]
            case _:
                return ["x, y = ttl.core(dims=2)"]
