"""`tlx compile` a second time, and where there is no Triton."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tlx_xdsl.backend.assemblers import found
from tlx_xdsl.runtime.bundle.manifest import MANIFEST
from tlx_xdsl.runtime.driver import binaries
from tlx_xdsl.tools.commands import compile_gpu
from tlx_xdsl.tools.launch_line import specialization
from tlx_xdsl.tools.tlx import main

KERNEL = """
import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def mad(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * 2.0 + 1.0)


TLX_COMPILE = {"mad": {"signature": {"x_ptr": "*fp32:16", "y_ptr": "*fp32:16"}, "constexprs": {"N": 128}}}
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mad.py"
    path.write_text(KERNEL)
    return path


@pytest.fixture
def without_triton(monkeypatch):
    for module in (compile_gpu, specialization):
        monkeypatch.setattr(module, "installed_triton_version", lambda: None)


def files(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.mark.backend
def test_the_second_time_it_is_read(kernel, capsys, monkeypatch):
    assert main(["compile", "mad.py:mad", "-o", "first"]) == 0
    report = capsys.readouterr().out
    assert re.search(r"start, imports +\d", report)
    assert "Triton: ptx" in report
    monkeypatch.setattr(compile_gpu, "_compiled", None)
    assert main(["compile", "mad.py:mad", "-o", "second"]) == 0
    again = capsys.readouterr().out
    assert files("first") == files("second")
    assert set(files("first")) == {f"mad.{stage}" for stage in ("ttir", "ttgir", "ptx", "cubin", "json")}
    assert re.search(r"compiled before, in \d+ ms: .*\.bin", again)
    assert "Triton: ptx" not in again
    assert re.search(r"registers per thread +\d", again)


@pytest.mark.backend
def test_another_ptxas_is_another_entry_and_is_named(kernel, capsys):
    """The oldest that is here, and the one that the driver may have."""
    oldest = min(found(), key=lambda each: each.numbers)
    assert main(["compile", "mad.py:mad", "-o", "first"]) == 0
    assert f"resources, by {found()[0]}" in capsys.readouterr().out
    for _ in range(2):
        assert main(["compile", "mad.py:mad", "-o", "second", "--ptxas", oldest.release]) == 0
        report = capsys.readouterr().out
        assert f"resources, by ptxas {oldest.release} ({oldest.origin}, pinned)" in report
    assert "compiled before" in report
    assert json.loads(files("second")["mad.json"])["assembler"].startswith(f"ptxas {oldest.release}")
    assert files("first")["mad.cubin"] != files("second")["mad.cubin"]


@pytest.mark.backend
def test_a_ptxas_that_is_not_here_is_one_line(kernel, capfd):
    assert main(["compile", "mad.py:mad", "--ptxas", "11.0"]) == 1
    said = capfd.readouterr().err
    assert said.startswith("error: ptxas: expected one of release 11.0, found ptxas ")
    assert "Traceback" not in said


@pytest.mark.backend
@pytest.mark.parametrize("by_value", [False, True])
def test_nothing_of_the_compiler_is_loaded_for_it(kernel, by_value):
    arguments = ["--size", "N=256", "--arg", "x_ptr=randn:fp32[N],y_ptr=empty[N]"] if by_value else []
    if by_value:
        kernel.write_text(KERNEL.partition("TLX_COMPILE")[0])
    program = (
        "import sys\nfrom tlx_xdsl.tools.tlx import main\n"
        f"status = main(['compile', 'mad.py:mad', '-o', 'out', '-q', *{arguments}])\n"
        "print(status, [name for name in ('xdsl', 'numpy', 'triton', 'torch') if name in sys.modules])"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert "xdsl" in first
    assert second == ("0 ['numpy']\n" if by_value else "0 []\n")


@pytest.mark.backend
@pytest.mark.parametrize(
    "change", [["--constexpr", "N=256"], ["--num-warps", "2"], ["--num-stages", "2"], ["--conversion", "own"], None]
)
def test_what_is_compiled_for_makes_a_difference(kernel, change, monkeypatch):
    assert main(["compile", "mad.py:mad", "-q"]) == 0
    if change is None:
        kernel.write_text(KERNEL.replace("2.0", "3.0"))
    stored = []
    monkeypatch.setattr(compile_gpu, "store_products", lambda key, made: stored.append(key))
    assert main(["compile", "mad.py:mad", "-q", *(change or ())]) == 0
    assert len(stored) == 1
    assert main(["compile", "mad.py:mad", "-q", "--no-cache", *(change or ())]) == 0
    assert len(stored) == 1


@pytest.mark.backend
def test_what_is_damaged_is_compiled_again(kernel, tmp_path):
    assert main(["compile", "mad.py:mad", "-q", "-o", "first"]) == 0
    (entry,) = Path(binaries.cache.cache_folder() / binaries.KIND).rglob("*.bin")
    entry.write_bytes(entry.read_bytes()[:-1])
    assert main(["compile", "mad.py:mad", "-q", "-o", "second"]) == 0
    assert files("first") == files("second")


@pytest.mark.backend
def test_warnings_are_printed_the_second_time_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # A warp holds 8 KB, 64 registers per thread, and may have fewer.
    text = KERNEL.replace("tl.load(x_ptr + i) * 2.0 + 1.0", "tl.cumsum(tl.load(x_ptr + i))")
    Path("large.py").write_text(text.replace('"N": 128}', '"N": 2048}, "num_warps": 1, "maxnreg": 24'))
    said = []
    for _ in range(2):
        assert main(["compile", "large.py:mad", "-q"]) == 0
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert re.match(r"large.py:7:1: warning: 'mad' spills: \d+ bytes of stores and \d+ of loads per thread", said[0])
    assert "more warps (--num-warps)" in said[0]


@pytest.mark.backend
def test_a_bundle_is_written_of_what_was_compiled(kernel, monkeypatch):
    assert main(["compile", "mad.py:mad", "--bundle", "first", "-q"]) == 0
    monkeypatch.setattr(compile_gpu, "_compiled", None)
    assert main(["compile", "mad.py:mad", "--bundle", "second", "-q"]) == 0
    assert files("first/mad") == files("second/mad")
    assert json.loads(Path("first/mad", MANIFEST).read_text())["build"]["enable_fp_fusion"] in (True, False)


@pytest.mark.parametrize("statement", ["tl.static_print('N is', N)", "tlx.dump_layout(i)"])
def test_what_a_kernel_prints_is_printed_each_time(kernel, capsys, without_triton, statement):
    head, mark, rest = KERNEL.partition("    tl.store")
    text = f"{head}    {statement}\n{mark}{rest}".replace(
        "import tlx_xdsl.language as tl\n", "import tlx_xdsl.language as tl\nimport tlx_xdsl.language.tlx as tlx\n"
    )
    kernel.write_text(text)
    said = []
    for _ in range(2):
        assert main(["compile", "mad.py:mad", "-q", "--conversion", "own"]) == 0
        found = capsys.readouterr()
        said.append(f"{found.out}{found.err}".replace("\n", " "))
    assert "N is 128" in said[0] or "// " in said[0]
    assert said[0] == said[1]


def test_without_triton_the_text_is_written(kernel, capsys, without_triton):
    assert main(["compile", "mad.py:mad"]) == 0
    assert set(files("build")) == {"mad.ttir", "mad.ttgir"}
    said = capsys.readouterr()
    assert "warning: not written: ptx, cubin, json: stock Triton is not installed: pip install" in said.err
    assert "mad.ttgir" in said.out


@pytest.mark.parametrize("options", [["--emit", "ttgir,ptx"], ["--bundle", "bundles"]])
def test_what_was_asked_for_by_name_is_missing_without_triton(kernel, capsys, without_triton, options):
    assert main(["compile", "mad.py:mad", *options]) == 1
    assert "error: ptx" in capsys.readouterr().err
    assert not Path("bundles").exists()


def test_the_kernel_s_error_comes_before_any_word_about_triton(kernel, capsys, without_triton):
    kernel.write_text(KERNEL.replace("y_ptr + i, ", "y_ptr + j, "))
    assert main(["compile", "mad.py:mad"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("mad.py:9:22: error: name 'j' is not defined")
    assert "Triton" not in said
