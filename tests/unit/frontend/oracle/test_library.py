"""The library of the language, by value: what its functions become is run in numpy."""

# covers: tl.standard, tl.random

import re

import numpy as np
import pytest

from tests.unit.frontend.kernels import compile_source, load
from tests.unit.interpreter.synchronisation.recording import stores_of
from tlx_xdsl import CompilationError
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.text.verify import verify_module

SPELLING = {
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
}


def evaluate(tmp_path, expression: str, result: np.ndarray, *inputs: np.ndarray, **scalars) -> np.ndarray:
    """The block `expression` of x, y, z, ..., which hold the blocks `inputs`, and of scalars by name."""
    names = "xyzw"[: len(inputs)]
    lines = [
        "@tlx_xdsl.jit",
        f"def kernel({', '.join(['out', *(f'p_{name}' for name in names), *scalars])}):",
        *(
            f"    {name} = {_place(block, f'p_{name}', 'tl.load({})')}"
            for name, block in zip(names, inputs, strict=True)
        ),
        f"    result = {expression}",
        "    " + _place(result, "out", "tl.store({}, result)"),
    ]
    module = load(tmp_path, "\n".join(lines))
    signature = {f"p_{name}": f"*{SPELLING[block.dtype.name]}" for name, block in zip(names, inputs, strict=True)}
    signature |= {"out": f"*{SPELLING[result.dtype.name]}"} | {
        name: SPELLING[s.dtype.name] for name, s in scalars.items()
    }
    built = build_module(module.kernel.source, signature, {})
    verify_module(built)
    out = np.zeros(max(result.size, 1), result.dtype)
    stores_of(built, out, *(block.ravel() for block in inputs), *scalars.values())
    return out.reshape(result.shape)


def _place(block: np.ndarray, pointer: str, access: str) -> str:
    index = [pointer]
    for dim, size in enumerate(block.shape):
        stride = int(np.prod(block.shape[dim + 1 :]))
        where = ", ".join(":" if other == dim else "None" for other in range(block.ndim))
        index.append(f"tl.arange(0, {size})[{where}] * {stride}")
    return access.format(" + ".join(index))


