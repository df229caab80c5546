"""Obstacles to a run: no compiler, text that is no C++, kernels that crash or do not end."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.unit.ttl.metalium.metalium_programs import inputs, needs_compiler, output, program, results
from tlx_xdsl.ttl.metalium import build
from tlx_xdsl.ttl.metalium.machine import Program, find_compiler, run
from tlx_xdsl.ttl.metalium.program import MetaliumError, without_includes

pytestmark = pytest.mark.quick

COPY = """#include "api/compute/common.h"
#include "api/compute/tile_move_copy.h"
void kernel_main() {
  compute_kernel_hw_startup(0, 1);
  copy_init(0);
  cb_wait_front(0, 1);
  cb_reserve_back(1, 1);
  tile_regs_acquire();
  copy_tile(0, 0, 0);
  tile_regs_commit();
  tile_regs_wait();
  pack_tile(0, 1);
  tile_regs_release();
  cb_push_back(1, 1);
  cb_pop_front(0, 1);
}
"""
X = np.arange(1024, dtype=np.float32).reshape(32, 32)


def copied(compute: str) -> np.ndarray:
    tensors = [*inputs(X), output((32, 32))]
    (result,) = results(program(compute, tensors), tensors)
    return result


@needs_compiler
def test_a_program_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = build.machine()
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "metalium"
    folder.mkdir()
    for each in machine.parent.glob("machine-*"):
        shutil.copy(each, folder)
    np.testing.assert_array_equal(copied(COPY), X)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    (library,) = (path for path in folder.iterdir() if path.name.startswith("programs-"))
    np.testing.assert_array_equal(copied(COPY), X)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    # A file that a full disk has cut off, or another one in its place, is compiled anew.
    whole = library.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:-1] + b"\0"):
        library.write_bytes(damaged)
        np.testing.assert_array_equal(copied(COPY), X)


@needs_compiler
def test_the_form_of_2025() -> None:
    text = COPY.replace("api/compute", "compute_kernel_api").replace(
        "void kernel_main", "namespace NAMESPACE {\nvoid MAIN"
    )
    np.testing.assert_array_equal(copied(text.replace("MAIN()", "MAIN") + "}\n"), X)


@needs_compiler
@pytest.mark.parametrize(
    ("old", "new", "message", "line"),
    [
        ("copy_init(0)", "copy_int(0)", "C\\+\\+ compiler: .*copy_int", 5),
        ("#include", '#include "api/compute/layernorm.h"\n#include', "no header 'api/compute/layernorm.h'", 1),
        ("cb_wait_front(0, 1);", "for (;;) {}", "the kernels did not end in 1 s", 0),
        ("cb_wait_front(0, 1);", "*(volatile int *)8 = 1;", "a kernel ended with the signal SIGSEGV", 0),
        ("copy_tile(0, 0, 0);", '\n#line 77 "softmax.py"\ncopy_tile(0, 0, 8);', "no tile 8", 77),
    ],
)
def test_errors(old: str, new: str, message: str, line: int) -> None:
    tensors = [*inputs(X), output((32, 32))]
    made = program(COPY.replace(old, new, 1), tensors)
    pages = {each.name: np.zeros((1, 4096), np.uint8) for each in tensors}
    with pytest.raises(MetaliumError, match=message) as raised:
        run(made.sources, made.manifest, pages, timeout=1)
    assert raised.value.line == line
    assert raised.value.file == {0: "", 77: "softmax.py"}.get(line, "compute")


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    find_compiler.cache_clear()
    try:
        with pytest.raises(MetaliumError, match=r"there is no C\+\+ compiler 'no-such-compiler': install g\+\+"):
            find_compiler()
    finally:
        find_compiler.cache_clear()


def test_lines_stay_without_includes() -> None:
    assert without_includes("k", '#include <cstdint>\n  #include "api/compute/common.h"\nint x;') == "\n\nint x;"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sources": {}}, "there is no source for thread 'compute'"),
        ({"capacity": 17}, "expected 1 to 16 tiles in DST, found 17"),
        ({"address": None}, "circular buffer 0 has no address: run ttl-allocate-circular-buffers"),
    ],
)
def test_what_is_no_program(change: dict[str, object], message: str) -> None:
    made = program(COPY, [*inputs(X), output((32, 32))])
    cbs = [{**cb, "address": change.get("address", cb["address"])} for cb in made.manifest["cbs"]]
    changed = Program(made.sources if "sources" not in change else {}, {**made.manifest, "cbs": cbs})
    capacity = change.get("capacity")
    with pytest.raises(MetaliumError, match=message):
        (changed.text("p"), changed.description(0, capacity, [4096, 4096]))  # type: ignore[arg-type]
