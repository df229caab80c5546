"""The first pages of the site: ten minutes, and what people need who come from Meta's TLX."""

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.docs.documents import ROOT, blocks, consoles, printed, shows, stable
from tests.versions import NEWEST, why_not_installed
from tlx_xdsl.backend.assemblers import found
from tlx_xdsl.dialects.registry import our_dialects
from tlx_xdsl.runtime.driver.defaults import OPTIONS
from tlx_xdsl.tools.commands.compile import add_arguments
from tlx_xdsl.tools.tlx import main

SCRIPT = """\
import triton
import triton.language as tl
import triton.language.extra.tlx as tlx


@triton.jit
def copy(src, dst):
    tile = tlx.local_alloc((64, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 64 * 64 * 2)
    tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.async_descriptor_store(dst, tile[0], [0, 0])
    tlx.async_descriptor_store_wait(0)
"""
"""What a user of Meta's Triton brings."""

TEN, COMPILE, META = "docs/ten-minutes.md", "docs/compile.md", "docs/from-meta-tlx.md"
DEFAULT_STAGES = ("ttir", "ttgir", "ptx", "cubin", "json")


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run_python(*arguments: str) -> str:
    """Return the output of a page's program."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands(document: str) -> dict[str, str]:
    """Return the output that a page shows for its commands, by their first word after `tlx`."""
    shown = [block.removeprefix("$ tlx ").partition("\n") for block in blocks(document, "console")]
    return {command: output for command, _, output in shown}


def test_ten_minutes_without_a_gpu():
    kernel, program, _ = blocks(TEN, "python")
    ((run, right),), (report,) = consoles(TEN), blocks(TEN, "text")
    Path("scale.py").write_text(kernel)
    assert stable(printed(run)) == stable(right)
    assert "largest error" in right
    Path("run_scale.py").write_text(program)
    run_python("run_scale.py")
    (explain, diff) = next(each for each in commands(TEN).items() if each[0].startswith("explain"))
    assert printed(explain) == diff
    (misspelt, message) = next(each for each in commands(TEN).items() if "error:" in each[1])
    Path("scale.py").write_text(kernel.replace("column], loaded[0])", "colum], loaded[0])"))
    assert printed(misspelt) == message
    kept = [line for line in kernel.splitlines(keepends=True) if "barrier_wait" not in line]
    assert len(kept) == len(kernel.splitlines()) - 1
    Path("scale.py").write_text("".join(kept))
    assert printed(run) == report


@pytest.mark.backend
def test_ten_minutes_to_a_cubin():
    if reason := why_not_installed(NEWEST, "the page shows"):
        pytest.skip(reason)
    Path("scale.py").write_text(blocks(TEN, "python")[0])
    (command, shown) = next(each for each in commands(TEN).items() if each[0].startswith("compile") and "-o" in each[0])
    # The page shows the ptxas of Triton's wheel, and a newer one may be installed.
    output = printed(command).replace(str(found()[0]), "ptxas 13.4.59 (triton's ptxas-blackwell)")
    assert shows(shown, output), output


def compile_commands() -> list[str]:
    """List the commands that the page about compiling types."""
    return [re.split(r"  +#", line)[0].removeprefix("tlx ") for line in blocks(COMPILE, "sh")[0].splitlines()]


def test_what_the_page_about_compiling_does_without_triton():
    kernel, program = blocks(COMPILE, "python")
    Path("relu.py").write_text(kernel)
    Path("compile_relu.py").write_text(program)
    run_python("compile_relu.py")
    (older,) = [command for command in compile_commands() if "--triton-version" in command]
    assert main(shlex.split(older)) == 0
    assert {file.name for file in Path("build").iterdir()} == {"relu.ttir", "relu.ttgir"}


@pytest.mark.backend
@pytest.mark.parametrize("position", [0, 1, 3])
def test_what_the_page_about_compiling_does(position, capsys):
    Path("relu.py").write_text(blocks(COMPILE, "python")[0])
    command = compile_commands()[position]
    assert main(shlex.split(command)) == 0
    if "-o -" in command:
        assert "tt.func public @relu" in capsys.readouterr().out
    else:
        assert {file.name for file in Path("build").iterdir()} == {f"relu.{stage}" for stage in DEFAULT_STAGES}


def test_the_settings_of_the_page_are_those_that_there_are():
    rows = re.findall(r"^\| `(\w+)` \|.*\| `(--[\w-]+)[ `].*\|$", (ROOT / COMPILE).read_text(), re.MULTILINE)
    assert {entry for entry, _ in rows} == {"signature", "constexprs", *OPTIONS}
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert {option for _, option in rows} <= set(parser.format_help().replace(",", " ").split())


@pytest.mark.gpu
def test_ten_minutes_to_a_launch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] < 9:
        pytest.skip("needs a GPU with TMA")
    kernel, _, program = blocks(TEN, "python")
    Path("scale.py").write_text(kernel)
    Path("launch.py").write_text(program)
    run_python("launch.py")


def meta_s_names() -> list[tuple[list[str], str]]:
    """The names of tlx in each row of the table of what becomes of them, and the rest of the row."""
    table = (ROOT / META).read_text(encoding="utf-8").partition("| `tlx` | ")[2].partition("\n\n")[0]
    rows = [row.strip("| ").partition(" | ") for row in table.splitlines()[2:]]
    return [(re.findall(r"`(\w+)(?=[`(])", names), operations) for names, _, operations in rows]


def test_every_name_of_the_table_exists():
    operations = {op.name for load in our_dialects().values() for op in load().operations}
    for names, becomes in meta_s_names():
        assert set(names) <= set(tlx.__all__), names
        assert set(re.findall(r"`(tt(?:ng|g)?\.\w+)`", becomes)) <= operations, becomes


def test_the_table_has_every_function_that_becomes_an_operation():
    listed = {name for names, _ in meta_s_names() for name in names}
    # Views of several names, layouts, questions about types and ranks, what only helps to find a mistake, and several
    # GPUs, which Meta's TLX has not.
    without = {
        *("assert_same_layout", "dump_layout", "assume_uniform", "async_task_replica_id", "dtype_of", "size_of"),
        *("get_bufidx_phase", "get_fp8_format_name", "thread_id", "cluster_cta_rank", "cluster_size_1d", "zeros"),
        *("dot_scaled", "clc_create_context", "local_gather", "local_scatter", "async_store"),
        *("async_descriptor_prefetch_tensor", "fence_mbarrier_init_cluster", "is_hip", "cuda_parse_arch"),
        *("slice_layout", "dot_operand_layout"),
        *("peer", "rank", "world_size", "signal", "wait_signal"),
    }
    functions = {
        name
        for name in tlx.__all__
        if not name.startswith("_") and callable(value := getattr(tlx, name)) and not isinstance(value, type)
    }
    assert functions - listed == without
    assert not without & listed


def test_star_imports_work():
    for module in (tl, tlx):
        assert all(hasattr(module, name) for name in module.__all__)
    run_python("-c", "from tlx_xdsl.language.tlx import *")


def test_scripts_for_meta_s_triton_run_as_they_are():
    pytest.importorskip("triton")
    (program,) = blocks(META, "python")
    assert "tlx_xdsl.language.tlx" in run_python("-c", f"{program}print(tlx.local_alloc.__module__)")
    Path("script.py").write_text(SCRIPT)
    assert "largest error 0.0e+00" in printed(
        "run script.py:copy --grid 1 --arg src=desc(randn:fp16[64,64],[64,64])"
        " --arg dst=desc(nan:fp16[64,64],[64,64]) --check dst=src"
    )
    for command in blocks(META, "sh")[0].splitlines():
        assert command.startswith("python -m tlx_xdsl.compat ")
    assert {"--interpret"} <= set(
        run_python("-m", "tlx_xdsl.compat", "--help").replace("]", " ").replace("[", " ").split()
    )
