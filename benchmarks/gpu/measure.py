"""Measurement of candidates on a GPU.

A data-centre GPU runs into its power limit under sustained matrix multiplication: on an H200 (700 W) the SM
clock falls from 1980 MHz to between 1320 and 1600, and every good kernel then runs at the same speed.
Measuring one candidate to the end and then the next shows differences of 10 % that are only heat. So all
candidates take turns, round by round, in two regimes:

- cool: short bursts after a pause, at full clock; spread below 1 %. Compares schedules.
- hot:  sustained load, at whatever clock the power limit leaves; differences below 5 % are noise.

Report both, with the clock. Use random inputs (multiplying zeros takes less power and runs faster), fill
outputs with NaN before the run, and check `relative_error` against a reference computed in float32 with TF32
off, or in float64. Differences within 1 % count as equal. Guard the first launch of a new kernel with
`watchdog_first_launch`, and run each family of kernels in a process of its own, because a hung or faulting
kernel takes the process with it.

A candidate is a function without arguments that enqueues its work on torch's current stream. torch and Triton
are imported when a function first needs them.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Candidate = Callable[[], None]

HUNG_EXIT_CODE = 3
"""Exit status of a process whose kernel hung."""

_POLL_SECONDS = 0.001

_LAUNCHES_BETWEEN_CHECKS = 20


def need_hopper(script: str) -> None:
    """End the program with one line and status 1 where there is no Hopper GPU, or no torch: nothing is written then."""
    found = _gpu()
    if found:
        raise SystemExit(
            f"{script}: error: expected a Hopper GPU (compute capability 9.0) and torch, found {found}; nothing was "
            "measured or written"
        )


def _gpu() -> str:
    """Return the GPU that is there instead of Hopper, or what is missing; empty where there is a Hopper GPU."""
    try:
        import torch
    except ImportError:
        return "no torch"
    if not torch.cuda.is_available():
        return "no GPU"
    capability = torch.cuda.get_device_capability()
    return "" if capability == (9, 0) else f"{torch.cuda.get_device_name()} ({capability[0]}.{capability[1]})"


def commit() -> str | None:
    """The commit that this is a checkout of, with `-dirty` where files differ; None without git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    try:
        return subprocess.run(
            command, cwd=os.path.dirname(__file__), capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def cool_rounds(
    candidates: Mapping[str, Candidate],
    rounds: int = 7,
    burst: int = 5,
    flush_bytes: int = 768 << 20,
    idle_s: float = 0.1,
    after_burst: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Time every candidate at full clock; return its time in ms for each round.

    In each round every candidate gets a pause of `idle_s` seconds and then a burst of launches, each after a
    write of `flush_bytes` that empties the L2 cache (more than its 50 MB on Hopper). A round's time is the
    median of the burst. The write keeps the GPU busy while the host prepares the launch, so host time stays
    out of the result. `after_burst` is called after each burst, to read a clock.
    """
    import torch

    flush = torch.empty(flush_bytes, dtype=torch.int8, device="cuda")
    for launch in candidates.values():
        launch()
    torch.cuda.synchronize()
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, launch in candidates.items():
            time.sleep(idle_s)
            times[name].append(_burst_median(launch, flush, burst))
            after_burst()
    return times


def _burst_median(launch: Candidate, flush: Any, burst: int) -> float:
    import torch

    spans: list[tuple[Any, Any]] = []
    for _ in range(burst):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        start.record()
        launch()
        end.record()
        spans.append((start, end))
    torch.cuda.synchronize()
    return median([start.elapsed_time(end) for start, end in spans])


def hot_rounds(
    candidates: Mapping[str, Candidate],
    rounds: int = 3,
    warmup_ms: int = 25,
    rep_ms: int = 100,
    after_burst: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Time every candidate under sustained load; return the median in ms of each round.

    A round runs each candidate for `warmup_ms` and then for `rep_ms` of measured time, back to back. `after_burst` is
    called after each candidate's turn.
    """
    from triton.testing import do_bench

    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, launch in candidates.items():
            times[name].append(do_bench(launch, warmup=warmup_ms, rep=rep_ms, return_mode="median"))
            after_burst()
    return times


def sm_clock_mhz(load: Candidate | None = None, warm_s: float = 0.5, device: int = 0) -> int | None:
    """Return the SM clock that nvidia-smi reports, None if it reports none.

    load:   launched over and over for `warm_s` seconds and then until nvidia-smi answers, because the clock
            of an idle GPU says nothing and the power limit takes a moment to act.
    device: nvidia-smi's number of the GPU.
    """
    warm_until = time.monotonic() + warm_s
    if load is not None:
        _keep_busy(load, lambda: time.monotonic() >= warm_until)
    command = ["nvidia-smi", f"--id={device}", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits"]
    try:
        query = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return None
    with query:
        if load is not None:
            _keep_busy(load, lambda: query.poll() is not None)
        answer, _ = query.communicate()
    text = answer.strip()
    return int(text) if text.isdigit() else None


def _keep_busy(load: Candidate, stop: Callable[[], bool]) -> None:
    import torch

    while not stop():
        for _ in range(_LAUNCHES_BETWEEN_CHECKS):
            load()
        # Without waiting, the load would outlast the question by a thousand queued launches.
        torch.cuda.synchronize()


def watchdog_first_launch(launch: Candidate, seconds: float = 4.0, name: str | None = None) -> None:
    """Launch a kernel for the first time; end the process with status 3 if it does not finish in time.

    A kernel that waits for ever for a barrier cannot be stopped from inside the process: every later CUDA
    call would wait for it, normal exit included. Compiling does not count towards `seconds`.

    name: what to call the kernel in the message; the function's own name by default.
    """
    import torch

    done = torch.cuda.Event()
    launch()
    done.record()
    deadline = time.monotonic() + seconds
    while not done.query():
        if time.monotonic() > deadline:
            kernel = name or getattr(launch, "__name__", repr(launch))
            print(f"kernel {kernel} hung: not finished {seconds:g} s after its launch", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(HUNG_EXIT_CODE)
        time.sleep(_POLL_SECONDS)


def relative_error(out: Any, ref: Any) -> float:
    """Return ||out - ref|| / ||ref|| in Frobenius norms, computed in float64; both are torch tensors.

    infinity if `out` has a NaN or an infinity, or if `ref` is zero and `out` is not. Raises ValueError for
    different shapes, which torch would broadcast silently.
    """
    if tuple(out.shape) != tuple(ref.shape):
        raise ValueError(f"expected tensors of one shape, got {tuple(out.shape)} and {tuple(ref.shape)}")
    reference = ref.double()
    difference = float((out.double() - reference).norm())
    if not math.isfinite(difference):
        return math.inf
    scale = float(reference.norm())
    if not scale:
        return math.inf if difference else 0.0
    return difference / scale


def tflops(flops: float, ms: float) -> float:
    """Return the rate in TFLOP/s of `flops` operations in `ms` milliseconds."""
    return flops / ms * 1e-9


def median(times: Sequence[float]) -> float:
    """Return the median of a candidate's rounds."""
    return statistics.median(times)


def spread(times: Sequence[float]) -> float:
    """Return how far the rounds lie apart, as a fraction of their median: (max - min) / median."""
    return (max(times) - min(times)) / median(times)


def format_table(
    title: str,
    times: Mapping[str, Sequence[float]],
    *,
    flops: float,
    peer: str,
    clock_mhz: int | None = None,
) -> str:
    """Return a text table: one line per candidate with time, rate, spread, and speed relative to `peer`.

    times: the rounds of each candidate in ms.
    flops: operations of one launch.
    peer:  the candidate to compare with; a ratio above 1 is faster than it.
    """
    if peer not in times:
        raise ValueError(f"expected the peer to be one of {', '.join(times)}; got {peer!r}")
    width = max(len("candidate"), *(len(name) for name in times))
    clock = "" if clock_mhz is None else f" (SM clock {clock_mhz} MHz)"
    ratio_title = f"vs {peer}"
    lines = [
        f"{title}{clock}",
        f"{'candidate':<{width}}  {'ms':>9}  {'TFLOP/s':>8}  {'spread':>7}  {ratio_title}",
    ]
    peer_ms = median(times[peer])
    for name, rounds in times.items():
        ms = median(rounds)
        lines.append(
            f"{name:<{width}}  {ms:>9.4f}  {tflops(flops, ms):>8.1f}  {spread(rounds):>7.1%}  "
            f"{peer_ms / ms:>{len(ratio_title)}.3f}"
        )
    return "\n".join(lines)


def print_table(
    title: str,
    times: Mapping[str, Sequence[float]],
    *,
    flops: float,
    peer: str,
    clock_mhz: int | None = None,
) -> None:
    """Print `format_table`."""
    print(format_table(title, times, flops=flops, peer=peer, clock_mhz=clock_mhz), flush=True)
