"""Every malformed module ends in a located diagnostic, and the calling process and its next compile live on."""

import os

import pytest
from backend_kernels import TMEM_TOO_LARGE, VECTOR_ADD, needs_triton
from malformed_modules import HOPPER, LOWERED, PARSED, Malformed

from tests.versions import RELEASE
from tlx_xdsl.backend import BackendError, BackendOptions, compile_ttgir

pytestmark = needs_triton

NAME = "kernel.ttgir"


@pytest.mark.parametrize("malformed", [*PARSED, *LOWERED], ids=lambda malformed: malformed.name)
def test_a_malformed_module_ends_in_a_located_diagnostic(malformed: Malformed):
    with pytest.raises(BackendError, match=malformed.message) as info:
        compile_ttgir(malformed.text, malformed.options, source_name=NAME)
    error = info.value
    assert error.location is not None
    if ".py:" in malformed.place:
        assert str(error.location) == malformed.place
        return
    assert error.location.filename == NAME
    assert error.location.column > 0
    if malformed.place != "<first line>":
        assert malformed.place in malformed.text.splitlines()[error.location.line - 1]


def test_the_callers_of_an_inlined_function_are_reported():
    (inlined,) = [malformed for malformed in PARSED if "inlined" in malformed.name]
    with pytest.raises(BackendError) as info:
        compile_ttgir(inlined.text, inlined.options)
    assert info.value.notes[:2] == ("middle.py:5:6: called from here", "user.py:5:1: called from here")


def test_a_compile_in_this_process_is_located_too_where_stock_lives_on():
    (bare,) = [malformed for malformed in LOWERED if malformed.name == "tensor without layout"]
    with pytest.raises(BackendError) as info:
        compile_ttgir(bare.text, bare.options, isolation="none")
    assert str(info.value.location) == bare.place
    assert "a tensor of this operation has no layout" in info.value.notes


def test_this_process_lives_on():
    pid = os.getpid()
    assert compile_ttgir(VECTOR_ADD, HOPPER).cubin
    assert os.getpid() == pid


@pytest.mark.skipif(RELEASE < (3, 8), reason="compiles there")
def test_an_abort_while_a_layout_is_read():
    """3.8 asserts over this layout as soon as it reads the alias; 3.9 refuses it in words."""
    text = TMEM_TOO_LARGE.replace("colStride = 1", "colStride = 1, twoCTAs = true").replace("9x128", "1x128")
    with pytest.raises(BackendError) as info:
        compile_ttgir(text, BackendOptions(target="sm_100a"), source_name=NAME)
    assert info.value.location is not None
    assert "twoCTAs" in text.splitlines()[info.value.location.line - 1]
