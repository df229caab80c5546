"""Torch's requests for memory of a GPU, answered with memory of the CPU: `device="cuda"`, `.cuda()`, `.to("cuda")`."""

# torch has no types here: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_FACTORIES = (
    "arange", "as_tensor", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "linspace", "logspace",
    "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "scalar_tensor", "tensor", "zeros", "zeros_like",
)  # fmt: skip
_METHODS = ("to", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")


def torch_module() -> Any:
    """The module torch. Raises ModuleNotFoundError where there is none."""
    return import_module("torch")


def replacements_of_torch() -> Iterator[tuple[Any, str, Any]]:
    """Each name of torch that is replaced, as `replacements.replacements` gives them; none without torch."""
    if "torch" not in sys.modules and find_spec("torch") is None:
        return
    torch = torch_module()
    for owner, names in ((torch, _FACTORIES), (torch.Tensor, _METHODS)):
        yield from ((owner, name, _on_cpu(getattr(owner, name))) for name in names if hasattr(owner, name))
    if hasattr(torch.Tensor, "cuda"):
        yield torch.Tensor, "cuda", _itself
    cuda = getattr(torch, "cuda", None)
    if cuda is not None:
        yield cuda, "synchronize", _nothing


def _itself(tensor: Any, *_: Any, **__: Any) -> Any:
    return tensor


def _nothing(*_: Any, **__: Any) -> None:
    """All that was launched has run."""


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if _is_gpu(kwargs.get("device")):
                kwargs["device"] = "cpu"
            # Pages are pinned for a GPU.
            kwargs.pop("pin_memory", None)
        if any(map(_is_gpu, args)):
            args = tuple("cpu" if _is_gpu(each) else each for each in args)
        return function(*args, **kwargs)

    return call


def _is_gpu(device: Any) -> bool:
    """Return whether something names a GPU as a device."""
    if isinstance(device, str):
        return device == "cuda" or device.startswith("cuda:")
    # Not `torch.Tensor.type`, which is a method.
    return type(device).__name__ == "device" and device.type == "cuda"
