"""Kernels of vLLM's model runner that prepare the inputs of draft models."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, entry, ints, longs, normal
from tests.conformance.cpu.cpu_philox import gumbel

DECODE = "vllm/v1/worker/gpu/spec_decode/"
AUTOREGRESSIVE = DECODE + "autoregressive/speculator.py"
DFLASH2 = DECODE + "dflash2/speculator.py"


def _buffers(tokens: int, requests: int) -> SimpleNamespace:
    return SimpleNamespace(
        input_ids=torch.full((tokens,), -9, dtype=torch.int32), positions=torch.full((tokens,), -9, dtype=torch.int64),
        query_start_loc=torch.full((requests + 1,), -9, dtype=torch.int32),
        seq_lens=torch.full((requests,), -9, dtype=torch.int32),
    )  # fmt: skip


@entry("vllm", AUTOREGRESSIVE, "_prepare_prefill_inputs_kernel", call="prepare_prefill_inputs")
def draft_prefill_inputs(load: Load) -> Pairs:
    """The target's tokens without the first and the rejected ones, then the next one; zeros after the requests."""
    starts, rejected, sampled, lengths = ints(0, 5, 9), ints(2, 0), ints(3, 0), ints(40, 12)
    batch = SimpleNamespace(
        num_reqs=2, input_ids=below(99, 9), positions=longs(*range(35, 40), *range(8, 12)), idx_mapping=ints(2, 0),
        query_start_loc=starts, seq_lens=lengths,
    )  # fmt: skip
    buffers, last, step = _buffers(12, 4), torch.full((4,), -9), ints(5)
    found = load("spec_decode/autoregressive/speculator").prepare_prefill_inputs(
        last, step, buffers, batch, sampled, rejected, longs(70, 71, 72), ints(80, 81, 82), 4
    )
    ids, positions = buffers.input_ids.new_full((12,), -9), buffers.positions.new_full((12,), -9)
    ids[:2], ids[2], ids[5:8], ids[8] = batch.input_ids[1:3], 72, batch.input_ids[6:9], 80
    positions[:3], positions[5:9] = batch.positions[:3], batch.positions[5:9]
    yield buffers.input_ids, ids
    yield buffers.positions, positions
    yield found, longs(2, 8, 0, 0)
    yield step, ints(0)
    yield buffers.query_start_loc, ints(0, 5, 9, 9, 9)
    yield buffers.seq_lens, ints(40, 12, 0, 0)


@entry("vllm", AUTOREGRESSIVE, "_prepare_decode_inputs_kernel", call="prepare_decode_inputs")
def draft_decode_inputs(load: Load) -> Pairs:
    """Sums and minima, with and without an advance of the positions."""
    for advance in (True, False):
        buffers, drafts, source = _buffers(4, 5), below(99, 3, 2, dtype=torch.int64), longs(5, 6, 7)
        buffers.positions[:] = longs(10, 99, 20, 3)
        load("spec_decode/autoregressive/speculator").prepare_decode_inputs(
            drafts, ints(12, 100, 25), ints(1, 0, 2), buffers, source, 100, 5, advance
        )
        yield buffers.input_ids[:3], drafts[:, 0]
        yield source, longs(6, 7, 8)
        yield buffers.positions, longs(11, 99, 21, 3) if advance else longs(10, 99, 20, 3)
        yield buffers.seq_lens, ints(12, 100, 24, 0, 0) if advance else ints(11, 100, 23, 0, 0)
        yield buffers.query_start_loc, ints(0, 1, 2, 3, 3, 3)


