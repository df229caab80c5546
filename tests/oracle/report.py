"""Report of the kernels that are equal: `python -m tests.oracle.report [NAME ...] [--out FILE] [--show DIR]`."""

import argparse
import traceback
from pathlib import Path

from tests.oracle import loading, ours
from tests.oracle.compare import difference
from tests.oracle.stock import Answer, Stock
from tlx_xdsl import CompilationError


def verdict(stock: Stock, path: Path, name: str, *, library: bool) -> tuple[str | None, str, Answer]:
    """Return why a kernel isn't equal (None if it is), our text, and stock's answer for the kernel.

    A kernel of library functions need only compile here, and pass stock's verifiers and passes.
    """
    expected = stock.kernel(path, name)
    if expected.error:
        return f"stock refuses the kernel: {expected.error}", "", expected
    try:
        text = ours.text(loading.load(path, ours=True)[name])
    except CompilationError as error:
        return f"refused here: {error}", "", expected
    except Exception:
        return f"TRACEBACK: {traceback.format_exc(limit=-3)}", "", expected
    found = stock.passes(text)
    if found.error:
        return f"stock refuses our text: {found.error}", text, expected
    if library:
        return None, text, expected
    try:
        return difference(expected.final, found.final), text, expected
    except CompilationError as error:
        return f"our parser refuses stock's text: {error}", text, expected


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare our frontend with stock Triton's, kernel by kernel.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="kernels; by default all")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the differences to FILE")
    parser.add_argument("--show", type=Path, metavar="DIR", help="write our text and stock's of each kernel to DIR")
    arguments = parser.parse_args()
    stock = Stock()
    entries: list[str] = []
    every = [*loading.names(), *((loading.CORPUS, name) for name in loading.corpus_names())]
    wanted = [(path, name) for path, name in every if not arguments.names or name in arguments.names]
    for path, name in wanted:
        library = loading.load(path, ours=False)[name].library
        reason, text, answer = verdict(stock, path, name, library=library)
        if reason is not None:
            entries.append(f"## {name} ({path.name})\n\n```\n{reason.strip()}\n```\n")
        if arguments.show:
            arguments.show.mkdir(parents=True, exist_ok=True)
            (arguments.show / f"{name}.ours.mlir").write_text(text, encoding="utf-8")
            (arguments.show / f"{name}.stock.mlir").write_text(answer.frontend, encoding="utf-8")
    stock.close()
    summary = f"{len(wanted) - len(entries)} of {len(wanted)} equal"
    report = "\n".join([f"# {summary}\n", *entries])
    if arguments.out:
        arguments.out.write_text(report, encoding="utf-8")
    else:
        print(report)
    print(summary)


if __name__ == "__main__":
    main()
