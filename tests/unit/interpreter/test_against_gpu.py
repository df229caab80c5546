"""The interpreter and a Hopper GPU give the same numbers: `python -m tests.unit.interpreter.test_against_gpu`.

Both run the TTGIR of the Hopper GEMM on the same inputs. They add the same f32 products in different orders, so the
sums differ in their last bits, and a result that is close to the middle between two f16 numbers may be rounded to
either.
"""

# covers: tlx.tasks, tlx.mma, tlx.copies

import numpy as np
import pytest

from tests.gallery.synchronisation.example_runs import gemm, launchable

SHAPES = ((512, 512, 512), (1000, 1304, 712), (256, 512, 4096))


def ulps(found: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Count the f16 numbers between two arrays, element by element."""

    def order(values: np.ndarray) -> np.ndarray:
        bits = values.view(np.int16).astype(np.int32)
        return np.where(bits < 0, -(bits & 0x7FFF), bits)

    return np.abs(order(found) - order(other))


def compare(m: int, n: int, k: int) -> tuple[float, int, float]:
    """The part of the elements that are equal, the largest difference in ulps, and the largest one over |a| @ |b|.

    What the order of additions changes is small next to the sum of the absolute values.
    """
    import torch

    example_module = launchable("hopper_gemm_ws")
    case = gemm("hopper_gemm_ws.py", m, n, k)
    a, b, c = (argument.base for argument in case.arguments[:3])
    case.run(stage="ttgir")
    on_gpu = torch.full((m, n), float("nan"), dtype=torch.float16, device="cuda")
    grid, arguments = example_module.launch_arguments(torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda(), on_gpu)
    constants = example_module.TLX_COMPILE["matmul"]["constexprs"] | {"NUM_STAGES": 4}
    example_module.matmul[grid](*arguments, **constants)
    result = on_gpu.cpu().numpy()
    difference = ulps(c, result)
    size = np.abs(a.astype(np.float32)) @ np.abs(b.astype(np.float32))
    gap = np.abs(c.astype(np.float32) - result.astype(np.float32))
    return float((difference == 0).mean()), int(difference[np.abs(result) > 1].max()), float((gap / size).max())


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_gemm_agrees_with_the_gpu(shape):
    equal, furthest, relative = compare(*shape)
    assert equal > 0.98
    assert furthest <= 1
    assert relative < 2**-11


if __name__ == "__main__":
    for shape in SHAPES:
        equal, furthest, relative = compare(*shape)
        print(f"{shape}: {equal:.4%} equal, at most {furthest} ulp apart above 1, difference/|a||b| {relative:.1e}")
