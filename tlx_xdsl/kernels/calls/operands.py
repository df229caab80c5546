"""Operands and results of these functions: torch tensors on a GPU, or arrays of the CPU.

A tensor is anything that answers like torch's; numpy arrays are understood as well. torch is imported only where
a GPU's tensor is at hand, so it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

from tlx_xdsl.element_types import BY_SPELLING
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor, dtype_name, element_size

TMA_ALIGNMENT = 16
"""Bytes: TMA wants the first element and every outer stride in multiples of it."""


def torch_module() -> Any:
    """The module torch, which only callers with its tensors need.

    Raises ModuleNotFoundError where it is not installed.
    """
    # A statement: torch.compile, which reads some of our callers, knows those.
    import torch  # pyright: ignore[reportMissingImports]

    return cast(Any, torch)


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor or array with what is the same of both: shape and strides in elements, and the short type (`fp16`).

    `device` is torch's device of a tensor that is not on the CPU, None for what the CPU can reach. `function`
    and `name` say whose argument it is.
    """

    function: str
    name: str
    value: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str | None
    device: Any

    @property
    def what(self) -> str:
        """The argument, for errors."""
        return f"{self.function}: argument '{self.name}'"

    @property
    def element_bytes(self) -> int:
        """The size of an element."""
        return element_size(self.value)


def operand(function: str, name: str, value: Any) -> Operand:
    """Look at an argument. Raises TypeError for what is neither a tensor nor an array."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        raise TypeError(f"{function}: argument '{name}': expected a tensor, got {type(value).__name__}")
    shape = tuple(int(extent) for extent in value.shape)
    if callable(getattr(value, "stride", None)):
        strides = tuple(int(stride) for stride in value.stride())
    else:  # numpy counts strides in bytes
        strides = tuple(int(stride) // element_size(value) for stride in value.strides)
    device = getattr(value, "device", "cpu")
    on_host = isinstance(device, str) or device.type == "cpu"
    return Operand(function, name, value, shape, strides, dtype_name(value.dtype), None if on_host else device)


_DLPACK_CPU = 1
"""The CPU in DLPack's `DLDeviceType`."""


def taken(value: Any) -> Any:
    """Return a torch tensor or a numpy array on the memory of another library's array; anything else as it is.

    Memory is shared by `__cuda_array_interface__` (CuPy, Numba) or by DLPack (JAX), and nothing is copied.
    Raises what torch and numpy have against an array, such as one of a type that they lack.
    """
    import numpy as np

    if value is None or isinstance(value, np.ndarray) or callable(getattr(value, "data_ptr", None)):
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return torch_module().as_tensor(value, device="cuda")
    if hasattr(value, "__dlpack__"):
        on_cpu = value.__dlpack_device__()[0] == _DLPACK_CPU
        return np.from_dlpack(value) if on_cpu else torch_module().from_dlpack(value)
    return value


def check_type(each: Operand, expected: Sequence[str], names: str = "") -> None:
    """Refuse an operand of another type; `names` are those of the types, for errors. Raises TypeError."""
    if each.dtype not in expected:
        names = names or " or ".join(expected)
        raise TypeError(f"{each.what}: expected elements of type {names}, got {each.value.dtype}")


def check_contiguous(each: Operand) -> None:
    """Refuse elements that do not lie row after row. Raises ValueError."""
    expected = 1
    for extent, stride in zip(reversed(each.shape), reversed(each.strides), strict=True):
        if extent > 1 and stride != expected and 0 not in each.shape:
            raise ValueError(f"{each.what}: expected contiguous elements, got the strides {each.strides}")
        expected *= extent


def check_types(operands: Sequence[Operand], expected: Sequence[str]) -> None:
    """Refuse operands of other types, of different types or in different places.

    Raises TypeError for a type, ValueError for a place.
    """
    first = operands[0]
    for each in operands:
        check_type(each, expected)
        if each.dtype != first.dtype:
            raise TypeError(f"{each.what}: expected {first.value.dtype} as '{first.name}' has, got {each.value.dtype}")
    check_places(operands)


def check_places(operands: Sequence[Operand]) -> None:
    """Refuse operands in different memories. Raises ValueError."""
    first = operands[0]
    for each in operands:
        if each.device != first.device:
            raise ValueError(
                f"{each.what}: expected a tensor on {first.device or 'the CPU'}, where '{first.name}' is, "
                f"got one on {each.device or 'the CPU'}"
            )


def check_shape(each: Operand, expected: tuple[int, ...], why: str) -> None:
    """Refuse another shape. Raises ValueError."""
    if each.shape != expected:
        raise ValueError(f"{each.what}: expected the shape {expected} ({why}), got {each.shape}")


