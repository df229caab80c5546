"""Microbenchmarks of global memory, TMA, tensor cores, clusters and the start of CTAs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.clock.arithmetic import Micro
from benchmarks.clock.ptx_kernels import begin, end, kernel, loop, wait

MIB = 1 << 20
CHASE = 16


def chases() -> Iterator[Micro]:
    """Latency of loads by a chain of addresses through so many bytes, in no order."""
    for name, size, operator in (
        ("L1", 16 << 10, "ca"), ("L2, 1 MiB", MIB, "cg"), ("L2, 8 MiB", 8 * MIB, "cg"), ("L2, 20 MiB", 20 * MIB, "cg"),
        ("L2, 40 MiB", 40 * MIB, "cg"), ("DRAM, 256 MiB", 256 * MIB, "cg"), ("DRAM, 1 GiB", 1 << 30, "cg"),
    ):  # fmt: skip
        steps = "\n".join(f"    ld.global.{operator}.u64 %d0, [%d0];" for _ in range(CHASE))
        text = kernel(
            "k",
            "    mov.u64 %d0, %data;\n" + begin() + loop(steps) + end() + "    cvt.u32.u64 %r1, %d0;\n",
            keep=["%r1"],
        )
        n = 128 if name.startswith("DRAM") else max(min(size // 128 // CHASE, 4096), 64)
        yield Micro(("global", f"ld latency {name}"), text, n * CHASE, n=n, data=f"chain {size}", again=3)
    atomic = "\n".join("    atom.global.exch.b32 %r1, [%data], %r1;" for _ in range(CHASE))
    yield Micro(
        ("global", "atom latency"), kernel("k", "    mov.u32 %r1, 0;\n" + begin() + loop(atomic) + end(), keep=["%r1"]),
        64 * CHASE, data="plain", threads=1,
    )  # fmt: skip


def streams() -> Iterator[Micro]:
    """Bytes per cycle: what is counted is bytes, so the result is cycles per byte of one multiprocessor."""
    for name, size, grid, threads, n in (
        ("L2 read, 1 SM", 16 * MIB, 1, 1024, 64), ("L2 read, all SMs", 16 * MIB, 132, 1024, 64),
        ("L2 read, all SMs, 32 MiB", 32 * MIB, 132, 1024, 128), ("L2 read, 33 SMs", 16 * MIB, 33, 1024, 64),
        ("L1 read, 1 SM", 64 << 10, 1, 1024, 64), ("DRAM read, all SMs", 2048 * MIB, 132, 1024, 112),
        ("DRAM read, 1 SM", 2048 * MIB, 1, 1024, 64), ("DRAM read, 33 SMs", 2048 * MIB, 33, 1024, 128),
        ("DRAM write, all SMs", 2048 * MIB, 132, 1024, 112), ("L2 write, 1 SM", 16 * MIB, 1, 1024, 64),
        ("L2 write, all SMs", 16 * MIB, 132, 1024, 64), ("DRAM copy, all SMs", 1024 * MIB, 132, 1024, 48),
    ):  # fmt: skip
        access, uses = [], []
        for at in range(8):
            registers = "{" + ", ".join(f"%r{8 + at * 4 + each}" for each in range(4)) + "}"
            access.append("    and.b32 %r2, %r0, %m;\n    cvt.u64.u32 %d1, %r2;\n    add.u64 %d1, %d1, %data;")
            if "write" in name:
                access.append(f"    st.global.v4.b32 [%d1], {registers};")
            elif "copy" in name:
                access.append(f"    ld.global.L1::no_allocate.v4.b32 {registers}, [%d1];")
                access.append(f"    add.u64 %d2, %d1, %d3;\n    st.global.v4.b32 [%d2], {registers};")
            else:
                kind = "ca" if name.startswith("L1") else "cg"
                access.append(f"    ld.global.{kind}.v4.b32 {registers}, [%d1];")
                uses += [f"    xor.b32 %r{4 + each % 2}, %r{4 + each % 2}, %r{8 + at * 4 + each};" for each in range(4)]
            access.append("    add.u32 %r0, %r0, %r1;")
        lay = (
            """
    mov.u32 %r3, %nctaid.x;
    mad.lo.u32 %r0, %cta, %threads, %me;
    shl.b32 %r0, %r0, 4;
    mul.lo.u32 %r1, %r3, %threads;
    shl.b32 %r1, %r1, 4;
    mov.u32 %r4, 0;
    mov.u32 %r5, 0;
    mov.u64 %d3, 1073741824;
