"""The sessions that the pages about the debugger show: each leads to the line at fault, in at most six commands."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.unit.docs.documents import ROOT, blocks, changed, printed
from tlx_xdsl.tools.debug.commands import COMMANDS, SHORT
from tlx_xdsl.tools.tlx import parser

SESSIONS = "docs/debugger-sessions.md"
PAGE = "docs/debugger.md"
HANG = "docs/debug-a-hang.md"

FAULTY = {
    "A race: a barrier that counts too few arrivals": "empty = tlx.alloc_barriers(SLOTS)",
    "A deadlock: an arrival that is missing": "tlx.async_descriptor_store_wait(1)",
    "A deadlock: the wrong parity": "tlx.barrier_wait(empty[t % SLOTS], (t // SLOTS) & 1)",
    "A deadlock: the wrong number of bytes": "tlx.barrier_expect_bytes(full[t % SLOTS], 64 * 64 * 4)",
    "A deadlock: loops that disagree": "for k in range(K // TILE)",
    "A race: a fence that is missing": "tlx.local_store(tiles[t % SLOTS]",
    "A read that comes too early: a wait that is missing": "tlx.local_store(tiles[t % SLOTS]",
    "A race: a store that is not waited for": "tlx.async_descriptor_store_wait(2)",
    "Wrong numbers: a wrong index": "b[slot], [k * TILE, row]",
    "Wrong numbers: a stale buffer": "before = tlx.local_load(kept[row % 2])",
    "A buffer that is overwritten while it is alive": "tlx.local_store(factors[0]",
    "A race of two programs": 'tl.atomic_xchg(flag, 1, sem="relaxed")',
    "Wrong numbers: what a mask hides": "other=0.0",
}
"""For each session the line at fault, or the one at which what is missing belongs."""


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sections() -> dict[str, str]:
    text = (ROOT / SESSIONS).read_text(encoding="utf-8")
    return {title: body for title, _, body in (part.partition("\n") for part in text.split("\n## ")[1:])}


def without_numbers(text: str) -> str:
    """The same without numbers of arrays, which differ between versions of numpy."""
    return re.sub(r"-?\d+\.\d*(?:e[-+]\d+)?", "NUMBER", text)


def in_language(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def kernel_of(section: str) -> tuple[str, str]:
    """The name of a section's file, and its text: its own, or one of the page about hangs with changes."""
    (console,) = in_language(section, "console")
    name = console.split()[3].partition(":")[0]
    given = [*in_language(section, "python"), *blocks(HANG, "python")]
    source = next(each for each in given if each.startswith(f"# {name}\n"))
    for diff in in_language(section, "diff"):
        source = changed(source, diff)
    return name, source


def test_each_mistake_has_a_session():
    assert set(sections()) == set(FAULTY)
    assert len(FAULTY) >= 12


@pytest.mark.parametrize("title", FAULTY)
def test_a_session_leads_to_the_line_at_fault(title):
    section = sections()[title]
    name, source = kernel_of(section)
    Path(name).write_text(source)
    (console,) = in_language(section, "console")
    command, _, shown = console.partition("\n")
    output = printed(command.removeprefix("$ tlx "))
    assert without_numbers(output) == without_numbers(shown)

    commands = shlex.split(command)[-1].split(";")
    assert len(commands) <= 6
    answers = output.partition("(tlx) ")[2]
    number = next(n for n, line in enumerate(source.splitlines(), 1) if FAULTY[title] in line)
    assert f"{name}:{number}:" in answers or re.search(rf"^[> ] +{number} ", answers, re.MULTILINE), title


def test_the_same_run_without_the_mistake_is_right():
    Path("pipeline.py").write_text(next(each for each in blocks(HANG, "python") if each.startswith("# pipeline.py")))
    (console,) = in_language(sections()["A deadlock: the wrong parity"], "console")
    command = console.partition("\n")[0].removeprefix("$ tlx ").partition(" -c ")[0]
    assert "nothing is wrong" in printed(f"{command} -c quit")


def test_the_page_lists_all_commands():
    table = re.findall(r"^\| (`[^|]*) \|", (ROOT / PAGE).read_text(encoding="utf-8"), re.MULTILINE)
    assert {*COMMANDS, *SHORT} <= set(re.findall(r"`([a-z]+)", "".join(table)))


def test_the_files_for_an_editor_are_right():
    """The files are JSON, of the debugger that the extension declares, and the launch is one that the adapter takes."""
    extension, launch = (json.loads(each) for each in blocks(PAGE, "json"))
    (debugger,) = extension["contributes"]["debuggers"]
    assert all(each["type"] == debugger["type"] for each in launch["configurations"])
    properties = debugger["configurationAttributes"]["launch"]["properties"]
    (started,) = blocks(PAGE, "python")
    assert "--dap" in started
    for each in launch["configurations"]:
        assert {"kernel", "args"} <= set(each) & set(properties)
        args = parser("debug").parse_args(["debug", each["kernel"], *each["args"]])
        assert args.grid == "1"


def test_the_command_of_the_page():
    Path("pipeline.py").write_text(next(each for each in blocks(HANG, "python") if each.startswith("# pipeline.py")))
    (command,) = blocks(PAGE, "console")
    output = printed(command.strip().removeprefix("$ tlx "))
    assert "nothing is wrong" in output
    assert "empty[0] is in phase 2, 0 of 2 arrivals" in output
