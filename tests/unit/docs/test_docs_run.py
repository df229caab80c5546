"""Runs of the documents' kernels, with the commands beside them: the output is what the documents show."""

import dataclasses
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.interpreter import speed
from tests.unit.docs.documents import ROOT, blocks, consoles, printed, shows, stable
from tests.versions import NEWEST, why_not_installed
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.profiles import PROFILES
from tlx_xdsl.tools.opt import main as tlx_opt
from tlx_xdsl.tools.tlx import main
from tlx_xdsl.transforms.pipelines import ttgir_pipeline
from tlx_xdsl.transforms.registry import all_passes


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_readme_s_kernel_runs_and_its_mistakes_are_reported():
    (kernel, *_) = blocks("README.md", "python")
    (command, right), (again, wrong) = consoles("README.md")
    assert command == again
    Path("tile_copy.py").write_text(kernel)
    assert stable(printed(command)) == stable(right)
    assert "largest error 0.0e+00" in right
    lines = kernel.splitlines(keepends=True)
    kept = [line for line in lines if "barrier_wait" not in line]
    assert len(kept) == len(lines) - 1
    Path("tile_copy.py").write_text("".join(kept))
    assert printed(command) == wrong
    assert kernel.count("TILE * TILE * 2") == 1
    Path("tile_copy.py").write_text(kernel.replace("TILE * TILE * 2", "TILE * TILE * 4"))
    (deadlock,) = re.findall(r"`(deadlock: [^`]*)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert f": error: {' '.join(deadlock.split())}" in printed(command)


def test_the_interpreter_s_page():
    ring, program, small_sizes, between_programs, between_threads = blocks("docs/interpreter.md", "python")
    (command, right), (again, deadlock) = consoles("docs/interpreter.md")
    Path("ring.py").write_text(ring)
    assert stable(printed(command)) == stable(right)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    for text in (program, small_sizes, between_programs + between_threads):
        Path("from_python.py").write_text(text)
        subprocess.run([sys.executable, "from_python.py"], check=True, env={**os.environ, "PYTHONPATH": path})
    assert ring.count(" ^ 1)") == 1
    Path("ring.py").write_text(ring.replace(" ^ 1)", ")"))
    assert command == again
    assert printed(command) == deadlock
    counted = ring.replace("TILES: tl.constexpr", "TILES").replace('"TILES": 5, ', "")
    Path("counted.py").write_text(counted.replace('"signature": {', '"signature": {"TILES": "i32", '))
    (proof,) = [each for each in blocks("docs/interpreter.md", "text") if "--prove" in each]
    command, _, shown = proof.partition("\n")
    expected = shown.split("\n")[1].partition(" (")[0]
    assert expected in printed(f"{command.removeprefix('$ tlx ')} --seconds 0.1")
    wait = "                tlx.barrier_wait(full[t % SLOTS], (t // SLOTS) & 1)\n"
    Path("twice.py").write_text(Path("counted.py").read_text().replace(wait, wait * 2))
    (redundant,) = [each for each in blocks("docs/interpreter.md", "text") if "minimize-sync" in each]
    command, _, shown = redundant.partition("\n")
    assert shows(shown, printed(command.removeprefix("$ tlx ")))
    # The lines that the text names.
    lines = ring.splitlines()
    assert "empty[t % SLOTS], (t" in lines[13]
    assert "barrier_expect_bytes" in lines[14]
    assert "async_descriptor_load" in lines[15]
    assert "barrier_arrive(empty" in lines[21]


@pytest.mark.parametrize("page", speed.COLUMNS)
def test_a_page_has_the_table_of_speed_that_the_benchmark_writes(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (figures,) = re.findall(f"{speed.BEGIN}\n(.*?){speed.END}", text, re.DOTALL)
    lines = [line for line in figures.splitlines() if line.startswith("|")]
    rows = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines[2:]]
    assert speed.table(page, rows) == "\n".join(lines)
    assert [row[0] for row in rows] == [*speed.CASES, *(speed.PLAIN if page == "interpreter.md" else ())]
    assert all(0 < float(cell) < 60 for row in rows for cell in row[1:] if cell)


def test_the_page_about_layouts():
    transpose, product = blocks("docs/layouts.md", "python")
    Path("transpose.py").write_text(transpose)
    swizzled = transpose.replace("tlx.swizzled_shared_layout_encoding.make_default(2)", "tlx.swizzled_layout(5, 0, 5)")
    assert swizzled != transpose
    Path("swizzled.py").write_text(swizzled)
    Path("product.py").write_text(product)
    shown = [block.partition("\n") for block in blocks("docs/layouts.md", "console")]
    assert len(shown) == 4
    for command, _, output in shown:
        assert printed(command.removeprefix("$ tlx ")) == output


@pytest.mark.backend
def test_what_explain_prints_after_stock_triton():
    if reason := why_not_installed(NEWEST, "the page shows"):
        pytest.skip(reason)
    _, product = blocks("docs/layouts.md", "python")
    Path("product.py").write_text(product)
    (output,) = blocks("docs/layouts.md", "text")
    assert printed("explain product.py:product").endswith(f"\n{output}")


def test_the_stages_of_the_page_exist():

    text = (ROOT / "docs" / "interpreter.md").read_text(encoding="utf-8")
    assert re.search(r"after that pass, such as `([\w-]+)`", text)[1] in all_passes()


def test_the_page_about_looking_inside(capsys):
    kernel, program = blocks("docs/debugging.md", "python")
    Path("double.py").write_text(kernel)
    Path("stepping.py").write_text(program)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "stepping.py"], check=True, env={**os.environ, "PYTHONPATH": path})
    page = Path("double.html").read_text(encoding="utf-8")
    assert "tlx.async_descriptor_load(src, tile[0]" in page
    shown = [line for block in blocks("docs/debugging.md", "sh") for line in block.splitlines()]
    commands = [line.removeprefix("tlx ") for line in shown if line.startswith("tlx ")]
    wanted = ["explain", "explain", "compile", "run", "explain", "explain", "doctor"]
    assert [command.split()[0] for command in commands] == wanted
    for command in commands:
        assert main(shlex.split(command)) == 0
    assert "dst = src*2: largest error 0.0e+00" in capsys.readouterr().out
    (console,) = blocks("docs/debugging.md", "console")
    command, _, output = console.partition("\n")
    assert main(shlex.split(command.removeprefix("$ tlx "))) == 0
    assert capsys.readouterr().out == output


