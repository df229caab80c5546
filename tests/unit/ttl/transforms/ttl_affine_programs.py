"""Random kernels of loops that move tiles: readers, compute threads and writers that fit each other in many ways."""

from __future__ import annotations

import random

TILE = "!ttcore.tile<32x32, f32>"
VIEW = f"tensor<1x1x{TILE}>"
TILES = 4
"""Rows and columns of tiles of each tensor."""
MATRIX = f"tensor<{32 * TILES}x{32 * TILES}xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>"
ACCESSOR = f"!ttl.tensor_accessor<{MATRIX}>"


class Program:
    """A kernel with the inputs `a`, `b` and `d`, of which it uses some, and the output `c`."""

    def __init__(self, seed: int) -> None:
        self.random = rng = random.Random(seed)
        self.lines: list[str] = []
        self.values = 0
        self.inputs = ["a", "b", "d"][: rng.choice([1, 2, 2, 2, 3])]
        self.factors = {name: rng.choice([1, 2, 2, 3, 4, 4, 6]) for name in (*self.inputs, "c")}
        self.outer = rng.choice([1, 1, 1, 2, 3])
        self.inner = rng.choice([1, 2, 3, 4, 4, 6, 7])
        apart = self.outer == 1 and rng.random() < 0.3
        self.fused_reader = not apart or rng.random() < 0.5
        self.fused_compute = not apart or rng.random() < 0.4
        if self.fused_reader and not self.fused_compute:
            # Just enough room: the reader gets on only because it pushes each block as soon as it can.
            for name in self.inputs:
                self.factors[name] = max(1, self.inner - rng.choice([0, 1, 1]))
        self.one_thread = rng.random() < 0.15
        self.waits = rng.random() < 0.9

    def text(self) -> str:
        """The kernel as a module."""
        self.add("ttl.kernel @k(" + ", ".join(f"%{name}: {MATRIX}" for name in "abdc") + ") {")
        for name, factor in self.factors.items():
            self.add(
                f"%{name}cb = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor={factor} : "
                f"{self.type(name)}"
            )
        for name in "abdc":
            self.add(f"%{name}acc = ttl.tensor_accessor %{name} : {MATRIX} -> {ACCESSOR}")
        self.add("%c0 = arith.constant 0 : index")
        if self.one_thread and self.fused_reader and self.fused_compute:
            self.thread("datamovement_thread @move", self.move)
        else:
            self.thread("datamovement_thread @read", self.read)
            self.thread("datamovement_thread @write", self.write)
        self.thread("compute_thread @compute", self.compute)
        self.add("ttl.kernel_return\n}")
        return "\n".join(self.lines)

    def add(self, line: str) -> None:
        self.lines.append(line)

    def value(self) -> str:
        self.values += 1
        return f"%v{self.values}"

    def type(self, name: str) -> str:
        return f"!ttl.cb<[1, 1], {TILE}, {self.factors[name]}>"

    def thread(self, head: str, body) -> None:
        self.add(f"ttl.{head} {{")
        body()
        self.add("ttl.thread_return\n}")

    # --- loops -------------------------------------------------------------------------------------------------------

    def nest(self, body) -> None:
        """All iterations, in one loop or in two; `body` takes the indices."""
        if self.outer == 1:
            self.loop(self.inner, lambda i: body([i]))
        elif self.random.random() < 0.3:
            self.loop(self.outer * self.inner, lambda i: body([i]))
        else:
            self.loop(self.outer, lambda o: self.loop(self.inner, lambda i: body([o, i])))

    def loop(self, count: int, body) -> None:
        index = self.value()
        lower, step = self.random.choice([0, 0, 1]), self.random.choice([1, 1, 2])
        if self.loops_apart:
            lower, step = 0, 1
        self.add(f"affine.for {index} = {lower} to {lower + count * step} step {step} {{")
        body(index)
        self.add("}")

    loops_apart = False

    # --- threads -----------------------------------------------------------------------------------------------------

    def read(self) -> None:
        if self.fused_reader:
            self.nest(lambda indices: [self.read_block(name, indices) for name in self.inputs])
            return
        self.loops_apart = True
        for name in self.inputs:
            self.loop(self.inner, lambda i, name=name: self.read_block(name, [i]))
        self.loops_apart = False

    def write(self) -> None:
        self.nest(self.write_block)
        if not self.fused_compute:
            for _ in self.inputs[1:]:
                self.nest(self.write_block)

    def move(self) -> None:
        def body(indices: list[str]) -> None:
            for name in self.inputs:
                self.read_block(name, indices)
            self.write_block(indices)

        self.nest(body)

    def compute(self) -> None:
        if self.fused_compute:
            self.nest(lambda _: self.compute_block(self.inputs))
            return
        self.loops_apart = True
        for name in self.inputs:
            self.loop(self.inner, lambda _, name=name: self.compute_block([name]))
        self.loops_apart = False

    # --- blocks ------------------------------------------------------------------------------------------------------

    def place(self, indices: list[str]) -> str:
        """A random tile for each iteration, sometimes the same one."""
        rows = []
        if self.random.random() < 0.2:
            indices = indices[:-1]
        for _ in range(2):
            factors = [self.random.choice([0, 0, 1, 1, 2, 3]) for _ in indices]
            terms = " + ".join(f"d{i} * {factor}" for i, factor in enumerate(factors) if factor)
            dims = ", ".join(f"d{i}" for i in range(len(indices)))
            expression = f"({terms or '0'} + {self.random.randrange(TILES)}) mod {TILES}"
            row = self.value()
            self.add(f"{row} = affine.apply affine_map<({dims}) -> ({expression})> ({', '.join(indices)})")
            rows.append(row)
        return ", ".join(rows)

    def read_block(self, name: str, indices: list[str]) -> None:
        place, view, transfer = self.place(indices), self.value(), self.value()
        self.add(f"{view} = ttl.cb_reserve %{name}cb : {self.type(name)} -> {VIEW}")
        self.add(
            f"{transfer} = ttl.copy %{name}acc[{place}], {view} : {ACCESSOR}, {VIEW} -> !ttl.transfer_handle<read>"
        )
        self.add(f"ttl.wait {transfer}" if self.waits else "ttl.dma_barrier read")
        self.add(f"ttl.cb_push %{name}cb")

    def write_block(self, indices: list[str]) -> None:
        place, view, transfer = self.place(indices), self.value(), self.value()
        self.add(f"{view} = ttl.cb_wait %ccb : {self.type('c')} -> {VIEW}")
        self.add(f"{transfer} = ttl.copy {view}, %cacc[{place}] : {VIEW}, {ACCESSOR} -> !ttl.transfer_handle<write>")
        self.add(f"ttl.wait {transfer}" if self.waits else "ttl.dma_barrier write")
        self.add("ttl.cb_pop %ccb")

    def compute_block(self, names: list[str]) -> None:
        names = self.random.sample(names, len(names))
        steps = [(name, "wait") for name in names]
        steps.insert(self.random.randint(0, len(steps)), ("c", "reserve"))
        views = {}
        for name, step in steps:
            views[name] = self.value()
            self.add(f"{views[name]} = ttl.cb_{step} %{name}cb : {self.type(name)} -> {VIEW}")
        total = self.value()
        self.add(f"{total} = ttl.abs {views[names[0]]} : {VIEW} -> {VIEW}")
        for name in names[1:]:
            last, total = total, self.value()
            self.add(f"{total} = ttl.add {last}, {views[name]} : {VIEW}, {VIEW} -> {VIEW}")
        self.add(f"ttl.store {total}, {views['c']} : {VIEW}, {VIEW}")
        releases = [f"ttl.cb_pop %{name}cb" for name in names]
        releases.insert(self.random.randint(0, len(releases)), "ttl.cb_push %ccb")
        for release in releases:
            self.add(release)
