"""Write docs/cpu-conformance.md: the list of entries, and the records of their runs.

    python -m tests.conformance.cpu.cpu_page FOLDER

FOLDER holds what the harnesses write with `--json`:

    stock.json, interpret.json, native.json, ptx.json    tests.conformance.cpu.cpu_kernels, one for each mode
    tests.stock.json and tests.native.json     tests.conformance.stock_python, of one selection of cases
    conditions.txt                             a line: the day, and what the records were made on

What FOLDER says nothing of stays on the page as an earlier run has left it: a suite none of whose entries it has, and
Stock's Python tests.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.conformance import stock_report
from tests.conformance.cpu.cpu_entries import Entry
from tests.conformance.cpu.cpu_kernels import RIGHT, entries
from tests.conformance.page import one_line, table

PAGE = Path(__file__).parents[3] / "docs" / "cpu-conformance.md"
FIXED = "2026-11-23"
"""The day on which the list of the first four suites was fixed, before the first run."""
MORE = "2026-11-29"
"""The day on which the other seven were added, none of them after a run of it."""

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
    "attorch": "attorch (github.com/BobMcDear/attorch at 67c2772): all of its layers but attention, which it gives up "
    "itself, forward and backward.",
    "inductor": "What torch.compile generates: 28 graphs, by `tlx_xdsl.torch.enable_inductor`, and until 2026-11-29 "
    "with the sources handed to `triton.jit`. No checkout: it is the installed torch's.",
    "mamba": "mamba-ssm (github.com/state-spaces/mamba at e9594ce): below `mamba_ssm/ops/triton`, but `mamba3`.",
    "unsloth": "unsloth (github.com/unslothai/unsloth at 015bdef0): below `unsloth/kernels`, but `moe` and what calls "
    "bitsandbytes' library.",
    "bitsandbytes": "bitsandbytes (github.com/bitsandbytes-foundation/bitsandbytes at 95f9af30): `backends/triton`.",
    "xformers": "xFormers (github.com/facebookresearch/xformers at ca6d2aa0): `ops/_triton`, but the rotation of "
    "padded sequences, which needs a compiled package.",
    "lmdeploy": "LMDeploy (github.com/InternLM/lmdeploy at 1263d5cd): 13 functions of `pytorch/kernels/cuda`, among "
    "them one whose kernel holds PTX.",
}

CHANGED = """\
What the first runs have changed in the list, each a fault of the entry, not of what runs it: Philox takes the upper
half of a 64-bit offset as its second counter; products of float32 that a kernel leaves at TF32 (`liger/mlp`,
flash-linear-attention) may differ by 2e-2; the loss of `liger/grpo_loss` is reduced, as its gradient of sequences
expects; the bias of `liger/poly_norm` is a number; `liger/softmax_blocks` gets blocks shorter than its rows;
`fla/chunk_delta_rule` takes bf16 only; `fla/chunk_comba` has the reference of the suite's own tests.
`liger/rms_norm` has rows enough for the kernels of blocks since 2026-11-29;
`attorch/hardswish` leaves out 3 and -3, where attorch and torch chose different derivatives;
`mamba/selective_state_update` always has a bias, without which the suite's own call fails; `lmdeploy/fused_lora` has
its matrices by ranks; graphs of inductor are compiled anew for each of their sizes; `unsloth/cross_entropy` caps at
30: of 70,000 classes in parts the kernel caps the masked ones of the last part, too, and counts each as e^-cap, which
at 5 shows in the loss, on any device.
"""

NOTES = """\
- `liger/softmax_blocks` calls a type, `tl.float32(0.0)`, which stock Triton refuses, too: Liger-Kernel never gets to
  these kernels, since its blocks are as long as the rows.
