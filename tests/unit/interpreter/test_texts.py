"""TTGIR texts that were written by hand and proven on an H200 run in the interpreter, in the spelling of 3.6 and 3.9.

The Blackwell texts were compiled by stock Triton and have not run on hardware.
"""

from pathlib import Path

import numpy as np
import pytest

from tlx_xdsl import TensorDescriptor
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.runtime.simulate.interpret import interpret_text

TEXTS = Path(__file__).parent / "texts"
HALF = 1e-3
"""Relative error of f16 results."""

describe = TensorDescriptor.from_tensor


def run(name, grid, *arguments, schedule):
    path = TEXTS / f"{name}.ttgir"
    result = interpret_text(path.read_text(), grid, arguments, filename=str(path), schedule=schedule)
    assert not result.warnings


def relative_error(found, expected):
    return np.linalg.norm(found.astype(np.float64) - expected) / np.linalg.norm(expected)


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)


def poisoned(*shape, dtype=np.float16):
    return np.full(shape, np.nan, dtype)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("version", ["3.6", "3.9"])
def test_gemm_tile_with_bias(version, schedule):
    a, b, bias, c = random(128, 256), random(256, 128), random(16, 128), poisoned(128, 128)
    descriptors = describe(a, [128, 64]), describe(b, [64, 128])
    run(f"hopper_ws_gemm_{version}", 1, *descriptors, c, bias, 256, schedule=schedule)
    # Each column gets the sum of its column of the bias.
    assert relative_error(c, a.astype(float) @ b.astype(float) + bias.astype(float).sum(0)) < HALF


@pytest.mark.parametrize("schedule", POLICIES)
def test_persistent_gemm(schedule):
    m, n, k = 384, 512, 192
    a, b, c = random(m, k), random(k, n), poisoned(m, n)
    descriptors = describe(a, [64, 64]), describe(b, [64, 256]), describe(c, [64, 128])
    run("gemm_3.9", 2, *descriptors, m, n, k, schedule=schedule)
    assert relative_error(c, a.astype(float) @ b.astype(float)) < HALF


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("name", ["attention_3.6", "attention_causal_3.9", "attention_hd64_3.9"])
def test_attention(name, schedule):
    heads, length, dim = 2, 384, 64 if "hd64" in name else 128
    q = random(heads * length, dim)
    k, v = np.roll(q, 17, 0), np.roll(q, 5, 1)
    out, lse, scale = poisoned(heads * length, dim), poisoned(heads, length, dtype=np.float32), dim**-0.5
    blocks = ((q, 64), (k, 128), (v, 128), (out, 64))
    descriptors = [describe(array, [rows, dim]) for array, rows in blocks]
    run(name, 2, *descriptors, lse, length, heads, 1, scale * np.log2(np.e), schedule=schedule)
    q, k, v = (array.astype(float).reshape(heads, length, dim) for array in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) * scale
    if "causal" in name:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    assert relative_error(out.reshape(heads, length, dim), weights / total @ v) < HALF
    # The texts leave the logarithm to the base 2.
    assert relative_error(lse, ((np.log(total) + top)[..., 0]) / np.log(2)) < 1e-6


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("version", ["3.6", "3.9"])
def test_blackwell_gemm_tile(version, schedule):
    a, b, c = random(128, 320), random(320, 128), poisoned(128, 128)
    descriptors = describe(a, [128, 64]), describe(b, [64, 128]), describe(c, [128, 128])
    run(f"blackwell_ws_gemm_{version}", 1, *descriptors, 320, schedule=schedule)
    assert relative_error(c, a.astype(float) @ b.astype(float)) < HALF
