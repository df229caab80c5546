"""The notebooks run from top to bottom without a browser, and what they show is so."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tlx_xdsl.backend

pytest.importorskip("marimo", reason="the notebooks need marimo")

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


def run(name, **definitions):
    """Run a notebook, with other values for what some of its cells define; what its cells show and define."""
    path = ROOT / "notebooks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app.run(defs=definitions)


@pytest.fixture(autouse=True)
def _without_triton(request, monkeypatch):
    if "backend" not in request.keywords:
        monkeypatch.setattr(tlx_xdsl.backend, "installed_triton_version", lambda: None)


@pytest.fixture(scope="module")
def walked():
    """Run `walk_a_kernel` as it stands, without Triton; return what it shows and defines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tlx_xdsl.backend, "installed_triton_version", lambda: None)
        return run("walk_a_kernel")


def test_all_notebooks_are_tested():
    assert [path.stem for path in NOTEBOOKS] == ["find_a_race", "triton_to_linalg", "ttl_steps", "walk_a_kernel"]


def test_walking_a_kernel(walked):
    shown, defined = walked
    assert list(defined["runs"]) == ["frontend", "last pass", "edited"]
    assert all(result.startswith("largest error 0.0") for result in defined["runs"].values())
    assert defined["step"].name == "tlx-storage-alias-lowering"
    assert defined["binary"] is None
    (page,) = [value for value in shown if value is defined["step"]]
    # The kernel's own lines stand beside the IR, although they are in a cell.
    assert "tlx.reuse_group(a, group_size=STAGES)," in page._repr_html_()


def test_an_edit_of_the_ir_takes_effect(walked):
    _, defined = walked
    text = defined["edited_text"]
    # The product is not waited for: the interpreter sees it.
    wrong = re.sub(r"(ttng.warp_group_dot_wait %\w+ \{pendings = )0", r"\g<1>1", text)
    assert wrong != text
    _, defined = run("walk_a_kernel", edited_text=wrong)
    assert "error: " in defined["runs"]["edited"]
    assert "error: " not in defined["runs"]["last pass"]
    _, defined = run("walk_a_kernel", edited_text=text.replace("tt.return", "tt.retrun"))
    assert defined["changed"] is None
    assert list(defined["runs"]) == ["frontend", "last pass"]


@pytest.mark.backend
def test_walking_a_kernel_to_the_binary():
    _, defined = run("walk_a_kernel")
    assert "wgmma.mma_async" in defined["binary"].ptx
    assert defined["binary"].resources.spill_store_bytes == 0


def test_finding_a_race():
    _, defined = run("find_a_race")
    right = {key for key, said in defined["found"].items() if said.startswith("no fault")}
    assert right == {("none", order) for order in ("round-robin", "random", "adversarial")}
    parts = {name: text for (name, order), text in defined["found"].items() if order == "adversarial"}
    assert "nothing orders it after the TMA load" in parts["does not wait for the tile"]
    assert "too many arrivals on 'full[0]'" in parts["does not wait for a free buffer"]
    assert "without a proxy fence" in parts["no fence between the store to shared memory and TMA"]
    assert "deadlock" in parts["never says that a buffer is free"]
    assert defined["said"] == defined["found"]["does not wait for the tile", "round-robin"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_script(path):
    """Run the notebook in a process of its own, without Triton."""
    code = (
        "import runpy, sys; sys.modules['triton'] = None; import tlx_xdsl.backend as b; "
        "b.installed_triton_version = lambda: None; runpy.run_path(sys.argv[1], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_triton_to_linalg_gathers_rows_and_gives_the_numbers():
    _, found = run("triton_to_linalg")
    assert [each["grade"] for each in found["facts"]] == ["structured", "half-structured", "structured"]
    assert list(found["stages"])[-2:] == ["linalg-lower-functions", "canonicalize"]
    assert found["error"] < 1e-6


def test_ttl_steps():
    _, defined = run("ttl_steps")
    assert list(defined["stages"])[:2] == ["frontend", "ttl-canonicalize"]
    assert "ttl.compute ins(" in defined["shown"]
    assert [each["buffer"] for each in defined["buffers"]] == [0, 1, 2]
    assert all(defined["results"][machine].startswith("largest error") for machine in ("tensors", "ttkernel"))
