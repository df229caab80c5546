"""Copies of tasks: as the frontend makes them of `replicate=` in the source."""

import importlib.util
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, i32

from tlx_xdsl.dialects.tlx import ReplicaIdOp
from tlx_xdsl.dialects.tt import GetProgramIdOp
from tlx_xdsl.dialects.ttg import WarpSpecializeOp
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.transforms.rewriting import ops_of, replace

EXAMPLES = Path(__file__).parents[4] / "examples"


def built(folder: Path, name: str, source: str, kernel: str):
    (folder / f"{name}.py").write_text(source)
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    options = module.TLX_COMPILE[kernel]
    return build_module(
        source_of(getattr(module, kernel)), options["signature"], options["constexprs"], num_warps=options["num_warps"]
    )


@pytest.mark.parametrize(("example", "kernel"), [("hopper_gemm_ws", "matmul"), ("hopper_attention_ws", "attention")])
def test_the_copies_are_those_of_the_frontend(tmp_path, example, kernel):
    """One copy whose number is unknown (here a program id, until the pass is run) becomes what the source gives."""
    source = (EXAMPLES / f"{example}.py").read_text().replace("half: tl.constexpr", "half")
    one = source.replace("replicate=2", "replicate=1").replace("tlx.async_task_replica_id()", "tl.program_id(2)")
    assert "replicate=2" in source
    expected, module = (built(tmp_path, name, text, kernel) for name, text in (("two", source), ("one", one)))
    for number in ops_of(module, GetProgramIdOp):
        if number.axis.value.data == 2:
            replace(number, ReplicaIdOp()).result.name_hint = None
    (tasks,) = ops_of(module, WarpSpecializeOp)
    tasks.attributes["tlx.replicas"] = DenseArrayBase.from_list(i32, [2])
    pass_class("tlx-ws-replicate-tasks")().apply(Context(), module)
    module.verify()
    assert print_module(module, locations=False) == print_module(expected, locations=False)
