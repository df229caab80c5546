"""Stock Triton's frontend, and its passes on TTIR, in a worker process that may die of a text.

`python -m tests.oracle.stock --out DIR` writes what the frontend makes of each kernel, before any pass.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gallery.cases import Case, Constant
from tests.oracle import loading

ROOT = Path(__file__).parents[2]

TIMEOUT = 120.0
"""Seconds that the worker may take for one kernel or text; then it is ended, which counts as its death."""


@dataclass(frozen=True)
class Answer:
    """Answer of stock to a kernel or a text: the TTIR of its frontend and after its passes, or an error."""

    frontend: str = ""
    final: str = ""
    error: str = ""


class Stock:
    """A worker process, started when it is first asked and again after its death."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def kernel(self, path: Path, name: str) -> Answer:
        """Compile a case of a kernel file."""
        return self._ask({"path": str(path), "name": name})

    def passes(self, text: str) -> Answer:
        """Run the passes on a text."""
        return self._ask({"text": text})

    def close(self) -> None:
        """End the worker."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _ask(self, request: dict[str, str]) -> Answer:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.oracle.stock"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        clock = threading.Timer(TIMEOUT, process.kill)
        clock.start()
        line = process.stdout.readline()
        clock.cancel()
        if not line.endswith("\n"):
            self._process = None
            return Answer(error=f"stock died with exit status {process.wait()}")
        return Answer(**json.loads(line))


def argument_types(case: Case, parameters: list[str]) -> tuple[dict[str, Any], dict[str, Any], dict[Any, Any]]:
    """Return a case's signature, constants and attributes, as stock's `ASTSource` takes them."""
    signature: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    attributes: dict[Any, Any] = {}

    def typed(argument: str, position: tuple[int, ...]) -> str:
        dtype, _, divisor = argument.partition(":")
        if divisor:
            attributes[position] = [["tt.divisibility", int(divisor)]]
        return dtype

    for position, parameter in enumerate(parameters):
        if parameter not in case.arguments:
            continue
        argument = case.arguments[parameter]
        if isinstance(argument, str):
            signature[parameter] = typed(argument, (position,))
        elif isinstance(argument, tuple) and all(isinstance(item, str) for item in argument):
            signature[parameter] = tuple(typed(item, (position, i)) for i, item in enumerate(argument))
        else:
            signature[parameter] = "constexpr"
            constants[parameter] = argument.value if isinstance(argument, Constant) else argument
    return signature, constants, attributes


class _Compiler:
    """Stock Triton in this process."""

    def __init__(self) -> None:
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import make_backend
        from triton.runtime import driver

        self._target = GPUTarget("cuda", 90, 32)
        self._backend: Any = make_backend(self._target)
        self._options: Any = self._backend.parse_options({"num_warps": 4})
        # A few functions of the language ask the driver of a GPU for the target.
        driver.set_active(self)

    def get_current_target(self) -> Any:
        return self._target

    def answer(self, request: dict[str, str]) -> dict[str, str]:
        from triton._C.libtriton import ir

        context = ir.context()
        ir.load_dialects(context)
        self._backend.load_dialects(context)
        if "text" in request:
            with tempfile.NamedTemporaryFile("w", suffix=".ttir", encoding="utf-8") as file:
                file.write(request["text"])
                file.flush()
                module = ir.parse_mlir_module(file.name, context)
            frontend = ""
        else:
            module = self._frontend(loading.load(Path(request["path"]), ours=False)[request["name"]], context)
            frontend = str(module)
        module.context = context
        return {"frontend": frontend, "final": str(self._passes(module))}

    def _frontend(self, case: Case, context: Any) -> Any:
        from triton.compiler import ASTSource

        signature, constants, attributes = argument_types(case, case.kernel.arg_names)
        source = ASTSource(case.kernel, signature, constants, attributes)
        functions = self._backend.get_codegen_implementation(self._options)
        return source.make_ir(self._target, self._options, functions, self._backend.get_module_map(), context)

    def _passes(self, module: Any) -> Any:
        from triton.backends.compiler import Language

        stages: dict[str, Any] = {}
        self._backend.add_stages(stages, self._options, Language.TRITON)
        return stages["ttir"](module, {})


def _serve() -> None:
    # Kernels print at compile time: only answers may reach the parent.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        compiler = _Compiler()
        for line in sys.stdin:
            with tempfile.TemporaryFile() as log:
                try:
                    with _stderr_into(log):
                        answer = compiler.answer(json.loads(line))
                # Whatever stock raises is an answer, and says so.
                except Exception as error:
                    log.seek(0)
                    answer = {"error": f"{type(error).__name__}: {error}\n{log.read().decode('utf-8', 'replace')}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


@contextlib.contextmanager
def _stderr_into(log: Any) -> Iterator[None]:
    """Let file descriptor 2 be this file."""
    sys.stderr.flush()
    saved = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write what stock Triton's frontend makes of the oracle's kernels.")
    parser.add_argument("--out", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    if arguments.out is None:
        _serve()
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    stock = Stock()
    for path, name in loading.names():
        answer = stock.kernel(path, name)
        if answer.error:
            print(f"{path.stem}.{name}: {answer.error}")
            continue
        (arguments.out / f"{name}.mlir").write_text(answer.frontend, encoding="utf-8")
    stock.close()


if __name__ == "__main__":
    main()
