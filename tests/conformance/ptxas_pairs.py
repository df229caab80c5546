"""Run every launch of a suite's tests again with the binaries of other assemblers, and compare the bits.

A plug-in for pytest on a machine with a GPU, over stock Triton. PTX says what each instruction computes, so binaries of
one text have to give the same bits, whichever `ptxas` made them: where they do not, one assembler is wrong, and a third
says which. Launches of a tuner are tried in some of its configurations and in others that it may be given, those with
`wgmma` in more.

    cd flash-linear-attention
    PAIRS_PTXAS=/usr/local/cuda/bin/ptxas PAIRS_OUT=/tmp/pairs PAIRS_SECONDS=300 \
        python -m pytest -p tests.conformance.ptxas_pairs -n 16 tests/ops

with this repository in PYTHONPATH. `PAIRS_PTXAS` names the assemblers beside Triton's own, with commas between them;
`PAIRS_CONFIGURATIONS` how many are tried of a launch (8). In `PAIRS_OUT` each process writes a file of JSON lines, and
for what differs the PTX with its facts. `python -m tests.conformance.ptxas_pairs FOLDER` sums up.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

WRONG = 1e-2
"""Difference, in parts of the largest value, from which numbers are wrong: atomic additions and the order of sums stay
far below it."""
MOST_BYTES = 2**30
"""Memory of a launch that is kept and compared."""
TESTS = 4
"""Tests of one function of the suite: its other parameters mostly launch the same kernels."""
FEW = 3
"""Configurations of a kernel without `wgmma`."""


class Pairs:
    """Requests of the environment, and the files of this process."""

    def __init__(self) -> None:
        """Read the variables of the environment."""
        self.out = Path(os.environ["PAIRS_OUT"])
        self.tools = os.environ["PAIRS_PTXAS"].split(",")
        self.most = int(os.environ.get("PAIRS_CONFIGURATIONS", "8"))
        self.until = float(os.environ.setdefault("PAIRS_UNTIL", str(time.time() + float(os.environ["PAIRS_SECONDS"]))))
        for folder in ("different", "marks", "cubins", "texts"):
            (self.out / folder).mkdir(parents=True, exist_ok=True)
        self.records = (self.out / f"{os.getpid()}.jsonl").open("a")
        self.multiplies: dict[str, bool] = {}
        """Whether a kernel has `wgmma`, by its name."""
        self.modules: list[Any] = []
        """Loaded binaries: an unloaded one's function may not be launched."""

    @property
    def is_over(self) -> bool:
        """True if the time is spent."""
        return time.time() > self.until

    def claims(self, what: str) -> bool:
        """Say whether this process is the first one to try something."""
        try:
            os.close(os.open(self.out / "marks" / _digest(what), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def say(self, **record: Any) -> None:
        """Write a record."""
        self.records.write(json.dumps(record, default=str) + "\n")
        self.records.flush()

    def assembled(self, ptx: str, tool: str, *, fmad: bool) -> bytes | None:
        """Return the binary that a tool makes, with the options of stock Triton; None where it refuses the text."""
        stem = self.out / "cubins" / _digest(f"{tool} {fmad} {ptx}")
        if not stem.exists():
            text, made = (stem.with_suffix(f".{os.getpid()}.{end}") for end in ("ptx", "o"))
            text.write_text(ptx)
            options = ["-lineinfo", *([] if fmad else ["--fmad=false"]), "--gpu-name=sm_90a"]
            done = subprocess.run([tool, *options, text, "-o", made], capture_output=True, check=False)
            text.unlink()
            if done.returncode:
                return None
            made.rename(stem)
        return stem.read_bytes()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Launch:
    """One launch, which can be repeated on the same memory."""

    def __init__(self, pairs: Pairs, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any], label: Sequence[Any]):
        """Keep what the memory of all tensors holds."""
        self.pairs, self.fn, self.args, self.kwargs, self.label = pairs, fn, args, kwargs, label
        self.tensors = dict(_tensors([*args, *kwargs.values()]))
        self.memory = {name: _bytes_of(tensor) for name, tensor in self.tensors.items()}
        self.kernel: Any = None

    def run(self, tool: str) -> dict[str, Any]:
        """Launch, return what the memory holds then, and put back what it held."""
        import torch

        before = {name: each.clone() for name, each in self.memory.items()}
        try:
            kernel = self.fn.run(*self.args, **self.kwargs)
            self.kernel = self.kernel or kernel
            torch.cuda.synchronize()
        except RuntimeError as error:
            if "CUDA error" not in str(error):
                raise
            # The context is lost, and with it this process: pytest-xdist starts another one.
            self._keep({"crash": tool, "why": str(error)[:200]})
            self.pairs.say(label=self.label, outcome="crash", tool=tool, why=str(error)[:200])
            os._exit(3)
        after = {name: each.clone() for name, each in self.memory.items()}
        for name, each in self.memory.items():
            each.copy_(before[name])
        return after

    def difference(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
        """Return the largest difference of two results, in parts of the largest value."""
        import torch

        worst = 0.0
        for name, tensor in self.tensors.items():
            if torch.equal(one[name], other[name]):
                continue
            mine, theirs = (_numbers_of(each[name], tensor).double() for each in (one, other))
            finite = torch.isfinite(mine) & torch.isfinite(theirs)
            if not torch.equal(torch.isfinite(mine), torch.isfinite(theirs)):
                worst = float("inf")
            if finite.any():
                scale = max(float(theirs[finite].abs().max()), 1e-30)
                worst = max(worst, float((mine - theirs)[finite].abs().max()) / scale)
        return worst

    def compare(self) -> None:
        """Launch with stock's binary twice and with those of the other tools, and write down what came out."""
        import torch
        from triton.runtime import driver

        pairs, began = self.pairs, time.time()
        if sum(each.numel() for each in self.memory.values()) > MOST_BYTES:
            return
        try:
            first = self.run("stock")
        except Exception as error:  # What a configuration does not fit, stock refuses by errors of many kinds.
            pairs.say(label=self.label, outcome="refused", why=f"{type(error).__name__}: {str(error)[:200]}")
            return
        kernel = self.kernel
        ptx: str = kernel.asm["ptx"]
        self._note(ptx)
        again = self.difference(first, self.run("stock"))
        found: dict[str, float | str] = {}
        held = kernel.function
        for tool in pairs.tools:
            cubin = pairs.assembled(ptx, tool, fmad=kernel.metadata.enable_fp_fusion)
            if cubin is None:
                found[tool] = "refuses the text"
                continue
            shared = kernel.metadata.shared
            module, kernel.function, *_ = driver.active.utils.load_binary(
                kernel.name, cubin, shared, torch.cuda.current_device()
            )
            pairs.modules.append(module)
            try:
                found[tool] = self.difference(first, self.run(tool))
            finally:
                kernel.function = held
            if not found[tool]:
                break
        worst = max((each for each in found.values() if isinstance(each, float)), default=0.0)
        is_wrong = worst > max(WRONG, 4 * again)
        outcome = "wrong" if is_wrong else "varies" if again else "other bits" if worst else "equal"
        if is_wrong or (again and "atom." not in ptx and "red." not in ptx):
            self._keep({"found": found, "again": again})
        pairs.say(
            label=self.label, ptx=_digest(ptx), outcome=outcome, again=again, found=found,
            wgmma=ptx.count("wgmma.mma_async"), seconds=time.time() - began,
        )  # fmt: skip

    def _note(self, ptx: str) -> None:
        """Keep the text, with what the kernel was specialised on."""
        self.pairs.multiplies.setdefault(self.label[0], "wgmma.mma_async" in ptx)
        stem = self.pairs.out / "texts" / _digest(ptx)
        if not stem.with_suffix(".ptx").exists():
            stem.with_suffix(".ptx").write_text(ptx)
            stem.with_suffix(".json").write_text(json.dumps(_facts(self.kernel), default=str))

    def _keep(self, found: Mapping[str, Any]) -> None:
        if self.kernel is None:
            return
        stem = self.pairs.out / "different" / _digest(self.kernel.asm["ptx"])
        stem.with_suffix(".ptx").write_text(self.kernel.asm["ptx"])
        stem.with_suffix(".cubin").write_bytes(self.kernel.asm["cubin"])
        facts = {"label": self.label, **_facts(self.kernel), **found}
        stem.with_suffix(".json").write_text(json.dumps(facts, default=str))


def _facts(kernel: Any) -> dict[str, Any]:
    source, metadata = kernel.src, kernel.metadata
    return {
        "name": kernel.name,
        "file": source.fn.fn.__code__.co_filename,
        "signature": {name: str(type_) for name, type_ in source.signature.items()},
        "constants": {str(path): value for path, value in source.constants.items()},
        "attrs": {str(path): value for path, value in source.attrs.items()},
        "num_warps": metadata.num_warps,
        "num_stages": metadata.num_stages,
        "num_ctas": metadata.num_ctas,
        "shared": metadata.shared,
    }


def _tensors(values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the tensors on the GPU among arguments, and those of descriptors."""
    import torch

    for at, value in enumerate(values):
        base = getattr(value, "base", None)
        held = base if isinstance(base, torch.Tensor) and not isinstance(value, torch.Tensor) else value
        if isinstance(held, torch.Tensor) and held.is_cuda:
            yield str(at), held
        elif isinstance(value, tuple | list):
            for name, each in _tensors(list(value)):  # pyright: ignore[reportUnknownArgumentType]
                yield f"{at}.{name}", each


def _bytes_of(tensor: Any) -> Any:
    """All bytes of a tensor's memory, those between its elements, too."""
    import torch

    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def _numbers_of(raw: Any, like: Any) -> Any:
    import torch

    return torch.empty(0, dtype=like.dtype, device=raw.device).set_(raw.untyped_storage())


def _said(value: Any) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        return str(value.dtype)
    if isinstance(value, int | float):
        return str(value) if abs(value) <= 512 else "large"
    return "" if callable(value) else str(value)[:60]


def _label(fn: Any, how: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    while not hasattr(fn, "__name__"):
        fn = fn.fn
    named = [f"{name}={_said(value)}" for name, value in kwargs.items() if name not in ("grid", "warmup")]
    return [fn.__name__, how, *map(_said, args), *named]


class Tries:
    """Launches in several configurations, in the place of Triton's own."""

    def __init__(self, pairs: Pairs):
        """Let tuners and kernels of Triton compare each launch."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        self.pairs = pairs
        self.is_busy = False
        plain_run = JITFunction.run
        tries = self

        def tuned(self: Any, *args: Any, **kwargs: Any) -> Any:
            return tries.tuned(self, args, kwargs)

        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not (tries.is_busy or kwargs["warmup"]):
                tries.plain(self, args, kwargs)
            return plain_run(self, *args, **kwargs)

        for each in (Autotuner, *Autotuner.__subclasses__()):
            if "run" in vars(each):
                each.run = tuned
        JITFunction.run = run

    def compare(self, fn: Any, how: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Compare a launch that none has tried; False where the kernel has no `wgmma`."""
        label = _label(fn, how, args, kwargs)
        if not self.pairs.is_over and self.pairs.claims(str(label)):
            Launch(self.pairs, fn, args, kwargs, label).compare()
        return self.pairs.multiplies.get(label[0], True)

    def tuned(self, tuner: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Launch what a tuner has, in its first configuration after all others."""
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        configs = list(tuner.prune_configs(kwargs))
        was_busy, self.is_busy = self.is_busy, True
        try:
            if not was_busy:
                for config in _drawn(configs, self.pairs.most, str(_label(tuner.fn, "", args, kwargs))):
                    if not self.compare(tuner.fn, str(config), args, {**kwargs, **config.all_kwargs()}):
                        break
            first = configs[0]
            if first.pre_hook is not None:
                first.pre_hook({**tuner.nargs, **kwargs, **first.all_kwargs()})
            return tuner.fn.run(*args, **kwargs, **first.all_kwargs())
        finally:
            self.is_busy, tuner.nargs = was_busy, None

    def plain(self, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Launch what no tuner has."""
        draw = random.Random(str(_label(fn, "", args, kwargs)))
        others = [{"num_warps": warps, "num_stages": stages} for warps, stages in _SHAPES]
        self.is_busy = True
        try:
            for options in ({}, *draw.sample(others, min(self.pairs.most - 1, len(others)))):
                if not self.compare(fn, str(options), args, {**kwargs, **options}):
                    break
        finally:
            self.is_busy = False


_SHAPES = tuple(product((2, 4, 8), (1, 2, 3, 4)))
"""Warps and stages that launches are tried with beside their own."""


def _drawn(configs: Sequence[Any], most: int, seed: str) -> Iterator[Any]:
    """Yield some configurations of a tuner, and others of the same blocks, which it may be given; each once."""
    draw = random.Random(seed)
    others = [
        type(config)(config.kwargs, num_warps=warps, num_stages=stages, num_ctas=config.num_ctas)
        for config in configs
        if config.pre_hook is None
        for warps, stages in _SHAPES
    ]
    own = [config for config in draw.sample(list(configs), min(FEW, len(configs))) if config.pre_hook is None]
    yield from {
        str(each): each for each in (*own, *draw.sample(others, min(max(most - len(own), 0), len(others))))
    }.values()


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep a few tests of each function, those of 16 bits where there are such; a drawn order spreads the kernels."""
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = [each for group in groups.values() for each in ([i for i in group if "float16" in i.name] or group)[:TESTS]]
    random.Random(1).shuffle(kept)
    items[:] = kept


def pytest_runtest_setup() -> None:
    """Leave the tests that are left when the time is over."""
    import pytest

    patch_once()
    if _PAIRS[0].is_over:
        pytest.skip("the time is over")


_PAIRS: list[Pairs] = []


def patch_once() -> None:
    """Patch Triton in this process, after the suite has made its own kinds of tuners."""
    if not _PAIRS:
        _PAIRS.append(Pairs())
        Tries(_PAIRS[0])


def main(folder: str) -> None:
    """Print what was run: kernels, configurations, outcomes, and each launch that is not equal."""
    rows = [json.loads(line) for path in sorted(Path(folder).glob("*.jsonl")) for line in path.open()]
    multiply = [row for row in rows if row.get("wgmma")]
    print(f"{len(rows):,} configurations of {len({row['label'][0] for row in rows})} kernels,", end=" ")
    print(f"{len(multiply):,} of {len({row['label'][0] for row in multiply})} with wgmma")
    print(", ".join(f"{count:,} {outcome}" for outcome, count in Counter(row["outcome"] for row in rows).most_common()))
    for row in rows:
        if row["outcome"] not in ("equal", "refused"):
            print(row["outcome"], row["label"][0], row["label"][1], row.get("again"), row.get("found", row.get("why")))


if __name__ == "__main__":
    main(*sys.argv[1:])
