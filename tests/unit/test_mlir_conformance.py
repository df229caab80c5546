"""The harness that compares our parser and verifiers with stock Triton's: how it cuts, sorts and judges."""

import os
from pathlib import Path

import pytest

from tests.conformance.isolated import run_isolated
from tests.conformance.mlir import chunks, kind_of, our_answer, verdict
from tests.conformance.report import mlir_summary


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("TritonGPU/a.mlir", "%0 = tt.splat %x : f32 -> tensor<4xf32>", "core"),
        ("TritonGPU/amd/a.mlir", "tt.return", "amd"),
        ("TritonGPU/a.mlir", "#m = #ttg.amd_mfma<{}>", "amd"),
        ("TritonGPU/a.mlir", "// #ttg.amd_mfma<{}>", "core"),
        ("Gluon/a.mlir", "!a = tensor<4xf32, #gluon.auto_encoding>", "gluon"),
        ("NVWS/a.mlir", "  nvws.aref.create %x", "other dialects"),
        ("Conversion/a.mlir", "  llvm.return", "other dialects"),
        ("Conversion/a.mlir", '  "llvm.return"() : () -> ()', "core"),
    ],
)
def test_a_chunk_counts_by_its_dialects(path, text, kind):
    assert kind_of(Path(path), text) == kind


def test_chunks_and_verdicts(tmp_path):
    folder = tmp_path / "test" / "TritonGPU"
    folder.mkdir(parents=True)
    (folder / "a.mlir").write_text(
        "tt.func @f() { tt.return }\n// -----\n// nothing\n// -----\n// expected-error @+1 {{x}}\ntt.func @g() { }\n"
    )
    right, wrong = chunks(tmp_path)
    assert (right.name, wrong.name) == ("TritonGPU/a.mlir#0", "TritonGPU/a.mlir#2")
    assert verdict(right, {"accepts": True}, our_answer(right)) == "round trip"
    refused = {"accepts": False, "line": 2, "message": "x"}
    assert verdict(wrong, refused, our_answer(wrong)) == "error at its line"
    assert verdict(wrong, refused, our_answer(right)) == "error missed"
    assert verdict(wrong, {"accepts": True}, our_answer(wrong)) == "error at its line"
    assert verdict(wrong, {"accepts": True}, our_answer(right)) == "round trip"
    assert verdict(right, {"accepts": True}, {"died": "signal 6"}) == "traceback"
    record = {"kind": "core", "directory": "TritonGPU", "verdict": "round trip"}
    assert mlir_summary([record]).startswith("1 chunks; 1 that stock accepts, 1 (100.0 %) round-trip")


def test_a_process_that_ends_costs_one_answer():
    def function(number):
        return os._exit(3) if number == 1 else number * number

    assert run_isolated(function, [0, 1, 2], jobs=1) == [0, {"died": "status 3"}, 4]