"""
            + "\n".join(f"    mov.u32 %r{at}, %me;" for at in range(8, 40))
            + "\n"
        )
        text = kernel(
            "k", lay + begin() + loop("\n".join([*access, *uses])) + end(), keep=["%r4", "%r5"], threads=threads
        )
        count = n * 8 * 16 * threads
        again = 1 if name.startswith("DRAM") else 4
        yield Micro(("bandwidth", name), text, count, threads, grid, n=n, m=size - 1, data="plain", again=again)


# --- TMA --------------------------------------------------------------------------------------------------------------


def _ring(slots: int, size: int, copy: str, advance: str) -> str:
    """One thread keeps `slots` copies of `size` bytes in flight."""
    lines = ["    @!%first bra out;"]
    lines += [f"    mbarrier.init.shared::cta.b64 [%smem+{8 * slot}], 1;" for slot in range(slots)]
    lines += ["    fence.mbarrier_init.release.cluster;", "    fence.proxy.async.shared::cta;", "    mov.u32 %r1, 0;"]
    lines.append(begin(barrier=False))

    def issue(slot: int) -> str:
        return f"""    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem+{8 * slot}], {size};
    add.u32 %r8, %smem, {1024 + slot * size};
    add.u32 %r9, %smem, {8 * slot};
{copy}
{advance}"""

    lines += [issue(slot) for slot in range(slots)]
    turn = [wait(f"%smem+{8 * slot}", "%r1", f"turn{slot}") + issue(slot) for slot in range(slots)]
    lines.append(loop("\n".join([*turn, "    xor.b32 %r1, %r1, 1;"])))
    lines += [wait(f"%smem+{8 * slot}", "%r1", f"last{slot}") for slot in range(slots)]
    return "\n".join(lines) + end() + "out:\n"


OWN_PLACE = """
    mul.lo.u32 %r0, %cta, 1048576;
"""
"""Makes `%r0` the distance of a CTA's bytes."""


def bulk_copies() -> Iterator[Micro]:
    """TMA loads without tensor maps: latency with one under way, cycles of each with several."""
    copy = """    and.b32 %r2, %r0, %m;
    cvt.u64.u32 %d1, %r2;
    add.u64 %d1, %d1, %data;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%d1], {size}, [%r9];"""
    for size in (512, 2048, 8192, 16384, 32768):
        for slots in (1, 6):
            for grid, footprint in ((1, 16 * MIB), (132, 16 * MIB), (132, 2048 * MIB), (1, 2048 * MIB)):
                if footprint > 100 * MIB and size not in (2048, 16384):
                    continue
                ring = OWN_PLACE + _ring(slots, size, copy.format(size=size), f"    add.u32 %r0, %r0, {size};")
                n = 60 // slots
                where = "L2" if footprint < 100 * MIB else "DRAM"
                yield Micro(
                    ("tma bulk", f"{size} bytes, {slots} in flight, {grid} SMs, {where}"),
                    kernel("k", ring),
                    (n + 1) * slots,
                    32,
                    grid,
                    1024 + slots * size,
                    n=n,
                    m=footprint - 1,
                    data="plain",
                )


