"""The markers `backend`, `gpu` and `quick`, the examples of hypothesis, the number of workers, and the log.

The environment variable TLX_TEST_VOLUME names the hypothesis profile: `ci` (the default: few examples, the
same in every run) or `full` (many examples, new ones in every run).
"""

import functools
import gc
import importlib.util
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import seconds
from tlx_xdsl.runtime.driver.compilation import compile_text

# Machines may be busy: slowness is not a failure.
settings.register_profile(
    "ci", max_examples=50, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "full", max_examples=1000, print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# What an old ptxas may do to products is no fault of a kernel; `test_assemblers.py` tests what is said of it.
os.environ.setdefault("TLX_ALLOW_OLD_PTXAS", "1")
# Tests want to know which pass it was.
assert compile_text.__kwdefaults__ is not None
compile_text.__kwdefaults__["verify_each"] = True
settings.load_profile(os.environ.get("TLX_TEST_VOLUME", "ci"))


def missing_for_backend() -> str | None:
    """Return what keeps the tests marked `backend` from running here; None if nothing does."""
    if importlib.util.find_spec("triton") is None:
        return "stock Triton is not installed"
    return None


@functools.cache
def missing_for_gpu() -> str | None:
    """Return what keeps the tests marked `gpu` from running here; None if nothing does."""
    if missing := missing_for_backend():
        return missing
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    import torch

    if not torch.cuda.is_available():
        return "torch finds no NVIDIA GPU"
    return None


MISSING = {"backend": missing_for_backend, "gpu": missing_for_gpu}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests whose marker asks for what is not here."""
    for item in items:
        for marker, missing in MISSING.items():
            if item.get_closest_marker(marker) and (reason := missing()):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Look for garbage less often: with Python's thresholds that takes a quarter of the time of launches.

    Operations and values of modules refer to each other, so that there is garbage; 50,000 objects take some 10 MB.
    """
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread that have no quick test where only those are asked for: reading all takes long."""
    if config.option.markexpr != "quick" or collection_path.suffix != ".py":
        return None
    return None if "mark.quick" in collection_path.read_text(encoding="utf-8") else True


MOST_WORKERS = 8
"""Of more, most wait for the last files; each takes up to 2 GB, with the processes that it starts."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return what `-n auto` means: a worker for each core; none where there is a GPU, which tests must not share."""
    if missing_for_gpu() is None:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS)


class _FailuresAtOnce:
    """Name what fails as it fails: a run that is cut off has no summary."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = str(getattr(crash, "message", report.longrepr)).strip().partition("\n")[0]
            # After the dots of those that passed.
            self._reporter.line("")
            self._reporter.line(f"failed now: {report.nodeid} ({report.when}): {reason}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have failures named at once by the process that prints, which is no worker of pytest-xdist."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_FailuresAtOnce(reporter))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum up the seconds of each package and the reasons of skips; what failed comes last."""
    reports = [each for some in terminalreporter.stats.values() for each in some if hasattr(each, "duration")]
    if reports:
        terminalreporter.section("seconds of the unit tests")
    for line in seconds.table(seconds.of_pytest((report.nodeid, report.duration) for report in reports)):
        terminalreporter.line(line)
    reasons = Counter(_reason(report.longrepr) for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        terminalreporter.section("skipped")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:5} {reason}")


def _reason(skip: object) -> str:
    text = str(skip[2]) if isinstance(skip, tuple) else str(skip)
    return text.removeprefix("Skipped: ").partition("\n")[0]
