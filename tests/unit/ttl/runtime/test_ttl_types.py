"""Tiles of every data format, and mixtures of them: what three machines compute is what numpy does.

How block floats are packed is tested in `tests/unit/numerics/test_ttl_formats.py`.
"""

# covers: ttl.tensors, ttl.math

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.fuzz.ttl import has_compiler, kernel_of
from tests.fuzz.ttl_types import trial
from tests.unit.volume import is_full
from tlx_xdsl.ttl.formats import named
from tlx_xdsl.ttl.runtime import run
from tlx_xdsl.ttl.tiles import from_pages, to_pages

BF16 = np.dtype(ml_dtypes.bfloat16)
STORAGE = {"f32": np.float32, "bf16": BF16, "i32": np.int32, "ui32": np.uint32, "ui16": np.uint16,
           "bfp8_b": np.float32, "bfp4_b": np.float32}  # fmt: skip
NAMES = {"f32": "float32", "bf16": "bfloat16", "i32": "int32", "ui32": "uint32", "ui16": "uint16",
         "bfp8_b": "bfloat8_b", "bfp4_b": "bfloat4_b"}  # fmt: skip
MACHINES = ("tensors", "ttkernel", "cpp")

KERNEL = """\
from typing import Annotated, Any

import tlx_xdsl.language.ttl as ttl


@ttl.kernel(grid=(1, 1))
def kernel({parameters}):
{buffers}

    @ttl.datamovement()
    def read():
        with {reserves}:
{reads}

    @ttl.compute()
    def compute():
        with {waits}, out_cb.reserve() as o:
            o.store({expression})

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0:2, 0:1]).wait()
"""


def text_of(types: dict[str, str], expression: str) -> str:
    """The kernel; `b1` in the expression is a block of one tile."""
    rows = dict.fromkeys(types, 2) | ({"b": 1} if "b1" in expression else {})
    expression = expression.replace("b1", "b")
    inputs = [name for name in types if name != "out"]
    parameters = [f"{name}: Annotated[Any, ttl.tensor((64, 32), ttl.{NAMES[type_]})]" for name, type_ in types.items()]
    return KERNEL.format(
        parameters=", ".join(parameters),
        buffers="\n".join(
            f"    {name}_cb = ttl.make_circular_buffer_like({name}, shape=({rows[name]}, 1))" for name in types
        ),
        reserves=", ".join(f"{name}_cb.reserve() as {name}_block" for name in inputs),
        reads="\n".join(f"            ttl.copy({name}[0:{rows[name]}, 0:1], {name}_block).wait()" for name in inputs),
        waits=", ".join(f"{name}_cb.wait() as {name}" for name in inputs),
        expression=expression,
    )


def numbers(type_: str, seed: int) -> np.ndarray:
    chance = np.random.default_rng(seed)
    if named(type_).is_integer:
        low = -1000 if type_ == "i32" else 0
        return chance.integers(low, 1000, (64, 32)).astype(STORAGE[type_])
    return (chance.standard_normal((64, 32)) * 100).astype(STORAGE[type_])


def as_held(array: np.ndarray, type_: str) -> np.ndarray:
    """Convert numbers to a type and back, as a tensor of it holds them."""
    return from_pages(to_pages(array, type_), array.shape, type_)


