"""Epilogues by name for `gemm`: what is done with the f32 sums of a product before they are stored.

Each is a `tlx_xdsl.jit` function of the sums of a part of C, (rows, columns), and of operands that broadcast against
it: (rows, 1), (1, columns) or (rows, columns), as `epilogue` hands them over. A user's own functions look the
same:

    @tlx_xdsl.jit
    def clipped(sums, bias):
        return tl.minimum(tl.maximum(sums + bias, -1.0), 1.0)

    c = gemm(a, b, epilogue=clipped, columns=(bias,))
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.language.extra import libdevice


@tlx_xdsl.jit
def gelu(x):
    """GELU: x Phi(x) by the tanh formula: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as x / (1 + e^-2(...))."""
    # -2 log2(e) sqrt(2 / pi), and that times 0.044715.
    inner = x * (-2.302208198144325 - 0.10294324 * (x * x))
    return libdevice.fast_dividef(x, 1.0 + tl.exp2(inner))


@tlx_xdsl.jit
def silu(x):
    """SiLU: x / (1 + e^-x)."""
    return libdevice.fast_dividef(x, 1.0 + tl.exp2(x * -1.4426950408889634))


@tlx_xdsl.jit
def relu(x):
    """ReLU: x where it is positive, else 0; NaN stays NaN."""
    return tl.where(x < 0.0, 0.0, x)


@tlx_xdsl.jit
def add(sums, other):
    """The sums and a bias or another matrix."""
    return sums + other


@tlx_xdsl.jit
def add_gelu(sums, bias):
    """GELU of the sums and a bias."""
    return gelu(sums + bias)


@tlx_xdsl.jit
def add_silu(sums, bias):
    """SiLU of the sums and a bias."""
    return silu(sums + bias)


@tlx_xdsl.jit
def add_relu(sums, bias):
    """ReLU of the sums and a bias."""
    return relu(sums + bias)


@tlx_xdsl.jit
def multiply(sums, factor):
    """The sums times a factor."""
    return sums * factor


@tlx_xdsl.jit
def multiply_both(sums, of_row, of_column):
    """The sums times the factors of row and column."""
    return sums * of_row * of_column


@tlx_xdsl.jit
def swiglu(gate, up):
    """SiLU of the first half's sums times the second half's."""
    return silu(gate) * up


@dataclass(frozen=True)
class Epilogue:
    """A function, how many operands of each kind it takes, and whether B is two halves (`paired`)."""

    function: Any
    rows: int = 0
    columns: int = 0
    matrix: bool = False
    paired: bool = False


EPILOGUES = {
    "gelu": Epilogue(gelu),
    "silu": Epilogue(silu),
    "relu": Epilogue(relu),
    "bias": Epilogue(add, columns=1),
    "bias_gelu": Epilogue(add_gelu, columns=1),
    "bias_silu": Epilogue(add_silu, columns=1),
    "bias_relu": Epilogue(add_relu, columns=1),
    "residual": Epilogue(add, matrix=True),
    "scale_rows": Epilogue(multiply, rows=1),
    "scale_columns": Epilogue(multiply, columns=1),
    "scale_both": Epilogue(multiply_both, rows=1, columns=1),
    "swiglu": Epilogue(swiglu, paired=True),
}
"""What `gemm(epilogue=...)` takes by name."""