@pytest.mark.backend
def test_the_page_about_sweeps(capsys):
    tune, _, cluster = blocks("docs/sweeps.md", "python")
    console, _ = blocks("docs/sweeps.md", "console")
    (command,) = blocks("docs/sweeps.md", "sh")
    Path("tune.py").write_text(tune)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    ran = {"check": True, "env": {**os.environ, "PYTHONPATH": path}, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "tune.py"], **ran)

    def without_figures(text: str) -> str:
        # Registers and bytes are Triton 3.9's, times and workers those of one machine.
        text = text.replace(f"{Path.cwd()}{os.sep}", "")
        return re.sub(r"[\d,]+ (registers|B shared|ms)|[\d.]+ s on \d+ workers?", "", text)

    head, expected = console.split("\n", 1)
    assert head == "$ python tune.py"
    assert without_figures(done.stdout) == without_figures(expected)
    assert main(shlex.split(command.replace("\\\n", " ").removeprefix("tlx "))) == 0
    assert "4 configurations: 3 fits, 1 pruned" in capsys.readouterr().out
    # Its only part that is not tested with a cluster of dask's elsewhere.
    compile(cluster, "cluster.py", "exec")


def test_the_page_about_tlx_opt(capsys):
    dump, ways = blocks("docs/tlx-opt.md", "sh")
    (compile_, opt) = dump.replace("\\\n", " ").splitlines()
    Path("examples").symlink_to(ROOT / "examples")
    assert main(shlex.split(compile_.removeprefix("tlx "))) == 0
    file, *rest = shlex.split(opt.removeprefix("tlx-opt "))
    (found,) = Path().glob(file)
    capsys.readouterr()
    assert tlx_opt.main([str(found), *rest]) == 0
    lowered = capsys.readouterr().out
    assert "ttg.local_dealloc" in lowered
    assert "tlx.local_alias" not in lowered
    # The three ways to name passes, on a kernel whose groups `strict` takes, too.
    Path("scale.py").write_text(blocks("docs/ten-minutes.md", "python")[0])
    assert main(["compile", "scale.py:scale", "--emit", "ttir", "-q"]) == 0
    Path("build/scale.ttir").rename("kernel.ttir")
    capsys.readouterr()
    for command in ways.splitlines():
        assert tlx_opt.main(shlex.split(command.removeprefix("tlx-opt "))) == 0
        assert "tt.func public @scale" in capsys.readouterr().out


