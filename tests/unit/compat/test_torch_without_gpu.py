"""`tlx_xdsl.compat.torch_without_gpu` with torch itself: a GPU that is not there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from tlx_xdsl import compat
from tlx_xdsl.targets import target_named

torch: Any = import_module("torch")
REPLACED: tuple[Any, ...] = (
    torch,
    torch.Tensor,
    torch.cuda,
    torch.version,
    torch.amp,
    torch._C,
    torch.autocast,
    torch.library,
)


def names() -> list[dict[str, Any]]:
    return [{**vars(each)} for each in REPLACED]


def test_every_name_is_what_it_was_before():
    # Importing it adds names to torch.
    import_module("torch._dynamo")
    before = names()
    with compat.torch_without_gpu():
        assert names() != before
    assert names() == before
    assert not torch.ones(2).is_cuda


def test_tensors_and_modules_lie_in_the_memory_of_the_cpu():
    with compat.torch_without_gpu():
        layer = torch.nn.Linear(3, 4, device="cuda").cuda().to("cuda:0")
        with torch.device("cuda"):
            inner = torch.ones(3)
        made = [torch.empty(3, device=torch.device("cuda", 0)), torch.ones(3).cuda(), inner, layer.weight]
        made.append(torch.testing.make_tensor(3, device="cuda", dtype=torch.float32))
        assert all(each.is_cuda and each.device.type == "cpu" for each in made)
        assert layer(inner).shape == (4,)


def test_the_device_is_of_the_kind_that_was_asked_for():
    with compat.torch_without_gpu("sm_100a"):
        assert torch.cuda.is_available()
        assert (torch.cuda.device_count(), torch.cuda.current_device()) == (1, 0)
        assert torch.cuda.get_device_capability() == (10, 0)
        properties = torch.cuda.get_device_properties("cuda")
        assert properties.shared_memory_per_block_optin == target_named("sm_100a").shared_bytes
        assert torch.cuda.is_bf16_supported()
    with pytest.raises(ValueError, match="sm_0"):
        compat.torch_without_gpu("sm_0")


def test_streams_and_events_do_nothing():
    with compat.torch_without_gpu(), torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream(priority=-1)):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.cuda.current_stream().wait_stream(torch.cuda.Stream())
        torch.cuda.current_stream().wait_event(begin)
        end.record()
        torch.cuda.synchronize()
        assert begin.query()
        assert begin.elapsed_time(end) >= 0


def test_numbers_are_drawn_as_after_the_same_seed():
    with compat.torch_without_gpu():
        torch.manual_seed(3)
        first = torch.rand(4, device="cuda")
        torch.cuda.manual_seed(3)
        assert torch.equal(torch.rand(4, device="cuda"), first)
        state = torch.cuda.get_rng_state()
        second = torch.rand(4)
        torch.cuda.set_rng_state(state)
        assert torch.equal(torch.rand(4), second)
        generator = torch.Generator("cuda").manual_seed(3)
        assert torch.equal(torch.rand(4, generator=generator), first)
        assert isinstance(generator, torch.Generator)


def test_casts_of_a_gpu_are_casts_here():
    with compat.torch_without_gpu():
        x = torch.ones(3, 3, device="cuda")
        with torch.autocast("cuda"):
            assert torch.is_autocast_enabled()
            assert (x @ x).dtype == torch.get_autocast_dtype("cuda") == torch.float16
        assert not torch.is_autocast_enabled()
        assert torch.get_autocast_dtype("cuda") == torch.float16


def test_an_operator_of_a_gpu_alone_runs():
    with compat.torch_without_gpu():

        @torch.library.custom_op("tlx_xdsl_tests::doubled", mutates_args=(), device_types="cuda")
        def doubled(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        assert torch.equal(doubled(torch.ones(3, device="cuda")), torch.full((3,), 2.0))

    @torch.library.custom_op("tlx_xdsl_tests::doubled_there", mutates_args=(), device_types="cuda")
    def doubled_there(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with pytest.raises(NotImplementedError, match="doubled_there"):
        doubled_there(torch.ones(3))


def test_a_compiled_function_moves_tensors():
    with compat.torch_without_gpu():

        def halved(x: Any) -> Any:
            return x.to(torch.float16).to("cuda") + torch.ones(3, device="cuda")

        compiled = torch.compile(halved, backend="eager", fullgraph=True)
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
