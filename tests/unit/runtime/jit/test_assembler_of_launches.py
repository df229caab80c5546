"""The ptxas of launches: in the key and the metadata, and one warning of a product for all its configurations."""

import warnings

import pytest

pytest.importorskip("triton")

from triton import knobs

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.runtime.jit.jit_kernels import FakeTensor
from tlx_xdsl.backend.assemblers import found
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
from tlx_xdsl.runtime.jit.triton_compile import CompilationWarning, OldAssemblerWarning, warn_again

pytestmark = pytest.mark.backend


def two_products(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tile = at[:, None] * BLOCK + at[None, :]
    factor = tl.load(x + tile).to(tl.float16)
    tl.store(out + tile, tl.dot(tl.dot(factor, factor).to(tl.float16), factor))


def warmed(block: int):
    kernel = tlx_xdsl.jit(two_products)
    return kernel.warmup(FakeTensor(4096), FakeTensor(4096), BLOCK=block, grid=(1,))


def test_one_warning_of_a_product_for_all_configurations(tmp_path, monkeypatch):
    old = tmp_path / "ptxas"
    says = "echo 'Cuda compilation tools, release 12.9, V12.9.86'"
    old.write_text(f'#!/bin/sh\ncase "$*" in *--version*) {says}; exit;; esac\nexec {found()[0].path} "$@"\n')
    old.chmod(0o755)
    monkeypatch.delenv("TLX_ALLOW_OLD_PTXAS", raising=False)
    with knobs.cache.scope(), assume_target("sm_90a"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        knobs.cache.dir = str(tmp_path / "cache")
        by_default = warmed(64)
        monkeypatch.setenv("TLX_PTXAS", str(old))
        pinned = [warmed(64), warmed(128)]
        again = warmed(64)
    assert by_default.metadata.assembler == str(found()[0])
    assert [each.metadata.assembler for each in pinned] == ["ptxas 12.9.86 (pinned)"] * 2
    assert len({each.hash for each in (by_default, *pinned)}) == 3
    assert again.hash == pinned[0].hash
    # Triton up to 3.7 brings none that is right, and its own is warned of, too.
    said = [each for each in caught if each.category is OldAssemblerWarning and "pinned" in str(each.message)]
    (warning,) = said
    assert warning.filename == __file__
    assert warning.lineno == two_products.__code__.co_firstlineno + 4
    assert str(warning.message).startswith("old ptxas: ptxas 12.9.86 (pinned) may overwrite, before wgmma")


def test_what_several_processes_say_is_said_once():
    """Each process of an autotuner's compiles warns for itself, and the parent hands on what they said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in (OldAssemblerWarning, CompilationWarning) * 2:
            warn_again("of a line", category, "kernel.py", 7)
        warn_again("of a line", OldAssemblerWarning, "kernel.py", 8)
    said = [(each.category, each.lineno) for each in caught]
    assert said == [
        (OldAssemblerWarning, 7),
        (CompilationWarning, 7),
        (CompilationWarning, 7),
        (OldAssemblerWarning, 8),
    ]
