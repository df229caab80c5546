"""The worker: `python -m tlx_xdsl.backend.worker REQUESTS RESPONSES DIRECTORY`: two inherited descriptors, its files.

Answers one request after the other until its parent closes the pipe. Whatever kills it kills nothing else. When the
parent dies in the middle of a compile, nothing asks for the answer any more: the worker ends with the ptxas it runs.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from typing import cast

from tlx_xdsl.lifeline import when_abandoned

from .errors import BackendError
from .protocol import Request, StageStarted, receive, send
from .stages import compile_request
from .triton_api import import_triton

_END_SECONDS = 0.5
"""Seconds after the parent's death in which the main thread may end by itself, as it does between two requests."""


def main(arguments: list[str]) -> int:
    """Serve requests; return the exit status."""
    requests, responses = map(int, arguments[:2])
    directory = arguments[2]
    for descriptor in (requests, responses):
        # A ptxas that outlives us must not keep the parent waiting for the end of the pipe.
        os.set_inheritable(descriptor, False)
    # Windows, which can have no worker, has no such module.
    import resource

    # Dying is our business; a core dump of a process with LLVM in it helps no user.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    when_abandoned(requests, lambda: _end_abandoned(directory))
    # Now rather than with the first request, for the parent may have started us ahead of it.
    import_triton()
    try:
        while True:
            _answer(cast(Request, receive(requests)), responses)
    except (EOFError, BrokenPipeError):
        # A parent that was killed can't remove our files any more.
        shutil.rmtree(directory, ignore_errors=True)
        return 0


def _end_abandoned(directory: str) -> None:
    """End this process, with its ptxas and its files."""
    time.sleep(_END_SECONDS)
    shutil.rmtree(directory, ignore_errors=True)
    # The parent started us as the leader of a group of our own.
    os.killpg(os.getpid(), signal.SIGKILL)


def _answer(request: Request, responses: int) -> None:
    try:
        answer = compile_request(request, lambda stage: send(responses, StageStarted(stage)))
    except BackendError as error:
        answer = error
    send(responses, answer)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
