"""Eight warps access tensor memory through two names, outside of tasks and in one."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def renamed(x, out, IN_TASK: tl.constexpr):
    wide = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)
    narrow = tlx.local_alloc((128, 128), tl.float16, 1, tlx.storage_kind.tmem, reuse=wide)
    if IN_TASK:
        with tlx.async_tasks():
            with tlx.async_task("default"):
                pass
            with tlx.async_task(num_warps=8):
                _rename(x, out, wide, narrow)
    else:
        _rename(x, out, wide, narrow)


@tlx_xdsl.jit
def _rename(x, out, wide, narrow):
    place = tl.arange(0, 128)[:, None] * 128 + tl.arange(0, 128)[None, :]
    tlx.local_store(wide[0], tl.load(x + place))
    value = tlx.local_load(wide[0])
    tlx.local_store(narrow[0], (value + 1).to(tl.float16))
    tl.store(out + place, tlx.local_load(narrow[0]).to(tl.float32))


def run(**options):
    """Add one."""
    x = np.random.default_rng(0).integers(-9, 9, (128, 128)).astype(np.float32)
    for in_task in (False, True):
        out = np.zeros((128, 128), np.float32)
        tlx_xdsl.interpret(renamed, 1, x, out, in_task, num_warps=4 if in_task else 8, **options)
        np.testing.assert_array_equal(out, x + 1)
