"""The harvest's configurations, and its pages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kernels_to_judge import elementwise, products, scale

from tests.conformance.harvest_page import (
    DOCS,
    KEPT,
    VERSIONS,
    file_of,
    harvest_page,
    kept_text,
    kept_verdicts,
    merged,
    version_page,
)
from tests.conformance.harvest_versions import drawn_launches, in_half_precision
from tlx_xdsl.backend.defects import DEFECTS
from tlx_xdsl.gate import Verdict

CLEAN = Verdict("1", "suite/a.py:product", "BK=32 num_stages=3", "sm_90a", "3.6.0", "clean", seconds=2.0)
FENCE = replace(
    CLEAN, key="2", configuration="BK=64", outcome="finding", fault="Triton", defect="cp_async_before_wgmma", line=9,
    message="the async proxy reads byte 64 of shared memory",
)  # fmt: skip
ELSE = replace(FENCE, key="3", defect="", kernel="suite/b.py:sum", outcome="differs", message="element [3] is 1")
UNRUN = replace(CLEAN, key="4", outcome="not run", message="the PTX machine ran for 10 s")


def test_kernels_get_as_many_configurations_as_asked_for():
    launches = [elementwise(scale, block=block) for block in (32, 64, 128)] + [products(num_stages=1)]
    found = drawn_launches(launches, 2, 0)
    assert [each.name for each in found] == ["scale", "scale", "product", "product"]
    assert {each.shown for each in found[:2]} < {"BLOCK=32", "BLOCK=64", "BLOCK=128"}
    assert found[2].options == {"num_stages": 1}
    assert found[3].options != found[2].options
    assert [each.shown for each in drawn_launches(launches, 2, 0)] == [each.shown for each in found]
    assert len(drawn_launches(launches, 4, 0)) == 8


def test_the_page_of_a_version_has_each_defect_with_the_kernels_that_have_it():
    page = version_page("3.6.0", [CLEAN, FENCE, replace(FENCE, key="5", configuration="BK=128"), ELSE])
    has = [each for each in DEFECTS if "3.6.0" in each.versions]
    assert [line[3:].replace(" ", "_") for line in page.splitlines() if line.startswith("## ")] == [
        *(each.name for each in has), "Without_a_known_cause"
    ]  # fmt: skip
    said = "finding: the async proxy reads byte N of shared memory"
    assert f"- `suite/a.py:product`, line 9, 2 configurations: {said}" in page
    assert "- `suite/b.py:sum`, line 9, 1 configurations: differs: element [N] is N" in page
    assert "Without a known cause" not in version_page("3.9.0", [])


def test_the_harvest_s_page_counts():
    page = harvest_page([CLEAN, FENCE, ELSE, UNRUN, replace(CLEAN, key="6", assembler="12.8.93", compared=7)])
    assert "2 kernels in 3 configurations, 4 verdicts on PTX and 1 on cubins" in page
    assert "| suite | 2 | 3 | 1 | 1 | 1 | 1 |" in page
    assert "| 3.6.0 | 1 | 1 | 1 | 1 |" in page
    assert "| 12.8.93 | 1 | 1 | 0 | 0 | 7 | 0 |" in page
    assert "- 1: the PTX machine ran for N s" in page


def test_verdicts_are_kept_in_lines_and_newer_ones_take_the_place_of_older():
    cubin = replace(CLEAN, key="6", assembler="12.8.93", compared=7, undecided=1)
    ours = [CLEAN, FENCE, ELSE, UNRUN, cubin]
    text = kept_text(merged([], ours))
    assert text.splitlines()[0] == (
        '["suite/a.py:product","BK=32 num_stages=3",'
        '{"3.6.0":{"message":"the PTX machine ran for 10 s","seconds":2.0},'
        '"3.6.0 ptxas 12.8.93":{"outcome":"clean","compared":7,"undecided":1,"seconds":2.0}}]'
    )
    kept = kept_verdicts(text)
    assert harvest_page(kept) == harvest_page(merged(kept, []))
    assert kept_text(merged(kept, [CLEAN])).count('"3.6.0":2.0') == 1
    assert kept_text(kept) == text


def test_configurations_that_are_long_stay_apart_where_they_are_kept():
    long = [replace(CLEAN, configuration=f"A={number} " + "B=1 " * 20) for number in range(3)]
    kept = merged([], long)
    assert len(kept) == 3
    assert all(len(each.configuration) < 60 for each in kept)


def test_a_launch_in_half_precision_that_does_not_compile_is_left_out():
    refused = replace(UNRUN, message="the kernel does not compile: 'z' is a block of type fp32[16] before the loop")
    half = replace(refused, configuration="BK=32 fp32=fp16")
    assert merged([], [half, replace(UNRUN, configuration="fp32=fp16")]) == [replace(UNRUN, configuration="fp32=fp16")]
    assert merged([], [refused]) == [refused]


def test_the_page_is_that_of_the_verdicts_that_are_kept():
    text = KEPT.read_text()
    assert len(text) <= 150_000
    assert (DOCS / "harvest.md").read_text() == harvest_page(kept_verdicts(text))
    for version in VERSIONS:
        own = [each for each in kept_verdicts(text) if each.triton == version]
        assert (DOCS / file_of(version)).read_text() == version_page(version, own)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_pages_list_the_defects_that_the_table_has(version: str):
    shown = (DOCS / file_of(version)).read_text()
    assert [line for line in version_page(version, []).splitlines() if line.startswith("## ")] == [
        line for line in shown.splitlines() if line.startswith("## ") and "Without" not in line
    ]


def test_arrays_of_fp32_become_fp16():
    launch = elementwise(scale)
    half = in_half_precision(launch)
    assert half is not None
    assert {str(value.dtype) for value in half.arguments().values() if hasattr(value, "dtype")} == {"float16"}
    assert (half.shown, half.identity) == ("BLOCK=64 fp32=fp16", f"{launch.identity} in fp16")
    assert in_half_precision(replace(launch, arguments=lambda: {"n": 3})) is None
