"""Makes docs/targets.md of the tables in `tlx_xdsl/targets.py`: `python -m tests.unit.targets.page`."""

from pathlib import Path

from tlx_xdsl.targets import NO_TARGETS, TARGETS, Feature

PAGE = Path(__file__).parents[3] / "docs" / "targets.md"

TEXT = """\
# Targets

<!-- Made by `python -m tests.unit.targets.page` of tlx_xdsl/targets.py; a test compares them. -->

A kernel is compiled for one GPU architecture: `tlx compile kernel.py:fn --target sm_80`, or `target="sm_80"` in Python.
`run`, `explain` and `map` take `--target`, too. The default is sm_90a. `compile` and `explain` also take
two targets that are no GPUs, for kernels of the plain language: [`cpu`](#cpus) and [`linalg`](linalg.md).

| target | GPUs | shared memory of a CTA | tensor memory | tl.dot becomes |
|---|---|---|---|---|
{targets}

From sm_90a on, stock Triton always compiles for the architecture with all its features: `sm_90` and `sm_90a` mean the
same, and so do the two spellings of the others. Any other name is an error that lists these. No targets are:

{no_targets}

## What each target has

| feature | {names} | PTX ISA, "Target ISA Notes" of |
|---|{rules}---|
{features}

A test assembles instructions of each feature for each target with the ptxas of stock Triton.

## What is refused

Each operation of the compiler states the features that it needs, beside its name. The frontend compares them with the
target at each call of a kernel, and the pass `tlx-check-target`, the first of the pipeline, does it again for IR that
comes as text. What is lacking is an error at your line, in the names that you use:

```text
kernel.py:4:9: error: tlx.async_dot needs wgmma (sm_90a) or tcgen05 (sm_100a); target is sm_89
    c = tlx.async_dot(a, a, tl.zeros((64, 64), tl.float32))
        ^
```

[errors.md](errors.md#targets) shows such errors with their kernels and what to write instead. A second test gives
stock Triton one small module for each need, on the targets on both sides of the border: it compiles what we accept,
and fails over what we refuse.

Not looked at is the PTX of inline assembly: what a target lacks there, ptxas refuses.

Buffers that do not fit the target's memory are an error of their own, which names the largest of them.

## CPUs

| name | CPUs | vectors |
|---|---|---|
| `native` | this machine's, whichever it is | its widest |
| `x86-64` | all | 128 bits |
| `x86-64-v2` | with SSE4.2: Intel from 2008, AMD from 2011 on | 128 bits |
| `x86-64-v3` | with AVX2, FMA and F16C: Intel from 2013, AMD from 2015 on, but for the smallest | 256 bits |
| `x86-64-v4` | with AVX-512 F, BW, CD, DQ and VL: Intel's servers from 2017 on, AMD from Zen 4 on | 512 bits |
| `arm64` | every 64-bit Arm (`generic` is the same) | 128 bits |
| `arm64-sve256`, `arm64-sve512` | Arm with SVE of at least so many bits: Neoverse V1, A64FX | 256, 512 bits |

`tlx compile kernel.py:fn --target cpu --cpu x86-64-v3` picks one; without `--cpu` it is `native`, whose code may fail
on an older CPU with an illegal instruction. Names that begin with `x86-64` are those of the x86-64 psABI. These names
mean this machine's system and architecture. Before them stands another system: `linux-arm64` (or `aarch64`),
`linux-x86-64-v3`, `macos-arm64`, `macos-x86-64-v2`, `windows-x86-64-v3`, `windows-arm64`, and so on, on any machine.
Objects are ELF, Mach-O and COFF; SVE is for Linux alone. [cpu.md](cpu.md#every-chip) says what of it has run. `tl` is
the whole language there; every `tlx` operation on buffers, barriers and tasks is refused at its line, and so is PTX.

## Kernels for every GPU

Kernels of `tlx.local_alloc`, `tlx.async_load`, `tlx.local_load`, `tlx.local_store`, mbarriers, named barriers, tasks
without `registers` and `tl.dot` compile for all targets. `examples/ampere_gemm_pipelined.py` is one. Its `tl.dot`
becomes what its target multiplies with, and on sm_100a its accumulator stays in tensor memory during the loop. On
sm_90a and sm_100a the operands that such a `tl.dot` takes from buffers are copied once more, through registers:
`tlx.async_dot` reads them where they are.

[compile-table.md](compile-table.md) lists which kernel compiles for which target with which Triton.
"""

GPUS = {
    "sm_80": "A100",
    "sm_86": "A10, A40, RTX 30",
    "sm_87": "Jetson Orin",
    "sm_89": "L4, L40, RTX 40",
    "sm_90a": "H100, H200",
    "sm_100a": "B200, GB200",
    "sm_103a": "B300, GB300",
    "sm_107a": "Rubin (Triton 3.9 or later)",
    "sm_110a": "Jetson Thor (Triton 3.7 or later)",
    "sm_120a": "RTX 50, RTX PRO 6000 Blackwell",
    "sm_121a": "GB10 (DGX Spark)",
}


def _dot(has: frozenset[Feature]) -> str:
    if Feature.TCGEN05 in has:
        return "tcgen05"
    return "wgmma" if Feature.WGMMA in has else "mma.sync"


def page() -> str:
    """The text of docs/targets.md."""
    targets = [
        f"| {target.name} | {GPUS[target.name]} | {target.shared_bytes:,} bytes | "
        f"{f'{target.tmem_columns} columns' if target.tmem_columns else 'none'} | {_dot(frozenset(target.features))} |"
        for target in TARGETS
    ]
    features = [
        f"| {feature.display_name} | {' | '.join('yes' if target.has(feature) else '' for target in TARGETS)} | "
        f"{feature.section} |"
        for feature in Feature
    ]
    return TEXT.format(
        targets="\n".join(targets),
        no_targets="\n".join(f"- {name}: {why}" for name, why in NO_TARGETS.items()),
        names=" | ".join(target.name for target in TARGETS),
        rules="---|" * len(TARGETS),
        features="\n".join(features),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
