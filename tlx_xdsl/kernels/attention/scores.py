"""Scores and probabilities of the attention kernels: caps, functions of the user, masks, softmax, sinks.

Scores are turned in this order: softcap * tanh(score / softcap), the user's SCORE_MOD, minus infinity for keys that are
hidden, powers of two. Without the first two the scale of the scores is that of the powers, and costs nothing.

A row may meet a block of which it sees no key. Its maximum is minus infinity until it sees one, and differences to that
are no numbers: MAY_BE_EMPTY has the functions subtract zero there. A row that never sees one has the sum 0, the result
0 and the logarithm minus infinity.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false

import math
from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.language.extra import libdevice

LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))


class Scoring(NamedTuple):
    """Factors and options of scores; None is no such option."""

    scale: Any
    power: Any
    """The factor of scores that are turned, to powers of two."""
    softcap: Any
    sinks: Any
    args: Any
    scales: Any
    """`Scales`, of operands in 8 bits."""


class Scales(NamedTuple):
    """Pointers to factors of Q, K and V, None for none, and the strides of each along batches and heads."""

    q: Any
    k: Any
    v: Any
    strides: Any


@tlx_xdsl.jit
def scale_of(scale_ptr, batch, head, strides):
    """The scale of a head of Q, K or V; 1 without any."""
    if scale_ptr is None:
        return 1.0
    return tl.load(scale_ptr + batch * strides[0] + head * strides[1])


@tlx_xdsl.jit
def power_of(scoring, place):
    """The factor of a head's scores, to powers of two. `place` is that of `tile.attend_tile`."""
    scales = scoring.scales
    if scales is None:
        return scoring.power
    head, HEADS, GROUP = place
    of_q = scale_of(scales.q, head // HEADS, head % HEADS, scales.strides[0])
    return scoring.power * (of_q * scale_of(scales.k, head // HEADS, head % HEADS // GROUP, scales.strides[1]))


@tlx_xdsl.jit
def unit_of(scoring, place):
    """The factor of a head's values."""
    if scoring.scales is None:
        return 1.0
    head, HEADS, GROUP = place
    return scale_of(scoring.scales.v, head // HEADS, head % HEADS // GROUP, scoring.scales.strides[2])


@tlx_xdsl.jit
def capped(scores, softcap, sm_scale):
    """The scores times sm_scale, x, as softcap * tanh(x / softcap), by e^2x: the hardware's tanh has 11 bits only."""
    powers = tl.math.exp2(scores * (2 * sm_scale * LOG2_E / softcap))
    return softcap - libdevice.fast_dividef(2 * softcap, 1.0 + powers)


@tlx_xdsl.jit
def turned_scores(scores, scoring, place, first_key, SCORE_MOD: tl.constexpr):
    """Scores in natural units, capped and as SCORE_MOD has them; `place` is batch, head and first row."""
    scores = scores * scoring.scale if scoring.softcap is None else capped(scores, scoring.softcap, scoring.scale)
    if SCORE_MOD is not None:
        batch, head, first_row = place
        rows = first_row + tl.arange(0, scores.shape[0])
        keys = first_key + tl.arange(0, scores.shape[1])
        scores = SCORE_MOD(scores, batch, head, rows[:, None], keys[None, :], *scoring.args)
    return scores


@tlx_xdsl.jit
def hide_keys(scores, last_key, first_column, KV_LENGTH, EVEN: tl.constexpr):
    """Minus infinity for the keys that a row does not see: those after its last one, and after the end of the keys.

    `last_key` is that of the first row; each further row sees one more.
    """
    last = last_key + tl.arange(0, scores.shape[0])
    if not EVEN:
        last = tl.minimum(last, KV_LENGTH - 1)
    columns = first_column + tl.arange(0, scores.shape[1])
    return tl.where(columns[None, :] <= last[:, None], scores, float("-inf"))


@tlx_xdsl.jit
def hide_keys_before(scores, first_key, first_column):
    """Minus infinity for the keys before a row's first one. `first_key` is that of the first row, as in `hide_keys`."""
    first = first_key + tl.arange(0, scores.shape[0])
    columns = first_column + tl.arange(0, scores.shape[1])
    return tl.where(columns[None, :] >= first[:, None], scores, float("-inf"))


@tlx_xdsl.jit
def subtracted(m, MAY_BE_EMPTY: tl.constexpr):
    """Return what to subtract from scores: the maximum, or zero where no key was seen."""
    return tl.where(m == float("-inf"), 0.0, m) if MAY_BE_EMPTY else m


@tlx_xdsl.jit
def first_softmax(scores, scale, MAY_BE_EMPTY: tl.constexpr = False, BITS: tl.constexpr = 0):
    """Probabilities before the division, times 2 ** BITS, their rows' maximum (scaled) and sum."""
    m = tl.max(scores, 1) * scale
    top = subtracted(m, MAY_BE_EMPTY)
    p = tl.math.exp2(scores * scale - (top - BITS if BITS else top)[:, None])
    return p, m, tl.sum(p, 1)


@tlx_xdsl.jit
def next_softmax(scores, scale, m, total, MAY_BE_EMPTY: tl.constexpr = False, BITS: tl.constexpr = 0):
    """The same for another block, with the factor that rescales what was computed before.

    The sum stands before that factor: ptxas then lets the shuffles of the sum run while the accumulator is rescaled, in
    the other order the rescaling waits for them (2 % of the whole kernel, Triton 3.6.0).
    """
    m_new = tl.maximum(m, tl.max(scores, 1) * scale)
    top = subtracted(m_new, MAY_BE_EMPTY)
    p = tl.math.exp2(scores * scale - (top - BITS if BITS else top)[:, None])
    block_total = tl.sum(p, 1)
    alpha = tl.math.exp2(m - top)
    return p, m_new, total * alpha + block_total, alpha


@tlx_xdsl.jit
def normalised(m, total, sink, MAY_BE_EMPTY: tl.constexpr, unit=1.0):
    """The maximum and sum of each row with its sink, if there is one, and the factor of what was summed up.

    Without a sink that is `unit` over the sum.
    """
    if sink is None:
        factor = unit / total
    else:
        m_new = tl.maximum(m, sink * LOG2_E)
        top = subtracted(m_new, True)
        shrunk = tl.math.exp2(m - top)
        total = total * shrunk + tl.math.exp2(sink * LOG2_E - top)
        factor = shrunk / total
        m = m_new
    if MAY_BE_EMPTY or sink is not None:
        factor = tl.where(total == 0.0, 0.0, factor)
    return m, total, factor
