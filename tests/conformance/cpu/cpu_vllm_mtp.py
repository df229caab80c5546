"""Kernels of vLLM's model runner for draft models of several modules, which keep inputs of the step before."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, entry, ints, longs, normal

FILE = "vllm/v1/worker/gpu/spec_decode/multi_module_mtp/speculator.py"
MODULE = "spec_decode/multi_module_mtp/speculator"
STEPS, HIDDEN = 4, 300


def _batch() -> SimpleNamespace:
    return SimpleNamespace(
        input_ids=below(99, 11), positions=longs(*range(35, 41), *range(8, 13)), idx_mapping=ints(2, 0),
        seq_lens=ints(41, 13),
    )  # fmt: skip


def _buffers() -> SimpleNamespace:
    return SimpleNamespace(
        input_ids=torch.full((12,), -9, dtype=torch.int32), positions=torch.full((12,), -9, dtype=torch.int64),
        query_start_loc=ints(0, 6, 11, -9), seq_lens=ints(-9, -9, -9),
    )  # fmt: skip


@entry("vllm", FILE, "_prepare_input_buffers_kernel", call="prepare_input_buffers")
def mtp_input_buffers(load: Load) -> Pairs:
    """Slices, with the cached tokens of the step before before them."""
    batch, buffers, cached = _batch(), _buffers(), below(99, 3, STEPS - 1, seed=7)
    ahead, overrides, last = below(99, STEPS, 3, seed=8), torch.full((3, STEPS - 1), -9), ints(-9, -9, -9)
    load(MODULE).prepare_input_buffers(
        2, batch, cached, ints(2, 0), ints(3, 0), longs(70, 71, 72), ahead, overrides, buffers, last, 3, STEPS
    )
    ids, positions = torch.full((12,), -9), torch.full((12,), -9)
    ids[:2], ids[2:4], ids[4] = cached[2, 1:3], batch.input_ids[1:3], 72
    ids[6:10], ids[10] = batch.input_ids[7:11], ahead[0, 0]
    positions[:5], positions[6:11] = torch.arange(33, 38), torch.arange(8, 13)
    wanted = torch.full((3, STEPS - 1), -9)
    wanted[0], wanted[1] = -1, ahead[1:, 0]
    yield buffers.input_ids, ids
    yield buffers.positions, positions
    yield overrides, wanted
    yield last, ints(4, 10, 0)
    yield buffers.seq_lens, ints(39, 13, 0)
    yield buffers.query_start_loc, ints(0, 6, 11, 11)


@entry(
    "vllm",
    FILE,
    "_prepare_input_hidden_states_and_embeddings_kernel",
    call="prepare_input_hidden_states_and_embeddings",
)
def mtp_hidden_states(load: Load) -> Pairs:
    """Slices of rows, with the cached rows of the step before before them; with and without embeddings."""
    for embedded in (True, False):
        out, target = torch.zeros(12, HIDDEN), normal(11, HIDDEN)
        cached, cached_embeds = normal(3, STEPS - 1, HIDDEN, seed=1), normal(3, STEPS - 1, HIDDEN, seed=2)
        embeds = normal(12, HIDDEN, seed=3)
        wanted, wanted_embeds = out.clone(), embeds.clone()
        wanted[:2], wanted[2:5], wanted[6:11] = cached[2, 1:3], target[:3], target[6:11]
        if embedded:
            wanted_embeds[:2] = cached_embeds[2, 1:3]
        load(MODULE).prepare_input_hidden_states_and_embeddings(
            2, 6, out, target, cached, embeds if embedded else None, cached_embeds if embedded else None, _batch(),
            _buffers(), ints(3, 0), STEPS,
        )  # fmt: skip
        yield out, wanted
        yield embeds, wanted_embeds


@entry("vllm", FILE, "_pad_trailing_draft_slots_kernel", call="pad_trailing_draft_slots")
def pad_trailing_draft_slots(load: Load) -> Pairs:
    """Slices set to -1."""
    slots = below(99, 2, 12, dtype=torch.int64)
    wanted = slots.clone()
    wanted[:, 4:6], wanted[:, 9:11] = -1, -1
    load(MODULE).pad_trailing_draft_slots(slots, ints(0, 6, 11), ints(3, 8), 2)
    yield slots, wanted


@entry("vllm", FILE, "_cache_inputs_kernel", call="cache_inputs")
def cache_inputs(load: Load) -> Pairs:
    """The last tokens and rows of each request, copied in a loop; with and without embeddings."""
    for embedded in (True, False):
        buffers = _buffers()
        buffers.input_ids = below(99, 12)
        embeds, states = normal(12, HIDDEN), normal(12, HIDDEN, seed=1)
        ids, cached_embeds, cached = (
            torch.zeros(3, STEPS - 1, dtype=torch.int32), torch.zeros(3, STEPS - 1, HIDDEN),
            torch.zeros(3, STEPS - 1, HIDDEN),
        )  # fmt: skip
        wanted = [each.clone() for each in (ids, cached_embeds, cached)]
        for request, first, last, slot in ((2, 2, 5, 0), (0, 6, 8, 1)):
            wanted[0][request, slot:] = buffers.input_ids[first:last]
            wanted[1][request, slot:] = embeds[first:last] if embedded else 0
            wanted[2][request, slot:] = states[first:last]
        load(MODULE).cache_inputs(
            buffers, embeds if embedded else None, states, ids, cached_embeds if embedded else None, cached,
            ints(4, 7, 0), ints(2, 0, -1), 3, STEPS, embedded,
        )  # fmt: skip
        yield from zip((ids, cached_embeds, cached), wanted, strict=True)


@entry("vllm", FILE, "_shift_input_ids_kernel", "_shift_input_embeds_kernel", call="update_draft_inputs")
def shift_inputs(load: Load) -> Pairs:
    """`torch.roll` of each request's tokens and rows, with the new ones last."""
    buffers = _buffers()
    buffers.input_ids, embeds = below(99, 12), normal(12, HIDDEN)
    drafts, draft_embeds = longs(70, 71, 72), normal(3, HIDDEN, seed=1)
    ids, rows = buffers.input_ids.clone(), embeds.clone()
    ids[0:4], ids[4] = ids[1:5].clone(), 70
    rows[0:4], rows[4] = rows[1:5].clone(), draft_embeds[0]
    ids[6:10], ids[10] = ids[7:11].clone(), 71
    rows[6:10], rows[10] = rows[7:11].clone(), draft_embeds[1]
    load(MODULE).update_draft_inputs(drafts, draft_embeds, buffers, embeds, ints(4, 10, 0), ints(2, 0, -1), 3)
    yield buffers.input_ids, ids
    yield embeds, rows
