"""`--format json`: each command prints one document, which the schema in the package describes, and no other keys."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.unit.tools.agents.reported import KERNELS, PLAIN
from tests.unit.volume import is_full
from tlx_xdsl.tools.documents import SCHEMA
from tlx_xdsl.tools.tlx import all_commands, main
from tlx_xdsl.version import __version__

full = pytest.mark.skipif(not is_full(), reason="TLX_TEST_VOLUME is not full")
GEMM = "examples/hopper_gemm_ws.py:matmul"
SCALE = ("--grid", "cdiv(n, BLOCK)", "--arg", "x=randn[40]", "--arg", "y=nan[40]", "--arg", "n=40")
RING = ("--grid", "1", "--arg", "x=randn[T*16]", "--arg", "y=nan[T*16]", "--arg", "T=T")


def strict(schema):
    """The schema, with no other keys than those that it names."""
    made = copy.deepcopy(schema)

    def close(each):
        if isinstance(each, dict):
            if "properties" in each and "required" in each:
                each.setdefault("additionalProperties", False)
            for value in each.values():
                close(value)
        elif isinstance(each, list):
            for value in each:
                close(value)

    close(made["$defs"])
    return made


WHOLE = json.loads(SCHEMA.read_text())
CLOSED = strict(WHOLE)
HEAD = ("tool", "version", "format", "ok")


def of_tool(document, name):
    """Check a document against the part of the schema of a tool, without keys that it does not name."""
    assert tuple(document)[:4] == HEAD
    assert (document["version"], document["format"]) == (__version__, 1)
    Draft202012Validator(WHOLE).validate(document)
    part = {"$ref": f"#/$defs/{name.replace(' ', '%20')}", "$defs": CLOSED["$defs"]}
    Draft202012Validator(part).validate({key: value for key, value in document.items() if key not in HEAD})


@pytest.fixture
def tlx(tmp_path, capsys):
    """Run a command on a kernel of the file; the exit status and the document, which is checked."""
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)

    def run(command, kernel, *options, fails=False):
        named = kernel if ".py" in kernel or not kernel else f"{path}:{kernel}".removesuffix(":*")
        status = main([command, *filter(None, [named]), *options, "--format", "json"])
        printed = capsys.readouterr()
        document = json.loads(printed.out)
        assert document["tool"] == f"tlx {command}"
        assert document["ok"] == (status == 0), printed
        of_tool(document, "failed" if fails else document["tool"])
        return document

    return run


def test_the_schema_is_one():
    Draft202012Validator.check_schema(WHOLE)
    tools = {each.removeprefix("tlx ") for each in WHOLE["properties"]["tool"]["enum"]}
    # It is a server: its results are documents of the others.
    assert {*all_commands()} - tools == {"mcp"}


def test_a_schema_that_lacks_a_key_is_refused():
    with pytest.raises(Exception, match="'more' was unexpected"):
        of_tool({"tool": "tlx doctor", "version": __version__, "format": 1, "ok": True, "findings": [], "more": 1},
                "tlx doctor")  # fmt: skip


def test_check_with_schedules_and_proofs(tlx):
    found = tlx("check", "ring", *RING, "--size", "T=1..2", "--prove", "--stages", "frontend", "--seconds", "60")
    assert [each["answer"] for each in found["proofs"]] == ["proved"]
    assert {each["sizes"]["T"] for each in found["cases"]} == {1, 2}
    wrong = tlx("check", "race", "--grid", "2", "--arg", "x=ones[1]", "--arg", "y=zeros[1]", "--stages", "frontend")
    (record,) = wrong["records"]
    assert (record["line"], record["stage"], record["severity"]) == (37, "frontend", "error")
    assert record["schedule"]
    assert "--schedule" in record["replay"] or "--global-order" in record["replay"]


def test_minimize_sync(tlx):
    found = tlx("minimize-sync", "ring", *RING, "--size", "T=3", "--stages", "frontend", "--seconds", "1")
    assert [each["needed"] for each in found["deletions"]] == [True] * 4
    assert all(each["wrong"]["message"] for each in found["deletions"])


def test_explain_in_all_forms(tlx):
    passes = tlx("explain", GEMM)
    assert [each["name"] for each in passes["passes"] if each["changed"]]
    assert passes["layouts"]["buffers"][0]["accesses"]
    assert tlx("explain", GEMM, "--why", "acc")["reasons"]
    # The shorter kernel, for each form compiles anew.
    changed = next(each["name"] for each in tlx("explain", "ring")["passes"][1:] if each["changed"])
    assert tlx("explain", "ring", "--diff", changed)["diff"].startswith("--- before")
    assert tlx("explain", "scale", "--warp-specialize", fails=True)["error"]["line"] == 13


@pytest.mark.backend
def test_times_of_the_clock(tlx):
    slow = tlx("explain", "scale", *SCALE, "--why-slow")
    assert slow["cycles"] > 0
    (timeline,) = tlx("run", "scale", *SCALE, "--timeline")["timelines"]
    assert (timeline["kernel"], len(timeline["spans"]["start"])) == ("scale", len(timeline["spans"]["end"]))


def test_run_and_what_it_checks(tlx):
    found = tlx("run", "scale", *SCALE, "--check", "y=2*x")
    assert [each["ok"] for each in found["checks"]] == [True]
    assert [each["name"] for each in found["arrays"]] == ["y"]
    assert not tlx("run", "scale", *SCALE, "--check", "y=3*x")["ok"]


@pytest.mark.backend
def test_a_profile_of_the_ptx(tlx):
    found = tlx("run", "scale", *SCALE, "--stage", "ptx", "--profile")
    assert found["comparison"]["same"]
    assert found["lines"][0]["instructions"] > 0


@full
@pytest.mark.backend
def test_sweeps_and_their_times(tlx):
    found = tlx("sweep", "scale", "--set", "BLOCK=16,32", "-q")
    assert [each["settings"] for each in found["configurations"]] == [{"BLOCK": 16}, {"BLOCK": 32}]
    times = tlx("sweep", "scale", "--set", "BLOCK=16,32", "-q", "--bench", *SCALE)
    assert times["source"] == "estimated"


@pytest.mark.backend
def test_gate(tlx):
    found = tlx("gate", "scale", *SCALE, "-q", "--seconds", "2")
    assert [each["outcome"] for each in found["verdicts"]] == ["clean"]


ADD = "examples/ttl/add.py:add"
TENSORS = ("--arg", "a=randn[64,96]", "--arg", "b=randn[64,96]", "--arg", "out=nan[64,96]")


def test_texts_and_files_of_a_compile(tlx, tmp_path):
    printed = tlx("compile", "ring", "--emit", "ttgir", "-o", "-")
    assert list(printed["texts"]) == ["ttgir"]
    assert "ttg.warp_specialize" in printed["texts"]["ttgir"]
    written = tlx("compile", "scale", "--emit", "ttir,ttgir", "-o", str(tmp_path / "out"))
    assert [Path(each).name for each in written["files"]] == ["scale.ttir", "scale.ttgir"]
    assert all(Path(each).is_file() for each in written["files"])
    assert (written["instructions"], written["resources"]) == (None, None)
    linalg = tlx("compile", "scale", "--target", "linalg", "-o", str(tmp_path / "linalg"))
    assert [Path(each).name for each in linalg["files"]] == ["scale.linalg.mlir"]
    assert "linalg" in tlx("compile", "scale", "--target", "linalg", "-o", "-")["texts"]


def test_code_for_this_cpu(tlx, tmp_path):
    pytest.importorskip("llvmlite")
    made = tlx("compile", "scale", "--target", "cpu", "-o", str(tmp_path))
    assert made["instructions"]["all"] > 0
    assert made["resources"]["machine code, bytes"] > 0
    assert "scale" in tlx("compile", "scale", "--target", "cpu", "--emit", "ll", "-o", "-")["texts"]["ll"]


@pytest.mark.backend
def test_the_binary_of_a_compile(tlx, tmp_path):
    made = tlx("compile", "scale", "-o", str(tmp_path), "--no-cache")
    assert made["resources"]["registers per thread"] > 0
    assert made["resources"]["spill stores, bytes per thread"] == 0
    assert (made["missing"], made["cached"]) == ([], None)


def test_python_of_a_kernel(tlx):
    found = tlx("reverse", "scale", "--stage", "frontend")
    assert found["refused"] == []
    compile(found["source"], "reversed.py", "exec")


def test_a_reproducer(tlx, tmp_path):
    options = ("--grid", "1", "--arg", "x=randn[8]", "--arg", "y=nan[40]", "--arg", "n=40")
    found = tlx("repro", "scale", *options, "-o", str(tmp_path))
    assert "out of bounds" in found["text"]
    assert Path(found["script"]).is_file()


def test_answers_of_the_debugger(tlx):
    found = tlx("debug", "ring", *RING, "--size", "T=2", "-c", "end; who y[0]; nonsense; quit; here")
    assert (found["wrong"], len(found["tasks"])) == (None, 2)
    assert [each["command"] for each in found["answers"]] == ["end", "who y[0]", "nonsense", "quit"]
    assert "tl.store(y + t * 16" in "\n".join(found["answers"][1]["lines"])
    assert "there is no command 'nonsense'" in found["answers"][2]["error"]
    wrong = tlx("debug", "race", "--grid", "2", "--arg", "x=ones[1]", "--arg", "y=zeros[1]", "--check", "y=x+9")
    assert "element [0] is 2, expected 10" in wrong["wrong"]["message"]
    assert not wrong["answers"]
    assert tlx("debug", "ring", *RING, "--dap", fails=True)["error"]["message"].startswith("--format json: not with")


def test_ttl_in_all_actions(tlx, tmp_path, capsys):
    def ttl(*options):
        return tlx("ttl", "", *options[:1], ADD, *TENSORS, *options[1:])

    made = ttl("compile", "-o", str(tmp_path))
    assert len(made["files"]) == 4
    assert made["manifest"]["cbs"]
    assert set(ttl("compile", "-o", "-")["texts"]) == {Path(each).name.partition(".")[2] for each in made["files"][:3]}
    ran = ttl("run", "--check", "out=a+b", "--timeline", str(tmp_path / "out.html"))
    assert [each["ok"] for each in ran["checks"]] == [True]
    assert [each["name"] for each in ran["arrays"]] == ["out"]
    assert ran["timelines"][0]["end"] > 0
    assert (tmp_path / "out.html").read_text().startswith("<!")
    assert not ttl("run", "--check", "out=a-b")["ok"]
    assert ttl("check", "--check", "out=a+b")["schedules"] > 1


def test_other_reports(tlx):
    assert tlx("lint", "*")["records"][0]["rule"] == "unchecked"
    assert [each["target"] for each in tlx("map", GEMM)["maps"]] == ["sm_90a"]
    assert tlx("addresses", "scale", *SCALE, "--shape", "x=40", "--shape", "y=40")["grid"] == [3, 1, 1]
    assert tlx("addresses", "scale")["accesses"]
    assert "Python" in [each["subject"] for each in tlx("doctor", "")["findings"]]


@full
def test_a_specialised_kernel(tlx, tmp_path):
    (tmp_path / "plain.py").write_text(PLAIN)
    found = tlx("warp-specialize", f"{tmp_path / 'plain.py'}:matmul")
    assert found["decisions"]
    assert "tlx.async_tasks()" in found["source"]
    assert tlx("explain", f"{tmp_path / 'plain.py'}:matmul", "--warp-specialize")["decisions"] == found["decisions"]


@pytest.mark.parametrize("command", ["check", "run", "explain", "map"])
def test_an_error_is_a_document_too(tlx, command):
    options = () if command in ("explain", "map") else ("--grid", "1")
    found = tlx(command, "nothing", *options, fails=True)
    assert found["error"]["message"].startswith("no kernel 'nothing' in this file")
    assert found["error"]["file"].endswith("kernels.py")
