"""`tlx-opt`: input, output and errors."""

import io
import re
import sys

import pytest

from tlx_xdsl.tools.opt.main import main
from tlx_xdsl.transforms.registry import all_passes

pytestmark = pytest.mark.quick

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


OLDER_NAMES = {
    "tlx-barrier-lifecycle": "tlx-end-barrier-lifetimes",
    "tlx-donate-registers": "tlx-rebalance-setmaxnreg",
    "tlx-inline-beside-tasks": "tlx-inline-calls-with-tasks",
    "tlx-keep-buffer-branches": "tlx-keep-memdesc-branches",
    "tlx-keep-buffers": "tlx-extend-buffer-lifetimes",
    "tlx-lower-bulk-copies": "tlx-lower-to-ptx-with-layouts",
    "tlx-lower-clc": "tlx-lower-to-ptx-with-layouts",
    "tlx-lower-device-descriptors": "tlx-lower-to-ptx-with-layouts",
    "tlx-lower-multicast-loads": "tlx-lower-to-ptx-with-layouts",
    "tlx-lower-narrow-copies": "tlx-legalize-async-copies",
    "tlx-lower-pair-products": "tlx-lower-2cta-mma",
    "tlx-lower-special-instructions": "tlx-lower-to-ptx",
    "tlx-lower-thread-arrivals": "tlx-lower-to-ptx-with-layouts",
    "tlx-lower-votes": "tlx-lower-to-ptx-with-layouts",
    "tlx-weaken-remote-arrivals": "tlx-relax-remote-arrivals",
}


@pytest.mark.parametrize(("older", "name"), OLDER_NAMES.items())
def test_older_names_of_passes_work_in_both_spellings(tmp_path, capsys, older, name):
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    assert issubclass(all_passes()[older](), all_passes()[name]())
    for arguments in (["-p", older], [f"--{older}"]):
        assert main([str(path), *arguments]) == 0
        assert capsys.readouterr().out == MODULE


def test_help_lists_every_pass_once(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    usage, passes = capsys.readouterr().out.split("\nwhat the compiler does, in this order:\n")
    assert usage.startswith("usage: tlx-opt ")
    assert "tlx-end-barrier-lifetimes" not in usage
    compiler, _, rest = passes.partition("\n\n")
    for name in all_passes():
        assert len(re.findall(rf"^  {name} +\S", passes, re.MULTILINE)) == 1, name
    assert "  cse" not in compiler
    assert " cse " in rest
    assert compiler.index("triton-tlx-fixup") < compiler.index("tlx-storage-alias-lowering")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-p", "tlx-end-barrier-lifetime"],
            "there is no pass 'tlx-end-barrier-lifetime', did you mean 'tlx-end-barrier-lifetimes'?",
        ),
        (["-p", "xyz"], "there is no pass 'xyz'; --help lists them"),
        (["--cannonicalize"], "there is no option and no pass '--cannonicalize', did you mean '--canonicalize'?"),
        (
            ["--tlx-storage-alias-lowering=stric=true"],
            "the pass 'tlx-storage-alias-lowering' has no option 'stric'; its options are strict",
        ),
        (["-p", "cse{x=1}"], "the pass 'cse' has no option 'x'; it has no options"),
        (
            ["-p", "tlx-storage-alias-lowering{strict=maybe}"],
            "the options of the pass 'tlx-storage-alias-lowering' do not fit: ",
        ),
        (["-p", "tlx-storage-alias-lowering{"], "--passes: "),
    ],
)
def test_wrong_passes_are_one_line(tmp_path, capsys, arguments, message):
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    assert main([str(path), *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert len(error.splitlines()) == 1


def test_a_file_that_is_not_there_or_holds_python(tmp_path, capsys):
    assert main(["nowhere.mlir"]) == 1
    assert capsys.readouterr().err == "nowhere.mlir: error: no such file\n"
    path = tmp_path / "kernel.py"
    path.write_text("")
    assert main([str(path)]) == 1
    assert "note: tlx compile FILE.py:KERNEL --emit ttir,ttgir" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "// nothing\n\n"])
