"""Kernels with layouts of their own: right before and after every pass over layouts, and compiled by stock Triton."""

# covers: tlx-insert-require-layout, tlx-propagate-layout, tlx-resolve-placeholder-layouts, tlx-finalize-user-layouts

import copy

import numpy as np
import pytest

import tlx_xdsl
from tests.gallery.synchronisation.cluster_runs import mx
from tests.unit.transforms.layout_kernels import CASES
from tests.versions import INSTALLED, RELEASE
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.driver.host_values import signature_of

STAGES = ["frontend", "tlx-propagate-layout", "tlx-finalize-user-layouts", "ttgir"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_stage_is_right(case):
    inputs = {name: value for name, value in case.arguments.items() if name != "out"}
    expected = np.asarray(case.expected(**inputs)).astype(np.float64)
    for stage in STAGES:
        arguments = copy.deepcopy(case.arguments)
        options = {"target": case.target, "jobs": 1, "stage": stage}
        tlx_xdsl.interpret(case.kernel, 1, **arguments, **case.constexprs, options=options)
        error = np.abs(arguments["out"].astype(np.float64) - expected).max()
        assert error <= case.tolerance * np.abs(expected).max(), stage


def compiled(case):
    signature = {name: signature_of(name, value) for name, value in case.arguments.items()}
    wanted = Specialization(signature, case.constexprs, target=case.target)
    return compile_text(source_of(case.kernel), wanted, triton_version=INSTALLED)


@pytest.mark.backend
@pytest.mark.parametrize("a_format", ["e4m3", "e2m1"])
def test_stock_triton_compiles_block_scales_that_tma_brings(a_format):
    case = mx(a_format=a_format)
    source = source_of(case.kernel)
    names = [parameter.name for parameter in source.parameters]
    signature = {name: signature_of(name, value) for name, value in zip(names, case.arguments, strict=False)}
    wanted = Specialization(signature, case.constexprs, target="sm_100a")
    text = compile_text(source, wanted, triton_version=INSTALLED).ttgir
    assert compile_ttgir(text, BackendOptions(target="sm_100a")).cubin


@pytest.mark.backend
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_stock_triton_compiles_it(case):
    if case.since > RELEASE:
        pytest.skip(f"Triton {INSTALLED} can't compile it")
    assert compile_ttgir(compiled(case).ttgir, BackendOptions(target=case.target)).cubin
