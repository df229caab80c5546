"""Running compiled kernels.

`TensorDescriptor` describes a tensor for TMA; `Launcher` launches a cubin through the CUDA driver alone.
Importing this package needs neither torch, Triton nor a GPU; `available()` says whether kernels can be
launched here.
"""

from tlx_xdsl.runtime.cuda_driver import CudaDriverError, available
from tlx_xdsl.runtime.launcher import ArgumentSpec, Launcher
from tlx_xdsl.runtime.tensor_descriptor import TensorDescriptor

__all__ = ["ArgumentSpec", "CudaDriverError", "Launcher", "TensorDescriptor", "available"]