def test_an_empty_input_is_an_empty_module(tmp_path, capsys, text):
    path = tmp_path / "input.mlir"
    path.write_text(text)
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "builtin.module {\n}\n"


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
        ("tt.func public @k() {\n  tt.return\n}\n}\n", "input.mlir:4:1: error: expected an operation, found '}'"),
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


# --- naming passes --------------------------------------------------------------------------------------------------

FIXED = '"ttg.num-warps" = 8 : i32'


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p", "triton-tlx-fixup{num-warps=8}"],
        ["-ptriton-tlx-fixup{num-warps=8}"],
        ["--passes", "triton-tlx-fixup{num-warps=8}"],
        ["--passes=triton-tlx-fixup{num-warps=8}"],
        ["--triton-tlx-fixup=num-warps=8"],
        ["-triton-tlx-fixup=num-warps=8"],
        ["--triton-tlx-fixup={num-warps=8}"],
        ["--pass-pipeline=builtin.module(triton-tlx-fixup{num-warps=8})"],
        ["--pass-pipeline", "builtin.module(canonicalize,tt.func(triton-tlx-fixup{num-warps=8}),canonicalize)"],
    ],
)
def test_every_way_to_name_a_pass(tmp_path, capsys, arguments):
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    assert main([str(path), *arguments]) == 0
    assert FIXED in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p", "triton-tlx-fixup{target=cuda:90}"],
        ["--triton-tlx-fixup=target=cuda:90"],
        ['--triton-tlx-fixup=target="cuda:90"'],
        ["-pass-pipeline=builtin.module(triton-tlx-fixup{target=cuda:90 num-warps=8})"],
    ],
)
def test_a_value_with_a_colon_needs_no_quotes(tmp_path, capsys, arguments):
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    assert main([str(path), *arguments]) == 0
    assert 'ttg.target = "cuda:90"' in capsys.readouterr().out


