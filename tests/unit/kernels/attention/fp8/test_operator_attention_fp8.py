"""`attention_forward` of e4m3 tensors as an operator of torch, in the interpreter. Skipped without torch."""

import pytest

from tlx_xdsl.kernels.attention.config import choose_fp8_config
from tlx_xdsl.kernels.attention.forward import attention_forward
from tlx_xdsl.kernels.operators import as_text

torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

OPS = torch.ops.tlx_xdsl
CHECKS = ("test_autograd_registration", "test_faketensor")
"""Those of torch that know 8-bit floats on a CPU."""

Q = torch.randn(1, 2, 40, 64, generator=torch.Generator().manual_seed(0)).to(torch.float8_e4m3fn)
SCALE = torch.full((2,), 0.5)


def expected(scale):
    q = Q.float()
    return torch.nn.functional.scaled_dot_product_attention(q * scale, q, q * scale, is_causal=True)


def test_opcheck():
    given = (Q, Q.clone(), Q.clone(), None, SCALE, None, True, 0.1, torch.float16, as_text(choose_fp8_config(64, True)))
    torch.library.opcheck(OPS.attention_forward_fp8.default, given, test_utils=CHECKS)
    results = torch.empty(Q.shape, dtype=torch.float16), torch.empty(Q.shape[:3])
    torch.library.opcheck(OPS.attention_forward_fp8_out.default, (*given, *results), test_utils=CHECKS)


def test_in_a_compiled_graph():
    fn = torch.compile(
        lambda q, scale: attention_forward(q, q, q, q_scale=scale, v_scale=scale, causal=True).float() * 2,
        fullgraph=True, backend="aot_eager",
    )  # fmt: skip
    wanted = expected(0.5) * 2
    assert (fn(Q, SCALE) - wanted).norm() < 0.03 * wanted.norm()


def test_there_is_no_gradient():
    scale = SCALE.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="attention_forward_fp8: there is no gradient"):
        attention_forward(Q, Q, Q, q_scale=scale).float().sum().backward()
