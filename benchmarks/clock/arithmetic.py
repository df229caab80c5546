"""Microbenchmarks of instructions in registers, shared memory and barriers of one CTA: cycles on one multiprocessor.

Each gives kernels and what their cycles say. A chain is a sequence of instructions each of which needs the one before:
one warp with one chain gives the latency, sixteen warps with four chains the cycles of a warp's instruction on one of
the four partitions of a multiprocessor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.clock.ptx_kernels import begin, end, kernel, loop

STEPS = 16
"""Instructions of a chain in the body of a loop."""
TURNS = 64


@dataclass
class Micro:
    """A kernel, how it is launched, and what one of its results stands for.

    The result is the slowest warp's cycles, over `count`; `key` says where it goes in the record.
    """

    key: tuple[str, ...]
    ptx: str
    count: float
    threads: int = 32
    grid: int = 1
    shared: int = 0
    cluster: int = 1
    n: int = TURNS
    m: int = 0
    data: str = ""
    each: str = "max"
    """Of the cycles of all warps: `max`, `min` or `median`."""
    box: tuple[int, int] | None = None
    again: int = 3
    """Launches, of which the fastest counts."""


# {x} is the chain's register, {y} its other one: where the next instruction swaps both, nothing can be simplified.
CHAINS: dict[str, tuple[str, int]] = {
    "FFMA": ("fma.rn.f32 {x}, {x}, {c}, {d};", 1),
    "FADD": ("add.rn.f32 {x}, {x}, {c};", 1),
    "FMUL": ("mul.rn.f32 {x}, {x}, {c};", 1),
    "FMNMX": ("max.f32 {x}, {x}, {y}; add.rn.f32 {y}, {x}, {c};", 2),
    "IADD3": ("add.s32 {x}, {y}, {x}; add.s32 {x}, {x}, {c}; add.s32 {y}, {x}, {y}; add.s32 {y}, {y}, {c};", 2),
    "IMAD": ("mad.lo.s32 {x}, {x}, {c}, {d};", 1),
    "LOP3": ("lop3.b32 {x}, {x}, {y}, {c}, 0xe8; lop3.b32 {y}, {y}, {x}, {d}, 0x96;", 2),
    "SHF": ("shf.l.wrap.b32 {x}, {x}, {y}, {c}; shf.l.wrap.b32 {y}, {y}, {x}, {d};", 2),
    "PRMT": ("prmt.b32 {x}, {x}, {y}, {c}; prmt.b32 {y}, {y}, {x}, {d};", 2),
    "ISETP+SEL": ("setp.lt.s32 %p0, {x}, {c}; selp.b32 {x}, {d}, {y}, %p0; add.s32 {y}, {y}, {x};", 3),
    "IMNMX": ("max.s32 {x}, {x}, {y}; lop3.b32 {y}, {y}, {x}, {d}, 0x96;", 2),
    "POPC": ("popc.b32 {x}, {x};", 1),
    "MUFU.EX2": ("ex2.approx.ftz.f32 {x}, {x};", 1),
    "MUFU.RCP + FADD": ("rcp.approx.ftz.f32 {x}, {x}; add.rn.f32 {x}, {x}, {c};", 2),
    "MUFU.LG2": ("lg2.approx.ftz.f32 {x}, {x};", 1),
    "MUFU.RSQ": ("rsqrt.approx.ftz.f32 {x}, {x};", 1),
    "MUFU.TANH": ("tanh.approx.f32 {x}, {x};", 1),
    "F2FP.F16": ("cvt.rn.f16x2.f32 {x}, {x}, {c};", 1),
    "F2FP.BF16": ("cvt.rn.bf16x2.f32 {x}, {x}, {c};", 1),
    "F2FP.E4M3": ("cvt.rn.satfinite.e4m3x2.f32 %h0, {x}, {c}; cvt.u32.u16 {x}, %h0;", 1),
    "I2F": ("cvt.rn.f32.s32 {x}, {x};", 1),
    "F2I": ("cvt.rni.s32.f32 {x}, {x};", 1),
    "HFMA2": ("fma.rn.f16x2 {x}, {x}, {c}, {d};", 1),
    "HFMA2.BF16": ("fma.rn.bf16x2 {x}, {x}, {c}, {d};", 1),
    "HADD2.F32 (f16 to f32)": ("mov.b32 {{%h0, %h1}}, {x}; cvt.f32.f16 {x}, %h1;", 1),
    "SHFL": ("shfl.sync.bfly.b32 {x}, {x}, 1, 31, -1;", 1),
    "REDUX": ("redux.sync.add.s32 {x}, {x}, -1;", 1),
    "VOTE": ("setp.lt.s32 %p0, {x}, {c}; vote.sync.ballot.b32 {x}, %p0, -1;", 2),
    "DFMA": ("fma.rn.f64 %e0, %e0, %e1, %e2;", 1),
}
"""PTX of a step, and how many instructions of the machine it is thought to be."""


def _chain(step: str, chains: int) -> str:
    lines = []
    for _ in range(STEPS):
        for at in range(chains):
            lines.append("    " + step.format(x=f"%r{2 * at}", y=f"%r{2 * at + 1}", c="%r40", d="%r41"))
    return "\n".join(lines)


def instructions() -> Iterator[Micro]:
    """Latency and rate of each instruction."""
    start = "\n".join(f"    add.u32 %r{at}, %me, {at + 1};" for at in range(10))
    start += "\n    add.u32 %r40, %n, 3;\n    add.u32 %r41, %n, 5;\n    cvt.u64.u32 %d8, %n;\n"
    start += "    cvt.rn.f64.u32 %e0, %n;\n    mov.f64 %e1, %e0;\n    mov.f64 %e2, %e0;\n"
    # A warp that is not let on before others end would read its clock late.
    together = "    bar.sync 0;\n"
    for name, (step, machine) in CHAINS.items():
        for warps, chains in ((1, 1), (1, 4), (4, 4), (16, 4)):
            if name == "DFMA" and chains > 1:
                continue
            text = kernel(
                "k", start + begin() + together + loop(_chain(step, chains)) + end(),
                keep=[*(f"%r{at}" for at in range(2 * chains)), "%kd"], threads=32 * warps,
                declared="    .reg .b16 %h<4>; .reg .f64 %e<4>; .reg .b32 %kd;",
            ).replace("    @%kept", "    cvt.rn.f32.f64 %kd, %e0;\n    @%kept", 1)  # fmt: skip
            per_partition = max(warps // 4, 1)
            count = TURNS * STEPS * machine * chains * per_partition
            yield Micro(("instructions", name, f"warps {warps}, chains {chains}"), text, count, 32 * warps)


# --- shared memory ----------------------------------------------------------------------------------------------------


def shared_memory() -> Iterator[Micro]:
    """Latency by a chain of addresses; wavefronts and bytes by loads that do not depend on each other."""
    # Each thread's word holds its own address: the chain stays there.
    place = """
    shl.b32 %r0, %me, 2;
    add.u32 %r0, %smem, %r0;
    st.shared.u32 [%r0], %r0;
    bar.sync 0;
