"""Lines of code and tokens of each package of `tlx_xdsl`, without comments, docstrings and blank lines.

A token is a name, number, string or operator of Python's own tokenizer, so neither line length nor formatting changes
the count. `make size` prints the table; with `--against REVISION` of git the difference to that revision beside it.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
COUNTED = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP}


def docstrings(text: str) -> set[int]:
    """Lines on which a string stands alone as a statement: docstrings, also those of attributes."""
    return {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def size(text: str) -> tuple[int, int]:
    """Lines with a counted token, and counted tokens."""
    skipped = docstrings(text)
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in COUNTED and not (token.type == tokenize.STRING and token.start[0] in skipped)
    ]
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)}), len(tokens)


def files(revision: str | None) -> Iterator[tuple[str, str]]:
    """Path below the package, and text, of each of its Python files now or at a revision."""
    if revision is None:
        for path in sorted((ROOT / "tlx_xdsl").rglob("*.py")):
            yield path.relative_to(ROOT / "tlx_xdsl").as_posix(), path.read_text(encoding="utf-8")
        return
    listed = git("ls-tree", "-r", "--name-only", revision, "tlx_xdsl")
    for name in (name for name in listed.splitlines() if name.endswith(".py")):
        yield name.removeprefix("tlx_xdsl/"), git("show", f"{revision}:{name}")


def git(*arguments: str) -> str:
    """What a git command prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def table(revision: str | None = None) -> dict[str, Counter[str]]:
    """Files, lines and tokens by package."""
    packages: dict[str, Counter[str]] = {}
    for name, text in files(revision):
        package = name.split("/")[0] if "/" in name else "(top)"
        lines, tokens = size(text)
        packages.setdefault(package, Counter()).update(files=1, lines=lines, tokens=tokens)
    return packages


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REVISION", help="revision of git to compare with")
    revision = parser.parse_args().against
    now, before = table(), table(revision) if revision else {}
    rows = [(name, now.get(name, Counter()), before.get(name, Counter())) for name in sorted({*now, *before})]
    rows.append(("total", sum(now.values(), Counter()), sum(before.values(), Counter())))
    print(f"{'package':<14}{'files':>7}{'lines':>9}{'tokens':>10}" + (f"{'difference':>13}" if revision else ""))
    for name, new, old in rows:
        difference = f"{new['tokens'] - old['tokens']:>+13,}" if revision else ""
        print(f"{name:<14}{new['files']:>7,}{new['lines']:>9,}{new['tokens']:>10,}{difference}")


if __name__ == "__main__":
    main()
