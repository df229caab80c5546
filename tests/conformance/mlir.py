"""Run the `.mlir` tests of a Triton checkout against stock Triton's parser and verifiers, and against ours.

    python -m tests.conformance.mlir SUITE_ROOT [--json OUT] [--oracle FILE] [--only DIRECTORY] [--jobs N]

Each `// -----` chunk of `SUITE_ROOT/test/**/*.mlir` is a case. Stock's answer is that of the installed Triton with
all of its dialects and no unregistered operations; ours is to parse, verify and print, and to read that again, with
the functions of `tlx-opt`. With `--oracle` stock's answers are kept in a file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.isolated import run_isolated
from tlx_xdsl.tools.opt.verify_diagnostics import expectations

SEPARATOR = re.compile(r"^// -----.*\n", re.MULTILINE)

AMD = re.compile(r"#ttg\.amd_|\bamdg\.|\brocdl\.|\bamdgpu\.")
GLUON = re.compile(r"[#!]gluon\.|\bgluon\.")
OURS = ("arith", "builtin", "cf", "gpu", "math", "nvvm", "scf", "tlx", "tt", "ttg", "ttng", "ub")
"""The dialects that the conformance is about."""
OPERATION = re.compile(r'^ *(?:%[^=\n]*= *)?(?:"(?P<generic>[a-z_]\w*)\.[\w.]+" *\(|(?P<custom>[a-z_]\w*)\.\w)', re.M)
OTHER_ATTRIBUTE = re.compile(r"[#!](nvws|nvg|tti|proton|proton_gpu|llvm\.(di_|loop|tbaa|struct|array|func|void))\b")


LACKING = re.compile(r"Dialect `tlx' not found|#\"tlx\"<")
"""Stock's messages for the dialect of a fork: whatever else is wrong there, its parser and verifiers do not see it."""


@dataclass(frozen=True)
class Chunk:
    """A case."""

    name: str
    """The path below `test/`, and the number of the chunk."""
    directory: str
    kind: str
    """`core`, or why the case does not count: `amd`, `gluon`, `other dialects`."""
    text: str
    expected: list[int]
    """The lines with an expected error; empty where none is expected."""

    @property
    def key(self) -> str:
        """Return what stock's answer depends on."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def kind_of(path: Path, text: str) -> str:
    """Return the class of a chunk: what it is about, read off its text."""
    code = re.sub(r"//.*", "", text)
    if "amd" in path.parts or AMD.search(code):
        return "amd"
    if GLUON.search(code):
        return "gluon"
    for match in OPERATION.finditer(code):
        dialect = match["generic"] or match["custom"]
        # LLVM's operations are ours in the generic form; their custom syntax is not.
        if dialect not in OURS and not (dialect == "llvm" and match["generic"]):
            return "other dialects"
    return "other dialects" if OTHER_ATTRIBUTE.search(code) else "core"


def chunks(root: Path, only: str | None = None) -> list[Chunk]:
    """Return every chunk below `root/test` that is not empty."""
    found: list[Chunk] = []
    for path in sorted((root / "test").rglob("*.mlir")):
        relative = path.relative_to(root / "test")
        if only is not None and not str(relative).startswith(only):
            continue
        for number, text in enumerate(SEPARATOR.split(path.read_text())):
            if not re.sub(r"//.*", "", text).strip():
                continue
            lines = sorted({each.line or 0 for each in expectations(text, 1) if each.severity == "error"})
            found.append(Chunk(f"{relative}#{number}", relative.parts[0], kind_of(relative, text), text, lines))
    return found


# --- stock -----------------------------------------------------------------------------------------------------------

_STOCK_ERROR = re.compile(
    r'^(?:loc\()?"?(?P<file>[^":\n]*)"?:(?P<line>\d+):(?P<column>\d+)\)?: error: (?P<text>.*)$', re.M
)


def stock_answer(chunk: Chunk) -> dict[str, Any]:
    """Return whether stock Triton accepts a chunk, and its first error."""
    from triton._C.libtriton import amd, ir, nvidia, proton

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chunk.mlir"
        path.write_text(chunk.text)
        said = os.open(Path(folder) / "stderr", os.O_RDWR | os.O_CREAT)
        before = os.dup(2)
        os.dup2(said, 2)
        try:
            context = ir.context()
            ir.load_dialects(context)
            for backend in (nvidia, amd, proton):
                backend.load_dialects(context)
            ir.parse_mlir_module(str(path), context)
            return {"accepts": True}
        except RuntimeError:
            os.lseek(said, 0, os.SEEK_SET)
            text = b"".join(iter(lambda: os.read(said, 1 << 16), b"")).decode(errors="replace")
            match = _STOCK_ERROR.search(text)
            line = int(match["line"]) if match else None
            return {"accepts": False, "line": line, "message": match["text"] if match else text.strip()[:300]}
        finally:
            os.dup2(before, 2)
            os.close(before)
            os.close(said)


def stock_answers(cases: Sequence[Chunk], jobs: int, kept_in: Path | None) -> list[Any]:
    """Return stock's answer for each case, from the file where it has it."""
    known: dict[str, Any] = json.loads(kept_in.read_text()) if kept_in is not None and kept_in.exists() else {}
    missing = [case for case in cases if case.key not in known]
    if missing:
        import triton._C.libtriton  # noqa: F401  # Once, before the processes fork.

        answers = run_isolated(stock_answer, missing, jobs)
        known |= {case.key: answer for case, answer in zip(missing, answers, strict=True)}
        if kept_in is not None:
            kept_in.write_text(json.dumps(known))
    return [known[case.key] for case in cases]