- `fla/fused_chunk_based` loads with a mask without saying what else: that was NaN in our interpreter when this was run,
  and is [0](left-open.md#masked-loads) since.
- `lmdeploy/awq_linear` holds PTX, which no CPU runs; the PTX machine does.
- The PTX machine runs what stock Triton makes of a kernel for sm_90a, instruction by instruction: an entry that did not
  end within 60 s (of inductor 45, of attorch 30) is a `timeout` there. The first configuration of `mamba/ssd_scan` does
  not fit into the shared memory of that GPU.
- Triton's interpreter lacks functions of libdevice, methods of `float` parameters (`.to`) and masks that are Python's
  booleans, and rounds to bf16 in its own way. flash-linear-attention cannot be imported with Triton 3.9 itself, which
  refuses names in a tuner's `key` that are no parameters.
"""

OWN_TESTS = """\
## The libraries' own test files

`python -m tlx_xdsl.compat --cpu -m pytest FILE` with the tests as they are, on 2026-12-01: Triton 3.9.0, torch 2.13,
Python 3.11, two cores of an x86-64 with AVX-512 (Intel) with a load of 10 to 20 by others. *Ended* is *no* where the
time limit (attorch 20 minutes, xFormers 7, LMDeploy 4 to 7) came first: the counts are of what had run.

attorch's files are those with `--subset`, its option for eight of its shapes; the tests of the other shapes return at
once and are not counted. xFormers' pure Python part imports with its package `mslk` (`MSLK_PYTHON_ONLY=1`).

| file of a library | passed | failed | skipped | ended |
|---|---|---|---|---|
| attorch `test_p_loss_layers.py` | 360 | 24 | 0 | yes |
| attorch `test_nll_loss_layer.py` | 141 | 3 | 0 | yes |
| attorch `test_cross_entropy_loss_layer.py` | 16 | 0 | 0 | yes |
| attorch `test_batch_norm_layer.py` | 154 | 0 | 0 | no |
| attorch `test_act_layers.py` | 260 | 2 | 0 | no |
| attorch `test_conv_layer.py` | 15 | 0 | 0 | no |
| xFormers `test_rmsnorm.py` | 18 | 0 | 0 | yes |
| xFormers `test_tiled_matmul.py` | 60 | 0 | 0 | yes |
| xFormers `test_indexing.py` | 7 | 0 | 0 | yes |
| xFormers `test_splitk_reference.py` | 18 | 0 | 0 | yes |
| xFormers `test_rope_padded.py` | 37 | 0 | 0 | no |
| xFormers `test_tree_attention.py` | 0 | 51 | 0 | no |
| LMDeploy `test_rms_norm.py` | 12 | 0 | 0 | yes |
| LMDeploy `test_multinomial_sampling.py` | 6 | 0 | 0 | yes |
| LMDeploy `test_apply_rotary.py` | 15 | 0 | 0 | yes |
| LMDeploy `test_fill_kv_cache.py` | 23 | 1 | 0 | yes |
| LMDeploy `test_flatten_kv_cache.py` | 21 | 0 | 0 | yes |
| LMDeploy `test_v4_flatten_kv.py` | 15 | 0 | 0 | yes |
| LMDeploy `test_v4_sparse_indices.py` | 6 | 0 | 0 | yes |
| LMDeploy `test_sparse_index_topk.py` | 0 | 4 | 0 | yes |
| LMDeploy `test_ds_index.py` | 2 | 0 | 1 | yes |
| LMDeploy `test_dsa_indexer_preprocess.py` | 9 | 0 | 0 | yes |
| LMDeploy `test_dsv4_hc_prepost.py` | 4 | 1 | 0 | yes |
| LMDeploy `test_fused_lora.py` | 2 | 0 | 0 | yes |
| LMDeploy `test_turboquant.py` | 8 | 0 | 0 | yes |
| LMDeploy `test_copy_packed_cache.py` | 5 | 0 | 0 | yes |
| LMDeploy `test_gemm_fp8.py` | 5 | 0 | 0 | yes |
| LMDeploy `test_static_fp8_linear.py` | 35 | 2 | 0 | yes |
| LMDeploy `test_fused_moe_static_fp8.py` | 24 | 2 | 0 | yes |
| LMDeploy `test_fused_moe.py` | 47 | 0 | 0 | yes |
| LMDeploy `test_v4_compressor.py` | 25 | 0 | 0 | yes |
| LMDeploy `test_gated_delta_preprocess.py` | 0 | 0 | 72 | yes |
| LMDeploy `test_bitonic_topk.py` | 1 | 0 | 0 | yes |
| LMDeploy `test_moe_route.py` | 4 | 0 | 0 | yes |
| LMDeploy `test_fused_single_group_router.py` | 27 | 2 | 0 | yes |
| LMDeploy `test_flash_attention.py` | 11 | 0 | 1 | yes |
| LMDeploy `test_paged_attention.py` | 36 | 5 | 3 | yes |
| LMDeploy `test_mla_attention.py` | 5 | 0 | 1 | yes |
| LMDeploy `test_fa3_attention.py` | 3 | 0 | 0 | yes |

What failed:

- attorch's derivative of the L1 loss is 1 where input and target are equal, and torch's is 0 (24 tests, one or a few
  elements of each); that of Hardswish differs from torch's at 3 and -3 (2). Both stand so in its kernels.
- A loss of `test_nll_loss_layer.py` is a sum of 200,704 numbers of float32, near 0, which is added in another order
  than torch's: -4.55147 and -4.55160, where the test wants 1e-5 (3).
- `test_tree_attention.py` asks for `tensor.device.type == "cuda"`, which
  [the GPU that is not there](compat.md#torch-without-a-gpu) does not say (51).
- `test_fill_kv_cache.py` compares two kernels of LMDeploy's bit by bit, of which one multiplies by 448 / x and the
  other divides by x / 448: one of 124,416 numbers is the next one of 8 bits.
- CUDA graphs (6), the package `tilelang` (5) and PTX in `pagedattention.py` (5, one of them an error in a fixture) have
  no counterpart on a CPU.
- All 60 tests of `test_tiled_matmul.py` failed in the first run: its operators are registered for CUDA alone. They are
  the CPU's in `compat --cpu` since.
"""

HEAD = f"""\
# Kernels of others on the CPU

<!-- Made by `python -m tests.conformance.cpu.cpu_page FOLDER` of the records of the suites (tests/conformance). -->

Kernels from public repositories, compiled for the CPU and run on torch's tensors. The list of the first four suites
was fixed on {FIXED} and that of the others on {MORE}, each before its first run. Nothing of the suites is kept here:
`python -m tests.conformance.cpu.cpu_kernels SUITES --mode native` takes a folder with checkouts of them, named as
below. An entry calls one function of a suite, or launches one of its kernels as it does, and compares all results with
torch's; tuners keep their first configuration. Each has a process, and a time limit, of its own. Since {MORE} each
native launch gets its tensors between sentinels: an entry whose kernels write past them is wrong.
"""

MODES = {
    "stock": "Triton's interpreter", "interpret": "our interpreter", "native": "native", "ptx": "PTX machine",
}  # fmt: skip
NOT_RIGHT = "What is not right natively:"
TESTS = "## Stock's Python tests"
LIST = "## The list"
BARE = "not run"
LAUNCHED = "those that the call launches"
DAY = r"\d{4}-\d\d-\d\d"
REASONS = "reason"
"""What the table of entries that are not right is found by: its head begins as that of the lists does."""

Records = Mapping[str, Mapping[str, Any]]
Row = Mapping[str, str]


class Before:
    """The page as it stands: what the records of a run do not say is taken from here."""

    def __init__(self, text: str):
        self._text = text

    @cached_property
    def rows(self) -> Mapping[str, Mapping[str, Row]]:
        """The rows of its tables, by the first cell of the head and by their own."""
        found: dict[str, dict[str, Row]] = {}
        head: list[str] = []
        for line in self._text.splitlines():
            if not line.startswith("|"):
                head = []
                continue
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
            if not head:
                head = cells
            elif not set("".join(cells)) <= set("-: "):
                found.setdefault(REASONS if "reason" in head else head[0], {})[cells[0]] = dict(
                    zip(head, cells, strict=True)
                )
        return found

    def row(self, table: str, name: str) -> Row:
        """A row of the tables whose head begins with `table`; empty where there is none."""
        return self.rows.get(table, {}).get(name, {})

    @property
    def conditions(self) -> Mapping[str, str]:
        """Machines of the runs, by day."""
        return dict(re.findall(rf"^- \*\*({DAY})\*\*: (.*)$", self._text, re.MULTILINE))

    @property
    def tests(self) -> str:
        """The section of stock's Python tests."""
        start = self._text.find(TESTS)
        return self._text[start : self._text.find(LIST)].strip() + "\n" if start >= 0 else ""


def page(folder: Path | None, before: str = "") -> str:
    """Return the text of the page."""
    modes = {mode: json.loads((folder / f"{mode}.json").read_text()) for mode in _modes(folder)} if folder else {}
    day, _, made_on = _conditions(folder)
    old = Before(before)
    summary = [_summary(suite, day, modes, old.row("suite", suite)) for suite in SUITES]
    parts = [HEAD, "## The suites\n", *(f"- **{name}**: {text}" for name, text in SUITES.items()), ""]
    if any(summary):
        days = {each for row in summary for each in re.findall(DAY, row.get("run", ""))}
        machines = {**old.conditions, **({day: made_on} if day else {})}
        parts += [
            "## Results\n",
            *(f"- **{each}**: {machines[each]}" for each in sorted(days & machines.keys())),
            "\n*Reach linalg* counts the types and constants that kernels are compiled for, in the run of our "
            "interpreter. *Run* is the day of a suite's last run, and in which modes if not in all.\n",
            _table(summary),
            *_not_right(modes.get("native", {}), old),
            NOTES,
        ]
    with_tests = folder is not None and (folder / "tests.native.json").exists()
    parts.append(OWN_TESTS)
    parts += _tests(folder) if folder is not None and with_tests else [old.tests]
    parts += [LIST + "\n", CHANGED, *(_list(suite, modes, old) for suite in SUITES)]
    return "\n".join(parts)


def _conditions(folder: Path | None) -> tuple[str, str, str]:
    file = folder / "conditions.txt" if folder else None
    text = file.read_text(encoding="utf-8").strip() if file is not None and file.exists() else ""
    return text.partition(", ")


def _modes(folder: Path) -> list[str]:
    return [mode for mode in MODES if (folder / f"{mode}.json").exists()]


def _table(rows: Sequence[Row]) -> str:
    """A table of rows that need not have all columns."""
    order = (
        "suite", "run", "entries", *(f"right: {name}" for name in MODES.values()), "kernels", "reach linalg",
        "kernels right: native", "not right",
    )  # fmt: skip
    head = [column for column in order if any(row.get(column) for row in rows)]
    return table(tuple(head), [tuple(row.get(column, "") for column in head) for row in rows if row])


def _summary(suite: str, day: str, modes: Mapping[str, Records], old: Row) -> Row:
    """The row of a suite: entries, and the kernels that they launch, of each mode; of others what `old` says."""
    cases = [case for case in entries().values() if case.suite == suite]
    here = {mode: records for mode, records in modes.items() if any(case.name in records for case in cases)}
    if not here:
        return old
    ran = [MODES[mode] for mode in here]
    kept = [name for name in MODES.values() if old.get(f"right: {name}") and name not in ran]
    # What an earlier day alone ran of these modes does not count any more.
    earlier = re.findall(rf"({DAY}(?: \(([^)]*)\))?)", old.get("run", ""))
    others = [text for text, names in earlier if not names or not set(names.split(", ")) <= set(ran)]
    run = ", ".join((f"{day} ({', '.join(ran)})", *others)) if kept else day
    kernels = {kernel for case in cases for kernel in kernels_of(case, here)}
    row = {**old, "suite": suite, "run": run, "entries": str(len(cases)), "kernels": str(len(kernels))}
    for mode, records in here.items():
        row[f"right: {MODES[mode]}"] = str(sum(_outcome(records, case) == RIGHT for case in cases))
    if "interpret" in here:
        lowered = _lowered(cases, here["interpret"])
        row["reach linalg"] = f"{sum(not why for why in lowered.values())} of {len(lowered)}"
    if "native" in here:
        bad = {k for case in cases if _outcome(here["native"], case) != RIGHT for k in kernels_of(case, here)}
        outcomes = Counter(_outcome(here["native"], case) for case in cases)
        row["kernels right: native"] = str(len(kernels - bad))
        row["not right"] = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items() if outcome != RIGHT)
    return row


def _lowered(cases: Iterable[Entry], records: Records) -> dict[tuple[str, str], str]:
    """Collect the reasons why kernels do not reach linalg; empty where they do."""
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
    """Return the key that distinguishes kernels of one name; entries that name none share theirs."""
    return case.file if case.kernels else ""


def _outcome(records: Records, case: Entry) -> str:
    return str(records.get(case.name, {}).get("outcome", BARE))


def _not_right(native: Records, old: Before) -> Iterable[str]:
    found = {name: (row["outcome"], row["reason"]) for name, row in old.rows.get(REASONS, {}).items()}
    found |= {name: (str(each["outcome"]), one_line(str(each["reason"]))) for name, each in native.items()}
    rows = [(name, *each) for name, each in sorted(found.items()) if each[0] != RIGHT]
    if rows:
        yield f"{NOT_RIGHT}\n"
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


def _list(suite: str, modes: Mapping[str, Records], old: Before) -> str:
    """The entries of a suite, with the records' outcomes, and what `old` says of other modes."""
    rows: list[Row] = []
    for name, case in entries().items():
        if case.suite != suite:
            continue
        kept = old.row("entry", name)
        kernels = " ".join(f"`{kernel}`" for _, kernel in kernels_of(case, modes)) or kept.get("kernels", LAUNCHED)
        row = {
            **kept, "entry": name, "module": f"`{case.file}`", "kernels": kernels, "call": f"`{case.call}`",
            "reference": case.reference, "tolerance": "exact" if not case.tolerance else f"{case.tolerance:g}",
        }  # fmt: skip
        row |= {MODES[mode]: _outcome(records, case) for mode, records in modes.items() if name in records}
        rows.append(row)
    ran = [mode for mode in MODES.values() if any(mode in row for row in rows)]
    head = ("entry", "module", "kernels", "call", "reference", "tolerance", *ran)
    return f"### {suite}\n\n" + table(head, [tuple(row.get(each, BARE) for each in head) for row in rows])


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    PAGE.write_text(page(Path(sys.argv[1]) if len(sys.argv) > 1 else None, text), encoding="utf-8")
