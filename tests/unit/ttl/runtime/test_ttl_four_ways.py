"""Random TTL kernels on both interpreters, as C++, and in numpy: `tests/fuzz/ttl.py` at a small volume.

`python -m tests.fuzz.ttl 300` runs it at any.
"""

# covers: ttl.math, ttl.buffers, ttl.tensors, ttl.kernel

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.fuzz import ttl as fuzzer, ttl_values as values
from tests.fuzz.ttl_programs import case
from tests.unit.volume import is_full

COUNT = 300 if is_full() else 4
SEED = 7_000_000

FUNCTIONS = [
    "add", "sub", "mul", "div", "max", "min", "exp", "log", "sqrt", "rsqrt", "recip", "relu", "gelu", "tanh",
    "sigmoid", "neg", "abs", "square", "fill", "broadcast", "reduce_sum", "reduce_max", "transpose", "matmul",
]  # fmt: skip

needs_compiler = pytest.mark.skipif(not fuzzer.has_compiler(), reason="there is no g++: apt install g++")


@pytest.fixture(scope="module")
def prepared():
    """The C++ of all cases, compiled together as far as it can be."""
    if fuzzer.has_compiler():
        for number in range(SEED, SEED + COUNT, fuzzer.TOGETHER):
            fuzzer.prepare(range(number, min(number + fuzzer.TOGETHER, SEED + COUNT)))


@pytest.mark.parametrize("number", range(SEED, SEED + COUNT))
def test_machines_agree_with_numpy(number, prepared):
    ended = fuzzer.trial(number)
    assert ended.kind == "ok", ended.detail


@needs_compiler
def test_cpp_is_one_of_the_ways(tmp_path):
    made = case(SEED)
    kernel = fuzzer.kernel_of(made.text, str(tmp_path), SEED)
    assert set(fuzzer.ways(kernel, made, SEED, fuzzer.compiled(kernel, made))) == {"tensors", "ttkernel", "cpp"}


def test_a_wrong_number_is_found(tmp_path):
    """Each way is compared, to the last bit where the numbers are exact."""
    made = next(each for each in map(case, range(99)) if each.is_exact and each.arrays["t1"].before.dtype.itemsize == 4)
    name = next(name for name, array in made.arrays.items() if array.numbers is not None)
    numbers = made.arrays[name].numbers.copy()
    numbers[0, 0] = np.nextafter(numbers[0, 0], np.float32(99))
    wrong = replace(made, arrays={**made.arrays, name: replace(made.arrays[name], numbers=numbers)})
    said = fuzzer.differences(wrong, 1, str(tmp_path))
    assert re.findall(r"^(\w+): ", said, re.MULTILINE) == ["tensors", "ttkernel", *["cpp"] * fuzzer.has_compiler()]
    assert said.count(f"{name}[0, 0] is ") == 2 + fuzzer.has_compiler()


def test_what_is_not_written_stays_as_it_was():
    made = next(each for each in map(case, range(99)) if any(np.isnan(a.numbers).any() for a in outputs(each)))
    right = [each.before if each.numbers is None else each.numbers for each in made.arrays.values()]
    assert not fuzzer.mismatch(made, right)
    assert "is 0.0, expected nan" in fuzzer.mismatch(made, [np.nan_to_num(each) for each in right])


def outputs(made):
    return [each for each in made.arrays.values() if each.numbers is not None]


def test_cases_are_always_the_same():
    assert case(5).text == case(5).text != case(6).text
    assert all(np.array_equal(a.before, b.before, equal_nan=True)
               for a, b in zip(case(5).arrays.values(), case(5).arrays.values(), strict=True))  # fmt: skip


def test_cases_reach_what_the_language_has():
    cases = [case(number) for number in range(120)]
    text = "\n".join(each.text for each in cases)
    assert not [name for name in FUNCTIONS if f"ttl.math.{name}(" not in text]
    for word in (" @ ", " += ", "acc=True", "PipeNet", "sharded", "dims=[0, 1]", "ttl.core(dims=1)", "bfloat16",
                 "dst_full_sync_en", "fp32_dest_acc_en", "grid=(2, 2)", "min(", "blocks=2"):  # fmt: skip
        assert word in text
    assert {each.options["capacity"] for each in cases} == {None, 4, 8, 16}
    assert {each.arrays["t1"].before.dtype.itemsize for each in cases} == {2, 4}
    assert any(size % 32 for each in cases for array in each.arrays.values() for size in array.before.shape)


def test_exact_cases_have_no_slack_and_others_little():
    for made in map(case, range(30)):
        for array in outputs(made):
            assert not made.is_exact or not array.slack.any()
            assert np.nanmax(array.slack) <= 0.1 * max(np.nanmax(np.abs(array.numbers)), 0.1)


def test_slack_covers_what_a_machine_may_do():
    """The result of operands within their slack is within the slack of the result."""
    chance = np.random.default_rng(0)
    x = values.Blocks(chance.uniform(0.5, 2, (1, 32, 32)).astype(np.float32), np.full((1, 32, 32), 1e-4))
    other = (x.numbers + chance.uniform(-1e-4, 1e-4, x.numbers.shape)).astype(np.float32)
    y = values.exact(chance.uniform(0.5, 2, (1, 32, 32)))
    found = [
        (values.binary(kind, x, y), values.binary(kind, values.exact(other), y))
        for kind in ("add", "sub", "mul", "div", "max", "min")
    ]
    kinds = ("exp", "log", "sqrt", "rsqrt", "recip", "gelu", "tanh", "sigmoid", "relu", "square", "abs", "neg")
    found += [(values.unary(kind, x), values.unary(kind, values.exact(other))) for kind in kinds]
    found += [(values.rounded(x, "bf16"), values.rounded(values.exact(other), "bf16"))]
    found += [(values.matmul(x, y), values.matmul(values.exact(other), y))]
    found += [(values.reduce("sum", x, [1]), values.reduce("sum", values.exact(other), [1]))]
    for expected, moved in found:
        assert (np.abs(expected.numbers.astype(np.float64) - moved.numbers) <= expected.slack).all()
        assert expected.slack.max() < 0.05 * np.abs(expected.numbers).max()
