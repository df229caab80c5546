"""Calls do without the private functions of torch."""

from types import SimpleNamespace

import pytest

from tlx_xdsl.kernels.calls import operands as torch_private


def stream(device):
    return SimpleNamespace(cuda_stream=100 + device)


def empty_strided(shape, strides, *, dtype, device):
    return shape, strides, dtype, device


WITHOUT = SimpleNamespace(
    cuda=SimpleNamespace(current_stream=stream, is_current_stream_capturing=lambda: "captures"),
    empty_strided=empty_strided,
)


@pytest.mark.parametrize("torch", [WITHOUT, SimpleNamespace(**vars(WITHOUT), _C=SimpleNamespace(_dynamo=None))])
def test_without_them(torch):
    assert torch_private.current_raw_stream(torch)(3) == 103
    assert torch_private.is_capturing(torch)() == "captures"
    assert torch_private.empty_strided(torch)((2, 3), (3, 1), "fp16") == ((2, 3), (3, 1), "fp16", "cuda")
    assert torch_private.tensor_guards(torch) is None
    # Nothing says that torch need not see the call.
    assert torch_private.dispatch_modes(torch)() == 1
    assert torch_private.transforms_are_active(torch)() is True


def test_with_them():
    guards = SimpleNamespace(TensorGuards="guards", _empty_strided_cuda="allocate")
    private = SimpleNamespace(
        _cuda_getCurrentRawStream="stream",
        _cuda_isCurrentStreamCapturing="captures",
        _dynamo=SimpleNamespace(guards=guards),
        _len_torch_dispatch_stack="modes",
        _are_functorch_transforms_active="transforms",
    )
    torch = SimpleNamespace(**vars(WITHOUT), _C=private)
    found = [
        getattr(torch_private, name)(torch)
        for name in (
            "current_raw_stream", "is_capturing", "empty_strided", "tensor_guards", "dispatch_modes",
            "transforms_are_active",
        )
    ]  # fmt: skip
    assert found == ["stream", "captures", "allocate", "guards", "modes", "transforms"]
