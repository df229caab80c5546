"""The parent's side of one worker: its process, its pipes, its directory, and a conversation with it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .capture import read_log, read_logs
from .diagnosis import diagnose, how_it_ended
from .errors import BackendError, BackendTimeoutError
from .options import ALLOW_VARIABLE, PTXAS_VARIABLE
from .protocol import Request, StageStarted, receive, send
from .result import BackendResult
from .toolchain import Toolchain, installed_toolchain

_STARTUP_LOG = "startup.log"
_END_SECONDS = 2.0
"""Seconds that a worker gets to end by itself before it is killed."""

_ENVIRONMENT_PREFIXES = (
    "TRITON_", "MLIR_", "LLVM_", "PTXAS_", "NVPTX_", "DISABLE_",
    PTXAS_VARIABLE, ALLOW_VARIABLE, "CUDA_HOME", "CUDA_PATH", "PATH",
)  # fmt: skip
"""What names of environment variables begin with on which Triton, LLVM and the choice of ptxas may depend."""


def _triton_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT_PREFIXES)}


def _pipe() -> tuple[int, int]:
    """A pipe whose numbers are not those of standard streams: in the worker these are other files.

    A service may have closed its own.
    """
    low: list[int] = []
    while min(ends := os.pipe()) <= 2:
        low += ends
    for end in low:
        os.close(end)
    return ends


class WorkerProcess:
    """A running worker process with its two pipes and its directory for input, logs and temporary files."""

    def __init__(self, toolchain: Toolchain | None = None):
        if not hasattr(os, "killpg"):
            raise BackendError(
                "stock Triton compiles in processes that only POSIX has: use Linux, or WSL", stage="start"
            )
        self._toolchain = toolchain
        self._environment = _triton_environment()
        self._was_ended = False
        """True if this process has ended it."""
        self.directory = Path(tempfile.mkdtemp(prefix="tlx-xdsl-"))
        request_read, self._requests = _pipe()
        self._responses, response_write = _pipe()
        self._open = [self._requests, self._responses]
        arguments = [str(request_read), str(response_write), str(self.directory)]
        try:
            with open(self.directory / _STARTUP_LOG, "wb") as log:
                # A session of its own lets us end the worker together with its ptxas, and keeps Ctrl-C ours.
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "tlx_xdsl.backend.worker", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self._process_environment(),
                    pass_fds=(request_read, response_write),
                    start_new_session=True,
                )
        except BaseException:
            self.close_pipes()
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        finally:
            os.close(request_read)
            os.close(response_write)

    def _process_environment(self) -> dict[str, str]:
        # The package may be importable only through what the caller did to sys.path.
        folders = [entry or os.getcwd() for entry in sys.path]
        if self._toolchain is not None and self._toolchain.folder is not None:
            folders.insert(0, str(self._toolchain.folder.resolve()))
        python_path = os.pathsep.join(folders)
        # Stock leaves ptxas's temporary files there when ptxas fails: in our directory they go with it.
        return {**os.environ, "PYTHONPATH": python_path, "TMPDIR": str(self.directory)}

    @property
    def triton_version(self) -> str | None:
        """The version that it compiles with."""
        used = self._toolchain or installed_toolchain()
        return None if used is None else used.version

    def usable(self) -> bool:
        """Return whether it is alive and saw the environment that its parent has now."""
        return self.process.poll() is None and self._environment == _triton_environment()

    def was_killed(self) -> bool:
        """Return whether someone else has killed it, such as the system for want of memory: no fault of the text."""
        return not self._was_ended and self.process.poll() in (-signal.SIGKILL, -signal.SIGTERM)

    def submit(self, request: Request) -> None:
        """Send a request; raises BrokenPipeError if the worker is gone."""
        send(self._requests, request)

    def response(self, deadline: float | None) -> object:
        """Wait for the next message; see `protocol.receive`."""
        return receive(self._responses, deadline)

    def logs(self) -> str:
        """Return what the current request printed, or the start-up if no request was reached."""
        return read_logs(self.directory) or read_log(self.directory, _STARTUP_LOG)

    def wait_until_gone(self) -> None:
        """Let the process end by itself, for a while."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_SECONDS)

    def kill(self) -> int:
        """End the process, if it still runs, with the ptxas that it may wait for; return its exit code."""
        # Once it was waited for, its number may belong to another process.
        if self.process.poll() is None:
            self._was_ended = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()

    def end(self) -> int:
        """Kill the process and remove what belongs to it; return its exit code. May be called twice."""
        self.close_pipes()
        returncode = self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
        return returncode

    def abandon(self) -> None:
        """Kill the process and remove its files, but leave the pipes to the thread that reads them."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def close_pipes(self) -> None:
        """Close our ends of the pipes: without anybody at the other end the worker exits."""
        while self._open:
            os.close(self._open.pop())


def converse(
    worker: WorkerProcess,
    request: Request,
    text: str,
    timeout_s: float | None,
    on_stage: Callable[[str], None] | None = None,
) -> BackendResult | BackendError:
    """Have a worker compile a text and return its answer; raises BackendError if there will be none.

    `on_stage` is called with each stage that begins.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    stage = "start"
    try:
        request.input_path.write_text(text, encoding="utf-8")
        worker.submit(request)
        while True:
            match worker.response(deadline):
                case StageStarted(stage):
                    if on_stage is not None:
                        on_stage(stage)
                case BackendResult() | BackendError() as answer:
                    return answer
                case unknown:
                    raise TypeError(f"the worker answered {unknown!r}")
    except TimeoutError:
        raise BackendTimeoutError(
            f"the compile did not end within {timeout_s} s",
            notes=(f"stock Triton {worker.triton_version} was in stage '{stage}'",),
            stage=stage,
            log=request.renamed(worker.logs()),
        ) from None
    except (EOFError, BrokenPipeError, FileNotFoundError):
        # The end of the pipe comes a moment before the end of the process; an abandoned worker has no directory.
        worker.wait_until_gone()
        raise diagnose(
            request.renamed(worker.logs()),
            stage=stage,
            death=how_it_ended(worker.kill()),
            triton_version=worker.triton_version,
        ) from None
