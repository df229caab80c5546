"""Kernels of vLLM's model runner that change logits and sample from them."""

from __future__ import annotations

from typing import Any

import torch

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, entry, ints, longs, normal
from tests.conformance.cpu.cpu_philox import gumbel

SAMPLE = "vllm/v1/worker/gpu/sample/"
FLOAT = 1e-5
"""The tolerance of exp and log in float32 and of sums of them."""


@entry("vllm", SAMPLE + "bad_words.py", "_bad_words_kernel", call="apply_bad_words")
def apply_bad_words(load: Load) -> Pairs:
    """Python's comparison of the ends of lists of tokens."""
    logits, mapping, local = normal(3, 40), ints(0, 0, 1), ints(0, 1, 0)
    tokens, prompt, total, ids = below(40, 2, 16), ints(3, 2), ints(8, 6), ints(7, 11, 4)
    words = [[[5], [int(tokens[0, 7]), 9], [int(tokens[0, 7]), 11, 12]], [[1, 2, 3], [int(tokens[1, 5]), 30]]]
    flat, offsets = torch.zeros(2, 10, dtype=torch.int32), torch.zeros(2, 5, dtype=torch.int32)
    for request, its in enumerate(words):
        joined = [token for word in its for token in word]
        flat[request, : len(joined)] = ints(*joined)
        offsets[request, 1 : len(its) + 1] = ints(*map(len, its)).cumsum(0)
    want = logits.clone()
    for row, request in enumerate(mapping.tolist()):
        first = row - int(local[row])
        said = tokens[request, prompt[request] : total[request]].tolist() + ids[first + 1 : row + 1].tolist()
        for word in words[request]:
            if len(word) == 1 or said[1 - len(word) :] == word[:-1]:
                want[row, word[-1]] = -torch.inf
    load("sample/bad_words").apply_bad_words(
        logits, mapping, flat, offsets, ints(3, 2), tokens, prompt, total, ids, local, 3
    )
    yield logits, want


@entry("vllm", SAMPLE + "gumbel.py", "_temperature_kernel", call="apply_temperature", tolerance=FLOAT)
def apply_temperature(load: Load) -> Pairs:
    """A division by the temperature, unless that is 0."""
    for dtype in (torch.float32, torch.bfloat16):
        logits, mapping, temperature = normal(4, 9000, dtype=dtype), ints(1, 0, 2, 1), torch.tensor([0.0, 0.7, 1.0])
        divisors = torch.where(temperature == 0, 1.0, temperature)[mapping][:, None]
        want = (logits.float() / divisors).to(dtype)
        load("sample/gumbel").apply_temperature(logits, mapping, temperature)
        yield logits, want


@entry("vllm", SAMPLE + "gumbel.py", "_gumbel_sample_kernel", call="gumbel_sample")
def gumbel_sample(load: Load) -> Pairs:
    """`argmax` of logits over temperature plus noise of Philox in Python; `argmax` where the temperature is 0."""
    logits, mapping = normal(4, 2500, scale=2.0), ints(1, 0, 2, 1)
    temperature, seeds, positions = torch.tensor([0.0, 0.7, 1.3]), longs(11, 22, 2**40 + 3), longs(5, 6, 7, 8)
    for drafting, double in ((False, False), (True, False), (False, True)):
        cache = torch.zeros(3, 2, 2500) if drafting else None
        sampled = load("sample/gumbel").gumbel_sample(
            logits, mapping, temperature, seeds, positions, True, drafting, cache, ints(1)[0] if drafting else None,
            use_fp64=double,
        )  # fmt: skip
        want: list[int] = []
        for row, request in enumerate(mapping.tolist()):
            scores, warm = logits[row], float(temperature[request])
            if warm:
                keys = torch.arange(2500, dtype=torch.int32)
                noise = gumbel(int(seeds[request]), int(positions[row]), keys, drafting=drafting, double=double)
                scores = scores / temperature[request] + noise
            want.append(int(scores.argmax()))
        yield sampled, longs(*want)
        if cache is not None:
            yield cache[[0, 2], 1], logits[[1, 2]]


