"""Products by AMX's tiles, on a model of its instructions written from Intel's manual: few CPUs have them.

The module's text calls functions of Python in the place of the instructions; the oracle is numpy.
"""

# covers: target.cpu

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tests.unit import volume
from tests.unit.cpu.codegen.native import Guarded, Native
from tests.unit.cpu.codegen.test_dot_instructions import LINUX, halves, made, module_of
from tlx_xdsl.cpu.codegen import host as hosts
from tlx_xdsl.cpu.codegen.host import NATIVE, Features, Host, host, named_host
from tlx_xdsl.cpu.codegen.llvm import load, optimized
from tlx_xdsl.cpu.codegen.module import CpuObject, llvm_module

ON_AMX = Features(True, 64, 32, byte_products=True, tiles=True)
AMX = ("ldtilecfg", "tileloadd", "tilestored", "tilerelease")


class Model:
    """Tiles, and the instructions by the names of LLVM's intrinsics (Intel SDM, volume 2)."""

    def __init__(self) -> None:
        self.tiles: Any = None
        self.errors: list[str] = []
        self.counts: dict[str, int] = {}
        byte, address, stride = ctypes.c_int8, ctypes.c_void_p, ctypes.c_int64
        operands = {
            "ldtilecfg": [address], "tilerelease": [], "tileloadd64": [byte, address, stride],
            "tilestored64": [byte, address, stride], "tdpbf16ps": [byte] * 3, "tdpbssd": [byte] * 3,
        }  # fmt: skip
        self.externals = {
            f"amx.{name}": ctypes.CFUNCTYPE(None, *types)(self._counted(name)) for name, types in operands.items()
        }

    def _counted(self, name: str):
        def call(*operands: Any) -> None:
            self.counts[name] = self.counts.get(name, 0) + 1
            if (self.tiles is None) != (name == "ldtilecfg"):
                self.errors.append(f"{name} where tiles are {'not ' if self.tiles is None else ''}configured")
            try:
                getattr(self, name)(*operands)
            except Exception as error:  # ctypes would only print it
                self.errors.append(repr(error))

        return call

    def ldtilecfg(self, place: int) -> None:
        given = np.frombuffer(ctypes.string_at(place, 64), np.uint8)
        assert given[:2].tolist() == [1, 0]
        assert not given[2:16].any()
        assert not given[32:48].any()
        assert given[16:32].view(np.uint16).tolist() == [64] * 8
        assert given[48:56].tolist() == [16] * 8
        assert not given[56:].any()
        self.tiles = np.full((8, 16, 64), 0xFF, np.uint8)

    def tilerelease(self) -> None:
        self.tiles = None

    def tileloadd64(self, tile: int, place: int, stride: int) -> None:
        for row in range(16):
            self.tiles[tile, row] = np.frombuffer(ctypes.string_at(place + row * stride, 64), np.uint8)

    def tilestored64(self, tile: int, place: int, stride: int) -> None:
        for row in range(16):
            ctypes.memmove(place + row * stride, self.tiles[tile, row].tobytes(), 64)

    def tdpbf16ps(self, total: int, a: int, b: int) -> None:
        x, y = (self.tiles[each].view(ml_dtypes.bfloat16).astype(np.float32) for each in (a, b))
        sums = np.zeros((2, 16, 16), np.float32)
        for k in range(16):
            # A product of two bf16 is a float32: only the addition rounds.
            for each in range(2):
                sums[each] += x[:, 2 * k + each, None] * y[k, None, each::2]
        self.tiles[total].view(np.float32)[...] += sums[0] + sums[1]

    def tdpbssd(self, total: int, a: int, b: int) -> None:
        x, y = (self.tiles[each].view(np.int8).astype(np.int64) for each in (a, b))
        wide = np.moveaxis(y.reshape(16, 16, 4), 2, 1).reshape(64, 16)
        self.tiles[total].view(np.int32)[...] += (x @ wide).astype(np.int32)


def run(element: str, a: Any, b: Any, m: int, n: int, k: int, *, turned: bool) -> tuple[Any, Model]:
    text, metadata = llvm_module(module_of(element, m, n, k), replace(host(), features=ON_AMX), checks=False)
    model = Model()
    for name in ("ldtilecfg", "tile", "tdp"):
        text = text.replace(f"@llvm.x86.{name}", f"@amx.{name}")
    code = optimized(text).object_code()
    kernel = Native(CpuObject(code, metadata), load(code, metadata.symbol, model.externals))
    c = np.full((m, n), 99, np.int32 if element == "i8" else np.float32)
    guarded = [Guarded(each) for each in (a, np.ascontiguousarray(b.T) if turned else b, c)]
    x, y, z = (each.array for each in guarded)
    depth = a.shape[1]
    assert kernel.run((1, 1, 1), [x, y, z, depth, 1 if turned else n, depth if turned else 1]) is None
    for each in guarded:
        each.check()
    assert not model.errors
    assert model.tiles is None
    return z, model


