"""Every example, for every target, becomes TTGIR or is refused at one of its lines; the page about it is current."""

import re
from pathlib import Path

import pytest

from tests.unit.targets.page import PAGE, page
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.kernel import Kernel
from tlx_xdsl.targets import TARGETS
from tlx_xdsl.tools.launch_line.loading import load_kernel
from tlx_xdsl.tools.tlx import main

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*_*_*.py"))
SCRIPTS = {"check_on_gpu"}
REFUSAL = re.compile(r"tlx\.\w+.* needs .+ \(sm_\w+.*\); target is (?P<target>\w+)")
MADE_FOR = {
    "ampere": [target.name for target in TARGETS],
    "hopper": ["sm_90a"],
    "blackwell": ["sm_100a", "sm_103a", "sm_107a", "sm_110a"],
}


def refusal_of(kernel: Kernel, wanted: Specialization) -> CompilationError | None:
    try:
        compile_text(kernel.source, wanted, verify=False)
    except CompilationError as error:
        return error
    return None


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.stem not in SCRIPTS], ids=lambda each: each.stem)
def test_an_example_is_accepted_where_it_belongs_and_refused_in_words_elsewhere(example: Path):
    text = example.read_text()
    entry = re.search(r'TLX_COMPILE = \{\s*"(\w+)"', text)
    assert entry is not None
    kernel, defaults = load_kernel(f"{example}:{entry[1]}")
    accepted: list[str] = []
    for target in TARGETS:
        num_warps = defaults.options.get("num_warps", 4)
        wanted = Specialization(defaults.signature, defaults.constexprs, target.name, num_warps)
        error = refusal_of(kernel, wanted)
        if error is None:
            accepted.append(target.name)
            continue
        match = REFUSAL.fullmatch(error.message)
        assert match is not None, error.message
        assert match["target"] == target.name
        assert error.location is not None
        assert error.location.filename == str(example)
        assert "tlx." in text.splitlines()[error.location.line - 1]
    assert accepted == MADE_FOR[example.stem.partition("_")[0]]


@pytest.mark.parametrize("command", ["compile", "explain", "map"])
def test_every_command_knows_the_targets(command: str, capsys: pytest.CaptureFixture[str]):
    kernel = next(f"{path}:matmul" for path in EXAMPLES if path.stem == "hopper_gemm_ws")
    assert main([command, kernel, "--target", "sm_75"]) == 1
    assert capsys.readouterr().err.startswith("error: unknown target 'sm_75': the targets are sm_80, sm_86, ")
    assert main([command, kernel, "--target", "sm_89"]) == 1
    assert re.search(r"hopper_gemm_ws\.py:\d+:\d+: error: tlx\.\w+ needs ", capsys.readouterr().err)


def test_a_run_is_for_a_target_too(capsys: pytest.CaptureFixture[str]):
    kernel = f"{Path(__file__).parent / 'portable_kernels.py'}:row_norms"
    command = ["run", kernel, "--grid", "1", "--arg", "x_ptr=randn[16,64]", "--arg", "out_ptr=zeros[16]"]
    assert main([*command, "--arg", "columns=64", "--target", "sm_75"]) == 1
    assert capsys.readouterr().err.startswith("error: unknown target 'sm_75': the targets are sm_80, sm_86, ")
    assert main([*command, "--arg", "columns=64", "--target", "sm_86"]) == 0


def test_the_page_is_that_of_the_tables():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_a_target_that_the_version_s_ptxas_does_not_know_is_refused():
    kernel, defaults = load_kernel(f"{next(path for path in EXAMPLES if path.stem == 'ampere_gemm_pipelined')}:matmul")
    wanted = Specialization(defaults.signature, defaults.constexprs, "sm_110a", 4)
    with pytest.raises(CompilationError, match=r"sm_110a needs Triton 3\.7 or later, found Triton 3\.6$"):
        compile_text(kernel.source, wanted, triton_version="3.6.0")
    assert compile_text(kernel.source, wanted, triton_version="3.9.0").ttgir
