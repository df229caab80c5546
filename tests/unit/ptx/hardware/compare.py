"""The PTX machine against an H200: `python -m tests.unit.ptx.hardware.compare [PART OF A NAME]`.

Runs the cases and prints how many give the bits of the GPU, and by how much the others differ, by cause. Needs the
Triton that the results were made with; a case whose PTX has changed since is said to be so.

To make the results anew: `... compare --record CASES.pkl.xz` compiles all cases, `python device_side.py CASES.pkl.xz
RESULTS.pkl.xz` runs them on the GPU, and `... compare --keep CASES.pkl.xz RESULTS.pkl.xz "NAME OF THE GPU"` keeps what
came out.
"""

from __future__ import annotations

import lzma
import pickle
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tests.unit.ptx.hardware import kept, launches
from tests.unit.ptx.hardware.all_cases import all_cases
from tlx_xdsl.backend import installed_triton_version


def record(target: str) -> None:
    """Compile all cases, and write them for `device_side.py`."""
    made: list[dict[str, Any]] = []
    for name, case in all_cases().items():
        print(name, flush=True)
        made.append(asdict(launches.record(name, case)))
    with lzma.open(target, "w") as file:
        pickle.dump(made, file)


def results_of(source: str, target: str) -> dict[str, tuple[dict[str, Any], list[np.ndarray] | str]]:
    """The recorded cases, with the outputs of each on the GPU, or what the driver said."""
    with lzma.open(source) as file:
        recorded = {case["name"]: case for case in pickle.load(file)}
    found: dict[str, tuple[dict[str, Any], list[np.ndarray] | str]] = {}
    with lzma.open(target) as file:
        while file.peek(1):
            name, outputs = pickle.load(file)
            case = recorded[name]
            found[name] = case, outputs if isinstance(outputs, str) else _arrays(case, outputs)
    return found


def _arrays(case: dict[str, Any], outputs: Sequence[bytes | None]) -> list[np.ndarray]:
    arrays: list[np.ndarray] = []
    for (number, place, dtype, _, shape, strides), data in zip(case["outputs"], outputs, strict=True):
        raw = case["memories"][number][place:] if data is None else data
        arrays.append(np.ndarray(shape, kept.dtype_named(dtype), raw, 0, strides))
    return arrays


def keep(source: str, target: str, gpu: str) -> None:
    """Run the cases on the machine, and keep the GPU's results with the distance of the machine's."""
    results = kept.Results(gpu, installed_triton_version() or "")
    cases = all_cases()
    for name, (case, outputs) in results_of(source, target).items():
        if isinstance(outputs, str):
            print(f"{name}: left out, {outputs}")
            continue
        done = launches.run(cases[name])
        worst, part = kept.distance(done.outputs, outputs)
        results.cases[name] = kept.Kept(
            launches.digest(case["ptx"]), [kept.digest(each) for each in outputs],
            [kept.first(each) for each in outputs], "unknown" if part else "", worst, part,
        )  # fmt: skip
    kept.save(results)


def main(part: str = "") -> int:
    """Run the cases, and print the table; the status is 1 if a case with its kept PTX is farther off than it was."""
    results = kept.load()
    if installed_triton_version() != results.triton:
        print(f"the results are of Triton {results.triton}, {installed_triton_version()} is installed")
    counts: Counter[str] = Counter()
    worst: dict[str, float] = {}
    wrong = 0
    for name, case in all_cases().items():
        expected = results.cases.get(name)
        if part not in name or expected is None:
            continue
        done = launches.run(case)
        same = [kept.digest(each) for each in done.outputs] == expected.hashes
        label = "equal" if same else expected.cause or "WRONG"
        if launches.digest(done.ptx) != expected.ptx:
            label += ", of other PTX"
        elif label == "WRONG":
            wrong += 1
            print(f"WRONG: {name}")
        counts[label] += 1
        if not same:
            worst[label] = max(worst.get(label, 0.0), expected.distance)
    total = sum(counts.values())
    print(f"{total} cases on {results.gpu}, Triton {results.triton}")
    for label, count in counts.most_common():
        far = f", at most {worst[label]:.2g} of the largest element apart" if label in worst else ""
        print(f"{count:5} {100 * count / total:5.1f} %  {label}{far}")
    return int(wrong > 0)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--record", target]:
            record(target)
        case ["--keep", source, target, gpu]:
            keep(source, target, gpu)
        case rest:
            sys.exit(main(*rest))