SHAPES = [(128, 128, 64, 192), (16, 16, 64, 64), (32, 64, 128, 140)] + (
    [(64, 16, 64, 256), (16, 32, 256, 33)] if volume.is_full() else []
)
"""Rows, columns, the depth of a tile of the kernel, and the whole depth: some are masked."""


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "depth"), SHAPES)
def test_products_of_bytes(m: int, n: int, k: int, depth: int, turned: bool):
    rng = np.random.default_rng(depth)
    a, b = (rng.integers(-128, 128, size).astype(np.int8) for size in ((m, depth), (depth, n)))
    a[0], b[:, 0] = -128, -128
    found, model = run("i8", a, b, m, n, k, turned=turned)
    assert (found == a.astype(np.int64) @ b.astype(np.int64)).all()
    steps = -(-depth // k)
    assert model.counts["tdpbssd"] == steps * m // 16 * n // 16 * k // 64
    assert model.counts["ldtilecfg"] == model.counts["tilerelease"] == steps


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "depth"), SHAPES)
def test_products_of_bf16(m: int, n: int, k: int, depth: int, turned: bool):
    a, b = halves(m, n, depth)
    found, model = run("bf16", a, b, m, n, k, turned=turned)
    wide = a.astype(float), b.astype(float)
    bound = depth * 2.0**-24 * (np.abs(wide[0]) @ np.abs(wide[1]))
    assert (np.abs(found - wide[0] @ wide[1]) <= bound).all()
    assert model.counts["tdpbf16ps"] == -(-depth // k) * m // 16 * n // 16 * k // 32


@pytest.mark.parametrize("target", [("sapphirerapids", ""), ("x86-64-v4", "+amx-tile,+amx-bf16,+amx-int8,+avx512vnni")])
@pytest.mark.parametrize(("element", "instruction"), [("bf16", "tdpbf16ps"), ("i8", "tdpbssd")])
def test_the_text(element: str, instruction: str, target: tuple[str, str]):
    on = Host(LINUX, *target, ON_AMX)
    text = made(on, element, 32, 32, 64)[0].assembly()
    # Two tiles of rows by two of columns: four products of as many loads in a turn, and four accumulators.
    assert [text.count(f"\t{each}") for each in (instruction, *AMX)] == [4, 1, 8, 4, 1]
    assert text.index("ldtilecfg") < text.index("tileloadd") < text.index(instruction) < text.index("tilerelease")
    for other, shape in ((replace(on, features=replace(ON_AMX, tiles=False)), (32, 32, 64)), (on, (8, 32, 64)),
                         (on, (32, 8, 64)), (on, (32, 32, 16 if element == "bf16" else 32))):  # fmt: skip
        text = made(other, element, *shape)[0].assembly()
        assert not any(each in text for each in (instruction, *AMX)), shape


@pytest.mark.quick
@pytest.mark.parametrize(
    ("has", "is_allowed", "expected"),
    [
        (("tile", "bf16", "int8"), True, True),
        (("tile", "bf16", "int8"), False, False),
        (("tile", "int8"), True, False),
        ((), True, False),
    ],
)
def test_tiles_need_the_cpu_and_the_permission(
    has: tuple[str, ...], is_allowed: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
):
    held = dict.fromkeys(("avx512f", *(f"amx-{each}" for each in has)), True)
    binding = SimpleNamespace(
        get_host_cpu_name=lambda: "sapphirerapids", get_host_cpu_features=lambda: held, get_process_triple=lambda: LINUX
    )  # fmt: skip
    asked: list[bool] = []
    monkeypatch.setattr(hosts, "llvm", lambda: binding)
    monkeypatch.setattr(hosts, "may_use_tiles", lambda: asked.append(True) or is_allowed)
    found = host.__wrapped__()
    assert found.features.tiles == expected
    assert found.has("amx-tile") == ("tile" in has and is_allowed)
    # A process asks for what the CPU has, and for nothing else.
    assert asked == [True] * ("tile" in has)
    # Files are loaded by processes that have not asked.
    monkeypatch.setattr(hosts, "host", lambda: found)
    assert not named_host(NATIVE).features.tiles


@pytest.mark.quick
def test_a_cpu_without_tiles_gives_none():
    cpu = Path("/proc/cpuinfo")
    if not cpu.exists() or "amx_tile" in cpu.read_text():
        pytest.skip("this CPU may have AMX")
    assert not hosts.may_use_tiles()
