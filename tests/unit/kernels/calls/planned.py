"""A function with plans for tests, on stand-ins for torch and the CUDA driver (`stand_in_torch`)."""

import struct
import sys

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.kernels.stand_in_torch import Tensor
from tlx_xdsl.kernels.calls.launching import Launch
from tlx_xdsl.kernels.calls.operands import describe, operand
from tlx_xdsl.kernels.calls.plans import Prepared


@tlx_xdsl.jit
def kernel(a_desc, b_ptr, out_ptr, w_ptr, N, SCRATCH: tl.constexpr, AT: tl.constexpr):
    """Stand for a kernel that is launched; nothing of it is compiled."""


def prepare(tensors, options):
    """Launches of a descriptor of `a` from its second row on, pointers to `b` and `out`, and 1000 bytes of workspace.

    The options are how many, and bytes of scratch memory for each of three programs.
    """
    b, a, out = tensors
    launches, scratch = options
    sys.modules["torch"].before_planning()
    device = operand("f", "a", a).device
    out = Tensor(a.shape, 0xAA0000, device=device) if out is None else out
    workspace = Tensor((250,), 0xBB0000, "torch.float32", device)
    rest = Tensor((63, 128), a.address + 256)
    arguments = {
        "a_desc": describe(rest, rest.shape, (128, 1), (64, 64)),
        "b_ptr": b,
        "out_ptr": out,
        "w_ptr": workspace,
        "N": 7,
    }
    sources = {"a_desc": "a", "b_ptr": "b", "out_ptr": "out", "w_ptr": "workspace"}
    constants = [{"SCRATCH": scratch, "AT": at} for at in range(launches)]
    made = [Launch(kernel, (3,), arguments, each, device, sources=sources) for each in constants]
    return Prepared({"b": b, "a": a, "out": out, "workspace": workspace}, made)


def tensors(at=1, **options):
    return tuple(Tensor(address=0x10000 * at + 0x1000 * index, **options) for index in range(3))


PLAIN = (1, 0)


def words(launch, *indices):
    return tuple(struct.unpack("<Q", launch.parameters[at][:8])[0] for at in indices)


def addresses(launch):
    """Return the addresses of the arguments for a, b and out."""
    return words(launch, 0, 5, 6)


def expected(at):
    """The same for `tensors(at)`."""
    base = 0x10000 * at
    return base + 0x1000 + 256, base, base + 0x2000
