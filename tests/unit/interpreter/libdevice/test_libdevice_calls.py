"""Every function of libdevice, called in a kernel: the frontend picks the symbol, the interpreter runs it."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tlx_xdsl
from tests.unit.interpreter.libdevice.test_libdevice_values import call
from tlx_xdsl.language.extra.libdevice_table import FUNCTIONS, Overload

ARRAYS = {
    "fp32": np.float32, "fp64": np.float64, "int32": np.int32, "int64": np.int64, "uint32": np.uint32,
    "uint64": np.uint64,
}  # fmt: skip
CALLS = [(name, overload) for name, function in FUNCTIONS.items() for overload in function.overloads]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A module with one kernel for each function."""
    text = "import tlx_xdsl\nimport tlx_xdsl.language as tl\nfrom tlx_xdsl.language.extra import libdevice\n"
    for name, function in FUNCTIONS.items():
        names = [f"x{number}" for number in range(function.arity)]
        loads = ", ".join(f"tl.load({x} + i)" for x in names)
        text += f"""

@tlx_xdsl.jit
def {name}({", ".join(names)}, out):
    i = tl.arange(0, 16)
    tl.store(out + i, libdevice.{name}({loads}))
"""
    path: Path = tmp_path_factory.mktemp("libdevice") / "libdevice_kernels.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("libdevice_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "overload"), CALLS, ids=[f"{name}-{overload.symbol}" for name, overload in CALLS])
def test_a_call_runs_its_symbol(kernels: ModuleType, name: str, overload: Overload) -> None:
    rng = np.random.default_rng(3)
    values = []
    for argument in overload.arguments:
        dtype = np.dtype(ARRAYS[argument])
        values.append(rng.uniform(0.1, 3, 16).astype(dtype) if dtype.kind == "f" else rng.integers(0, 9, 16, dtype))
    is_predicate = FUNCTIONS[name].is_predicate
    out = np.zeros(16, np.bool_ if is_predicate else ARRAYS[overload.result])
    tlx_xdsl.interpret(getattr(kernels, name), (1,), *values, out, options={"jobs": 1})
    held = [value.view(f"i{value.itemsize}") if value.dtype.kind == "u" else value for value in values]
    expected = call(overload.symbol, overload.result, *held)
    np.testing.assert_array_equal(out, expected != 0 if is_predicate else expected.view(out.dtype))