"""
    chain = "\n".join("    ld.volatile.shared.u32 %r0, [%r0];" for _ in range(STEPS))
    yield Micro(
        ("shared", "ld latency"), kernel("k", place + begin() + loop(chain) + end(), keep=["%r0"]), TURNS * STEPS,
        shared=49152,
    )  # fmt: skip
    # The middle term of each (loads only): bytes of a lane, and the distance of lanes in words.
    forms = {
        "ld.b32": (1, 1), "ld.v2": (2, 2), "ld.v4": (4, 4), "ld.b32 2 ways": (1, 2), "ld.b32 4 ways": (1, 4),
        "ld.b32 8 ways": (1, 8), "ld.b32 32 ways": (1, 32), "ld.v4 2 ways": (4, 8), "st.b32": (1, 1), "st.v4": (4, 4),
        "st.b32 2 ways": (1, 2), "st.b32 8 ways": (1, 8), "atom.add": (1, 1),
    }  # fmt: skip
    for name, (words, stride) in forms.items():
        for warps in (1, 4, 16):
            body, vector = [], {1: "", 2: ".v2", 4: ".v4"}[words]
            for at in range(8):
                names = ", ".join(f"%r{2 + at * 4 + each}" for each in range(words))
                registers = f"{{{names}}}" if words > 1 else names
                if name.startswith("ld"):
                    body.append(f"    ld.volatile.shared{vector}.b32 {registers}, [%r0+{at * 16}];")
                elif name.startswith("st"):
                    body.append(f"    st.volatile.shared{vector}.b32 [%r0+{at * 16}], {registers};")
                else:
                    body.append(f"    atom.shared.add.u32 %r{2 + at}, [%r0+{at * 128}], 1;")
            lay = f"    mul.lo.u32 %r0, %lane, {4 * stride};\n    add.u32 %r0, %smem, %r0;\n"
            lay += "\n".join(f"    mov.u32 %r{at}, %me;" for at in range(2, 34)) + "\n"
            text = kernel("k", lay + begin() + loop("\n".join(body)) + end(), keep=[f"%r{at}" for at in range(2, 34)])
            yield Micro(("shared", name, f"warps {warps}"), text, TURNS * 8 * warps, 32 * warps, shared=49152)
    for name, op in (("ldmatrix.x4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r}, [%r0+{o}];"),
                     ("stmatrix.x4", "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r0+{o}], {r};")):  # fmt: skip
        for warps in (1, 4, 16):
            body = [
                "    "
                + op.replace("{r}", "{" + ", ".join(f"%r{2 + at * 4 + e}" for e in range(4)) + "}").replace(
                    "{o}", str(512 * at)
                )
                for at in range(8)
            ]
            if name.startswith("ld"):
                # What is loaded is used, and from other addresses each time: else ptxas leaves loads out.
                body += [f"    xor.b32 %r1, %r1, %r{2 + at * 4};" for at in range(8)]
                body.append("    xor.b32 %r0, %r0, 16384;")
            lay = "    shl.b32 %r0, %lane, 4;\n    add.u32 %r0, %smem, %r0;\n"
            lay += "\n".join(f"    mov.u32 %r{at}, %me;" for at in range(1, 34)) + "\n"
            text = kernel("k", lay + begin() + loop("\n".join(body)) + end(), keep=[f"%r{at}" for at in range(1, 34)])
            yield Micro(("shared", name, f"warps {warps}"), text, TURNS * 8 * warps, 32 * warps, shared=49152)


# --- barriers ---------------------------------------------------------------------------------------------------------


def barriers() -> Iterator[Micro]:
    """Cycles of synchronising, of fences, of reading the clock, and of mbarriers from the arrival to the wake-up."""
    for warps in (1, 2, 4, 8, 12, 16, 32):
        yield Micro(
            ("barriers", "bar.sync", f"warps {warps}"),
            kernel("k", begin() + loop("    bar.sync 0;\n" * 8) + end()), TURNS * 8, 32 * warps,
        )  # fmt: skip
    fences = {
        "fence.proxy.async": "fence.proxy.async.shared::cta;",
        "membar.cta": "membar.cta;",
        "membar.gl": "membar.gl;",
        "fence.acq_rel.cluster": "fence.acq_rel.cluster;",
        "fence.mbarrier_init": "fence.mbarrier_init.release.cluster;",
        "clock64": "mov.u64 %t1, %clock64; xor.b64 %d3, %d3, %t1;",
        "clock": "mov.u32 %r1, %clock; xor.b32 %r2, %r2, %r1;",
        "globaltimer": "mov.u64 %t1, %globaltimer; xor.b64 %d3, %d3, %t1;",
        "nanosleep 0": "nanosleep.u32 0;",
        "wgmma.fence": "wgmma.fence.sync.aligned;",
        "tma.commit": "cp.async.bulk.commit_group;",
        "tma.wait 0": "cp.async.bulk.wait_group 0;",
        "cp.commit": "cp.async.commit_group;",
        "cp.wait 0": "cp.async.wait_group 0;",
    }
    for name, text in fences.items():
        body = "    mov.u32 %r2, %n;\n    mov.u64 %d3, %out;\n" + begin() + loop(f"    {text}\n" * 8) + end()
        for warps in (4,) if name.startswith("wgmma") else (1, 4):
            yield Micro(
                ("barriers", name, f"warps {warps}"),
                kernel("k", body + "    cvt.u32.u64 %r3, %d3;\n", keep=["%r2", "%r3"]), TURNS * 8, 32 * warps,
            )  # fmt: skip
    set_up = """
    @!%first bra ready;
    mbarrier.init.shared::cta.b64 [%smem], 1;
    mbarrier.init.shared::cta.b64 [%smem+8], 1;
    fence.mbarrier_init.release.cluster;
