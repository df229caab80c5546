"""Runs of the code on the pages about kernels to import, as it stands there."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tlx_xdsl.kernels.attention import attention_forward
from tlx_xdsl.kernels.attention.decode.call import attention_decode
from tlx_xdsl.kernels.gemm import gemm
from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm
from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm
from tlx_xdsl.kernels.rows.norm import layer_norm
from tlx_xdsl.kernels.rows.softmax import softmax

DOCS = Path(__file__).parents[3] / "docs"


def zeros(*shape, dtype=np.float16):
    return np.zeros(shape, dtype)


def eights(*shape):
    return zeros(*shape, dtype=np.float32).astype(ml_dtypes.float8_e4m3fn)


ONE = np.ones(1, np.float32)
MISTAKES: dict[str, list[Callable[[], object]]] = {
    "gemm.md": [
        lambda: gemm(zeros(70, 48), zeros(80, 48)),
        lambda: gemm(zeros(4, 8, dtype=np.float32), zeros(8, 8, dtype=np.float32)),
        lambda: gemm(zeros(4, 8)[:, ::-1], zeros(8, 8)),
        lambda: gemm(zeros(4, 8), zeros(8, 8), epilogue="bias"),
        lambda: scaled_gemm(eights(16, 16), eights(16, 16), ONE, ONE),
        lambda: grouped_gemm(zeros(16, 16), zeros(3, 16, 16), np.array([1, 2], np.int32)),
    ],
    "attention.md": [
        lambda: attention_forward(zeros(1, 4, 10, 64), zeros(1, 3, 10, 64), zeros(1, 3, 10, 64)),
        lambda: attention_forward(*[zeros(1, 4, 10, 264)] * 3),
        lambda: attention_forward(*[zeros(1, 4, 10, 64, dtype=np.float32)] * 3),
        lambda: attention_forward(*[zeros(1, 4, 10, 64)] * 3, window=(-3, 2)),
    ],
    "kernels.md": [
        lambda: softmax(zeros(3, 4, dtype=np.int32)),
        lambda: layer_norm(zeros(3, 4), weight=zeros(5)),
        lambda: attention_decode(zeros(1, 4, 65, 64), zeros(1, 4, 100, 64), zeros(1, 4, 100, 64)),
    ],
}
"""By page, what gives each message of its table of errors, in the table's order."""


@pytest.mark.parametrize("page", MISTAKES)
def test_errors_are_as_shown(page):
    table = (DOCS / page).read_text().partition("| call | error |\n")[2].partition("\n\n")[0]
    shown = re.findall(r"\| `(\w+: .*)` \|$", table, re.MULTILINE)
    assert len(shown) == len(MISTAKES[page])
    for text, make in zip(shown, MISTAKES[page], strict=True):
        with pytest.raises((TypeError, ValueError)) as error:
            make()
        begin = text.removesuffix("...").rstrip()
        assert str(error.value) == text if begin == text else str(error.value).startswith(begin)


@pytest.mark.parametrize(("page", "count"), [("kernels.md", 4), ("gemm.md", 1), ("attention.md", 9), ("comm.md", 1)])
def test_python_runs(page, count, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == count
    # A kernel's source has to be in a file.
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    runpy.run_path(str(program))
