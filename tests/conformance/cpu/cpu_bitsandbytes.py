"""Kernels of bitsandbytes' Triton backend: quantising in blocks and back, and steps of optimisers."""

from __future__ import annotations

import math
from typing import Any

import torch

from tests.conformance.cpu.cpu_entries import Load, Pairs, entry, normal

BACKEND = "bitsandbytes/backends/triton/"
FLOAT = 1e-5
"""The tolerance of float32."""
BLOCK = 256
"""The elements that share a scale in the optimisers' 8-bit state."""


def _nearest(scaled: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
    """The distance of each number from the level next to it."""
    return (scaled[:, None] - levels).abs().amin(1)


def _blocks(x: torch.Tensor, size: int) -> torch.Tensor:
    """The largest magnitude of each block, one for each element."""
    padded = torch.nn.functional.pad(x.float().flatten(), (0, -x.numel() % size)).view(-1, size)
    return padded.abs().amax(1)


def _scales(largest: torch.Tensor, size: int, number: int) -> torch.Tensor:
    return largest.repeat_interleave(size)[:number]


def _levels_of_8_bits(*, signed: bool = True) -> torch.Tensor:
    """256 levels that lie closer to each other near 0."""
    half = torch.linspace(0, 1, 129 if signed else 256) ** 2
    return torch.cat((-half.flip(0)[:-1], half[1:])) if signed else half


@entry(
    "bitsandbytes", BACKEND + "kernels_8bit_quant.py", "quantize_8bit_blockwise_kernel", "dequant_8bit_kernel",
    call="quantize_blockwise_triton", tolerance=FLOAT,
)  # fmt: skip
def eight_bits(load: Load) -> Pairs:
    """The distance to the nearest of 256 levels, for float32, bf16 and f16; the levels times the scales, back."""
    module = load("backends.triton.kernels_8bit_quant")
    levels = _levels_of_8_bits()
    for size, number in ((64, 1000), (256, 777), (128, 128)):
        x = normal(number, seed=size)
        codes, largest = module.quantize_blockwise_triton(x, levels, size)
        yield largest, _blocks(x, size)
        scaled = x / _scales(largest, size, number)
        yield (levels[codes.long()] - scaled).abs(), _nearest(scaled, levels)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            back = module.dequant_8bit_blockwise(codes, largest, levels, size, dtype=dtype)
            yield back, (levels[codes.long()] * _scales(largest, size, number)).to(dtype)


def _four_bits(module: Any, kind: str, levels: torch.Tensor) -> Pairs:
    """Compare with 16 levels; of two numbers the first stands in the upper half of a byte."""
    for size, blocks, dtype in ((64, 11, torch.float32), (128, 4, torch.bfloat16), (64, 2, torch.float16)):
        number = size * blocks
        x = normal(number, seed=size, dtype=dtype)
        largest, packed = torch.empty(blocks + blocks % 2, dtype=dtype), torch.empty(number // 2, 1, dtype=torch.uint8)
        launched = -(-blocks // 2)
        module.quantize_4bit_blockwise_triton(
            x, size, kind, launched, largest, num_elements=number, quantized_out=packed
        )
        yield largest[:blocks], _blocks(x, size)
        codes = torch.stack((packed >> 4, packed & 15), -1).flatten().long()
        scale = _scales(largest[:blocks].float(), size, number)
        scaled = (x / _scales(largest[:blocks], size, number)).float()
        # A threshold in bf16 and f16 is half a step off.
        slack = 0.0 if dtype == torch.float32 else 4e-3
        distance = (levels[codes] - scaled).abs()
        yield (distance - _nearest(scaled, levels)).clamp_min(slack), torch.full_like(distance, slack)
        for wanted in (torch.float32, torch.float16):
            back = torch.empty(number, dtype=wanted)
            module.dequantize_4bit_impl(packed, largest[:blocks].float(), size, kind, wanted, back)
            yield back, (levels[codes] * scale).to(wanted)
            module.dequantize_4bit_impl_passing_code(packed, largest[:blocks].float(), size, levels, wanted, back)
            yield back, (levels[codes] * scale).to(wanted)


@entry(
    "bitsandbytes", BACKEND + "kernels_4bit.py", "quantize_nf4_blockwise_kernel", "dequant_nf4_kernel",
    "dequant_4bit_kernel", call="quantize_4bit_blockwise_triton", tolerance=1e-3,
)  # fmt: skip
def nf4(load: Load) -> Pairs:
    """The quantiles of the normal distribution (Dettmers et al., 2023): the nearest one, and times the scales, back."""
    chances = torch.linspace(0.9677083, 0.5, 9)[:-1].double(), torch.linspace(0.9677083, 0.5, 8)[:-1].double()
    above, under = (torch.special.ndtri(each) for each in chances)
    levels = torch.cat((-under, torch.zeros(1), above.flip(0))).float()
    yield from _four_bits(load("backends.triton.kernels_4bit"), "nf4", levels / levels.max())


@entry(
    "bitsandbytes", BACKEND + "kernels_4bit.py", "quantize_fp4_blockwise_kernel", "dequant_fp4_kernel",
    "dequant_4bit_kernel", call="quantize_4bit_blockwise_triton", tolerance=1e-3,
)  # fmt: skip
def fp4(load: Load) -> Pairs:
    """Signed twelfths: the nearest one, and times the scales, back."""
    magnitudes = torch.tensor([0, 0.0625, 8, 12, 4, 6, 2, 3]) / 12
    yield from _four_bits(load("backends.triton.kernels_4bit"), "fp4", torch.cat((magnitudes, -magnitudes)))


BETAS = 0.9, 0.95, 0.999
RATE, EPS, DECAY, STEP, ALPHA, NORM = 1e-2, 1e-6, 0.1, 3, 5.0, 0.5


def _step(
    name: str, gradient: torch.Tensor, weights: torch.Tensor, states: list[torch.Tensor], *, decay: float
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """One step in torch: the weights and the states after it."""
    first, second, third = BETAS
    g, p, s = gradient.float() * NORM, weights.float(), [each.clone() for each in states]
    if name in ("adam", "ademamix", "lion"):
        p = p * (1 - RATE * decay)
    else:
        g = g + p * decay
    corrected = 1 - first**STEP, math.sqrt(1 - second**STEP)
    if name == "adam":
        s = [s[0] * first + (1 - first) * g, s[1] * second + (1 - second) * g * g]
        p = p - RATE / corrected[0] * s[0] / (s[1].sqrt() / corrected[1] + EPS)
    elif name == "ademamix":
        slow = s[2] * third + (1 - third) * g
        s = [s[0] * first + (1 - first) * g, s[1] * second + (1 - second) * g * g, slow]
        p = p - RATE * (s[0] / corrected[0] + ALPHA * slow) / (s[1].sqrt() / corrected[1] + EPS)
    elif name == "momentum":
        s = [s[0] * first + g]
        p = p - RATE * s[0]
    elif name == "lion":
        p = p - RATE * (s[0] * first + (1 - first) * g).sign()
        s = [s[0] * second + (1 - second) * g]
    elif name == "rmsprop":
        s = [s[0] * first + (1 - first) * g * g]
        p = p - RATE * g / (s[0].sqrt() + EPS)
    else:
        s = [s[0] + g * g]
        p = p - RATE * g / (s[0].sqrt() + EPS)
    return p, s


def _states(name: str, number: int) -> list[torch.Tensor]:
    """Draw an optimiser's states: a mean of either sign, and squares."""
    squares = normal(number, seed=5).square() + 0.1
    if name in ("adam", "ademamix"):
        return [normal(number, seed=4), squares, *([normal(number, seed=6)] if name == "ademamix" else [])]
    return [normal(number, seed=4) if name in ("momentum", "lion") else squares]


def _optimiser(load: Load, name: str) -> Pairs:
    module = load("backends.triton.kernels_optim")
    first, second, third = BETAS
    for dtype in (torch.float32, torch.bfloat16):
        number = 1003
        gradient, weights = normal(number, dtype=dtype), normal(number, seed=1, dtype=dtype)
        states = _states(name, number)
        want, left = _step(name, gradient, weights, states, decay=DECAY)
        mine = weights.clone()
        one = torch.stack((states[0], states[2])) if name == "ademamix" else states[0].clone()
        two = states[1].clone() if len(states) > 1 else None
        module.optimizer_update_32bit_impl(
            name, gradient, mine, one, two, torch.zeros(1), 0.0, 0.0, first, second, third, ALPHA, EPS, DECAY, STEP,
            RATE, NORM,
        )  # fmt: skip
        yield mine.float() * (1 if dtype == torch.float32 else 1e-3), want * (1 if dtype == torch.float32 else 1e-3)
        yield one, torch.stack((left[0], left[2])) if name == "ademamix" else left[0]
        if two is not None:
            yield two, left[1]


def _optimiser_of_8_bits(load: Load, name: str) -> Pairs:
    """Compare the weights, and the distance of the state from what it would be without rounding, in its scales."""
    module = load("backends.triton.kernels_optim")
    quantise = load("backends.triton.kernels_8bit_quant").quantize_blockwise_triton
    number = 4 * BLOCK
    gradient, weights = normal(number), normal(number, seed=1)
    levels = [_levels_of_8_bits(), _levels_of_8_bits(signed=False)]
    tables = levels if name in ("adam", "ademamix") else levels[:1]
    codes, largest, states = [], [], []
    for at, state in enumerate(_states(name, number)):
        code, scale = quantise(state, tables[at % 2] if len(tables) > 1 else tables[0], BLOCK)
        codes.append(code)
        largest.append(scale)
        table = tables[at % 2] if len(tables) > 1 else tables[0]
        states.append(table[code.long()] * _scales(scale, BLOCK, number))
    first, second, third = BETAS
    decay = 0.0 if name == "lion" else DECAY
    want, left = _step(name, gradient, weights, states, decay=decay)
    mine = weights.clone()
    stacked = name == "ademamix"
    one = torch.stack((codes[0], codes[2])) if stacked else codes[0]
    scale = torch.stack((largest[0], largest[2])) if stacked else largest[0]
    two, scale_two = (codes[1], largest[1]) if len(codes) > 1 else (None, None)
    module.optimizer_update_8bit_blockwise_impl(
        name, gradient, mine, one, two, first, second, third, ALPHA, EPS, STEP, RATE, tables[0],
        tables[1] if len(tables) > 1 else None, scale, scale_two, decay, NORM,
    )  # fmt: skip
    yield mine, want
    found = [(one[0], scale[0], left[0], tables[0]), (one[1], scale[1], left[2], tables[0])] if stacked else []
    found = found or [(one, scale, left[0], tables[0])]
    if two is not None:
        found.append((two, scale_two, left[1], tables[1]))
    for code, scales, state, table in found:
        yield scales, _blocks(state, BLOCK)
        scaled = state / _scales(scales, BLOCK, number)
        yield (table[code.long()] - scaled).abs(), _nearest(scaled, table)


@entry(
    "bitsandbytes", BACKEND + "kernels_optim.py", "_optimizer_update_2state_32bit_triton_kernel",
    "_optimizer_update_2state_8bit_blockwise_triton_kernel", call="optimizer_update_32bit_impl", tolerance=1e-4,
)  # fmt: skip
def optimisers_of_two_states(load: Load) -> Pairs:
    """Steps of Adam and AdEMAMix in torch, with states of 32 and of 8 bits."""
    for name in ("adam", "ademamix"):
        yield from _optimiser(load, name)
        yield from _optimiser_of_8_bits(load, name)


@entry(
    "bitsandbytes", BACKEND + "kernels_optim.py", "_optimizer_update_1state_32bit_triton_kernel",
    "_optimizer_update_1state_8bit_blockwise_triton_kernel", call="optimizer_update_32bit_impl", tolerance=1e-4,
)  # fmt: skip
def optimisers_of_one_state(load: Load) -> Pairs:
    """Steps of momentum, Lion, RMSprop and Adagrad in torch, with a state of 32 and of 8 bits."""
    for name in ("momentum", "lion", "rmsprop", "adagrad"):
        yield from _optimiser(load, name)
    for name in ("momentum", "lion", "rmsprop"):
        yield from _optimiser_of_8_bits(load, name)
