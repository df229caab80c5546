"""Repairs by the compiler: said at their lines, in the manifest too, and refused with `strict`."""

import json
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.tools.tlx import main
from tlx_xdsl.ttl.runtime import Options, compile_kernel, run

TENSOR = ttl.tensor((64, 32))


@ttl.kernel()
def repaired(a: TENSOR, out: TENSOR):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)

    @ttl.datamovement()
    def read():
        for i in range(2):
            block = cb.reserve()  # left out
            ttl.copy(a[i, 0], block).wait()

    @ttl.datamovement()
    def write():
        for i in range(2):
            with cb.wait() as block:
                ttl.copy(block, out[i, 0])  # not waited for


LINES = Path(__file__).read_text().split("\n")
LEFT_OUT = next(number for number, line in enumerate(LINES, 1) if line.endswith("# left out"))
UNAWAITED = next(number for number, line in enumerate(LINES, 1) if line.endswith("# not waited for"))


def test_repairs_are_remarks():
    with collected_diagnostics() as found:
        compiled = compile_kernel(repaired, (TENSOR, TENSOR))
    assert [(each.severity, each.location and each.location.line, each.message) for each in found] == [
        ("remark", LEFT_OUT,
         "this block of 'cb' is reserved, but not pushed: the compiler pushes it after its last use"),
        ("remark", UNAWAITED, "this copy is not waited for before 'cb' is popped: the compiler waits for it"),
    ]  # fmt: skip
    remarks = json.loads(compiled.manifest_text)["remarks"]
    assert [(each["file"], each["line"]) for each in remarks] == [(__file__, LEFT_OUT), (__file__, UNAWAITED)]
    assert [each["message"] for each in remarks] == [each.message for each in found]


def test_strict_refuses_them(capsys):
    arrays = np.ones((64, 32), np.float32), np.zeros((64, 32), np.float32)
    with pytest.raises(CompilationError, match="is reserved, but not pushed: push it after its last use") as caught:
        run(repaired, *arrays, options=Options(strict=True))
    assert caught.value.location is not None
    assert caught.value.location.line == LEFT_OUT
    assert "because of 'strict'" in caught.value.notes[-1]
    assert main(["ttl", "check", f"{__file__}:repaired", "--strict"]) == 1
    assert f":{LEFT_OUT}:" in capsys.readouterr().err


def test_the_command_line_says_them(capsys):
    for action in ("run", "check"):
        assert main(["ttl", action, f"{__file__}:repaired", "--check", "out=a"]) == 0
        said = capsys.readouterr().err
        assert f":{LEFT_OUT}:21: remark: " in said
        assert f":{UNAWAITED}:17: remark: " in said
