"""A reader that stops reading, such as `head`, is no error of ours."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "hopper_gemm_ws.py"
MODULE = "tt.func public @k() {\n  tt.return\n}\n"


@pytest.mark.parametrize("program", ["tlx", "tlx_opt"])
def test_a_reader_that_has_gone(tmp_path, program):
    text = tmp_path / "k.mlir"
    text.write_text(MODULE)
    arguments = ["map", f"{EXAMPLE}:matmul"] if program == "tlx" else [str(text)]
    command = [sys.executable, "-m", f"tlx_xdsl.tools.{program}", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read()
    assert said == b""
    assert running.returncode == 1
