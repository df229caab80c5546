"""Calls for several tiles at once: where they are made, and that they do what those of single tiles do."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tests.unit.ttl.metalium.metalium_programs import needs_compiler
from tlx_xdsl.ttl.cpp import PROFILES
from tlx_xdsl.ttl.runtime import Options, compile_kernel, run, specs_of


@ttl.kernel()
def product(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, 2), buffer_factor=2)
    b_cb = ttl.make_circular_buffer_like(b, shape=(2, 5), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 5), buffer_factor=2)

    @ttl.datamovement()
    def read():
        for _ in range(2):
            with a_cb.reserve() as x, b_cb.reserve() as y:
                ttl.copy(a[0:2, 0:2], x).wait()
                ttl.copy(b[0:2, 0:5], y).wait()

    @ttl.compute()
    def compute():
        for _ in range(2):
            with a_cb.wait() as x, b_cb.wait() as y, out_cb.reserve() as o:
                o.store(x @ y)

    @ttl.datamovement()
    def write():
        for _ in range(2):
            with out_cb.wait() as o:
                ttl.copy(o, out[0:2, 0:5]).wait()


@ttl.kernel()
def powers(a, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, 4))
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 4))

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as x:
            ttl.copy(a[0:2, 0:4], x).wait()

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, out_cb.reserve() as o:
            o.store(ttl.math.relu(x))

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0:2, 0:4]).wait()


def arrays():
    random = np.random.default_rng(0)
    a = random.integers(-4, 5, (64, 64)).astype(np.float32)
    b = random.integers(-4, 5, (64, 160)).astype(np.float32)
    return a, b, np.full((64, 160), np.nan, np.float32)


def calls(kernel, arrays, **options):
    module = compile_kernel(kernel, specs_of(kernel, arrays), Options(**options)).module
    return Counter(op.name.removeprefix("ttkernel.") for op in module.walk())


def test_products_of_blocks():
    blocks, tiles = calls(product, arrays()), calls(product, arrays(), block_calls=False)
    # 10 tiles in sub-blocks of 4 and 2: two sizes, each with an init.
    assert (blocks["matmul_block"], blocks["mm_block_init"], blocks["matmul_tiles"]) == (4, 2, 0)
    assert (tiles["matmul_block"], tiles["mm_block_init"], tiles["pack_tile_block"]) == (0, 0, 0)
    assert tiles["matmul_tiles"] > 2 * blocks["matmul_block"]


def test_blocks_are_packed_in_order_or_tile_by_tile():
    a, b, out = arrays()
    one = np.zeros((64, 128), np.float32)
    assert calls(powers, (one, one))["pack_tile_block"] == 1
    assert calls(powers, (one, one))["pack_tile"] == 0
    # Sub-blocks of two sizes, which are not the rows of the block one after the other.
    assert calls(product, (a, b, out))["pack_tile_block"] == 0


@needs_compiler
@pytest.mark.parametrize("block_calls", [True, False])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_cpp_computes_the_same(profile, block_calls):
    a, b, out = arrays()
    options = Options(profile=profile, block_calls=block_calls)
    run(product, a, b, out, machine="cpp", options=options)
    np.testing.assert_array_equal(out, a @ b)
    x = a.repeat(2, axis=1)
    y = np.full_like(x, np.nan)
    run(powers, x, y, machine="cpp", options=options)
    np.testing.assert_array_equal(y, np.maximum(x, 0))


@pytest.mark.parametrize("machine", ["tensors", "ttkernel"])
def test_the_machines_compute_the_same(machine):
    a, b, out = arrays()
    run(product, a, b, out, machine=machine)
    np.testing.assert_array_equal(out, a @ b)


@needs_compiler
@pytest.mark.parametrize("profile", PROFILES)
def test_zones_of_the_profiler_are_lines_of_python(profile):
    a, b, out = arrays()
    options = Options(profile=profile, schedule=False, zones=True)
    sources = compile_kernel(product, specs_of(product, (a, b, out)), options).sources
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    loop = next(number for number, line in enumerate(lines, 1) if "for _ in range(2)" in line)
    wait = next(number for number, line in enumerate(lines, 1) if "with a_cb.reserve() as x, b_cb.reserve()" in line)
    assert f'DeviceZoneScopedN("{Path(__file__).name}:{loop}");' in sources["read.cpp"]
    reserve = "a_cb.reserve_back(" if profile.endswith("objects") else "cb_reserve_back(a_cb, "
    assert f'{{ DeviceZoneScopedN("{Path(__file__).name}:{wait}"); {reserve}' in sources["read.cpp"]
    assert "kernel_profiler.hpp" in sources["compute.cpp"]
    run(product, a, b, out, machine="cpp", options=options)
    np.testing.assert_array_equal(out, a @ b)
    assert not [
        text for text in compile_kernel(product, specs_of(product, (a, b, out))).sources.values() if "Zone" in text
    ]


@ttl.kernel(grid=(1, 1))
def posted(x, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))

    @ttl.datamovement()
    def read():
        for i in range(2):
            with ttl.signpost("load"), x_cb.reserve() as block:
                ttl.copy(x[i, 0], block).wait()

    @ttl.compute()
    def compute():
        for _ in range(2):
            with x_cb.wait() as block, out_cb.reserve() as o, ttl.signpost("both"):
                value = ttl.math.exp(block)
                with ttl.signpost("last"):
                    o.store(value)

    @ttl.datamovement()
    def write():
        with ttl.signpost("all"):
            for i in range(2):
                with out_cb.wait() as block:
                    ttl.copy(block, out[i, 0]).wait()


@needs_compiler
@pytest.mark.parametrize("profile", PROFILES)
def test_signposts_are_zones(profile):
    """Statements of the loop are in the zone, those that begin the thread are not, and all names are in scope."""
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32) / 4096
    out = np.full_like(x, np.nan)
    options = Options(profile=profile, schedule=False, zones=True, lines=False)
    sources = compile_kernel(posted, specs_of(posted, (x, out)), options).sources
    zones = {name: re.findall(r'DeviceZoneScopedN\("(\w+)"\);', text) for name, text in sources.items()}
    assert zones == {"read.cpp": ["load"], "compute.cpp": ["both", "last", "last"], "write.cpp": ["all"]}
    body = sources["read.cpp"].partition('DeviceZoneScopedN("load");')[2].partition("\n    }\n")[0]
    assert all(text in body for text in ("reserve_back(", "read_barrier(", "push_back("))
    assert "TensorAccessor(" not in body
    run(posted, x, out, machine="cpp", options=options)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-6)
    silent = compile_kernel(posted, specs_of(posted, (x, out)), Options(profile=profile)).sources
    assert not [text for text in silent.values() if "Zone" in text]
