"""Names from files and kernels that would be markup stay text: in pictures, in the pages of notebooks, in traces."""

# covers: tlx addresses, tlx run

import json

import numpy as np

from tlx_xdsl import interpret_text
from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.runtime.show.pages import module_page, run_page
from tlx_xdsl.text.diagnostics import Diagnostic
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.tools.tlx import main

EVIL = "<script>alert(1)</script>"
TEXT = f"""
tt.func public @"{EVIL}"(%y: !tt.ptr<f32>) {{
  %c = arith.constant 1.0 : f32 loc("{EVIL}"("<img onerror=alert(1)>.py":1:1))
  tt.store %y, %c : !tt.ptr<f32>
  tt.return
}}
"""


def test_pictures_of_addresses(tmp_path, capsys):
    path, svg = tmp_path / "kernel.mlir", tmp_path / "picture.svg"
    path.write_text(TEXT)
    assert main(["addresses", str(path), "--grid", "1", "--shape", "y=4", "--svg", str(svg)]) == 0
    assert "<script" not in svg.read_text()
    assert "&lt;script&gt;" in svg.read_text()


def test_pages_of_modules_and_runs():
    page = module_page(parse_module(TEXT, filename=f"{EVIL}.mlir"))
    assert "<script>alert" not in page
    assert "<img onerror" not in page
    warning = Diagnostic("warning", EVIL, SourceLocation(f"{EVIL}.py", 1, 1), (EVIL,))
    assert "<script>alert" not in run_page({EVIL: EVIL}, [warning])


def test_traces_are_json(tmp_path):
    path = tmp_path / "trace.json"
    interpret_text(TEXT.replace(EVIL, "\\22<b>\\5C"), 1, [np.zeros(1, np.float32)], trace=path)
    json.loads(path.read_text())