@entry("vllm", SAMPLE + "logit_bias.py", "_bias_kernel", call="apply_logit_bias")
def apply_logit_bias(load: Load) -> Pairs:
    """Indexed assignments: allowed tokens, biases, tokens that end the text too early."""
    for check in (False, True):
        logits, mapping = normal(4, 50), ints(0, 1, 2, 3)
        allowed, biased, stops = below(50, 4, 4, seed=1), below(50, 4, 5, seed=2), ints(7, 8, 9).repeat(4, 1)
        biased[1], allowed[3] = ints(1, 5, 9, 13, 17), ints(7, 8, 9, 9)
        bias = normal(4, 5, seed=3)
        counts = ints(2, 0, 0, 3), ints(0, 5, 0, 0), ints(0, 2, 3, 3)
        want = logits.clone()
        want[0] = -torch.inf
        want[0, allowed[0, :2].long()] = logits[0, allowed[0, :2].long()]
        want[1, biased[1].long()] += bias[1]
        want[1, [7, 8]], want[2, [7, 8, 9]] = -torch.inf, -torch.inf
        want[3] = -torch.inf
        if check:
            want[3, [7, 8, 9]] = logits[3, [7, 8, 9]]
        load("sample/logit_bias").apply_logit_bias(
            logits, mapping, longs(3, 3, 3, 3), counts[0], allowed, counts[1], biased, bias, ints(0, 9, 9, 9),
            counts[2], torch.tensor([False, False, True, True]), stops, check,
        )  # fmt: skip
        yield logits, want


@entry("vllm", SAMPLE + "logprob.py", "_topk_log_softmax_kernel", call="compute_token_logprobs", tolerance=FLOAT)
def compute_token_logprobs(load: Load) -> Pairs:
    """`torch.log_softmax`, gathered."""
    for dtype in (torch.float32, torch.bfloat16):
        logits, tokens = normal(3, 3000, dtype=dtype, scale=4.0), below(3000, 3, 5, dtype=torch.int64)
        yield (
            load("sample/logprob").compute_token_logprobs(logits, tokens),
            logits.float().log_softmax(-1).gather(1, tokens),
        )


@entry(
    "vllm", SAMPLE + "logprob.py", "_ranks_kernel", "_fill_logprob_token_ids_kernel", call="compute_topk_scores",
    tolerance=FLOAT,
)  # fmt: skip
def compute_topk_scores(load: Load) -> Pairs:
    """`torch.topk`, `log_softmax` and a count of the greater logits; tokens that a request asks for instead."""
    logits, sampled, custom = normal(3, 9000), longs(5, 8000, 77), below(9000, 4, 128, seed=1)
    state: Any = type("State", (), {})()
    state.num_token_ids, state.token_ids = type("N", (), {"gpu": ints(0, 5, 0, 2)})(), type("T", (), {"gpu": custom})()
    logprobs, ranks = logits.log_softmax(-1), (logits >= logits.gather(1, sampled[:, None])).sum(1)
    best = logits.topk(4, -1).indices
    module = load("sample/logprob")
    module.LogprobsTensors = lambda **named: named
    found = module.compute_topk_scores(logits, 4, sampled)
    tokens = torch.cat((sampled[:, None], best), 1)
    yield found["logprob_token_ids"], tokens
    yield found["logprobs"], logprobs.gather(1, tokens)
    yield found["selected_token_ranks"], ranks
    mapping = ints(1, 0, 3)
    found = module.compute_topk_scores(logits, 4, sampled, None, state, mapping, 5)
    tokens, valid = torch.zeros(3, 6, dtype=torch.int64), torch.zeros(3, 6, dtype=torch.bool)
    for row, its in enumerate((custom[1, :5], best[1], custom[3, :2])):
        tokens[row, 0], tokens[row, 1 : len(its) + 1], valid[row, : len(its) + 1] = sampled[row], its, True
    yield found["logprob_token_ids"], tokens
    yield found["logprobs"], logprobs.gather(1, tokens).masked_fill(~valid, -torch.inf)


