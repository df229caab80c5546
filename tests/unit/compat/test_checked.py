"""Scripts whose launches are checked: `python -m tlx_xdsl.compat --check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton")

from tlx_xdsl import compat
from tlx_xdsl.compat import checked
from tlx_xdsl.compat.__main__ import main as run
from tlx_xdsl.errors import CompilationError

pytestmark = [pytest.mark.backend, pytest.mark.quick]

KERNEL = """\
import numpy as np
import triton
import triton.language as tl


@triton.jit
def add_up(x, flag, out, SEM: tl.constexpr):
    offsets = tl.arange(0, 32)
    if tl.program_id(0) == 0:
        tl.store(x + offsets, offsets)
        tl.atomic_xchg(flag, 1, sem=SEM)
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        tl.store(out + offsets, tl.load(x + offsets))


def launch(sem):
    x, flag, out = np.zeros(32, np.int32), np.zeros(1, np.int32), np.zeros(32, np.int32)
    add_up[(2,)](x, flag, out, SEM=sem)
    return out
"""
RIGHT = "assert launch('release').sum() == 496\nassert launch('release').sum() == 496\n"
WRONG = "launch('relaxed')\n"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    monkeypatch.setattr(checked, "RECORD", checked.Record())
    monkeypatch.setattr(checked.CheckedKernel, "seconds", 0.1)

    def write(text: str) -> str:
        path = tmp_path / "checked_script.py"
        path.write_text(KERNEL + text)
        return str(path)

    return write


def test_a_script_without_mistakes(script: Callable[[str], str], capsys: pytest.CaptureFixture[str]):
    assert run(["--check", "--seconds", "0.1", script(RIGHT)]) == 0
    report = capsys.readouterr().err
    assert report.startswith("2 launches of 1 kernels checked in ")
    assert report.endswith("runs: nothing found\n")


def test_a_race_between_programs_is_reported(script: Callable[[str], str], capsys: pytest.CaptureFixture[str]):
    assert run(["--check", "--seconds", "0.1", script(WRONG)]) == 1
    report = capsys.readouterr().err
    assert "checked_script.py:15:33: error: " in report
    assert "in global memory, and nothing orders it after" in report
    assert "note: seen with --stage ttgir --schedule round-robin --seed 0" in report
    assert report.endswith("runs: 1 error\n")


def test_a_module_is_run_as_python_does(
    script: Callable[[str], str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(Path(script(RIGHT)).parent))
    assert run(["--check", "--seconds", "0.1", "-m", "checked_script", "its", "arguments"]) == 0
    assert "2 launches" in capsys.readouterr().err


def test_findings_in_python(script: Callable[[str], str]):
    names: dict[str, object] = {"__name__": "script", "__file__": script("")}
    with compat.installed(mode="check"):
        exec(compile(Path(script("")).read_text(), script(""), "exec"), names)
        launch = names["launch"]
        assert callable(launch)
        assert np.asarray(launch("release")).sum() == 496
        assert not compat.findings()
        with pytest.raises(CompilationError):
            launch("relaxed")
        assert [each.rule for each in compat.findings()] == ["fault"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check", "missing.py"], "missing.py: error: no such file"),
        (["--check", "-m", "no_such_module"], "error: no module named 'no_such_module'"),
    ],
)
def test_what_can_not_be_run(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert run(arguments) == 1
    assert message in capsys.readouterr().err


def test_seconds_are_for_checks(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        run(["--interpret", "--seconds", "3", "script.py"])
    assert "--seconds is for --check" in capsys.readouterr().err
