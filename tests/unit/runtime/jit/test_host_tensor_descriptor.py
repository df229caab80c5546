"""Tensor descriptors: what they check, and that Triton's are taken too."""

import numpy as np
import pytest

from tlx_xdsl.runtime import TensorDescriptor
from tlx_xdsl.runtime.launch.tensor_descriptor import dtype_name, element_size

pytestmark = pytest.mark.quick


def test_from_tensor_takes_shape_and_strides_over(make_tensor):
    tensor = make_tensor(rows=512, columns=256)
    descriptor = TensorDescriptor.from_tensor(tensor, [128, 64])
    assert descriptor == TensorDescriptor(tensor, [512, 256], [256, 1], [128, 64], "zero", False)


def test_numpy_array_is_a_tensor():
    descriptor = TensorDescriptor.from_tensor(np.zeros((6, 16), np.float32), [2, 8])
    assert (descriptor.shape, descriptor.strides) == ([6, 16], [16, 1])


@pytest.mark.backend
def test_fields_are_those_of_triton():
    """Triton accepts either class where the other is, so the names must stay the same."""
    from triton.tools.tensor_descriptor import TensorDescriptor as triton_class

    ours = list(TensorDescriptor.__dataclass_fields__)
    theirs = list(triton_class.__dataclass_fields__)
    assert ours[: len(theirs)] == theirs


def test_block_may_exceed_one_tma_box(make_tensor):
    """The compiler splits it: one box has at most 256 elements per dimension."""
    TensorDescriptor.from_tensor(make_tensor(), [1, 1024])


def test_placeholder_block_is_accepted(make_tensor):
    """Autotuned kernels put [1, 1] and fill in the tuned block later."""
    TensorDescriptor.from_tensor(make_tensor(), [1, 1]).block_shape = [64, 64]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": [], "strides": [], "block_shape": []}, r"shape: expected 1 to 5 dimensions, got 0"),
        ({"shape": [1] * 6, "strides": [1] * 6, "block_shape": [1] * 6}, r"got 6"),
        ({"strides": [1]}, r"strides: expected 2 entries like shape \[512, 256\], got 1"),
        ({"block_shape": [64]}, r"block_shape: expected 2 entries"),
        ({"shape": [0, 256]}, r"shape\[0\]: expected 1 to 2147483647 elements, got 0"),
        ({"strides": [256, 2]}, r"contiguous last dimension \(stride 1\), got \[256, 2\]; describe a trans"),
        ({"strides": [257, 1]}, r"strides\[0\]: expected a multiple of 16 bytes .* 257 elements of 2 bytes"),
        ({"strides": [1 << 40, 1]}, r"below 2\*\*40"),
        ({"strides": [-256, 1]}, r"strides\[0\]"),
        ({"block_shape": [128, 48]}, r"block_shape\[1\]: expected a power of two, got 48"),
        ({"block_shape": [0, 64]}, r"block_shape\[0\]: expected a power of two, got 0"),
        ({"block_shape": [2048, 1024]}, r"at most 1048576 elements, got 2097152"),
        ({"padding": "nearest"}, r"padding: expected 'zero' or 'nan', got 'nearest'"),
        ({"round_f32_to_tf32": True}, r"expected a float32 tensor, got torch.float16"),
    ],
)
def test_what_tma_cannot_address_is_refused(make_tensor, changes, message):
    fields = {"base": make_tensor(), "shape": [512, 256], "strides": [256, 1], "block_shape": [128, 64]}
    with pytest.raises(ValueError, match=message):
        TensorDescriptor(**(fields | changes))


def test_misaligned_base_is_refused(make_tensor):
    with pytest.raises(ValueError, match=r"16-byte aligned address, got 0x70000008 \(8 bytes past one\)"):
        TensorDescriptor.from_tensor(make_tensor(address=0x7000_0008), [128, 64])


def test_nan_padding_needs_floating_point(make_tensor):
    TensorDescriptor.from_tensor(make_tensor(), [128, 64], padding="nan")
    with pytest.raises(ValueError, match=r"floating-point tensor, got torch.int16"):
        TensorDescriptor.from_tensor(make_tensor(dtype="torch.int16"), [128, 64], padding="nan")


def test_symbolic_tensor_has_no_address_to_check(make_tensor):
    class FakeTensor(make_tensor):  # the name of torch.compile's class
        def data_ptr(self):
            raise RuntimeError("no storage")

    TensorDescriptor.from_tensor(FakeTensor(), [128, 64])


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("torch.float16", "fp16"),
        ("torch.bfloat16", "bf16"),
        ("float32", "fp32"),
        ("torch.float8_e4m3fn", "fp8e4nv"),
        ("torch.bool", "i1"),
        ("u1", "i1"),
        ("torch.uint8", "u8"),
        ("fp16", "fp16"),
        (np.dtype(np.int64), "i64"),
        ("torch.complex64", None),
    ],
)
def test_dtype_name(dtype, name):
    assert dtype_name(dtype) == name


def test_element_size(make_tensor):
    assert element_size(make_tensor()) == 2
    assert element_size(np.zeros(1, np.float64)) == 8
