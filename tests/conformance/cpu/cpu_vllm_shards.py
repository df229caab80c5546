"""Kernels of vLLM's model runner that deal a batch's sampling out to ranks and gather the results."""

from __future__ import annotations

import torch

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, entry, ints, longs, normal

FILE = "vllm/v1/worker/gpu/sample/batch_shard.py"


@entry("vllm", FILE, "_build_shard_plan_kernel")
def build_shard_plan(load: Load) -> Pairs:
    """A stable sort of the requests by their owner."""
    ranks, rank, per_rank = 2, 1, 3
    mapping, logits, queries, lengths = (
        ints(5, 2, 3, 8, 1),
        ints(0, 2, 3, 6, 7, 9),
        ints(0, 4, 5, 9, 12, 20),
        below(9, 5),
    )
    counts, owners = logits.diff().tolist(), (mapping % ranks).tolist()
    order = sorted(range(5), key=lambda request: owners[request])
    mine = [request for request in order if owners[request] == rank]
    start = sum(counts[request] for request in order if owners[request] < rank)

    def rows(requests: list[int]) -> list[int]:
        return [int(queries[r + 1]) - counts[r] + at for r in requests for at in range(counts[r])]

    local = len(rows(mine))
    outs = (
        torch.zeros(9, dtype=torch.int64), torch.zeros(5, dtype=torch.int64), torch.zeros(3, dtype=torch.int32),
        torch.zeros(4, dtype=torch.int32), torch.zeros(local, dtype=torch.int64), torch.zeros(local, dtype=torch.int32),
        torch.zeros(local, dtype=torch.int32), torch.zeros(3, dtype=torch.int32),
    )  # fmt: skip
    load("sample/batch_shard")._build_shard_plan_kernel[(5,)](
        mapping, logits, queries, lengths, *outs, 5, start, per_rank,
        TP_SIZE=ranks, TP_RANK=rank, PADDED_NUM_REQS=8, PADDED_NUM_LOGITS_PER_REQ=4,
    )  # fmt: skip
    places = [owners[r] * per_rank + sum(owners[e] == owners[r] for e in range(r)) for r in range(5)]
    number = ints(*(counts[r] for r in mine))
    wanted = (
        longs(*rows(order)), longs(*places), mapping[mine], torch.cat((ints(0), number.cumsum(0))), longs(*rows(mine)),
        mapping[mine].repeat_interleave(number), torch.cat([torch.arange(int(n)) for n in number]), lengths[mine],
    )  # fmt: skip
    yield from zip(outs, wanted, strict=True)


@entry("vllm", FILE, "_pack_sampler_output_kernel")
def pack_sampler_output(load: Load) -> Pairs:
    """`torch.cat` of the columns, with and without counts of NaN."""
    for counted in (False, True):
        tokens, sampled, rejected = below(99, 3, 3, dtype=torch.int64), ints(3, 1, 2), ints(0, 1, 0)
        starts, nans = ints(0, 4, 5, 7), below(5, 7, seed=2)
        packed = torch.full((3, 7), -1, dtype=torch.int64)
        load("sample/batch_shard")._pack_sampler_output_kernel[(3,)](
            packed, 7, tokens, 3, sampled, rejected, nans if counted else None, starts if counted else None, 4, 3,
            BLOCK_SIZE=4,
        )  # fmt: skip
        padded = torch.nn.functional.pad(tokens, (0, 1))
        sums = longs(*(int(nans[a:b].sum()) for a, b in ((0, 4), (4, 5), (5, 7)))) if counted else longs(-1, -1, -1)
        yield packed, torch.cat((padded, torch.stack((sampled, rejected, sums), 1)), 1)


@entry("vllm", FILE, "_unpack_gathered_output_kernel")
def unpack_gathered_output(load: Load) -> Pairs:
    """Columns of the rows by index, with and without counts of NaN."""
    for counted in (False, True):
        gathered, order = below(99, 6, 7, dtype=torch.int64), longs(5, 0, 2)
        outs = torch.zeros(3, 4, dtype=torch.int64), *(torch.zeros(3, dtype=torch.int32) for _ in range(3))
        load("sample/batch_shard")._unpack_gathered_output_kernel[(3,)](
            gathered, 7, order, *outs[:3], outs[3] if counted else None, 4, BLOCK_SIZE=4
        )
        rows = gathered[order]
        yield outs[0], rows[:, :4]
        yield from zip(outs[1 : 4 if counted else 3], rows[:, 4:].unbind(1), strict=False)


@entry("vllm", FILE, "_pack_logprobs_kernel")
def pack_logprobs(load: Load) -> Pairs:
    """Slices, padded with -inf."""
    starts, ids, logprobs, ranks = ints(0, 3, 4), below(99, 4, 3, dtype=torch.int64), normal(4, 3), below(50, 4)
    send_ids, send_logprobs = torch.full((6, 6), -1, dtype=torch.int64), torch.full((6, 5), -1.0)
    wanted_ids, wanted_logprobs = send_ids.clone(), send_logprobs.clone()
    load("sample/batch_shard")._pack_logprobs_kernel[(2, 3)](
        send_ids, 6, send_logprobs, 5, ids, 3, logprobs, 3, ranks, starts, 3, 5, 3, BLOCK_SIZE=8
    )
    wanted_ids[:4] = torch.cat((ids, torch.zeros(4, 2, dtype=torch.int64), ranks[:, None]), 1)
    wanted_logprobs[:4] = torch.nn.functional.pad(logprobs, (0, 2), value=-torch.inf)
    yield send_ids, wanted_ids
    yield send_logprobs, wanted_logprobs


@entry("vllm", FILE, "_unpack_logprobs_kernel")
def unpack_logprobs(load: Load) -> Pairs:
    """Rows by index."""
    ids, logprobs, order, starts = below(99, 12, 6, dtype=torch.int64), normal(12, 5), longs(3, 0), ints(0, 3, 4)
    outs = torch.zeros(4, 5, dtype=torch.int64), torch.zeros(4, 5), torch.zeros(4, dtype=torch.int64)
    load("sample/batch_shard")._unpack_logprobs_kernel[(2, 3)](
        ids, 6, logprobs, 5, order, starts, *outs, 3, 5, BLOCK_SIZE=8
    )
    rows = [9, 10, 11, 0]
    yield from zip(outs, (ids[rows, :5], logprobs[rows], ids[rows, 5]), strict=True)
