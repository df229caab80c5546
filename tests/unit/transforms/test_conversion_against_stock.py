"""Every kernel of the oracle that stock's own conversion brings to a device binary, ours does, too.

What stock refuses (an operation that its version lacks, a rounding, a combination of cache modifiers) is no fault of
ours. Values are compared in tests/unit/interpreter/oracle.
"""

import os

import pytest

from tests.oracle import loading, ours
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendError, BackendOptions, compile_ttgir
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.compilation import passes_for, text_for_triton
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.pipelines import run_pipeline

pytestmark = pytest.mark.backend
pytest.importorskip("triton", reason="stock Triton is not installed")

NAMES = [*loading.names(), *((loading.CORPUS, name) for name in loading.corpus_names())]
FULL = os.environ.get("TLX_TEST_VOLUME") == "full"
EVERY = 1 if FULL else 12
"""Of so many kernels one is compiled."""
UPTO = "cubin" if FULL else "llir"
"""After LLVM IR nothing is known of layouts: the binary only takes time."""


def lower(case, *, plain):
    """Compile a kernel through our passes; they and stock's must leave nothing that stock cannot translate."""
    module, profile = ours.launchable(case), profile_for(INSTALLED)
    run_pipeline(module, passes_for(profile, plain=plain), make_context())
    verify_module(module)
    compile_ttgir(text_for_triton(module, profile, plain=plain), BackendOptions(), stages=UPTO)


@pytest.mark.parametrize(("path", "name"), NAMES[::EVERY], ids=[name for _, name in NAMES[::EVERY]])
def test_what_stock_converts_we_convert(path, name):
    case = loading.load(path, ours=False)[name]
    try:
        lower(case, plain=True)
    except (BackendError, CompilationError) as refusal:
        pytest.skip(f"stock refuses it: {refusal.message}")
    lower(case, plain=False)
