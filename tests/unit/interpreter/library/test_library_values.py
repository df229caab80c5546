"""The library functions by value: our frontend and interpreter against stock's interpreter, and known answers."""

# covers: tl.standard, tl.random, tl.reduction, tl.shape

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
from tests.gallery.language import library as kernels
from tests.unit.interpreter.library.cases import Call, calls
from tests.unit.interpreter.philox import philox, random_bits, uniform

ROOT = Path(__file__).parents[4]
NAMES = tuple(calls())


@functools.cache
def stock() -> dict[tuple[str, str], np.ndarray]:
    """Run every call in stock's interpreter; return arrays by name of the call and of the array."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "results.npz"
        subprocess.run(
            [sys.executable, "-m", "tests.unit.interpreter.library.stock_side", str(target)],
            cwd=ROOT, env={**os.environ, "TRITON_INTERPRET": "1"}, check=True, timeout=300,
        )  # fmt: skip
        with np.load(target) as held:
            names = [tuple(json.loads(str(name))) for name in held["names"]]
            return {name: held[f"r{number}"] for number, name in enumerate(names)}


@functools.cache
def ours(name: str) -> Call:
    """A call, run; what it has written is looked at only."""
    call = calls()[name]
    result = tlx_xdsl.interpret(getattr(kernels, call.kernel), (1,), **call.arguments, options={"jobs": 1})
    assert not result.warnings
    return call


def assert_close(call: Call, found: np.ndarray, expected: np.ndarray) -> None:
    if call.ulps == 0 or found.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    unit = np.spacing(np.maximum(np.abs(expected), expected.dtype.type(call.scale)))
    np.testing.assert_array_less(np.abs(found - expected), (call.ulps + 0.5) * unit)


@pytest.mark.backend
@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_stock(name: str) -> None:
    if (name, "error") in stock():
        pytest.skip(f"stock's interpreter fails: {stock()[name, 'error']}")
    call = ours(name)
    for key in call.results:
        assert_close(call, call.arguments[key], stock()[name, key])


@pytest.mark.backend
def test_stock_runs_nearly_all_of_them() -> None:
    assert len([key for key in stock() if key[1] == "error"]) <= 3, [v for k, v in stock().items() if k[1] == "error"]


# Known answers -------------------------------------------------------------------------------------------------------


def test_philox_gives_the_numbers_of_its_authors() -> None:
    """The known answers of Random123 (kat_vectors, philox4x32 with 10 rounds)."""
    ones = 0xFFFFFFFF
    for counters, key, expected in (
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ones,) * 4, (ones, ones), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ):  # fmt: skip
        found = philox(key[1] << 32 | key[0], tuple(np.array([counter]) for counter in counters))
        assert tuple(int(word[0]) for word in found) == expected


def test_random_words_are_philox() -> None:
    call = ours("randint of a wide seed")
    index = call.arguments["first"] + np.arange(256)
    np.testing.assert_array_equal(call.arguments["out"].view(np.uint32), random_bits(call.arguments["seed"], index)[0])
    few = np.stack(random_bits(call.arguments["seed"], index, rounds=3), -1).ravel()
    np.testing.assert_array_equal(call.arguments["few"].view(np.uint32), few)


def test_uniform_numbers_are_philox_scaled() -> None:
    call = ours("rand")
    found = call.arguments["out"]
    np.testing.assert_array_equal(found, uniform(random_bits(call.arguments["seed"], np.arange(256))[0]))
    assert found.min() >= 0
    assert found.max() < 1


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("sort", "topk", "flip"))])
def test_sorting_is_numpys(name: str) -> None:
    call = ours(name)
    x = call.arguments["x"]
    up = np.sort(x, 1)
    match call.kernel:
        case "sorting":
            np.testing.assert_array_equal(call.arguments["up"], up)
            np.testing.assert_array_equal(call.arguments["down"], up[:, ::-1])
        case "largest":
            np.testing.assert_array_equal(call.arguments["out"], up[:, ::-1][:, :8])
        case _:
            np.testing.assert_array_equal(call.arguments["out"], np.stack([x[:, ::-1], x[::-1]]))


def test_swizzle2d_visits_every_tile_once() -> None:
    call = ours("swizzle2d")
    i, j = call.arguments["out"][:, :7, :5].reshape(2, -1)
    assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == [(a, b) for a in range(7) for b in range(5)]
