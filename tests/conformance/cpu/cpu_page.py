"""Write docs/cpu-conformance.md: the list of entries, and the records of their runs.

    python -m tests.conformance.cpu.cpu_page FOLDER

FOLDER holds what the harnesses write with `--json`:

    stock.json, interpret.json, native.json    tests.conformance.cpu.cpu_kernels, one for each mode
    tests.stock.json and tests.native.json     tests.conformance.stock_python, of one selection of cases
    conditions.txt                             what the records were made on: commit, machine, versions
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.conformance import stock_report
from tests.conformance.cpu.cpu_entries import Entry
from tests.conformance.cpu.cpu_kernels import RIGHT, entries
from tests.conformance.page import one_line, table

PAGE = Path(__file__).parents[3] / "docs" / "cpu-conformance.md"
FIXED = "2026-11-23"
"""The day on which the list was fixed, before the first run."""

SUITES = {
    "vllm": "vLLM 0.29.0 (github.com/vllm-project/vllm at 98dff2a81): all 57 kernels that the host launches below "
    "`vllm/v1/worker/gpu`, which its runner on CPUs shares. Modules are imported as they are, without the rest of the "
    "package.",
    "liger": "Liger-Kernel (github.com/linkedin/Liger-Kernel at ead96b618): all kernels below `src/liger_kernel/ops`, "
    "forward and backward, but those for other compilers and `experimental/mm_int8int2.py`, whose tests are skipped.",
    "fla": "flash-linear-attention (github.com/fla-org/flash-linear-attention at bc3b101dc): of the folders that "
    "`fla/ops/__init__.py` imports from, the first twelve with a `naive.py`; of each the first function.",
    "triton": "The tutorials of Triton (as Meta's fork holds them at db4666f22), 01 to 09. 10 is about block scales of "
    "Blackwell's tensor cores, and 11 waits for other launches by PTX.",
}

CHANGED = """\
What the first runs have changed in the list, each a fault of the entry, not of what runs it: Philox takes the upper
half of a 64-bit offset as its second counter; products of float32 that a kernel leaves at TF32 (`liger/mlp`,
flash-linear-attention) may differ by 2e-2; the loss of `liger/grpo_loss` is reduced, as its gradient of sequences
expects; the bias of `liger/poly_norm` is a number; `liger/softmax_blocks` gets blocks shorter than its rows;
`fla/chunk_delta_rule` takes bf16 only; `fla/chunk_comba` has the reference of the suite's own tests.
"""

NOTES = """\
- `liger/softmax_blocks` calls a type, `tl.float32(0.0)`, which stock Triton refuses, too: Liger-Kernel never gets to
  these kernels, since its blocks are as long as the rows.
