"""Going through the pipeline by hand ends where the compiler ends, and edits take effect."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.steps import EDITED, first_step
from tlx_xdsl.text.located import located_lines
from tlx_xdsl.transforms.pipelines import ttgir_pipeline


@tlx_xdsl.jit
def shifted(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    buffers = tlx.local_alloc((N,), tl.int32, 1)
    tlx.local_store(buffers[0], tl.load(x_ptr + at) + 7)
    tl.store(y_ptr + at, tlx.local_load(buffers[0]))


@tlx_xdsl.jit
def plain(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 1)


SIGNATURE, CONSTEXPRS = {"x_ptr": "*i32", "y_ptr": "*i32"}, {"N": 64}


@pytest.fixture
def frontend():
    return first_step(shifted, SIGNATURE, CONSTEXPRS)


def run(step):
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, dtype=np.int32)
    step.interpret(1, [x, y])
    return y - x


def test_steps_are_the_passes_of_the_pipeline(frontend):
    assert frontend.name == "frontend"
    assert frontend.remaining == tuple(each.name for each in ttgir_pipeline())
    path = frontend.finish().path
    assert [step.name for step in path] == ["frontend", *frontend.remaining]
    assert [step.before for step in path] == [None, *path[:-1]]


@pytest.mark.parametrize("version", [None, "3.6.0", "3.8.0", "3.9.0"])
def test_the_last_step_is_what_the_compiler_makes(version):
    step = first_step(shifted, SIGNATURE, CONSTEXPRS, triton_version=version).finish()
    assert step.ttgir == shifted.compile(SIGNATURE, CONSTEXPRS, triton_version=version).ttgir


def test_a_plain_kernel_ends_as_the_compiler_ends_it():
    step = first_step(plain, {"x_ptr": "*i32"}, {"N": 64}).finish()
    assert step.ttgir == plain.compile({"x_ptr": "*i32"}, {"N": 64}).ttgir
    assert "ttg." not in step.ttgir


def test_to_goes_forward_and_back(frontend):
    there = frontend.to("expand-negf")
    assert there.name == "expand-negf"
    assert there.to("frontend") is frontend
    assert "convert-triton-to-tritongpu" not in there.to("convert-triton-to-tritongpu").remaining
    # An older name of a pass.
    assert there.to("tlx-barrier-lifecycle").name == "tlx-end-barrier-lifetimes"


def test_a_step_is_not_changed_by_what_happens_to_its_module(frontend):
    module = frontend.module()
    module.body.block.first_op.detach()
    assert frontend.module().body.block.first_op is not None
    before = frontend.printed
    frontend.finish()
    assert frontend.printed == before


def test_diff_and_changes_name_the_pass(frontend):
    assert frontend.diff() == ""
    assert frontend.changes() == ""
    assert frontend.next().changes() == "nothing"
    step = frontend.to("convert-triton-to-tritongpu")
    assert any(line.startswith("+") and line.endswith("#blocked>") for line in step.diff().splitlines())
    assert step.diff(frontend).startswith("--- before convert-triton-to-tritongpu")


def test_an_edit_goes_through_the_remaining_passes(frontend):
    step = frontend.to("expand-negf")
    edited = step.edited(step.text.replace("constant 7 :", "constant 9 :"))
    assert edited.name == EDITED
    assert edited.remaining == step.remaining
    assert edited.diff().count("constant 9") == 1
    for each, shift in ((step, 7), (step.finish(), 7), (edited, 9), (edited.finish(), 9)):
        np.testing.assert_array_equal(run(each), np.full(64, shift))


def test_lines_that_were_not_touched_keep_their_place(frontend):
    step = frontend.to("expand-negf")
    new = "    %more = arith.addi %c7, %c7 : i32\n"
    at = step.text.index("    %at = ")
    edited = step.edited(step.text[:at] + new + step.text[at:])
    places = {line.text.strip(): line.place for line in located_lines(step.module())}
    again = {line.text.strip(): line.place for line in located_lines(edited.module())}
    added = again.pop(new.strip())
    assert str(added) == f"expand-negf.mlir:{step.text[:at].count(chr(10)) + 1}:13"
    assert again == places


def test_an_edit_that_is_no_ir_is_reported_in_the_text(frontend):
    step = frontend.to("expand-negf")
    with pytest.raises(CompilationError, match=r"^expand-negf\.mlir:\d+:\d+: error: unknown operation 'tt\.lod'"):
        step.edited(step.text.replace("tt.load", "tt.lod"))
    with pytest.raises(CompilationError, match=r"^expand-negf\.mlir:\d+:\d+: error: .*has 65 elements"):
        step.edited(step.text.replace("end = 64", "end = 65", 1))


def test_what_is_not_there_is_refused(frontend):
    with pytest.raises(CompilationError, match=r"expected a pass .*\(frontend, .*-lifetimes, .*found 'nope'"):
        frontend.to("nope")
    with pytest.raises(CompilationError, match=f"no pass is left to run after '{frontend.remaining[-1]}'"):
        frontend.finish().next()
    with pytest.raises(CompilationError, match=f"this is not the last step: {frontend.remaining[0]}, "):
        frontend.ttgir  # noqa: B018


def test_a_pass_that_refuses_names_the_kernel_s_line():
    @tlx_xdsl.jit
    def too_big(y_ptr, N: tl.constexpr):
        buffers = tlx.local_alloc((N,), tl.int32, 1)
        tl.store(y_ptr + tl.arange(0, N), tlx.local_load(buffers[0]))

    with pytest.raises(CompilationError, match=r"test_steps\.py:\d+:\d+: error: .*shared memory"):
        first_step(too_big, {"y_ptr": "*i32"}, {"N": 1 << 17}).finish()


def test_the_memory_of_a_step(frontend):
    (map_,) = frontend.storage_maps()
    assert map_.used("smem") == 256
