"""Classes of values: aggregates with methods."""

import triton
import triton.language as tl
from triton.language.core import _aggregate as aggregate

from tests.gallery.cases import case


@aggregate
class Cursor:
    pointer: tl.tensor
    position: tl.tensor
    size: tl.constexpr

    @triton.constexpr_function
    def __init__(self, pointer, position, size):
        self.pointer = pointer
        self.position = position
        self.size = tl.constexpr(size)

    @triton.jit
    def index(self):
        return self.position * self.size + tl.arange(0, self.size)

    @triton.jit
    def read(self, other=0.0):
        return tl.load(self.pointer + self.index(), mask=self.index() < 1000, other=other)

    @triton.jit
    def moved(self, by):
        return Cursor(self.pointer, self.position + by, self.size)


@aggregate
class Pair:
    left: Cursor
    right: Cursor

    @triton.constexpr_function
    def __init__(self, left, right):
        self.left = left
        self.right = right

    @triton.jit
    def product(self):
        return self.left.read() * self.right.read(other=1.0)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def aggregate_methods(x, out, n):
    """An aggregate is made, its methods called; a method makes another one."""
    cursor = Cursor(x, tl.program_id(0), 64)
    a = cursor.read()
    b = cursor.moved(n).read(other=-1.0)
    tl.store(out + cursor.index(), a + b)
    tl.static_assert(cursor.size == 64)


@case({"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def nested_aggregates(x, y, out, n):
    """Aggregates in aggregates, carried by a loop and by a branch."""
    cursor = Cursor(x, 0 * n, 32)
    total = tl.zeros((32,), tl.float32)
    for _ in range(n):
        pair = Pair(cursor, Cursor(y, n, 32))
        total += pair.product()
        cursor = cursor.moved(1)
    if n > 3:
        cursor = cursor.moved(-2)
    tl.store(out + tl.arange(0, 32), total + cursor.read())
