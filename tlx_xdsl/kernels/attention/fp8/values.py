"""Preparation of V for attention in fp8: transposed, the keys of each 16 in the order of the tensor cores' operand.

Place 4t + j of 16 has key 2t + (j & 1) + 8 * (j >> 1), for t and j from 0 to 3 (`blocks` says why). The
four keys of a t become one 32-bit word, and words are transposed: 8-bit elements would go through shared memory one by
one. Places after the end of the keys are zeros.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl

UNIT = tl.constexpr(16)
"""Elements of 16 bytes. Strides are multiples of it; as the compiler sees that, it moves 16 bytes at a time."""


@tlx_xdsl.jit
def attention_fp8_values(
    v_ptr, words_ptr, strides, KV_HEADS, KV_LENGTH, BLOCKS, HEAD_DIM: tl.constexpr, KEYS: tl.constexpr
):  # fmt: skip
    """Programs are (head, KEYS of the keys); strides of `v_ptr` are in units of 16 bytes.

    `words_ptr` is (batch * heads, dim, BLOCKS * KEYS / 4), words of 4 places each.
    """
    COUNT: tl.constexpr = KEYS // 4
    head = tl.program_id(0)
    first = tl.program_id(1) * KEYS
    start = (head // KV_HEADS).to(tl.int64) * (strides[0] * UNIT) + (head % KV_HEADS).to(tl.int64) * (strides[1] * UNIT)
    word = tl.arange(0, COUNT)
    dims = tl.arange(0, HEAD_DIM)
    words = tl.zeros((COUNT, HEAD_DIM), tl.int32)
    for j in tl.static_range(4):
        keys = first + word // 4 * 16 + word % 4 * 2 + (j % 2 + j // 2 * 8)
        at = v_ptr + start + (keys.to(tl.int64) * (strides[2] * UNIT))[:, None] + dims[None, :]
        values = tl.load(at, (keys < KV_LENGTH)[:, None], 0.0)
        words |= values.to(tl.uint8, bitcast=True).to(tl.int32) << (8 * j)
    to = words_ptr + (head.to(tl.int64) * HEAD_DIM + dims)[:, None] * (BLOCKS * COUNT) + (first // 4 + word)[None, :]
    tl.store(to, tl.trans(words))
