"""One arithmetic on all ways to a binary: command line, file, bundle, launch and sweep contract products alike."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tlx_xdsl.runtime.simulate.interpret import interpret
from tlx_xdsl.tools.tlx import main

pytestmark = pytest.mark.backend

KERNEL = """
import triton.language as tl
import tlx_xdsl


@tlx_xdsl.jit
def mad(x_ptr, y_ptr, z_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(z_ptr + i, tl.load(x_ptr + i) * tl.load(y_ptr + i) + tl.load(z_ptr + i))


TLX_COMPILE = {"mad": {"signature": dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "*fp32"), "constexprs": {"B": 128},
                       "enable_fp_fusion": FUSION}}
"""


FOUR_TYPES = """
import triton.language as tl
import tlx_xdsl


@tlx_xdsl.jit
def one(pointer):
    x = tl.load(pointer + tl.arange(0, 128))
    tl.store(pointer + tl.arange(0, 128), x * x + x)


@tlx_xdsl.jit
def mad(fp16, bf16, fp32, fp64):
    one(fp16)
    one(bf16)
    one(fp32)
    one(fp64)
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch) -> Path:
    monkeypatch.delenv("TRITON_DEFAULT_FP_FUSION", raising=False)
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "mad_kernel.py"
    path.write_text(KERNEL.replace("FUSION", "None"))
    return path


def fused(folder: Path) -> bool:
    return re.search(r"\bfma\.rn\.f32", (folder / "mad.ptx").read_text()) is not None


def test_a_command_line_compiles_the_arithmetic_of_launches(kernel, tmp_path, monkeypatch):
    out = tmp_path / "build"
    command = ["compile", f"{kernel}:mad", "-q", "-o", str(out)]
    for value, options, expected in (
        (None, (), True),
        (None, ("--no-fp-fusion",), False),
        ("0", (), False),
        ("0", ("--fp-fusion",), True),
    ):
        if value is not None:
            monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", value)
        assert main([*command, *options]) == 0
        assert fused(out) == expected, (value, options)
        assert json.loads((out / "mad.json").read_text())["enable_fp_fusion"] == expected
        assert main([*command[:3], "--bundle", str(tmp_path / "bundles"), *options]) == 0
        assert fused(tmp_path / "bundles" / "mad") == expected, (value, options)


FUSED = {"fma.rn.f16": 1, "fma.rn.bf16": 1, "fma.rn.f32": 1, "fma.rn.f64": 1}
APART = {f"{op}.rn.{each}": 1 for op in ("mul", "add") for each in ("f16", "f32", "f64")}
# Before sm_90a there is no other instruction of bf16: it multiplies, or adds to a product with 1.
GOLDEN = {
    ("sm_80", True): FUSED,
    ("sm_80", False): APART | {"fma.rn.bf16": 2},
    ("sm_90a", True): FUSED,
    ("sm_90a", False): APART | {"mul.rn.bf16": 1, "add.rn.bf16": 1},
}


@pytest.mark.parametrize(("target", "fusion"), GOLDEN)
def test_the_instructions_of_either(kernel, tmp_path, target, fusion):
    kernel.write_text(FOUR_TYPES)
    types = ",".join(f"{name}=*{name}" for name in ("fp16", "bf16", "fp32", "fp64"))
    command = ["compile", f"{kernel}:mad", "-q", "-o", str(tmp_path), "--emit", "ptx", "--signature", types]
    assert main([*command, "--target", target, "--fp-fusion" if fusion else "--no-fp-fusion"]) == 0
    found = Counter(re.findall(r"\b(?:fma|mul|add)\.rn\.\w+", (tmp_path / "mad.ptx").read_text()))
    assert found == GOLDEN[target, fusion]


def test_a_file_says_it_too(kernel, tmp_path, capsys):
    kernel.write_text(KERNEL.replace("FUSION", "False"))
    assert main(["compile", f"{kernel}:mad", "-q", "-o", str(tmp_path)]) == 0
    assert not fused(tmp_path)
    kernel.write_text(KERNEL.replace("FUSION", "'no'"))
    assert main(["compile", f"{kernel}:mad", "-q", "-o", str(tmp_path)]) == 1
    assert "TLX_COMPILE['mad']['enable_fp_fusion'] must be True, False or None, found 'no'" in capsys.readouterr().err


def test_the_machine_of_ptx_runs_either(kernel, tmp_path):
    from tlx_xdsl.tools.launch_line.loading import load_kernel

    mad = load_kernel(f"{kernel}:mad")[0]
    x = np.full(128, 1 + 2.0**-12, np.float32)
    z = np.full(128, -1, np.float32)
    rounded = x * x + z
    for options, same in (
        ({"stage": "ptx", "enable_fp_fusion": False}, True),
        ({"stage": "ptx", "enable_fp_fusion": True}, False),
        # The interpreter has the arithmetic of no fusion.
        ({}, True),
    ):
        result = z.copy()
        interpret(mad, 1, x, x, result, 128, **options)
        assert (result == rounded).all() == same


def test_a_sweep_chooses_it(kernel, capsys):
    assert main(["sweep", f"{kernel}:mad", "--set", "enable_fp_fusion=True,False", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["configurations"]
    assert [each["settings"] for each in found] == [{"enable_fp_fusion": True}, {"enable_fp_fusion": False}]
    assert [each["same_as"] for each in found] == [None, None]
