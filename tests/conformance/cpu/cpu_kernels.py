"""Run kernels of public repositories on tensors in the CPU's memory, each against torch.

    python -m tests.conformance.cpu.cpu_kernels SUITES --mode native --json native.json

SUITES is a folder with checkouts; docs/cpu-conformance.md says of what and how they are named, and lists the entries.
Modes: `stock` is Triton's own interpreter, `interpret` ours, which also tries to lower each kernel to linalg, `native`
the compiler for the CPU, and `ptx` the machine for the PTX that stock Triton makes of kernels.
Each entry runs in a process of its own, and natively each launch gets its tensors between sentinels.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.conformance.isolated import run_isolated

MODULES = (
    "cpu_vllm_batch", "cpu_vllm_sampling", "cpu_vllm_shards", "cpu_vllm_drafts", "cpu_vllm_mtp", "cpu_vllm_rejection",
    "cpu_liger", "cpu_liger_losses", "cpu_fla", "cpu_tutorials",
    "cpu_attorch", "cpu_inductor", "cpu_mamba", "cpu_unsloth", "cpu_bitsandbytes", "cpu_xformers", "cpu_lmdeploy",
)  # fmt: skip
"""The files with entries."""

RIGHT, WRONG, REFUSED, FAILED, SLOW = "right", "wrong", "refused", "error", "timeout"
TARGET = "sm_90a"
"""The GPU that scripts see, where they ask for one."""

WITH_A_GPU = frozenset({"triton", "attorch", "mamba", "bitsandbytes", "unsloth", "xformers", "lmdeploy"})
"""The suites that ask torch for a GPU, be it for its capability alone."""

Result = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the entries; the exit status is 1 if one is not right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, metavar="SUITES")
    parser.add_argument("--mode", choices=("stock", "interpret", "native", "ptx", "check"), required=True)
    parser.add_argument("--only", default="", help="the entries whose names contain this")
    parser.add_argument("--json", type=Path, metavar="OUT", help="what OUT holds of other entries stays")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for each entry (300)")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each launch, with --mode check (1)")
    parser.add_argument("--traceback", action="store_true", help="show where an entry fails")
    options = parser.parse_args(argv)
    os.environ["TRITON_INTERPRET"] = "1" if options.mode == "stock" else "0"
    names = [name for name in entries() if options.only in name]
    results: dict[str, Result] = {}
    for name in names:
        (found,) = run_isolated(partial(_measured, options), [name], 1, batch=1, seconds=options.timeout)
        results[name] = _ended(found, options.timeout)
        # After each: what has run so far is kept if this process ends.
        if options.json is not None:
            before = json.loads(options.json.read_text()) if options.json.exists() else {}
            options.json.write_text(json.dumps({**before, name: results[name]}, indent=1) + "\n")
    print(dict(Counter(results[name]["outcome"] for name in names)))
    if options.mode == "check":
        checked = [results[name] for name in names if "launches" in results[name]]
        kernels = {kernel for each in checked for kernel in each["launched"]}
        launches, reports = (sum(each["launches"] for each in checked), sum(len(each["findings"]) for each in checked))
        print(f"{launches} launches of {len(kernels)} kernels checked: {reports} findings")
    return int(any(results[name]["outcome"] != RIGHT for name in names))


def entries() -> dict[str, Any]:
    """All entries, by their names."""
    for name in MODULES:
        import_module(f"tests.conformance.cpu.{name}")
    from tests.conformance.cpu.cpu_entries import ENTRIES

    return ENTRIES


def _ended(result: Result, timeout: int) -> Result:
    """The record of an entry whose process may have died."""
    died = result.get("died")
    if died is None:
        return result
    if died == "signal 14":
        return {"outcome": SLOW, "reason": f"after {timeout} s", "seconds": timeout}
    return {"outcome": FAILED, "reason": f"the process ended: {died}", "seconds": 0}


def _measured(options: argparse.Namespace, name: str) -> Result:
    """Run an entry here."""
    began = time.monotonic()
    with redirect_stdout(sys.stderr):
        result = _run(options, name)
    result["seconds"] = round(time.monotonic() - began, 1)
    print(f"{name:<45} {result['outcome']:<9} {result['seconds']:6.1f} s  {result['reason'][:160]}", file=sys.stderr)
    return result


def _run(options: argparse.Namespace, name: str) -> Result:
    from tests.conformance.cpu.cpu_entries import WrongNumbers, run_entry
    from tests.conformance.cpu.cpu_launches import record_launches
    from tests.conformance.cpu.cpu_loading import loader
    from tlx_xdsl.errors import CompilationError

    warnings.simplefilter("ignore")
    case = entries()[name]
    linalg: dict[str, str] = {}
    _install(options.mode, case.suite, linalg)
    if options.mode == "check":
        from tlx_xdsl.compat.checked import CheckedKernel

        CheckedKernel.seconds = options.seconds
    launched: set[str] = set()
    record_launches(launched, native=options.mode == "native")
    outcome, reason = RIGHT, ""
    try:
        run_entry(case, loader(case.suite, options.root))
        if options.mode == "native" and (missing := sorted(set(case.kernels) - launched)):
            raise WrongNumbers(f"never launched: {', '.join(missing)}")
    except WrongNumbers as error:
        outcome, reason = WRONG, _line(error)
    except BaseException as error:
        refusal = _refusal(error, CompilationError)
        outcome = FAILED if refusal is None or "internal error" in str(refusal) else REFUSED
        reason = _line(refusal) if refusal is not None else f"{type(error).__name__}: {_line(error)}"
        if options.traceback:
            traceback.print_exc()
    result = {"outcome": outcome, "reason": reason, "launched": sorted(launched), "linalg": linalg}
    return {**result, **findings()} if options.mode == "check" else result


def findings() -> Result:
    """Return the findings and the number of this process's launches under `--mode check`."""
    from tlx_xdsl.compat.checked import RECORD

    for each in RECORD.findings:
        print(each, file=sys.stderr)
    places = [
        f"{str(each.diagnostic.location).rpartition('/')[2]}: {each.diagnostic.message}" for each in RECORD.findings
    ]
    return {"launches": RECORD.launches, "runs": RECORD.runs, "findings": places}


