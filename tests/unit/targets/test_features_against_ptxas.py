"""The table of features is what ptxas says: an instruction of each is assembled for the targets that have it alone."""

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.unit import volume
from tests.versions import RELEASE
from tlx_xdsl.targets import Feature, target_named, targets_of

TMA_LOAD = "cp.async.bulk.tensor.2d{group}.shared::cluster.global{mode}.mbarrier::complete_tx::bytes{multicast} "
INSTRUCTIONS: dict[Feature, tuple[str, ...]] = {
    Feature.CP_ASYNC: ("cp.async.cg.shared.global [%r1], [%rd1], 16;", "cp.async.wait_group 1;"),
    Feature.MBARRIER: (
        "mbarrier.init.shared::cta.b64 [%r1], 1;",
        "mbarrier.inval.shared::cta.b64 [%r1];",
        "mbarrier.arrive.shared::cta.b64 %rd2, [%r1];",
        "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r1], %r2;",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];",
    ),
    Feature.FP8_CONVERSION: ("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;",),
    Feature.MBARRIER_COUNTS: (
        "mbarrier.arrive.shared::cta.b64 _, [%r1], 2;",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;",
        "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;",
    ),
    Feature.ASYNC_PROXY: ("fence.proxy.async.shared::cta;",),
    Feature.BULK_COPY: (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];",
        "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64;",
        "cp.async.bulk.wait_group 0;",
    ),
    Feature.TMA: (
        TMA_LOAD.format(group="", mode=".tile", multicast="") + "[%r1], [%rd1, {%r2, %r3}], [%r4];",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd1, {%r2, %r3}], [%r1];",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r2, %r3}];",
        "prefetch.tensormap [%rd1];",
        "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd1;",
    ),
    Feature.CLUSTER: (
        "barrier.cluster.arrive.aligned;",
        "mov.u32 %r1, %cluster_ctarank;",
        "mapa.shared::cluster.u32 %r1, %r2, %r3;",
        "fence.mbarrier_init.release.cluster;",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];",
        "mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r1];",
        "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1];",
        "fence.release.sync_restrict::shared::cta.cluster;",
        "fence.acquire.sync_restrict::shared::cluster.cluster;",
        "fence.acquire.cluster;",
        "st.shared::cluster.b32 [%r1], %r2;",
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];",
        TMA_LOAD.format(group="", mode=".tile", multicast=".multicast::cluster")
        + "[%r1], [%rd1, {%r2, %r3}], [%r4], %rs1;",
    ),
    Feature.SETMAXNREG: ("setmaxnreg.inc.sync.aligned.u32 232;",),
    Feature.DEPENDENT_LAUNCH: ("griddepcontrol.wait;", "griddepcontrol.launch_dependents;"),
    Feature.ELECT: ("elect.sync %r1|%p1, 0xffffffff;",),
    Feature.WGMMA: ("wgmma.fence.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"),
    Feature.PACKED_F32: ("add.rn.f32x2 %rd1, %rd2, %rd3;",),
    Feature.PACKED_FP8: ("add.e4m3x4.e5m2x4 %r1, %r2, %r3;", "fma.e5m2x4.e2m1x4.e4m3x4 %r1, %rs1, %r2, %r3;"),
    Feature.CLUSTER_LAUNCH_CONTROL: (
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
        "[%r1], [%r2];",
    ),
    Feature.TCGEN05: (
        "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;",
        "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r1], %rd1, %rd2, %r2, %p1;",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd1];",
    ),
    Feature.TENSOR_MEMORY: (
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];",
        "tcgen05.cp.cta_group::1.128x256b [%r1], %rd1;",
    ),
    Feature.TCGEN05_INT8: ("tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd1, %rd2, %r2, %p1;",),
    Feature.TCGEN05_LOAD_REDUCE: ("tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%f1, %f2}, %f3, [%r2];",),
    Feature.TMA_GATHER: (
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
        "[%r1], [%rd1, {%r2, %r3, %r4, %r5, %r6}], [%r7];",
    ),
    Feature.TMA_SCATTER: (
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
        "[%rd1, {%r2, %r3, %r4, %r5, %r6}], [%r7];",
    ),
    Feature.CTA_PAIRS: (
        TMA_LOAD.format(group=".cta_group::2", mode=".tile", multicast="") + "[%r1], [%rd1, {%r2, %r3}], [%r4];",
    ),
    Feature.STOCHASTIC_ROUNDING: (
        "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;",
        "cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;",
    ),
}

PTX = """.version {version}
.target {target}
.address_size 64
.visible .entry kernel()
.maxntid 128
{{
  .reg .pred %p<2>; .reg .b16 %rs<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<10>;
  {instruction}
  ret;
}}
"""

VERSIONS = {"sm_107a": "9.4", "sm_110a": "9.0"}
"""The PTX version of targets that the one of all others does not know."""

NEWER = {Feature.PACKED_FP8: "9.4"}
"""The PTX version of features that came later: the assembler of Triton 3.9 knows it."""

QUICK = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
"""Targets between which there is every difference."""


def ptxas() -> Path:
    """The newest assembler that stock Triton brings."""
    found = find_spec("triton")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "backends" / "nvidia" / "bin" / "ptxas-blackwell"


def test_every_feature_has_an_instruction():
    assert set(INSTRUCTIONS) == set(Feature)


@pytest.mark.backend
@pytest.mark.parametrize("feature", Feature, ids=lambda feature: feature.name)
def test_the_targets_that_have_it_are_those_that_assemble_it(feature: Feature, tmp_path: Path):
    if feature in NEWER and RELEASE < (3, 9):
        pytest.skip("this Triton's assembler does not know the PTX version")
    path = tmp_path / "kernel.ptx"
    for instruction in INSTRUCTIONS[feature]:
        for target in targets_of(RELEASE) if volume.is_full() else map(target_named, QUICK):
            version = NEWER.get(feature, VERSIONS.get(target.name, "8.8"))
            path.write_text(PTX.format(version=version, target=target.name, instruction=instruction))
            done = subprocess.run(
                [ptxas(), "-arch", target.name, path, "-o", tmp_path / "cubin"],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            said = done.stdout + done.stderr
            assert (done.returncode == 0) == target.has(feature), f"{instruction} on {target.name}: {said}"
