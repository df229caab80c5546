"""Calls that autograd records without torch's dispatcher. Skipped without torch."""

import pytest

from tlx_xdsl.kernels.calls.recent import Recorded
from tlx_xdsl.kernels.operators import Gradient

torch = pytest.importorskip("torch", reason="torch is not installed")


class Doubled:
    """A plan that doubles its one tensor."""

    def run(self, tensors, addresses):
        return tensors[0], tensors[0] * 2


def test_a_record_runs_its_plan_once_there_is_one():
    def first(recorded, tensors):
        recorded.plan = Doubled()
        return tensors[0], tensors[0] * 3

    def save(ctx, tensors, options, results):
        ctx.save_for_backward(*tensors[:1], *results)
        ctx.factor = options[0]

    recorded = Recorded(first, Gradient(save, lambda ctx, grad: (grad * ctx.factor, None)), (7.0,), slice(1, 2))
    x = torch.ones(4, requires_grad=True)
    found = [recorded.run((x, None), [x.data_ptr(), 0])[1] for _ in range(3)]
    assert [each[0].item() for each in found] == [3, 2, 2]
    sum(found).sum().backward()
    assert x.grad.tolist() == [21.0] * 4
