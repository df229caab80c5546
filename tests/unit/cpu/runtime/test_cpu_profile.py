"""Profiles of machine code by line: what is counted, that the launch is the same, and what counting costs."""

import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import tlx_xdsl.language as tl
from tlx_xdsl.cpu.codegen.host import host
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.host.kernel import CpuKernel
from tlx_xdsl.tools.tlx import main

pytestmark = pytest.mark.skipif(
    not host().triple.startswith(("x86_64", "amd64")), reason="profiles read the cycle counter of x86-64"
)


def products(a, b, c, K, T: tl.constexpr):
    i = tl.program_id(0) * T + tl.arange(0, T)
    j = tl.program_id(1) * T + tl.arange(0, T)
    k = tl.arange(0, T)
    acc = tl.zeros((T, T), tl.float32)
    for s in range(0, K, T):
        left = tl.load(a + i[:, None] * K + (s + k)[None, :])
        right = tl.load(b + (s + k)[:, None] * K + j[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + i[:, None] * K + j[None, :], acc * 2.0)


def rows(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    here = tl.program_id(0) * columns + at
    values = tl.load(x + here, mask=at < columns, other=0.0)
    few = tl.sum(values, axis=0)
    many = tl.sum(tl.exp(tl.sin(tl.exp(tl.cos(values)))), axis=0)
    tl.store(y + here, values * few + many, mask=at < columns)


def profiled(function, grid, *args, **options):
    return CpuKernel(function).on_cpu.profile(grid, args, options)


def by_text(profile):
    return {each.text.partition(" ")[0]: each for each in profile.lines}


@pytest.fixture
def matrices():
    random = np.random.default_rng(0)
    return [random.standard_normal((256, 256)).astype(np.float32) for _ in range(3)]


def test_lines_are_counted_and_the_launch_is_the_same(matrices):
    a, b, c = matrices
    profile = profiled(products, (4, 4), a, b, c, 256, T=64)
    expected = np.zeros_like(c)
    CpuKernel(products)[(4, 4)](a, b, expected, 256, T=64)
    np.testing.assert_array_equal(c, expected)
    lines = by_text(profile)
    # A line of the loop is passed in each of its 4 turns of 16 programs, one after it once in each program.
    assert lines["right"].passages == 64
    assert {each.passages for each in profile.lines if each.text.startswith("acc = tl.dot")} == {64}
    assert lines["tl.store(c"].passages == 16
    assert sum(each.share for each in profile.lines) == pytest.approx(1)
    assert sum(each.ms for each in profile.lines) == pytest.approx(profile.ms)
    assert profile.lines[0].text.startswith("acc = tl.dot")
    assert all(each.file == __file__ for each in profile.lines)


def test_more_work_takes_a_larger_share():
    x = np.random.default_rng(0).standard_normal((64, 2048)).astype(np.float32)
    lines = by_text(profiled(rows, (64,), x, np.empty_like(x), 2048, BLOCK=2048))
    assert lines["many"].share > 4 * lines["few"].share


def test_counting_costs_less_than_the_launch(matrices):
    """The shortest of several runs, on one thread, with counters and without them."""
    a, b, c = matrices
    launcher = CpuKernel(products).on_cpu
    profile = launcher.profile((4, 4), (a, b, c, 256), {"T": 64})
    found, packed, sizes = launcher._prepared((4, 4), (a, b, c, 256), {"T": 64})
    found.program.runs_alone = True
    seconds = []
    for _ in range(10):
        began = time.perf_counter()
        found.program.run(packed, sizes)
        seconds.append(time.perf_counter() - began)
    assert profile.ms < 2e3 * min(seconds) + 0.05


def test_the_text_and_the_picture(matrices, tmp_path):
    profile = profiled(products, (4, 4), *matrices, 256, T=64)
    head, names, first, *_ = str(profile).splitlines()
    assert head.startswith("products: 16 programs on one thread, ")
    assert names.split() == ["share", "ms", "passages", "line"]
    assert "tl.dot(left, right, acc)" in first
    profile.write_svg(tmp_path / "profile.svg")
    picture = ElementTree.parse(tmp_path / "profile.svg").getroot()
    texts = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0].startswith("products, 16 programs")
    assert sum("acc = tl.dot(left, right, acc)" in each for each in texts) == 1
    numbers = [int(each.partition(":")[0]) for each in texts[1:] if each.partition(":")[0].isdecimal()]
    assert numbers == sorted(numbers)
    assert len(numbers) == len(profile.lines)


def failing(x):
    tl.device_assert(tl.load(x) > 1.0, "too small")


def test_a_program_that_fails_fails_here_too():
    with pytest.raises(Fault, match="too small"):
        profiled(failing, (1,), np.zeros(1, np.float32), debug=True)


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.py").write_text(
        "import tlx_xdsl\nimport tlx_xdsl.language as tl\n\n\n@tlx_xdsl.jit\ndef scale(x, y, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(y + at, tl.load(x + at) * 2)\n\n\n"
        "TLX_COMPILE = {'scale': {'signature': {'x': '*fp32', 'y': '*fp32'}, 'constexprs': {'BLOCK': 1024}}}\n"
    )
    launch = [
        "run",
        "scale.py:scale",
        "--grid",
        "4",
        "--arg",
        "x=randn[4096]",
        "--arg",
        "y=nan[4096]",
        "--check",
        "y=x*2",
    ]
    assert main([*launch, "--stage", "cpu", "--profile", "--svg", "scale.svg"]) == 0
    said = capsys.readouterr().out
    assert "scale: 4 programs on one thread" in said
    assert "scale.py:8: tl.store(y + at, tl.load(x + at) * 2)" in said
    assert (tmp_path / "scale.svg").read_text().startswith("<svg")
    assert main([*launch, "--profile"]) == 1
    assert "only with --stage ptx" in capsys.readouterr().err
    assert main([*launch, "--stage", "cpu", "--svg", "scale.svg"]) == 1
    assert "--svg: only with --profile --stage cpu" in capsys.readouterr().err


def test_a_cpu_without_the_counter_is_refused(monkeypatch):
    from dataclasses import replace

    other = replace(host(), triple="aarch64-unknown-linux-gnu")
    monkeypatch.setattr("tlx_xdsl.cpu.codegen.host.host", lambda: other)
    with pytest.raises((CompilationError, ValueError), match="cycle counter of x86-64"):
        profiled(failing, (1,), np.zeros(1, np.float32))
