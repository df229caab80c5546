"""Compiled kernels on disk: what the next process finds, and what it must not take for the same."""

import dataclasses

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.backend import BackendResult, KernelMetadata
from tlx_xdsl.runtime import build as build_module
from tlx_xdsl.runtime.driver import binaries, cache
from tlx_xdsl.runtime.driver.binaries import Binary, binary_key, load_binary, store_binary
from tlx_xdsl.runtime.driver.compilation import Specialization

METADATA = KernelMetadata(
    "kernel", 100, 4, tensordesc_meta=({"swizzle": 3, "block_size": [64, 64]},), cluster=(2, 1, 1)
)


@tlx_xdsl.jit
def scaled(x, n, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path))
    # Files of the package may be edited while tests run.
    monkeypatch.setattr(binaries, "compiler_changed", lambda: False)
    return tmp_path


def test_a_binary_is_found_as_it_was_kept():
    store_binary("0" * 64, Binary(b"\x7fELF\n\x00", METADATA))
    assert load_binary("0" * 64) == Binary(b"\x7fELF\n\x00", METADATA)
    assert load_binary("1" * 64) is None


def test_what_is_damaged_is_absent():
    store_binary("0" * 64, Binary(b"\x7fELF", METADATA))
    path = cache.path_of("0" * 64, "nvidia")
    path.write_bytes(path.read_bytes()[:-1])
    assert load_binary("0" * 64) is None


def test_nothing_is_kept_of_a_compiler_that_was_edited(monkeypatch):
    monkeypatch.setattr(binaries, "compiler_changed", lambda: True)
    store_binary("0" * 64, Binary(b"", METADATA))
    assert load_binary("0" * 64) is None


SIGNATURE = {"x": "*fp32", "n": "i32", "factor": "fp32"}


@pytest.mark.parametrize(
    "change",
    [
        {"signature": SIGNATURE | {"n": "i64"}},
        {"constexprs": {"BLOCK": 128}},
        {"num_warps": 8},
        {"target": "sm_80"},
        {"cluster": (2, 1, 1)},
        {"maxnreg": 64},
        {"enable_fp_fusion": False},
        {"ptxas": "12.9"},
        {"allow_old_ptxas": True},
    ],
)
def test_the_key_covers_what_is_compiled_for(change):
    wanted = Specialization(SIGNATURE, {"BLOCK": 64})
    key = binary_key(scaled.source, wanted, "3.9.0")
    assert key == binary_key(scaled.source, dataclasses.replace(wanted), "3.9.0")
    assert key != binary_key(scaled.source, dataclasses.replace(wanted, **change), "3.9.0")


def test_the_key_covers_triton_and_its_settings(monkeypatch):
    wanted = Specialization(SIGNATURE, {"BLOCK": 64})
    keys = {binary_key(scaled.source, wanted, version) for version in ("3.6.0", "3.9.0")}
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    assert len(keys | {binary_key(scaled.source, wanted, "3.9.0")}) == 3


def test_a_kernel_is_compiled_once(monkeypatch):
    compiled = []

    def compile_kernel(kernel, wanted):
        compiled.append(wanted.constexprs["BLOCK"])
        return BackendResult("cubin", "3.9.0", "", cubin=b"\x7fELF", metadata=KernelMetadata("scaled", 16, 4))

    monkeypatch.setattr(build_module, "compile_kernel", compile_kernel)
    monkeypatch.setattr(build_module, "installed_triton_version", lambda: "3.9.0")
    launchers = [build_module.build(scaled, SIGNATURE, {"BLOCK": block}) for block in (64, 64, 128)]
    assert compiled == [64, 128]
    assert {(each.cubin, each.name, each.shared) for each in launchers} == {(b"\x7fELF", "scaled", 16)}
