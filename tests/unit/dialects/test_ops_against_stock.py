"""Every operation of the newest Triton, also without a kernel in the corpus: stock Triton reads what we print of it.

The texts are those of tests/filecheck/dialects. Both our pretty and our generic form must mean to stock Triton what
the original means.
"""

from pathlib import Path

import pytest

pytest.importorskip("triton", reason="stock Triton is not installed")

from tests.corpus.stock import reprint_in_subprocess
from tests.versions import NEWEST, only_on
from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

pytestmark = [
    pytest.mark.backend,
    only_on(NEWEST, "the operations are those of"),
]

FILECHECK = Path(__file__).parents[2] / "filecheck" / "dialects"
FILES = ("tt_ops", "ttg_ops", "ttng_ops", "ttng_cluster_ops", "arith_ops", "other_ops")
OLDER = {"tt.advance", "tt.make_tensor_ptr", "ttg.local_barrier", "ttng.cluster_arrive", "ttng.cluster_wait"}


@pytest.fixture(scope="module")
def modules():
    parsed = {name: parse_module((FILECHECK / f"{name}.mlir").read_text(), filename=name) for name in FILES}
    for module in parsed.values():
        verify_module(module)
    return parsed


def test_every_operation_stands_in_a_file(modules):
    found = {op.name for module in modules.values() for op in module.walk()}
    defined = {op.name for dialect in (tt.TT, ttg.TTG, ttng.TTNG) for op in dialect.operations}
    assert defined - found == OLDER


@pytest.mark.parametrize("generic", [False, True], ids=["pretty", "generic"])
def test_stock_reads_what_we_print(modules, generic):
    originals = reprint_in_subprocess([(FILECHECK / f"{name}.mlir").read_text() for name in FILES])
    ours = reprint_in_subprocess([print_module(modules[name], locations=False, generic=generic) for name in FILES])
    for name, original, answer in zip(FILES, originals, ours, strict=True):
        assert original.error == answer.error == "", name
        assert without_locations(answer.text) == without_locations(original.text), name


def without_locations(text: str) -> list[str]:
    """The lines of what stock prints, without where they come from."""
    lines = [line.split(" loc(")[0] for line in text.splitlines() if not line.startswith("#loc")]
    return [line for line in lines if line]
