"""The programs of users under tt-lang's own simulator (`pip install tt-lang-sim`): the same numbers as ours.

The simulator runs the Python text on torch tensors. It knows the later spelling only; but for the line that imports
`ttl`, the texts are the same for both.
"""

# covers: ttl.math, ttl.buffers, ttl.tensors, ttl.kernel

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

import tlx_xdsl.ttl.runtime as runtime

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ttl") is None or importlib.util.find_spec("torch") is None,
    reason="needs tt-lang-sim and torch: pip install tt-lang-sim",
)

RUNNER = """
import importlib.util, json, sys
import numpy as np, torch
from ttl.sim import ttnn
folder, names = sys.argv[1], json.loads(sys.argv[2])
arrays = np.load(folder + "/inputs.npz")
for name, count in names.items():
    spec = importlib.util.spec_from_file_location(name, f"{folder}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tensors = [ttnn.from_torch(torch.from_numpy(arrays[f"{name}_{i}"].copy())) for i in range(count)]
    module.kernel(*tensors)
    np.save(f"{folder}/{name}.npy", ttnn.to_torch(tensors[-1]).numpy())
"""
"""A process of its own: the simulator changes torch's types for the whole process that imports it."""

THREADS = """
    @ttl.datamovement()
    def read():
        for r in range({rows}):
            for c in range({columns}):
{reads}

    @ttl.datamovement()
    def write():
        for r in range({rows}):
            for c in range({columns}):
                with out_cb.wait() as block:
                    ttl.copy(block, out[{place}]).wait()
"""


def one_core(inputs, body, out, *, grid=(2, 2)):
    """A kernel of one core: `inputs` are (rows, columns, place) of each, in tiles; `body` stores to o."""
    names = "abd"[: len(inputs)]
    lines = [f"@ttl.operation(grid=(1, 1))\ndef kernel({', '.join(names)}, out):"]
    for name, (rows, columns, _) in zip(names, inputs, strict=True):
        lines.append(f"    {name}_cb = ttl.make_dataflow_buffer_like({name}, shape=({rows}, {columns}), block_count=2)")
    lines.append(f"    out_cb = ttl.make_dataflow_buffer_like(out, shape=({out[0]}, {out[1]}), block_count=2)")
    waits = ", ".join(f"{name}_cb.wait() as x{name}" for name in names)
    lines += ["", "    @ttl.compute()", "    def compute():", f"        for _ in range({grid[0] * grid[1]}):",
              f"            with {waits}, out_cb.reserve() as o:"]  # fmt: skip
    lines += ["                " + line for line in body]
    reads = [
        f"                with {name}_cb.reserve() as block:\n"
        f"                    ttl.copy({name}[{place}], block).wait()"
        for name, (_, _, place) in zip(names, inputs, strict=True)
    ]
    threads = THREADS.format(rows=grid[0], columns=grid[1], reads="\n".join(reads), place=out[2])
    return "\n".join(lines) + "\n" + threads


def block(rows, columns, row="r", column="c"):
    """The place of a block of the row and column of the loops."""
    return rows, columns, f"{row} * {rows} : {row} * {rows} + {rows}, {column} * {columns} : ({column} + 1) * {columns}"


