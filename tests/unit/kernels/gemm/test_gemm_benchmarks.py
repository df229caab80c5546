"""The GEMM benchmarks without a GPU: which shapes they have, what they compile ahead, their tables, the fit."""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.gemm import configurations, epilogues, every_shape, fit, fp8, grouped, model, report
from benchmarks.gemm.compile import compile_share, kernels_of
from benchmarks.gemm.shapes import (
    ALIGNED_FLOPS,
    ALIGNED_SIZES,
    LAYOUTS,
    MOST_BYTES,
    MOST_FLOPS,
    TARGETS,
    Shape,
    acceptance,
    aligned,
    fitting,
    named,
)
from benchmarks.gpu import lengths
from tests.unit import volume
from tlx_xdsl.kernels.calls import launching
from tlx_xdsl.kernels.gemm import config as gemm_config

# --- shapes -------------------------------------------------------------------------------------------------------


def test_the_sixty_are_the_same_everywhere():
    """A new Python, or a change of the generator, must not replace what the kernels are judged by."""
    text = "\n".join(map(str, acceptance()))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "f08f55e65747c330"


def test_what_is_fitted_is_not_what_is_judged():
    judged, fitted = acceptance(), fitting()
    sizes = [{(each.m, each.n, each.k) for each in shapes} for shapes in (judged, fitted)]
    assert (len(sizes[0]), len(sizes[1])) == (60, 60 + len(TARGETS))
    assert not sizes[0] & sizes[1]


def test_the_sixty_are_of_all_kinds():
    shapes = acceptance()
    assert all(each.flops <= MOST_FLOPS and each.bytes <= MOST_BYTES for each in shapes)
    assert 0.6 < sum(each.aligned for each in shapes) / len(shapes) < 0.75
    assert {each.layout for each in shapes} == set(LAYOUTS)
    assert {each.dtype for each in shapes} == {"fp16", "bf16"}
    assert min(each.m for each in shapes) == 1
    assert max(each.k for each in shapes) > 50_000
    assert sum(each.m <= 64 for each in shapes) >= 12


def test_drawn_aligned_problems_are_the_same_everywhere():
    drawn = aligned()[2:]
    text = "\n".join(map(str, drawn))
    assert (len(drawn), hashlib.sha256(text.encode()).hexdigest()[:16]) == (60, "5d289bfc9f00accb")
    sizes = [each for shape in drawn for each in (shape.m, shape.n, shape.k)]
    assert all(each % 64 == 0 and ALIGNED_SIZES[0] <= each <= ALIGNED_SIZES[1] for each in sizes)
    assert all(each.flops <= ALIGNED_FLOPS for each in drawn)


def test_drawn_lengths_of_rows():
    """Half of them multiples of 8, in both forties and tens; classes are odd, tensors large."""
    drawn, ten = lengths.lengths(), lengths.compared()
    assert hashlib.sha256(repr(drawn).encode()).hexdigest()[:16] == "60725e8f4c15f71c"
    assert [sum(each % 8 == 0 for each in some) for some in (drawn, ten)] == [20, 5]
    assert lengths.SHORTEST <= min(drawn) <= max(drawn) <= lengths.LONGEST
    for each in drawn:
        rows, columns = lengths.shape_of("cross-entropy", each)
        assert columns % 2
        assert rows * columns * 2 >= lengths.BYTES


def test_the_choice_is_among_the_configurations_that_are_timed():
    shape = aligned()[0]
    choices = list(configurations.choices_of(shape).values())
    assert choices[0] == gemm_config.choose(shape.m, shape.n, shape.k)
    assert len({each.config for each in choices}) > 30


@pytest.mark.parametrize(("shape", "aligned"), [((8, 8, 8), True), ((7, 8, 8), True), ((8, 7, 8), False)])
def test_alignment_by_rows(shape, aligned):
    assert Shape(*shape).aligned == aligned
    assert not Shape(7, 8, 8, "TN").aligned


