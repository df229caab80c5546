"""Predictions beside durations: errors, ranks, choices, and arguments back from their description."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.clock import measure, validate
from benchmarks.clock.constants import DURATIONS
from benchmarks.clock.describe import arguments_of, array_bytes, described_arguments
from benchmarks.clock.validate import Figures, Row, measured_cycles, regret, tau

pytestmark = pytest.mark.quick


def rows(*pairs, problem="p"):
    """Measured and predicted cycles of the configurations of a problem."""
    return [Row(problem, "f", str(at), *pair) for at, pair in enumerate(pairs)]


# Durations ------------------------------------------------------------------------------------------------------------

RECORD = {"microseconds": [[3.0, 2.0, 9.0], [4.0, 4.0, 4.0], [2.0, 2.0, 2.0]], "hertz": [2e9, 1e9, 1e9]}


def test_cycles_are_microseconds_at_the_clock_of_their_burst():
    assert measured_cycles(RECORD) == pytest.approx(4000)
    profiled = {**RECORD, "profiled": [1.0, 5.0, 2.0], "profiled_hertz": 1e9}
    assert measured_cycles(profiled) == pytest.approx(2000)
    assert measured_cycles(profiled, events=True) == pytest.approx(4000)


def test_the_clock_while_a_kernel_ran_comes_first():
    profiled = {**RECORD, "profiled": [1.0, 5.0, 2.0], "profiled_hertz": 1e9, "running_hertz": [0.5e9, 0.9e9, 0.6e9]}
    assert measured_cycles(profiled) == pytest.approx(1200)
    assert measured_cycles(profiled, events=True) == pytest.approx(4000)
    kept = {"problem": "p 1", "family": "p", "held_out": False, "config": "a"} | profiled
    assert measured_cycles(measure.compact({"records": [kept]})["records"][0]) == pytest.approx(1200)


def test_what_was_not_measured_has_no_cycles():
    assert measured_cycles({"error": "a kernel hung"}) is None


def test_what_is_kept_of_durations_has_the_same_cycles():
    profiled = {**RECORD, "profiled": [1.0, 5.0, 2.0], "profiled_hertz": 1e9}
    named = {"problem": "p 1", "family": "p", "held_out": False, "config": "a", "arguments": [1] * 99, "key": "x"}
    kept = measure.compact({"card": "c", "records": [named | profiled, named | RECORD, named | {"error": "hung"}]})
    assert kept["card"] == "c"
    assert [each["config"] for each in kept["records"]] == ["a", "a"]
    assert [measured_cycles(each) for each in kept["records"]] == pytest.approx([2000, 4000])
    assert measured_cycles(kept["records"][0], events=True) == pytest.approx(4000)
    assert "arguments" not in kept["records"][0]


def test_the_record_has_enough_problems():
    records = json.loads(DURATIONS.read_text(encoding="utf-8"))["records"]
    held_out = validate.by_problem([Row(r["problem"], r["family"], r["config"], 1) for r in records if r["held_out"]])
    training = {each["problem"] for each in records if not each["held_out"]}
    assert len(held_out) >= 60
    assert all(2 <= len(each) <= 8 for each in held_out.values())
    assert training.isdisjoint(held_out)
    cycles = [measured_cycles(each) for each in records]
    assert all(2_000 < each < 50e6 for each in cycles)
    assert all(1.2e9 < each["profiled_hertz"] < 2.1e9 for each in records)


# Errors, ranks and choices --------------------------------------------------------------------------------------------


def test_an_error_is_relative_to_what_was_measured():
    assert Row("p", "f", "c", 200.0, 150.0).off == pytest.approx(-0.25)
    assert Row("p", "f", "c", 200.0, None).off == 1.0


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(1, 10), (2, 20), (3, 30)], 1),
        ([(1, 30), (2, 20), (3, 10)], -1),
        ([(1, 10), (2, 30), (3, 20)], 1 / 3),
        ([(100, 2), (100.5, 1), (200, 3)], 1),  # measured within 1 %
        ([(100, 2), (100.5, 1)], None),
        ([(1, 10), (2, 10), (3, 10)], 0),  # one prediction for all
        ([(1, 10), (2, None), (3, 30)], 1 / 3),
    ],
)
def test_tau(pairs, expected):
    assert tau(rows(*pairs)) == (expected if expected is None else pytest.approx(expected))


def test_regret_is_what_the_choice_costs():
    assert regret(rows((100, 3), (110, 1), (90, 2))) == pytest.approx(110 / 90 - 1)
    assert regret(rows((100, 3), (90, 1))) == 0
    assert regret(rows((100, None), (90, 1), (80, None))) == pytest.approx(90 / 80 - 1)
    assert regret(rows((100, None), (90, None))) == math.inf


def test_figures_sum_up_problems_of_one_family():
    good = rows((100, 110), (200, 200), problem="good")
    bad = rows((100, 200), (200, 100), (300, None), problem="bad")
    found = Figures.of([*good, *bad])
    assert (found.problems, found.configurations) == (2, 5)
    assert found.mean_error == pytest.approx((0.1 + 0 + 1 + 0.5 + 1) / 5)
    assert found.near == pytest.approx(2 / 5)
    assert found.mean_tau == pytest.approx((1 + -1 / 3) / 2)
    assert (found.good_choices, found.choices) == (1, 2)
    assert found.bias == pytest.approx((1.1 * 1 * 2 * 0.5) ** 0.25)


def test_the_table_has_a_line_for_each_family_and_one_for_all():
    text = validate.table([*rows((100, 110), (200, 200)), Row("q", "g", "c", 100, 150)], "a title")
    lines = text.splitlines()
    assert lines[0] == "a title"
    assert lines[4] == "| f | 1 | 2 | 5.0% | 100% | 1.00 | 1 of 1 |"
    assert lines[5] == "| g | 1 | 1 | 50.0% | 0% | - | 0 of 0 |"
    assert lines[6].startswith("| **all** | 2 | 3 | 20.0% | 67% |")


def test_the_listing_says_why_there_is_no_prediction():
    found = [
        Row("p", "f", "first", 2000, None, error="too many blocks"),
        Row("p", "f", "second", 1000, 1100, 0.5, "TMA"),
    ]
    lines = validate.listing(found).splitlines()
    assert lines[0].startswith("p   tau 0.00   choice +0.0%")
    assert "second" in lines[1]
    assert "+10.0%  TMA" in lines[1]
    assert "too many blocks" in lines[2]


def test_a_configuration_that_was_not_predicted_is_wholly_wrong():
    named = {"problem": "p", "family": "f", "config": "c", **RECORD}
    (row,) = validate.rows_of([named], [], events=True)
    assert (row.off, row.error) == (1.0, "not predicted")


# Arguments ------------------------------------------------------------------------------------------------------------

META = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [16, 64], "fp4_padded": False}


def described(**arguments):
    return json.loads(
        json.dumps(described_arguments(SimpleNamespace(launch=SimpleNamespace(arguments=arguments)), [META]))
    )


def descriptor(base, **more):
    fields = {"shape": base.shape, "strides": (base.shape[1], 1), "block_shape": [16, 64], "padding": "zero"}
    return SimpleNamespace(base=base, **{**fields, **more})


def test_arguments_come_back_from_their_description():
    x = np.ones((64, 128), np.float16)
    places = np.arange(7, dtype=np.int32) * 3
    text = described(x=x, map=descriptor(x, padding="nan"), places=places, columns=x.T, n=5, eps=1e-5)
    first, tensor_map, numbers, columns, n, eps = arguments_of(text)
    assert (first.shape, first.dtype, first.sum()) == ((64, 128), np.float16, 0)
    assert (tensor_map.shape, tensor_map.strides, tuple(tensor_map.box)) == ((64, 128), (128, 1), (16, 64))
    assert (tensor_map.swizzle, tensor_map.fills_with_nan) == (3, True)
    assert numbers.tolist() == places.tolist()
    assert (columns.shape, columns.strides) == ((128, 64), (2, 256))
    assert (n, eps) == (5, 1e-5)
    assert array_bytes(text) == [64 * 128 * 2, 28]


def test_arguments_at_one_address_share_their_memory():
    x = np.ones((64, 128), np.float16)
    text = described(x=x, map=descriptor(x), y=np.ones((64, 128), np.float16))
    x_again, tensor_map, other = arguments_of(text)
    assert np.shares_memory(x_again, tensor_map.base)
    assert not np.shares_memory(x_again, other)


def test_values_of_large_arrays_are_not_kept():
    text = described(x=np.ones(1 << 16, np.int32))
    assert "values" not in text[0]
    assert not arguments_of(text)[0].any()
