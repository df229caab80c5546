"""Conversions between all pairs of number types, on the GPU and in the interpreter: as a module
it prints a line for each pair.

The inputs are the edges: NaN, infinities, both zeros, subnormal numbers, the limits of all integer types and their
neighbours, and numbers halfway between two of a narrower type.
"""

# covers: tl.dtypes, tt.elementwise

from __future__ import annotations

from itertools import permutations

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl

FLOATS = {
    "float8e5": ml_dtypes.float8_e5m2,
    "float8e4nv": ml_dtypes.float8_e4m3fn,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}
INTEGERS = {f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}
TYPES = {name: np.dtype(kind) for name, kind in (FLOATS | INTEGERS).items()}
EIGHT_BIT_FLOATS = ("float8e5", "float8e4nv")


def converts(source: str, target: str) -> bool:
    """Say whether upstream Triton converts directly: 8-bit floats only from and to floats, and from f64 not at all."""
    if source in EIGHT_BIT_FLOATS:
        return target in FLOATS
    return target not in EIGHT_BIT_FLOATS or source in ("float16", "bfloat16", "float32")


PAIRS = [pair for pair in permutations(TYPES, 2) if converts(*pair)]
COUNT = 256


@tlx_xdsl.jit
def convert(x, y, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(y + i, tl.load(x + i).to(y.dtype.element_ty))


def edges(name: str) -> np.ndarray:
    """`COUNT` numbers of a type, the edges first, then random bits."""
    kind = TYPES[name]
    powers = [
        2**exponent + step for exponent in (0, 1, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64) for step in (-1, 0, 1)
    ]
    random = np.random.default_rng(7).integers(0, 256, COUNT * kind.itemsize, np.uint8).view(kind)
    if name in INTEGERS:
        limits = np.iinfo(kind)
        exact = [sign * power for power in powers for sign in (1, -1)]
        first = np.array([number for number in exact if limits.min <= number <= limits.max], kind)
    else:
        tiny, huge = float(ml_dtypes.finfo(kind).smallest_subnormal), float(ml_dtypes.finfo(kind).max)
        halves = (0.5, 0.99, 1.5, 2.5, 255.5, 2049.0, 65519.0, 65520.0, 1 + 2.0**-8, 1 + 2.0**-11)
        positive = [*halves, tiny, huge, np.inf, 0.0, *map(float, powers)]
        with np.errstate(over="ignore"):
            first = np.array([sign * x for x in positive for sign in (1, -1)]).astype(kind)
            first = np.concatenate((np.array([np.nan, -np.nan]).astype(kind), first))
    return np.concatenate((first, random))[:COUNT]


def inputs(source: str, target: str) -> np.ndarray:
    """The edges of the source; for floats to uint8 those in range.

    LLVM leaves the others undefined, and takes the upper bits of the 16 that PTX gives for zeros: they end in the
    element that is stored beside.
    """
    values = edges(source)
    if target != "uint8" or source not in FLOATS:
        return values
    wide = values.astype(np.float64)
    return np.where((wide > -1) & (wide < 256), values, values.dtype.type(1.5))


def in_the_interpreter(source: str, target: str) -> np.ndarray:
    """The bits of the results."""
    results = np.zeros(COUNT, TYPES[target])
    convert.interpret((1,), inputs(source, target), results, COUNT=COUNT)
    return results


def on_the_gpu(source: str, target: str) -> np.ndarray:
    """The same from a launch; torch moves the bits as integers of their width."""
    import torch

    def moved(values: np.ndarray) -> torch.Tensor:
        bits = torch.from_numpy(values.view(f"i{values.dtype.itemsize}")).cuda()
        names = {"float8e5": "float8_e5m2", "float8e4nv": "float8_e4m3fn"}
        name = next(name for name, kind in TYPES.items() if kind == values.dtype)
        return bits.view(getattr(torch, names.get(name, name)))

    results = moved(np.full(COUNT, 0x5A, f"u{TYPES[target].itemsize}").view(TYPES[target]))
    convert[(1,)](moved(inputs(source, target)), results, COUNT=COUNT)
    kind = TYPES[target]
    return results.view(getattr(torch, f"int{8 * kind.itemsize}")).cpu().numpy().view(kind)


def differences(source: str, target: str) -> list[tuple[object, object, object]]:
    """The inputs that give different results: (input, on the GPU, in the interpreter). A NaN is a NaN."""
    there, here = on_the_gpu(source, target), in_the_interpreter(source, target)
    bits = f"u{TYPES[target].itemsize}"
    differs = there.view(bits) != here.view(bits)
    if target in FLOATS:
        differs &= ~(np.isnan(there.astype(np.float64)) & np.isnan(here.astype(np.float64)))
    return [(inputs(source, target)[i], there[i], here[i]) for i in np.flatnonzero(differs)]


@pytest.mark.gpu
@pytest.mark.parametrize("source", TYPES)
def test_the_gpu_and_the_interpreter_convert_alike(source):
    found = {target: differences(source, target) for a, target in PAIRS if a == source}
    assert not {target: each[:4] for target, each in found.items() if each}


if __name__ == "__main__":
    for pair in PAIRS:
        try:
            found = differences(*pair)
        except Exception as error:
            print(*pair, "ERROR", str(error)[:300])
            continue
        print(*pair, "differ:" if found else "alike", len(found) or "", found[:6] if found else "")
