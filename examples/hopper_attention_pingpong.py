"""Flash attention, forward, on Hopper: persistent programs whose two consumers take turns at the tensor cores.

O = softmax(Q K^T * scale) V for each head, and for a backward pass the logarithm of each row's softmax denominator,
by online softmax in powers of two.

Design. As many programs as there are multiprocessors take tiles of BLOCK_M rows, one after the other. Tasks: one
producer (the default task) loads by TMA, also for the next tile while the consumers end this one; two consumers of one
warp group each hold half of the rows of a tile. Each is pipelined as in hopper_attention_pipelined.py: S(n) is issued
before O += P(n - 1) V(n - 1), and the softmax of block n runs while the second product is in flight.

Turns (ping-pong): a consumer issues its products only in its turn, and calls the other one as soon as they are issued.
So one computes a softmax while the other one's products run, instead of both waiting for the same unit. Named barrier
c is "consumer c may issue", with 256 threads: the 128 that wait and the 128 that arrive. Both consumers take as many
turns (one for each block, and one for the last V of a tile), so they alternate; consumer 1 calls consumer 0 once at the
start, and consumer 0 takes the last call at the end: each barrier completes as often as a task waits for it.

Rings: K and V have one of NUM_STAGES blocks each. Block n of a tile is number base + n of the program's sequence, its
stage that number modulo NUM_STAGES, its phase the number of earlier turns. Q has one buffer for each consumer, O too,
so that Q of the next tile arrives before O of this one has left.

Barriers: `q_full[half]`, `k_full[stage]` and `v_full[stage]` complete when the bytes of a copy have arrived.
`q_empty[half]` completes when that consumer has done its last S of a tile; `k_empty[stage]` and `v_empty[stage]` when
both consumers have arrived, after the wait for the product that read the stage. Parities of Q are those of the tile's
number. The producer waits for the phase before the current one; a fresh barrier lets the first pass.

Schedule: tiles of a head follow each other, from the last rows to the first; in a causal mask that is from long to
short, and alternate rounds are assigned in reverse order, which balances the programs' load. Consumers iterate over key
blocks in descending order, so that with a causal mask only the first block needs the mask. The length is a multiple of
BLOCK_M and BLOCK_N.

    tlx compile examples/hopper_attention_pingpong.py:attention --target sm_90a -o build/     (needs no GPU)
    python examples/hopper_attention_pingpong.py                             (needs a Hopper GPU and torch)
"""

import math

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))
TURN_THREADS = tl.constexpr(256)
"""Threads that meet at a named barrier: both consumers."""


@tlx_xdsl.jit
def load_block(desc, row, buffer, full, empty, phase, BYTES: tl.constexpr):
    """Producer: when `buffer` is free, load the block at `row` to it."""
    tlx.barrier_wait(empty, phase ^ 1)
    tlx.barrier_expect_bytes(full, BYTES)
    tlx.async_descriptor_load(desc, buffer, [row, 0], full)


@tlx_xdsl.jit
def causal_mask(scores, first_row, first_column):
    """Hide the keys after each row's own position."""
    rows = first_row + tl.arange(0, scores.shape[0])
    columns = first_column + tl.arange(0, scores.shape[1])
    return tl.where(rows[:, None] >= columns[None, :], scores, float("-inf"))


@tlx_xdsl.jit
def first_softmax(scores, scale):
    """Probabilities before the division, their rows' maximum (scaled) and sum."""
    m = tl.max(scores, 1) * scale
    p = tl.math.exp2(scores * scale - m[:, None])
    return p, m, tl.sum(p, 1)


@tlx_xdsl.jit
def next_softmax(scores, scale, m, total):
    """The same for another block, with the factor that rescales what was computed before."""
    m_new = tl.maximum(m, tl.max(scores, 1) * scale)
    p = tl.math.exp2(scores * scale - m_new[:, None])
    alpha = tl.math.exp2(m - m_new)
    return p, m_new, total * alpha + tl.sum(p, 1), alpha


