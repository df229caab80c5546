"""Checks of users' code by the type checkers that users have: `python -m tests.user_code`.

The examples, the README's kernel and the Python of the docs, by pyright (standard) and mypy (default). Names of other
packages and files may be missing, and a block that goes on from another may use its names: those are no errors. What is
no Python alone, and what shows mistakes (`WRONG_ON_PURPOSE`), are left out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

WRONG_ON_PURPOSE = {"errors", "profiling_1"}
"""Documents, and blocks by their numbers in a document, that show mistakes."""

_GOES_ON = "# pyright: reportUndefinedVariable=false\n# mypy: disable-error-code=name-defined\n"
"""Before a block of a document."""


def user_code() -> dict[str, str]:
    """Python by the name of a file: what the repository shows to users."""
    examples = [*ROOT.glob("examples/*.py"), *ROOT.glob("examples/ttl/*.py")]
    found = {f"{path.parent.name}_{path.name}": path.read_text(encoding="utf-8") for path in examples}
    for document in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))):
        if document.stem in WRONG_ON_PURPOSE:
            continue
        blocks = re.findall(r"^```python\n(.*?)^```$", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for number, block in enumerate(blocks):
            if _is_python(block) and f"{document.stem}_{number}" not in WRONG_ON_PURPOSE:
                found[f"{document.stem.replace('-', '_')}_{number}.py"] = _GOES_ON + block
    return found


def _is_python(text: str) -> bool:
    try:
        compile(text, "block", "exec")
    except SyntaxError:
        return False
    return True


def pyright(files: Mapping[str, str], mode: str = "standard") -> list[dict[str, Any]]:
    """Return pyright's diagnostics of files, as they stand in its JSON; `file` is the name."""
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, files)
        settings = {
            "pythonVersion": "3.11",
            "typeCheckingMode": mode,
            "extraPaths": [str(ROOT)],
            "reportMissingImports": False,
        }
        Path(folder, "pyrightconfig.json").write_text(json.dumps(settings))
        command = [_tool("pyright"), "--outputjson", "--pythonpath", sys.executable, "-p", folder]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        found = json.loads(result.stdout)["generalDiagnostics"]
    return [{**each, "file": Path(each["file"]).name} for each in found]


def mypy(files: Mapping[str, str]) -> list[str]:
    """The errors that mypy finds in files."""
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, files)
        options = ["--ignore-missing-imports", "--follow-imports=silent", f"--cache-dir={ROOT / 'build' / 'mypy'}"]
        command = [_tool("mypy"), *options, "--python-executable", sys.executable, "--no-error-summary", *files]
        environment = {**os.environ, "MYPYPATH": str(ROOT)}
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
        if run.stderr:
            raise RuntimeError(run.stderr)
    return [line for line in run.stdout.splitlines() if "error:" in line]


def has(tool: str) -> bool:
    """Return whether a checker is installed: those who run the tests with another Triton have none."""
    return bool(_tool(tool))


def _tool(name: str) -> str:
    return (
        shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))) or ""
    )


def _write(folder: str, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        Path(folder, name).write_text(text, encoding="utf-8")


def shown(diagnostics: Iterable[Mapping[str, Any]]) -> list[str]:
    """The errors of pyright, a line each."""
    return [
        f"{each['file']}:{each['range']['start']['line'] + 1}: {each['message']} ({each.get('rule', '')})"
        for each in diagnostics
        if each["severity"] == "error"
    ]


def main() -> int:
    """Check everything, print what is wrong, and return 1 if anything is."""
    if missing := [tool for tool in ("pyright", "mypy") if not has(tool)]:
        print(f"error: not installed: {' and '.join(missing)}; the extra `dev` has both", file=sys.stderr)
        return 1
    files = user_code()
    wrong = [f"pyright: {line}" for line in shown(pyright(files))] + [f"mypy: {line}" for line in mypy(files)]
    print(*wrong, f"{len(files)} files of users: {len(wrong)} errors of pyright and mypy", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
