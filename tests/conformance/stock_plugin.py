"""The pytest plugin of `stock_python`'s children: chooses the implementation, ends long cases, and records each."""

from __future__ import annotations

import inspect
import json
import os
import signal
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

_ORDERS: dict[str, Any] = json.loads(Path(os.environ["STOCK_TESTS_ORDERS"]).read_text())

_texts = tempfile.TemporaryDirectory(prefix="stock_tests_")
"""The files of kernels that tests make by `exec`."""


class CaseTimeoutError(BaseException):
    """A case took longer than its time. No test catches it."""


def pytest_configure(config: pytest.Config) -> None:
    """Choose what kernels are compiled or interpreted by."""
    _name_what_is_missing()
    if _ORDERS["implementation"] == "ours":
        import tlx_xdsl.compat

        modes: dict[str, tlx_xdsl.compat.Mode] = {"interpret": "interpret", "native": "cpu"}
        if _ORDERS["mode"] in modes:
            tlx_xdsl.compat.install(mode=modes[_ORDERS["mode"]], target=_ORDERS["target"])
        else:
            tlx_xdsl.compat.install()
            _compile_all_kernels_by_us()
    config.pluginmanager.register(_Recorder(), "stock-tests-recorder")


def _name_what_is_missing() -> None:
    """Names that the tests import and an older Triton lacks: kinds of AMD's GPUs, and later public names."""
    from importlib import import_module

    import triton

    testing = import_module("triton._internal_testing")

    def missing(name: str) -> Any:
        if not name.startswith("is_"):
            raise AttributeError(name)
        return lambda: False

    testing.__dict__.setdefault("__getattr__", missing)
    core = import_module("triton.language.core")
    for name in ("aggregate", "must_use_result", "constexpr_function"):
        found = getattr(core, name, None) or getattr(core, f"_{name}", None)
        if found is None:
            found = getattr(import_module("triton.runtime.jit"), name, None)
        if not hasattr(triton, name) and found is not None:
            setattr(triton, name, found)


def _compile_all_kernels_by_us() -> None:
    """The drop-in leaves kernels that do not use tlx to stock Triton."""
    from importlib import import_module

    import triton

    from tlx_xdsl.runtime.jit import jit

    triton.jit = import_module("triton.runtime.jit").jit = jit


class _Recorder:
    def __init__(self) -> None:
        self._progress = open(_ORDERS["progress"], "a") if "progress" in _ORDERS else None  # noqa: SIM115
        self._reports: list[pytest.TestReport] = []
        self._processor = 0.0
        """Seconds of a processor that the test function of the current case has taken."""

    def _write(self, line: dict[str, Any]) -> None:
        assert self._progress is not None
        self._progress.write(json.dumps(line) + "\n")
        self._progress.flush()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if "collect" in _ORDERS:
            Path(_ORDERS["collect"]).write_text(json.dumps([item.nodeid for item in items]))
            return
        wanted = set(_ORDERS["cases"])
        items[:] = [item for item in items if item.nodeid in wanted]
        if _ORDERS["implementation"] == "ours":
            # Tests also call functions of other files of tests, which use theirs.
            for module in [each for each in sys.modules.values() if "patch_kernel" in vars(each)]:
                module.patch_kernel = _patch_kernel(vars(module))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._write({"begin": item.nodeid})
        self._reports.clear()
        begin = time.monotonic()
        self._processor = 0.0
        signal.signal(signal.SIGALRM, _end)
        signal.setitimer(signal.ITIMER_REAL, _ORDERS["timeout"])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            outcome, error = _verdict(self._reports)
            seconds = round(time.monotonic() - begin, 3)
            record = {"case": item.nodeid, "outcome": outcome, "error": error, "seconds": seconds}
            self._write({**record, "processor": round(self._processor, 3)})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        worked = _worked()
        try:
            return (yield)
        finally:
            # Without what fixtures do, such as the suite's collection of garbage.
            self._processor = _worked() - worked

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)


def _worked() -> float:
    """Seconds of a processor so far, those of processes that have ended included."""
    return sum(os.times()[:4])


def _end(_number: int, _frame: FrameType | None) -> None:
    raise CaseTimeoutError(f"longer than {_ORDERS['timeout']:.0f} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """A case that is out of time fails; pytest takes a BaseException for the user's interrupt."""
    try:
        return (yield)
    except CaseTimeoutError as error:
        raise TimeoutError(str(error)) from None


def _verdict(reports: list[pytest.TestReport]) -> tuple[str, str]:
    """The outcome of a case, and the first line of its error."""
    for report in reports:
        if hasattr(report, "wasxfail"):
            return ("xfailed" if report.skipped else "xpassed"), report.wasxfail
        if report.failed:
            error = _first_line(report)
            if error.startswith("TimeoutError: longer than"):
                return "timeout", error
            return ("failed" if report.when == "call" else "error"), error
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            return "skipped", reason
    return ("passed", "") if any(report.when == "call" for report in reports) else ("error", "did not run")


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0][:400] if lines else ""


def _captured(function: Any) -> dict[str, Any]:
    """The variables of the test that a kernel in it uses, as far as they have values yet."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _patch_kernel(names: dict[str, Any]) -> Callable[[Any, dict[str, str]], Any]:
    """`patch_kernel` of stock's tests, which runs a kernel's changed text: ours needs to find that text in a file."""
    count = 0

    def patch_kernel(template: Any, to_replace: dict[str, str]) -> Any:
        nonlocal count
        text = textwrap.dedent(inspect.getsource(template.fn))
        for old, new in to_replace.items():
            text = text.replace(old, new)
        count += 1
        path = Path(_texts.name) / f"{template.fn.__name__}_{count}.py"
        path.write_text(text)
        made: dict[str, Any] = {}
        exec(compile(text, str(path), "exec"), names | _captured(template.fn), made)
        return made[template.fn.__name__]

    return patch_kernel