@entry("vllm", SAMPLE + "min_p.py", "_min_p_kernel", call="apply_min_p")
def apply_min_p(load: Load) -> Pairs:
    """`masked_fill_` of the probabilities below a share of the greatest."""
    logits, mapping, least = normal(3, 2500, scale=3.0), ints(2, 0, 1), torch.tensor([0.0, 0.1, 0.02])
    want = logits.clone()
    for row in (0, 2):
        want[row][want[row] < want[row].max() + least[mapping[row]].log()] = -torch.inf
    load("sample/min_p").apply_min_p(logits, mapping, least)
    yield logits, want


@entry("vllm", SAMPLE + "output.py", "_pack_sampling_mask_kernel")
def pack_sampling_mask(load: Load) -> Pairs:
    """`torch.isfinite`, eight to a byte by a sum of powers of 2."""
    logits, sampled = normal(3, 1001), ints(1, 0, 2)
    logits[:, ::3] = -torch.inf
    packed, counts = torch.zeros(3, 126, dtype=torch.uint8), torch.zeros(3, dtype=torch.int32)
    load("sample/output")._pack_sampling_mask_kernel[(3,)](
        logits, 1001, 1, sampled, packed, 126, counts, 1001, BLOCK_SIZE=8192
    )
    finite = torch.isfinite(logits) & (sampled > 0)[:, None]
    bits = torch.nn.functional.pad(finite.int(), (0, 7)).view(3, 126, 8)
    yield packed, (bits << torch.arange(8)).sum(2)
    yield counts, finite.sum(1)


@entry("vllm", SAMPLE + "penalties.py", "_penalties_kernel", call="apply_penalties", tolerance=FLOAT)
def apply_penalties(load: Load) -> Pairs:
    """The formulas of the penalties on counts of tokens by `bincount`."""
    size, mapping, local, ids = 9000, ints(1, 1, 0, 2), ints(0, 1, 0, 0), ints(3, 4, 5, 6)
    logits = normal(4, size)
    repetition, frequency, presence = torch.tensor([1.0, 1.3, 1.0]), torch.tensor([0.0, 0.2, 0.4]), torch.tensor(
        [0.0, 0.1, 0.0]
    )  # fmt: skip
    bits, counts = below(2**31, 3, 282, seed=1), (below(12, 3, size, seed=2) - 9).clamp_min(0)
    seen = ((bits[:, :, None] >> torch.arange(32)) & 1).reshape(3, -1)[:, :size].bool()
    want = logits.clone()
    for row, request in enumerate(mapping.tolist()):
        its = counts[request] + torch.bincount(ids[row - local[row] + 1 : row + 1], minlength=size)
        scale = torch.where(seen[request] | (its > 0), repetition[request], 1.0)
        want[row] = torch.where(want[row] > 0, want[row] / scale, want[row] * scale)
        want[row] -= frequency[request] * its + presence[request] * (its > 0)
    load("sample/penalties").apply_penalties(logits, mapping, ids, local, repetition, frequency, presence, bits, counts)
    yield logits, want