def check_product(left: Operand, right: Operand) -> None:
    """Refuse what are no matrices, or none that can be multiplied. Raises ValueError."""
    for each in (left, right):
        if len(each.shape) != 2:
            raise ValueError(f"{each.what}: expected 2 dimensions, got the shape {each.shape}")
    if left.shape[1] != right.shape[0]:
        raise ValueError(
            f"{right.what}: expected {left.shape[1]} rows, as '{left.name}' has columns, got {right.shape[0]}"
        )


# --- types --------------------------------------------------------------------------------------------------------


def type_of_result(function: str, dtype: Any, expected: Sequence[str]) -> str:
    """The short name of an `out_dtype`, which is a name or as torch or numpy have it. Raises TypeError for another."""
    # numpy's types are classes, or have a name.
    name = dtype_name(getattr(dtype, "__name__", getattr(dtype, "name", dtype)))
    if name is None or name not in expected:
        raise TypeError(f"{function}: argument 'out_dtype': expected {' or '.join(expected)}, got {dtype}")
    return name


def torch_type(name: str) -> Any:
    """The type of a short name in torch."""
    return getattr(torch_module(), BY_SPELLING[name].numpy)


def empty(like: Operand, shape: tuple[int, ...], dtype: str | None = None) -> Any:
    """A tensor or array where `like` is, of its type or of the one given; what it holds is anything."""
    if callable(getattr(like.value, "new_empty", None)):
        return like.value.new_empty(shape) if dtype is None else like.value.new_empty(shape, dtype=torch_type(dtype))
    import numpy as np

    return np.empty(shape, like.value.dtype if dtype is None else BY_SPELLING[dtype].numpy)


def zeros(like: Operand, shape: tuple[int, ...], dtype: str) -> Any:
    """A tensor or array of zeros where `like` is."""
    if callable(getattr(like.value, "new_zeros", None)):
        return like.value.new_zeros(shape, dtype=torch_type(dtype))
    import numpy as np

    return np.zeros(shape, BY_SPELLING[dtype].numpy)


# --- what TMA reads -----------------------------------------------------------------------------------------------


def is_aligned(each: Operand) -> bool:
    """Return whether TMA can start at the first element. The interpreter's can start anywhere."""
    return not callable(getattr(each.value, "data_ptr", None)) or each.value.data_ptr() % TMA_ALIGNMENT == 0


def check_alignment(each: Operand) -> None:
    """Refuse a first element where TMA can't start. Raises ValueError."""
    if not is_aligned(each):
        raise ValueError(
            f"{each.what}: expected memory that starts at a multiple of {TMA_ALIGNMENT} bytes, "
            f"got {each.value.data_ptr():#x}"
        )


