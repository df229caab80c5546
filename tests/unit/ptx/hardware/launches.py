"""Runs a case on the PTX machine, or writes down its launches for a GPU.

A case is a function that launches kernels on numpy arrays through `stage="ptx"` and returns the arrays that count.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.unit.ptx.snippets import without_debug
from tlx_xdsl.backend import BackendOptions, BackendResult, KernelMetadata, compile_ttgir, installed_triton_version
from tlx_xdsl.kernels.calls.launching import Launch
from tlx_xdsl.ptx.launch import PtxRun, bind, run_program
from tlx_xdsl.ptx.memory.global_memory import GlobalMemory
from tlx_xdsl.ptx.program import Program, prepare
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.runtime.driver.host_values import signature_of
from tlx_xdsl.runtime.simulate import ptx_stage

Case = Callable[[], Sequence[np.ndarray]]
"""Launches kernels and returns the arrays that are compared."""

FIRST_ADDRESS = 0x7A5A << 32
"""The first address of a recorded launch: parameters with such values are addresses."""


@dataclass
class Done:
    """A case after it has run on the machine."""

    outputs: Sequence[np.ndarray]
    ptx: list[str]
    """The PTX of each launch, without debug information."""
    instructions: int
    seconds: float


def digest(texts: Sequence[str]) -> str:
    """Hash the PTX of a case, to distinguish it from other PTX."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def run(case: Case) -> Done:
    """Run a case on the PTX machine, compiled by the installed Triton."""
    texts: list[str] = []
    runs: list[PtxRun] = []

    def compiled(text: str, options: BackendOptions, **given: Any) -> BackendResult:
        result = compile_ttgir(text, options, **given)
        texts.append(without_debug(result.ptx))
        return result

    def ran(*arguments: Any, **options: Any) -> PtxRun:
        runs.append(run_program(*arguments, **options))
        return runs[-1]

    def compiled_by_stock(*arguments: Any) -> BackendResult:
        result = _by_stock(*arguments)
        texts.append(without_debug(result.ptx))
        return result

    with _replaced(compiled, compiled_by_stock, texts.append, ran):
        outputs = case()
    return Done(outputs, texts, sum(each.instructions for each in runs), sum(each.seconds for each in runs))


# Kernels of stock Triton ----------------------------------------------------------------------------------------------


def launch_stock(
    kernel: Any, grid: tuple[int, ...], values: Mapping[str, Any], constants: Mapping[str, Any], *, num_warps: int
) -> None:
    """Launch a kernel of `triton.jit` from the PTX that stock Triton makes of its source."""
    compiled_by_stock, ran = _stock
    result = compiled_by_stock(kernel, values, constants, num_warps)
    facts = result.metadata
    program = prepare(read(result.ptx, f"{facts.name}.ptx"))
    ran(
        program, (*grid, 1, 1)[:3], list(values.values()), names=list(values), num_warps=facts.num_warps,
        cluster=(1, 1, 1), shared=facts.shared, scratch=facts.global_scratch_size,
        # Stock's pipeliner has no proxy fence between cp.async and wgmma, which would be a report.
        races=False,
    )  # fmt: skip


def launch_text(text: str, grid: int, values: Sequence[Any], *, num_warps: int) -> None:
    """Launch a kernel of PTX that was written by hand."""
    _, ran = _stock
    _hand_written[0](text)
    ran(prepare(read(text, "<ptx>")), (grid, 1, 1), list(values), num_warps=num_warps, cluster=(1, 1, 1), shared=0)


def _assembled(text: str) -> BackendResult:
    """The binary of PTX for Hopper, by the ptxas of the installed Triton."""
    from triton import knobs

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text)
        subprocess.run([knobs.nvidia.ptxas.path, "-arch", "sm_90a", source, "-o", target], check=True)
        return BackendResult("cubin", installed_triton_version() or "", "", ptx=text, cubin=target.read_bytes())


def _by_stock(kernel: Any, values: Mapping[str, Any], constants: Mapping[str, Any], num_warps: int) -> BackendResult:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature: dict[str, str] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    for position, name in enumerate(kernel.arg_names):
        signature[name] = "constexpr" if name in constants else signature_of(name, values[name])
        if name in values and isinstance(values[name], np.ndarray):
            attributes[position,] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature, dict(constants), attributes)
    made = triton.compile(
        source, target=GPUTarget("cuda", 90, 32), options={"num_warps": num_warps, "enable_fp_fusion": True}
    )
    facts = KernelMetadata(
        name=made.metadata.name, shared=made.metadata.shared, num_warps=num_warps,
        global_scratch_size=made.metadata.global_scratch_size,
    )  # fmt: skip
    version = installed_triton_version() or ""
    return BackendResult("cubin", version, "", ptx=made.asm["ptx"], cubin=made.asm["cubin"], metadata=facts)


# Launches for a GPU --------------------------------------------------------------------------------------------------


@dataclass
class Recorded:
    """A launch as the driver takes it, but for the addresses, which are those of `buffers`."""

    cubin: bytes
    entry: str
    grid: tuple[int, int, int]
    threads: int
    cluster: tuple[int, int, int]
    shared: int
    scratch: int
    """Bytes of scratch memory for all CTAs; its address is the one but last parameter."""
    parameters: list[tuple[int, bytes]]
    """Offset and bytes of each parameter."""
    buffers: list[tuple[int, int, int, int]]
    """The first address of each buffer, its bytes, the number of the memory that it is in, and its place there."""


