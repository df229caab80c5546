"""Scripts of the transform dialect: that of the design document runs, as the list of passes that it stands for."""

from pathlib import Path

import pytest

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.ttl.transforms.affine.transform_script import script_passes

SCRIPT = """\
transform.sequence {
  %loops = transform.structured.match ops{["affine.for"]}

  // Upstream: tile affine loops
  %tiled = transform.loop.tile %loops tile_sizes=[4]

  // Custom: schedule TTL operations within tiles
  %sched = transform.ttl.schedule_pipeline %tiled

  transform.affine.simplify_bounded_affine_ops %sched
}
"""
KERNELS = Path(__file__).parents[3] / "filecheck" / "ttl" / "schedule_pipeline.mlir"
PASSES = [
    ("affine-loop-fusion", {}), ("affine-data-copy-generate", {}), ("ttl-affine-dependence-analysis", {}),
    ("ttl-schedule-pipeline", {"depth": 4}), ("ttl-canonicalize", {}),
]  # fmt: skip


def test_it_is_the_list_of_passes():
    assert [each.name for each in script_passes(SCRIPT)] == [name for name, _ in PASSES]
    assert script_passes(SCRIPT)[3].depth == 4
    whole = SCRIPT.replace("  %tiled = transform.loop.tile %loops tile_sizes=[4]\n", "").replace("%tiled", "%loops")
    assert script_passes(whole)[3] == pass_class("ttl-schedule-pipeline")()


def test_it_runs(tmp_path):
    path = tmp_path / "script.mlir"
    path.write_text(SCRIPT, encoding="utf-8")
    text = KERNELS.read_text(encoding="utf-8").split("// -----")[0]
    found, wanted = parse_module(text), parse_module(text)
    before = print_module(found, locations=False)
    pass_class("ttl-transform-script")(script=str(path)).apply(make_context(), found)
    for name, options in PASSES:
        pass_class(name)(**options).apply(make_context(), wanted)
    assert print_module(found, locations=False) == print_module(wanted, locations=False) != before


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("tile_sizes=[4]", "tile_sizes=[32, 32]", 5, "expected one tile size: two change the order"),
        (
            "schedule_pipeline %tiled",
            "schedule_pipeline %tilde",
            8,
            "expected a handle that was given before",
        ),
        ("affine.for", "scf.for", 2, r"expected ops\{"),
        ("transform.loop.tile", "transform.loop.unroll", 5, "expected one of transform.structured.match, "),
        ("  %sched = transform.ttl.schedule_pipeline %tiled\n", "", 9, "expected a handle that was given before"),
        ("transform.sequence {", "transform.other {", 1, "expected 'transform.sequence {'"),
    ],
)
def test_mistakes_are_at_their_line(old, new, line, message):
    with pytest.raises(CompilationError, match=message) as caught:
        script_passes(SCRIPT.replace(old, new), "script.mlir")
    assert (caught.value.location.filename, caught.value.location.line) == ("script.mlir", line)


def test_tiles_are_for_a_schedule():
    lines = SCRIPT.splitlines(keepends=True)
    with pytest.raises(CompilationError, match=r"expected a transform\.ttl\.schedule_pipeline after it"):
        script_passes("".join([*lines[:6], lines[-1]]))
