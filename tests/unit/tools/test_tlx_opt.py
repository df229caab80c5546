"""`tlx-opt`: input, output and errors."""

import io
import sys

import pytest

from tlx_xdsl.tools.tlx_opt import main

MODULE = "builtin.module {\n  tt.func public @k(%x: i32) {\n    %0 = arith.addi %x, %x : i32\n    tt.return\n  }\n}\n"


@pytest.mark.parametrize("extension", ["mlir", "ttir", "ttgir"])
def test_extensions(tmp_path, capsys, extension):
    path = tmp_path / f"input.{extension}"
    path.write_text(MODULE)
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == MODULE


def test_standard_input_and_output_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MODULE.encode())))
    assert main(["-o", str(tmp_path / "out.mlir")]) == 0
    assert (tmp_path / "out.mlir").read_text() == MODULE


def test_pass_options(tmp_path, capsys):
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    assert main([str(path), "-p", 'triton-tlx-fixup{num-warps=8 target="cuda:100"}']) == 0
    out = capsys.readouterr().out
    assert '"ttg.num-warps" = 8 : i32' in out
    assert 'ttg.target = "cuda:100"' in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "tt.func public @k() {\n  tt.retrun\n}",
            "input.mlir:2:3: error: unknown operation 'tt.retrun', did you mean 'tt.return'?",
        ),
        ("tt.func public @k() {\n  %0 = tt.splat %1 : i32 -> tensor<4xi32>\n  tt.return\n}", "not defined"),
        ("tt.func public @k(%x: f32) {\n  %0 = tt.splat %x : f32 -> tensor<4xi32>\n  tt.return\n}", "cannot splat"),
        ("tt.func public @k(%x: !ttg.memdesc<4xf32, #ttg.blocked<{size = 1}>, #ttg.shared_memory>)", "no parameter"),
        ("tt.func public @k(%x: tensor<4xf32, #layout>)", "undefined symbol alias"),
        ("#a = #ttg.shared_memory\n#a = #ttg.shared_memory\n", "re-declaration of alias '#a'"),
    ],
)
def test_bad_input_is_a_located_line(tmp_path, capfd, text, message):
    path = tmp_path / "input.mlir"
    path.write_text(text)
    assert main([str(path)]) == 1
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_value_used_before_its_definition_is_refused(tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text(
        'tt.func public @k(%x: i32) {\n  %0 = "arith.addi"(%1, %x) : (i32, i32) -> i32\n'
        "  %1 = arith.addi %x, %x : i32\n  tt.return\n}"
    )
    assert main([str(path)]) == 1
    assert "operand 0 of 'arith.addi' is used where it is not defined" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["-p", "no-such-pass"], "no-such-pass"), (["nowhere.mlir"], "nowhere.mlir"), (["file.c"], "file")],
)
def test_wrong_arguments_are_one_line(tmp_path, monkeypatch, capfd, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.c").write_text("")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MODULE.encode())))
    assert main(arguments) == 1
    error = capfd.readouterr().err
    assert message in error
    assert error.startswith("error: ") or ": error: " in error
    assert len(error.splitlines()) == 1
