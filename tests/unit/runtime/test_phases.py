"""Ranges of compile phases and launches, made by a stand-in for the package `nvtx`."""

from __future__ import annotations

import importlib.machinery
import sys
import types

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.runtime.driver import phases as nvtx


@tlx_xdsl.jit
def store_one(x):
    tl.store(x, 1)


@pytest.fixture
def ranges(monkeypatch):
    """The ranges that are made, as they begin (a name) and end (None)."""
    seen = []
    stand_in = types.ModuleType("nvtx")
    stand_in.__spec__ = importlib.machinery.ModuleSpec("nvtx", None)
    stand_in.push_range = seen.append
    stand_in.pop_range = lambda: seen.append(None)
    monkeypatch.setitem(sys.modules, "nvtx", stand_in)
    monkeypatch.setenv(nvtx.VARIABLE, "1")
    nvtx._functions.cache_clear()
    yield seen
    nvtx._functions.cache_clear()


def test_the_phases_of_a_compile_are_ranges(ranges):
    store_one.compile({"x": "*fp32"})
    assert ranges == ["tlx: frontend of store_one", None, "tlx: passes of store_one", None]


def test_a_range_ends_with_an_error(ranges):
    with pytest.raises(tlx_xdsl.CompilationError):
        store_one.compile({})
    assert ranges == ["tlx: frontend of store_one", None]


def test_without_the_variable_there_are_none(ranges, monkeypatch):
    for value in ("0", ""):
        monkeypatch.setenv(nvtx.VARIABLE, value)
        store_one.compile({"x": "*fp32"})
    monkeypatch.delenv(nvtx.VARIABLE)
    store_one.compile({"x": "*fp32"})
    assert ranges == []


def test_where_nothing_makes_them_a_warning_says_so(ranges, monkeypatch):
    monkeypatch.setattr(nvtx, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    nvtx._functions.cache_clear()
    with pytest.warns(UserWarning, match="TLX_NVTX asks for ranges, which the package nvtx makes"):
        store_one.compile({"x": "*fp32"})


@pytest.mark.backend
def test_launches_through_tritons_runtime_are_ranges(ranges):
    knobs = pytest.importorskip("triton.knobs")
    before = [*knobs.runtime.launch_enter_hook.calls], [*knobs.runtime.launch_exit_hook.calls]
    nvtx.follow_launches()
    nvtx.follow_launches()
    try:
        knobs.runtime.launch_enter_hook(types.SimpleNamespace(get=lambda: {"name": "store_one"}))
        knobs.runtime.launch_exit_hook(types.SimpleNamespace(get=lambda: {"name": "store_one"}))
        assert ranges == ["tlx: launch of store_one", None]
    finally:
        knobs.runtime.launch_enter_hook.calls[:], knobs.runtime.launch_exit_hook.calls[:] = before
