"""Requirements of tests of kernels: on a GPU Hopper and references in float32, on the CPU the interpreter's checks."""

import pytest

from tlx_xdsl.kernels.calls.launching import Launch


@pytest.fixture(autouse=True)
def interpreted(request, monkeypatch):
    """Run in the interpreter, with its checks, what would be machine code on the CPU, but in tests marked `native`."""
    if request.node.get_closest_marker("native") is None:
        monkeypatch.setattr(Launch, "run_on_cpu", lambda launch: launch.interpret())


@pytest.fixture(autouse=True)
def hopper_in_full_precision(request):
    """Skip a test marked `gpu` on another GPU. References are computed in float32, not in TF32."""
    if request.node.get_closest_marker("gpu") is None:
        yield
        return
    import torch

    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs a Hopper GPU (compute capability 9.0)")
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    # torch makes this name when it is asked for, so that pytest's monkeypatch can't put it back.
    torch.backends.cuda.matmul.allow_tf32 = before
