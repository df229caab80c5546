"""Attention forward of heads in 8 bits (e4m3): probabilities, products and a second loop over the blocks of keys.

Tasks, rings, barriers, masks and the schedule are those of `attention/device`; read its top first. Here is the rest.

V. The tensor cores read 8-bit operands along K alone, and in P V that is along the keys: V comes transposed, (batch,
heads, dim, keys), from `values`, with the keys of each 16 in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15.

P. That order is the one in which P already lies. Of each 16 columns of S, thread t of four has 2t, 2t + 1, 2t + 8 and
2t + 9, and the tensor cores want 4t to 4t + 3 of it as their left operand: the same four, with the columns in the
order above. `rounded` says so, and nothing moves; a sum over keys may be in any order.

Numbers. Probabilities are at most 1, before the division by their sum; times 2 ** T.bits they use more of e4m3's range:
the smallest that is no zero is 2 ** -17 of the largest. The sums are in the same units, which cancel out. Scores are
q k * (q_scale * k_scale * sm_scale), and v_scale multiplies the result; each scale is one number, or one for each head.

Sums. The tensor cores keep some 14 bits of the sums of 8-bit products. With T.exact, P V of each block of keys is a sum
of its own, which is added to the f32 sums as these are rescaled, in one instruction; it takes as many registers as
they do. Else the tensor cores add up all keys.

Overlap. With T.overlap the loop is that of 16 bits (`tile.attend_blocks`), where a softmax begins while the product of
the block before is in flight. That takes registers of S, of P and of the sums at once: 2 consumers of 240. Without,
`drained_blocks` waits for P(n - 1) V(n - 1) before it issues S(n), which takes the registers of the probabilities; the
other consumers keep the tensor cores busy: 3 of 160 registers fit, at head dimension 128 as well.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ...rings import call_next, next_place, wait_for_turn
from ..pieces import add_values, arrived, matrices_of, scores_of, times, wait_for
from ..scores import next_softmax


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
def narrowed(p, dtype: tl.constexpr, T: tl.constexpr):
    """Probabilities in the operands' type; in 8 bits as the halves that are `packed`."""
    return halves_of_words(p, dtype) if T.in_8_bits else p.to(dtype)


@tlx_xdsl.jit
def carried(p, dtype: tl.constexpr, T: tl.constexpr):
    """Probabilities as they are carried to the next block."""
    if not T.overlap:
        return p
    p = narrowed(p, dtype, T)
    return packed(*p) if T.in_8_bits else p


@tlx_xdsl.jit
def left_of(p, dtype: tl.constexpr, T: tl.constexpr):
    """The left operand of P V, of probabilities as they were carried from the block before."""
    if not T.in_8_bits:
        return p
    return as_operand(p, dtype) if T.overlap else rounded(p, dtype)


@tlx_xdsl.jit
def multiplied(left, v, acc, T: tl.constexpr):
    """Issue P V of a block, added to the sums; with T.exact it is a sum of its own."""
    if not T.in_8_bits:
        return add_values(left, v, acc)
    values = tlx.local_trans(v[0])
    return [tlx.async_dot(left, values) if T.exact else tlx.async_dot(left, values, acc[0])]


@tlx_xdsl.jit
def summed(acc, products, alpha):
    """The sums, each row times its factor, with those of a block, in one instruction."""
    return [acc[0] * alpha[:, None] + products[0]]


@tlx_xdsl.jit
def drained_blocks(state, rings, power, steps, c: tl.constexpr, T: tl.constexpr):
    """All blocks but the first, one product after the other, in 8 bits; returns the state after them."""
    stage, phase, m, total, p, acc, alpha = state
    q, k, v = rings
    dtype: tl.constexpr = tlx.dtype_of(q.buffers)
    for _ in range(1, steps):
        left = rounded(p, dtype)
        v_block = arrived(v, stage, phase)
        wait_for_turn(c, T.consumers)
        products = wait_for(multiplied(left, v_block, acc, T))
        tlx.barrier_arrive(v.empty[stage])
        acc = summed(acc, products, alpha) if T.exact else products
        stage, phase = next_place(stage, phase, T.stages)
        scores = scores_of(matrices_of(q, c), arrived(k, stage, phase))
        call_next(c, T.consumers)
        scores = tlx.async_dot_wait(0, scores)
        tlx.barrier_arrive(k.empty[stage])
        p, m, total, block_alpha = next_softmax(scores, power, m, total, False, T.bits)
        if T.exact:
            alpha = block_alpha
        else:
            acc = times(acc, block_alpha)
    return stage, phase, m, total, p, acc, alpha
