# The operators and methods of tensors and descriptors, for type checkers and editors.
#
# A stub: the language's functions take tensors, and are methods of tensors.

from typing import Any

from tlx_xdsl.language import creation, math, matrix, memory, reduction, shape as shapes, standard
from tlx_xdsl.language.arguments import Value, Values
from tlx_xdsl.language.objects import mask, tensor

class TensorMembers:
    # Python calls these by their names; `objects._operator` makes them.
    def _binary(self, other: Value, /) -> tensor: ...
    def _comparison(self, other: Value, /) -> mask: ...
    def _unary(self) -> tensor: ...

    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = _binary
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _binary
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _binary
    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _binary
    __lt__ = __le__ = __gt__ = __ge__ = _comparison

    def __eq__(self, other: Value, /) -> mask: ...  # type: ignore[override]  # pyright: ignore
    def __ne__(self, other: Value, /) -> mask: ...  # type: ignore[override]  # pyright: ignore

    __neg__ = __invert__ = _unary

    def __getitem__(self, index: Any, /) -> tensor: ...
    def __hash__(self) -> int: ...
    # A scalar may be the condition of `if`, and an end of `range`.
    def __bool__(self) -> bool: ...
    def __index__(self) -> int: ...

    # The functions that are methods, which the package sets (`marks.MEMBERS`).
    cast = creation.cast
    to = creation.to
    abs = math.abs
    cdiv = math.cdiv
    ceil = math.ceil
    cos = math.cos
    erf = math.erf
    exp = math.exp
    exp2 = math.exp2
    floor = math.floor
    log = math.log
    log2 = math.log2
    logical_and = math.logical_and
    logical_or = math.logical_or
    rsqrt = math.rsqrt
    sin = math.sin
    sqrt = math.sqrt
    sqrt_rn = math.sqrt_rn
    gather = matrix.gather
    histogram = matrix.histogram
    advance = memory.advance
    atomic_add = memory.atomic_add
    atomic_and = memory.atomic_and
    atomic_cas = memory.atomic_cas
    atomic_load = memory.atomic_load
    atomic_max = memory.atomic_max
    atomic_min = memory.atomic_min
    atomic_or = memory.atomic_or
    atomic_poll = memory.atomic_poll
    atomic_store = memory.atomic_store
    atomic_xchg = memory.atomic_xchg
    atomic_xor = memory.atomic_xor
    store = memory.store
    argmax = reduction.argmax
    argmin = reduction.argmin
    associative_scan = reduction.associative_scan
    cumprod = reduction.cumprod
    cumsum = reduction.cumsum
    max = reduction.max
    min = reduction.min
    reduce = reduction.reduce
    reduce_or = reduction.reduce_or
    sum = reduction.sum
    xor_sum = reduction.xor_sum
    broadcast_to = shapes.broadcast_to
    expand_dims = shapes.expand_dims
    item = shapes.item
    permute = shapes.permute
    ravel = shapes.ravel
    reshape = shapes.reshape
    split = shapes.split
    trans = shapes.trans
    view = shapes.view
    flip = standard.flip
    sigmoid = standard.sigmoid
    softmax = standard.softmax
    sort = standard.sort

class DescriptorMembers:
    def load(self, offsets: Values, /) -> tensor:
        """The block at `offsets`, in elements."""
        ...

    def store(self, offsets: Values, value: tensor, store_reduce: str = "") -> None:
        """Write a block at `offsets`; `store_reduce` combines it with what is there."""
        ...

    def gather(self, x_offsets: tensor, y_offset: Value) -> tensor:
        """The rows `x_offsets`, from column `y_offset` on."""
        ...

    def scatter(self, value: tensor, x_offsets: tensor, y_offset: Value) -> None:
        """Write the rows of a block to the rows `x_offsets`, from column `y_offset` on."""
        ...

    def _atomic(self, offsets: Values, value: tensor) -> None:
        """Combine a block with what is at `offsets`, atomically."""
        ...

    atomic_add = atomic_min = atomic_max = atomic_and = atomic_or = atomic_xor = _atomic
