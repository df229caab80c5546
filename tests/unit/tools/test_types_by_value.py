"""Arguments by value: every command takes what `tlx run` takes, and so do the methods of a kernel."""

import json
from pathlib import Path

import numpy as np
import pytest

from tlx_xdsl import TensorDescriptor
from tlx_xdsl.tools.launch_line.loading import load_kernel
from tlx_xdsl.tools.launch_line.request import assignments
from tlx_xdsl.tools.tlx import main

KERNEL = """
import triton.language as tl
import tlx_xdsl


@tlx_xdsl.jit
def scale(x_ptr, y_ptr, N, stride, factor, BLOCK: tl.constexpr, DTYPE: tl.constexpr = tl.float32):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < N, other=0.0)
    tl.store(y_ptr + row * stride + i, x.to(DTYPE) * factor, mask=i < N)
"""

VALUES = [
    "--size", "N=500", "--arg", "x_ptr=randn:fp16[4,512],y_ptr=zeros:fp32[4,512]", "--arg", "stride=512",
    "--arg", "factor=2.0", "--arg", "BLOCK=512",
]  # fmt: skip


@pytest.fixture
def kernel(tmp_path, monkeypatch) -> str:
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("scale.py").write_text(KERNEL)
    return "scale.py:scale"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["run", "--grid", "4"], "4 programs in"),
        (["check", "--grid", "4", "--seconds", "0.2"], "nothing found"),
        (["compile", "--emit", "ttir", "-o", "-"], "x_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}"),
        (["explain"], "scale for sm_90a"),
        (["reverse", "--stage", "frontend"], "def scale("),
        (["addresses", "--grid", "4"], "x_ptr"),
    ],
)
def test_one_command_line_for_all_commands(kernel, capsys, command, expected):
    name, *rest = command
    assert main([name, kernel, *VALUES, *rest]) == 0, capsys.readouterr().err
    assert expected in capsys.readouterr().out.replace("%", "")


@pytest.mark.backend
def test_a_sweep_takes_values(kernel, capsys):
    assert main(["sweep", kernel, *VALUES, "--set", "num_warps=1,2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["configurations"]) == 2


def test_types_are_those_of_a_launch(kernel, capsys):
    assert main(["compile", kernel, *VALUES, "--emit", "ttir", "-o", "-"]) == 0
    of_command = capsys.readouterr().out
    scale = load_kernel(kernel)[0]
    x, y = np.zeros((4, 512), np.float16), np.zeros((4, 512), np.float32)
    assert scale.compile(x, y, 500, 512, 2.0, BLOCK=512).ttir.splitlines()[2:10] != []
    entry = scale.signature_of(x, y, 500, 512, 2.0, BLOCK=512, num_warps=8)
    assert entry == {
        "signature": {"x_ptr": "*fp16:16", "y_ptr": "*fp32:16", "N": "i32", "stride": "i32:16", "factor": "fp32"},
        "constexprs": {"BLOCK": 512},
        "num_warps": 8,
    }
    # The entry stands for the arguments, in the file as on the command line.
    Path("scale.py").write_text(f"{KERNEL}\n\nTLX_COMPILE = {{'scale': { ({**entry, 'num_warps': 4})!r}}}\n")
    assert main(["compile", kernel, "--emit", "ttir", "-o", "-"]) == 0
    assert capsys.readouterr().out == of_command


def test_what_is_written_out_comes_before_what_a_value_says(kernel, capsys):
    assert main(["compile", kernel, *VALUES, "--signature", "N=i64,stride=i32", "--emit", "ttir", "-o", "-"]) == 0
    text = capsys.readouterr().out
    assert "N: i64" in text.replace("%", "")


def test_an_array_is_not_made_for_its_type(kernel, capsys):
    # A terabyte: only its type is looked at.
    huge = [each.replace("randn:fp16[4,512]", "randn:fp16[4096,131072]") for each in VALUES]
    assert main(["compile", kernel, *huge, "--emit", "ttir", "-o", "-"]) == 0


def test_a_list_of_types_is_one_argument():
    assert assignments(["a=*fp16:16, b=tensordesc<fp16[64, 64]>,c=i32", "d=(*fp16, i32)"], "--signature") == {
        "a": "*fp16:16", "b": "tensordesc<fp16[64, 64]>", "c": "i32", "d": "(*fp16, i32)",
    }  # fmt: skip
    assert assignments(["a='x,b=1',c=2"], "--constexpr") == {"a": "'x,b=1'", "c": "2"}
    assert assignments(["out=x==y"], "--check") == {"out": "x==y"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--arg", "x=randn:fp16[4]"], "--arg: 'scale' has no parameter 'x', its parameters are x_ptr, y_ptr"),
        (["--arg", "strid=4"], "--arg: 'scale' has no parameter 'strid', did you mean 'stride'?"),
        (["--arg", "x_ptr=randn:fp17[4]"], "expected an element type such as fp16"),
        (["--size", "M=5"], "--size: no parameter, --arg, --constexpr or --grid names 'M'"),
    ],
)
def test_what_does_not_fit_is_said(kernel, capsys, arguments, said):
    assert main(["compile", kernel, *arguments]) == 1
    assert said in capsys.readouterr().err


def test_a_kernel_says_which_names_it_knows(kernel):
    scale = load_kernel(kernel)[0]
    x = np.zeros(512, np.float32)
    with pytest.raises(TypeError, match="'scale' has no parameter 'stride_x', did you mean 'stride'\\?"):
        scale.interpret(1, x, x, N=512, stride_x=512, factor=1.0, BLOCK=512)
    with pytest.raises(TypeError, match="'scale' has no parameter 'block', did you mean"):
        scale.interpret(1, x, x, 512, 512, 1.0, block=512)
    with pytest.raises(TypeError, match="no parameter 'shedule', did you mean 'schedule'"):
        scale.interpret(1, x, x, 512, 512, 1.0, 512, shedule="random")
    with pytest.raises(TypeError, match="options: there is no option 'sed', did you mean 'seed'"):
        scale.check(1, x, x, 512, 512, 1.0, 512, options={"sed": 1})
    with pytest.raises(TypeError, match="no parameter 'num_warp', did you mean 'num_warps'"):
        scale.compile(x, x, 512, 512, 1.0, 512, num_warp=8)


def test_descriptors_are_described_by_value(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mover.py").write_text(
        "import triton.language as tl\nimport tlx_xdsl\n\n\n@tlx_xdsl.jit\ndef move(src, dst):\n"
        "    dst.store([0, 0], src.load([0, 0]))\n"
    )
    given = "desc(randn:fp16[64,64], [32,32])"
    arguments = ["--arg", f"src={given}", "--arg", f"dst={given}"]
    assert main(["compile", "mover.py:move", *arguments, "--emit", "ttir", "-o", "-"]) == 0
    assert "tensordesc<32x32xf16>" in capsys.readouterr().out
    descriptor = TensorDescriptor.from_tensor(np.zeros((64, 64), np.float16), [32, 32])
    entry = load_kernel("mover.py:move")[0].signature_of(descriptor, descriptor)
    assert entry["signature"] == dict.fromkeys(("src", "dst"), "tensordesc<fp16[32, 32]>")
