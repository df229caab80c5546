"""Python as if on a system that lacks things: in a process of its own, before the package is imported.

    python -m tests.unit.systems.other_system win32 import
    python -m tests.unit.systems.other_system win32 run kernels.py:scale --grid 4 --arg x=randn[1024]

It shows what the package takes for granted of POSIX and Linux, not how the other system's own libraries behave: those
that come from elsewhere are imported before anything is taken away.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing.context
import os
import pkgutil
import select
import shutil
import signal
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

_LIBRARIES = (
    "asyncio", "concurrent.futures.process", "ctypes.util", "llvmlite.binding", "logging.handlers", "ml_dtypes",
    "multiprocessing.connection", "multiprocessing.pool", "multiprocessing.popen_fork",
    "multiprocessing.shared_memory", "numpy.testing", "platform", "selectors", "shutil", "socketserver",
    "subprocess", "tempfile", "webbrowser", "xdsl.irdl", "xdsl.xdsl_opt_main",
)  # fmt: skip

_LINUX_ONLY = {
    os: "memfd_create pidfd_open posix_fadvise posix_fallocate sched_getaffinity sched_setaffinity",
    select: "epoll",
}
_POSIX_ONLY = {
    os: """
        fchmod fork forkpty getegid geteuid getgid getloadavg getpgid getuid killpg mkfifo nice openpty
        posix_spawn pread pwrite register_at_fork setpgid setsid statvfs sysconf uname wait wait4 waitid
        O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK""",
    select: "poll",
    signal: """
        alarm getitimer pthread_kill pthread_sigmask setitimer sigwait ITIMER_PROF SIG_BLOCK SIG_SETMASK SIGALRM SIGCHLD
        SIGHUP SIGKILL SIGPIPE SIGPROF SIGUSR1 SIGUSR2""",
}
_POSIX_MODULES = (
    "curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty",
)  # fmt: skip

_MAYBE_LIBRARIES = ("mcp.server.mcpserver",)
"""The same of what need not be installed."""

_ABSENT = ("triton", "torch")
_OPTIONAL = {"triton", "torch", "textual", "marimo", "mcp", "distributed", "IPython"}
"""Packages without which a module may be of no use."""


def pretend(system: str) -> None:
    """Take away what `system` (`win32`, `darwin`) lacks, and Triton and torch: there is no stock Triton for it."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    for name in _MAYBE_LIBRARIES:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    is_windows = system == "win32"
    for names in (_LINUX_ONLY, _POSIX_ONLY) if is_windows else (_LINUX_ONLY,):
        for module, missing in names.items():
            for name in missing.split():
                vars(module).pop(name, None)
    sys.modules.update(dict.fromkeys((*_ABSENT, *(_POSIX_MODULES if is_windows else ()))))
    installed = metadata.Distribution.from_name
    metadata.Distribution.from_name = lambda name: _absent(name) if name in _ABSENT else installed(name)
    if is_windows:
        contexts: dict[str, Any] = vars(multiprocessing.context)["_concrete_contexts"]
        for name in ("fork", "forkserver"):
            del contexts[name]
        # Python's own asks Windows. No program is found.
        shutil.which = lambda *_, **__: None
    sys.platform = system


def _absent(name: str) -> NoReturn:
    raise metadata.PackageNotFoundError(name)


def import_all() -> list[str]:
    """Import every module of the package; what went wrong, a line each."""
    import tlx_xdsl

    wrong: list[str] = []
    for each in pkgutil.walk_packages(tlx_xdsl.__path__, "tlx_xdsl.", wrong.append):
        try:
            importlib.import_module(each.name)
        except Exception as error:
            cause = error.__cause__ or error
            missing = cause.name or "" if isinstance(cause, ModuleNotFoundError) else ""
            if missing.partition(".")[0] not in _OPTIONAL:
                wrong.append(f"{each.name}: {type(error).__name__}: {error}")
    return wrong


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says, `import` or a command of `tlx`; the exit status."""
    system, *rest = arguments
    pretend(system)
    if rest == ["import"]:
        wrong = import_all()
        print(*wrong, sep="\n")
        return bool(wrong)
    from tlx_xdsl.tools.tlx import main as tlx

    return tlx(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
