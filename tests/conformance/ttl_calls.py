"""Ten programs that this compiler and that of tt-lang take: the lines and calls of the C++ of each thread.

    python -m tests.conformance.ttl_calls                  # ours
    python tests/conformance/ttl_calls.py --vendor         # theirs: Python 3.12 with tt-lang 1.1.1; no card

`--vendor` compiles for a mock card, in the mode of tt-lang that compiles only. Each line is a program with the lines of
its compute, reading and writing thread from `kernel_main` on, without empty ones, directives and comments; then come
the names of the functions that each calls. `docs/ttl-card.md` has the table.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

_KERNEL = """\
import ttl


@ttl.operation(grid={grid})
def kernel({arguments}, out):
{buffers}
    o_dfb = ttl.make_dataflow_buffer_like(out, shape={shape}, block_count=2)
{setup}
    @ttl.compute()
    def compute():
{compute}

    @ttl.datamovement()
    def read():
{read}

    @ttl.datamovement()
    def write():
        for i in range({blocks}):
            for j in range({blocks}):
                with o_dfb.wait() as o:
                    ttl.copy(o, out[{place}]).wait()
"""
_CLUSTER = """
arch: {0: wormhole_b0}
chips: {0: [0, 0, 0, 0]}
ethernet_connections: []
chips_with_mmio: [{0: 0}]
harvesting: {0: {noc_translation: true, harvest_mask: 0}}
boards:
  - [{board_id: 1649267441664}, {board_type: n150}, {chips: [0]}]
"""
_MULTICAST_READ = """\
for i in range(2):
    for j in range(2):
        with a_dfb.reserve() as x:
            def send(pipe):
                ttl.copy(a[i, j], x).wait()
                ttl.copy(x, pipe).wait()
            def receive(pipe):
                ttl.copy(pipe, x).wait()
            net.if_src(send)
            net.if_dst(receive)