def boxes() -> Iterator[Micro]:
    """TMA loads with tensor maps: latency with one under way, cycles of each with several."""
    box = """    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r8], [%map, {%r10, %r11}], [%r9];"""
    start = """
    mul.lo.u32 %r11, %cta, {rows};
    and.b32 %r11, %r11, {most};
    mov.u32 %r10, %m;
"""
    for rows in (8, 16, 32, 64, 128, 256):
        size = rows * 128
        for slots in (1, 2, 6):
            for grid in (1, 132):
                for where in ("L2", "DRAM"):
                    if where == "DRAM" and rows not in (64, 128):
                        continue
                    advance = "    add.u32 %r10, %r10, 64;\n    and.b32 %r10, %r10, 1023;"
                    if where == "DRAM":
                        advance = "    add.u32 %r10, %r10, 64;"
                    most = 8191 if where == "L2" else 32767
                    ring = start.format(rows=rows, most=most) + _ring(slots, size, box, advance)
                    n = 60 // slots
                    yield Micro(
                        ("tma tensor", f"box 64x{rows}, {slots} in flight, {grid} SMs, {where}"), kernel("k", ring),
                        (n + 1) * slots, 32, grid, 1024 + slots * size, n=n, data=f"matrix {where}", box=(rows, 64),
                    )  # fmt: skip


def bulk_stores() -> Iterator[Micro]:
    """TMA stores of one thread, which waits until each has been read, has ended, or for the third one before."""
    for size in (2048, 8192, 16384):
        for name, waits in (
            ("read", "cp.async.bulk.wait_group.read 0;"),
            ("all", "cp.async.bulk.wait_group 0;"),
            ("3 left", "cp.async.bulk.wait_group.read 3;"),
        ):
            body = f"""    and.b32 %r2, %r0, %m;
    cvt.u64.u32 %d1, %r2;
    add.u64 %d1, %d1, %data;
    cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r8], {size};
    cp.async.bulk.commit_group;
    {waits}
    add.u32 %r0, %r0, {size};"""
            for grid in (1, 132):
                text = (
                    OWN_PLACE + "    @!%first bra out;\n    add.u32 %r8, %smem, 1024;\n" + begin(barrier=False)
                    + loop(body) + "    cp.async.bulk.wait_group.read 0;\n" + end()
                    + "    cp.async.bulk.wait_group 0;\nout:\n"
                )  # fmt: skip
                yield Micro(
                    ("tma store", f"{size} bytes, wait {name}, {grid} SMs"),
                    kernel("k", text),
                    64,
                    32,
                    grid,
                    1024 + size,
                    n=64,
                    m=64 * MIB - 1,
                    data="plain",
                )


def async_copies() -> Iterator[Micro]:
    """Each thread copies 16 bytes, and waits for them: at once, or three groups later."""
    for warps in (4, 8):
        for left in (0, 3):
            body = f"""    cp.async.cg.shared.global [%r8], [%d1], 16;
    cp.async.commit_group;
    cp.async.wait_group {left};
    add.u64 %d1, %d1, {16 * 32 * warps};"""
            text = (
                """
    shl.b32 %r8, %me, 4;
    cvt.u64.u32 %d1, %r8;
    add.u64 %d1, %d1, %data;
    add.u32 %r8, %smem, %r8;
"""
                + begin()
                + loop(body)
                + end()
            )
            yield Micro(
                ("cp.async", f"{warps} warps, {left} groups left"),
                kernel("k", text),
                64,
                32 * warps,
                1,
                49152,
                n=64,
                data="plain",
            )


