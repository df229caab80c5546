"""Loops of a consumer of `device` over the blocks of keys of a tile, once it has the first scores.

Two ways. `overlapped_blocks` issues S(n) before P(n - 1) V(n - 1), and waits for the first alone: a softmax begins
while the second product is in flight. That takes registers of S, of P and of the sums at once: 2 consumers of 240.
`drained_blocks` waits for P(n - 1) V(n - 1) before it issues S(n), which takes the registers of the probabilities; the
other consumers keep the tensor cores busy: 3 of 160 registers fit, at head dimension 128 as well.

Both return the sums, the rows' maxima and totals, and the stage and phase that follow.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import call_next, next_place, wait_for_turn

from ..pieces import as_matrix
from ..scores import next_softmax

P_BITS = tl.constexpr(8)
"""Probabilities are multiplied by 2 ** P_BITS; e4m3 ends at 448."""


@tlx_xdsl.jit
def rounded(p, dtype: tl.constexpr):
    """P in 8 bits, its columns in the order of V's keys: the left operand of P V."""
    split = tl.reshape(p, (p.shape[0], p.shape[1] // 16, 2, 4, 2))
    return tl.reshape(tl.permute(split, (0, 1, 3, 2, 4)), p.shape).to(dtype)


@tlx_xdsl.jit
def halves(x):
    """A matrix's even and odd columns."""
    return tl.split(tl.reshape(x, (x.shape[0], x.shape[1] // 2, 2)))


@tlx_xdsl.jit
def halves_of_words(p, dtype: tl.constexpr):
    """`rounded`, as the lower and the upper halves of words of four."""
    low, high = halves(rounded(p, dtype).to(tl.uint8, bitcast=True))
    return halves(low.to(tl.uint16) | (high.to(tl.uint16) << 8))


@tlx_xdsl.jit
def packed(low, high):
    """The words of `halves_of_words`, to be called when the tensor cores have read the last ones.

    Carried from step to step as bytes, each would have to be taken out of a register and put into another. The PTX is
    not pure, which keeps it where it stands: else ptxas of Triton 3.6 and 3.7 lets each wgmma wait for the one before.
    """
    return tl.inline_asm_elementwise("mov.b32 $0, {$1, $2};", "=r,h,h", [low, high], tl.uint32, False, 1)


@tlx_xdsl.jit
def as_operand(words, dtype: tl.constexpr):
    """Return the words of `packed` as the left operand of P V.

    PTX makes four bytes of a word that comes four times: no other operation does, and the four are one register.
    """
    pairs = tl.join(words, words)
    fours = tl.reshape(tl.join(pairs, pairs), (words.shape[0], words.shape[1] * 4))
    return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r,r,r,r", [fours], dtype, True, 4)


@tlx_xdsl.jit
def add_product(left, values, acc, EXACT: tl.constexpr):
    """Issue P V of a block, with EXACT a sum of its own."""
    return tlx.async_dot(left, values) if EXACT else tlx.async_dot(left, values, acc)


@tlx_xdsl.jit
def overlapped_blocks(
    rings, weights, m, total, scale, num_blocks, stage, phase, c: tl.constexpr, EXACT: tl.constexpr, T: tl.constexpr
):  # fmt: skip
    """All blocks, each softmax beside the product of the block before. P is carried from step to step, as words."""
    q, k, v = rings
    dtype: tl.constexpr = tlx.dtype_of(q.buffers)
    q_tile = as_matrix(q.buffers[c])
    acc = tl.zeros((weights.shape[0], T.v.elements), tl.float32)
    alpha = tl.zeros_like(m)  # of EXACT: what `acc` still has to be multiplied by
    p = packed(*halves_of_words(weights, dtype))
    for _ in range(1, num_blocks):
        v_stage = stage
        v_phase = phase
        stage, phase = next_place(stage, phase, T.stages)
        left = as_operand(p, dtype)
        tlx.barrier_wait(k.full[stage], phase)
        wait_for_turn(c, T.consumers)
        scores = tlx.async_dot(q_tile, tlx.local_trans(as_matrix(k.buffers[stage])))
        tlx.barrier_wait(v.full[v_stage], v_phase)
        product = add_product(left, tlx.local_trans(as_matrix(v.buffers[v_stage])), acc, EXACT)
        call_next(c, T.consumers)
        scores = tlx.async_dot_wait(1, scores)
        tlx.barrier_arrive(k.empty[stage])
        weights, m, total, block_alpha = next_softmax(scores, scale, m, total, False, P_BITS)
        low, high = halves_of_words(weights, dtype)
        product = tlx.async_dot_wait(0, product)
        p = packed(low, high)
        tlx.barrier_arrive(v.empty[v_stage])
        if EXACT:
            acc = acc * alpha[:, None] + product
            alpha = block_alpha
        else:
            acc = product * block_alpha[:, None]
    acc = last_block(as_operand(p, dtype), v, q.empty[c], acc, alpha, stage, phase, EXACT)
    stage, phase = next_place(stage, phase, T.stages)
    return acc, m, total, stage, phase


@tlx_xdsl.jit
def drained_blocks(
    rings, weights, m, total, scale, num_blocks, stage, phase, c: tl.constexpr, EXACT: tl.constexpr, T: tl.constexpr
):  # fmt: skip
    """All blocks, one product after the other."""
    q, k, v = rings
    dtype: tl.constexpr = tlx.dtype_of(q.buffers)
    q_tile = as_matrix(q.buffers[c])
    acc = tl.zeros((weights.shape[0], T.v.elements), tl.float32)
    alpha = tl.zeros_like(m)
    for _ in range(1, num_blocks):
        left = rounded(weights, dtype)
        tlx.barrier_wait(v.full[stage], phase)
        values = tlx.local_trans(as_matrix(v.buffers[stage]))
        wait_for_turn(c, T.consumers)
        product = tlx.async_dot_wait(0, add_product(left, values, acc, EXACT))
        tlx.barrier_arrive(v.empty[stage])
        acc = acc * alpha[:, None] + product if EXACT else product
        stage, phase = next_place(stage, phase, T.stages)
        tlx.barrier_wait(k.full[stage], phase)
        scores = tlx.async_dot(q_tile, tlx.local_trans(as_matrix(k.buffers[stage])))
        call_next(c, T.consumers)
        scores = tlx.async_dot_wait(0, scores)
        tlx.barrier_arrive(k.empty[stage])
        weights, m, total, block_alpha = next_softmax(scores, scale, m, total, False, P_BITS)
        if EXACT:
            alpha = block_alpha
        else:
            acc = acc * block_alpha[:, None]
    acc = last_block(rounded(weights, dtype), v, q.empty[c], acc, alpha, stage, phase, EXACT)
    stage, phase = next_place(stage, phase, T.stages)
    return acc, m, total, stage, phase


@tlx_xdsl.jit
def last_block(left, v, q_empty, acc, alpha, stage, phase, EXACT: tl.constexpr):
    """The sums with those of the last block. Q of the tile is read no more."""
    tlx.barrier_arrive(q_empty)
    tlx.barrier_wait(v.full[stage], phase)
    values = tlx.local_trans(as_matrix(v.buffers[stage]))
    product = tlx.async_dot_wait(0, add_product(left, values, acc, EXACT))
    tlx.barrier_arrive(v.empty[stage])
    return acc * alpha[:, None] + product if EXACT else product
