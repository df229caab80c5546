"""Plans of `gemm`: a call that finds its plan gives the driver what the first call with its tensors does."""

import itertools

import pytest

from tests.unit.kernels import stand_in_torch
from tests.unit.kernels.stand_in_torch import Tensor
from tlx_xdsl.kernels.calls.planned_function import PlannedFunction
from tlx_xdsl.kernels.calls.workspaces import WORKSPACES
from tlx_xdsl.kernels.gemm.dense import _prepare

pytestmark = pytest.mark.quick


@pytest.fixture
def torch(monkeypatch):
    yield stand_in_torch.install(monkeypatch)
    WORKSPACES.clear()


def matrix(rows, columns, at, by_columns=False):
    return matrix(columns, rows, at).T if by_columns else Tensor((rows, columns), at)


def last_call(torch, tensors, options, function):
    """Return the launches that the driver was given: kernels, grids, streams and parameters."""
    before = len(torch.cuda.launches)
    function(tensors, options)
    return torch.cuda.launches[before:]


def planned():
    return PlannedFunction("gemm", _prepare, results=2)


LAYOUTS = list(itertools.product((False, True), repeat=3))
PLAIN = (0, None, None, None)


def check(torch, make, options):
    """Compare a call on one set of tensors, repeated on another, with the first call on that; return the launches."""
    function = planned()
    last_call(torch, make(0x10000000), options, function)
    repeated = last_call(torch, make(0x90000000), options, function)
    assert len(function._plans) == 1
    assert repeated == last_call(torch, make(0x90000000), options, planned())
    return len(repeated)


SHAPES = [(1024, 1304, 712), (512, 512, 16384), (16, 8192, 8192), (1001, 1303, 711)]
"""Whole tiles, K in pieces, few rows, and rows that TMA can't read."""


@pytest.mark.parametrize("by_columns", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_layouts_and_shapes(torch, shape, by_columns):
    m, n, k = shape

    def make(at):
        sizes = ((m, k), (k, n), (m, n))
        return (*(matrix(*size, at + 0x8000000 * i, by_columns[i]) for i, size in enumerate(sizes)), None)

    assert check(torch, make, PLAIN) >= (2 if k == 16384 else 1)


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("k", [712, 16384])
def test_operands_of_epilogues(torch, k, by_columns):
    def make(at):
        a, b, c, matrix_ = (
            matrix(*size, at + 0x8000000 * i, by_columns and i > 1)
            for i, size in enumerate(((512, k), (k, 512), (512, 512), (512, 512)))
        )
        return a, b, c, matrix_

    check(torch, make, (0, "residual", None, None))

    def scaled(at):
        return (*make(at)[:3], None, Tensor((512,), at + 0x30000000), Tensor((512,), at + 0x40000000))

    check(torch, scaled, (1, "scale_both", None, None))


def test_a_matrix_times_itself(torch):
    """Both factors start at the same; the plan serves a pair as well."""
    function = planned()
    a, b, c = (matrix(512, 512, 0x1000000 * at) for at in (1, 2, 3))
    last_call(torch, (a, a, c, None), PLAIN, function)
    repeated = last_call(torch, (a, b, c, None), PLAIN, function)
    assert repeated == last_call(torch, (a, b, c, None), PLAIN, planned())
