"""`tlx run --ranks` and `tlx check --ranks`: values for each rank, all numbers of ranks, findings that come again."""

import json
import re
import runpy

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.ranks.exchanges import CHUNKS, chunks
from tests.zoo.ranks.sums import one_shot, one_shot_arguments
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.interpreter.orders.reduction import Orders
from tlx_xdsl.runtime.driver import reproducible
from tlx_xdsl.runtime.simulate.options import FRONTEND
from tlx_xdsl.tools.tlx import main

# Kernels are read by the frontend, not run by Python.
# pyright: basic

KERNEL = f"{__file__}:all_sums"
ARGUMENTS = (
    "--grid", "1", "--arg", "src=randn[16]", "--arg", "x=symmetric:nan[16]", "--arg", "pads=symmetric:zeros:i32[2]",
    "--arg", "out=nan[16]", "--arg", "own=rank*2",
)  # fmt: skip


@tlx_xdsl.jit
def all_sums(src, x, pads, out, own, epoch, END: tl.constexpr = True):
    rank = tlx.rank()
    world: tl.constexpr = tlx.world_size()
    offsets = tl.arange(0, 16)
    tl.store(tlx.peer(x, rank) + offsets, tl.load(src + offsets))
    for r in tl.static_range(world):
        tlx.signal(tlx.peer(pads, r), 0)
    tlx.wait_signal(tlx.peer(pads, rank), 0, world * epoch)
    total = tl.zeros((16,), tl.float32) + own
    for r in tl.static_range(world):
        total += tl.load(tlx.peer(x, r) + offsets)
    tl.store(out + offsets, total)
    if END:
        for r in tl.static_range(world):
            tlx.signal(tlx.peer(pads, r), 1)
        tlx.wait_signal(tlx.peer(pads, rank), 1, world * epoch)


def test_a_run_on_ranks(capsys, tmp_path):
    saved = tmp_path / "out.npy"
    given = ("--arg", "epoch=per_launch(1, 2)", "--ranks", "3", "--launches", "2")
    checks = ("--check", "out=src.sum(0) + 2*rank", "--save", f"out={saved}")
    assert main(["run", KERNEL, *ARGUMENTS, *given, *checks]) == 0
    said = capsys.readouterr().out
    assert said.count("largest error") == 3
    assert "pads of rank 2: int32[2], 6 to 6" in said
    assert np.load(saved).shape == (3, 16)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "--arg x: 'symmetric' is of several ranks, add --ranks N"),
        (("--ranks", "2", "--check", "out=src[1 - rank]"), "--check out of rank 0: 16 of 16 elements differ"),
        (("--ranks", "2", "--stage", "ptx", "--launches", "2"), "the stage 'ptx' runs one launch of each rank"),
        (("--ranks", "-1"), "--ranks: expected a number of GPUs of at least 1, found -1"),
        (("--ranks", "2", "--stage", "ptx", "--compare"), "--compare: of one GPU, without --ranks"),
        (("--ranks", "2", "--stage", "cpu"), "the stage 'cpu' runs each program to its end"),
        (("--ranks", "2", "--launches", "0"), "launches must be at least 1, found 0"),
    ],
)
def test_what_a_run_refuses(capsys, given, said):
    assert main(["run", KERNEL, *ARGUMENTS, "--arg", "epoch=1", *given]) == 1
    assert said in capsys.readouterr().err


def test_all_numbers_of_ranks_are_checked(capsys):
    given = ("--arg", "epoch=per_launch(1, 2)", "--ranks", "2,3,4", "--seconds", "0", "--stages", FRONTEND)
    assert main(["check", KERNEL, *ARGUMENTS, *given]) == 0
    assert "run at 3 of 3 sizes: ranks=2..4" in capsys.readouterr().out


def test_a_check_with_proofs(capsys):
    given = ("--ranks", "2,3", "--seconds", "0", "--stages", FRONTEND, "--prove")
    assert main(["check", KERNEL, *ARGUMENTS, "--arg", "epoch=per_launch(1, 2)", *given]) == 0
    said = capsys.readouterr().out
    assert "the protocol of 'all_sums' at ranks=3 is proved for 715,827,882 launches of each rank" in said
    assert said.splitlines()[-1].endswith("nothing found, 2 proved")
    # The same number in all launches is for one of them.
    assert main(["check", KERNEL, *ARGUMENTS, "--arg", "epoch=1", *given]) == 0
    said = capsys.readouterr().out
    assert "remark: not proved: the counter grows by 2 in each launch, and what is waited for by 0" in said
    assert main(["check", KERNEL, *ARGUMENTS, "--arg", "epoch=1", *given, "--launches", "1", "--format", "json"]) == 0
    proofs = json.loads(capsys.readouterr().out)["proofs"]
    assert [each["answer"] for each in proofs] == ["proved", "proved"]
    assert "for 1 launch of each rank" in proofs[0]["text"][0]