@tlx_xdsl.jit
def place_in_round(turn, CAUSAL: tl.constexpr):
    """Return the program's place in a round of tiles: a causal mask assigns alternate rounds in reverse order."""
    pid = tl.program_id(0)
    return tl.where(turn % 2 == 0, pid, tl.num_programs(0) - 1 - pid) if CAUSAL else pid


@tlx_xdsl.jit
def count_tiles(num_tiles, CAUSAL: tl.constexpr):
    """The number of tiles that this program takes: one in each full round, and perhaps one of the rest."""
    rounds = num_tiles // tl.num_programs(0)
    rest = num_tiles - rounds * tl.num_programs(0)
    return rounds + (place_in_round(rounds, CAUSAL) < rest).to(tl.int32)


@tlx_xdsl.jit
def tile_of(turn, LENGTH, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """First row of the head, first row of the tile in the head, and blocks of keys, of the program's `turn`-th tile."""
    tiles = LENGTH // BLOCK_M
    tile = turn * tl.num_programs(0) + place_in_round(turn, CAUSAL)
    row = (tiles - 1 - tile % tiles) * BLOCK_M
    num_blocks = (row + BLOCK_M) // BLOCK_N if CAUSAL else LENGTH // BLOCK_N
    return tile // tiles * LENGTH, row, num_blocks


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, sm_scale, HEADS, LENGTH,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
    NUM_STAGES: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    tl.static_assert(not CAUSAL or BLOCK_M == BLOCK_N, "one block of keys holds the diagonal of a tile")
    HALF_M: tl.constexpr = BLOCK_M // 2
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    Q_BYTES: tl.constexpr = HALF_M * HEAD_DIM * tlx.size_of(dtype)
    KV_BYTES: tl.constexpr = BLOCK_N * HEAD_DIM * tlx.size_of(dtype)
    num_tiles = count_tiles(HEADS * (LENGTH // BLOCK_M), CAUSAL)

    q = tlx.local_alloc((HALF_M, HEAD_DIM), dtype, 2)
    k = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    v = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    o = tlx.local_alloc((HALF_M, HEAD_DIM), dtype, 2)
    q_full = tlx.alloc_barriers(2)
    q_empty = tlx.alloc_barriers(2)
    k_full = tlx.alloc_barriers(NUM_STAGES)
    v_full = tlx.alloc_barriers(NUM_STAGES)
    k_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)
    v_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            base = 0
            for turn in range(num_tiles):
                head_row, row, num_blocks = tile_of(turn, LENGTH, BLOCK_M, BLOCK_N, CAUSAL)
                for each in tl.static_range(2):
                    q_row = head_row + row + each * HALF_M
                    load_block(q_desc, q_row, q[each], q_full[each], q_empty[each], turn & 1, Q_BYTES)
                for n in range(num_blocks):
                    stage, phase = tlx.get_bufidx_phase(base + n, NUM_STAGES)
                    kv_row = head_row + (num_blocks - 1 - n) * BLOCK_N
                    load_block(k_desc, kv_row, k[stage], k_full[stage], k_empty[stage], phase, KV_BYTES)
                    load_block(v_desc, kv_row, v[stage], v_full[stage], v_empty[stage], phase, KV_BYTES)
                base += num_blocks

        with tlx.async_task(num_warps=4, replicate=2, registers=240):  # consumers
            half: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            if half == 1:
                tlx.named_barrier_arrive(0, TURN_THREADS)
            base = 0
            for turn in range(num_tiles):
                head_row, row, num_blocks = tile_of(turn, LENGTH, BLOCK_M, BLOCK_N, CAUSAL)
                first_row = row + half * HALF_M

                stage, phase = tlx.get_bufidx_phase(base, NUM_STAGES)
                tlx.barrier_wait(q_full[half], turn & 1)
                tlx.barrier_wait(k_full[stage], phase)
                tlx.named_barrier_wait(half, TURN_THREADS)
                first = tlx.async_dot(q[half], tlx.local_trans(k[stage]))
                tlx.named_barrier_arrive(1 - half, TURN_THREADS)
                first = tlx.async_dot_wait(0, first)
                tlx.barrier_arrive(k_empty[stage])
                if CAUSAL:
                    first = causal_mask(first, first_row, (num_blocks - 1) * BLOCK_N)
                weights, m, total = first_softmax(first, scale)
                operand = weights.to(dtype)
                acc = tl.zeros((HALF_M, HEAD_DIM), tl.float32)

                for n in range(1, num_blocks):
                    k_stage, k_phase = tlx.get_bufidx_phase(base + n, NUM_STAGES)
                    v_stage, v_phase = tlx.get_bufidx_phase(base + n - 1, NUM_STAGES)
                    tlx.barrier_wait(k_full[k_stage], k_phase)
                    tlx.named_barrier_wait(half, TURN_THREADS)
                    scores = tlx.async_dot(q[half], tlx.local_trans(k[k_stage]))
                    tlx.barrier_wait(v_full[v_stage], v_phase)
                    acc = tlx.async_dot(operand, v[v_stage], acc, use_acc=n > 1)
                    tlx.named_barrier_arrive(1 - half, TURN_THREADS)
                    scores = tlx.async_dot_wait(1, scores)
                    tlx.barrier_arrive(k_empty[k_stage])
                    p, m, total, alpha = next_softmax(scores, scale, m, total)
                    acc = tlx.async_dot_wait(0, acc)
                    tlx.barrier_arrive(v_empty[v_stage])
                    acc = acc * alpha[:, None]
                    operand = p.to(dtype)
                tlx.barrier_arrive(q_empty[half])

                v_stage, v_phase = tlx.get_bufidx_phase(base + num_blocks - 1, NUM_STAGES)
                tlx.barrier_wait(v_full[v_stage], v_phase)
                tlx.named_barrier_wait(half, TURN_THREADS)
                acc = tlx.async_dot(operand, v[v_stage], acc, use_acc=num_blocks > 1)
                tlx.named_barrier_arrive(1 - half, TURN_THREADS)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(v_empty[v_stage])
                base += num_blocks

                rows = head_row + first_row + tl.arange(0, HALF_M)
                tl.store(lse_ptr + rows, (m + tl.log2(total)) * LN_2)
                # Not after the store but before the buffer is written again: the store overlaps the next tile.
                tlx.async_descriptor_store_wait(0)
                tlx.local_store(o[half], (acc / total[:, None]).to(dtype))
                tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
                tlx.async_descriptor_store(o_desc, o[half], [head_row + first_row, 0])
            tlx.async_descriptor_store_wait(0)
            if half == 0:
                tlx.named_barrier_wait(0, TURN_THREADS)


TLX_COMPILE = {
    "attention": {
        "signature": {
            "q_desc": "tensordesc<fp16[64, 128]>",
            "k_desc": "tensordesc<fp16[128, 128]>",
            "v_desc": "tensordesc<fp16[128, 128]>",
            "o_desc": "tensordesc<fp16[64, 128]>",
            "lse_ptr": "*fp32:16",
            "sm_scale": "fp32",
            "HEADS": "i32",
            "LENGTH": "i32",
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "HEAD_DIM": 128, "NUM_STAGES": 2, "CAUSAL": False},
        "num_warps": 4,
    }
}


def launch_arguments(q, k, v, out, lse, scale):
    """The grid and the arguments for contiguous (batch, heads, length, head_dim); `lse` has no head_dim."""
    import torch

    batch, heads, length, head_dim = q.shape
    tile = TLX_COMPILE["attention"]["constexprs"]
    block_m, block_n = tile["BLOCK_M"], tile["BLOCK_N"]
    assert length % block_m == 0
    assert length % block_n == 0
    blocks = ((q, block_m // 2), (k, block_n), (v, block_n), (out, block_m // 2))
    descriptors = [
        tlx_xdsl.TensorDescriptor.from_tensor(tensor.view(-1, head_dim), [rows, head_dim]) for tensor, rows in blocks
    ]
    programs = torch.cuda.get_device_properties(q.device).multi_processor_count
    grid = min(length // block_m * batch * heads, programs)
    return (grid,), (*descriptors, lse, scale, batch * heads, length)


def main():
    from check_on_gpu import check_attention

    check_attention(attention, launch_arguments, TLX_COMPILE["attention"]["constexprs"])


if __name__ == "__main__":
    main()