def row_strides(each: Operand) -> tuple[int, ...] | None:
    """The strides, in elements, by which TMA reads an operand whose last dimension is contiguous; None if it can't.

    Where a dimension has one element its stride means nothing, and one is chosen that TMA takes.
    """
    step = TMA_ALIGNMENT // each.element_bytes
    *outer, last = zip(each.shape, each.strides, strict=True)
    if last[1] != 1 and last[0] != 1:
        return None
    free = -(-each.shape[-1] // step) * step
    strides = [stride if extent != 1 else free for extent, stride in outer]
    return (*strides, 1) if all(stride % step == 0 and stride > 0 for stride in strides) else None


def transposed(each: Operand) -> Operand:
    """The same memory, as the transposed matrix or matrices."""
    *groups, rows, columns = each.shape
    *distances, down, right = each.strides
    value = each.value.swapaxes(-2, -1)
    return replace(each, value=value, shape=(*groups, columns, rows), strides=(*distances, right, down))


@dataclass
class Described(TensorDescriptor):
    """A descriptor that knows by which name a plan has its memory (`Launch.sources`), "" for none."""

    source: str = ""


def describe(
    value: Any, shape: Sequence[int], strides: Sequence[int], block: Sequence[int], source: str = ""
) -> Described:  # fmt: skip
    """A descriptor of a tensor as the kernel sees it."""
    return Described(value, list(shape), list(strides), list(block), source=source)


def described_rows(each: Operand, block: Sequence[int]) -> Described | None:
    """A descriptor of what lies by rows, None for another order. Raises ValueError where TMA can't start."""
    check_alignment(each)
    strides = row_strides(each)
    return None if strides is None else describe(each.value, each.shape, strides, block, each.name)


def described(each: Operand, block: tuple[int, ...]) -> tuple[Described, bool]:
    """A descriptor of matrices for tiles of such rows and columns, and whether it is of the transposed ones.

    Raises ValueError for memory that TMA can't read.
    """
    if (found := described_rows(each, block)) is not None:
        return found, False
    if (found := described_rows(transposed(each), (*block[:-2], block[-1], block[-2]))) is not None:
        return found, True
    raise ValueError(
        f"{each.what}: expected rows or columns that are contiguous and start at multiples of {TMA_ALIGNMENT} bytes "
        f"({TMA_ALIGNMENT // each.element_bytes} elements), got the strides {each.strides} of the shape {each.shape}"
    )


# --- rows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """`count` rows of `columns` contiguous elements, `distance` elements apart."""

    count: int
    columns: int
    distance: int

    @property
    def block(self) -> int:
        """The power of two that holds a row."""
        return 1 << (self.columns - 1).bit_length()


def rows_of(each: Operand) -> Rows:
    """An operand of one dimension or more as rows. Raises ValueError where it is none, with what its strides are."""
    if not each.shape:
        raise ValueError(f"{each.what}: expected one dimension or more, got a single element")
    if 0 in each.shape:
        raise ValueError(f"{each.what}: expected elements, got the shape {each.shape}")
    columns = each.shape[-1]
    outer = [(extent, stride) for extent, stride in zip(each.shape, each.strides, strict=True)][:-1]
    distance = next((stride for extent, stride in reversed(outer) if extent != 1), columns)
    expected = distance
    contiguous = columns == 1 or each.strides[-1] == 1
    for extent, stride in reversed(outer):
        contiguous = contiguous and (extent == 1 or stride == expected)
        expected *= extent
    if not contiguous:
        raise ValueError(
            f"{each.what}: expected contiguous rows at one distance, got the strides {each.strides} of the shape "
            f"{each.shape}"
        )
    return Rows(prod(each.shape[:-1]), columns, distance)


UNIT = 8
"""Elements that a row and its distance are multiples of where 16 bytes are moved at a time."""


def unit_of(operands: tuple[Operand, ...], rows: tuple[Rows, ...]) -> int:
    """UNIT where rows are multiples of it long and apart, and all begin at multiples of 16 bytes; else 1."""
    are_multiples = all(each.columns % UNIT == 0 and each.distance % UNIT == 0 for each in rows)
    return UNIT if are_multiples and all(map(is_aligned, operands)) else 1


def width_of(operands: tuple[Operand, ...], rows: tuple[Rows, ...]) -> int:
    """Elements of 16 bytes where rows of one number begin equally far from multiples of 16 bytes; else 1."""
    width = TMA_ALIGNMENT // operands[0].element_bytes
    are_alike = len({each.distance % width for each in rows}) == 1
    return width if are_alike and all(map(is_aligned, operands)) else 1


# --- private functions of torch ---------------------------------------------------------------------------------------
#
# Calls are fast by these; what does the same takes their place where a version of torch lacks one. Torch promises none
# of them; 2.11 has all. Each function here looks for one, and returns it or a slower way by public names.


def _private(torch: Any, name: str) -> Any:
    """Return an attribute of `torch._C`, which may lie in modules below it; None where it is not there."""
    found = getattr(torch, "_C", None)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def current_raw_stream(torch: Any) -> Callable[[int], int]:
    """Return what gives the handle of the current stream of a device, by the device's number."""

    def by_public_names(device: int) -> int:
        return torch.cuda.current_stream(device).cuda_stream

    return _private(torch, "_cuda_getCurrentRawStream") or by_public_names


def is_capturing(torch: Any) -> Callable[[], bool]:
    """Return what says whether the current stream is captured into a graph."""
    return _private(torch, "_cuda_isCurrentStreamCapturing") or torch.cuda.is_current_stream_capturing


def empty_strided(torch: Any) -> Callable[[Sequence[int], Sequence[int], Any], Any]:
    """Return what allocates a tensor of a shape, strides and a type on the current device, as torch's compiler does."""

    def by_public_names(shape: Sequence[int], strides: Sequence[int], dtype: Any) -> Any:
        return torch.empty_strided(shape, strides, dtype=dtype, device="cuda")

    return _private(torch, "_dynamo.guards._empty_strided_cuda") or by_public_names


def tensor_guards(torch: Any) -> Any:
    """Return the class that compares tensors with those of an earlier call, in C; None where there is none."""
    return _private(torch, "_dynamo.guards.TensorGuards")


def dispatch_modes(torch: Any) -> Callable[[], int]:
    """Return what counts the modes that see every operation. Without it there may be one: torch is asked."""
    return _private(torch, "_len_torch_dispatch_stack") or (lambda: 1)


def transforms_are_active(torch: Any) -> Callable[[], bool]:
    """Return what says whether `torch.func` transforms the call. Without it it may: torch is asked."""
    return _private(torch, "_are_functorch_transforms_active") or (lambda: True)


def is_last_backward(torch: Any) -> bool:
    """Return whether the backward pass that runs is the last one of its graph, as far as torch says so."""
    keeps_graph = _private(torch, "_autograd._get_current_graph_task_keep_graph")
    return keeps_graph is not None and not keeps_graph()
