"""What one CTA can have on each target, and the check against it.

Stock Triton compares shared memory with the device's limit only when it loads the binary, so that a kernel
which can never launch costs a whole compile and fails far from its source.
"""

from __future__ import annotations

from tlx_xdsl.backend.errors import OutOfResourcesError
from tlx_xdsl.backend.result import KernelMetadata

_KIB = 1024

SHARED_BYTES: dict[int, int] = {
    80: 163 * _KIB,
    86: 99 * _KIB,
    87: 163 * _KIB,
    88: 163 * _KIB,
    89: 99 * _KIB,
    90: 227 * _KIB,
    100: 227 * _KIB,
    103: 227 * _KIB,
    110: 227 * _KIB,
    120: 99 * _KIB,
    121: 99 * _KIB,
}
"""Largest shared memory of one CTA in bytes, by compute capability.

Source: CUDA C++ Programming Guide, "Compute Capabilities", row "Maximum amount of shared memory per thread
block". A capability that is missing here is not checked.
"""

TMEM_COLUMNS = 512
"""Tensor memory columns of a CTA. Source: PTX ISA, "Tensor Memory" (128 lanes x 512 columns of 32 bits)."""


def check_resources(metadata: KernelMetadata, capability: int) -> None:
    """Raise OutOfResourcesError if the kernel can never launch on a device of `capability`."""
    limit = SHARED_BYTES.get(capability)
    if limit is not None and metadata.shared > limit:
        raise _over("shared memory", "bytes", metadata.shared, limit, capability)
    if metadata.tmem_size > TMEM_COLUMNS:
        raise _over("tensor memory", "columns", metadata.tmem_size, TMEM_COLUMNS, capability)


def _over(resource: str, unit: str, required: int, limit: int, capability: int) -> OutOfResourcesError:
    return OutOfResourcesError(
        f"the kernel needs {required} {unit} of {resource}, but a CTA on sm_{capability} has at most {limit}",
        resource=resource,
        required=required,
        limit=limit,
        stage="llir",
    )
