"""Functions of several GPUs beside torch's and NCCL's, on the GPUs of one host: values first, then times.

    torchrun --nproc-per-node 2 benchmarks/gpu/ranks.py check,sums,products,delays,stopped --out DIR
    torchrun --nproc-per-node 2 benchmarks/gpu/ranks.py products --shapes 8192x8192x8192

check:    each function against float64, results that were NaN, plain calls and CUDA graphs.
sums:     `all_reduce` beside torch's one-shot and two-shot and NCCL, all in CUDA graphs; host time of a plain call.
products: all-gather + product and product + reduce-scatter beside NCCL + torch's product, and beside the bound:
          max(product alone, bytes that a GPU receives or sends / the rate of a copy between GPUs in the same run).
delays:   1,000 launches of each, with random delays of each rank: the same bits where they are promised.
stopped:  one rank does not call; the others leave within the limit, and say for what they waited.

A time is the largest of all ranks, as medians of rounds in which the candidates take turns. Ratios are ours / theirs:
below 1 is faster. Rank 0 prints, and writes `ranks-<world>.json` to DIR after each section.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gpu import nvml
from benchmarks.gpu.measure import commit, median, need_hopper, relative_error

need_hopper(Path(__file__).name)

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory

import tlx_xdsl
from tlx_xdsl.kernels import comm
from tlx_xdsl.kernels.gemm import gemm

KIB, MIB = 1 << 10, 1 << 20
SUMS = (32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 8 * MIB, 64 * MIB)
"""Bytes of a rank's tensor."""
PRODUCTS = ((8192, 8192, 8192), (4096, 14336, 4096), (16384, 4096, 4096), (2048, 8192, 4096))
"""M, N and K of the whole product."""
CALLS = 20
"""Calls between two events."""

Call = Callable[[], Any]


