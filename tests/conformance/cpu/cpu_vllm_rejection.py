"""Kernels of vLLM's model runner that accept or reject draft tokens."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from tests.conformance.cpu.cpu_entries import Load, Pairs, entry, ints, longs, normal
from tests.conformance.cpu.cpu_philox import gumbel, rand

FILE = "vllm/v1/worker/gpu/spec_decode/rejection_sampler_utils.py"
MODULE = "spec_decode/rejection_sampler_utils"
STEPS, VOCABULARY = 3, 2500

KERNELS = (
    "_compute_local_logits_stats_kernel", "_rejection_kernel", "_resample_kernel", "_insert_resampled_kernel",
)  # fmt: skip


def _case(seed: int) -> SimpleNamespace:
    """Four requests, one of temperature 0, one without draft tokens; drafts like the target, so that some are kept."""
    starts, mapping = ints(0, 4, 5, 8, 12), ints(2, 0, 3, 1)
    counts = starts.diff()
    local = torch.cat([torch.arange(int(n)) for n in counts]).int()
    expanded, heat = mapping.repeat_interleave(counts), torch.tensor([0.9, 0.6, 1.0, 0.0])
    target = normal(12, VOCABULARY, seed=seed, scale=2.0)
    draft = torch.zeros(4, STEPS, VOCABULARY)
    for row in range(12):
        if local[row] < STEPS:
            request, step = int(expanded[row]), int(local[row])
            # The runner has divided the target's logits by the temperature already, the drafts' not.
            draft[request, step] = target[row] * (heat[request] or 1.0) + normal(VOCABULARY, seed=seed + row, scale=0.7)
    sampled = longs(*[0] * 12)
    for row in range(12):
        if local[row]:
            sampled[row] = int(draft[expanded[row], local[row] - 1].argmax())
    return SimpleNamespace(
        target=target, draft=draft, sampled=sampled, starts=starts, positions=torch.arange(12) + 30 + seed,
        mapping=mapping, expanded=expanded, local=local, heat=heat, seeds=longs(3, 2**33 + 5, 7, 11),
    )  # fmt: skip


def _joint(given: SimpleNamespace, request: int, first: int, number: int, has_draft: bool) -> list[float]:
    """The running ratio of target to draft after each draft token, at most 1."""
    ratios, ratio = [], 1.0
    for step in range(number):
        token = int(given.sampled[first + step + 1])
        p = given.target[first + step].softmax(-1)[token]
        q = (given.draft[request, step] / given.heat[request]).softmax(-1)[token] if has_draft else torch.tensor(1.0)
        ratio = min(ratio * float(p / q), 1.0)
        ratios.append(ratio)
    return ratios


def _accepted(given: SimpleNamespace, request: int, first: int, number: int, has_draft: bool, block: bool) -> int:
    """Count the draft tokens of a request with a temperature that are kept."""
    uniform = [
        float(rand(int(given.seeds[request]), given.positions[row : row + 1]).clamp_min(4.6566127342e-10)[0])
        for row in range(first, first + number)
    ]
    joint, kept = _joint(given, request, first, number, has_draft), 0
    for step in range(number):
        token = int(given.sampled[first + step + 1])
        p = given.target[first + step].softmax(-1)
        if not block:
            q = (given.draft[request, step] / given.heat[request]).softmax(-1)[token] if has_draft else 1.0
            if not p[token] > uniform[step] * q:
                return kept
            kept += 1
            continue
        bound = joint[step]
        if step + 1 < number:
            after = given.target[first + step + 1].softmax(-1)
            if has_draft:
                draft = (given.draft[request, step + 1] / given.heat[request]).softmax(-1)
                mass = float((joint[step] * after - draft).clamp_min(0).sum())
            else:
                mass = joint[step] * (1 - float(after[int(given.sampled[first + step + 2])]))
            bound = mass / (mass + 1 - joint[step]) if mass + 1 - joint[step] > 0 else 1.0
        if uniform[step] <= bound:
            kept = step + 1
    return kept


def _resampled(given: SimpleNamespace, request: int, row: int, step: int, last: bool, has_draft: bool, p: float) -> int:
    """The token after the ones that were kept."""
    logits = given.target[row]
    if not last and has_draft:
        draft = (given.draft[request, step] / given.heat[request]).softmax(-1)
        logits = (p * logits.softmax(-1) - draft).clamp_min(0).log()
    elif not last:
        logits = logits.index_fill(0, given.sampled[row + 1], -torch.inf)
    if given.heat[request]:
        keys = torch.arange(VOCABULARY, dtype=torch.int32)
        seed, position = int(given.seeds[request]), int(given.positions[row])
        logits = logits + gumbel(seed, position, keys, drafting=False, double=False)
    return int(logits.argmax())


def _wanted(given: SimpleNamespace, has_draft: bool, block: bool) -> list[list[int]]:
    found: list[list[int]] = []
    for row, request in enumerate(given.mapping.tolist()):
        first, end = given.starts[row : row + 2].tolist()
        number = end - first - 1
        drafts = given.sampled[first + 1 : end].tolist()
        if not given.heat[request]:
            best = given.target[first:end].argmax(-1).tolist()
            kept = next((at for at, token in enumerate(drafts) if token != best[at]), number)
            found.append(best[: kept + 1])
            continue
        kept = _accepted(given, request, first, number, has_draft, block)
        p = _joint(given, request, first, number, has_draft)[kept - 1] if block and kept else 1.0
        token = _resampled(given, request, first + kept, kept, kept == number, has_draft, p)
        found.append([*drafts[:kept], token])
    return found


def _check(load: Load, has_draft: bool, block: bool) -> Pairs:
    for seed in (0, 100):
        given = _case(seed)
        sampled, number = load(MODULE).rejection_sample(
            given.target, given.draft if has_draft else None, given.sampled, given.starts, given.positions,
            given.mapping, given.expanded, given.local, given.heat, given.seeds, STEPS, use_block_verification=block,
        )  # fmt: skip
        wanted = _wanted(given, has_draft, block)
        yield number, ints(*map(len, wanted))
        for row, tokens in zip(sampled, wanted, strict=True):
            yield row[: len(tokens)], longs(*tokens)


@entry("vllm", FILE, *KERNELS, call="rejection_sample")
def rejection_sample(load: Load) -> Pairs:
    """Leviathan's rule on `softmax` in torch, with Philox in Python; with drafts' logits and without."""
    yield from _check(load, True, False)
    yield from _check(load, False, False)


@entry(
    "vllm", FILE, "_compute_cumulative_log_p_kernel", "_compute_local_residual_mass_kernel", *KERNELS,
    call="rejection_sample",
)  # fmt: skip
def rejection_sample_blocks(load: Load) -> Pairs:
    """Sun's rule of blocks on `softmax` in torch, with Philox in Python; with drafts' logits and without."""
    yield from _check(load, True, True)
    yield from _check(load, False, True)