"""


class Program(NamedTuple):
    """A kernel of one or two tensors of 64x64 elements."""

    name: str
    body: str
    """What the reserved block `o` becomes, of the blocks `x` and `y`."""
    inputs: str = "ab"
    dtype: str = "float32"
    grid: tuple[int, int] = (1, 1)
    read: str = ""
    setup: str = ""
    size: int = 1
    """Tiles of a block in each direction."""

    @property
    def text(self) -> str:
        """The file of the kernel."""
        names = dict(zip(self.inputs, "xy", strict=False))
        place, blocks = ("i, j" if self.size == 1 else "0:2, 0:2"), 2 // self.size
        shape = (self.size, self.size)
        loops = f"for i in range({blocks}):\n    for j in range({blocks}):\n        with "
        waits = ", ".join(f"{each}_dfb.wait() as {block}" for each, block in names.items())
        compute = f"{loops}{waits}, o_dfb.reserve() as o:\n            o.store({self.body})\n"
        reserves = ", ".join(f"{each}_dfb.reserve() as {block}" for each, block in names.items())
        copies = "".join(f"            ttl.copy({each}[{place}], {block}).wait()\n" for each, block in names.items())
        read = self.read or f"{loops}{reserves}:\n{copies}"
        buffers = [
            f"    {each}_dfb = ttl.make_dataflow_buffer_like({each}, shape={shape}, block_count=2)" for each in names
        ]
        return _KERNEL.format(
            grid=self.grid,
            arguments=", ".join(names),
            buffers="\n".join(buffers),
            setup=self.setup and f"    {self.setup}\n",
            compute=_inner(compute),
            read=_inner(read),
            shape=shape,
            blocks=blocks,
            place=place,
        )


def _inner(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.splitlines())


PROGRAMS = [
    Program("add_bf16", "x + y", dtype="bfloat16"),
    Program("add_f32", "x + y"),
    Program("fma_relu", "ttl.math.relu(x * y + x)"),
    Program("unary", "ttl.math.exp(ttl.math.tanh(x))", "a"),
    Program("max_f32", "ttl.math.max(x, y) - y"),
    Program("transpose", "ttl.math.transpose(x)", "a", dtype="bfloat16"),
    Program("broadcast", "x * ttl.math.broadcast(y, o, dims=[0])", dtype="bfloat16"),
    Program("matmul", "x @ y", dtype="bfloat16", size=2),
    Program("reduce", "ttl.math.reduce_sum(x, y, dims=[1])", dtype="bfloat16"),
    Program(
        "multicast",
        "ttl.math.exp(x)",
        "a",
        grid=(4, 1),
        read=_MULTICAST_READ,
        setup="net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, 4), 0))])",
        dtype="bfloat16",
    ),
]


THREADS = ("compute", "read", "write")


def body(source: str) -> list[str]:
    """Return the lines of a thread from `kernel_main` on."""
    lines = source[source.index("void kernel_main") :].splitlines()
    return [each for each in lines if each.strip() and not each.lstrip().startswith(("#", "//"))]


def counts(sources: dict[str, str]) -> str:
    """Return the numbers of lines, as the page has them."""
    return " / ".join(str(len(body(sources[thread]))) for thread in THREADS)


def show(name: str, sources: dict[str, str]) -> None:
    """Print the lines of each thread, and the functions that it calls."""
    print(f"{name}: {counts(sources)}")
    for thread in THREADS:
        names = re.findall(r"\b([a-z]\w+)(?:<[^;()]*>)?\(", "\n".join(body(sources[thread])))
        print(f"  {thread}: {' '.join(sorted({*names} - {'if', 'for', 'while', 'kernel_main'}))}", flush=True)


def ours(path: Path, program: Program) -> dict[str, str]:
    """The C++ of this compiler."""
    from tlx_xdsl.ttl.language import TensorSpec
    from tlx_xdsl.ttl.runtime import compile_kernel
    from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

    kernel = load_ttl_kernel(f"{path}:kernel")
    spec = TensorSpec((64, 64), program.dtype)
    sources = compile_kernel(kernel, [spec] * (len(program.inputs) + 1)).sources
    return {name.removesuffix(".cpp"): text for name, text in sources.items()}


def theirs(path: Path, program: Program, device: Any) -> dict[str, str]:
    """The C++ of tt-lang's compiler, which writes a file for each thread."""
    import importlib.util

    import ttnn  # pyright: ignore[reportMissingImports]

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dtype = getattr(ttnn, program.dtype)
    tensors = [
        ttnn.zeros((64, 64), dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device) for _ in (*program.inputs, "out")
    ]
    for file in path.parent.glob("*.cpp"):
        file.unlink()
    module.kernel(*tensors)
    made = {
        name: file.read_text() for file in path.parent.glob("*.cpp") for name in THREADS if f"_{name}_" in file.name
    }
    return {name: made[name] for name in THREADS}


def use_mock_card(folder: Path) -> None:
    """Let `ttnn` find a card with memory and coordinates but no cores, which a file in `folder` describes."""
    (folder / "cluster.yaml").write_text(_CLUSTER)
    os.environ |= {"TT_METAL_MOCK_CLUSTER_DESC_PATH": str(folder / "cluster.yaml"), "TT_METAL_SLOW_DISPATCH_MODE": "1"}


def main(arguments: list[str]) -> int:
    """Print all programs; the exit status is the number of those that are refused."""
    is_vendor = "--vendor" in arguments
    refused = 0
    with tempfile.TemporaryDirectory(dir="/tmp" if is_vendor else None) as name:
        folder, device = Path(name), None
        if is_vendor:
            use_mock_card(folder)
            # It writes to /tmp/$USER.
            os.environ |= {"TTLANG_COMPILE_ONLY": "1", "USER": folder.name}
            import ttnn  # pyright: ignore[reportMissingImports]

            device = ttnn.open_device(device_id=0)
        for program in PROGRAMS:
            path = folder / f"{program.name}.py"
            path.write_text(program.text, encoding="utf-8")
            try:
                show(program.name, theirs(path, program, device) if is_vendor else ours(path, program))
            except Exception as error:
                refused += 1
                print(f"{program.name}: refused: {type(error).__name__}: {error}", flush=True)
    return refused


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)