def random_block(shape, dtype="float32", seed=0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        info = np.iinfo(dtype)
        return generator.integers(max(info.min, -1000), min(info.max, 1000), shape, dtype)
    return generator.standard_normal(shape).astype(dtype)


# --- sorting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("shape", [(1,), (2,), (64,), (4, 16), (2, 4, 8)])
def test_sort(tmp_path, shape, dtype):
    x = random_block(shape, dtype)
    assert (evaluate(tmp_path, "tl.sort(x)", x, x) == np.sort(x)).all()
    assert (evaluate(tmp_path, "x.sort(descending=True)", x, x) == np.sort(x)[..., ::-1]).all()


def test_sort_loses_no_element_where_nan_stands(tmp_path):
    x = random_block((32,))
    x[[3, 17, 18]] = np.nan
    found = evaluate(tmp_path, "tl.sort(x, dim=0)", x, x)
    assert sorted(found.view(np.int32)) == sorted(x.view(np.int32))


def test_bitonic_merge(tmp_path):
    x = np.concatenate([np.arange(0, 32, 2), np.arange(31, 0, -2)]).astype("int32")
    assert (evaluate(tmp_path, "tl.bitonic_merge(x)", x, x) == np.sort(x)).all()
    rotated = np.roll(x, 5)
    assert (evaluate(tmp_path, "tl.bitonic_merge(x, descending=True)", x, rotated) == np.sort(x)[::-1]).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("k", [1, 2, 8, 32])
def test_topk(tmp_path, k, dtype):
    x = random_block((4, 32), dtype)
    result = np.zeros((4, k), dtype)
    assert (evaluate(tmp_path, f"tl.topk(x, {k})", result, x) == np.sort(x)[:, ::-1][:, :k]).all()
    assert (evaluate(tmp_path, f"tl.topk(x, {k}, descending=False)", result, x) == np.sort(x)[:, :k]).all()


def test_topk_of_one_row(tmp_path):
    x = random_block((16,), "int32")
    assert (evaluate(tmp_path, "tl.topk(x, 4, dim=-1)", np.zeros(4, "int32"), x) == np.sort(x)[::-1][:4]).all()


@pytest.mark.parametrize(("call", "dim"), [("tl.flip(x)", 2), ("x.flip(0)", 0), ("tl.flip(x, dim=-2)", 1)])
def test_flip(tmp_path, call, dim):
    x = random_block((2, 4, 8))
    assert (evaluate(tmp_path, call, x, x) == np.flip(x, dim)).all()


# --- normalising ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "dim"), [("", 0), (", 1", 1), (", dim=-1, ieee_rounding=True", 1)])
def test_softmax(tmp_path, arguments, dim):
    x = random_block((8, 16)) * 50
    expected = np.exp(x - x.max(dim, keepdims=True))
    expected /= expected.sum(dim, keepdims=True)
    np.testing.assert_allclose(evaluate(tmp_path, f"tl.softmax(x{arguments})", x, x), expected, rtol=1e-5)


def test_softmax_ignores_keep_dims_with_a_warning(tmp_path):
    x = random_block((8, 16))
    with pytest.warns(UserWarning, match="'keep_dims' is ignored"):
        found = evaluate(tmp_path, "x.softmax(keep_dims=True)", x, x)
    np.testing.assert_allclose(found.sum(0), 1, rtol=1e-5)


def test_sigmoid(tmp_path):
    x = random_block((16,)) * 10
    np.testing.assert_allclose(evaluate(tmp_path, "tl.sigmoid(x)", x, x), 1 / (1 + np.exp(-x)), rtol=1e-6)


def test_swizzle2d_walks_groups_of_rows_by_column(tmp_path):
    rows, columns, group = 5, 3, 2
    walk = [(i, j) for g in range(0, rows, group) for j in range(columns) for i in range(g, min(g + group, rows))]
    found = np.zeros((2,), "int32")
    for cell, place in enumerate(walk):
        i, j = np.int32(cell // columns), np.int32(cell % columns)
        for axis in (0, 1):
            expression = f"tl.full((1,), tl.swizzle2d(i, j, {rows}, {columns}, {group})[{axis}], tl.int32)"
            found[axis] = evaluate(tmp_path, expression, np.zeros(1, "int32"), i=i, j=j)[0]
        assert tuple(found) == place


# --- random numbers -------------------------------------------------------------------------------------------------

# The known answers of Random123 1.14 (D. E. Shaw Research), kat_vectors: rounds, counter, key, output.
PHILOX4X32 = [
    (7, "00000000" * 4, "00000000" * 2, "5f6fb709 0d893f64 4f121f81 4f730a48"),
    (7, "ffffffff" * 4, "ffffffff" * 2, "5207ddc2 45165e59 4d8ee751 8c52f662"),
    (10, "00000000" * 4, "00000000" * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (10, "ffffffff" * 4, "ffffffff" * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        10,
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]
PHILOX4X64 = [
    (10, "0" * 64, "0" * 32, "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"),
    (10, "f" * 64, "f" * 32, "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0"),
]


def words(text: str, bits: int) -> list[int]:
    digits = text.replace(" ", "")
    return [int(digits[i : i + bits // 4], 16) for i in range(0, len(digits), bits // 4)]


@pytest.mark.parametrize(
    ("bits", "vector"), [*((32, vector) for vector in PHILOX4X32), *((64, vector) for vector in PHILOX4X64)]
)
def test_philox_gives_the_known_answers(tmp_path, bits, vector):
    rounds, *texts = vector
    counter, key, expected = (words(text, bits) for text in texts)
    blocks = [np.full(2, word, f"uint{bits}").view(f"int{bits}") for word in counter]
    keys = {f"k{i}": np.asarray(word, f"uint{bits}").view(f"int{bits}")[()] for i, word in enumerate(key)}
    for i, word in enumerate(expected):
        call = f"tl.philox_impl(x, y, z, w, k0, k1, n_rounds={rounds})[{i}].to(tl.int{bits}, bitcast=True)"
        found = evaluate(tmp_path, call, blocks[0], *blocks, **keys)
        assert [hex(n) for n in found.view(f"uint{bits}")] == [hex(word)] * 2


def philox4x32(counters: np.ndarray, seed: int, rounds: int = 10) -> list[np.ndarray]:
    """The generator again, in Python's integers."""
    c = [counters.astype(object), *(np.zeros_like(counters, object) for _ in range(3))]
    c[1], c[0] = c[0] >> 32 & 0xFFFFFFFF, c[0] & 0xFFFFFFFF
    k = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(rounds):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return [word.astype(np.uint32) for word in c]


@pytest.mark.parametrize(
    ("seed", "offsets"),
    [
        (np.int32(7), np.arange(8, dtype="int32")),
        (np.int32(-7), np.arange(-4, 4, dtype="int32")),
        (np.int64(0x123456789ABCDEF), np.arange(8, dtype="int32")),
        (np.int64(5), np.arange(8, dtype="int64") << 30),
        (np.int64(5), -np.arange(8, dtype="int64") << 30),
    ],
)
def test_the_seed_is_the_key_and_the_offset_the_counter(tmp_path, seed, offsets):
    counters = offsets if offsets.dtype == "int64" else offsets.view("uint32")
    expected = philox4x32(counters, int(seed))
    result = np.zeros(8, "int32")
    for i in range(4):
        call = f"tl.randint4x(seed, x)[{i}].to(tl.int32, bitcast=True)"
        assert (evaluate(tmp_path, call, result, offsets, seed=seed).view("uint32") == expected[i]).all()
    found = evaluate(tmp_path, "tl.randint(seed, x).to(tl.int32, bitcast=True)", result, offsets, seed=seed)
    assert (found.view("uint32") == expected[0]).all()


def uniform(word: np.ndarray) -> np.ndarray:
    signed = word.view("int32")
    return np.where(signed < 0, ~signed, signed).astype("float32") * np.float32((1 - 2.0**-24) * 2.0**-31)


def test_uniform_and_normal_floats(tmp_path):
    offsets, seed = np.arange(1024, dtype="int32"), np.int32(3)
    result = np.zeros(1024, "float32")
    u = [uniform(word) for word in philox4x32(offsets, 3)]
    for i in range(4):
        assert (evaluate(tmp_path, f"tl.rand4x(seed, x)[{i}]", result, offsets, seed=seed) == u[i]).all()
    found = evaluate(tmp_path, "tl.rand(seed, x)", result, offsets, seed=seed)
    assert (found == u[0]).all()
    assert found.min() >= 0
    assert found.max() < 1
    assert abs(found.mean() - 0.5) < 0.03
    normal = []
    for first, second in (u[:2], u[2:]):
        radius = np.sqrt(-2 * np.log(np.maximum(first, 1e-7)))
        normal += [radius * np.cos(2 * np.pi * second), radius * np.sin(2 * np.pi * second)]
    for i in range(4):
        found = evaluate(tmp_path, f"tl.randn4x(seed, x)[{i}]", result, offsets, seed=seed)
        np.testing.assert_allclose(found, normal[i], atol=2e-5)
    found = evaluate(tmp_path, "tl.randn(seed, x)", result, offsets, seed=seed)
    np.testing.assert_allclose(found, normal[0], atol=2e-5)
    assert abs(found.mean()) < 0.1
    assert abs(found.std() - 1) < 0.1


@pytest.mark.parametrize("bits", [32, 64])
def test_the_ends_of_the_integers_become_floats_below_one(tmp_path, bits):
    info = np.iinfo(f"int{bits}")
    x = np.array([info.min, -1, 0, info.max], info.dtype)
    found = evaluate(tmp_path, "tl.uint_to_uniform_float(x)", np.zeros(4, "float32"), x)
    assert list(found == 0) == [False, True, True, False]
    assert found.max() < 1
    assert found.max() > 1 - 2.0**-20


# --- mistakes -------------------------------------------------------------------------------------------------------

MISTAKES = [
    ("tl.sort(x, dim=0)", "tl.sort: 'dim' can be the last dimension only, found 0"),
    ("tl.topk(x, 3)", "tl.topk: 'k' must be a power of two of at most 16, found 3"),
    ("tl.topk(x, 32)", "tl.topk: 'k' must be a power of two of at most 16, found 32"),
    ("tl.topk(x, n)", "the parameter 'k' of 'topk' is a constexpr, found a runtime value of type int32"),
    ("tl.flip(x, 2)", "tl.flip: 'dim' must be at least -2 and less than 2, found 2"),
    ("tl.softmax(x, 2)", "tl.softmax: 'dim' must be at least -2 and less than 2, found 2"),
    ("tl.sigmoid(n)", "tl.sigmoid: 'x' must be fp32 or fp64, found a runtime value of type int32"),
    ("tl.rand(n, x)", "tl.rand: offsets must be integers, found fp32"),
    ("tl.uint_to_uniform_float(x)", "tl.uint_to_uniform_float: 'x' must be integers of 32 or 64 bits, found fp32"),
    ("tl.sort(n)", "tl.sort: 'x' must be a block, found a scalar int32"),
    ("tl.topk(x, 2.0)", "tl.topk: 'k' must be a power of two of at most 16, found 2.0"),
    ("tl.flip(x, 1.0)", "tl.flip: 'dim' must be at least -2 and less than 2, found 1.0"),
    ("tl.sort()", "missing a required argument: 'x'"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_a_mistake_is_located_at_the_call(tmp_path, call, message):
    source = f"""
@tlx_xdsl.jit
def kernel(out, n):
    x = tl.full((4, 16), 1.0, tl.float32)
    y = {call}
"""
    with pytest.raises(CompilationError, match=re.escape(message)) as error:
        compile_source(tmp_path, source, {"out": "*fp32", "n": "i32"})
    assert (error.value.location.line, error.value.location.column) == (9, 9 if "'k' of" not in message else 20)
    assert error.value.source_line.strip() == f"y = {call}"


def test_kernels_that_sort_find_the_logarithm_by_stock_s_name(tmp_path):
    x = np.arange(32, dtype=np.int32)
    found = evaluate(tmp_path, "x + tl.standard._log2(x.shape[0])", np.zeros(32, np.int32), x)
    assert np.array_equal(found, x + 5)
