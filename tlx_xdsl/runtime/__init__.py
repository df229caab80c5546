"""Running compiled kernels.

`TensorDescriptor` describes a tensor for TMA; `Launcher` launches a cubin through the CUDA driver alone.
`write_bundle` compiles a kernel to a folder of files, and `load` launches it from there, without a compiler.
Importing this package needs neither torch, Triton nor a GPU; `available()` says whether kernels can be
launched here.
"""

from typing import TYPE_CHECKING, Any

from tlx_xdsl.runtime.bundle.errors import BundleError
from tlx_xdsl.runtime.bundle.load import LoadedBundle, load
from tlx_xdsl.runtime.cuda_driver import CudaDriverError, available
from tlx_xdsl.runtime.launcher import ArgumentSpec, Launcher
from tlx_xdsl.runtime.tensor_descriptor import TensorDescriptor

if TYPE_CHECKING:
    from tlx_xdsl.runtime.bundle.write import write_bundle

__all__ = [
    "ArgumentSpec",
    "BundleError",
    "CudaDriverError",
    "Launcher",
    "LoadedBundle",
    "TensorDescriptor",
    "available",
    "load",
    "write_bundle",
]


def __getattr__(name: str) -> Any:
    # The compiler is imported by those only who compile.
    if name != "write_bundle":
        raise AttributeError(f"module 'tlx_xdsl.runtime' has no attribute '{name}'")
    from tlx_xdsl.runtime.bundle.write import write_bundle

    return write_bundle