def multicast() -> Iterator[Micro]:
    """A box for all CTAs of a cluster: cycles of a round of so many copies, the cluster's barrier included."""
    for cluster in (1, 2, 4):
        for copies in (0, 1, 4):
            size, mask = 8192, (1 << cluster) - 1
            issue = []
            for at in range(copies):
                issue.append(
                    "    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                    f"[%r8+{at * size}], [%d1], {size}, [%smem], %h0;"
                )
            expect = f"    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem], {size * copies};\n"
            body = (
                expect
                + """    barrier.cluster.arrive;
    barrier.cluster.wait;
    @!%p1 bra issued;
"""
                + "\n".join(issue)
                + "\nissued:\n"
                + wait("%smem", "%r1", "arrived")
                + "    xor.b32 %r1, %r1, 1;\n"
            )
            text = f"""
    mov.u16 %h0, {mask};
    @%first mbarrier.init.shared::cta.b64 [%smem], 1;
    fence.mbarrier_init.release.cluster;
    mov.u32 %r5, %cluster_ctarank;
    setp.eq.u32 %p1, %r5, 0;
    and.pred %p1, %p1, %first;
    add.u32 %r8, %smem, 1024;
    mov.u64 %d1, %data;
    mov.u32 %r1, 0;
    barrier.cluster.arrive;
    barrier.cluster.wait;
{begin()}{loop(body)}{end()}    barrier.cluster.arrive;
    barrier.cluster.wait;
"""
            yield Micro(
                ("multicast", f"{cluster} CTAs, {copies} copies of {size} bytes"),
                kernel("k", text, declared="    .reg .b16 %h<2>;"),
                64,
                32,
                cluster,
                1024 + 4 * size,
                cluster,
                64,
                data="plain",
            )


def clusters() -> Iterator[Micro]:
    """Distributed shared memory, mbarriers of another CTA, and the cluster's barrier."""
    for cluster in (2, 4):
        for kind in ("", ".relaxed"):
            both = f"    barrier.cluster.arrive{kind}.aligned;\n    barrier.cluster.wait.aligned;\n"
            yield Micro(
                ("cluster", f"barrier{kind}", f"{cluster} CTAs"), kernel("k", begin() + loop(both * 4) + end()),
                64 * 4, 128, cluster, cluster=cluster,
            )  # fmt: skip
    other = """
    mov.u32 %r5, %cluster_ctarank;
    xor.b32 %r6, %r5, 1;
    shl.b32 %r0, %me, 2;
    add.u32 %r0, %smem, %r0;
    mapa.shared::cluster.u32 %r7, %r0, %r6;
"""
    # A word of this CTA holds its address within the cluster, which the other one follows.
    own = "    mapa.shared::cluster.u32 %r8, %r0, %r5;\n    st.shared.u32 [%r0], %r8;\n"
    sync = "    barrier.cluster.arrive;\n    barrier.cluster.wait;\n"
    chain = "\n".join("    ld.shared::cluster.u32 %r7, [%r7];" for _ in range(16))
    yield Micro(
        ("cluster", "ld latency of the other CTA"),
        kernel("k", other + own + sync + begin() + loop(chain) + end() + sync, keep=["%r7"]), 64 * 16, 32, 2, 4096, 2,
    )  # fmt: skip
    quads = ["{" + ", ".join(f"%r{12 + 4 * at + each}" for each in range(4)) + "}" for at in range(8)]
    loads = "\n".join(
        f"    ld.volatile.shared::cluster.v4.b32 {quad}, [%r9+{512 * at}];" for at, quad in enumerate(quads)
    )
    stores = "\n".join(
        f"    st.volatile.shared::cluster.v4.b32 [%r9+{512 * at}], {{%r12, %r13, %r14, %r15}};" for at in range(8)
    )
    lay = (
        """
    mov.u32 %r5, %cluster_ctarank;
    xor.b32 %r6, %r5, 1;
    shl.b32 %r0, %lane, 4;
    add.u32 %r0, %smem, %r0;
    mapa.shared::cluster.u32 %r9, %r0, %r6;
"""
        + "\n".join(f"    mov.u32 %r{at}, %me;" for at in range(12, 44))
        + "\n"
    )
    for name, body in (("ld.v4", loads), ("st.v4", stores)):
        for warps in (1, 8):
            yield Micro(
                ("cluster", f"{name} of the other CTA", f"warps {warps}"),
                kernel("k", lay + sync + begin() + loop(body) + end() + sync, keep=[f"%r{at}" for at in range(12, 44)]),
                64 * 8 * warps, 32 * warps, 2, 8192, 2,
            )  # fmt: skip
    for cluster in (2,):
        turns = f"""
    mov.u32 %r5, %cluster_ctarank;
    xor.b32 %r6, %r5, 1;
    setp.eq.u32 %p1, %r5, 0;
    mapa.shared::cluster.u32 %r7, %smem, %r6;
    @%first mbarrier.init.shared::cta.b64 [%smem], 1;
    fence.mbarrier_init.release.cluster;
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
{sync}    @!%first bra over;
{begin(barrier=False)}    @%p1 bra mine;
again:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p6, [%smem], %r1;
    @!%p6 bra again;
    @%p1 bra turned;
mine:
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];
    @%p1 bra again;
turned:
    xor.b32 %r1, %r1, 1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p7, %r2, %n;
    @!%p7 bra stop;
    @%p1 bra mine;
    bra again;
stop:
{end()}over:
{sync}"""
        yield Micro(
            ("cluster", "mbarrier: arrival to wake-up, other CTA"),
            kernel("k", turns),
            2 * 64,
            32,
            cluster,
            1024,
            cluster,
        )


