"""PTX in which each integer operation makes an address that is stored to."""

WORDS = """
div.s32 %r9, %r1, %r2;
div.u32 %r9, %r1, %r2;
rem.s32 %r9, %r1, %r2;
rem.u32 %r9, %r1, %r2;
div.s32 %r9, %r1, 7;
div.u32 %r9, %r1, 641;
rem.s32 %r9, %r1, 12;
mul.hi.s32 %r9, %r1, %r2;
mul.hi.u32 %r9, %r1, %r2;
mad.hi.u32 %r9, %r1, %r2, %r3;
mad.lo.s32 %r9, %r1, %r2, %r3;
shl.b32 %r9, %r1, %r4;
shr.u32 %r9, %r1, %r4;
shr.s32 %r9, %r1, %r4;
shf.l.wrap.b32 %r9, %r1, %r2, %r4;
shf.r.wrap.b32 %r9, %r1, %r2, %r4;
shf.l.clamp.b32 %r9, %r1, %r2, %r4;
shf.r.clamp.b32 %r9, %r1, %r2, %r4;
bfe.u32 %r9, %r1, 3, 7;
bfe.s32 %r9, %r1, 3, 7;
bfe.u32 %r9, %r1, %r4, 7;
bfi.b32 %r9, %r1, %r2, 5, 9;
prmt.b32 %r9, %r1, %r2, 0x7531;
prmt.b32 %r9, %r1, %r2, 0x8fb2;
prmt.b32 %r9, %r1, %r2, %r3;
min.s32 %r9, %r1, %r2;
max.s32 %r9, %r1, %r2;
min.u32 %r9, %r1, %r2;
max.u32 %r9, %r1, %r2;
abs.s32 %r9, %r1;
neg.s32 %r9, %r1;
popc.b32 %r9, %r1;
clz.b32 %r9, %r1;
brev.b32 %r9, %r1;
bfind.u32 %r9, %r1;
bfind.s32 %r9, %r1;
not.b32 %r9, %r1;
and.b32 %r9, %r1, %r2; xor.b32 %r9, %r9, %r3;
or.b32 %r9, %r1, %r2; and.b32 %r9, %r9, %r3;
xor.b32 %r9, %r1, %r2; or.b32 %r9, %r9, %r3;
lop3.b32 %r9, %r1, %r2, %r3, 0x1b;
lop3.b32 %r9, %r1, %r2, %r3, 0xd8;
setp.lt.s32 %p1, %r1, %r2; selp.b32 %r9, %r3, %r1, %p1;
setp.hi.u32 %p1, %r1, %r2; selp.b32 %r9, %r3, %r1, %p1;
setp.ne.s32 %p1, %r1, %r2; setp.gt.and.s32 %p1, %r1, %r3, %p1; selp.b32 %r9, %r3, 5, %p1;
setp.lt.s32 %p1, %r1, %r2; setp.lt.s32 %p2, %r2, %r3; xor.pred %p1, %p1, %p2; selp.b32 %r9, %r3, 5, %p1;
cvt.s32.s8 %r9, %r1;
cvt.s32.s16 %r9, %r1;
cvt.u32.u8 %r9, %r1;
mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r9, {%rs2, %rs1};
mov.b32 {%rs1, %rs2}, %r1; add.s16 %rs1, %rs1, %rs2; cvt.u32.u16 %r9, %rs1;
shr.s32 %r9, %r1, 31; shr.u32 %r9, %r9, 26; add.s32 %r9, %r9, %r1; shr.s32 %r9, %r9, 6;
mul.wide.s32 %rd9, %r1, %r2; cvt.u32.u64 %r9, %rd9;
add.cc.u32 %r9, %r1, %r2; addc.u32 %r9, %r3, 0;
"""
"""Operations that leave 32 bits in %r9."""
PAIRS = """
div.s64 %rd9, %rd1, %rd2;
div.u64 %rd9, %rd1, %rd2;
rem.s64 %rd9, %rd1, %rd2;
rem.u64 %rd9, %rd1, %rd2;
mul.lo.s64 %rd9, %rd1, %rd2;
mul.hi.u64 %rd9, %rd1, %rd2;
mul.hi.s64 %rd9, %rd1, %rd2;
sub.s64 %rd9, %rd1, %rd2;
neg.s64 %rd9, %rd1;
abs.s64 %rd9, %rd1;
min.s64 %rd9, %rd1, %rd2;
max.u64 %rd9, %rd1, %rd2;
shl.b64 %rd9, %rd1, %r4;
shr.u64 %rd9, %rd1, %r4;
shr.s64 %rd9, %rd1, %r4;
shr.s64 %rd9, %rd1, 5;
shr.u64 %rd9, %rd1, 37;
xor.b64 %rd9, %rd1, %rd2; or.b64 %rd9, %rd9, 4611686293305294848;
bfe.u64 %rd9, %rd1, 7, 21;
bfe.s64 %rd9, %rd1, 7, 21;
popc.b64 %r9, %rd1; cvt.u64.u32 %rd9, %r9;
clz.b64 %r9, %rd1; cvt.u64.u32 %rd9, %r9;
brev.b64 %rd9, %rd1;
setp.lt.s64 %p1, %rd1, %rd2; selp.b64 %rd9, %rd1, 77, %p1;
setp.hi.u64 %p1, %rd1, %rd2; selp.b64 %rd9, %rd1, 77, %p1;
setp.eq.s64 %p1, %rd1, %rd2; selp.b64 %rd9, %rd1, 77, %p1;
mad.wide.s32 %rd9, %r1, %r2, %rd1;
mad.wide.u32 %rd9, %r1, 24, %rd1;
mul.wide.s32 %rd9, %r1, -3;
cvt.s64.s32 %rd9, %r1;
mov.b64 {%r8, %r9}, %rd1; mov.b64 %rd9, {%r9, %r8};
"""
"""Operations that leave 64 bits in %rd9."""
KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry operations(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d)
.reqntid 64
{
.reg .pred %p<4>; .reg .b16 %rs<6>; .reg .b32 %r<12>; .reg .b64 %rd<12>;
"""
FROM_MEMORY = """
ld.param.u64 %rd3, [c];
ld.global.u32 %r1, [%rd3]; ld.global.u32 %r2, [%rd3+4]; ld.global.u32 %r3, [%rd3+8]; ld.global.u32 %r4, [%rd3+12];
ld.global.u64 %rd1, [%rd3+16]; ld.global.u64 %rd2, [%rd3+24];
"""
FROM_PARAMETERS = """
ld.param.u32 %r1, [d]; ld.param.u32 %r2, [a]; ld.param.u32 %r3, [a+4]; ld.param.u32 %r4, [b];
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
"""


def kernel(begin: str) -> str:
    """Each operation, and a store to the address that it makes."""
    lines = [f"{each} cvt.u64.u32 %rd9, %r9;" for each in WORDS.strip().split("\n")] + PAIRS.strip().split("\n")
    stores = "\n".join(f"{each}\nst.global.u32 [%rd9+{64 * number}], 0;" for number, each in enumerate(lines))
    return f"{KERNEL}{begin}{stores}\nret;\n}}\n"