def test_passes_run_in_the_order_of_the_command_line(tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    assert main([str(path), "--triton-tlx-fixup=num-warps=2", "-p", "triton-tlx-fixup{num-warps=4}", "--cse"]) == 0
    assert '"ttg.num-warps" = 2 : i32' in capfd.readouterr().out


def test_a_pipeline_with_an_open_parenthesis_is_refused(tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    assert main([str(path), "--pass-pipeline=builtin.module(cse"]) == 1
    assert capfd.readouterr().err.startswith("error: --pass-pipeline: the parentheses of")


# --- printing between passes ----------------------------------------------------------------------------------------


def test_dumps(tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    both = ["-p", "triton-tlx-fixup,tlx-end-barrier-lifetimes"]
    for option, dumps in (
        ("--print-ir-after-all", 2),
        ("--print-ir-before-all", 2),
        ("--print-ir-after=triton-tlx-fixup", 1),
        ("--print-ir-before=tlx-end-barrier-lifetimes", 1),
        ("--print-ir-after-change", 1),
        ("--print-ir-after-failure", 0),
    ):
        assert main([str(path), *both, option]) == 0
        captured = capfd.readouterr()
        assert captured.err.count("// -----// IR Dump") == dumps, option
        assert "(triton-tlx-fixup) //----- //" in captured.err or dumps == 0 or "before=" in option
        assert FIXED.replace("8", "4") in captured.out


def test_a_dump_after_a_failure(tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    assert main([str(path), "-p", "convert-triton-to-tritongpu", "--print-ir-after-failure"]) == 1
    assert "IR Dump After ConvertTritonToTritonGPUPass Failed" in capfd.readouterr().err


# --- chunks and expected diagnostics --------------------------------------------------------------------------------

CHUNKS = """\
tt.func public @good() {
  tt.return
}

// -----

tt.func public @bad(%x: f32) {
  // expected-error @below {{cannot splat f32}}
  %0 = tt.splat %x : f32 -> tensor<4xi32>
  tt.return
}

// -----

tt.func public @good_too() {
  tt.return
}
"""


def test_a_chunk_that_fails_keeps_no_other_from_being_processed(tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text(CHUNKS)
    assert main([str(path), "--split-input-file"]) == 1
    captured = capfd.readouterr()
    assert "@good()" in captured.out
    assert "@good_too()" in captured.out
    assert captured.err.startswith(f"{path}:9:8: error: 'tt.splat' cannot splat f32")
    assert captured.err.splitlines()[1].strip() == "%0 = tt.splat %x : f32 -> tensor<4xi32>"


def test_expected_diagnostics(tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text(CHUNKS)
    assert main([str(path), "--split-input-file", "--verify-diagnostics"]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "@below {{cannot splat f32}}",
            "@below {{something else}}",
            'expected error "something else" was not produced',
        ),
        ("@below {{cannot", "{{cannot", "was not produced"),
        ("// expected-error @below {{cannot splat f32}}", "", "unexpected error: 'tt.splat' cannot splat f32"),
        ("expected-error @below", "expected-warning @below", "unexpected error"),
        ("@good() {", "@good() { // expected-error {{never}}", 'expected error "never" was not produced'),
    ],
)
def test_unmatched_diagnostics_fail(tmp_path, capfd, old, new, complaint):
    path = tmp_path / "input.mlir"
    path.write_text(CHUNKS.replace(old, new))
    assert main([str(path), "--split-input-file", "--verify-diagnostics"]) == 1
    assert complaint in capfd.readouterr().err


@pytest.mark.parametrize(
    "where", ["@+1 {{cannot splat f32}}", "-re @+1 {{cannot {{s.*t}} f32 into}}", "@unknown {{cannot}}"]
)
def test_places_and_patterns_of_expectations(tmp_path, where):
    path = tmp_path / "input.mlir"
    suffix, _, rest = where.partition("@")
    path.write_text(
        CHUNKS.replace("expected-error @below {{cannot splat f32}}", f"expected-error{suffix.strip()} @{rest}")
    )
    assert main([str(path), "--split-input-file", "--verify-diagnostics"]) == 0


def test_warnings_are_matched_and_shown(tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text(
        "tt.func @k() {\n"
        "  // expected-warning @+1 {{has no referencing storage_alias_local_alloc operations}}\n"
        "  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>\n  tt.return\n}\n"
    )
    passes = ["-p", "tlx-storage-alias-size-definition"]
    assert main([str(path), *passes, "--verify-diagnostics"]) == 0
    assert capfd.readouterr().err == ""
    assert main([str(path), *passes]) == 0
    assert capfd.readouterr().err.startswith(f"{path}:3:8: warning: storage_alias_spec has no referencing")


# --- versions, plugin -----------------------------------------------------------------------------------------------


def test_an_operation_that_a_version_lacks_is_refused(tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text("tt.func @k() {\n  %0 = ttg.warp_id : i32\n  tt.return\n}\n".replace(" : i32", ""))
    assert main([str(path), "--triton-version", "3.7"]) == 0
    assert main([str(path), "--triton-version", "3.6"]) == 1
    error = capfd.readouterr().err
    assert error.startswith(f"{path}:2:8: error: 'ttg.warp_id' does not exist in Triton 3.6, it came with 3.7")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--mlir-version", "18"], "error: --mlir-version: expected one of 19, newest, found '18'"),
        (
            ["--mlir-version", "19", "--triton-version", "3.9"],
            "error: --mlir-version: the text is for a version of Triton",
        ),
    ],
)
def test_one_release_that_is_known_is_written_for(flags, message, tmp_path, capfd):
    path = tmp_path / "input.mlir"
    path.write_text("func.func @k() { return }")
    assert main([str(path), *flags]) == 1
    assert capfd.readouterr().err.startswith(message)


def test_plain_xdsl_opt_would_know_our_dialects_and_passes():
    from xdsl.universe import Universe

    from tlx_xdsl.tools.opt.universe import UNIVERSE

    assert set(UNIVERSE.all_dialects) == {"tt", "ttg", "ttng", "tlx", "ttl", "ttkernel", "ttcore"}
    assert {"tlx-storage-alias-lowering", "ttl-lower-compute"} <= set(UNIVERSE.all_passes)
    assert isinstance(UNIVERSE, Universe)