def outputs(tmp_path: Path, types: dict[str, str], expression: str, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    kernel = kernel_of(text_of(types, expression), str(tmp_path), abs(hash((*types.items(), expression))))
    found = []
    for machine in MACHINES if has_compiler() else MACHINES[:2]:
        storage = STORAGE[types["out"]]
        out = np.full((64, 32), np.nan if np.dtype(storage).kind not in "iu" else 77, storage)
        run(kernel, *inputs.values(), out, machine=machine)
        found.append(out)
    return found


F32 = np.float32
CASES = [
    ({"a": "bf16", "b": "bf16", "out": "f32"}, "a * b + a", lambda a, b: F32(a) * F32(b) + F32(a)),
    ({"a": "bf16", "b": "f32", "out": "bf16"}, "a - b", lambda a, b: F32(a) - b),
    ({"a": "bfp8_b", "b": "bf16", "out": "bfp4_b"}, "ttl.math.max(a, b)", lambda a, b: np.maximum(a, F32(b))),
    ({"a": "bfp4_b", "b": "f32", "out": "bfp8_b"}, "ttl.math.abs(a) * b", lambda a, b: np.abs(a) * b),
    ({"a": "bfp8_b", "out": "f32"}, "-a", lambda a: -a),
    ({"a": "i32", "b": "i32", "out": "i32"}, "ttl.math.min(a * b - 3, -a) + ttl.math.relu(b) ** 2",
     lambda a, b: np.minimum(a * b - 3, -a) + np.maximum(b, 0) ** 2),
    ({"a": "ui32", "b": "ui32", "out": "ui32"}, "ttl.math.max(a - b, a) * 65537",
     lambda a, b: np.maximum(a - b, a) * np.uint32(65537)),
    ({"a": "ui16", "b": "ui16", "out": "ui16"}, "a * b - b + 65535", lambda a, b: a * b - b + np.uint16(65535)),
    ({"a": "i32", "b": "f32", "out": "f32"}, "ttl.math.typecast(a, ttl.float32) * b", lambda a, b: F32(a) * b),
    ({"a": "f32", "b": "i32", "out": "i32"}, "ttl.block.typecast(a, ttl.int32) + b",
     lambda a, b: np.trunc(a).astype(np.int32) + b),
    ({"a": "i32", "out": "i32"}, "ttl.math.fill(a, -2147483648)", lambda a: np.full_like(a, -(2**31))),
]  # fmt: skip


@pytest.mark.parametrize(("types", "expression", "wanted"), CASES, ids=[case[1] for case in CASES])
def test_mixtures(tmp_path, types, expression, wanted):
    inputs = {name: numbers(type_, seed) for seed, (name, type_) in enumerate(types.items()) if name != "out"}
    with np.errstate(over="ignore"):
        expected = wanted(*(as_held(array, types[name]).astype(array.dtype) for name, array in inputs.items()))
    for out in outputs(tmp_path, types, expression, inputs):
        np.testing.assert_array_equal(out.astype(np.float64), as_held(expected, types["out"]).astype(np.float64))


def test_product_of_bf16_in_f32_is_not_rounded_on_its_way(tmp_path):
    """A typecast of a product to f32 is the product in f32, which the sum then reads from a buffer."""
    types = {"a": "bf16", "b": "bf16", "c": "f32", "out": "f32"}
    chance = np.random.default_rng(0)
    inputs = {name: chance.integers(-64, 64, (64, 32)).astype(STORAGE[types[name]]) for name in "abc"}
    products = inputs["a"].astype(F32) @ inputs["b"][:32].astype(F32)
    assert (products.astype(BF16).astype(F32) != products).any()
    text = "ttl.math.typecast(a @ b1, ttl.float32) + c"
    for out in outputs(tmp_path, types, text, inputs):
        np.testing.assert_array_equal(out, products + inputs["c"])


SPECIAL = np.array([0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 65535, 65534.5, 65535.5, 65536, 2**31 - 128, 2**31, 2**32 - 256,
                    2**32, 1e30, -1e30, -(2**31), np.inf, -np.inf, 1.00390625, 1.01171875, 3e38], F32)  # fmt: skip
WHOLE = np.array(
    [0, 1, 255, 257, 258, 259, 65535, 65536, 2**24 + 1, 2**24 + 3, 2**31 - 1, 2**31 - 65, 2**31 - 64], np.int64
)


def typecast(values: np.ndarray, source: str, target: str) -> np.ndarray:
    """A typecast, written number by number from what the vector unit's instructions are documented to do."""
    return np.array([_converted(value, source, target) for value in values.tolist()], STORAGE[target])


def _converted(value: float, source: str, target: str) -> float:
    limits = {"i32": (-(2**31), 2**31 - 1), "ui32": (0, 2**32 - 1), "ui16": (0, 2**16 - 1)}
    if target in limits:
        low, high = limits[target]
        if not low <= value <= high:
            return low if value < low else high
        # Truncation, but for 16 bits the nearest one, ties away from zero.
        return int(value + 0.5) if target == "ui16" and source not in limits else int(value)
    if source in limits and target == "bf16":
        bits = int(F32(value).view(np.uint32))
        return np.uint32(bits + 0x8000 & 0xFFFF0000).view(F32)
    return value


PAIRS = [(a, b) for a in ("f32", "bf16", "i32", "ui32", "ui16") for b in ("f32", "bf16", "i32", "ui32", "ui16")
         if a != b and {a, b} != {"i32", "ui32"}]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_typecasts(tmp_path, source, target):
    values = SPECIAL if source in ("f32", "bf16") else WHOLE
    if source == "i32":
        values = np.concatenate([values, -values, [-(2**31)]])
    if source == "ui32":
        values = np.concatenate([values, values + 2**31, [2**32 - 1]])
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.resize(values[values < 2**16] if source == "ui16" else values, (64, 32)).astype(STORAGE[source])
    with np.errstate(over="ignore"):
        wanted = typecast(array.reshape(-1), source, target).reshape(64, 32)
    for out in outputs(
        tmp_path, {"a": source, "out": target}, f"ttl.math.typecast(a, ttl.{NAMES[target]})", {"a": array}
    ):
        np.testing.assert_array_equal(out.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("number", range(100 if is_full() else 3))
def test_random_kernels(number):
    """`python -m tests.fuzz.ttl_types 100` runs more of them."""
    ended = trial(number)
    assert ended.kind == "ok", ended.detail
