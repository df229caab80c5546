"""`scaled_gemm` as an operator of torch, on the CPU: its kernels run in the interpreter. Skipped without torch."""

import pytest

from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm
from tlx_xdsl.kernels.gemm.scaled.config import CONFIGS
from tlx_xdsl.kernels.operators import as_text

torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

OPS = torch.ops.tlx_xdsl
CHECKS = ("test_autograd_registration", "test_faketensor")
"""Those of torch that know 8-bit floats on a CPU."""


def eight_bits(rows, columns):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows)).to(torch.float8_e4m3fn)


A, B, ONE = eight_bits(40, 256), eight_bits(44, 256).t(), torch.ones(1)


def test_opcheck():
    blocks = torch.rand(2, 40).t(), torch.rand(2, 1)
    given = (A, B, *blocks, False, torch.bfloat16, as_text(CONFIGS["small"]))
    torch.library.opcheck(OPS.scaled_gemm.default, given, test_utils=CHECKS)
    given = (A, B, ONE, ONE, True, torch.float32, "", torch.empty(40, 44))
    torch.library.opcheck(OPS.scaled_gemm_out.default, given, test_utils=CHECKS)


def test_in_a_compiled_graph():
    fn = torch.compile(lambda a, b, scale: scaled_gemm(a, b, scale, ONE) * 2, fullgraph=True, backend="aot_eager")
    expected = A.float() @ B.float() * 6
    assert (fn(A, B, ONE * 3) - expected).norm() < 4e-3 * expected.norm()


def test_there_is_no_gradient():
    with pytest.raises(RuntimeError, match="scaled_gemm: there is no gradient"):
        scaled_gemm(A, B, ONE.clone().requires_grad_(), ONE).float().sum().backward()
    with pytest.raises(RuntimeError, match="argument 'out': expected none where a tensor wants a gradient"):
        scaled_gemm(A, B, ONE.clone().requires_grad_(), ONE, out=torch.empty(40, 44))
