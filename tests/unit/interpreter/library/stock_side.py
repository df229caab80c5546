"""Runs the calls of `cases` with stock Triton's own interpreter, in a process of its own.

python -m tests.unit.interpreter.library.stock_side OUT.npz     with TRITON_INTERPRET=1 in the environment

Stock's interpreter wants tensors of torch; a stand-in over a numpy array is enough for it.
"""

import importlib.util
import json
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.gallery.language import library
from tests.unit.interpreter.library.cases import calls


class Tensor:
    """A numpy array with what stock's interpreter asks a tensor on the CPU for."""

    device = "cpu"

    def __init__(self, array: np.ndarray):
        self.array = array
        self.dtype = array.dtype.name

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def new_empty(self, *_args: Any, **_named: Any) -> "Tensor":
        return self

    untyped_storage = cpu = set_ = copy_ = new_empty

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)


def _stock_kernels(folder: Path) -> ModuleType:
    """The kernels, over Triton's language instead of ours."""
    text = Path(library.__file__).read_text(encoding="utf-8")
    text = re.sub(r"^import tlx_xdsl as triton$", "import triton", text, flags=re.MULTILINE)
    text = text.replace("import tlx_xdsl.language as tl", "import triton.language as tl")
    path = folder / "stock_kernels.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("stock_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(target: str) -> None:
    found: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        kernels = _stock_kernels(Path(folder))
        for name, call in calls().items():
            arguments = {
                key: Tensor(value) if isinstance(value, np.ndarray) else value for key, value in call.arguments.items()
            }
            try:
                getattr(kernels, call.kernel)[(1,)](**arguments)
            except Exception as error:
                found[json.dumps([name, "error"])] = np.array(f"{type(error).__name__}: {error}"[:500])
                continue
            for key in call.results:
                found[json.dumps([name, key])] = call.arguments[key]
    np.savez(
        target, **{f"r{number}": array for number, array in enumerate(found.values())}, names=np.array(list(found))
    )


if __name__ == "__main__":
    main(sys.argv[1])
