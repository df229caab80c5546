"""Stock Triton's parser and printer: T(x) of the byte-identity tests is `reprint(x)`.

The parser writes its diagnostics to file descriptor 2 and may abort the process over a bad text. `reprint` is for
texts that are expected to be good; `reprint_in_subprocess` is for all others.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

ROOT = Path(__file__).parents[2]

NAME = "text.ttgir"
"""How locations call a text: what has none gets that of its line."""


class StockError(Exception):
    """Stock Triton refuses a text; the message is what it wrote to standard error."""


@dataclass(frozen=True)
class Reprinted:
    """Answer of stock Triton to a text: what it prints, or why it refuses."""

    text: str | None
    error: str = ""


def reprint(text: str) -> str:
    """Parse a text with stock Triton, which verifies it, and return what stock prints.

    Raises:
        StockError: stock refuses the text.
    """
    with tempfile.TemporaryFile() as log:
        return _reprint(text, log)


def operations(text: str) -> Counter[str]:
    """Return how often each operation occurs in a text, by stock's own account ("tt.load", ...).

    Raises:
        StockError: stock refuses the text.
    """
    names: Counter[str] = Counter()
    with tempfile.TemporaryFile() as log:
        module, _ = _parse(text, log)
    module.walk(lambda operation: names.update([operation.get_name()]))
    return names


def reprint_in_subprocess(texts: Sequence[str], timeout: float = 120) -> list[Reprinted]:
    """Do `reprint` for many texts in another process, which is started anew when a text makes it die.

    Args:
        texts: What to parse and print.
        timeout: Seconds that a process may take for all of its texts; the text at which it stands then has failed.
    """
    results: list[Reprinted] = []
    while len(results) < len(texts):
        answers, death = _batch(texts[len(results) :], timeout)
        results += answers
        if len(results) < len(texts):
            results.append(Reprinted(None, death))
    return results


def _batch(texts: Sequence[str], timeout: float) -> tuple[list[Reprinted], str]:
    """Return the answers of one process, and if there are too few, how it died."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.corpus.stock"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
        )
        try:
            output, _ = process.communicate(json.dumps(list(texts)), timeout)
            death = f"stock died with exit status {process.returncode}"
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            death = f"stock took more than {timeout} s"
        stderr.seek(0)
        death = f"{death}\n{stderr.read()}".strip()
    # A line that has no end was being written when the process died.
    lines = [line for line in output.splitlines(keepends=True) if line.endswith("\n")]
    return [Reprinted(**json.loads(line)) for line in lines], death


def _serve() -> None:
    # Diagnostics go to standard error, so that the parent has them even if this process dies.
    with os.fdopen(os.dup(2), "r+b") as log:
        for text in json.load(sys.stdin):
            try:
                answer: dict[str, Any] = {"text": _reprint(text, log)}
            except StockError as error:
                answer = {"text": None, "error": str(error)}
            print(json.dumps(answer), flush=True)


def _reprint(text: str, log: BinaryIO) -> str:
    module, path = _parse(text, log)
    return str(module).replace(path, NAME)


def _parse(text: str, log: BinaryIO) -> tuple[Any, str]:
    """Return the module and the path of the file that stock took it from; diagnostics are left in `log`."""
    context = ir.context()
    ir.load_dialects(context)
    _backend().load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttgir", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        try:
            with _stderr_into(log):
                module = ir.parse_mlir_module(file.name, context)
        except RuntimeError as error:
            log.seek(0)
            message = log.read().decode("utf-8", "replace").strip()
            raise StockError(message.replace(file.name, NAME) or str(error)) from None
    # A module doesn't keep its context alive by itself.
    module.context = context
    return module, file.name


@functools.cache
def _backend() -> Any:
    return make_backend(GPUTarget("cuda", 90, 32))


@contextlib.contextmanager
def _stderr_into(log: BinaryIO) -> Iterator[None]:
    """Let file descriptor 2 be this file, which is emptied first."""
    sys.stderr.flush()
    log.seek(0)
    log.truncate()
    saved = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


if __name__ == "__main__":
    _serve()
