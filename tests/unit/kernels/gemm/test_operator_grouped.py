"""The grouped products as operators of torch, on the CPU: kernels run in the interpreter. Skipped without torch."""

import pytest

from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm
from tlx_xdsl.kernels.gemm.grouped.scaled import scaled_grouped_gemm

torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

OPS = torch.ops.tlx_xdsl
HALF = torch.bfloat16
ENDS = torch.tensor([10, 10, 37], dtype=torch.int32)
ROWS = 40
"""Three of them belong to no group."""


def random(*shape, wants_gradient=False):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).to(HALF)
    return made.requires_grad_(wants_gradient)


def groups(*tensors):
    """The rows of each group, in float32."""
    starts = [0, *ENDS.tolist()]
    return [[each[a:b].float() for each in tensors] for a, b in zip(starts, ENDS.tolist(), strict=False)]


def rows_product(x, w):
    return torch.cat([rows @ each.float() for (rows,), each in zip(groups(x), w, strict=True)])


def sums_product(x, y):
    return torch.stack([a.t() @ b for a, b in groups(x, y)])


def gradients(product, *inputs):
    """Return the gradients of a sum of the product's elements with weights."""
    fresh = [each.detach().clone().requires_grad_() for each in inputs]
    result = product(*fresh)
    weights = torch.randn(result.shape, generator=torch.Generator().manual_seed(9))
    (result.float() * weights).sum().backward()
    return [each.grad for each in fresh]


@pytest.mark.parametrize(
    ("ours", "reference", "inputs"),
    [
        (lambda x, w: grouped_gemm(x, w, ENDS)[: ENDS[-1]], rows_product, (random(ROWS, 24), random(3, 24, 16))),
        (lambda x, y: grouped_gemm(x.t(), y, ENDS), sums_product, (random(ROWS, 24), random(ROWS, 16))),
    ],
    ids=["rows", "sums"],
)
def test_gradients(ours, reference, inputs):
    for found, expected in zip(gradients(ours, *inputs), gradients(reference, *inputs), strict=True):
        assert (found - expected).float().norm() < 8e-3 * expected.float().norm()


def test_rows_of_no_group_have_no_gradient():
    x, w = random(ROWS, 24, wants_gradient=True), random(3, 24, 16)
    grouped_gemm(x, w, ENDS)[: ENDS[-1]].sum().backward()
    assert not x.grad[ENDS[-1] :].any()


def test_operators():
    ends = torch.tensor([10, 10, ROWS], dtype=torch.int32)
    x, w = random(ROWS, 32), random(3, 32, 16)
    torch.library.opcheck(OPS.grouped_gemm.default, (x.clone().requires_grad_(), w.clone().requires_grad_(), ends, ""))
    torch.library.opcheck(OPS.grouped_gemm_out.default, (x, w, ends, "", torch.empty(ROWS, 16, dtype=HALF)))
    x8, w8 = x.to(torch.float8_e4m3fn), w.transpose(1, 2).contiguous().to(torch.float8_e4m3fn).transpose(1, 2)
    scaled = (x8, w8, ends, torch.rand(ROWS), torch.rand(3, 16), "bf16", "")
    # What looks for writes compares tensors, which torch can't do with 8-bit floats on the CPU.
    torch.library.opcheck(OPS.scaled_grouped_gemm.default, scaled, test_utils=("test_faketensor",))


def test_graphs_hold_the_operator():
    x, w = random(ROWS, 24), random(3, 24, 16)
    compiled = torch.compile(lambda x, w: grouped_gemm(x, w, ENDS) * 2, fullgraph=True, backend="aot_eager")
    rows = slice(0, int(ENDS[-1]))
    assert torch.equal(compiled(x, w)[rows], grouped_gemm(x, w, ENDS)[rows] * 2)


def test_scaled_products_have_no_gradient():
    x = torch.zeros(ROWS, 16, dtype=torch.float8_e4m3fn)
    w = torch.zeros(3, 8, 16, dtype=torch.float8_e4m3fn).transpose(1, 2)
    scale = torch.ones(ROWS, requires_grad=True)
    result = scaled_grouped_gemm(x, w, ENDS, scale, torch.ones(3, 8))
    with pytest.raises(RuntimeError, match="there is no gradient of it yet"):
        result.sum().backward()
