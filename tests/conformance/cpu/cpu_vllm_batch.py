"""Kernels of vLLM's model runner that build the inputs of a step: block tables, positions, token ids."""

from __future__ import annotations

import torch

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, entry, ints, longs, normal

GPU = "vllm/v1/worker/gpu/"


def _pointers(*tensors: torch.Tensor) -> torch.Tensor:
    return longs(*(tensor.data_ptr() for tensor in tensors))


@entry("vllm", GPU + "block_table.py", "_gather_block_tables_kernel")
def gather_block_tables(load: Load) -> Pairs:
    """The rows of each group's table, by index, up to the number of blocks; padded rows are 0."""
    sources = [below(100, 4, 8, seed=1), below(100, 4, 16, seed=2)]
    targets = [torch.full((4, 8), -7, dtype=torch.int32), torch.full((4, 16), -7, dtype=torch.int32)]
    mapping, counts = ints(2, 0, 3), torch.tensor([[3, 8, 5, 1], [16, 2, 9, 4]], dtype=torch.int32)
    load("block_table")._gather_block_tables_kernel[(2, 4)](
        mapping, _pointers(*sources), _pointers(*targets), longs(8, 16), counts, counts.stride(0), 3, BLOCK_SIZE=1024
    )
    for group, (source, target) in enumerate(zip(sources, targets, strict=True)):
        want = torch.full_like(target, -7)
        for row, request in enumerate(mapping.tolist()):
            n = int(counts[group, request])
            want[row, :n] = source[request, :n]
        want[3] = 0
        yield target, want


