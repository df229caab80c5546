"""Arguments of the zoo's kernels: small, and the same each time."""

import numpy as np

import tlx_xdsl


def numbers(*shape, dtype=np.float16):
    """0, 1, 2, ... 7, 0, ...: small enough for sums without rounding."""
    return (np.arange(np.prod(shape)) % 8).reshape(shape).astype(dtype)


def zeros(*shape, dtype=np.float16):
    return np.zeros(shape, dtype)


def empty(*shape, dtype="fp32"):
    """Make an uninitialized array, declared as such, as `torch.empty` does."""
    return tlx_xdsl.uninitialized(shape, dtype)


def described(array, *block):
    """The descriptor of an array, by blocks."""
    return tlx_xdsl.TensorDescriptor.from_tensor(array, list(block))


def tiles(count, rows=16, columns=16, dtype=np.float16):
    """A descriptor of `count` tiles above each other."""
    return described(numbers(count * rows, columns, dtype=dtype), rows, columns)
