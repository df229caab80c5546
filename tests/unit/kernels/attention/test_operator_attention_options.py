"""`attention_forward` with options and `attention_varlen` as operators of torch, on the CPU. Skipped without torch."""

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.kernels.attention.forward import attention_forward
from tlx_xdsl.kernels.attention.options import Options
from tlx_xdsl.kernels.attention.varlen import attention_varlen
from tlx_xdsl.kernels.operators.attention import options_from, options_text

torch = pytest.importorskip("torch", reason="torch is not installed")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

OPS = torch.ops.tlx_xdsl


@tlx_xdsl.jit
def alibi(score, batch, head, query, key, slopes, factor):
    """A bias for the distance."""
    return score + tl.load(slopes + head) * factor * (key - query)


SLOPES = torch.tensor([0.5, 0.25])
ALIBI = Options(causal=True, window=(20, None), softcap=5.0, score_mod=alibi, numbers=(None, 0.5))


def random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).half()


Q = random(1, 2, 40, 64)
ROWS = random(40, 2, 64)
SUMS = torch.tensor([0, 25, 40], dtype=torch.int32)


def exact(q, scale=0.125):
    """Compute ALIBI, with one tensor as queries, keys and values."""
    q = q.float()
    scores = 5 * torch.tanh(q @ q.mT * scale / 5)
    places = torch.arange(q.shape[-2])
    distance = places[None, :] - places[:, None]
    scores = scores + SLOPES[:, None, None] * 0.5 * distance
    return scores.masked_fill((distance > 0) | (distance < -20), -torch.inf).softmax(-1) @ q


def with_options(q):
    return attention_forward(
        q, q, q, causal=True, window=(20, None), softcap=5.0, score_mod=alibi, score_args=(SLOPES, 0.5)
    )


def of_sequences(q):
    return attention_varlen(
        q, q, q, SUMS, causal=True, window=(20, None), softcap=5.0, score_mod=alibi, score_args=(SLOPES, 0.5)
    )


def close(found, expected):
    return (found.float() - expected).norm() < 1e-3 * expected.norm()


def test_options_are_a_text():
    """Another process finds the function by its place."""
    assert options_from(options_text(ALIBI)) == ALIBI
    assert options_from(options_text(Options())) == Options()


def test_opcheck():
    given = (Q, Q.clone(), Q.clone(), torch.zeros(2), [SLOPES], None, options_text(ALIBI), "")
    torch.library.opcheck(OPS.attention_forward_options.default, given)
    torch.library.opcheck(OPS.attention_forward_options_out.default, (*given, Q.clone(), torch.empty(1, 2, 40)))


def test_opcheck_of_sequences():
    sums = (SUMS, SUMS.clone())
    given = (ROWS, ROWS.clone(), ROWS.clone(), *sums, None, [SLOPES], 0.1, options_text(ALIBI), "")
    torch.library.opcheck(OPS.attention_varlen.default, given)
    torch.library.opcheck(OPS.attention_varlen_out.default, (*given, ROWS.clone(), torch.empty(2, 40)))


def test_in_a_compiled_graph():
    compiled = torch.compile(lambda q: with_options(q) * 2, fullgraph=True, backend="aot_eager")
    assert close(compiled(Q), exact(Q) * 2)


def test_sequences_in_a_compiled_graph():
    compiled = torch.compile(lambda q: of_sequences(q) * 2, fullgraph=True, backend="aot_eager")
    parts = [exact(each.transpose(0, 1)).transpose(0, 1) for each in ROWS.split([25, 15])]
    assert close(compiled(ROWS), torch.cat(parts) * 2)


@pytest.mark.parametrize(("function", "tensor"), [(with_options, Q), (of_sequences, ROWS)])
def test_there_is_no_gradient(function, tensor):
    out = function(tensor.clone().requires_grad_())
    with pytest.raises(RuntimeError, match=r"attention_(forward_options|varlen): there is no gradient of it yet"):
        out.sum().backward()


def test_results_that_are_given_want_no_gradient():
    q = Q.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="attention_forward_options: argument 'out': expected none where a tensor"):
        attention_forward(q, q, q, window=(3, 3), out=Q.clone())
