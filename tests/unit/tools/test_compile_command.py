"""`tlx compile` on the example and on wrong input."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.parser import Parser

from tests.versions import is_installed
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.text.printer import locations_first
from tlx_xdsl.tools.launch_line.loading import run_file
from tlx_xdsl.tools.opt.main import main as tlx_opt
from tlx_xdsl.tools.tlx import main
from tlx_xdsl.transforms.pipelines import ttgir_pipeline

pytestmark = pytest.mark.quick

EXAMPLE = Path(__file__).parents[3] / "examples" / "hopper_gemm_ws.py"

STORAGE_BYTES = 147_456
"""Ring and C of the example at 128x256x64, fp16, 3 stages: max(A and B, C) = max(3 * 2 * 64*64*2 + 3 * 64*256*2,
2 * 64*256*2) bytes. Nothing is added: the parts are multiples of each other's alignment."""

VIEWS_FILL_ALLOCATIONS = is_installed("3.8")
"""Triton 3.8 alone refuses a view that is smaller than its allocation: the ring grows to whole tiles of B and C."""


def align(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def expected_shared_bytes() -> int:
    """Shared memory of the example, derived from what lives in it."""
    tile_a, tile_b, tile_c = 64 * 64 * 2, 64 * 256 * 2, 64 * 256 * 2
    storage = max(3 * tile_b + 6 * tile_a, 2 * tile_c)
    # Three barrier arrays (3, 3 and 1 mbarriers of 8 bytes); stock Triton aligns an allocation to 16 bytes.
    barriers = align(3 * 8, 16) + align(3 * 8, 16) + align(1 * 8, 16)
    # What stock Triton passes to the partitions: ten captures, each at its natural alignment: i32, a descriptor's
    # address, and for a buffer its address and one i32 offset per dimension; then a byte of state per worker warp.
    i32, pointer, array_of_barriers, array_of_tiles = (4, 4), (8, 8), (4 + 2 * 4, 4), (4 + 3 * 4, 4)
    captures = [i32, array_of_barriers, array_of_tiles, array_of_tiles, array_of_barriers, array_of_barriers]
    captures += [array_of_tiles, i32, pointer, i32]
    end = 0
    for size, alignment in captures:
        end = align(end, alignment) + size
    states = align(end, 8) + 8
    return storage + align(states, 16) + barriers


def compile_example(tmp_path, *arguments):
    assert main(["compile", f"{EXAMPLE}:matmul", "-o", str(tmp_path), "--target", "sm_90a", *arguments]) == 0


def test_text_stages_need_no_triton(tmp_path):
    # A process of its own, in which Triton can't be imported.
    program = (
        "import sys; sys.modules['triton'] = None\nfrom tlx_xdsl.tools.tlx import main\nsys.exit(main(sys.argv[1:]))"
    )
    arguments = ["compile", f"{EXAMPLE}:matmul", "-o", str(tmp_path), "--emit", "ttir,ttgir", "-q"]
    subprocess.run([sys.executable, "-c", program, *arguments], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"matmul.ttir", "matmul.ttgir"}


@pytest.mark.parametrize(("version", "wrapped"), [("3.6", True), ("3.7", True), ("3.8", False), ("3.9", False)])
def test_the_profile_picks_the_spelling(tmp_path, version, wrapped):
    compile_example(tmp_path, "--emit", "ttgir", "--triton-version", version, "-q")
    text = (tmp_path / "matmul.ttgir").read_text()
    assert ("!tt.tensordesc<tensor<64x64xf16" in text) == wrapped
    assert ("!tt.tensordesc<64x64xf16" in text) != wrapped


def test_every_stage_is_reread_and_continued(tmp_path, capsys):
    compile_example(tmp_path, "--emit", "ttgir", "--triton-version", "3.9", "--print-after-all", "-q")
    final = (tmp_path / "matmul.ttgir").read_text()
    names = [each.name for each in ttgir_pipeline()]
    stages = sorted(tmp_path.glob("matmul.[0-9]*.mlir"))
    assert [path.name.split("-", 1)[1] for path in stages] == [f"{name}.mlir" for name in ("frontend", *names)]
    for done, path in enumerate(stages):
        remaining = names[done:]
        passes = ["-p", ",".join(remaining)] if remaining else []
        assert tlx_opt([str(path), *passes, "--print-debuginfo", "--triton-version", "3.9"]) == 0
        assert locations_first(capsys.readouterr().out) == final, path.name


def test_plain_xdsl_reads_what_is_written(tmp_path):
    compile_example(tmp_path, "--emit", "ttir,ttgir", "-q")
    for path in tmp_path.iterdir():
        Parser(make_context(), path.read_text()).parse_module().verify()


def test_every_operation_is_located_in_the_example(tmp_path):
    compile_example(tmp_path, "--emit", "ttgir", "-q")
    text = (tmp_path / "matmul.ttgir").read_text()
    locations = re.findall(r"^#loc\d* = (.*)$", text, re.MULTILINE)
    assert len(locations) > 40
    assert all(location.startswith(f'loc("{EXAMPLE}":') for location in locations)
    operations = [line for line in text.splitlines() if re.match(r"\s+(%|tt|ttg\.|ttng\.|scf\.)", line)]
    assert all("loc(#loc" in line or line.rstrip().endswith("{") or "warp_specialize(" in line for line in operations)


@pytest.mark.backend
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_the_example_compiles_to_a_cubin(tmp_path, capsys, dtype):
    types = [f"a_desc=tensordesc<{dtype}[64, 64]>", f"b_desc=tensordesc<{dtype}[64, 256]>"]
    types.append(f"c_desc=tensordesc<{dtype}[64, 256]>")
    compile_example(tmp_path, *(word for text in types for word in ("--signature", text)))
    report = capsys.readouterr().out
    ptx = (tmp_path / "matmul.ptx").read_text()
    assert ".target sm_90a" in ptx
    assert (tmp_path / "matmul.cubin").read_bytes().startswith(b"\x7fELF")
    described = json.loads((tmp_path / "matmul.json").read_text())
    assert described["num_warps"] == 12
    assert len(described["tensordesc_meta"]) == 3
    # Two consumers, each four wgmma of K = 16 for a K tile of 64.
    assert re.search(r"wgmma\s+8$", report, re.MULTILINE)
    assert re.search(r"TMA loads\s+3$", report, re.MULTILINE)
    assert re.search(r"spill stores, bytes per thread\s+0$", report, re.MULTILINE)


@pytest.mark.backend
def test_shared_memory_is_what_the_aliasing_promises(tmp_path, capfd):
    compile_example(tmp_path, "-q")
    assert max(3 * 2 * 64 * 64 * 2 + 3 * 64 * 256 * 2, 2 * 64 * 256 * 2) == STORAGE_BYTES
    assert expected_shared_bytes() - STORAGE_BYTES == 208
    shared = json.loads((tmp_path / "matmul.json").read_text())["shared"]
    if VIEWS_FILL_ALLOCATIONS:
        # 3.8 keeps its captures in other places than its neighbours, and needs no more for them.
        grown = align(STORAGE_BYTES, 64 * 256 * 2)
        assert grown == STORAGE_BYTES + 16384
        assert "grows by 16384 bytes, from 147456 to 163840" in capfd.readouterr().err
        assert grown < shared <= grown + 208
    else:
        assert shared == expected_shared_bytes()


@pytest.mark.backend
def test_line_information_points_into_the_example(tmp_path):
    compile_example(tmp_path, "--emit", "ptx", "-q")
    ptx = (tmp_path / "matmul.ptx").read_text()
    files = re.findall(r'^\s*\.file\s+(\d+) "([^"]*)"', ptx, re.MULTILINE)
    assert [Path(name).name for _, name in files] == [EXAMPLE.name]
    assert Path(files[0][1]).resolve() == EXAMPLE.resolve()
    source = EXAMPLE.read_text().splitlines()
    lines = {int(line) for line in re.findall(r"^\s*\.loc\s+1 (\d+) ", ptx, re.MULTILINE)} - {0}
    shown = "\n".join(source[line - 1] for line in sorted(lines))
    for statement in ("tlx.async_dot(", "tlx.barrier_wait(full[stage]", "tlx.async_descriptor_load(b_desc"):
        assert statement in shown


WRONG = {
    "undefined.py": ("offs = tl.program_id(0) * BLOKC", 31, "name 'BLOKC' is not defined"),
    "count.py": ("bufs = tlx.local_alloc((B, B), tl.float16, n)", 48, "'num' must be a constexpr integer"),
    "distinct.py": (
        "spec = tlx.storage_alias_spec(buffer_size_bytes=12288)\n"
        "    a = tlx.local_alloc((B, B), tl.float16, 1, reuse=spec)\n"
        "    b = tlx.local_alloc((B, B), tl.float16, 1, reuse=spec)\n"
        "    spec.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.distinct))",
        5,
        "need 16384 bytes, have 12288 bytes",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_one_located_error(tmp_path, capfd, name):
    statement, column, message = WRONG[name]
    path = tmp_path / name
    path.write_text(
        "import tlx_xdsl\nimport tlx_xdsl.language as tl\nimport tlx_xdsl.language.tlx as tlx\n\n\n@tlx_xdsl.jit\n"
        f"def kernel(x, n, B: tl.constexpr):\n    {statement}\n\n\n"
        'TLX_COMPILE = {"kernel": {"signature": {"x": "*fp32", "n": "i32"}, "constexprs": {"B": 64}}}\n'
    )
    assert main(["compile", f"{path}:kernel", "-o", str(tmp_path), "--emit", "ttgir"]) == 1
    error = capfd.readouterr().err.splitlines()
    faulty = statement.splitlines()[-1].strip()
    line = 7 + len(statement.splitlines())
    assert re.match(rf"{re.escape(str(path))}:{line}:{column}: error: .*{re.escape(message)}", error[0])
    assert error[1].strip() == faulty
    assert error[2].strip() == "^"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py:kernel"], "nowhere.py: error: no such file"),
        ([f"{EXAMPLE}:matmull"], "its kernels are matmul"),
        ([str(EXAMPLE)], "hopper_gemm_ws.py', whose kernels are matmul"),
        (["kernel.ttir"], "expected FILE.py:KERNEL, found 'kernel.ttir'\n"),
        ([f"{EXAMPLE}:matmul", "--emit", "sass"], "expected stages of"),
        ([f"{EXAMPLE}:matmul", "--target", "gfx942"], "unknown target 'gfx942'"),
        ([f"{EXAMPLE}:matmul", "--signature", "M"], "expected NAME=VALUE, found 'M'"),
        ([f"{EXAMPLE}:matmul", "--signature", "L=i32"], "has no parameter 'L'"),
        ([f"{EXAMPLE}:matmul", "--constexpr", "GROUP_M=eight"], "needs a Python literal"),
        ([f"{EXAMPLE}:matmul", "--cluster", "2,0"], "expected one to three sizes X,Y,Z"),
        ([f"{EXAMPLE}:matmul", "--cluster", "1,1,1,1"], "expected one to three sizes X,Y,Z"),
        ([f"{EXAMPLE}:matmul", "--num-warps", "3"], "power of two"),
        ([f"{EXAMPLE}:matmul", "--triton-version", "three"], "expected a Triton version"),
        ([f"{EXAMPLE}:matmul", "--triton-version", "3.5", "--emit", "ttgir"], "oldest supported version is 3.6"),
    ],
)
def test_wrong_arguments_are_one_line(tmp_path, capfd, arguments, message):
    assert main(["compile", *arguments, "-o", str(tmp_path)]) == 1
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_file_that_fails_is_located(tmp_path, capfd):
    path = tmp_path / "broken.py"
    path.write_text("import tlx_xdsl\n\nvalue = 1 / 0\n")
    assert main(["compile", f"{path}:kernel"]) == 1
    error = capfd.readouterr().err
    assert error.startswith(f"{path}:3:9: error: ZeroDivisionError: division by zero\n    value = 1 / 0\n")
    path.write_text("def kernel(:\n")
    assert main(["compile", f"{path}:kernel"]) == 1
    assert capfd.readouterr().err.startswith(f"{path}:1:12: error: ")


def test_text_is_printed_instead_of_written(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compile", f"{EXAMPLE}:matmul", "-o", "-", "--emit", "ttir"]) == 0
    printed = capfd.readouterr().out
    assert "tlx.storage_alias_spec" in printed
    assert main(["compile", f"{EXAMPLE}:matmul", "-o", "-", "--emit", "ttir,ttgir"]) == 0
    both = capfd.readouterr().out
    assert both.startswith(printed)
    assert "ttg.memdesc_reinterpret" in both
    assert list(tmp_path.iterdir()) == []


def test_the_frontend_s_text_needs_no_pass(tmp_path, capfd):
    path = tmp_path / "kernels.py"
    path.write_text(
        "import tlx_xdsl\nimport tlx_xdsl.language.tlx as tlx\n\n\n@tlx_xdsl.jit\ndef kernel():\n    tlx.fence('gpu')\n"
    )
    assert main(["compile", f"{path}:kernel", "-o", "-", "--emit", "ttir"]) == 0
    assert "tlx.fence gpu" in capfd.readouterr().out
    # For Triton there is no such operation: a pass lowers it.
    assert main(["compile", f"{path}:kernel", "-o", "-", "--emit", "ttgir", "--triton-version", "3.9"]) == 0
    printed = capfd.readouterr().out
    assert "tlx.fence" not in printed
    assert 'nvvm.inline_ptx "fence.acq_rel.gpu;"' in printed


def test_only_text_is_printed(capfd):
    assert main(["compile", f"{EXAMPLE}:matmul", "-o", "-", "--emit", "ttir,cubin"]) == 1
    assert "--output -: only ttir and ttgir are printed, found --emit ttir,cubin" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('{"signature": 3}', "['signature'] must be a dictionary from the names of arguments to their types"),
        ('{"signature": {"x": 5}}', "['signature'] must be a dictionary from the names of arguments to their types"),
        ('{"constexprs": []}', "['constexprs'] must be a dictionary from the names of arguments to their values"),
        ('{"num_warps": "x"}', "['num_warps'] must be a whole number, found 'x'"),
        ('{"maxnreg": "x"}', "['maxnreg'] must be a whole number or None, found 'x'"),
        ('{"cluster": 3}', "['cluster'] must be three whole numbers, found 3"),
        ('{"target": 90}', "['target'] must be the name of a target, such as 'sm_90a', found 90"),
    ],
)
def test_a_table_of_another_form_is_refused(tmp_path, capfd, settings, message):
    path = tmp_path / "kernels.py"
    kernel = "import tlx_xdsl\n\n\n@tlx_xdsl.jit\ndef k(x):\n    pass\n"
    path.write_text(f"{kernel}\n\nTLX_COMPILE = {{'k': {settings}}}\n")
    assert main(["compile", f"{path}:k", "-o", "-", "--emit", "ttir"]) == 1
    assert f"{path}: error: TLX_COMPILE['k']{message}" in capfd.readouterr().err


def test_a_cluster_is_bounded(capfd):
    assert main(["compile", f"{EXAMPLE}:matmul", "-o", "-", "--emit", "ttir", "--cluster", "17,1,1"]) == 1
    assert "error: --cluster: a cluster has at most 16 CTAs, found 17" in capfd.readouterr().err


def test_a_file_with_the_name_of_one_of_python_s_leaves_that_alone(tmp_path, monkeypatch):
    import copy

    path = tmp_path / "copy.py"
    path.write_text("value = 1\n", encoding="utf-8")
    # Whatever is put there is taken out again.
    monkeypatch.setitem(sys.modules, "copy", copy)
    assert run_file(str(path)).value == 1
    assert sys.modules["copy"] is copy
