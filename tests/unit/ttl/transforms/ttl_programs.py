"""Compute threads as text, built step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

Shape = tuple[int, int]


class Block(NamedTuple):
    """A block of tiles as a value."""

    name: str
    shape: Shape


@dataclass
class Program:
    """A kernel with one compute thread; inputs and outputs are circular buffers without any other thread."""

    data_type: str = "f32"
    attributes: str = ""
    buffers: dict[str, tuple[Shape, int]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    values: int = 0

    @property
    def tile(self) -> str:
        return f"!ttcore.tile<32x32, {self.data_type}>"

    def type_of(self, shape: tuple[int, ...]) -> str:
        return f"tensor<{'x'.join(map(str, shape))}x{self.tile}>"

    def buffer(self, name: str, shape: Shape, factor: int = 2) -> str:
        self.buffers[name] = shape, factor
        return name

    def cb_type(self, name: str) -> str:
        shape, factor = self.buffers[name]
        return f"!ttl.cb<{list(shape)}, {self.tile}, {factor}>"

    def add(self, text: str) -> None:
        self.lines.append(text)

    def value(self, shape: Shape) -> Block:
        self.values += 1
        return Block(f"%v{self.values}", shape)

    def acquire(self, step: str, name: str) -> Block:
        block = self.value(self.buffers[name][0])
        self.add(f"{block.name} = ttl.cb_{step} %{name} : {self.cb_type(name)} -> {self.type_of(block.shape)}")
        return block

    def wait(self, name: str) -> Block:
        return self.acquire("wait", name)

    def reserve(self, name: str) -> Block:
        return self.acquire("reserve", name)

    def pop(self, *names: str) -> None:
        for name in names:
            self.add(f"ttl.cb_pop %{name}")

    def push(self, *names: str) -> None:
        for name in names:
            self.add(f"ttl.cb_push %{name}")

    def op(self, name: str, *operands: Block, shape: Shape | None = None, attributes: str = "") -> Block:
        result = self.value(operands[0].shape if shape is None else shape)
        types = ", ".join(self.type_of(each.shape) for each in operands)
        arrow = f"{types} -> " if operands else ""
        listed = ", ".join(each.name for each in operands)
        self.add(f"{result.name} = ttl.{name} {listed} {attributes} : {arrow}{self.type_of(result.shape)}")
        return result

    def bcast(self, value: Block, shape: Shape, *dims: int) -> Block:
        return self.op("bcast", value, shape=shape, attributes=f"{{dims = {list(dims)}}}")

    def reduce(self, kind: str, value: Block, *dims: int) -> Block:
        rows, columns = (1 if dim in dims else size for dim, size in enumerate(value.shape))
        return self.op(f"reduce_{kind}", value, shape=(rows, columns), attributes=f"{{dims = {list(dims)}}}")

    def matmul(self, lhs: Block, rhs: Block) -> Block:
        return self.op("matmul", lhs, rhs, shape=(lhs.shape[0], rhs.shape[1]))

    def transpose(self, value: Block) -> Block:
        return self.op("transpose", value, shape=value.shape[::-1])

    def store(self, value: Block, place: Block, attributes: str = "") -> None:
        type_ = self.type_of(value.shape)
        self.add(f"ttl.store {value.name}, {place.name} {attributes} : {type_}, {type_}")

    def output(self, value: Block, name: str) -> None:
        """Reserve, store and push."""
        self.buffers.setdefault(name, (value.shape, 2))
        self.store(value, self.reserve(name))
        self.push(name)

    @property
    def text(self) -> str:
        buffers = [
            f"%{name} = ttl.create_cb shape={list(shape)}, element_type={self.tile}, buffer_factor={factor} "
            f": {self.cb_type(name)}"
            for name, (shape, factor) in self.buffers.items()
        ]
        attributes = f"grid = #ttcore.grid<1x1>{self.attributes}"
        lines = ["ttl.compute_thread @compute {", *self.lines, "ttl.thread_return", "}", "ttl.kernel_return"]
        return "\n".join([f"ttl.kernel @k() attributes {{{attributes}}} {{", *buffers, *lines, "}"])
