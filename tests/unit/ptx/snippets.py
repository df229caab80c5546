"""Short kernels of PTX for the tests of the machine."""

import re
from pathlib import Path

import numpy as np

from tlx_xdsl.ptx import run_ptx

_PARAMETERS = {"*": ".param .u64", "i": ".param .u32", "l": ".param .u64", "f": ".param .f32"}
_DECLARATIONS = """\
    .reg .pred %p<16>;
    .reg .b16 %rs<16>;
    .reg .b32 %r<64>;
    .reg .b64 %rd<32>;
    .reg .f32 %f<16>;
    .reg .f64 %fd<8>;
"""


def kernel(body: str, parameters: str = "*", *, threads: int = 32, target: str = "sm_90a", shared: str = "") -> str:
    """A kernel with parameters p0, p1, ...: `*` pointers, `i` and `l` integers of 32 and 64 bits, `f` floats.

    `%rd0` has the first parameter, and `%r0` the number of the thread.
    """
    listed = ",\n".join(f"    {_PARAMETERS[letter]} p{number}" for number, letter in enumerate(parameters))
    first = "    ld.param.u64 %rd0, [p0];\n" if parameters else ""
    return (
        f".version 8.7\n.target {target}\n.address_size 64\n{shared}\n"
        f".visible .entry test(\n{listed}\n)\n.reqntid {threads}\n{{\n{_DECLARATIONS}{first}"
        f"    mov.u32 %r0, %tid.x;\n{body}\n    ret;\n}}\n"
    )


def line_of(text: str, part: str) -> int:
    """The line of the first instruction that has a part."""
    return next(number for number, line in enumerate(text.split("\n"), 1) if part in line)


def each_thread(body: str, *inputs: np.ndarray, dtype: type = np.uint32, count: int = 32) -> np.ndarray:
    """Return each thread's `%r1` or `%rd1` after a body, whose inputs are in `%r10`, ... or `%rd10`, ...."""
    size = np.dtype(dtype).itemsize
    loads = "".join(
        f"    ld.param.u64 %rd20, [p{number + 1}];\n    mad.wide.u32 %rd20, %r0, {array.itemsize}, %rd20;\n"
        f"    ld.global.b{8 * array.itemsize} {_register(array.itemsize)}{10 + number}, [%rd20];\n"
        for number, array in enumerate(inputs)
    )
    store = f"    mad.wide.u32 %rd20, %r0, {size}, %rd0;\n    st.global.b{8 * size} [%rd20], {_register(size)}1;\n"
    text = kernel(loads + body + "\n" + store, "*" * (len(inputs) + 1), threads=count)
    out = np.zeros(count, dtype)
    run_ptx(text, 1, [out, *inputs])
    return out


def _register(size: int) -> str:
    return {2: "%rs", 4: "%r", 8: "%rd"}[size]


def without_debug(text: str) -> str:
    """PTX without its debug sections."""
    return re.split(r"\n\t\.section", text)[0]


ROOT = Path(__file__).parents[3]