ready:
    bar.sync 0;
"""
    arrive = "    mbarrier.arrive.shared::cta.b64 _, [%smem];\n"
    done = f"    @!%first bra skip;\n{arrive}skip:\n    bar.sync 0;\n"
    attempt = """    mbarrier.try_wait.parity.shared::cta.b64 %p0, [%smem], 0;
    selp.b32 %r1, 1, 2, %p0;
    xor.b32 %r2, %r2, %r1;
"""
    for warps in (1, 4):
        yield Micro(
            ("barriers", "try_wait of a phase that is over", f"warps {warps}"),
            kernel("k", set_up + done + "    mov.u32 %r2, %n;\n" + begin() + loop(attempt * 8) + end(), keep=["%r2"]),
            TURNS * 8,
            32 * warps,
            shared=1024,
        )
        branchy = "".join(
            f"at{at}:\n    mbarrier.try_wait.parity.shared::cta.b64 %p0, [%smem], 0;\n    @!%p0 bra at{at};\n"
            for at in range(8)
        )
        yield Micro(
            ("barriers", "wait loop for a phase that is over", f"warps {warps}"),
            kernel("k", set_up + done + begin() + loop(branchy) + end()), TURNS * 8, 32 * warps, shared=1024,
        )  # fmt: skip
    one_arrival = set_up.replace("[%smem], 1", "[%smem], 1048575")
    yield Micro(
        ("barriers", "arrive"), kernel("k", one_arrival + begin() + loop(arrive * 8) + end()), TURNS * 8, 1, shared=1024
    )
    # Two warps call each other in turn: a turn is an arrival and a wake-up.
    turns = f"""
    mov.u32 %r1, 0;
    setp.eq.u32 %p1, %warp, 0;
    setp.ne.u32 %p2, %lane, 0;
    add.u32 %r5, %smem, 8;
    selp.b32 %r3, %smem, %r5, %p1;
    selp.b32 %r4, %r5, %smem, %p1;
{begin()}    @%p1 bra mine;
again:
    setp.ne.u32 %p2, %lane, 0;
