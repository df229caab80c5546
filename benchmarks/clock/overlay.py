"""Measured timelines of a GEMM, an attention and a norm on a GPU, and what their probes cost.

    python benchmarks/clock/overlay.py --out DIR [--seconds 1.2] [--only NAME]     (about 60 s)
    python benchmarks/clock/overlay.py --dry [--only NAME]     (needs no GPU: compiles and assembles, launches nothing)
    python benchmarks/clock/overlay.py --compare DIR [--only NAME]     (needs no GPU: predicts what was measured)

Each kernel is launched plain and with probes, in turns. The result with probes must be the same, bit by bit, and its
launches at most 5 % longer with the probes that `kernel.profile(timeline=True)` then keeps. For each set of probes
`DIR/overlay-NAME.json.xz` has the PTX, the PTX with probes, the records, all times, and the launch with its arguments,
so that it can be predicted and drawn elsewhere (`load`). Each kernel has a process of its own: one that hangs costs its
own figures only.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import lzma
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.timing.measured import timeline_of
from tlx_xdsl.timing.probes import KINDS, Probes, Site
from tlx_xdsl.timing.timeline import Timeline

LONGEST_S = 100.0
"""Seconds that the process of a kernel has."""
MOST_SLOWER = 0.05
"""How much longer a launch may take with probes."""
SETS = {
    "waits and issues": KINDS,
    "arrivals, too": (*KINDS, "signal"),
    "mbarriers and groups": ("mbarrier", "group"),
}
"""The kinds of sites that are probed, by the name of the set."""


@tlx_xdsl.jit
def layer_norm(x, scale, shift, out, n, eps, BLOCK: tl.constexpr):
    """Normalise a row of x to mean 0 and variance 1, then scale and shift it."""
    row = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / n
    centred = tl.where(i < n, value - mean, 0.0)
    deviation = tl.rsqrt(tl.sum(centred * centred, 0) / n + eps)
    weight = tl.load(scale + i, mask=i < n).to(tl.float32)
    bias = tl.load(shift + i, mask=i < n).to(tl.float32)
    tl.store(out + row + i, (centred * deviation * weight + bias).to(out.dtype.element_ty), mask=i < n)


@dataclass(frozen=True)
class Case:
    """A kernel and a launch of it."""

    kernel: Any
    options: Mapping[str, Any]
    make: Callable[[Any], tuple[Any, tuple[Any, ...], Any]]
    """Grid, arguments and the output of a launch, with the arrays of a maker."""
    defaults: Mapping[str, Any] | None = None
    """The file's own signature and constants, for a compile without a GPU."""


def example(name: str) -> Any:
    """Import an example by the name of its file."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def cases() -> dict[str, Case]:
    """The kernels by name."""
    found: dict[str, Case] = {}
    for name in ("hopper_gemm_ws", "hopper_gemm_persistent_pingpong"):
        module = example(name)
        table = module.TLX_COMPILE["matmul"]

        def gemm(arrays: Any, module: Any = module) -> Any:
            a, b, c = arrays.random(4096, 4096), arrays.random(4096, 4096), arrays.random(4096, 4096)
            return (*module.launch_arguments(a, b, c), c)

        found[name] = Case(module.matmul, launch_options(table), gemm, defaults=table)
    module = example("hopper_attention_pingpong")
    table = module.TLX_COMPILE["attention"]

    def attention(arrays: Any, module: Any = module) -> Any:
        q, k, v, out = (arrays.random(4, 16, 4096, 128) for _ in range(4))
        lse = arrays.random(4, 16, 4096, dtype="float32")
        return (*module.launch_arguments(q, k, v, out, lse, 128**-0.5), out)

    found["hopper_attention_pingpong"] = Case(module.attention, launch_options(table), attention, defaults=table)

    def norm(arrays: Any) -> Any:
        x, out = arrays.random(16384, 4096), arrays.random(16384, 4096)
        scale, shift = arrays.random(4096), arrays.random(4096)
        return (16384,), (x, scale, shift, out, 4096, 1e-5), out

    types = {"x": "*fp16:16", "scale": "*fp16:16", "shift": "*fp16:16", "out": "*fp16:16", "n": "i32:16", "eps": "fp32"}
    table = {"signature": types, "constexprs": {"BLOCK": 4096}, "num_warps": 8}
    found["layer_norm"] = Case(layer_norm, {"BLOCK": 4096, "num_warps": 8}, norm, defaults=table)
    return found


def launch_options(table: Mapping[str, Any]) -> dict[str, Any]:
    """The constants and options of a launch, from a file's `TLX_COMPILE`."""
    return {**table["constexprs"], **{name: table[name] for name in ("num_warps",) if name in table}}


# --- on a GPU ---------------------------------------------------------------------------------------------------------