@entry("vllm", SAMPLE + "penalties.py", "_bincount_kernel", call="bincount")
def bincount(load: Load) -> Pairs:
    """`torch.bincount`, and a bit for each token of the prompt."""
    size, tokens, prompt, prefill = 320, below(320, 3, 2100), ints(1500, 3, 900), ints(2100, 7, 1000)
    bits, counts = below(2**31, 3, size // 32, seed=3), below(9, 3, size, seed=4)
    wanted_bits, wanted_counts = bits.clone(), counts.clone()
    load("sample/penalties").bincount(ints(2, 0), tokens, prompt, prefill, bits, counts, 2100)
    for request in (2, 0):
        seen = torch.bincount(tokens[request, : prompt[request]], minlength=size) > 0
        words = (seen.view(-1, 32).long() << torch.arange(32)).sum(1)
        wanted_bits[request] = words.to(torch.int32)
        wanted_counts[request] = torch.bincount(tokens[request, prompt[request] : prefill[request]], minlength=size)
    yield bits, wanted_bits
    yield counts, wanted_counts


@entry("vllm", SAMPLE + "prompt_logprob.py", "_prompt_logprobs_token_ids_kernel", call="get_prompt_logprobs_token_ids")
def prompt_logprobs_token_ids(load: Load) -> Pairs:
    """Slices of the tokens, shifted by one."""
    tokens, mapping, starts, computed = below(1000, 3, 64), ints(2, 0), ints(0, 5, 12), ints(3, 0, 20)
    found = load("sample/prompt_logprob").get_prompt_logprobs_token_ids(12, starts, mapping, computed, tokens)
    yield found, torch.cat((tokens[2, 21:26], tokens[0, 4:11])).long()


def _last(text: list[int], marker: list[int]) -> int:
    places = [at for at in range(len(text) - len(marker) + 1) if text[at : at + len(marker)] == marker]
    return max(places, default=-1)


@entry(
    "vllm", SAMPLE + "thinking_budget.py", "_update_committed_marker_cache_kernel", "_thinking_budget_kernel",
    call="apply_thinking_budget",
)  # fmt: skip
def apply_thinking_budget(load: Load) -> Pairs:
    """Python's search for the last markers in lists of tokens."""
    start, natural, end = [1, 2], [3], [4, 5, 3]
    texts = [[9, 1, 2, 7, 7, 7, 7, 4], [1, 2, 7, 3, 7, 7], [1, 2, 7, 7], [1, 2, 8, 8, 8]]
    tokens, lengths = torch.zeros(4, 64, dtype=torch.int32), ints(*map(len, texts))
    for request, text in enumerate(texts):
        tokens[request, : len(text)] = ints(*text)
    budgets, mapping, local, ids = ints(3, 2, 9, -1), ints(0, 0, 1, 2, 3), ints(0, 1, 0, 0, 0), ints(4, 5, 7, 7, 8)
    logits = normal(5, 20)
    want = logits.clone()
    for row, request in enumerate(mapping.tolist()):
        text = texts[request] + ids[row - int(local[row]) + 1 : row + 1].tolist()
        begun, ended = _last(text, start), _last(text, natural)
        if budgets[request] >= 0 and begun > ended and len(text) - begun - 2 >= budgets[request]:
            done = max((n for n in range(1, len(end)) if text[-n:] == end[:n]), default=0)
            want[row, end[done]] = 1.0e9
    caches = ints(-1, -1, -1, -1), ints(-1, -1, -1, -1), ints(0, 0, 0, 0)
    for _ in range(2):
        load("sample/thinking_budget").apply_thinking_budget(
            logits, ints(0, 1, 2, 3), mapping, budgets, tokens, lengths, ids, local, *caches,
            ints(*start), ints(*natural), ints(*end),
        )  # fmt: skip
        yield logits, want
        yield caches[0][:3], ints(*(_last(text, start) for text in texts[:3]))
        yield caches[1][:3], ints(*(_last(text, natural) for text in texts[:3]))


@entry("vllm", SAMPLE + "trace_replay.py", "_trace_replay_kernel", call="apply_trace_tokens")
def apply_trace_tokens(load: Load) -> Pairs:
    """An assignment where a trace goes on."""
    sampled, trace = longs(1, 2, 3, 4), below(100, 4, 16)
    load("sample/trace_replay").apply_trace_tokens(
        sampled, ints(3, -1, 0, 2), trace, ints(0, 5, 4, 9), ints(8, 8, 12, 9), ints(3, 3, 5, 7)
    )
    yield sampled, longs(int(trace[3, 2]), 2, 3, 4)
