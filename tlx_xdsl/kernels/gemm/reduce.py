"""The second kernel of a stream-K GEMM: the sums of each shared tile's pieces, added in the order of K, become C.

A program adds a block of ROWS x COLUMNS of one tile, PIECES slots at a time: their loads are under way together. Which
programs of `persistent` had pieces of it follows from numbers alone, and a tile that one program had whole is
left as it is. The workspace is read once, from the L2 cache where it fits; there is nothing to reset between launches.

It is launched while the product still runs (programmatic dependent launch): the last thing that each program of that
does is to let it start, so that it waits in place for the end.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl

from .device import divided, tile_offsets
from .epilogue import type_of_result, vectors_at


@tlx_xdsl.jit
def element(row, column, stride, COLUMNS: tl.constexpr):
    """Return the offsets of rows and columns in a matrix whose rows (or columns) are `stride` elements apart."""
    if COLUMNS:
        return row[:, None] + column[None, :].to(tl.int64) * stride
    return row[:, None].to(tl.int64) * stride + column[None, :]


@tlx_xdsl.jit
def gemm_reduce(
    w, target, c_stride, matrix_stride, sizes, by_share, STEPS, FIRST_TILE,
    FORM: tl.constexpr, PIECES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """C = EPILOGUE(sums of the slots) for the tiles from FIRST_TILE on: programs are (tile, rows, columns).

    C and the second matrix are in memory, with rows (or columns) so many elements apart.
    """
    TILE: tl.constexpr = FORM.tile
    C_COLUMNS: tl.constexpr = FORM.c_columns
    TILE_N: tl.constexpr = TILE.tile_n
    tile = tl.program_id(0)
    first_program = divided(tile * STEPS, by_share)
    last_program = divided((tile + 1) * STEPS - 1, by_share)
    tl.extra.cuda.gdc_wait()  # the programs of this launch are there before the product has ended
    if first_program < last_program:
        in_rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
        in_columns = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
        off_m, off_n = tile_offsets(FIRST_TILE + tile, sizes, TILE.shared_m, TILE_N, TILE.group_m)
        row, column = off_m + in_rows, off_n + in_columns
        inside = (row < sizes.m)[:, None] & (column < sizes.n)[None, :]
        place = in_rows[:, None] * TILE_N + in_columns[None, :]
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        for some in range(first_program, last_program + 1, PIECES):
            loaded = ()
            for index in tl.static_range(PIECES):
                program = some + index
                # The first piece begins the tile, the others continue it.
                slot = 2 * program + (program == first_program).to(tl.int32)
                at = w + slot.to(tl.int64) * (TILE.shared_m * TILE_N) + place
                loaded = (*loaded, tl.load(at, (row < sizes.m)[:, None] & (program <= last_program), 0.0))
            for index in tl.static_range(PIECES):
                total += loaded[index]
        at = element(row, column, c_stride, C_COLUMNS)
        result = total
        if FORM.epilogue is not None:
            block_row = off_m + tl.program_id(1) * ROWS
            block_column = off_n + tl.program_id(2) * COLUMNS
            operands = vectors_at(target, block_row, block_column, sizes, ROWS, COLUMNS, FORM.turned)
            if target.matrix is not None:
                other = tl.load(target.matrix + element(row, column, matrix_stride, C_COLUMNS), inside, 0)
                operands = (*operands, other.to(tl.float32))
            result = FORM.epilogue(total, *operands)
        tl.store(target.ptr + at, result.to(type_of_result(target)), inside)
