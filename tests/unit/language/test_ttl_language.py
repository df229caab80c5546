"""The names of the TTL language, and what works outside of kernels."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl.ttl.frontend  # noqa: F401
import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.ttl.frontend.calls import LOWERINGS, METHODS
from tlx_xdsl.ttl.language.kernel import Kernel, builtin_name
from tlx_xdsl.ttl.language.tensors import as_dtype


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float32, ttl.float32),
        (np.dtype("float32"), ttl.float32),
        (ml_dtypes.bfloat16, ttl.bfloat16),
        (np.dtype(ml_dtypes.bfloat16), ttl.bfloat16),
        ("torch.bfloat16", ttl.bfloat16),
        ("bf16", ttl.bfloat16),
        ("f32", ttl.float32),
        (np.float16, ttl.float16),
        (np.int32, ttl.int32),
        (ttl.int8, ttl.int8),
    ],
)
def test_element_types(given: Any, expected: ttl.dtype) -> None:
    assert as_dtype(given) is expected
    assert ttl.TensorSpec((1, 1), given).dtype is expected


def test_unknown_element_type() -> None:
    with pytest.raises(InputTypeError, match=r"elements of a tensor are float32, .* found float64"):
        ttl.TensorSpec((32, 32), np.float64)


def test_tiles_are_rounded_up() -> None:
    assert ttl.TensorSpec((33, 64)).tiles == (2, 2)
    assert ttl.TensorSpec((33, 64)) == ttl.tensor((33, 64), "float32")
    assert ttl.TensorSpec((2, 33, 64)).tiles == (2, 2, 2)
    assert {ttl.TensorSpec((33, 64)): 1}[ttl.TensorSpec([33, 64])] == 1


@pytest.mark.parametrize("shape", [(32,), (0, 32), (2, 0, 32), (32.0, 32), (-32, 32)])
def test_shapes_that_are_none(shape: Any) -> None:
    with pytest.raises(InputError, match=r"is two or more positive integers \(\.\.\., rows, columns\), found"):
        ttl.TensorSpec(shape)


def test_layouts() -> None:
    layout = ttl.sharded(grid=(2, 1), tiles_per_shard=(1, 3))
    assert str(layout) == "ttl.sharded(grid=(2, 1), tiles_per_shard=(1, 3))"
    assert str(ttl.interleaved) == "ttl.interleaved"
    assert ttl.TensorSpec((64, 96), layout=layout).layout.grid == (2, 1)
    with pytest.raises(InputError, match="has 2x3 tiles, but a tensor of 64x128 elements has 2x4"):
        ttl.TensorSpec((64, 128), layout=layout)
    # The last shard may reach beyond the tensor; matrices lie one below the other.
    assert ttl.TensorSpec((2, 32, 64), layout=layout).tiles == (2, 1, 2)
    with pytest.raises(InputError, match=r"'grid' of ttl.sharded is two positive integers .* found \(2, 0\)"):
        ttl.sharded((2, 0), (1, 1))
    with pytest.raises(InputError, match="the memory space of a kernel's tensor is 'DRAM' or 'L1', found 'SRAM'"):
        ttl.TensorSpec((64, 64), memory_space="SRAM")


def names() -> list[tuple[str, Any]]:
    """All functions and classes of the language that only kernels can call."""
    found = [(f"ttl.{name}", getattr(ttl, name)) for name in ttl.__all__]
    for module in (ttl.block, ttl.math):
        short = module.__name__.rpartition(".")[2]
        found += [(f"ttl.{short}.{name}", getattr(module, name)) for name in module.__all__]
    return [(name, value) for name, value in found if builtin_name(value) is not None]


@pytest.mark.parametrize(("name", "value"), names())
def test_parts_of_the_language(name: str, value: Any) -> None:
    """Each is documented, has a meaning in kernels, and says outside of them that it has none there."""
    assert builtin_name(value) == name
    assert inspect.getdoc(value)
    # The two decorators are no calls.
    assert name in LOWERINGS or name in ("ttl.compute", "ttl.datamovement")
    if name == "ttl.grid_size":
        # On the host, it is that of the last kernel.
        return
    required = [each for each in inspect.signature(value).parameters.values() if each.default is each.empty]
    with pytest.raises(RuntimeError, match=r"only inside a kernel that @ttl.kernel compiles"):
        value(*[None] * len(required))


def test_every_meaning_has_a_name() -> None:
    assert set(LOWERINGS) <= {name for name, _ in names()}


def test_every_method_has_a_meaning() -> None:
    for methods in METHODS.values():
        for name, (_, of, _) in methods.items():
            assert inspect.getdoc(getattr(of, name))
    classes = ttl.CircularBuffer, ttl.Block, ttl.Transfer, ttl.Pipe, ttl.PipeNet, ttl.Semaphore
    documented = {cls: {name for name in vars(cls) if callable(vars(cls)[name]) and name[0] != "_"} for cls in classes}
    for cls, expected in documented.items():
        found = {name for methods in METHODS.values() for name, (_, of, _) in methods.items() if of is cls}
        assert found == expected


def test_kernels_with_and_without_options() -> None:
    @ttl.kernel
    def plain(a):
        pass

    @ttl.operation(grid=(2, 3), tiled=False)
    def chosen(a):
        pass

    assert isinstance(plain, Kernel)
    assert (plain.name, plain.grid, plain.tiled) == ("plain", (1, 1), True)
    assert (chosen.name, chosen.grid, chosen.tiled) == ("chosen", (2, 3), False)


def test_the_language_loads_neither_xdsl_nor_the_compiler() -> None:
    """Users' kernels start with it."""
    script = "import sys, tlx_xdsl.ttl.language; print([m for m in ('xdsl', 'tlx_xdsl.frontend') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
