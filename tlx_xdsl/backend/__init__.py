"""The backend: TTGIR text in, PTX and a device binary out, through the installed stock Triton.

Importing this package imports neither Triton nor xDSL. `compile_ttgir` is the entry point; `stock_passes.py` is the
list of stock passes that our text goes through, worth reading from top to bottom.
"""

from .client import CLIENT, stop_workers
from .compile import compile_in_this_process, compile_ttgir
from .errors import BackendError, BackendTimeoutError, OutOfResourcesError
from .options import MOST_REGISTERS, BackendOptions, Isolation, UpTo, installed_triton_version
from .result import BackendResult, BackendWarning, KernelMetadata, KernelResources
from .toolchain import Toolchain, installed_toolchain

start_worker = CLIENT.start
stop_worker = CLIENT.stop
limit_workers = CLIENT.limit

__all__ = [
    "MOST_REGISTERS",
    "BackendError",
    "BackendOptions",
    "BackendResult",
    "BackendTimeoutError",
    "BackendWarning",
    "Isolation",
    "KernelMetadata",
    "KernelResources",
    "OutOfResourcesError",
    "Toolchain",
    "UpTo",
    "compile_in_this_process",
    "compile_ttgir",
    "installed_toolchain",
    "installed_triton_version",
    "limit_workers",
    "start_worker",
    "stop_worker",
    "stop_workers",
]
