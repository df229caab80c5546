"""Constants of a chip from small kernels in PTX: cycles of instructions, memory, TMA, tensor cores, barriers, launches.

    python benchmarks/clock/microbenchmarks.py --out DIR [--only TEXT] [--seconds 90]
    python benchmarks/clock/microbenchmarks.py --dry [--only TEXT]     (needs no GPU: prints what ptxas makes)

The result is `h200.json` and the like: by key, cycles of a multiprocessor for one of what is counted; for bandwidths
cycles of a byte on each multiprocessor that takes part. A kernel that hangs costs its own figure only.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.clock import arithmetic, memory
from benchmarks.clock.arithmetic import Micro
from benchmarks.clock.ptx_kernels import Loaded, TensorMap2D, assemble, is_broken, ptxas

STALL_S = 6.0
BUFFER = 2 << 30
SEPARATOR = " | "


def micros(only: str) -> list[Micro]:
    """All microbenchmarks with some text in their keys."""
    every = [*arithmetic.everything(), *memory.everything()]
    return [each for each in every if only in SEPARATOR.join(each.key)]


def assembled(texts: list[str]) -> list[bytes | str]:
    """Cubins, or what ptxas says."""

    def one(text: str) -> bytes | str:
        try:
            return assemble(text)
        except RuntimeError as error:
            return str(error)[:300]

    with concurrent.futures.ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        return list(pool.map(one, texts))


class Gpu:
    """Runs microbenchmarks on the current GPU."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.out = torch.zeros(1 << 20, dtype=torch.int64, device="cuda")
        self.buffer = torch.randint(-1 << 62, 1 << 62, (BUFFER // 8,), dtype=torch.int64, device="cuda")
        self.flush = torch.ones(96 << 20, dtype=torch.int64, device="cuda")
        self.chains: dict[int, Any] = {}
        self.stream = torch.cuda.current_stream().cuda_stream

    def chain(self, size: int) -> Any:
        """An array in which every 128 bytes hold the address of others, in one cycle through all."""
        torch = self.torch
        if size not in self.chains:
            self.chains.clear()
            lines = size // 128
            order = torch.randperm(lines, device="cuda")
            made = torch.zeros(size // 8, dtype=torch.int64, device="cuda")
            made[order * 16] = made.data_ptr() + order.roll(-1) * 128
            self.chains[size] = made
        return self.chains[size]

    def run(self, micro: Micro, cubin: bytes) -> float:
        """Return the cycles of one of what is counted."""
        torch = self.torch
        loaded = Loaded(cubin, "k", micro.shared, micro.cluster)
        cold = "DRAM" in SEPARATOR.join(micro.key)
        data, tensor_map = self.buffer.data_ptr(), None
        if micro.box:
            rows, columns = (32768, 8192) if cold else (8192, 1024)
            tensor_map = TensorMap2D(Loaded.driver, data, rows, columns, *micro.box)
        warps = max(micro.threads // 32, 1) * micro.grid
        found = []
        for at in range(micro.again):
            if micro.data.startswith("chain"):
                size = int(micro.data.split()[1])
                data = self.chain(size).data_ptr() + (at * 7919 % (size // 128)) * 128
            self.out[:warps].zero_()
            if cold:
                self.flush.sum()
            launch = loaded.bind(
                micro.grid, micro.threads, self.out.data_ptr(), data=data, n=micro.n, m=micro.m, tensor_map=tensor_map,
                stream=self.stream,
            )  # fmt: skip
            launch()
            torch.cuda.synchronize()
            cycles = [each for each in self.out[:warps].tolist() if each > 0]
            kind = {"max": max, "min": min, "median": statistics.median}[micro.each]
            found.append(kind(cycles) / micro.count)
        return min(found)

    # --- launches -----------------------------------------------------------------------------------------------------

    def launches(self) -> dict[str, float]:
        """Microseconds of empty launches, and what the clocks of CTAs say."""
        torch, found = self.torch, {}
        for shared in (0, 200 << 10):
            loaded = Loaded(assemble(memory.EMPTY), "empty", shared)
            for grid, threads in ((1, 128), (132, 128), (132, 384), (1056, 128), (8448, 128)):
                launch = loaded.bind(grid, threads, 0, stream=self.stream)
                times = []
                for _ in range(21):
                    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    self.flush.sum()
                    start.record()
                    launch()
                    end.record()
                    torch.cuda.synchronize()
                    times.append(start.elapsed_time(end) * 1e3)
                name = f"grid {grid}, {threads} threads, {shared} bytes of shared memory"
                found[f"launch | event to event | {name}"] = statistics.median(times)
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                self.flush.sum()
                self.flush.sum()
                start.record()
                for _ in range(50):
                    launch()
                end.record()
                torch.cuda.synchronize()
                found[f"launch | each of 50 in a row | {name}"] = start.elapsed_time(end) * 1e3 / 50
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.sum()
        start.record()
        end.record()
        torch.cuda.synchronize()
        found["launch | event to event | nothing"] = start.elapsed_time(end) * 1e3
        return found

    def ctas(self) -> dict[str, float]:
        """Cycles from the end of a CTA to the start of the next one on its multiprocessor, and when the first start."""
        torch, found = self.torch, {}
        for shared, threads, grid in (
            (200 << 10, 384, 1320),
            (200 << 10, 128, 1320),
            (0, 1024, 2640),
            (0, 128, 132),
            (64 << 10, 128, 396),
        ):
            loaded = Loaded(assemble(memory.CTAS), "ctas", shared)
            launch = loaded.bind(grid, threads, self.out.data_ptr(), n=3000, stream=self.stream)
            for _ in range(2):
                self.flush.sum()
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                launch()
                end.record()
                torch.cuda.synchronize()
            rows = self.out[: grid * memory.CTA_WORDS].reshape(grid, memory.CTA_WORDS).tolist()
            name = f"{threads} threads, {shared} bytes, grid {grid}"
            by_place: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)
            for place, first, last, *_ in rows:
                by_place[place].append((first, last))
            gaps = []
            for spans in by_place.values():
                spans.sort()
                # With one CTA at a time each next one begins after the end of the one before.
                gaps += [after[0] - before[1] for before, after in itertools.pairwise(spans) if after[0] > before[1]]
            if gaps:
                found[f"cta | end to next start, cycles, median | {name}"] = statistics.median(gaps)
                found[f"cta | end to next start, cycles, least | {name}"] = min(gaps)
            starts = sorted(row[3] for row in rows)[:132]
            found[f"cta | first to last start of 132, ns | {name}"] = starts[-1] - starts[0]
            found[f"cta | first start to last end, ns | {name}"] = max(row[4] for row in rows) - min(
                row[3] for row in rows
            )
            found[f"cta | event to event, us | {name}"] = start.elapsed_time(end) * 1e3
            found[f"cta | multiprocessors used | {name}"] = len(by_place)
        return found

    def ticks(self) -> dict[str, float]:
        """Nanoseconds between changes of `%globaltimer`."""
        loaded = Loaded(assemble(memory.TICKS), "ticks")
        loaded.bind(1, 1, self.out.data_ptr(), n=256, stream=self.stream)()
        self.torch.cuda.synchronize()
        times = self.out[:256].tolist()
        steps = [after - before for before, after in itertools.pairwise(times)]
        return {"globaltimer | median step, ns": statistics.median(steps), "globaltimer | least step, ns": min(steps)}


def per_product(results: dict[str, float]) -> dict[str, float]:
    """Cycles of each product of a warp group once the tensor cores are busy, from 8 and 24 of them."""
    found = {}
    for key, value in results.items():
        head, _, last = key.rpartition(SEPARATOR)
        if last == "24 products" and f"{head}{SEPARATOR}8 products" in results:
            found[f"{head}{SEPARATOR}each product"] = (value - results[f"{head}{SEPARATOR}8 products"]) / 16
    return found


def child(args: argparse.Namespace) -> int:
    """Run microbenchmarks from a number on, a line of JSON for each."""
    from benchmarks.clock.spin import Spin

    wanted = micros(args.only)
    cubins = assembled([each.ptx for each in wanted])
    gpu = Gpu()
    spin = Spin(gpu.torch)
    for _ in range(2000):
        spin.launch()
    gpu.torch.cuda.synchronize()
    with args.lines.open("a", encoding="utf-8") as out:

        def say(**line: Any) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        say(hertz=spin.hertz(), card=gpu.torch.cuda.get_device_name())
        jobs: list[tuple[str, Any]] = [
            ("globaltimer", gpu.ticks),
            ("launch", gpu.launches),
            ("cta", gpu.ctas),
            *[
                (SEPARATOR.join(each.key), lambda each=each, cubin=cubin: gpu.run(each, cubin))
                for each, cubin in zip(wanted, cubins, strict=True)
            ],
        ]
        for at, (key, job) in enumerate(jobs):
            if at < args.start:
                continue
            say(begins=at, key=key)
            try:
                result = job()
                say(results=result if isinstance(result, dict) else {key: result})
            except Exception as error:  # the others are not lost
                say(error=f"{type(error).__name__}: {error}"[:300], key=key)
                if is_broken(gpu.torch):
                    return 4
        spin.launch()
        gpu.torch.cuda.synchronize()
        say(hertz=spin.hertz(), done=True)
    return 0


def supervise(args: argparse.Namespace) -> None:
    """Run children until all is measured or the time is over."""
    deadline, start = time.monotonic() + args.seconds, 0
    while time.monotonic() < deadline - 5:
        command = [
            sys.executable,
            __file__,
            "--child",
            "--lines",
            str(args.lines),
            f"--only={args.only}",
            f"--start={start}",
        ]
        process = subprocess.Popen(command)
        last, size, began = time.monotonic(), 0, time.monotonic()
        while process.poll() is None:
            time.sleep(0.1)
            now = args.lines.stat().st_size if args.lines.exists() else 0
            if now != size:
                last, size = time.monotonic(), now
            # The first line comes when torch is there and all is assembled.
            patience = STALL_S if last > began + 0.5 else args.seconds
            if time.monotonic() - last > patience or time.monotonic() > deadline:
                process.kill()
                process.wait()
        lines = read(args.lines)
        if process.returncode == 0 or not any("begins" in each for each in lines):
            return
        start = [each["begins"] for each in lines if "begins" in each][-1] + 1
        print(f"a child ended with {process.returncode}; on with number {start}", flush=True)


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of JSON of a file."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):  # a line that was cut off
            found.append(json.loads(line))
    return found


def opcodes(cubin: bytes) -> str:
    """The most frequent instructions of a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(ptxas().with_name("nvdisasm")), "-c", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    names = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\S*?)[\s;]", text)
    return " ".join(f"{name} {count}" for name, count in collections.Counter(names).most_common(6))


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--dry", action="store_true", help="no GPU: assemble, and print the instructions")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--lines", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.dry:
        wanted = micros(args.only)
        for each, cubin in zip(wanted, assembled([each.ptx for each in wanted]), strict=True):
            print(SEPARATOR.join(each.key), "--", cubin if isinstance(cubin, str) else opcodes(cubin))
        return 0
    if args.child:
        sys.stdout.flush()
        os._exit(child(args))  # a process with a faulted GPU context may not come to its end by itself
    args.out.mkdir(parents=True, exist_ok=True)
    args.lines = args.out / "micro.jsonl"
    args.lines.unlink(missing_ok=True)
    began = time.monotonic()
    supervise(args)
    lines = read(args.lines)
    results: dict[str, float] = {}
    for each in lines:
        results |= {key: round(value, 4) for key, value in each.get("results", {}).items()}
    results |= {key: round(value, 4) for key, value in per_product(results).items()}
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    document = {
        "card": next((each["card"] for each in lines if "card" in each), ""),
        "date": time.strftime("%Y-%m-%d"),
        "driver": subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip(),
        "hertz": [round(each["hertz"]) for each in lines if "hertz" in each],
        "errors": {each["key"]: each["error"] for each in lines if "error" in each},
        "results": results,
    }
    args.lines.unlink(missing_ok=True)
    name = "".join(re.findall(r"[a-z]+\d+", document["card"].lower())[:1]) or "gpu"
    (args.out / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{len(results)} results in {time.monotonic() - began:.0f} s; errors: {document['errors']}"[:3000])
    return 0


if __name__ == "__main__":
    sys.exit(main())
