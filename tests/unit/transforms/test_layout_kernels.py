"""Kernels with layouts of their own: right before and behind every pass over layouts, and compiled by stock Triton."""

import copy

import numpy as np
import pytest

import tlx_xdsl
from tests.unit.interpreter.cluster_runs import mx
from tests.unit.transforms.layout_kernels import CASES
from tlx_xdsl.backend import BackendOptions, compile_ttgir, installed_triton_version
from tlx_xdsl.frontend.foreign import source_of
from tlx_xdsl.runtime.compilation import Specialization, compile_text
from tlx_xdsl.runtime.host_values import signature_of

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
    return compile_text(source_of(case.kernel), wanted, triton_version=installed_triton_version())


@pytest.mark.backend
@pytest.mark.parametrize("a_format", ["e4m3", "e2m1"])
def test_stock_triton_compiles_block_scales_that_tma_brings(a_format):
    case = mx(a_format=a_format)
    source = source_of(case.kernel)
    names = [parameter.name for parameter in source.parameters]
    signature = {name: signature_of(name, value) for name, value in zip(names, case.arguments, strict=False)}
    wanted = Specialization(signature, case.constexprs, target="sm_100a")
    text = compile_text(source, wanted, triton_version=installed_triton_version()).ttgir
    assert compile_ttgir(text, BackendOptions(target="sm_100a")).cubin


@pytest.mark.backend
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_stock_triton_compiles_it(case):
    version = tuple(map(int, installed_triton_version().split(".")[:2]))
    if version < case.since:
        pytest.skip(f"Triton {version} can't compile it")
    assert compile_ttgir(compiled(case).ttgir, BackendOptions(target=case.target)).cubin
