"""Time the interpreter and the PTX machine: GEMM and attention, and the growth of time with the number of programs.

    python benchmarks/interpreter/speed.py [--write]

Prints processor seconds (the least of three runs in this process, one core, after a first run that compiles). `--write`
puts the tables into docs/interpreter.md and docs/ptx.md.
"""

import argparse
import datetime
import os
import platform
import sys
import time
from pathlib import Path

# Measured is one core; numpy's own threads would blur the growth.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.interpreter import stock
from tests.gallery.synchronisation.example_runs import attention, gemm

TILES = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
CASES = {
    "GEMM 512 x 512 x 512, `hopper_gemm_ws.py`": lambda: gemm("hopper_gemm_ws.py", 512, 512, 512, **TILES),
    "GEMM 512 x 512 x 512, `blackwell_gemm_ws.py`": lambda: gemm("blackwell_gemm_ws.py", 512, 512, 512),
    "attention 1 x 1024 x 64, `hopper_attention_ws.py`": lambda: attention(
        "hopper_attention_ws.py", 1, 1024, head_dim=64
    ),
    "attention 1 x 1024 x 64, `blackwell_attention_ws.py`": lambda: attention(
        "blackwell_attention_ws.py", 1, 1024, head_dim=64
    ),
}
PLAIN = {"GEMM 512 x 512 x 512, plain Triton": "matmul", "attention 1 x 1024 x 64, plain Triton": "attention"}
COLUMNS = {
    "interpreter.md": ("program", "frontend", "ttgir", "stock Triton's interpreter"),
    "ptx.md": ("program", "PTX machine"),
}
BEGIN, END = "<!-- figures -->", "<!-- end of the figures -->"


def seconds(case, **options):
    """Processor seconds of the best of three runs, after one that compiles."""
    best = float("inf")
    case.run(**options)
    for _ in range(3):
        start = time.process_time()
        case.run(**options)
        best = min(best, time.process_time() - start)
    return best


def measured():
    """Return the rows of each page's table."""
    rows = {page: [] for page in COLUMNS}
    for name, make in CASES.items():
        case = make()
        early, late, final = (f"{seconds(case, stage=each, jobs=1):.2f}" for each in ("frontend", "ttgir", "ptx"))
        rows["interpreter.md"].append((name, early, late, ""))
        rows["ptx.md"].append((name, final))
    for name, kernel in PLAIN.items():
        rows["interpreter.md"].append((name, f"{stock.ours(kernel):.2f}", "", f"{stock.of_stock(kernel):.2f}"))
    return rows


def table(page, rows):
    """Write a page's rows in Markdown."""
    columns = COLUMNS[page]
    return "\n".join(f"| {' | '.join(each)} |" for each in (columns, ["---"] * len(columns), *rows))


def write(page, rows):
    """Put the table into its page, with the day and the machine."""
    from importlib.metadata import version

    path = ROOT / "docs" / page
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    about = f"Processor seconds on one core ({platform.machine()}), {datetime.date.today()}, "
    about += ", ".join(f"{name} {version(name)}" for name in ("triton", "numpy")) + ":"
    path.write_text(f"{before}{BEGIN}\n\n{about}\n\n{table(page, rows)}\n\n{END}{after}")


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--write", action="store_true", help="write the tables into docs/interpreter.md and docs/ptx.md"
    )
    arguments = parser.parse_args()
    for page, rows in measured().items():
        print(f"{table(page, rows)}\n")
        if arguments.write:
            write(page, rows)
    print("programs  seconds  ms per program")
    for rows in (1, 2, 4, 8, 16):
        case = gemm("hopper_gemm_ws.py", 128 * rows, 512, 512, **TILES)
        taken = seconds(case, stage="frontend", jobs=1)
        print(f"{case.grid[0]:8d}  {taken:7.3f}  {taken / case.grid[0] * 1e3:7.2f}")


if __name__ == "__main__":
    main()
