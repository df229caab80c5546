"""Kernels to import: what a program calls, with its tensors, and what a reader can start from.

- `gemm/`: products in half precision (`gemm.gemm(a, b)`), of 8-bit floats (`gemm.scaled`), in groups (`gemm.grouped`)
- `attention/`: attention with its gradients (`attention.attention_forward`, `attention.backward`), of sequences of many
  lengths (`attention.varlen`), to a long cache (`attention.decode`)
- `rows/`: softmax, norms, cross-entropy, RoPE, SwiGLU: short rows in plain `tl`, long ones in clusters
- `comm/`: what several GPUs do together: sums, gathering, products with them (`comm.all_reduce(x, ranks)`)
- `calls/`, `operators/`: plans of calls that repeat; the functions as operators of torch

Each takes torch's tensors on a GPU, and arrays of the CPU for the interpreter. `*_launch` prepares one call that is
repeated. `docs/kernels.md` shows them at work.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def face(home: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose public names are those of one of its modules.

    The module is loaded when a name is asked for: importing another module of the package does not load it.
    """

    def get(name: str) -> Any:
        if name == "__all__":
            return [each for each in vars(import_module(home)) if not each.startswith("_")]
        package = home.rpartition(".")[0]
        # `from package import module` asks here before it imports the module.
        if name.startswith("__") or find_spec(f"{package}.{name}") is not None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        found = getattr(import_module(home), name)
        # The next access asks the package itself: looking for modules takes longer than a launch.
        setattr(import_module(package), name, found)
        return found

    return get