def test_the_tests_of_passes_of_the_page_about_tlx_opt(tmp_path):
    (test,) = blocks("docs/tlx-opt.md", "mlir")
    path = tmp_path / "test.mlir"
    path.write_text(test)
    (command,) = re.findall(r"^// RUN: tlx-opt %s (.*)$", test, re.MULTILINE)
    assert tlx_opt.main([str(path), *shlex.split(command)]) == 0
    path.write_text("".join(line for line in test.splitlines(keepends=True) if "expected-warning" not in line))
    assert tlx_opt.main([str(path), *shlex.split(command)]) == 1


def test_the_page_about_addresses(capsys):
    page = "docs/program-addresses.md"
    (text,), (console,), (program,) = blocks(page, "mlir"), blocks(page, "console"), blocks(page, "python")
    Path("vector_add.mlir").write_text(text)
    command, _, output = console.partition("\n")
    assert tlx_opt.main(shlex.split(command.removeprefix("$ tlx-opt "))) == 0
    assert output in "".join(capsys.readouterr())
    exec(program, {"module": parse_module(text)})
    assert "tt.load PID_AFFINE" in capsys.readouterr().out


def test_the_architecture_names_the_passes_in_their_order():
    (way,) = [block for block in blocks("docs/architecture.md", "") if "▼" in block]
    shown = re.findall(r"│ {4}([a-z][\w.-]*) ", way)
    every = ttgir_pipeline(
        dataclasses.replace(
            PROFILES[-1],
            version=(3, 6),
            selects_buffers=False,
            calls_beside_tasks=False,
            dead_accesses=False,
            synchronized_captures=False,
            synchronized_tensor_memory=False,
            keeps_sums_of_products=False,
            rounds_to_e5m2=False,
            runs_empty_loops=True,
            synchronized_atomics=False,
        )
    )
    assert shown == [each.name for each in every]


def commands(document):
    """The commands of a document's consoles, several in one, each with what it says they print."""
    for block in blocks(document, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def without_seconds(text):
    return re.sub(r"\d+\.\d s\b", "S", text)


@pytest.mark.backend
def test_the_profiling_page():
    scale, bug = blocks("docs/profiling.md", "python")
    Path("bug.py").write_text(bug)
    Path("scale.py").write_text(scale)
    (_, report), *others = commands("docs/profiling.md")
    for command, right in others:
        assert without_seconds(printed(command.removeprefix("tlx "))) == without_seconds(right)
    assert Path("repro/repro.py").exists()
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "scale.py"], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    # Registers are those of one version's ptxas.
    kept = [[line for line in text.splitlines() if not line.startswith("binary")] for text in (done.stdout, report)]
    assert kept[0] == kept[1]


@pytest.mark.backend
def test_the_times_of_a_sweep():
    _, kernel = [each for each in blocks("docs/sweeps.md", "python") if each.startswith('"""')]
    Path("gemm.py").write_text(kernel)
    ((command, right),) = [each for each in commands("docs/sweeps.md") if "--bench" in each[0]]
    # Configurations that take as long stand in the order of the sweep.
    found = without_seconds(printed(f"{command.removeprefix('tlx ')} -q"))
    assert sorted(found.splitlines()) == sorted(without_seconds(right).splitlines())
