"""`tlx mcp`, asked by the protocol's own client: each tool, and calls that fail, never end or say too much."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

mcp = pytest.importorskip("mcp")

from jsonschema import Draft202012Validator  # noqa: E402

from tests.unit.tools.agents.reported import KERNELS, PLAIN  # noqa: E402
from tests.unit.volume import is_full  # noqa: E402
from tlx_xdsl.tools.commands.mcp_server import ToolError, shortened  # noqa: E402
from tlx_xdsl.tools.documents import SCHEMA  # noqa: E402

ROOT = Path(__file__).parents[4]
WHOLE = Draft202012Validator(json.loads(SCHEMA.read_text()))
SCALE = {"grid": "cdiv(n, BLOCK)", "arguments": {"x": "randn[40]", "y": "nan[40]", "n": "40"}}
RING = {"grid": "1", "arguments": {"x": "randn[T*16]", "y": "nan[T*16]", "T": "T"}}


@asynccontextmanager
async def session(folder, *options):
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "tlx_xdsl.tools.tlx", "mcp", *options], cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as found:
        await found.initialize()
        yield found


async def document(found, tool, **arguments):
    result = await found.call_tool(tool, arguments)
    assert not result.is_error, result.content
    made = result.structured_content
    WHOLE.validate(made)
    return made


async def error(found, tool, **arguments):
    result = await found.call_tool(tool, arguments)
    assert result.is_error, result.content
    (part,) = result.content
    assert "\n" not in part.text, part.text
    return part.text


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "forever.py").write_text("import time\n\ntime.sleep(1000)\n")
    (tmp_path / "crashes.py").write_text("import os\n\nprint('{}', flush=True)\nos.abort()\n")
    return tmp_path


def test_the_tools_and_what_they_find(folder):
    async def scenario():
        async with session(folder) as found:
            names = {each.name for each in (await found.list_tools()).tools}
            assert names == {"check", "prove", "gate", "explain", "timeline", "warp_specialize"}
            checked = await document(
                found,
                "check",
                kernel="kernels.py:race",
                grid="2",
                arguments={"x": "ones[1]", "y": "zeros[1]"},
                seconds=1,
            )
            assert (checked["records"][0]["line"], checked["records"][0]["severity"]) == (37, "error")
            proved = await document(found, "prove", kernel="kernels.py:ring", **RING, sizes={"T": "2"})
            assert [each["answer"] for each in proved["proofs"]] == ["proved"]
            explained = await document(found, "explain", kernel="kernels.py:ring")
            assert [each["name"] for each in explained["layouts"]["buffers"]] == ["buffers"]
            if not is_full():
                # It takes the search and the proof of a product.
                return
            made = await document(found, "warp_specialize", kernel="plain.py:matmul", decisions={"depth": "3"})
            assert "tlx.async_tasks()" in made["source"]
            assert ("depth", 3) in [(each["name"], each["value"]) for each in made["decisions"]]

    anyio.run(scenario)


@pytest.mark.skipif(not is_full(), reason="TLX_TEST_VOLUME is not full")
@pytest.mark.backend
def test_the_tools_that_need_final_code(folder):
    async def scenario():
        async with session(folder) as found:
            (timeline,) = (await document(found, "timeline", kernel="kernels.py:scale", **SCALE))["timelines"]
            assert timeline["launch_cycles"] > 0
            assert timeline["text"]
            assert "spans" not in timeline
            judged = await document(found, "gate", kernel="kernels.py:scale", **SCALE, choices={"BLOCK": "16,32"})
            assert judged["counts"]["clean"] == 2

    anyio.run(scenario)


def test_no_call_ends_the_server(folder):
    async def scenario():
        async with session(folder, "--seconds", "20") as found:
            said = await error(found, "explain", kernel="kernels.py:nothing")
            assert said.endswith(
                "kernels.py: error: no kernel 'nothing' in this file, its kernels are scale, ring, race"
            )
            assert "ended with -6" in await error(found, "explain", kernel="crashes.py:k")
            assert "expected NAME" in await error(found, "explain", kernel="kernels.py:ring", constants={"a b": "1"})
            # No argument is taken for an option.
            assert "expected FILE.py:KERNEL" in await error(found, "explain", kernel="--help")
            began = time.monotonic()
            said = await error(found, "explain", kernel="forever.py:k")
            assert "tlx explain: not done after 20 s, and ended" in said
            assert time.monotonic() - began < 60
            assert (await document(found, "explain", kernel="kernels.py:ring"))["ok"]

    anyio.run(scenario)


def test_a_result_has_a_size(folder):
    async def scenario():
        async with session(folder, "--bytes", "3000") as found:
            made = await document(found, "explain", kernel="kernels.py:ring")
            assert "/passes" in made["truncated"]
            assert len(json.dumps(made)) <= 3000

    anyio.run(scenario)


def test_the_largest_parts_are_cut_first():
    made = {"tool": "tlx map", "a": [*range(1000)], "b": {"text": "x" * 10_000}, "c": [1, 2]}
    found = shortened(made, 2000)
    assert set(found["truncated"]) == {"/a", "/b/text"}
    assert found["c"] == [1, 2]
    assert shortened({"a": [1, 2]}, 100) == {"a": [1, 2]}
    with pytest.raises(ToolError, match="more than the 10 of a result"):
        shortened({"a": "short", "b": "too"}, 10)