# --- tensor cores -----------------------------------------------------------------------------------------------------

TYPES = {
    "f16": ("f32.f16.f16", 16),
    "bf16": ("f32.bf16.bf16", 16),
    "tf32": ("f32.tf32.tf32", 8),
    "e4m3": ("f32.e4m3.e4m3", 32),
}
WITH_TRANSPOSES = ("f16", "bf16")


def _wgmma(element: str, n: int, accumulator: int, in_registers: bool) -> str:
    shape, k = TYPES[element]
    sums = ", ".join(f"%a{accumulator * (n // 2) + at}" for at in range(n // 2))
    a = "{%r20, %r21, %r22, %r23}" if in_registers else "%d4"
    flags = "p, 1, 1"
    if element in WITH_TRANSPOSES:
        flags += ", 0" if in_registers else ", 0, 0"
    return f"    wgmma.mma_async.sync.aligned.m64n{n}k{k}.{shape} {{{sums}}}, {a}, %d5, {flags.replace('p', '%p1')};"


def _products(element: str, n: int, count: int, sums: int, in_registers: bool, groups: int) -> str:
    """`groups` warp groups issue `count` products each, over `sums` accumulators in turn, and wait at the end."""
    # Values that ptxas does not know: it would make those that it knows again for each product.
    zero = "\n".join(f"    add.u32 %r19, %me, {at};\n    cvt.rn.f32.u32 %a{at}, %r19;" for at in range(sums * (n // 2)))
    products = "\n".join(_wgmma(element, n, at % sums, in_registers) for at in range(count))
    # K-major tiles with the 128-byte swizzle: 1,024 bytes from one group of 8 rows to the next.
    lay = """
    and.b32 %r1, %smem, 262143;
    shr.u32 %r1, %r1, 4;
    cvt.u64.u32 %d4, %r1;
    or.b64 %d4, %d4, 0x4000004000010000;
    add.u64 %d5, %d4, 512;
    setp.ne.u32 %p1, %n, 0;
    add.u32 %r20, %me, 1;
    add.u32 %r21, %me, 2;
    add.u32 %r22, %me, 3;
    add.u32 %r23, %me, 4;
"""
    timed = f"""{begin()}    wgmma.fence.sync.aligned;
{products}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
{end()}"""
    kept = "".join(f"    @%kept st.global.f32 [%out+{4096 + 4 * at}], %a{at};\n" for at in range(sums * (n // 2)))
    return kernel(
        "k", lay + zero + "\n" + timed + kept, threads=128 * groups, declared=f"    .reg .f32 %a<{sums * (n // 2)}>;"
    )


def tensor_cores() -> Iterator[Micro]:
    """Cycles of a wave of products; those of one follow from two counts (`per_product`)."""
    cases = [(element, n, 1, False, 1) for element in TYPES for n in (8, 16, 32, 64, 96, 128, 192, 256)]
    cases += [("f16", n, 1, True, 1) for n in (8, 16, 32, 64, 128, 256)] + [
        ("e4m3", n, 1, True, 1) for n in (64, 128, 256)
    ]
    cases += [("f16", n, 2, False, 1) for n in (8, 32, 64, 128)] + [("f16", n, 2, True, 1) for n in (64, 128)]
    cases += [("f16", n, 1, False, groups) for n in (32, 64, 128, 192, 256) for groups in (2, 3) if n * groups <= 512]
    cases += [("f16", n, 1, True, groups) for n in (64, 128, 256) for groups in (2, 3) if n * groups <= 512]
    cases += [("e4m3", n, 1, False, 2) for n in (128, 256)]
    for element, n, sums, in_registers, groups in cases:
        for count in (1, 8, 24):
            text = _products(element, n, count, sums, in_registers, groups)
            place = "registers" if in_registers else "shared"
            name = f"m64n{n} {element}, A in {place}, {sums} accumulators, {groups} warp groups"
            yield Micro(("wgmma", name, f"{count} products"), text, 1, 128 * groups, 1, 65536, n=1)


# --- registers and CTAs -----------------------------------------------------------------------------------------------


def registers() -> Iterator[Micro]:
    """Time `setmaxnreg`: a warp group gives registers away, two take them."""
    text = kernel(
        "k", """
    setp.lt.u32 %p1, %me, 128;
    bar.sync 0;
    mov.u64 %t0, %clock64;
    @%p1 bra gives;
    setmaxnreg.inc.sync.aligned.u32 240;
    mov.u64 %t1, %clock64;
    bra both;
gives:
    setmaxnreg.dec.sync.aligned.u32 24;
    mov.u64 %t1, %clock64;
both:
    sub.u64 %t1, %t1, %t0;
    st.global.u64 [%mine], %t1;
""", threads=384, registers=168,
    )  # fmt: skip
    yield Micro(("setmaxnreg", "slowest warp"), text, 1, 384, 1)
    yield Micro(("setmaxnreg", "fastest warp"), text, 1, 384, 1, each="min")


CTA_WORDS = 5

CTAS = kernel(
    "ctas",
    """
    @!%first bra over;
    mov.u64 %d0, %globaltimer;
    mov.u64 %t0, %clock64;
    mul.lo.u32 %r1, %cta, 40;
    cvt.u64.u32 %d1, %r1;
    add.u64 %d1, %d1, %out;
    cvt.u64.u32 %d2, %n;
    add.u64 %d2, %d2, %t0;
spin:
    mov.u64 %t1, %clock64;
    setp.lt.u64 %p0, %t1, %d2;
    @%p0 bra spin;
    mov.u32 %r2, %smid;
    cvt.u64.u32 %d4, %r2;
    mov.u64 %d5, %globaltimer;
    st.global.u64 [%d1], %d4;
    st.global.u64 [%d1+8], %t0;
    st.global.u64 [%d1+16], %t1;
    st.global.u64 [%d1+24], %d0;
    st.global.u64 [%d1+32], %d5;
over:
""",
)
"""Each CTA writes its multiprocessor, its first and last cycle, and the same by `%globaltimer`."""

EMPTY = kernel("empty", "")

TICKS = kernel(
    "ticks",
    "    mov.u64 %d1, %out;\n    mov.u64 %d0, %globaltimer;\n"
    + loop("""
same:
    mov.u64 %d2, %globaltimer;
    setp.eq.u64 %p0, %d0, %d2;
    @%p0 bra same;
    st.global.u64 [%d1], %d2;
    add.u64 %d1, %d1, 8;
    mov.u64 %d0, %d2;
"""),
)
"""When `%globaltimer` changes."""


def everything() -> Iterator[Micro]:
    """All microbenchmarks of this file."""
    yield from chases()
    yield from streams()
    yield from bulk_copies()
    yield from boxes()
    yield from bulk_stores()
    yield from async_copies()
    yield from multicast()
    yield from clusters()
    yield from tensor_cores()
    yield from registers()
