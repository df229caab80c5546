"""Annotations that name what only type checkers have: text, and from Python 3.14 on computed when asked for."""

import importlib.util
import sys

import numpy as np
import pytest

from tlx_xdsl.annotations import annotated_signature, annotations_of, text_of

pytestmark = pytest.mark.quick

KERNELS = """
from typing import TYPE_CHECKING

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.ttl import language as ttl

if TYPE_CHECKING:
    from somewhere import Pointer, constexpr


@tl.core._aggregate
class Step:
    by: Pointer
    TIMES: constexpr


@tlx_xdsl.jit
def bump(x: Pointer, BLOCK: constexpr):
    step = Step(2, 3)
    at = x + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) + step.by * step.TIMES)


@ttl.kernel(grid=(1, 1))
def tiles(a: Pointer, out: Pointer):
    pass
"""

HEADERS = ["from __future__ import annotations\n"]
if sys.version_info >= (3, 14):
    HEADERS.append("")


@pytest.fixture(params=HEADERS, ids=["text", "late"][: len(HEADERS)])
def module(request, tmp_path, monkeypatch):
    path = tmp_path / "annotated.py"
    path.write_text(request.param + KERNELS, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("annotated", path)
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "annotated", found)
    spec.loader.exec_module(found)
    return found


def test_a_kernel_runs(module):
    x = np.arange(4, dtype=np.int32)
    module.bump.interpret(1, x, BLOCK=4)
    assert x.tolist() == [6, 7, 8, 9]


def test_annotations_that_are_not_computed_have_a_text(module):
    assert {name: text_of(each) for name, each in annotations_of(module.Step).items()} == {
        "by": "Pointer",
        "TIMES": "constexpr",
    }
    signature = annotated_signature(module.bump.source.fn)
    assert [text_of(each.annotation) for each in signature.parameters.values()] == ["Pointer", "constexpr"]
    assert text_of(int) is None


def test_a_ttl_kernel_has_its_parameters(module):
    from tlx_xdsl.ttl.runtime.specs import annotated, parameters

    assert parameters(module.tiles) == ("a", "out")
    assert annotated(module.tiles) == {}
