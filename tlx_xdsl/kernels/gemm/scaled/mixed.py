"""A consumer's part of a tile of 16-bit activations and 8-bit weights: C = A @ (B * scale_b), for weights alone.

The tensor cores multiply elements of one size, and take their left operand from registers: C^T = B^T A^T. A consumer
reads its rows of B^T, which are 64 columns of B, from shared memory, converts them to the type of A, which is exact,
and multiplies. Columns of C are then the rows of the products: few rows of A waste no rows of the tensor cores.

The sums are in f32 along all of K. With scales of blocks each step of 128 columns of A is a sum of its own, which is
multiplied as it is added (`scales.added`). The scale of B, in any order of memory, is

- one element,
- (1, N): a number for each column,
- (K / 128, N) or (K / 128, N / 128): a number for each 128 rows of each column, or of each 128 columns,

with numbers of blocks rounded up.

Epilogue. The sums are written to a transposed view of the buffer from which TMA stores C by rows.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ...rings import next_place
from ..device import store_part
from .scales import added


@tlx_xdsl.jit
def column_scales(scales, column, k, form: tl.constexpr):
    """The scales of a consumer's columns in step k."""
    columns = tl.minimum(column + tl.arange(0, form.tile.columns), scales.sizes.n - 1) // form.columns_per_scale
    return tl.load(scales.b + columns * scales.strides.b_columns + k * scales.strides.b_steps)


@tlx_xdsl.jit
def mixed_tile(ring, scales, c_desc, c, row, column, num_k, stage, phase, CONSUMER: tl.constexpr):
    """Compute and store a consumer's part of a tile, from a stage on. Returns the next stage and its phase."""
    form: tl.constexpr = ring.form
    PER_BLOCK: tl.constexpr = form.scaling == "blocks"
    sums = tl.zeros((form.tile.columns, form.tile.rows), tl.float32)
    for k in range(num_k):
        tlx.barrier_wait(ring.full[stage], phase)
        weights = tlx.local_load(ring.b[0][stage * 2 + CONSUMER]).to(tlx.dtype_of(ring.a))
        if PER_BLOCK:
            by_columns = column_scales(scales, column, k, form)
            step = tlx.async_dot(weights, tlx.local_trans(ring.a[stage]))
            step = tlx.async_dot_wait(0, step)
            sums = added(sums, step, by_columns, 1.0, True)
        else:
            sums = tlx.async_dot(weights, tlx.local_trans(ring.a[stage]), sums)
            sums = tlx.async_dot_wait(0, sums)
        tlx.barrier_arrive(ring.empty[stage])
        stage, phase = next_place(stage, phase, form.tile.stages)
    if not PER_BLOCK:
        sums = sums * column_scales(scales, column, 0, form)[:, None]
    store_part(sums.to(tlx.dtype_of(c_desc)), c_desc, c[CONSUMER], (row, column), False, True)
    return stage, phase