class Run:
    """Rank of this process, its engine and its measurements."""

    def __init__(self, out: Path | None):
        self.rank = int(os.environ["RANK"])
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
        self.world = dist.get_world_size()
        self.ranks = tlx_xdsl.TorchRanks()
        self.group: str = self.ranks.name
        self.out = out
        self.data: dict[str, Any] = {
            "card": torch.cuda.get_device_name(),
            "world": self.world,
            "torch": torch.__version__,
            "nccl": ".".join(str(each) for each in torch.cuda.nccl.version()),
            "date": datetime.date.today().isoformat(),
            "driver": nvml.Gpu(torch.cuda.current_device()).driver(),
            "commit": commit(),
        }
        self.generator = torch.Generator("cuda").manual_seed(7 + self.rank)

    def say(self, text: str) -> None:
        """Print a line, once."""
        if self.rank == 0:
            print(text, flush=True)

    def keep(self, section: str, value: Any) -> None:
        """Keep what was measured, and write all of it."""
        self.data[section] = value
        if self.rank == 0 and self.out is not None:
            path = self.out / f"ranks-{self.world}.json"
            path.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")

    def random(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        """Random numbers, others on each rank."""
        return torch.randn(shape, generator=self.generator, device="cuda", dtype=torch.float32).to(dtype)

    def gathered(self, x: torch.Tensor) -> list[torch.Tensor]:
        """x of all ranks, by NCCL."""
        parts = [torch.empty_like(x) for _ in range(self.world)]
        dist.all_gather(parts, x)
        return parts

    def largest(self, value: float) -> float:
        """The largest of all ranks."""
        held = torch.tensor([value], device="cuda", dtype=torch.float64)
        dist.all_reduce(held, dist.ReduceOp.MAX)
        return float(held)

    def rounds(self, candidates: Mapping[str, Call], rounds: int = 7, calls: int = CALLS) -> dict[str, float]:
        """Microseconds of one of `calls` calls in a row; the candidates take turns."""
        times: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(rounds):
            for name, each in candidates.items():
                torch.cuda.synchronize()
                dist.barrier()
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                each()
                start.record()
                for _ in range(calls):
                    each()
                end.record()
                torch.cuda.synchronize()
                times[name].append(self.largest(start.elapsed_time(end) * 1000 / calls))
        return {name: median(each) for name, each in times.items()}

    def graph(self, call: Call, count: int = CALLS) -> Call:
        """A replay of `count` calls."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            call()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        dist.barrier()
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made, capture_error_mode="thread_local"):
            for _ in range(count):
                call()
        return made.replay

    def host_time(self, call: Call, calls: int = 200) -> float:
        """Microseconds of the host for a call: the least mean of five, whose launches the GPU takes up meanwhile."""
        found: list[float] = []
        for _ in range(5):
            torch.cuda.synchronize()
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            found.append((time.perf_counter() - begin) * 1e6 / calls)
        torch.cuda.synchronize()
        return self.largest(min(found))


def symmetric(run: Run, x: torch.Tensor) -> torch.Tensor:
    """A copy of x in torch's symmetric memory, for torch's own functions."""
    held = symmetric_memory.empty(x.shape, dtype=x.dtype, device=x.device)
    symmetric_memory.rendezvous(held, run.group)
    return held.copy_(x)


# --- values -----------------------------------------------------------------------------------------------------------


def nan_like(x: torch.Tensor) -> torch.Tensor:
    """Memory that was not written yet."""
    return torch.full_like(x, float("nan"))


def check(run: Run, options: argparse.Namespace) -> None:
    """Compare every function with float64."""
    found: dict[str, dict[str, float]] = {}

    def compare(name: str, ours: torch.Tensor, wanted: torch.Tensor, theirs: torch.Tensor | None = None) -> None:
        errors = {"ours": run.largest(relative_error(ours, wanted))}
        if theirs is not None:
            errors["theirs"] = run.largest(relative_error(theirs, wanted))
        found[name] = errors
        run.say(f"check {name}: " + ", ".join(f"{who} {error:.2e}" for who, error in errors.items()))
        if not errors["ours"] < 6e-3:
            run.say(f"WRONG {name}")

    check_sums(run, compare)
    check_products(run, compare)
    check_experts(run, compare)
    check_graph(run, compare)
    run.keep("check", found)


def check_sums(run: Run, compare: Callable[..., None]) -> None:
    """Sums and gathering."""
    world, rank = run.world, run.rank
    for shape in ((8, 64), (100, 321), (2048, 4096), (world * 1024, 8192)):
        for dtype in (torch.bfloat16, torch.float32):
            x = run.random(*shape, dtype=dtype)
            parts = run.gathered(x)
            total = torch.stack([each.double() for each in parts]).sum(0)
            name = f"{shape[0]}x{shape[1]} {str(dtype).removeprefix('torch.')}"
            nccl = x.clone()
            dist.all_reduce(nccl)
            for algorithm in ("one_shot", "two_shot"):
                if algorithm == "one_shot" and x.nbytes > 8 * MIB:
                    continue
                for _ in range(3):
                    out = nan_like(x)
                    comm.all_reduce(x, run.ranks, out, algorithm=algorithm)
                compare(f"all_reduce {algorithm} {name}", out, total, nccl)
                bits = run.gathered(out)
                if any(not torch.equal(each, bits[0]) for each in bits):
                    run.say(f"WRONG: ranks have other bits, {name}")
            if shape[0] % world == 0:
                part = nan_like(x[: shape[0] // world])
                comm.reduce_scatter(x, run.ranks, part)
                compare(f"reduce_scatter {name}", part, total.chunk(world)[rank])
            whole = nan_like(torch.cat(parts))
            comm.all_gather(x, run.ranks, whole)
            if not torch.equal(whole, torch.cat(parts)):
                run.say(f"WRONG all_gather {name}")


def check_products(run: Run, compare: Callable[..., None]) -> None:
    """Products, by rows and by columns of B."""
    world, rank = run.world, run.rank
    shapes = ((256 * world, 512, 384), (128 * world, 264, 72 * world), (2048, 4096, 2048))
    for m, n, k in shapes:
        for both in (False, True):
            a = run.random(m // world, k)
            b = run.random(n, k).t() if both else run.random(k, n)
            rows = torch.cat(run.gathered(a))
            out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
            comm.all_gather_gemm(a, b, run.ranks, out)
            compare(f"all_gather_gemm {m}x{n}x{k}{' b.T' if both else ''}", out, rows.double() @ b.double(), rows @ b)
            a, b = run.random(m, k // world), (run.random(n, k // world).t() if both else run.random(k // world, n))
            wanted = torch.stack(run.gathered(a.double() @ b.double())).sum(0).chunk(world)[rank]
            theirs = torch.empty(m // world, n, device="cuda", dtype=torch.bfloat16)
            dist.reduce_scatter_tensor(theirs, (a @ b).contiguous())
            out = nan_like(theirs)
            comm.gemm_reduce_scatter(a, b, run.ranks, out)
            compare(f"gemm_reduce_scatter {m}x{n}x{k}{' b.T' if both else ''}", out, wanted, theirs)
            every = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
            comm.gemm_all_reduce(a, b, run.ranks, every)
            total = torch.stack(run.gathered(a.double() @ b.double())).sum(0)
            compare(f"gemm_all_reduce {m}x{n}x{k}{' b.T' if both else ''}", every, total)


def check_experts(run: Run, compare: Callable[..., None]) -> None:
    """Each expert scales by its number: what comes back is x times the sum of weights times scales."""
    tokens, width, choices, experts = 512, 2048, 4, 8
    x = run.random(tokens, width)
    exchange = comm.Exchange(run.ranks, tokens=tokens, width=width, choices=choices, experts=experts, like=x)
    for _ in range(3):
        numbers = torch.rand(tokens, experts * run.world, generator=run.generator, device="cuda").argsort(1)
        chosen = numbers[:, :choices].to(torch.int32).contiguous()
        weights = torch.rand(tokens, choices, generator=run.generator, device="cuda")
        received = exchange.dispatch(x, chosen)
        scales = (received.numbers + 1 + run.rank * experts).float()
        y = (received.rows.float() * scales[..., None]).to(x.dtype)
        out = exchange.combine(y, weights)
    rounded = (x[:, None].float() * (chosen + 1)[..., None]).to(x.dtype).double()
    compare("Exchange", out, (rounded * weights[..., None].double()).sum(1))


def check_graph(run: Run, compare: Callable[..., None]) -> None:
    """Replay graphs whose inputs change."""
    x, a, b = run.random(512, 1024), run.random(256, 512), run.random(512, 768)
    total, product = nan_like(x), nan_like(run.random(256 * run.world, 768))

    def call() -> None:
        comm.all_reduce(x, run.ranks, total)
        comm.all_gather_gemm(a, b, run.ranks, product)

    call()
    replay = run.graph(call, 3)
    for _ in range(5):
        x.copy_(run.random(512, 1024))
        a.copy_(run.random(256, 512))
        total.fill_(float("nan"))
        product.fill_(float("nan"))
        replay()
    compare("graph all_reduce", total, torch.stack(run.gathered(x.double())).sum(0))
    compare("graph all_gather_gemm", product, torch.cat(run.gathered(a)).double() @ b.double())


# --- times ------------------------------------------------------------------------------------------------------------


def sums(run: Run, options: argparse.Namespace) -> None:
    """Time sums of all ranks."""
    table: list[dict[str, Any]] = []
    for size in SUMS:
        row = timed_sum(run, size)
        table.append(row)
        run.say(f"sum {size >> 10:6d} KiB " + "  ".join(f"{name} {value}" for name, value in row.items()))
        run.keep("sums", table)
    few = [row["beside torch"] for row in table if row["bytes"] <= MIB]
    run.say(f"sums to 1 MiB beside the better of torch: mean {statistics.geometric_mean(few):.3f}, most {max(few):.3f}")


def timed_sum(run: Run, size: int) -> dict[str, Any]:
    """The times of one sum in microseconds."""
    operators = torch.ops.symm_mem
    x = run.random(size // 2)
    out, held = torch.empty_like(x), symmetric(run, x)
    candidates: dict[str, Call] = {
        "two_shot": lambda: comm.all_reduce(x, run.ranks, out, algorithm="two_shot"),
        "chosen": lambda: comm.all_reduce(x, run.ranks, out),
        "torch one-shot": lambda: operators.one_shot_all_reduce(held, "sum", run.group),
        "torch two-shot": lambda: operators.two_shot_all_reduce_(held, "sum", run.group),
        "NCCL": lambda: dist.all_reduce(x),
    }
    if size <= 8 * MIB:
        candidates["one_shot"] = lambda: comm.all_reduce(x, run.ranks, out, algorithm="one_shot")
    for call in candidates.values():
        call()
    times = run.rounds({name: run.graph(call) for name, call in candidates.items()}, calls=5)
    row: dict[str, Any] = {name: round(value / CALLS, 2) for name, value in times.items()}
    row |= {"bytes": size, "host": round(run.host_time(candidates["chosen"]), 2)}
    row["beside torch"] = round(row["chosen"] / min(row["torch one-shot"], row["torch two-shot"]), 3)
    row["beside NCCL"] = round(row["chosen"] / row["NCCL"], 3)
    return row


def copy_rate(run: Run) -> float:
    """Bytes a second at which this GPU reads another one's memory by a copy, while all do."""
    count = 256 * MIB
    held = symmetric_memory.empty((count,), dtype=torch.uint8, device="cuda")
    handle = symmetric_memory.rendezvous(held, run.group)
    other = handle.get_buffer((run.rank + 1) % run.world, (count,), torch.uint8)
    here = torch.empty(count, dtype=torch.uint8, device="cuda")
    return count / (run.rounds({"copy": lambda: here.copy_(other)}, calls=5)["copy"] * 1e-6)


def products(run: Run, options: argparse.Namespace) -> None:
    """Time products with what ranks share."""
    rate = copy_rate(run)
    run.say(f"a copy of another GPU's memory: {rate / 1e9:.0f} GB/s")
    shapes = [tuple(int(each) for each in text.split("x")) for text in options.shapes.split(",") if text]
    table: list[dict[str, Any]] = []
    configs: dict[str, Any] = {"": None, **{text: eval_config(text) for text in options.configs.split(";") if text}}
    for m, n, k in shapes or PRODUCTS:
        for function in options.functions.split(","):
            row = timed_product(run, function, (m, n, k), rate, configs)
            table.append(row)
            run.say("product " + "  ".join(f"{name} {value}" for name, value in row.items()))
            run.keep("products", table)


def eval_config(text: str) -> Any:
    """A configuration of numbers by name: `block_n=128,stages=5`."""
    return comm.ProductConfig(**{name: int(value) for name, value in (each.split("=") for each in text.split(","))})


def timed_product(
    run: Run, function: str, shape: tuple[int, int, int], rate: float, configs: Mapping[str, Any]
) -> dict[str, Any]:
    """The times of one product in microseconds, and what part of the bound ours has."""
    m, n, k = shape
    world = run.world
    gathers = function == "all_gather_gemm"
    # Either way a rank multiplies M * N * K / world.
    a = run.random(m // world, k) if gathers else run.random(m, k // world)
    b = run.random(k, n // world) if gathers else run.random(k // world, n)
    ours = getattr(comm, function)
    if gathers:
        rows = torch.empty(m, k, device="cuda", dtype=torch.bfloat16)
        c = torch.empty(m, n // world, device="cuda", dtype=torch.bfloat16)
        moved = (world - 1) / world * m * k * 2

        def theirs() -> None:
            dist.all_gather_into_tensor(rows, a)
            torch.mm(rows, b, out=c)

    else:
        rows = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        c = torch.empty(m // world, n, device="cuda", dtype=torch.bfloat16)
        moved = (world - 1) / world * m * n * 2

        def theirs() -> None:
            torch.mm(a, b, out=rows)
            dist.reduce_scatter_tensor(c, rows)

    candidates: dict[str, Call] = {
        "NCCL": theirs,
        "mm": lambda: torch.mm(rows, b, out=c) if gathers else torch.mm(a, b, out=rows),
        "our product": lambda: gemm(rows, b, c) if gathers else gemm(a, b, rows),
    }
    for name, config in configs.items():
        candidates[f"ours {name}".strip()] = lambda config=config: ours(a, b, run.ranks, c, config=config)
    for call in candidates.values():
        call()
    times = run.rounds(candidates)
    best = min((name for name in times if name.split()[0] == "ours"), key=times.__getitem__)
    travel = moved / rate * 1e6
    bound = max(times["mm"], travel)
    row: dict[str, Any] = {"function": function, "shape": "x".join(str(each) for each in shape)}
    row |= {name: round(value, 1) for name, value in times.items()}
    row |= {"travel": round(travel, 1), "of bound": round(bound / times["ours"], 3)}
    if len(configs) > 1:
        row |= {"best": best, "best of bound": round(bound / times[best], 3)}
    row |= {"beside NCCL": round(times["ours"] / times["NCCL"], 3)}
    row["host"] = round(run.host_time(candidates["ours"], 20), 1)
    return row


# --- endurance --------------------------------------------------------------------------------------------------------


def delays(run: Run, options: argparse.Namespace) -> None:
    """Launch with random delays on the GPU and on the host."""
    draw = random.Random(run.rank)
    x, a, b = run.random(257, 1024), run.random(256, 1024), run.random(1024, 512)
    left, right = run.random(256 * run.world, 512), run.random(512, 768)
    calls: dict[str, Call] = {
        "all_reduce one_shot": lambda: comm.all_reduce(x, run.ranks, algorithm="one_shot"),
        "all_reduce two_shot": lambda: comm.all_reduce(x, run.ranks, algorithm="two_shot"),
        "all_gather": lambda: comm.all_gather(x, run.ranks),
        "reduce_scatter": lambda: comm.reduce_scatter(left, run.ranks),
        "all_gather_gemm": lambda: comm.all_gather_gemm(a, b, run.ranks),
        "gemm_reduce_scatter": lambda: comm.gemm_reduce_scatter(left, right, run.ranks),
        "gemm_all_reduce": lambda: comm.gemm_all_reduce(left, right, run.ranks),
    }
    found: dict[str, dict[str, int]] = {}
    for name, call in calls.items():
        wanted = call().clone()
        wrong = torch.zeros((), dtype=torch.int64, device="cuda")
        for _ in range(1000):
            if draw.random() < 0.5:
                torch.cuda._sleep(int(draw.expovariate(1 / 20_000)))
            if draw.random() < 0.02:
                time.sleep(draw.random() * 1e-3)
            wrong += (call() != wanted).any()
        torch.cuda.synchronize()
        dist.all_reduce(wrong)
        found[name] = {"launches": 1000, "other bits": int(wrong)}
        run.say(f"delays {name}: 1000 launches, {int(wrong)} with other bits")
        run.keep("delays", found)


def stopped(run: Run, options: argparse.Namespace) -> None:
    """The last rank does not call."""
    found: dict[str, str] = {}
    for name in ("all_reduce", "all_gather"):
        ranks = tlx_xdsl.TorchRanks(limit_ns=500_000_000)
        x = run.random(512, 1024)
        function = getattr(comm, name)
        function(x, ranks)
        ranks.barrier()
        said = ""
        if run.rank != run.world - 1:
            begin = time.monotonic()
            function(x, ranks)
            torch.cuda.synchronize()
            took = time.monotonic() - begin
            try:
                comm.check_waits(ranks)
                said = f"nothing was said after {took:.3f} s"
            except RuntimeError as error:
                said = f"after {took:.3f} s: {error}"
        dist.barrier()
        found[name] = said
        run.say(f"stopped {name}: {said}")
    run.keep("stopped", found)


SECTIONS = {"check": check, "sums": sums, "products": products, "delays": delays, "stopped": stopped}


def main() -> int:
    """Run the sections that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sections", help=", ".join(SECTIONS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--shapes", default="", help="of products: MxNxK,...")
    parser.add_argument("--functions", default="all_gather_gemm,gemm_reduce_scatter")
    parser.add_argument("--configs", default="", help="more of them: 'block_n=128,stages=5;...'")
    options = parser.parse_args()
    if "LOCAL_RANK" not in os.environ:
        parser.error("expected a process of torchrun: torchrun --nproc-per-node 2 benchmarks/gpu/ranks.py ...")
    if unknown := [each for each in options.sections.split(",") if each not in SECTIONS]:
        parser.error(f"expected sections of {', '.join(SECTIONS)}, found {', '.join(unknown)}")
    run = Run(options.out)
    for section in options.sections.split(","):
        SECTIONS[section](run, options)
        run.ranks.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
