"""Launches of attention's gradients in torch: torch's switch for deterministic algorithms, and what is left out."""

import pytest

from tlx_xdsl.kernels.attention.backward.call import attention_backward

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.unit.kernels.attention.test_operator_attention import (  # noqa: E402
    compiled,
    gradients,
    no_grad_arguments,
    ours,
    problem,
    through_the_operator,
)


class Launched:
    """The kernels that were run."""

    def __init__(self, monkeypatch):
        from tlx_xdsl.kernels.calls.launching import Launch

        self.with_dlse, self.ordered = [], []
        interpret = Launch.interpret

        def recorded(launch, **options):
            if launch.kernel.source.name == "attention_backward_before":
                self.with_dlse.append("dlse_ptr" in launch.arguments)
                self.ordered.append("added_ptr" in launch.arguments)
            return interpret(launch, **options)

        monkeypatch.setattr(Launch, "interpret", recorded)

    def is_deterministic(self):
        """Return whether dQ was added up in one order in the one call since the last question."""
        (found,), self.ordered = self.ordered, []
        return found


@pytest.fixture
def launched(monkeypatch):
    yield Launched(monkeypatch)
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("way", [ours, compiled(ours)], ids=["eager", "compiled"])
def test_torch_s_switch_is_read_as_the_gradient_runs(way, launched):
    inputs = [each.requires_grad_() for each in problem()]
    torch.use_deterministic_algorithms(True, warn_only=True)
    out = way(*inputs)[0]
    for wanted in (True, False):
        torch.use_deterministic_algorithms(wanted)
        torch.autograd.grad(out.sum(), inputs, retain_graph=True)
        assert launched.is_deterministic() == wanted
    if way is ours:  # a graph that was made before the switch was turned on is refused by torch
        torch.use_deterministic_algorithms(True)
        torch.autograd.grad(out.sum(), inputs)
        assert launched.is_deterministic()


@pytest.mark.parametrize("through", [lambda fn: fn, compiled], ids=["eager", "compiled"])
@pytest.mark.parametrize("way", [ours, through_the_operator])
def test_logarithms_that_no_loss_depends_on_have_no_gradient(way, through, launched):
    """Zeros would be computed, and read."""
    gradients(through(lambda *tensors: way(*tensors)[:1]), problem(), torch.sum)
    assert launched.with_dlse == [False]


def test_torch_s_switch_and_the_option(launched):
    given = no_grad_arguments()
    graph = compiled(lambda *tensors: attention_backward(*tensors))
    for switch, option in ((False, False), (True, False), (False, True)):
        torch.use_deterministic_algorithms(switch)
        attention_backward(*given, deterministic=option)
        assert launched.is_deterministic() == (switch or option)
        if not option:
            graph(*given)
            assert launched.is_deterministic() == switch