def _slots(
    positions: list[int], table: torch.Tensor, block: int, size: int, interleave: int, rank: int, enabled: bool
) -> list[int]:
    found: list[int] = []
    for position in positions:
        local, mine = position, True
        if size > 1:
            within = position % (block * size)
            mine = within // interleave % size == rank
            local = (
                position // (block * size) * block + within // (interleave * size) * interleave + within % interleave
            )
        found.append(int(table[local // block]) * block + local % block if mine and enabled else -1)
    return found


def _slot_mappings(load: Load, size: int, interleave: int, rank: int) -> Pairs:
    tables = [below(50, 4, 16, seed=3), below(50, 4, 16, seed=4)]
    blocks, enabled, starts = [4, 8], [True, False], [0, 5, 12]
    mapping, positions = ints(3, 1), longs(*range(20, 25), *range(7))
    out = torch.full((2, 16), -5, dtype=torch.int64)
    load("block_table")._compute_slot_mappings_kernel[(2, 3)](
        16, mapping, ints(*starts), positions, _pointers(*tables), longs(16, 16), ints(*blocks), ints(*blocks),
        torch.tensor(enabled), out, out.stride(0), rank,
        CP_SIZE=size, CP_INTERLEAVE=interleave, PAD_ID=-1, TRITON_BLOCK_SIZE=1024,
    )  # fmt: skip
    for group in range(2):
        want: list[int] = []
        for row, request in enumerate(mapping.tolist()):
            its = positions[starts[row] : starts[row + 1]].tolist()
            want += _slots(its, tables[group][request], blocks[group], size, interleave, rank, enabled[group])
        yield out[group], longs(*want, -1, -1, -1, -1)


@entry("vllm", GPU + "block_table.py", "_compute_slot_mappings_kernel")
def compute_slot_mappings(load: Load) -> Pairs:
    """Block number times block size plus the position's offset in its block, by a loop over the tokens."""
    yield from _slot_mappings(load, 1, 1, 0)
    yield from _slot_mappings(load, 2, 2, 1)


@entry("vllm", GPU + "buffer_utils.py", "_apply_write_kernel")
def apply_write(load: Load) -> Pairs:
    """Slices of a tensor assigned in a loop, into one tensor and into several through their addresses."""
    kernel = load("buffer_utils")._apply_write_kernel
    rows, starts, ends, contents = ints(2, 0, 3), ints(1, 0, 5), ints(3, 3, 10), ints(*range(100, 110))
    table = below(50, 4, 16)
    want = table.clone()
    want[2, 1:4], want[3, 5:12] = contents[:3], contents[3:]
    kernel[(3,)](table, 16, rows, starts, contents, ends, None, BLOCK_SIZE=1024, MULTI_GROUP=False)
    yield table, want
    tables = [below(50, 4, 16, seed=1), below(50, 4, 32, seed=2)]
    wanted = [each.clone() for each in tables]
    wanted[1][2, 1:4], wanted[0][3, 5:12] = contents[:3], contents[3:]
    kernel[(3,)](
        _pointers(*tables),
        longs(16, 32),
        rows,
        starts,
        contents,
        ends,
        ints(1, 0, 0),
        BLOCK_SIZE=1024,
        MULTI_GROUP=True,
    )
    yield from zip(tables, wanted, strict=True)


@entry("vllm", GPU + "cp_utils.py", "_dcp_local_seq_lens_kernel", call="prepare_dcp_local_seq_lens")
def dcp_local_seq_lens(load: Load) -> Pairs:
    """The number of a sequence's positions that a rank has, counted one by one."""
    lengths, out = ints(0, 1, 17, 64, 100, 3), torch.full((8,), -1, dtype=torch.int32)
    load("cp_utils").prepare_dcp_local_seq_lens(out, lengths, 6, 4, 2, 3)
    want = [sum(position // 3 % 4 == 2 for position in range(length)) for length in lengths.tolist()]
    yield out, ints(*want, 0, 0)


@entry("vllm", GPU + "input_batch.py", "_prepare_prefill_inputs_kernel", call="prepare_prefill_inputs")
def prepare_prefill_inputs(load: Load) -> Pairs:
    """Slices of each request's tokens, and the tokens after them."""
    tokens, mapping, starts = below(1000, 4, 32), ints(3, 0, 2), ints(0, 6, 7, 12)
    prefill, computed = ints(10, 5, 20, 9), ints(10, 0, 4, 3)
    ids, ahead = torch.full((12,), -1, dtype=torch.int32), torch.full((3, 4), -1, dtype=torch.int32)
    want_ids, want_ahead = ids.clone(), ahead.clone()
    load("input_batch").prepare_prefill_inputs(ids, ahead, mapping, starts, tokens, prefill, computed)
    for row, request in enumerate(mapping.tolist()):
        first, last = starts[row : row + 2].tolist()
        begin, length = int(computed[request]), int(prefill[request])
        if begin < length:
            end = begin + last - first
            want_ids[first:last] = tokens[request, begin:end]
            for step in range(3):
                want_ahead[step, request] = tokens[request, end + step] if end + step < length else 0
    yield ids, want_ids
    yield ahead, want_ahead


@entry("vllm", GPU + "input_batch.py", "_prepare_pos_seq_lens_kernel", call="prepare_pos_seq_lens")
def prepare_pos_seq_lens(load: Load) -> Pairs:
    """`torch.arange` from the number of computed tokens on."""
    mapping, starts, computed = ints(2, 0, 1), ints(0, 4, 5, 9), ints(7, 0, 30, 2)
    positions, lengths = torch.full((12,), -1, dtype=torch.int64), torch.full((6,), -1, dtype=torch.int32)
    load("input_batch").prepare_pos_seq_lens(mapping, starts, computed, positions, lengths)
    yield positions, longs(30, 31, 32, 33, 7, 0, 1, 2, 3, -1, -1, -1)
    yield lengths, ints(34, 8, 4, 0, 0, 0)


@entry(
    "vllm", GPU + "input_batch.py", "_combine_sampled_and_draft_tokens_kernel", call="combine_sampled_and_draft_tokens"
)
def combine_sampled_and_draft_tokens(load: Load) -> Pairs:
    """The last sampled token and the draft tokens, put where each request's query ends."""
    ids, mapping = torch.arange(100, 112, dtype=torch.int32), ints(1, 3, 0)
    drafts, sampled = below(1000, 4, 3, seed=5), below(1000, 4, 1, seed=6, dtype=torch.int64)
    starts, lengths, prefill, logits = ints(0, 4, 5, 12), ints(20, 4, 7), ints(7, 10, 5, 9), ints(0, 4, 5, 6)
    want = ids.clone()
    indices = load("input_batch").combine_sampled_and_draft_tokens(
        ids, mapping, sampled, starts, lengths, prefill, drafts, logits, 6
    )
    want[0], want[1:4] = int(sampled[1]), drafts[1]
    yield ids, want
    yield indices, longs(0, 1, 2, 3, 4, 11)


@entry("vllm", GPU + "input_batch.py", "_get_num_sampled_and_rejected_kernel", call="get_num_sampled_and_rejected")
def get_num_sampled_and_rejected(load: Load) -> Pairs:
    """`torch.where` on whether the prompt is not done."""
    sampled, lengths, mapping, prefill = ints(2, 1, 3, 1), ints(20, 5, 30, 8), ints(3, 1, 0, 2), ints(9, 9, 8, 9)
    logits, unfinished = ints(0, 4, 5, 9, 10), ints(20, 5, 30, 8) < ints(9, 9, 9, 8)
    want = torch.where(unfinished, 0, sampled)
    rejected = torch.where(unfinished, 0, logits.diff() - want)
    yield from zip(
        load("input_batch").get_num_sampled_and_rejected(sampled, lengths, logits, mapping, prefill),
        (want, rejected), strict=True,
    )  # fmt: skip


@entry("vllm", GPU + "input_batch.py", "_post_update_kernel", call="post_update")
def post_update(load: Load) -> Pairs:
    """The state of each request after a step, by a loop over its sampled tokens; without counts of tokens, too."""
    for counted in (True, False):
        mapping, starts, rejected, number = ints(2, -1, 0), ints(0, 4, 5, 9), ints(1, 0, 4), ints(3, 1, 0)
        computed, last, total = ints(5, 6, 7), longs(1, 2, 3), ints(9, 9, 10)
        counts, tokens = below(3, 3, 50, seed=1), below(50, 3, 20, seed=2)
        sampled = longs(5, 5, 7, 0, 9, 0, 0, 0, 1, 2, 3, 4).view(3, 4)
        wanted = [each.clone() for each in (computed, last, total, counts, tokens)]
        wanted[0][2] += 3
        wanted[1][2], wanted[2][2] = 7, 13
        if counted:
            wanted[3][2, 5] += 2
            wanted[3][2, 7] += 1
        wanted[4][2, 10:13] = ints(5, 5, 7)
        load("input_batch").post_update(
            mapping, computed, last, counts if counted else None, sampled, number, rejected, starts, tokens, total
        )
        yield from zip((computed, last, total, counts, tokens), wanted, strict=True)


@entry(
    "vllm", GPU + "input_batch.py", "_post_update_num_computed_tokens_kernel", call="post_update_num_computed_tokens"
)
def post_update_num_computed_tokens(load: Load) -> Pairs:
    """`index_add_` of the lengths of the queries."""
    mapping, computed, starts = ints(2, 0), ints(5, 6, 7), ints(0, 4, 9)
    want = computed.clone().index_add_(0, mapping.long(), starts.diff())
    load("input_batch").post_update_num_computed_tokens(mapping, computed, starts)
    yield computed, want


@entry("vllm", GPU + "input_batch.py", "_expand_idx_mapping_kernel", call="expand_idx_mapping")
def expand_idx_mapping(load: Load) -> Pairs:
    """`repeat_interleave`, and `arange` within each repetition."""
    expanded, local = load("input_batch").expand_idx_mapping(ints(4, 0, 2), 8, ints(0, 3, 4, 8), 5)
    yield expanded, ints(4, 0, 2).repeat_interleave(ints(3, 1, 4))
    yield local, ints(0, 1, 2, 0, 0, 1, 2, 3)


@entry("vllm", GPU + "metrics/logits.py", "_num_nans_kernel", call="get_num_nans")
def get_num_nans(load: Load) -> Pairs:
    """`torch.isnan` and a sum."""
    for dtype in (torch.float32, torch.bfloat16):
        logits = normal(3, 9000, dtype=dtype)
        logits[0, ::7] = float("nan")
        logits[2, 8999] = float("nan")
        yield load("metrics/logits").get_num_nans(logits), torch.isnan(logits).sum(1).int()


@entry("vllm", GPU + "mm/rope.py", "_prepare_rope_positions_kernel")
def prepare_rope_positions(load: Load) -> Pairs:
    """Slices of the positions of the prompt, or `arange` plus the difference after it."""
    dims, most = 3, 32
    prompt, delta, mapping = below(100, 4, dims, most), ints(3, -2, 5, 0), ints(2, 0)
    starts, prefill, computed = ints(0, 5, 9), ints(10, 9, 20, 9), ints(12, 0, 4, 0)
    positions = torch.full((dims, 16), -1, dtype=torch.int64)
    want = positions.clone()
    load("mm/rope")._prepare_rope_positions_kernel[(2,)](
        positions, positions.stride(0), prompt, dims * most, most, delta, mapping, starts, prefill, computed,
        BLOCK_SIZE=1024, NUM_DIMS=dims,
    )  # fmt: skip
    want[:, :5] = prompt[2, :, 4:9]
    want[:, 5:9] = torch.arange(12, 16) + 3
    yield positions, want


@entry("vllm", GPU + "model_states/mamba_hybrid.py", "_scatter_num_accepted_kernel")
def scatter_num_accepted(load: Load) -> Pairs:
    """An assignment by index, without the negative indices."""
    accepted = ints(9, 9, 9, 9)
    load("model_states/mamba_hybrid")._scatter_num_accepted_kernel[(3,)](ints(2, -1, 0), ints(0, 5, 3), accepted)
    yield accepted, ints(3, 9, 1, 9)


@entry("vllm", GPU + "model_states/mamba_hybrid.py", "_fill_num_accepted_kernel")
def fill_num_accepted(load: Load) -> Pairs:
    """An assignment of one number by index, without the negative indices."""
    accepted = ints(9, 9, 9, 9)
    load("model_states/mamba_hybrid")._fill_num_accepted_kernel[(3,)](ints(2, -1, 0), accepted, 4)
    yield accepted, ints(4, 9, 4, 9)


@entry("vllm", GPU + "model_states/prompt_embeds.py", "_apply_prompt_embeds_kernel")
def apply_prompt_embeds(load: Load) -> Pairs:
    """Rows copied in a loop, except where a mask says that the prompt has a token's id."""
    hidden, given = 48, [normal(6, 48, seed=1), normal(9, 48, seed=2)]
    mask = torch.tensor([0, 1, 0, 0, 1, 0, 0, 1, 0], dtype=torch.int8)
    embeds, mapping, starts = normal(12, hidden), ints(1, 2, 0), ints(0, 5, 8, 12)
    computed, want = ints(3, 2, 0), embeds.clone()
    load("model_states/prompt_embeds")._apply_prompt_embeds_kernel[(3, 2)](
        embeds, embeds.stride(0), longs(given[0].data_ptr(), given[1].data_ptr(), 0), longs(0, mask.data_ptr(), 0),
        ints(6, 9, 0), mapping, starts, computed, hidden, TOKEN_BLOCK=4, BLOCK_SIZE=1024,
    )  # fmt: skip
    for row in range(5):
        if not mask[2 + row]:
            want[row] = given[1][2 + row]
    want[8:11] = given[0][3:6]
    yield embeds, want


@entry("vllm", GPU + "model_states/recoverssm.py", "_postprocess_recoverssm_align_kernel")
def postprocess_recoverssm_align(load: Load) -> Pairs:
    """The column of the block that a request is in, at most the last; with and without a list of requests."""
    for requests in (None, ints(2, 0)):
        mapping, sampled, computed = ints(3, -1, 0), ints(2, 1, 4), ints(30, 9, 200)
        columns, accepted = ints(7, 7, 7, 7), ints(5, 5, 5, 5)
        load("model_states/recoverssm")._postprocess_recoverssm_align_kernel[(2,)](
            mapping, sampled, requests, computed, columns, accepted,
            HAS_REQUEST_INDICES=requests is not None, MAMBA_BLOCK_SIZE=16, BLOCK_TABLE_WIDTH=10,
        )  # fmt: skip
        yield columns, ints(7, 7, 7, 2) if requests is None else ints(9, 7, 7, 2)
        yield accepted, ints(5, 5, 5, 1) if requests is None else ints(1, 5, 5, 1)


@entry("vllm", GPU + "structured_outputs.py", "_apply_grammar_bitmask_kernel")
def apply_grammar_bitmask(load: Load) -> Pairs:
    """`masked_fill_` by the bits of the mask, where the position has logits."""
    vocabulary, words = 100, 4
    logits, starts, indices = normal(5, vocabulary), ints(0, 2, 3, 5), ints(0, 1, 4, 9)
    bits = below(2**31, 4, words, seed=3)
    want = logits.clone()
    load("structured_outputs")._apply_grammar_bitmask_kernel[(4, 1)](
        logits, logits.stride(0), indices, starts, bits, bits.stride(0), vocabulary, MASK_STRIDE=4, BLOCK_SIZE=8192
    )
    allowed = ((bits[:, :, None] >> torch.arange(32)) & 1).reshape(4, words * 32)[:, :vocabulary].bool()
    for mask, row in ((0, 0), (1, 1), (2, 2), (3, 4)):
        want[row].masked_fill_(~allowed[mask], -torch.inf)
    yield logits, want