@entry("vllm", AUTOREGRESSIVE, "_update_draft_inputs_kernel", call="update_draft_inputs")
def update_draft_inputs(load: Load) -> Pairs:
    """Copies, sums and minima; nothing but the drafted tokens at the last step."""
    for step in (0, 2):
        buffers, drafts, source = _buffers(3, 3), longs(11, 12, 13), longs(5, 6, 7)
        buffers.positions[:], buffers.seq_lens[:] = longs(10, 99, 20), ints(11, 100, 21)
        hidden, following, out = normal(3, 1500), torch.zeros(3, 1500), torch.zeros(3, 3, dtype=torch.int64)
        load("spec_decode/autoregressive/speculator").update_draft_inputs(
            drafts, longs(step), hidden, out, following, buffers, source, 3, 100, 3
        )
        wanted = torch.zeros(3, 3, dtype=torch.int64)
        wanted[:, step] = drafts
        more = step == 0
        yield out, wanted
        yield following, hidden if more else torch.zeros(3, 1500)
        yield buffers.input_ids, drafts if more else ints(-9, -9, -9)
        yield buffers.positions, longs(11, 99, 21) if more else longs(10, 99, 20)
        yield buffers.seq_lens, ints(12, 100, 22) if more else ints(11, 100, 21)
        yield source, longs(6, 7, 8) if more else longs(5, 6, 7)


