"""Random TTL kernels of mixed types, grids, pipes, shards, dimensions and spilled trees: three machines and numpy.

`python -m tests.fuzz.ttl_mixed 500` runs what the full volume does, on several processes.
"""

# covers: ttl.kernel, ttl.buffers, ttl.tensors, ttl.pipes

import re
from dataclasses import replace

import pytest

from tests.fuzz import ttl as fuzzer
from tests.fuzz.ttl_mixed import case, trial
from tests.unit.volume import is_full
from tlx_xdsl.text.diagnostics import collected_diagnostics

COUNT = 500 if is_full() else 4


@pytest.fixture(scope="module")
def prepared():
    """The C++ of all cases, compiled together as far as it can be."""
    if fuzzer.has_compiler():
        for number in range(0, COUNT, fuzzer.TOGETHER):
            fuzzer.prepare(range(number, min(number + fuzzer.TOGETHER, COUNT)), case)


@pytest.mark.parametrize("number", range(COUNT))
def test_machines_agree_with_numpy(number, prepared):
    ended = trial(number)
    assert ended.kind == "ok", ended.detail


def test_a_wrong_number_is_found(tmp_path):
    """Each way is compared, to the bit, in any number of dimensions."""
    made = next(each for each in map(case, range(99)) if len(next(iter(each.arrays.values())).before.shape) == 4)
    name = next(name for name, array in made.arrays.items() if array.numbers is not None)
    numbers = made.arrays[name].numbers.copy()
    numbers[0, 0, 0, 0] += 1
    wrong = replace(made, arrays={**made.arrays, name: replace(made.arrays[name], numbers=numbers)})
    said = fuzzer.differences(wrong, 1, str(tmp_path))
    assert re.findall(r"^(\w+): ", said, re.MULTILINE) == ["tensors", "ttkernel", *["cpp"] * fuzzer.has_compiler()]
    assert said.count(f"{name}[0, 0, 0, 0] is ") == 2 + fuzzer.has_compiler()


def test_cases_are_always_the_same():
    assert case(5).text == case(5).text != case(6).text
    first, second = case(5).arrays.values(), case(5).arrays.values()
    assert [each.before.tobytes() for each in first] == [each.before.tobytes() for each in second]


def test_cases_reach_what_they_are_to_mix():
    cases = [case(number) for number in range(150)]
    text = "\n".join(each.text for each in cases)
    types = "float32 bfloat16 bfloat8_b bfloat4_b int32 uint32 uint16"
    for word in (*(f"ttl.{each}" for each in types.split()), "typecast", "reduce_sum", "reduce_max", "transpose", " @ ",
                 " += ", "ttl.block.fill", "sharded", '"L1"', "dst=(slice(", "if_dst", "b1 in range(2)", "grid=(8, 8)",
                 "grid=(2, 2)", "fp32_dest_acc_en", "dst_full_sync_en"):  # fmt: skip
        assert word in text
    assert {len(array.before.shape) for each in cases for array in each.arrays.values()} == {2, 3, 4}
    assert {each.options["arch"] for each in cases} == {"wormhole", "blackhole"}


def test_registers_are_too_few(tmp_path):
    """Values of some of the first kernels are more than there are registers."""
    with collected_diagnostics() as said:
        for number in range(COUNT if COUNT < 9 else 9):
            fuzzer.compiled(fuzzer.kernel_of(case(number).text, str(tmp_path), number), case(number))
    assert any("DST registers are too few" in each.message for each in said)