class Arrays:
    """Tensors of a GPU with random values."""

    def random(self, *shape: int, dtype: str = "float16") -> Any:
        """A tensor."""
        import torch

        return torch.randn(shape, device="cuda", dtype=getattr(torch, dtype))


def measure(name: str, case: Case, seconds: float) -> list[dict[str, Any]]:
    """Launch a kernel with each set of probes; what is saved of each."""
    import torch

    from benchmarks.clock.describe import described_arguments
    from tlx_xdsl.runtime.clock.tasks import warp_ranges
    from tlx_xdsl.runtime.driver.compilation import frontend_module, installed_profile
    from tlx_xdsl.runtime.launch.cuda_driver import default_driver
    from tlx_xdsl.runtime.measure.measured_timeline import measured_timeline

    torch.manual_seed(1)
    grid, arguments, output = case.make(Arrays())
    output.fill_(float("nan"))
    launch = case.kernel.bind(grid, *arguments, **case.options)
    launch()
    torch.cuda.synchronize()
    expected = output.clone()
    assert not expected.isnan().any(), f"{name}: the kernel left NaN"
    metadata, wanted = launch.kernel.metadata, launch.kernel.specialization
    tasks = warp_ranges(frontend_module(case.kernel.source, wanted, installed_profile()), wanted.num_warps)
    names = [each.name for each in case.kernel.source.parameters if not each.is_constexpr]
    work = SimpleNamespace(launch=SimpleNamespace(arguments=dict(zip(names, arguments, strict=True))))
    found: list[dict[str, Any]] = []
    for kinds_name, kinds in SETS.items():
        output.fill_(float("nan"))
        began = time.perf_counter()
        measured = measured_timeline(
            launch, chip=default_driver().device_name(0).removeprefix("NVIDIA "), target="sm_90a",
            fp_fusion=metadata.enable_fp_fusion, seconds=seconds, kinds=kinds, tasks=tasks,
        )  # fmt: skip
        equal = bool(torch.equal(output, expected))
        timeline = measured.timeline
        plain, probed = (statistics.median(times) * 1e3 for times in (measured.plain_ms, measured.probed_ms))
        waits = [span for span in timeline.spans if span.kind == "wait"]
        barriers = [span.end - span.start for span in waits if span.name.startswith("wait barrier")]
        stay = statistics.fmean(barriers) if barriers else 0.0
        said = "slower than allowed" if measured.slowdown > MOST_SLOWER else "ok"
        print(
            f"{name:<32} {kinds_name:<22} {plain:9.2f} us {probed:9.2f} us {measured.slowdown:+7.2%} {said}; "
            f"{'same' if equal else 'OTHER'} result; {len(waits)} waits, {stay:.0f} cycles at a barrier; "
            f"clock {(timeline.hertz or 0) * 1e-6:.0f} MHz; "
            f"{measured.probed.registers} registers, {measured.probed.spill_store_bytes} B spilled; "
            f"{time.perf_counter() - began:.1f} s",
            flush=True,
        )
        for note in timeline.notes:
            print(f"    {note}", flush=True)
        found.append(
            {
                "name": name,
                "kinds": list(kinds),
                "kernel": measured.probes.kernel,
                "ptx": launch.kernel.asm["ptx"],
                "probes": asdict(measured.probes),
                "words": base64.b64encode(measured.words.tobytes()).decode(),
                "plain_ms": measured.plain_ms,
                "probed_ms": measured.probed_ms,
                "equal": equal,
                "grid": launch.in_ctas(),
                "arguments": described_arguments(work, metadata.tensordesc_meta),
                "num_warps": metadata.num_warps,
                "shared": metadata.shared,
                "cluster": metadata.cluster,
                "scratch": metadata.global_scratch_size,
                "registers": metadata.registers,
                "hertz": timeline.hertz,
                "chip": timeline.chip,
                "assembler": metadata.assembler,
                "triton": metadata.triton_version,
                "cubin": base64.b64encode(launch.kernel.asm["cubin"]).decode(),
                "tasks": tasks,
            }
        )
    return found


def load(path: Path) -> list[tuple[dict[str, Any], Timeline]]:
    """Load what `measure` has saved, each with its timeline."""
    found: list[tuple[dict[str, Any], Timeline]] = []
    for each in json.loads(lzma.decompress(path.read_bytes())):
        held = each["probes"]
        probes = Probes(
            held["text"], held["kernel"], held["warps"], tuple(held["ctas"]), held["records"],
            tuple(Site(**site) for site in held["sites"]), tuple(held["skipped"]),
        )  # fmt: skip
        words = np.frombuffer(base64.b64decode(each["words"]), np.uint32)
        plain, probed = statistics.median(each["plain_ms"]), statistics.median(each["probed_ms"])
        note = f"probes: {plain * 1e3:.1f} us without, {probed * 1e3:.1f} us with them ({probed / plain - 1:+.1%})"
        timeline = timeline_of(probes, words, chip=each["chip"], tasks=each["tasks"], notes=[note])
        timeline.launch_cycles = None if timeline.hertz is None else plain * 1e-3 * timeline.hertz
        found.append((each, timeline))
    return found


