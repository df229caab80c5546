"""Every kernel of the oracle that stock's own conversion brings to LLVM, ours does, too.

What stock refuses (an operation that its version lacks, a rounding, a combination of cache modifiers) is no fault of
ours. Values are compared in tests/unit/interpreter/oracle.
"""

import os

import pytest

from tests.oracle import loading, ours
from tlx_xdsl.backend import BackendError, BackendOptions, compile_ttgir, installed_triton_version
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.pipelines import plain_pipeline, run_pipeline, ttgir_pipeline

pytestmark = pytest.mark.backend
pytest.importorskip("triton", reason="stock Triton is not installed")

NAMES = [*loading.names(), *((loading.CORPUS, name) for name in loading.corpus_names())]
EVERY = 1 if os.environ.get("TLX_TEST_VOLUME") == "full" else 12
"""Of so many kernels one is compiled."""


def to_llvm(case, passes):
    """Compile a kernel through these passes; they and stock's must leave nothing that stock cannot translate."""
    module = ours.build(case)
    run_pipeline(module, passes, make_context())
    verify_module(module)
    text = print_module(module, profile=profile_for(installed_triton_version()))
    compile_ttgir(text, BackendOptions(), stages="llir")


@pytest.mark.parametrize(("path", "name"), NAMES[::EVERY], ids=[name for _, name in NAMES[::EVERY]])
def test_what_stock_converts_we_convert(path, name):
    case = loading.load(path, ours=False)[name]
    try:
        to_llvm(case, plain_pipeline())
    except (BackendError, CompilationError) as refusal:
        pytest.skip(f"stock refuses it: {refusal.message}")
    to_llvm(case, ttgir_pipeline())