@entry("vllm", DECODE + "dflash/speculator.py", "_prepare_dflash_inputs_kernel", call="prepare_dflash_inputs")
def prepare_dflash_inputs(load: Load) -> Pairs:
    """A loop over requests and tokens in Python."""
    block, queries, steps, requests, tokens, longest = 4, 4, 3, 3, 16, 40
    starts, rejected, sampled, mapping = ints(0, 5, 8), ints(2, 0), ints(3, 0), ints(2, 0)
    positions, table = longs(*range(20, 25), *range(6, 9)), below(9, 3, 8, seed=4) + 1
    table[0, 5], table[1, 1] = 0, 0
    batch = SimpleNamespace(
        num_reqs=2, num_scheduled_tokens=torch.tensor([5, 3]), positions=positions, query_start_loc=starts,
        idx_mapping=mapping,
    )  # fmt: skip
    buffers, heat, seeds = _buffers(tokens, requests), torch.tensor([0.5, 0.6, 0.7]), longs(7, 8, 9)
    slots, context_slots = torch.full((tokens,), -8), torch.full((8,), -8)
    context, indices = torch.full((8,), -8), torch.full((requests * steps,), -8)
    sample_positions, sample_mapping = torch.full((requests * steps,), -8), ints(*[-8] * (requests * steps))
    out_heat, out_seeds = torch.zeros(3), longs(0, 0, 0)
    load("spec_decode/dflash/speculator").prepare_dflash_inputs(
        buffers, slots, context, context_slots, indices, sample_positions, sample_mapping, out_heat, out_seeds, batch,
        sampled, rejected, longs(70, 71, 72), ints(80, 81, 82), heat, seeds, table, block, 0, 1, 1, 999, queries, steps,
        requests, tokens, longest,
    )  # fmt: skip
    ids, where, into = [], [], []
    wanted_context, wanted_slots = [], []
    lengths, sampled_at, sample_at = [], [], []

    def slot(row: int, position: int) -> int:
        number = int(table[row, min(position // block, 7)])
        return number * block + position % block if number else -1

    for row in range(2):
        first, last = starts[row : row + 2].tolist()
        valid = last - int(rejected[row])
        wanted_context += positions[first:valid].tolist() + [0] * (last - valid)
        wanted_slots += [slot(row, at) for at in positions[first:valid].tolist()] + [-1] * (last - valid)
        after = int(positions[valid - 1]) + 1
        ids += [72 if row == 0 else 80] + [999] * (queries - 1)
        where += [min(after + at, longest - 1) for at in range(queries)]
        into += [slot(row, after + at) for at in range(queries)]
        lengths.append(min(after + queries, longest))
        sampled_at += [row * queries + at for at in range(1, queries)]
        sample_at += [after + at for at in range(1, queries)]
    yield buffers.input_ids[: 2 * queries], ints(*ids)
    yield buffers.positions[: 2 * queries], longs(*where)
    yield slots, longs(*into, *[-1] * (tokens - 2 * queries))
    yield context, longs(*wanted_context)
    yield context_slots, longs(*wanted_slots)
    yield buffers.query_start_loc, ints(0, 4, 8, 8)
    yield buffers.seq_lens, ints(*lengths, 0)
    yield indices, longs(*sampled_at, 0, 0, 0)
    yield sample_positions, longs(*sample_at, 0, 0, 0)
    yield sample_mapping, ints(2, 2, 2, 0, 0, 0, -1, -1, -1)
    yield out_heat, torch.tensor([0.5, 0.0, 0.7])
    yield out_seeds, longs(7, 0, 9)


@entry("vllm", DFLASH2, "_selector_walk_kernel")
def selector_walk(load: Load) -> Pairs:
    """A walk in Python: `argmax` of the row that the last choice names, with noise of Philox."""
    steps, top, rows = 3, 5, 3
    scores, candidates = normal(rows * steps, top, top, scale=2.0), below(1000, rows * steps, top, dtype=torch.int64)
    mapping, heat, seeds = ints(1, -1, 0).repeat_interleave(steps), torch.tensor([0.0, 0.8]), longs(5, 2**35 + 1)
    positions = torch.arange(rows * steps) + 20
    tokens, realized = torch.zeros(rows * steps, dtype=torch.int64), torch.zeros(rows * steps, top)
    load("spec_decode/dflash2/speculator")._selector_walk_kernel[(rows,)](
        scores, candidates, positions, mapping, heat, seeds, tokens, realized,
        num_steps=steps, top_k=top, BLOCK_K=8, SAMPLE_PROBABILISTIC=True, USE_FP64=False, num_warps=1,
    )  # fmt: skip
    wanted, wanted_scores = torch.zeros_like(tokens), torch.zeros_like(realized)
    for row in (0, 2):
        previous, request = 0, int(mapping[row * steps])
        for at in range(row * steps, row * steps + steps):
            wanted_scores[at] = chosen = scores[at, previous]
            if heat[request]:
                noise = gumbel(int(seeds[request]), int(positions[at]) - 1, candidates[at], drafting=True, double=False)
                chosen = chosen / heat[request] + noise
            previous = int(chosen.argmax())
            wanted[at] = candidates[at, previous]
    yield tokens, wanted
    yield realized, wanted_scores


@entry("vllm", DFLASH2, "_cache_draft_logits_kernel")
def cache_draft_logits(load: Load) -> Pairs:
    """Indexed assignments: -inf for the tokens before, the scores for the tokens now."""
    steps, top, rows = 2, 5, 3
    logits, cached = normal(3, steps, 50), torch.stack([torch.randperm(50)[:top] for _ in range(6)]).view(3, steps, top)
    candidates, scores = torch.stack([torch.randperm(50)[:top] for _ in range(6)]), normal(6, top, seed=1)
    mapping = ints(2, -1, 0).repeat_interleave(steps)
    wanted, wanted_cached = logits.clone(), cached.clone()
    for flat, request in enumerate(mapping.tolist()):
        if request >= 0:
            step = flat % steps
            wanted[request, step, cached[request, step]] = -torch.inf
            wanted[request, step, candidates[flat]] = scores[flat]
            wanted_cached[request, step] = candidates[flat]
    load("spec_decode/dflash2/speculator")._cache_draft_logits_kernel[(rows * steps,)](
        logits, cached, candidates, scores, mapping, logits.stride(0), logits.stride(1),
        num_steps=steps, top_k=top, BLOCK_K=8, num_warps=1,
    )  # fmt: skip
    yield logits, wanted
    yield cached, wanted_cached


@entry("vllm", DECODE + "rejection_sampler.py", "_flatten_sampled_kernel")
def flatten_sampled(load: Load) -> Pairs:
    """Slices of the rows, one after the other."""
    flat, sampled = torch.zeros(9, dtype=torch.int64), below(99, 3, 4, dtype=torch.int64)
    load("spec_decode/rejection_sampler")._flatten_sampled_kernel[(3,)](
        flat, sampled, 4, ints(2, 0, 4), ints(0, 3, 4, 9), num_warps=1
    )
    yield flat, longs(*sampled[0, :2].tolist(), 0, 0, *sampled[2].tolist(), 0)