@dataclass
class Recording:
    """A case for a GPU, of plain types."""

    name: str
    memories: list[bytes]
    launches: list[Recorded]
    outputs: list[tuple[int, int, str, int, tuple[int, ...], tuple[int, ...]]]
    """Memory, place, type, bytes of an element, shape and strides in bytes of each array that is compared."""
    ptx: list[str] = field(default_factory=list)


@dataclass
class _Raw:
    recorded: Recorded
    arrays: list[np.ndarray]


class _Memory(GlobalMemory):
    def __init__(self) -> None:
        super().__init__()
        self._next = FIRST_ADDRESS


def record(name: str, case: Case) -> Recording:
    """The launches of a case, which does not run: its kernels must not depend on each other through the host."""
    texts: list[str] = []
    results: list[BackendResult] = []
    raws: list[_Raw] = []

    def compiled(text: str, options: BackendOptions, **given: Any) -> BackendResult:
        result = compile_ttgir(text, options, **{**given, "stages": "cubin"})
        texts.append(without_debug(result.ptx))
        results.append(result)
        return result

    def compiled_by_stock(*arguments: Any) -> BackendResult:
        result = _by_stock(*arguments)
        texts.append(without_debug(result.ptx))
        results.append(result)
        return result

    def written_down(program: Program, grid: Any, args: Sequence[Any], **options: Any) -> PtxRun:
        raws.append(_raw(results[-1], program, grid, args, options))
        return PtxRun(0, 0.0)

    def assembled(text: str) -> None:
        texts.append(text)
        results.append(_assembled(text))

    with _replaced(compiled, compiled_by_stock, assembled, written_down):
        outputs = case()
    return _with_memories(name, raws, outputs, texts)


def _raw(result: BackendResult, program: Program, grid: Any, args: Sequence[Any], options: dict[str, Any]) -> _Raw:
    memory = _Memory()
    sizes = (*((grid,) if isinstance(grid, int) else tuple(grid)), 1, 1)[:3]
    scratch = (options.get("scratch") or 0) * int(np.prod(sizes))
    data = bind(program, args, memory, 0, options.get("names"))
    homes = program.symbols.homes
    parameters = [
        (homes[each.name].address, data[homes[each.name].address :][: each.size].tobytes())
        for each in program.function.parameters
    ]
    first = min((offset for offset, _ in parameters), default=0)
    buffers = [(each.start, len(each.bytes), 0, 0) for each in memory.buffers]
    cluster = (*(options.get("cluster") or (1,)), 1, 1)[:3]
    recorded = Recorded(
        result.cubin, program.function.name, sizes, 32 * options["num_warps"], cluster, options["shared"], scratch,
        [(offset - first, raw) for offset, raw in parameters], buffers,
    )  # fmt: skip
    return _Raw(recorded, [each.bytes for each in memory.buffers])


def _with_memories(name: str, raws: list[_Raw], outputs: Sequence[np.ndarray], texts: list[str]) -> Recording:
    """Arrays that share bytes, in one launch or in several, are one memory."""
    arrays = [array for raw in raws for array in raw.arrays]
    ends = sorted((_address(array), _address(array) + array.nbytes, number) for number, array in enumerate(arrays))
    memories: list[tuple[int, int]] = []
    for start, end, _ in ends:
        if memories and start < memories[-1][1]:
            memories[-1] = (memories[-1][0], max(end, memories[-1][1]))
        else:
            memories.append((start, end))

    def home(array: np.ndarray) -> tuple[int, int]:
        at = _address(array)
        number = next(n for n, (start, end) in enumerate(memories) if start <= at < end)
        return number, at - memories[number][0]

    contents = [bytearray(end - start) for start, end in memories]
    for array in arrays:
        number, place = home(array)
        contents[number][place : place + array.nbytes] = array.tobytes()
    launches: list[Recorded] = []
    for raw in raws:
        buffers = [
            (start, size, *home(array))
            for (start, size, _, _), array in zip(raw.recorded.buffers, raw.arrays, strict=True)
        ]
        launches.append(replace(raw.recorded, buffers=buffers))
    found = [(*home(each), each.dtype.name, each.itemsize, each.shape, each.strides) for each in outputs]
    return Recording(name, [bytes(each) for each in contents], launches, found, texts)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@contextmanager
def _replaced(
    compiled: Callable[..., BackendResult],
    by_stock: Callable[..., BackendResult],
    assembled: Callable[[str], None],
    ran: Callable[..., PtxRun],
) -> Iterator[None]:
    """Launch kernels from their PTX, by these functions, while this lasts."""
    global _stock
    interpret = Launch.interpret
    before = ptx_stage.compile_ttgir, ptx_stage.run_program, _stock, _hand_written[0]
    load_products = ptx_stage.load_products

    def from_ptx(self: Launch, **options: Any) -> Any:
        return interpret(self, **{**options, "stage": "ptx"})

    Launch.interpret = from_ptx
    ptx_stage.compile_ttgir, ptx_stage.run_program, _stock = compiled, ran, (by_stock, ran)
    _hand_written[0] = assembled
    ptx_stage.load_products = lambda key: None
    try:
        yield
    finally:
        Launch.interpret = interpret
        ptx_stage.load_products = load_products
        ptx_stage.compile_ttgir, ptx_stage.run_program, _stock, _hand_written[0] = before


_stock: tuple[Callable[..., BackendResult], Callable[..., Any]] = (_by_stock, run_program)
"""What compiles and runs a kernel of stock Triton now."""
_hand_written: list[Callable[[str], Any]] = [lambda _text: None]
"""What is known of PTX that was written by hand."""