# --- without one ------------------------------------------------------------------------------------------------------


def dry(name: str, case: Case) -> None:
    """Compile a kernel and assemble it with each set of probes."""
    from tlx_xdsl.runtime.build import compile_source
    from tlx_xdsl.runtime.driver.specialization import Specialization
    from tlx_xdsl.runtime.measure.measured_timeline import probed_binary

    assert case.defaults is not None
    table = case.defaults
    wanted = Specialization(table["signature"], table["constexprs"], "sm_90a", table["num_warps"])
    _, result = compile_source(case.kernel.source, wanted, num_stages=3)
    facts = SimpleNamespace(
        **vars(result.metadata), triton_version=result.triton_version, assembler=result.assembler,
        registers=result.resources.registers,
    )  # fmt: skip
    for kinds_name, kinds in SETS.items():
        probes, cubin, resources = probed_binary(
            result.ptx, facts, "sm_90a", result.fp_fusion, (0, 66), 2048, kinds
        )  # fmt: skip
        print(
            f"{name:<32} {kinds_name:<22} {len(probes.sites)} sites, {len(probes.skipped)} without probes, "
            f"{result.resources.registers} to {resources.registers} registers, "
            f"{resources.spill_store_bytes} B spilled, {probes.size >> 10} KiB of records, {len(cubin)} bytes of cubin",
            flush=True,
        )


def compare(path: Path) -> None:
    """Predict each PTX with probes that was measured, at the clock that was measured, and pair the waits of both."""
    from benchmarks.clock.describe import arguments_of
    from tlx_xdsl.backend.assemble import assembled
    from tlx_xdsl.backend.assemblers import found as assemblers
    from tlx_xdsl.sass.text import disassembly, find_nvdisasm
    from tlx_xdsl.timing.match import match
    from tlx_xdsl.timing.predict import predict

    tool = find_nvdisasm()
    for held, measured in load(path):
        probes = held["probes"]
        size = (16 << max(0, probes["warps"] * len(probes["ctas"]) - 1).bit_length()) * probes["records"]
        cubin, _ = assembled(probes["text"], assemblers()[0], "sm_90a", triton_version=held["triton"])
        predicted = predict(
            probes["text"], held["grid"], [*arguments_of(held["arguments"]), None, np.zeros(size, np.uint8)],
            chip=held["chip"], kernel=held["kernel"], num_warps=held["num_warps"], cluster=held["cluster"] or (1, 1, 1),
            shared=held["shared"], scratch=held["scratch"], registers=held["registers"], tasks=held["tasks"],
            machine_code=None if tool is None else disassembly(cubin, tool, lines_of_ptx=True), hertz=measured.hertz,
        )  # fmt: skip
        plain = measured.launch_cycles or 0
        print(f"{path.name}, {', '.join(held['kinds'])}: predicted {predicted.cycles:,.0f} cycles, measured without "
              f"probes {plain:,.0f}; {measured.notes[0]}")  # fmt: skip
        print(match(predicted.timeline, measured), flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--seconds", type=float, default=1.2, help="for the timing of one set of probes of a kernel")
    parser.add_argument("--only", default="")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--compare", type=Path, help="a folder that was `--out` on a GPU")
    parser.add_argument("--case", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    # What an old assembler may get wrong is compared here.
    os.environ.setdefault("TLX_ALLOW_OLD_PTXAS", "1")
    if options.compare is not None:
        for path in sorted(options.compare.glob("overlay-*.json.xz")):
            if options.only in path.name:
                compare(path)
        return
    known = cases()
    if options.case:
        found = measure(options.case, known[options.case], options.seconds)
        path = options.out / f"overlay-{options.case}.json.xz"
        path.write_bytes(lzma.compress(json.dumps(found).encode(), preset=4))
        return
    chosen = [name for name in known if options.only in name]
    if options.dry:
        for name in chosen:
            dry(name, known[name])
        return
    options.out.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        command = [sys.executable, __file__, "--out", str(options.out), "--seconds", str(options.seconds)]
        try:
            done = subprocess.run([*command, "--case", name], timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            print(f"{name}: no end after {LONGEST_S:g} s", flush=True)
        else:
            if done.returncode:
                print(f"{name}: ended with {done.returncode}", flush=True)


if __name__ == "__main__":
    main()
