"""`attention_forward` of e4m3 tensors on a Hopper GPU: right, the same bits each time, in graphs and operators."""

import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

from tests.unit.kernels.attention.fp8.gpu_checks_attention_fp8 import (  # noqa: E402
    CASES,
    LIMIT,
    check_attention_fp8,
    inputs,
    reference,
)
from tests.unit.kernels.gpu_checks import relative_error  # noqa: E402
from tlx_xdsl.kernels.attention.forward import attention_forward  # noqa: E402

OPS = torch.ops.tlx_xdsl


def launch(call, label):
    call()
    torch.cuda.synchronize()


@pytest.mark.parametrize("out", ["bf16", "fp16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_float32(case, out):
    for check in check_attention_fp8(case, "cuda", out=out, run=launch):
        assert check.ok, str(check)


def test_repeated_calls_give_the_same_bits():
    case = (2, 8, 2, 1000, 1500, 128, True)
    (q, k, v), scales = inputs(case, "cuda")
    given = dict(zip(("q_scale", "k_scale", "v_scale"), scales, strict=True))
    first = attention_forward(q, k, v, causal=True, **given)
    assert all(torch.equal(attention_forward(q, k, v, causal=True, **given), first) for _ in range(100))


def test_captured_in_a_graph():
    case = (1, 4, 4, 512, 512, 128, False)
    (q, k, v), scales = inputs(case, "cuda")
    given = dict(zip(("q_scale", "k_scale", "v_scale"), scales, strict=True))
    attention_forward(q, k, v, **given)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = attention_forward(q, k, v, **given)
    for factor in (1, 3):
        scales[2].mul_(factor)
        out.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        assert relative_error(out, reference(case, [q, k, v], scales, torch.float32)[0]) < LIMIT


def test_opcheck():
    (q, k, v), scales = inputs((1, 4, 2, 70, 90, 64, True), "cuda")
    torch.library.opcheck(
        OPS.attention_forward_fp8.default, (q, k, v, *scales, True, None, torch.bfloat16, ""),
        test_utils=("test_autograd_registration", "test_faketensor"),
    )  # fmt: skip