# --- ours ------------------------------------------------------------------------------------------------------------


@cache
def _context() -> Any:
    from tlx_xdsl.tools.opt.driver import TlxOptMain

    return TlxOptMain(["-"]).ctx


def our_answer(chunk: Chunk) -> dict[str, Any]:
    """Return what becomes of a chunk: `ok`, or the step that failed, with the error."""
    from tlx_xdsl.text.parser import parse_module
    from tlx_xdsl.text.printer import print_module
    from tlx_xdsl.text.verify import verify_module
    from tlx_xdsl.tools.failures import as_compilation_error

    step = "parser"
    try:
        module = parse_module(chunk.text, filename="chunk.mlir", context=_context())
        step = "verifier"
        verify_module(module)
        step = "print"
        text = print_module(module)
        step = "reprint"
        again = parse_module(text, filename="printed.mlir", context=_context())
        verify_module(again)
        if print_module(again) != text:
            return {"outcome": "unstable print"}
        return {"outcome": "ok"}
    except Exception as raised:
        error = as_compilation_error(raised)
        internal = error.message.startswith("internal error")
        line = error.location.line if error.location is not None else None
        return {"outcome": "internal error" if internal else step, "line": line, "message": error.message}


# --- together --------------------------------------------------------------------------------------------------------


def verdict(chunk: Chunk, stock: dict[str, Any], ours: dict[str, Any]) -> str:
    """Return how our answer compares with stock's."""
    if "died" in ours:
        return "traceback"
    if ours["outcome"] in ("internal error", "print", "reprint", "unstable print"):
        return ours["outcome"]
    refused = ours["outcome"] != "ok"
    if "died" in stock:
        return "stock died"
    if stock["accepts"] and not (refused and ours["line"] in chunk.expected):
        # An error that the suite alone expects is ours, too, where it is at the line.
        return f"refused by {ours['outcome']}" if refused else "round trip"
    if not chunk.expected:
        return "stock refuses"
    if not stock["accepts"] and LACKING.search(stock["message"]):
        return "stock lacks tlx"
    if not refused:
        return "error missed"
    if ours["line"] is None:
        return "error without line"
    if ours["line"] in chunk.expected:
        return "error at its line"
    return "error at stock's line" if ours["line"] == stock["line"] else "error at another line"


def run(root: Path, *, only: str | None = None, jobs: int = 2, oracle: Path | None = None) -> list[dict[str, Any]]:
    """Return a record for each chunk of the suites below `root`."""
    cases = chunks(root, only)
    stock = stock_answers(cases, jobs, oracle)
    _context()
    ours = run_isolated(our_answer, cases, jobs)
    records: list[dict[str, Any]] = []
    for case, theirs, our in zip(cases, stock, ours, strict=True):
        record = asdict(case) | {"stock": theirs, "ours": our, "verdict": verdict(case, theirs, our)}
        del record["text"]
        records.append(record)
    return records


def main() -> int:
    """Run the command line; 1 where there is a traceback or a print that cannot be read again."""
    from tests.conformance.report import mlir_summary, mlir_table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, help="folder of a Triton checkout")
    parser.add_argument("--json", type=Path, help="write a record per chunk")
    parser.add_argument("--oracle", type=Path, help="keep stock's answers in this file")
    parser.add_argument("--only", help="only files whose path below test/ begins so")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", metavar="VERDICT", help="list the core chunks with this verdict")
    args = parser.parse_args()
    records = run(args.root, only=args.only, jobs=args.jobs, oracle=args.oracle)
    if args.json is not None:
        args.json.write_text(json.dumps(records, indent=1))
    if args.list is not None:
        for record in records:
            if record["verdict"].startswith(args.list) and record["kind"] == "core":
                print(f"{record['name']}\n  stock {record['stock']}\n  ours {record['ours']}\n  {record['expected']}")
    print(mlir_table(records))
    print(mlir_summary(records))
    broken = ("traceback", "internal error", "print", "reprint", "unstable print")
    return int(any(record["verdict"] in broken for record in records))


if __name__ == "__main__":
    raise SystemExit(main())