# --- compiling ahead ----------------------------------------------------------------------------------------------


def test_what_is_compiled_ahead_is_what_runs_on_the_gpu(monkeypatch):
    """Launches as for 132 multiprocessors, each kernel once, and what can't be launched left out."""
    monkeypatch.setattr(launching, "INTERPRETED_PROGRAMS", launching.INTERPRETED_PROGRAMS)
    shapes = [Shape(8192, 8192, 8192), Shape(8192, 8192, 4096), Shape(64, 64, 64), Shape(0, 64, 64)]
    monkeypatch.setattr(every_shape, "shapes", lambda: shapes)
    found = list(kernels_of(["shapes"]).values())
    assert found[0].grid == (132,)
    assert len(found) == len({tuple(each.constexprs.items()) for each in found})
    assert 2 <= len(found) <= 4


def test_compiled_ahead_as_launches_are(monkeypatch):
    """A launch finds it in the cache only so: whether products are fused is a part of the key."""
    asked = []
    monkeypatch.setattr(launching, "INTERPRETED_PROGRAMS", launching.INTERPRETED_PROGRAMS)
    monkeypatch.setattr(every_shape, "shapes", lambda: [Shape(64, 64, 64)])
    monkeypatch.setattr(launching, "_launcher", lambda *arguments: asked.append(arguments))
    assert compile_share(["shapes"], 0, 1) == 0
    launch = every_shape.launches().__next__()().parts[0]
    launch.compiled()
    assert len(asked) == 2
    assert asked[0] == asked[1]


def test_names_of_choices():
    for shape in fit.shapes()[:8]:
        choices = fit.measured_choices(shape)
        assert 1 <= len(choices) <= fit.MOST
        assert {name: model.choice_named(name) for name in choices} == choices


def test_a_part_that_hangs_is_ended(tmp_path, capsys):
    path = tmp_path / "report.txt"
    assert report.run([sys.executable, "-c", "import time; time.sleep(60)"], 0.3, path) is None
    assert report.run([sys.executable, "-c", "print('end'); raise SystemExit(3)"], 60, path) == 3
    assert path.read_text() == capsys.readouterr().out == "end\n"


