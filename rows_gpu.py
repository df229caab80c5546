"""Lengths that are no multiples of 8 by benchmarks/gpu/lengths.py, then variants: python rows_gpu.py [--budget 180]."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from benchmarks.gpu import lengths as L

ALL = L.lengths()
if "--all" in sys.argv or os.environ.get("ROWS_ALL"):
    sys.argv = [each for each in sys.argv if each != "--all"]
    os.environ["ROWS_ALL"] = "1"  # for the processes that this one starts
else:
    L.lengths = lambda: [each for each in ALL if each % 8]
L.compared = lambda: []
L.__file__ = str(Path(__file__).resolve())


def to_prepare(functions):
    for function in functions:
        for direction in L.DIRECTIONS:
            for length in L.lengths():
                yield function, direction, length, True


L._to_prepare = to_prepare


def variants():
    """Name, shape, and functions that make launches, by name."""
    import torch

    from benchmarks.gpu import rows
    from tlx_xdsl.kernels.rows import cross_entropy as ce
    from tlx_xdsl.kernels.rows import norms

    def shape(columns, mib=64):
        return -(-(mib << 20) // (2 * columns)), columns

    def with_settings(module, settings, make):
        def made():
            saved = {name: getattr(module, name) for name in settings}
            for name, value in settings.items():
                setattr(module, name, value)
            try:
                launch = make()
                launch()
                torch.cuda.synchronize()
                return launch
            finally:
                for name, value in saved.items():
                    setattr(module, name, value)

        return made

    def bound(function, size):
        problem = rows.OPERATORS[function].make(*size, "cuda")
        return problem.inputs[0], problem.ours

    def ce_case(columns, mib):
        size = shape(columns, mib)
        x = torch.randn(size, device="cuda", dtype=torch.bfloat16)
        target = torch.randint(0, columns, size[:1], device="cuda")

        def launches(reduction):
            def make():
                prepared = ce.CROSS_ENTROPY.prepare((x, target, None, None, None), (-100, 0.0, reduction, False))
                return prepared.launches[0].bind()

            return make

        return x, {
            "mean": with_settings(ce, {}, launches("mean")),
            "none": with_settings(ce, {}, launches("none")),
            "no waves": with_settings(ce, {"_WAVES": 1}, launches("mean")),
            "waves 4": with_settings(ce, {"_WAVES": 4, "_LONG_WAVES": 4}, launches("mean")),
        }

    def norm_case(function, columns, choices):
        x, ours = bound(function, shape(columns))
        return x, {str(each): with_settings(norms, each, ours) for each in choices}

    for columns in (362, 1834, 4210, 8492, 11485):
        make = lambda c=columns: norm_case("layer-norm", c, [{}, {"_FEW_COLUMNS": 1 << 20}])
        yield f"layer-norm {columns}", 2, 64, make
    for columns in (152, 336, 2224, 4840, 9864):
        make = lambda c=columns: norm_case("layer-norm", c, [{}, {"_HELD_FACTORS": 0}])
        yield f"layer-norm {columns}", 2, 64, make
    long_rows = [
        {"_HELD_BACKWARD_UNALIGNED": 8192},
        {"_HELD_BACKWARD_UNALIGNED": 1 << 15},
        {"_HELD_BACKWARD_UNALIGNED": 1 << 15, "_STAGES": 2},
        {"_HELD_BACKWARD_UNALIGNED": 1 << 15, "_STAGES": 1},
    ]
    for columns in (8492, 11485):
        function = "rms-norm-residual-backward"
        yield f"{function} {columns}", 4, 64, lambda c=columns: norm_case(function, c, long_rows[:2])
    for function in ("layer-norm-backward", "rms-norm-backward"):
        for columns in (8492, 11485, 24057):
            make = lambda f=function, c=columns: norm_case(f, c, long_rows)
            yield f"{function} {columns}", 3, 64, make
        for columns in (9864, 14000):
            make = lambda f=function, c=columns: norm_case(f, c, [{}, {"HELD_BACKWARD_COLUMNS": 16384}])
            yield f"{function} {columns}", 3, 64, make


def jobs():
    for name, accesses, mib, make in variants():
        yield name, accesses, mib, make


def prepare_variants(share, shares):
    at = 0
    for _, _, _, make in variants():
        mine = []
        with suppress(Exception):
            _, choices = make()
            for launch in choices.values():
                if at % shares == share:
                    mine.append(launch)
                at += 1
        for launch in mine:
            with suppress(Exception):
                launch()


def clean_burst(launch, flush, burst):
    """A burst whose L2 cache has no lines that are still to be written."""
    import torch

    spans = []
    other = torch.empty(192 << 20, device="cuda")
    for _ in range(burst):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        other.sum()
        start.record()
        launch()
        end.record()
        spans.append((start, end))
    torch.cuda.synchronize()
    times = sorted(start.elapsed_time(end) for start, end in spans)
    return times[len(times) // 2]


def run_variants():
    import torch

    from benchmarks.gpu import measure

    print("== variants: GB/s of what has to move, of the copy's rate")
    for name, accesses, mib, make in variants():
        try:
            x, choices = make()
            y = torch.empty_like(x)
            candidates = {"copy": lambda: y.copy_(x)}
            for label, launch in choices.items():
                try:
                    candidates[label] = launch()
                except Exception as error:
                    print(f"{name}: {label}: {error!r}"[:160])
            times = measure.cool_rounds(candidates, rounds=3, burst=4, idle_s=0.01)
            copied = 2 / measure.median(times["copy"])
            parts = [f"{label} {accesses / measure.median(each) / copied:.3f}" for label, each in times.items()]
            rate = 2 * x.numel() * 2 / measure.median(times["copy"]) / 1e6
            print(f"{name}: copy {rate:.0f} GB/s; " + "; ".join(parts[1:]), flush=True)
            if accesses == 1:
                dirty, measure._burst_median = measure._burst_median, clean_burst
                clean = measure.cool_rounds(candidates, rounds=3, burst=4, idle_s=0.01)
                measure._burst_median = dirty
                rates = [f"{label} {2 * x.numel() / measure.median(each) / 1e6:.0f}" for label, each in clean.items()]
                print(f"    clean L2, GB/s of one tensor: {'; '.join(rates)}", flush=True)
            del x, y, choices, candidates
            torch.cuda.empty_cache()
        except Exception as error:
            print(f"{name}: {error!r}"[:300], flush=True)


if __name__ == "__main__":
    if "--variants" in sys.argv:
        if "--variant-share" in sys.argv:
            at = sys.argv.index("--variant-share")
            prepare_variants(int(sys.argv[at + 1]), int(sys.argv[at + 2]))
            os._exit(0)
        started = time.monotonic()
        command = [sys.executable, __file__, "--variants", "--variant-share"]
        running = [subprocess.Popen([*command, str(each), "12"], stdout=subprocess.DEVNULL) for each in range(12)]
        for each in running:
            with suppress(subprocess.TimeoutExpired):
                each.wait(timeout=max(0.1, 45 - (time.monotonic() - started)))
            each.kill()
        print(f"variants compiled ahead in {time.monotonic() - started:.0f} s", flush=True)
        run_variants()
        print(f"variants done in {time.monotonic() - started:.0f} s", flush=True)
        os._exit(0)
    L.FUNCTION_LIMIT_S = 45.0
    L.main()
