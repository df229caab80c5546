"""Tuples and aggregates."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Tuples and aggregates",
    "Tuples, named tuples and aggregate classes group values at no cost; nothing of them is left at run time.",
    (
        Entry(
            "Unpacking into too few names",
            """
@tlx_xdsl.jit
def kernel(x, n):
    first, second = (n, n + 1, n + 2)  # error
    tl.store(x + first, second)
""",
            "Give each item a name, or collect the rest: `first, *others = ...`.",
        ),
        Entry(
            "An index beyond the tuple",
            """
@tlx_xdsl.jit
def kernel(x, n):
    pair = (n, n + 1)
    tl.store(x, pair[2])  # error
""",
            "Items count from 0.",
        ),
        Entry(
            "A tuple that is indexed at run time",
            """
@tlx_xdsl.jit
def kernel(x, n):
    pair = (n, n + 1)
    tl.store(x, pair[n])  # error
""",
            "The items may be of different types, so the compiler must know which is meant. Use `tl.where`, or unroll "
            "with `tl.static_range`.",
        ),
        Entry(
            "A field that an aggregate does not declare",
            """
@tl.core._aggregate
class Tile:
    row: tl.tensor

@tlx_xdsl.jit
def kernel(x, n):
    tile = Tile(n)
    tl.store(x, tile.column)  # error
""",
            "Fields are the annotated names of the class.",
        ),
        Entry(
            "A field that is changed",
            """
@tl.core._aggregate
class Tile:
    row: tl.tensor

@tlx_xdsl.jit
def kernel(x, n):
    tile = Tile(n)
    tile.row = n + 1  # error
""",
            "Aggregates are values: make a new one, `tile = Tile(n + 1)`.",
        ),
        Entry(
            "An ordinary class",
            """
class Tile:
    pass

@tlx_xdsl.jit
def kernel(x, n):
    tile = Tile()  # error
    tl.store(x, n)
""",
            "Decorate it with `tl.core._aggregate` and annotate its fields, or use a `typing.NamedTuple`.",
        ),
    ),
)
