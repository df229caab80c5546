"""`tlx warp-specialize` and `tlx explain --warp-specialize`: sources, decisions with their reasons, and refusals."""

from pathlib import Path

import pytest

from tlx_xdsl.tools.tlx import main

MATMUL = f"{Path(__file__).parents[2] / 'gallery' / 'plain' / 'matmul.py'}:matmul"

SCALE = """\
import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def scale(x, n):
    at = tl.arange(0, 64)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)


TLX_COMPILE = {"scale": {"signature": {"x": "*fp32", "n": "i32"}}}
"""


def test_the_source_is_a_kernel_and_the_decisions_have_reasons(tmp_path, capsys):
    path = tmp_path / "folder" / "specialised.py"
    assert main(["warp-specialize", MATMUL, "--set", "depth=2,groups=1", "-o", str(path)]) == 0
    out = capsys.readouterr().out
    assert "depth = 2: given\n" in out
    assert "a: 2 slots of 32768 bytes, which TMA fills while the consumers compute (" in out
    assert "synchronisation: proved" in out
    assert "replicate" not in path.read_text()
    assert main(["compile", f"{path}:matmul", "--emit", "ttgir", "-o", str(tmp_path), "-q"]) == 0
    assert (tmp_path / "matmul.ttgir").read_text().count("ttng.warp_group_dot ") == 1


def test_without_a_file_the_source_is_all_that_standard_output_has(capsys):
    assert main(["warp-specialize", MATMUL]) == 0
    out, err = capsys.readouterr()
    compile(out, "specialised.py", "exec")
    assert "replicate=2" in out
    assert "groups = 2: two where each has 64 or 128 rows" in err
    # The rules' persistent loop is not proved; the user has given nothing.
    assert "persistent = False: chosen by the search\n" in err
    assert "given" not in err


def test_explain_says_the_same_without_the_source(capsys):
    assert main(["explain", MATMUL, "--warp-specialize"]) == 0
    out = capsys.readouterr().out
    assert "groups = 2: two where each" in out
    assert "async_tasks" not in out


def test_a_refusal_is_an_error_at_its_line(tmp_path, capsys):
    path = tmp_path / "scale.py"
    path.write_text(SCALE)
    for command in (
        ["warp-specialize", f"{path}:scale", "-o", "none.py"],
        ["explain", f"{path}:scale", "--warp-specialize"],
    ):
        assert main(command) == 1
        err = capsys.readouterr().err
        assert f"{path}:8:22: error: not warp-specialised: no load in a loop is one that TMA can do" in err
    assert not Path("none.py").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("dept=2", "--set: expected a decision (persistent, "),
        ("depth=0", "--set: 'depth' is a number above 0, found '0'"),
        ("turns=1", "--set: 'turns' is True or False, found '1'"),
    ],
)
def test_a_decision_that_there_is_not(given, message, capsys):
    assert main(["warp-specialize", MATMUL, "--set", given]) == 1
    assert message in capsys.readouterr().err


def test_decisions_of_explain_need_its_option(capsys):
    assert main(["explain", MATMUL, "--set", "depth=2"]) == 1
    assert "--set: only with --warp-specialize" in capsys.readouterr().err
