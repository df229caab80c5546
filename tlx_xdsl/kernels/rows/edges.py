"""Rows that begin anywhere, moved 16 bytes at a time, in plain `tl`.

A row is a body of whole vectors of 16 bytes, at an address that is a multiple of 16, and its edges: up to WIDTH - 1
elements before the body and as many after it, WIDTH being the elements of a vector. The compiler sees that a body
begins at a multiple of WIDTH elements and has such a length; edges are moved one by one. Nothing beside a row is
touched.

Programs have ROWS rows at a time. A body lies in PIECES of LANES vectors, and each lane has one element of the edges
beside: reductions begin with what a lane has, and only then go across lanes.
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
    lanes = min(1024, max(2 * width, 1 << (lanes - 1).bit_length()))
    pieces = max(1, -(-(columns // width) // lanes))
    rows = max(1, THREADS // lanes) * max(1, vectors // pieces)
    return {"ROWS": rows, "LANES": lanes, "PIECES": pieces, "WIDTH": width}


@tlx_xdsl.jit
def rows_of_lanes(first, ROWS: tl.constexpr, LANES: tl.constexpr):
    """The numbers of ROWS rows, for each lane. They fall, so that threads get lanes and not rows one by one."""
    return tl.broadcast_to((first + ROWS - 1 - tl.arange(0, ROWS))[:, None], (ROWS, LANES))


@tlx_xdsl.jit
def body_of(rows, distance, WIDTH: tl.constexpr):
    """The first element of the bodies of rows that are `distance` elements apart, by their numbers."""
    return (rows.to(tl.int64) * distance + (WIDTH - 1)) // WIDTH * WIDTH


@tlx_xdsl.jit
def edges_of(rows, distance, count, WIDTH: tl.constexpr, LANES: tl.constexpr):
    """Elements before the body and of it; where the edges are, from the body's first element, and which are there.

    `rows` and `count`, the elements of each, are scalars or have a second dimension of 1, along which lanes go.
    """
    before = (body_of(rows, distance, WIDTH) - rows.to(tl.int64) * distance).to(tl.int32)
    whole = tl.maximum(count - before, 0) // WIDTH * WIDTH
    # Backwards: neighbours in memory would be given to one thread, which gets lanes in the order of the body's vectors.
    lanes = LANES - 1 - tl.arange(0, LANES)
    at = tl.where(lanes < WIDTH, lanes, lanes + whole) - WIDTH
    return before, whole, at, (at >= -before) & (at < count - before)


@tlx_xdsl.jit
def places_of(whole, PIECE, LANES: tl.constexpr, WIDTH: tl.constexpr):
    """The places of a piece's elements in bodies, and which are there."""
    vectors = (PIECE * LANES + tl.arange(0, LANES)) * WIDTH
    at = (vectors[:, None] + tl.arange(0, WIDTH)[None, :])[None, :, :]
    return at, at < whole[:, :, None]


@tlx_xdsl.jit
def load_pieces(
    row_ptr, whole, other, FIRST, PIECES: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """The pieces of bodies from FIRST on, whose first elements are at `row_ptr`."""
    pieces = ()
    for piece in tl.static_range(PIECES):
        at, inside = places_of(whole, FIRST + piece, LANES, WIDTH)
        pieces += (tl.load(row_ptr[:, :, None] + at, inside, other),)
    return pieces


@tlx_xdsl.jit
def store_piece(row_ptr, value, whole, PIECE, LANES: tl.constexpr, WIDTH: tl.constexpr):
    """Store a piece of bodies whose first elements are at `row_ptr`."""
    at, inside = places_of(whole, PIECE, LANES, WIDTH)
    tl.store(row_ptr[:, :, None] + at, value.to(row_ptr.dtype.element_ty), inside)
