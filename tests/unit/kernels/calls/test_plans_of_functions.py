"""Plans of rows, and of attention to caches and of sequences: a later call gives the driver what its first would.

The oracle is the first call on the same tensors, of a function without plans. Functions that always allocate their
results are not among these: the stand-in puts those of a first call and of later ones at different addresses.
"""

import pytest

from tests.unit.kernels import stand_in_torch
from tests.unit.kernels.attention.test_attention_plan import check
from tests.unit.kernels.stand_in_torch import Dtype, Tensor
from tlx_xdsl.kernels.attention import varlen
from tlx_xdsl.kernels.attention.decode import call as decode, mla
from tlx_xdsl.kernels.attention.options import Options
from tlx_xdsl.kernels.calls.planned_function import PlannedFunction
from tlx_xdsl.kernels.calls.workspaces import WORKSPACES
from tlx_xdsl.kernels.rows import norm, softmax, swiglu

pytestmark = pytest.mark.quick

HALF, FULL, INT, E4M3 = (Dtype(f"torch.{name}") for name in ("float16", "float32", "int32", "float8_e4m3fn"))
PLAIN = Options()


@pytest.fixture
def torch(monkeypatch):
    yield stand_in_torch.install(monkeypatch)
    WORKSPACES.clear()


def row_cases(columns):
    """Functions of rows of so many columns: what prepares them, tensors by shape and type, options."""
    x, w = ((64, columns), HALF), ((columns,), HALF)
    return {
        "softmax": (softmax._prepare, (x, x), ()),
        "layer_norm": (norm.LAYER_NORM.prepare, (x, w, w, x), (1e-5,)),
        "swiglu": (swiglu._prepare, (x, x, x), ()),
        "swiglu_backward": (swiglu._prepare_backward, (x, x, x, x, x), ()),
    }  # fmt: skip


Q, CACHE, SUMS = ((2, 8, 3, 128), HALF), ((2, 2, 300, 128), HALF), ((3,), INT)
PAGES, IN_8_BITS = ((9, 2, 64, 128), HALF), ((2, 2, 300, 128), E4M3)
ROWS = ((200, 4, 64), HALF)

ATTENTION = {
    "decode": (decode._prepare, (Q, CACHE, CACHE, Q, ((2,), INT), None, None, None), (True, None, None, None)),
    "decode in pages": (decode._prepare, (Q, PAGES, PAGES, Q, None, ((2, 4), INT), None, None), (True, 9, None, None)),
    "decode in 8 bits": (
        decode._prepare, (Q, IN_8_BITS, IN_8_BITS, Q, None, None, ((2,), FULL), ((1,), FULL)), (True, None, None, None),
    ),
    "mla": (
        mla._prepare, (((2, 8, 1, 192), HALF), ((2, 1, 300, 192), HALF), ((2, 8, 1, 128), HALF), ((2,), INT), None),
        (128, 0.1, False),
    ),
    "varlen": (
        varlen._prepare, (ROWS, ROWS, ROWS, ROWS, ((4, 200), FULL), SUMS, SUMS, ((4,), FULL)), (PLAIN, None, None),
    ),
    "varlen of a function with tensors": (
        varlen._prepare,
        (ROWS, ROWS, ROWS, ROWS, ((4, 200), FULL), SUMS, SUMS, None, ((4,), FULL), ((5,), FULL)),
        (Options(softcap=2.0, numbers=(None, 0.5, None)), None, None),
    ),
}  # fmt: skip

CASES = {f"{name} of {columns}": each for columns in (81, 1000, 65536) for name, each in row_cases(columns).items()}
CASES |= ATTENTION


@pytest.mark.parametrize("name", CASES)
def test_a_plan_does_what_the_first_call_does(torch, name):
    prepare, described, options = CASES[name]

    def make(at):
        places = [at + 0x4000000 * index for index in range(len(described))]
        return tuple(each and Tensor(each[0], place, each[1]) for each, place in zip(described, places, strict=True))

    found = check(torch, lambda: PlannedFunction(name, prepare, results=0), make, options)
    assert all(launch.parameters for launch in found)
