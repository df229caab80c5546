"""Rows that begin anywhere, moved 16 bytes at a time, in plain `tl`.

A row is a body of whole vectors of 16 bytes, at an address that is a multiple of 16, and its edges: up to WIDTH - 1
elements before the body and as many after it, WIDTH being the elements of a vector. The compiler sees that a body
begins at a multiple of WIDTH elements and has such a length; edges are moved one by one. Nothing beside a row is
touched.

Programs have ROWS rows at a time, and LANES lanes for each. Blocks have one dimension for all lanes of all rows, so
that no compiler takes rows for what lies side by side. A body lies in PIECES of LANES vectors, and each lane has some
of the elements of the edges beside: tuples of blocks, of the pieces and of the edges. Reductions begin with what a
lane has, and only then go across lanes.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl

THREADS = 128
"""Threads of a program at least."""


def tile_of(columns: int, width: int, vectors: int) -> dict[str, int]:
    """Return the constants of a program for rows of so many columns, with so many vectors for each thread.

    >>> tile_of(1000, 8, 4)
    {'ROWS': 4, 'LANES': 32, 'PIECES': 4, 'WIDTH': 8}
    """
    lanes = max(1, -(-columns // (vectors * width)))
    lanes = min(1024, max(width, 1 << (lanes - 1).bit_length()))
    pieces = max(1, -(-(columns // width) // lanes))
    rows = max(1, THREADS // lanes) * max(1, vectors // pieces)
    return {"ROWS": rows, "LANES": lanes, "PIECES": pieces, "WIDTH": width}


@tlx_xdsl.jit
def load(pointer, at, inside):
    """Elements in f32, 0 where there are none."""
    return tl.load(pointer + at, inside, 0.0).to(tl.float32)


@tlx_xdsl.jit
def store(pointer, at, values, inside):
    """Store elements in the type of the memory."""
    tl.store(pointer + at, values.to(pointer.dtype.element_ty), inside)


@tlx_xdsl.jit
def lanes_of(first, ROWS: tl.constexpr, LANES: tl.constexpr):
    """The rows of all lanes of ROWS rows, and the numbers of the lanes in their rows."""
    lanes = tl.arange(0, ROWS * LANES)
    return first + lanes // LANES, lanes % LANES


@tlx_xdsl.jit
def to_lanes(x, ROWS: tl.constexpr, LANES: tl.constexpr):
    """The numbers of rows, for each lane."""
    return tl.reshape(tl.broadcast_to(x[:, None], (ROWS, LANES)), (ROWS * LANES,))


@tlx_xdsl.jit
def sum_of_rows(x, ROWS: tl.constexpr, LANES: tl.constexpr):
    """The sum over the lanes of a row, for each of them."""
    return to_lanes(tl.sum(tl.reshape(x, (ROWS, LANES)), 1), ROWS, LANES)


@tlx_xdsl.jit
def max_of_rows(x, ROWS: tl.constexpr, LANES: tl.constexpr):
    """The maximum over the lanes of a row, for each of them."""
    return to_lanes(tl.max(tl.reshape(x, (ROWS, LANES)), 1), ROWS, LANES)


@tlx_xdsl.jit
def body_of(rows, distance, WIDTH: tl.constexpr):
    """The first element of the bodies of rows that are `distance` elements apart, by their numbers."""
    return (rows.to(tl.int64) * distance + (WIDTH - 1)) // WIDTH * WIDTH


@tlx_xdsl.jit
def span_of(rows, distance, count, WIDTH: tl.constexpr):
    """The elements of rows before the body, and of it."""
    before = -((rows & (WIDTH - 1)) * (distance & (WIDTH - 1))) & (WIDTH - 1)
    return before, tl.maximum(count - before, 0) // WIDTH * WIDTH


@tlx_xdsl.jit
def edges_of(lanes, before, whole, count, WIDTH: tl.constexpr, LANES: tl.constexpr):
    """The places of the edges of rows of `count` elements, from the body's first element, and which are there.

    All but `lanes` are scalars, or have a second dimension of 1.
    """
    EACH: tl.constexpr = max(2 * WIDTH // LANES, 1)
    # Lanes backwards: one thread would get what several have to load, as these are neighbours in memory.
    at = (LANES - 1 - lanes)[:, None] * EACH + tl.arange(0, EACH)[None, :]
    at = tl.where(at < WIDTH, at, at + whole) - WIDTH
    return at, (at >= -before) & (at < count - before)


@tlx_xdsl.jit
def parts_of(
    rows, lanes, distance, count, FIRST, PIECES: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,
    EDGES: tl.constexpr = True,
):  # fmt: skip
    """The places of the elements of pieces from FIRST on and of edges, from the bodies' first, and which are there.

    Without EDGES rows are bodies.
    """
    before, whole = span_of(rows, distance, count, WIDTH)
    places = ()
    inside = ()
    for piece in tl.static_range(PIECES):
        at = ((FIRST + piece) * LANES + lanes) * WIDTH
        places += (at[:, None] + tl.arange(0, WIDTH)[None, :],)
        inside += ((at < whole)[:, None],)
    if not EDGES:
        return places, inside
    at, is_edge = edges_of(lanes, before[:, None], whole[:, None], count[:, None], WIDTH, LANES)
    return (*places, at), (*inside, is_edge & (FIRST == 0))


@tlx_xdsl.jit
def load_parts(pointers, places, inside, other, COUNT: tl.constexpr = None):
    """Load parts, or the first COUNT, of rows whose bodies begin at `pointers`; `other` where there is nothing."""
    count: tl.constexpr = len(places) if COUNT is None else COUNT
    return [tl.load(pointers[:, None] + places[part], inside[part], other) for part in range(count)]


@tlx_xdsl.jit
def store_parts(pointers, places, inside, values):
    """Store parts of rows whose bodies begin at `pointers`."""
    for part in tl.static_range(len(places)):
        store(pointers[:, None], places[part], values[part], inside[part])
