"""The messages between parent and worker.

A frame is a pickle after its length in eight bytes. Pickle rather than JSON: both ends are the same package
in the same Python, the products are bytes and frozen dataclasses, and no other process can write to the two
private pipes. The pipes are descriptors of their own, because Triton, LLVM and ptxas print to 1 and 2 as they
like.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from .options import BackendOptions, UpTo

INPUT_NAME = "kernel.ttgir"
"""The file with the module's text: stock Triton parses files only."""

_LENGTH = struct.Struct("<Q")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Request:
    """Compile the input file in `directory`; captured output goes there too."""

    directory: Path
    options: BackendOptions
    upto: UpTo
    source_name: str

    @property
    def input_path(self) -> Path:
        """Return where the module's text lies."""
        return self.directory / INPUT_NAME

    def renamed(self, text: str) -> str:
        """Replace our temporary file's name by the one that the user knows."""
        return text.replace(str(self.input_path), self.source_name)


@dataclass(frozen=True)
class StageStarted:
    """Said before each stage, so that the parent knows where a worker died."""

    stage: str


def send(descriptor: int, message: object) -> None:
    """Write one frame; raises BrokenPipeError if the other end is gone."""
    payload = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    data = memoryview(_LENGTH.pack(len(payload)) + payload)
    while data:
        data = data[os.write(descriptor, data) :]


def receive(descriptor: int, deadline: float | None = None) -> object:
    """Read one frame.

    `deadline` is a `time.monotonic()` time in seconds. Raises TimeoutError after it, EOFError if the other
    end closes.
    """
    (length,) = _LENGTH.unpack(_read_exactly(descriptor, _LENGTH.size, deadline))
    return pickle.loads(_read_exactly(descriptor, length, deadline))


def _read_exactly(descriptor: int, count: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < count:
        if deadline is not None:
            _wait_readable(descriptor, deadline)
        chunk = os.read(descriptor, min(count - len(data), _CHUNK_BYTES))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)


def _wait_readable(descriptor: int, deadline: float) -> None:
    # poll, unlike select, takes descriptors above 1023.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    remaining_ms = (deadline - time.monotonic()) * 1e3
    if remaining_ms <= 0 or not poll.poll(remaining_ms):
        raise TimeoutError