waits:
    mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r4], %r1;
    @!%p6 bra waits;
    @%p1 bra turned;
mine:
    @%p2 bra silent;
    mbarrier.arrive.shared::cta.b64 _, [%r3];
silent:
    @%p1 bra again;
turned:
    xor.b32 %r1, %r1, 1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p7, %r2, %n;
    @!%p7 bra over;
    @%p1 bra mine;
    bra again;
over:
{end()}"""
    # Warp 0 calls on barrier 0 and waits for barrier 1, the other one the other way round.
    yield Micro(
        ("barriers", "mbarrier: arrival to wake-up, same CTA"),
        kernel("k", set_up + "    mov.u32 %r2, 0;\n" + turns), 2 * TURNS, 64, shared=1024,
    )  # fmt: skip
    named = """
    setp.eq.u32 %p1, %warp, 0;
"""
    body = """
    @%p1 bra zero;
    bar.sync 1, 64;
    bar.arrive 2, 64;
    bra both;
zero:
    bar.arrive 1, 64;
    bar.sync 2, 64;
both:
"""
    yield Micro(
        ("barriers", "named barrier: arrival to wake-up"),
        kernel("k", named + begin() + loop(body) + end()),
        2 * TURNS,
        64,
    )


def everything() -> Iterator[Micro]:
    """All microbenchmarks of this file."""
    yield from instructions()
    yield from shared_memory()
    yield from barriers()