SPREAD = "ttl.block.broadcast({}, dims=[1], shape=(1, 3))"
PROGRAMS = {
    "fused": (one_core([block(1, 3)] * 3, ["o.store(xa * xb + xd)"], block(1, 3)), [(64, 192)] * 4),
    "choice": (
        one_core([block(2, 1)] * 2, ["o.store(ttl.math.max(xa, -xb) - ttl.math.min(ttl.math.abs(xa), xb))"],
                 block(2, 1)),
        [(128, 64)] * 3,
    ),
    "functions": (
        one_core([block(1, 1)], ["o.store(ttl.math.sqrt(ttl.math.relu(xa)) / ttl.math.exp(ttl.math.tanh(xa)))"],
                 block(1, 1)),
        [(64, 64)] * 2,
    ),
    "matmul": (
        one_core([block(2, 3, "r", "0"), block(3, 1, "0", "c")], ["o.store(xa @ xb)"], block(2, 1)),
        [(128, 96), (96, 64), (128, 64)],
    ),
    "transpose": (
        one_core([block(2, 1)], ["o.store(ttl.block.transpose(xa))"], block(1, 2, "c", "r")),
        [(128, 64), (64, 128)],
    ),
    "broadcast": (
        one_core([block(1, 3), block(1, 1, "r", "0")], [f"o.store(xa + {SPREAD.format('xb')})"], block(1, 3)),
        [(64, 192), (64, 32), (64, 192)],
    ),
    "softmax": (
        one_core(
            [block(1, 3)],
            ["largest = ttl.math.reduce_max(xa, dims=[1], shape=(1, 1))",
             f"weights = ttl.math.exp(xa - {SPREAD.format('largest')})",
             "total = ttl.math.reduce_sum(weights, dims=[1], shape=(1, 1))",
             f"o.store(weights / {SPREAD.format('total')})"],
            block(1, 3),
        ),
        [(64, 192)] * 2,
    ),
    "cores": ("""
@ttl.operation(grid=(2, 2))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)
    columns = a.shape[1] // 32
    tiles = a.shape[0] // 32 * columns
    cores = ttl.grid_size(dims=1)
    share = (tiles + cores - 1) // cores

    @ttl.compute()
    def compute():
        first = ttl.node(dims=1) * share
        for i in range(share):
            if first + i < tiles:
                with a_cb.wait() as x, out_cb.reserve() as o:
                    o.store(ttl.math.square(x))

    @ttl.datamovement()
    def read():
        first = ttl.node(dims=1) * share
        for i in range(share):
            if first + i < tiles:
                with a_cb.reserve() as x:
                    ttl.copy(a[(first + i) // columns, (first + i) % columns], x).wait()

    @ttl.datamovement()
    def write():
        first = ttl.node(dims=1) * share
        for i in range(share):
            if first + i < tiles:
                with out_cb.wait() as o:
                    ttl.copy(o, out[(first + i) // columns, (first + i) % columns]).wait()
""", [(96, 96)] * 2),
    "pipe": ("""
@ttl.operation(grid=(4, 1))
def kernel(a, b, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)
    net = ttl.PipeNet([ttl.Pipe((0, 0), (slice(1, 4), 0))])
    columns = a.shape[1] // 32

    @ttl.compute()
    def compute():
        for c in range(columns):
            with a_cb.wait() as x, b_cb.wait() as y, out_cb.reserve() as o:
                o.store(x * y)

    @ttl.datamovement()
    def read():
        x, y = ttl.node(dims=2)
        for c in range(columns):
            with b_cb.reserve() as block:
                def send(pipe):
                    ttl.copy(b[0, c], block).wait()
                    ttl.copy(block, pipe).wait()
                def receive(pipe):
                    ttl.copy(pipe, block).wait()
                net.if_src(send)
                net.if_dst(receive)
            with a_cb.reserve() as block:
                ttl.copy(a[x, c], block).wait()

    @ttl.datamovement()
    def write():
        x, y = ttl.node(dims=2)
        for c in range(columns):
            with out_cb.wait() as o:
                ttl.copy(o, out[x, c]).wait()
""", [(128, 64), (32, 64), (128, 64)]),
}  # fmt: skip


def inputs_of(name):
    chance = np.random.default_rng(len(name))
    *shapes, out = PROGRAMS[name][1]
    arrays = [chance.uniform(-2, 2, shape).astype(np.float32) for shape in shapes]
    if name == "matmul":
        # Sums of whole numbers are the same in any order.
        arrays = [np.rint(4 * array) for array in arrays]
    return [*arrays, np.zeros(out, np.float32)]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Run all programs in the simulator."""
    folder = tmp_path_factory.mktemp("simulated")
    arrays = {}
    for name, (text, _) in PROGRAMS.items():
        (folder / f"{name}.py").write_text(f"from ttl.sim import ttl\n\n{text}", encoding="utf-8")
        arrays.update({f"{name}_{i}": array for i, array in enumerate(inputs_of(name))})
    np.savez(folder / "inputs.npz", **arrays)
    counts = json.dumps({name: len(shapes) for name, (_, shapes) in PROGRAMS.items()})
    ended = subprocess.run(
        [sys.executable, "-c", RUNNER, str(folder), counts], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return {name: np.load(folder / f"{name}.npy") for name in PROGRAMS}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("machine", ["tensors", "ttkernel"])
def test_same_numbers_as_the_simulator(name, machine, simulated, tmp_path):
    path = tmp_path / f"{name}.py"
    path.write_text("import tlx_xdsl.ttl.language as ttl\n\n" + PROGRAMS[name][0], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    arrays = inputs_of(name)
    runtime.run(module.kernel, *arrays, machine=machine)
    np.testing.assert_allclose(arrays[-1], simulated[name], rtol=1e-5, atol=1e-6)