- `fla/fused_chunk_based` loads with a mask without saying what else: that was NaN in our interpreter when this was run,
  and is [0](left-open.md#masked-loads) since.
- Triton's interpreter lacks functions of libdevice, methods of `float` parameters (`.to`) and masks that are Python's
  booleans, and rounds to bf16 in its own way. flash-linear-attention cannot be imported with Triton 3.9 itself, which
  refuses names in a tuner's `key` that are no parameters.
"""

HEAD = f"""\
# Kernels of others on the CPU

<!-- Made by `python -m tests.conformance.cpu.cpu_page FOLDER` of the records of the suites (tests/conformance). -->

Kernels from public repositories, compiled for the CPU and run on torch's tensors. The list was fixed on {FIXED},
before the first run. Nothing of the suites is kept here:
`python -m tests.conformance.cpu.cpu_kernels SUITES --mode native` takes a folder with checkouts of them.
An entry calls one function of a suite, or launches one of its kernels as it does, and compares all results with
torch's; tuners keep their first configuration. Each has a process, and a time limit, of its own.
"""

MODES = {"stock": "Triton's interpreter", "interpret": "our interpreter", "native": "native"}

Records = Mapping[str, Mapping[str, Any]]


def page(folder: Path | None) -> str:
    """Return the text of the page."""
    modes = {mode: json.loads((folder / f"{mode}.json").read_text()) for mode in _modes(folder)} if folder else {}
    conditions = folder / "conditions.txt" if folder else None
    parts = [HEAD, "## The suites\n", *(f"- **{name}**: {text}" for name, text in SUITES.items()), ""]
    if modes:
        parts += ["## Results\n"]
        if conditions is not None and conditions.exists():
            parts += [conditions.read_text().strip() + "\n"]
        parts += [_summary(modes), *_not_right(modes.get("native", {})), NOTES]
    if folder is not None and (folder / "tests.native.json").exists():
        parts += _tests(folder)
    parts += ["## The list\n", CHANGED, *(_list(suite, modes) for suite in SUITES)]
    return "\n".join(parts)


def _modes(folder: Path) -> list[str]:
    return [mode for mode in MODES if (folder / f"{mode}.json").exists()]


def _summary(modes: Mapping[str, Records]) -> str:
    """A row for each suite: entries, and the kernels that they launch, of each mode."""
    head = ["suite", "entries"]
    for mode in modes:
        head += [f"right: {MODES[mode]}"]
    head += ["kernels"]
    if "interpret" in modes:
        head += ["reach linalg"]
    if "native" in modes:
        head += ["kernels right: native", "not right"]
    rows: list[tuple[str, ...]] = []
    for suite in SUITES:
        cases = [case for case in entries().values() if case.suite == suite]
        row = [suite, str(len(cases))]
        for records in modes.values():
            row.append(str(sum(_outcome(records, case) == RIGHT for case in cases)))
        kernels = {kernel for case in cases for kernel in kernels_of(case, modes)}
        row.append(str(len(kernels)))
        if "interpret" in modes:
            lowered = _lowered(cases, modes["interpret"])
            row.append(f"{sum(not why for why in lowered.values())} of {len(lowered)}")
        if "native" in modes:
            bad = {k for case in cases if _outcome(modes["native"], case) != RIGHT for k in kernels_of(case, modes)}
            outcomes = Counter(_outcome(modes["native"], case) for case in cases)
            row.append(str(len(kernels - bad)))
            row.append(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items() if outcome != RIGHT))
        rows.append(tuple(row))
    return table(tuple(head), rows)


def _lowered(cases: Iterable[Entry], records: Records) -> dict[tuple[str, str], str]:
    """Why each kernel does not reach linalg; empty where it does."""
    found: dict[tuple[str, str], str] = {}
    for case in cases:
        for kernel, why in records.get(case.name, {}).get("linalg", {}).items():
            found[_module(case), kernel] = found.get((_module(case), kernel)) or why
    return found


def kernels_of(case: Entry, modes: Mapping[str, Records]) -> tuple[tuple[str, str], ...]:
    """The kernels of an entry, each with its module: those that it names, or that it was seen to launch."""
    seen = {kernel for records in modes.values() for kernel in records.get(case.name, {}).get("launched", ())}
    return tuple((_module(case), kernel) for kernel in case.kernels or sorted(seen))


def _module(case: Entry) -> str:
    """What distinguishes kernels of one name; entries that name none share theirs."""
    return case.file if case.kernels else ""


def _outcome(records: Records, case: Entry) -> str:
    return str(records.get(case.name, {}).get("outcome", "not run"))


def _not_right(native: Records) -> Iterable[str]:
    rows = [
        (name, str(record["outcome"]), one_line(str(record["reason"])))
        for name, record in sorted(native.items())
        if record["outcome"] != RIGHT
    ]
    if rows:
        yield "What is not right natively:\n"
        yield table(("entry", "outcome", "reason"), rows)


def _tests(folder: Path) -> Iterable[str]:
    stock, native = (json.loads((folder / f"tests.{who}.json").read_text())["cases"] for who in ("stock", "native"))
    yield "## Stock's Python tests\n"
    yield (
        "A sample of 3,000 cases (`--sample 3000 --seed 20`) of `test_core.py`, `test_standard.py` and "
        "`test_random.py` with `--device cpu`: stock under `TRITON_INTERPRET=1`, ours native.\n"
    )
    yield stock_report.table(stock, native) + "\n"
    causes = stock_report.only_stock(stock, native, {})
    if causes:
        yield "What only stock passes:\n"
        ordered = sorted(causes.items(), key=lambda item: -len(item[1]))
        yield "\n".join(f"- {len(cases)}: {one_line(cause)}" for cause, cases in ordered) + "\n"


def _list(suite: str, modes: Mapping[str, Records]) -> str:
    rows: list[tuple[str, ...]] = []
    for name, case in entries().items():
        if case.suite != suite:
            continue
        kernels = " ".join(f"`{kernel}`" for _, kernel in kernels_of(case, modes)) or "those that the call launches"
        tolerance = "exact" if not case.tolerance else f"{case.tolerance:g}"
        row = (name, f"`{case.file}`", kernels, f"`{case.call}`", case.reference, tolerance)
        rows.append((*row, *(_outcome(records, case) for records in modes.values())))
    head = ("entry", "module", "kernels", "call", "reference", "tolerance", *(MODES[mode] for mode in modes))
    return f"### {suite}\n\n" + table(head, rows)


if __name__ == "__main__":
    PAGE.write_text(page(Path(sys.argv[1]) if len(sys.argv) > 1 else None), encoding="utf-8")