def test_nothing_is_proved_beside_a_finding(capsys):
    given = ("--arg", "epoch=per_launch(1, 2)", "--constexpr", "END=False", "--prove")
    assert main(["check", KERNEL, *ARGUMENTS, *given, "--ranks", "2", "--seconds", "0", "--stages", FRONTEND]) == 1
    said = capsys.readouterr().out
    assert "remark: not proved: rank 0 in its launch 2 writes 'x of rank 0'" in said
    assert "1 finding, 1 not proved" in said


def test_a_finding_is_had_again_by_its_options(capsys):
    given = ("--arg", "epoch=per_launch(1, 2)", "--constexpr", "END=False")
    assert main(["check", KERNEL, *ARGUMENTS, *given, "--ranks", "2", "--seconds", "0", "--stages", FRONTEND]) == 1
    found = capsys.readouterr().out
    again = re.search(r"note: seen with (.*--ranks 2 --launches 2)", found)
    assert again is not None
    assert main(["run", KERNEL, *ARGUMENTS, *given, *again[1].split()]) == 1
    assert found.splitlines()[0].partition("error: ")[2] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--ranks", "2,x"), "--ranks: expected values such as 2,3,4, found '2,x'"),
        (("--ranks", "0"), "--ranks: expected numbers of GPUs of at least 1, found 0"),
        (("--ranks", "2", "--stages", "frontend,ptx"), "the stage 'ptx' is of one GPU, and the kernel runs on 2 ranks"),
    ],
)
def test_what_a_check_refuses(capsys, given, said):
    assert main(["check", KERNEL, *ARGUMENTS, "--arg", "epoch=1", "--seconds", "0", *given]) == 1
    assert said in capsys.readouterr().err


def checked(**options):
    return one_shot.check(1, BUG="", seconds=0.0, stages=[FRONTEND], **options)


def test_a_second_launch_with_the_same_arguments_is_a_remark():
    once = lambda ranks: (*one_shot_arguments(1, 2)(ranks)[:-1], 1)  # noqa: E731
    report = checked(ranks=2, arguments=once)
    assert report
    (remark,) = report.remarks
    assert remark.rule == "relaunch"
    assert "in its launch 2" in remark.diagnostic.message
    assert any(
        "each rank has launched the kernel twice with the same arguments" in note for note in remark.diagnostic.notes
    )
    # Where it is asked for, it is a finding.
    assert not checked(ranks=2, arguments=once, launches=2)
    assert not checked(ranks=2, arguments=one_shot_arguments(1, 2)).remarks


def test_symmetric_tensors_say_the_ranks_too():
    assert one_shot.check(1, *one_shot_arguments(1, 2)(3), "", seconds=0.0, stages=[FRONTEND]).ranks == 3
    with pytest.raises(InputError, match="'x' is symmetric over 2 ranks, and ranks=3"):
        one_shot.check(1, *one_shot_arguments(1, 2)(2), "", ranks=3, seconds=0.0)


def test_the_order_of_a_finding_is_had_again(monkeypatch, tmp_path):
    bug = next(bug for bug in CHUNKS.bugs if bug.mistake == "one counter for all chunks")
    report = chunks.check(2, BUG=bug.mistake, ranks=2, arguments=bug.arguments, seconds=60.0, stages=[FRONTEND])
    (finding,) = report.findings
    order = finding.options["order"]
    assert f"--ranks 2 --launches 1 --order {order}" in str(finding)
    monkeypatch.setenv(reproducible.VARIABLE, str(tmp_path))
    with pytest.raises(CompilationError) as raised:
        chunks.interpret(2, *bug.arguments(2), bug.mistake, schedule="adversarial", order=Orders(order))
    assert raised.value.message == finding.diagnostic.message
    # So it is by the reproducer.
    monkeypatch.delenv(reproducible.VARIABLE)
    (script,) = tmp_path.glob("*/repro.py")
    with pytest.raises(CompilationError) as again:
        runpy.run_path(str(script))["reproduce"]()
    assert again.value.message == raised.value.message
