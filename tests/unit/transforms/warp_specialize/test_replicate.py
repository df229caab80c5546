"""Copies of tasks: as the frontend makes them of `replicate=` in the source."""

import importlib.util
from pathlib import Path

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


def built(path: Path, kernel: str):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    options = module.TLX_COMPILE[kernel]
    return build_module(
        source_of(getattr(module, kernel)), options["signature"], options["constexprs"], num_warps=options["num_warps"]
    )


def test_the_copies_are_those_of_the_frontend(tmp_path):
    """One copy whose number is unknown (here a program id, until the pass is run) becomes what the source gives."""
    source = (EXAMPLES / "hopper_gemm_ws.py").read_text()
    assert "replicate=2" in source
    expected = built(EXAMPLES / "hopper_gemm_ws.py", "matmul")
    one = source.replace("replicate=2", "replicate=1").replace("tlx.async_task_replica_id()", "tl.program_id(2)")
    (tmp_path / "one.py").write_text(one)
    module = built(tmp_path / "one.py", "matmul")
    for number in ops_of(module, GetProgramIdOp):
        if number.axis.value.data == 2:
            replace(number, ReplicaIdOp()).result.name_hint = None
    (tasks,) = ops_of(module, WarpSpecializeOp)
    tasks.attributes["tlx.replicas"] = DenseArrayBase.from_list(i32, [2])
    pass_class("tlx-ws-replicate-tasks")().apply(Context(), module)
    module.verify()
    assert print_module(module, locations=False) == print_module(expected, locations=False)
