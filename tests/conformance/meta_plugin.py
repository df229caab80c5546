"""The plugin of pytest that `meta.py` loads into the process of the tests: the drop-in, the fakes, the record."""

from __future__ import annotations

import ast
import json
import os
import signal
import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest
from _pytest.assertion import rewrite

from tests.conformance import meta_process
from tests.conformance.meta_process import OPTIONS
from tests.conformance.meta_text import without_text

_UNUSABLE = ("CUDA error", "CUDA_ERROR", "AcceleratorError")
"""What an error says after which the process can't use the GPU any more."""


def pytest_configure(config: pytest.Config) -> None:
    """Change this process before a test file is imported."""
    meta_process.begin()
    if OPTIONS["text_asserts_yes"]:
        _change_tests(without_text)


def _change_tests(change: Callable[[ast.Module], None]) -> None:
    """Have `change` at each test module's tree before pytest looks at its assertions."""
    rewrite_asserts = rewrite.rewrite_asserts

    def changed(mod: ast.Module, *args: Any, **kwargs: Any) -> None:
        change(mod)
        rewrite_asserts(mod, *args, **kwargs)

    rewrite.rewrite_asserts = changed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the cases, and leave out those that an earlier process has run."""
    with open(OPTIONS["log"]) as log:
        done = {json.loads(line)["nodeid"] for line in log}
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    with open(OPTIONS["only"]) as file:
        only = set(json.load(file))
    chosen = [each for group in functions.values() for each in _spread(group, OPTIONS["per_function"])]
    items[:] = [item for item in chosen if item.nodeid not in done and (not only or item.nodeid in only)]


def _spread(group: list[pytest.Item], number: int) -> list[pytest.Item]:
    """Pick up to `number` of the cases (0: all), evenly spaced, the first and the last among them."""
    if not number or len(group) <= number:
        return group
    if number == 1:
        return group[:1]
    return [group[index * (len(group) - 1) // (number - 1)] for index in range(number)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note the test's beginning, and end it when its time is up."""
    _write({"nodeid": item.nodeid})

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"not done in {OPTIONS['timeout']} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(OPTIONS["timeout"])
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the outcome."""
    if report.when != "call" and report.outcome == "passed":
        return
    outcome = str(report.outcome)
    if hasattr(report, "wasxfail"):
        outcome = "xfailed" if outcome == "skipped" else "xpassed"
    reason = _reason(report)
    _write({"nodeid": report.nodeid, "outcome": outcome, "reason": reason, "seconds": round(report.duration, 2)})
    if OPTIONS["mode"] == "launch" and outcome == "failed" and any(word in reason for word in _UNUSABLE):
        sys.stdout.flush()
        os._exit(70)


def _reason(report: pytest.TestReport) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    place = f"{os.path.basename(crash.path)}:{crash.lineno}: {crash.message}" if crash else str(report.longrepr or "")
    return place[:4000]


def _write(record: dict[str, Any]) -> None:
    with open(OPTIONS["log"], "a") as log:
        log.write(json.dumps(record) + "\n")
