"""Questions about the target are answered at compile time: only the chosen branch is in the IR."""

import pytest

from tests.unit.frontend.kernels import body, load, source_of
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.text.printer import print_module

KERNEL = """
@tlx_xdsl.jit
def kernel(out):
    if tl.target_info.cuda_capability_geq(10):
        tl.store(out, 10)
    elif tl.target_info.cuda_capability_geq(9, 0):
        tl.store(out, 9)
    else:
        tl.store(out, 8)
    tl.static_assert(tl.target_info.is_cuda())
    tl.static_assert(not tl.target_info.is_hip())
    tl.store(out + 1, tl.target_info.current_target().arch)
    tl.store(out + 2, tl.target_info.current_target().warp_size)
"""


@pytest.mark.parametrize(("capability", "branch"), [(80, 8), (89, 8), (90, 9), (100, 10), (120, 10)])
def test_the_target_chooses_a_branch_and_names_itself(tmp_path, capability, branch):
    source = source_of(load(tmp_path, KERNEL).kernel)
    module = build_module(source, {"out": "*i32"}, {}, capability=capability)
    text = print_module(module, locations=False)
    stored = [line for line in body(text) if line.startswith("tt.store")]
    constants = [line.split()[3] for line in body(text) if "arith.constant" in line]
    assert len(stored) == 3
    assert {str(branch), str(capability), "32"} <= set(constants)
    assert not {"8", "9", "10"} - {str(branch)} & set(constants)