@pytest.mark.parametrize("program", [report.__file__, fit.PART.program])
def test_a_program_finds_the_checkout(tmp_path, program):
    """The program runs from any folder, with nothing but its own path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, program, "--help"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- the fit ------------------------------------------------------------------------------------------------------


def record_of(constants, shapes, noise):
    """Make the record that a run would have written on a GPU with these constants."""
    random = np.random.default_rng(0)
    cases = {}
    for shape in shapes:
        times = {"cuBLAS": [1.0]}
        for name, choice in fit.measured_choices(shape).items():
            exact = constants.predict(model.Sample(shape, choice, 1.0, 1.0))
            times[name] = [exact * 1e-3 * random.normal(1, noise)]
        cases[str(shape)] = a_case(times, facts={"sizes": [shape.m, shape.n, shape.k], "layout": shape.layout})
    return {"cases": cases, "checks": [], "skipped": {}, "running": None, "finished": True}


@pytest.mark.skipif(not volume.is_full(), reason="a fit takes ten seconds: in the full volume")
def test_fitted_constants_choose_better():
    start = model.TODAY.values()
    true = model.TODAY.with_values(
        {name: value * (1.5, 0.7, 1.0)[at % 3] for at, (name, value) in enumerate(start.items())}
    )
    record = record_of(true, fit.shapes()[::6], noise=0.01)
    samples = model.samples_of([record])

    def mean_loss(constants):
        return np.mean([each[0] for each in model.losses(samples, constants).values()])

    assert mean_loss(model.TODAY) > 1.02
    assert mean_loss(model.fit(samples)) < 1.01
    assert "TIMES = {" in model.report([record])
    assert f"the best candidates: {len(record['cases'])} problems" in fit.table(record)


# --- tables -------------------------------------------------------------------------------------------------------


def a_case(times, **changes):
    return {
        "flops": 2e9, "peer": "cuBLAS", "target": None, "config": "a tile", "errors": {}, "facts": {"aligned": True},
        "cool": {"times": times, "clocks": []},
    } | changes  # fmt: skip


def a_record(cases, **changes):
    return {"cases": cases, "checks": [], "skipped": {}, "running": None, "finished": True} | changes


def test_table_of_shapes_goes_from_the_worst_to_the_best():
    first, second = map(str, acceptance()[:2])
    cases = {
        first: a_case({"cuBLAS": [1.0], "tlx_xdsl": [1.0]}),
        second: a_case({"cuBLAS": [0.9], "tlx_xdsl": [1.0]}, facts={"aligned": False}),
        str(named()[0]): a_case({"cuBLAS": [1.0], "tlx_xdsl": [2.0]}, target=1.0),
        "refused": a_case({"cuBLAS": [1.0]}, errors={"tlx_xdsl": "ValueError: no"}),
    }
    table = every_shape.table(a_record(cases))
    assert [line[:5] for line in table.splitlines()[:3]] == ["0.900", "1.000", "0.500"]
    assert "the sixty: 2 problems: geometric mean 0.949, 50% >= 0.92, 50% >= 0.93, worst 0.900" in table
    assert "not aligned: 1 problems" in table
    assert "without a ratio: refused" in table
    assert "refused: tlx_xdsl: ValueError: no" in table


def test_tables_say_what_is_better_than_which_rival():
    times = {grouped.TORCH: [1.0], grouped.LOOP: [0.8], "tlx_xdsl": [0.5]}
    assert "8 groups" + " " * 39 + "1.600 (wanted 1.05)" in grouped.table(
        a_record({"8 groups": a_case(times, target=1.05)})
    )
    times = {"plain": [1.0, 2.0], "bias_gelu": [1.03, 2.04]}
    assert "bias_gelu: +2.5% over plain" in epilogues.table(a_record({"square": a_case(times)}))
    times = {epilogues.COMPILED: [1.5], epilogues.COMPILED_ONE: [1.25], "tlx_xdsl": [1.0]}
    assert "1.250 of torch.compile" in epilogues.table(a_record({"swiglu": a_case(times)}))
    errors = {"tlx_xdsl": 1.2e-3, "torch": 1e-3}
    case = a_case({"torch": [1.0], "tlx_xdsl": [0.5]}, peer="torch", facts=errors)
    table = fp8.table(a_record({"1x2x3 tensor exact": case}, finished=False, running="x"))
    assert "tensor exact: 1 problems: geometric mean 2.000" in table
    assert "error 1.200 of torch's at most (at most 1.1 wanted)" in table
    assert "not finished; 1 cases are done, was at x" in table


def test_offsets_of_random_groups():
    ends = grouped.offsets_of(8, 8192, "random, rows")
    assert ends[-1] == 8192
    assert ends[0] == ends[1] < ends[2]
    assert grouped.offsets_of(8, 8192, "equal, rows") == list(range(1024, 8193, 1024))


# --- dry runs -----------------------------------------------------------------------------------------------------


@pytest.mark.backend
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_dry_run(tmp_path):
    """All but the GPU runs: kernels in the interpreter, rivals on the CPU, made-up times."""
    parts = ["fit", "shapes", "grouped", "epilogues", "cubins"] if volume.is_full() else ["shapes"]
    command = [sys.executable, report.__file__, "--dry", "--only", "4096x4096", "--parts"]
    done = subprocess.run(
        [*command, ",".join(parts), "--out", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for part in parts:
        record = json.loads((tmp_path / f"{part}.json").read_text())
        assert record["finished"]
        assert record["cases"]
        assert all(case["errors"] == {} for case in record["cases"].values())
        assert all(check["ok"] for case in record["cases"].values() for check in case["checks"].values())
