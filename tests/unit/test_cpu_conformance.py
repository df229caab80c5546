"""The kernels of others on the CPU: their lists, the page of their results, and the sentinels around their tensors."""

import json

import pytest

pytest.importorskip("torch")

import torch

from tests.conformance.cpu import cpu_page
from tests.conformance.cpu.cpu_entries import WrongNumbers
from tests.conformance.cpu.cpu_kernels import entries
from tests.conformance.cpu.cpu_launches import between_sentinels


def test_each_suite_of_the_page_has_entries_and_each_entry_a_suite_and_a_reference():
    assert {case.suite for case in entries().values()} == set(cpu_page.SUITES)
    assert all(case.reference for case in entries().values())


def write_past(given, _, *, element):
    (tensor,) = given
    torch.as_strided(tensor, (1,), (1,), tensor.storage_offset() + element)[0] = 1


@pytest.mark.parametrize("element", [-1, 5])
def test_a_launch_that_writes_past_a_tensor_is_wrong(element):
    x = torch.zeros(5, dtype=torch.bfloat16)
    with pytest.raises(WrongNumbers, match=f"twice writes byte {2 * element} of a tensor with 10 bytes"):
        between_sentinels("twice", lambda *given: write_past(*given, element=element), (x,), {})


def test_a_launch_between_sentinels_sees_views_and_one_memory_and_its_results_come_back():
    x = torch.arange(12.0).view(3, 4)

    def add(given, named):
        view, whole = given
        assert view.tolist() == [4.0, 5.0, 6.0, 7.0]
        assert view.stride() == (1,)
        assert view.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
        assert view.data_ptr() % 64 == x[1].data_ptr() % 64
        view += named["by"]

    between_sentinels("add", add, (x[1], x), {"by": torch.full((4,), 10.0)})
    assert x.tolist() == [[0, 1, 2, 3], [14, 15, 16, 17], [8, 9, 10, 11]]


def test_the_page_keeps_what_a_run_says_nothing_of(tmp_path):
    before = cpu_page.page(tmp_path, cpu_page.PAGE.read_text(encoding="utf-8"))
    assert cpu_page.page(tmp_path, before) == before
    record = {"outcome": "right", "reason": "", "launched": [], "linalg": {"add_kernel": ""}, "seconds": 1}
    names = [name for name, case in entries().items() if case.suite == "triton"]
    (tmp_path / "native.json").write_text(json.dumps(dict.fromkeys(names, record | {"outcome": "wrong"})))
    (tmp_path / "conditions.txt").write_text("2031-01-02, a machine\n")
    after = cpu_page.page(tmp_path, before)
    assert "- **2031-01-02**: a machine" in after
    old, new = (cpu_page.Before(text) for text in (before, after))
    assert new.row("suite", "vllm") == old.row("suite", "vllm")
    assert new.row("suite", "triton")["right: native"] == "0"
    assert new.row("suite", "triton")["right: our interpreter"] == old.row("suite", "triton")["right: our interpreter"]
    assert new.row("suite", "triton")["run"].startswith("2031-01-02 (native), ")
    assert cpu_page.page(tmp_path, after) == after
    assert new.row("entry", "triton/vector_add")["our interpreter"] == "right"
    assert new.row("entry", "triton/vector_add")["native"] == "wrong"
    assert new.row("entry", "vllm/post_update") == old.row("entry", "vllm/post_update")
