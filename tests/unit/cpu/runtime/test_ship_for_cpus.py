"""The part of docs/ship-a-kernel.md about CPUs: its kernel is bundled, its programs are compiled and run."""

# covers: target.cpu, tlx compile

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.docs.documents import blocks
from tlx_xdsl.cpu.codegen.host import host
from tlx_xdsl.tools.tlx import main

PAGE = "docs/ship-a-kernel.md"

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
    pytest.mark.skipif(
        not host().triple.startswith("x86_64") or not host().has("avx2"), reason="the page's kernel is for x86-64-v3"
    ),
]

THREADS = """\
#include "axpy.h"
#include <pthread.h>
#include <stdio.h>
enum { N = 100000, BLOCK = 1024 };
static float storage[3 * N + 4];
static void *help(void *programs)
{
    return axpy_work((struct axpy_programs *)programs) == 0 ? NULL : programs;
}
int main(void)
{
    float *x = storage + (4 - (uintptr_t)storage / 4 % 4) % 4, *y = x + N, *out = y + N;
    pthread_t threads[3];
    void *failed;
    int i, correct = 0;
    PREPARE
    for (i = 0; i < N; ++i)
        x[i] = y[N - 1 - i] = (float)i;
    for (i = 0; i < 3; ++i)
        pthread_create(&threads[i], NULL, help, &programs);
    WORK
    for (i = 0; i < 3; ++i) {
        pthread_join(threads[i], &failed);
        status |= failed != NULL;
    }
    for (i = 0; i < N; ++i)
        correct += out[i] == 2 * x[i] + y[i];
    printf("%d %d\\n", status, correct);
    return 0;
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The page's kernel, compiled as the page says."""
    monkeypatch.chdir(tmp_path)
    Path("axpy.py").write_text(blocks(PAGE, "python")[0])
    (console,) = (each for each in blocks(PAGE, "console") if "--target cpu" in each)
    command, listing, *listed = console.splitlines()
    assert main(shlex.split(command.removeprefix("$ tlx "))) == 0
    assert listing == "$ ls cpu/axpy"
    assert listed == sorted(path.name for path in Path("cpu/axpy").iterdir())
    return tmp_path


def built(program: str, *flags: str) -> str:
    """Compile a program as the page says, and return what it prints."""
    Path("main.c").write_text(program)
    (command,) = (each for each in blocks(PAGE, "sh") if each.startswith("cc "))
    subprocess.run([*shlex.split(command), *flags], check=True)
    return subprocess.run(["./main"], check=True, capture_output=True, text=True).stdout


def test_a_program_in_c(folder):
    _, program, _ = blocks(PAGE, "c")
    assert built(program) == "largest error: 0\n"


def test_a_launch_that_threads_share(folder):
    shared = blocks(PAGE, "c")[2]
    prepare, work = shared.split("/* in each thread, if status is 0 */")
    program = THREADS.replace("PREPARE", prepare).replace("WORK", work)
    assert built(program, "-pthread") == "0 100000\n"


def test_bundling_from_python(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "axpy", raising=False)
    (program,) = (each for each in blocks(PAGE, "python") if "write_cpu_bundle" in each)
    exec(program.replace('"cpu/"', '"again/"'), {})
    for path in Path("cpu/axpy").iterdir():
        assert Path("again/axpy", path.name).read_bytes() == path.read_bytes(), path.name