def _refusal(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """The located error that an error comes of."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " | ".join(lines[:4])[:500]


def _install(mode: str, suite: str, linalg: dict[str, str]) -> None:
    """Choose what runs kernels."""
    import tlx_xdsl.compat

    if suite in WITH_A_GPU:
        # For the rest of the process.
        tlx_xdsl.compat.torch_without_gpu(TARGET).__enter__()
    if mode == "stock":
        from triton.backends.compiler import GPUTarget
        from triton.runtime import driver

        from tlx_xdsl.compat.without_gpu import NoGpu

        # A method of the fork's, which its copies of the tutorials ask.
        GPUTarget.is_cuda_backend = lambda _: True  # pyright: ignore[reportAttributeAccessIssue]
        driver.set_active(NoGpu(TARGET))  # pyright: ignore[reportArgumentType]
    elif mode == "interpret":
        _try_linalg(linalg)
        tlx_xdsl.compat.install(mode="interpret", target=TARGET)
    elif mode in ("check", "ptx"):
        tlx_xdsl.compat.install(mode=mode, target=TARGET)
    else:
        tlx_xdsl.compat.install(mode="cpu", target=TARGET)  # pyright: ignore[reportArgumentType]


def _try_linalg(found: dict[str, str]) -> None:
    """Lower each kernel that is interpreted to linalg, too; `found` gets "", or the error, by its name."""
    from tlx_xdsl.errors import CompilationError
    from tlx_xdsl.runtime.simulate import interpret

    made: Callable[..., Any] = interpret.frontend_module

    def lowered(source: Any, *args: Any, **kwargs: Any) -> Any:
        module = made(source, *args, **kwargs)
        try:
            _lower(module.clone())
        except CompilationError as error:
            found[source.name] = _line(error)
        except Exception as error:
            found[source.name] = f"{type(error).__name__}: {_line(error)}"
            traceback.print_exc()
        else:
            found.setdefault(source.name, "")
        return module

    interpret.frontend_module = lowered


def _lower(module: Any) -> None:
    from tlx_xdsl.cpu.linalg.triton_to_linalg import linalg_pipeline
    from tlx_xdsl.dialects.registry import make_context
    from tlx_xdsl.text.diagnostics import collected_diagnostics, error_at
    from tlx_xdsl.text.verify import verify_module
    from tlx_xdsl.transforms.pipelines import first_beyond_plain

    verify_module(module)
    if (op := first_beyond_plain(module, barriers=True)) is not None:
        raise error_at(op, f"'{op.name}' is no operation of plain Triton")
    with collected_diagnostics():
        for each in linalg_pipeline():
            each.apply(make_context(), module)
    verify_module(module)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    raise SystemExit(main())
