"""docs/compile-table.md: what it lists, and how its page is made of the rows."""

import re
from pathlib import Path

import pytest

from benchmarks.compile import table as compile_table

ROOT = Path(__file__).parents[3]


def test_the_page_lists_exactly_the_kernels_that_there_are():
    page = (ROOT / "docs" / "compile-table.md").read_text()
    assert set(re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)) == set(compile_table.kernels())


def test_all_examples_are_there():
    files = {kernel.partition(":")[0] for kernel in compile_table.kernels()}
    scripts = {"examples/check_on_gpu.py", *(f"examples/{name}" for name in compile_table.WITH_TORCH)}
    assert {f"examples/{file.name}" for file in (ROOT / "examples").glob("*.py")} - files == scripts


def row(kernel: str, target: str, **figures):
    return {"kernel": kernel, "target": target} | figures


FIGURES = {"registers": 168, "spill_stores": 0, "spill_loads": 8, "shared": 1024, "tmem": 0}
NO_DOT = "tlx.async_dot needs wgmma (sm_90a); target is "


def test_targets_with_the_same_figures_share_a_row_and_refusals_their_reason():
    kernels = [
        row("k.py:f", "sm_80", reason=NO_DOT + "sm_80"),
        row("k.py:f", "sm_86", reason=NO_DOT + "sm_86"),
        row("k.py:f", "sm_90a", **FIGURES),
        row("k.py:f", "sm_100a", **FIGURES),
    ]
    newer = [*kernels[:3], row("k.py:f", "sm_100a", **(FIGURES | {"tmem": 128}))]
    page = compile_table.table({"3.6.0": kernels, "3.9.0": newer}, "2020-02-02").splitlines()
    figures = "ok: 168 regs, 0/8, 1024 B"
    assert f"| `k.py:f` | sm_90a | {figures} | {figures} |" in page
    assert f"| `k.py:f` | sm_100a | {figures} | {figures}, 128 col |" in page
    assert "| `k.py:f` | sm_80, sm_86 | tlx.async_dot needs wgmma (sm_90a) |" in page
    same = compile_table.table({"3.6.0": kernels}, "2020-02-02")
    assert f"| `k.py:f` | sm_90a, sm_100a | {figures} |\n" in same


def test_a_refusal_by_one_version_names_it():
    older = [row("k.py:f", "sm_90a", reason="no such op")]
    page = compile_table.table({"3.6.0": older, "3.9.0": [row("k.py:f", "sm_90a", **FIGURES)]}, "2020-02-02")
    assert "| `k.py:f` | sm_90a | refused | ok: 168 regs, 0/8, 1024 B |" in page
    assert "| `k.py:f` | sm_90a (Triton 3.6.0) | no such op |" in page


@pytest.mark.backend
def test_a_row_is_what_the_backend_says():
    kernel = "tests/unit/targets/portable_kernels.py:row_norms"
    figures = compile_table.compile_row(kernel, "sm_80")
    assert figures["registers"] > 0
    assert figures["shared"] > 0
    assert figures["spill_stores"] == 0
    refused = compile_table.compile_row("examples/hopper_gemm_ws.py:matmul", "sm_80")
    assert "needs" in refused["reason"]
