// Stand-in for the header of the vector unit, which comes with the vendor's compiler and not with its wheel.
//
// Declarations for syntax only: kernels call functions of `api/compute/`, whose bodies use these names. Vectors of all
// kinds convert to each other here, so a mistake inside of the vendor's bodies would not show; those in calls do.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#define sfpi_inline inline
#define v_if(condition) { if ((condition).any()) {
#define v_elseif(condition) } else if ((condition).any()) {
#define v_else } else {
#define v_endif } }
#define v_block {
#define v_endblock }
#define v_and(condition) (void)(condition)

namespace sfpi {
struct vBool {
    bool any() const;
    vBool operator&&(vBool) const;
    vBool operator||(vBool) const;
    vBool operator!() const;
};

enum class Kind { Float, Int, UInt, Mag, SMag, F16a, F16b, U16, U8, SM16, SM8, Lut, Register };

template <Kind K>
struct Vector {
    Vector() = default;
    Vector(const Vector&) = default;
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>>
    Vector(T);
    template <Kind L>
    Vector(Vector<L>);
    Vector& operator=(const Vector&) = default;
    Vector operator-() const;
    Vector operator~() const;
    Vector operator++(int);
    Vector operator--(int);
    Vector& operator++();
    Vector& operator--();
    template <auto Mode = 0>
    Vector& mode(int = 0);
    template <auto Mode = 0>
    const Vector& mode(int = 0) const;
    uint32_t get() const;
    void in_use() const;
    bool any() const;
};

#define STAND_IN_OPERATOR(op, Result)                                                    \
    template <Kind K, Kind L>                                                            \
    Result operator op(Vector<K>, Vector<L>);                                            \
    template <Kind K, typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>  \
    Result operator op(Vector<K>, T);                                                    \
    template <Kind K, typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>  \
    Result operator op(T, Vector<K>);
#define STAND_IN_ASSIGNMENT(op)           \
    template <Kind K, typename T>         \
    Vector<K>& operator op(Vector<K>&, T);

STAND_IN_OPERATOR(+, Vector<K>)
STAND_IN_OPERATOR(-, Vector<K>)
STAND_IN_OPERATOR(*, Vector<K>)
STAND_IN_OPERATOR(&, Vector<K>)
STAND_IN_OPERATOR(|, Vector<K>)
STAND_IN_OPERATOR(^, Vector<K>)
STAND_IN_OPERATOR(<<, Vector<K>)
STAND_IN_OPERATOR(>>, Vector<K>)
STAND_IN_OPERATOR(==, vBool)
STAND_IN_OPERATOR(!=, vBool)
STAND_IN_OPERATOR(<, vBool)
STAND_IN_OPERATOR(<=, vBool)
STAND_IN_OPERATOR(>, vBool)
STAND_IN_OPERATOR(>=, vBool)
STAND_IN_ASSIGNMENT(+=)
STAND_IN_ASSIGNMENT(-=)
STAND_IN_ASSIGNMENT(*=)
STAND_IN_ASSIGNMENT(&=)
STAND_IN_ASSIGNMENT(|=)
STAND_IN_ASSIGNMENT(^=)
STAND_IN_ASSIGNMENT(<<=)
STAND_IN_ASSIGNMENT(>>=)

using vFloat = Vector<Kind::Float>;
using vInt = Vector<Kind::Int>;
using vUInt = Vector<Kind::UInt>;
using vMag = Vector<Kind::Mag>;
using vSMag = Vector<Kind::SMag>;
using vFloat16a = Vector<Kind::F16a>;
using vFloat16b = Vector<Kind::F16b>;
using vUInt16 = Vector<Kind::U16>;
using vUInt8 = Vector<Kind::U8>;
using vSMag16 = Vector<Kind::SM16>;
using vSMag8 = Vector<Kind::SM8>;

struct vLut : Vector<Kind::Lut> {
    template <typename... T>
    vLut(T...);
};
using vLut16ss = vLut;
using vLut16ii = vLut;
using vLut8si = vLut;

using sFloat16a = vFloat16a;
using sFloat16b = vFloat16b;

enum class DataLayout { Default, FSrcB, F16a, F16b, F32, I32, SM32, I8, U16, HI16, I16, LO16, U32, U8 };
enum class ExponentMode { Unbiased, Biased };
enum class MantissaMode { FractionOnly, ImplicitOne };
enum class ShiftMode { Logical, Arithmetic };
enum class RoundMode { Nearest, NearestEven, NearestStochastic, Stochastic, Zero };
enum class LutSign { Retain, Update };
enum class LZMode { All, NoSign };
enum class LdexpMode { Correct, Fast };
enum class FractionalHalf { Low, High };
enum class LRegs { LReg0, LReg1, LReg2, LReg3, LReg4, LReg5, LReg6, LReg7 };

struct Registers {
    Vector<Kind::Register>& operator[](int) const;
    Vector<Kind::Register>& operator[](LRegs) const;
    const Registers& operator++(int) const;
    const Registers& operator++() const;
    const Registers& operator+=(int) const;
};
inline constexpr Registers dst_reg{}, l_reg{};
inline Vector<Kind::Float> vConst0, vConst1, vConst0p8373, vConstNeg1, vConstFloatPrgm0, vConstFloatPrgm1, vConstFloatPrgm2;
inline Vector<Kind::Int> vConstIntPrgm0, vConstIntPrgm1, vConstIntPrgm2, vConstTileId;

template <typename To, typename From>
To as(From);
template <typename To, typename From>
To reinterpret(From);
template <typename To, typename From>
To convert(From, RoundMode = RoundMode::Nearest);

#define STAND_IN_SAME(name)           \
    template <Kind K, typename... T>  \
    Vector<K> name(Vector<K>, T...);  \
    template <Kind K>                 \
    Vector<K> name(float, Vector<K>);
#define STAND_IN_OF(Result, name)  \
    template <typename... T>       \
    Result name(T...);
STAND_IN_SAME(abs)
STAND_IN_SAME(setexp)
STAND_IN_SAME(copyexp)
STAND_IN_SAME(addexp)
STAND_IN_SAME(setman)
STAND_IN_SAME(copyman)
STAND_IN_SAME(setsgn)
STAND_IN_SAME(setsgn2)
STAND_IN_SAME(copysgn)
STAND_IN_SAME(ldexp)
STAND_IN_SAME(shft)
STAND_IN_SAME(min)
STAND_IN_SAME(max)
STAND_IN_SAME(clamp)
STAND_IN_SAME(symmetric_clamp)
STAND_IN_OF(vInt, exexp)
STAND_IN_OF(vInt, exexp_nodebias)
STAND_IN_OF(vMag, exman)
STAND_IN_OF(vInt, exman8)
STAND_IN_OF(vInt, exman9)
STAND_IN_OF(vUInt, exsgn)
STAND_IN_OF(vMag, lz)
STAND_IN_OF(vFloat, lut)
STAND_IN_OF(vFloat, lut2)
STAND_IN_OF(vFloat, lut_sign)
STAND_IN_OF(vFloat, lut2_sign)
STAND_IN_OF(vFloat, polynomial)
STAND_IN_OF(vBool, nearby)
STAND_IN_OF(vFloat, approx_recip)
STAND_IN_OF(vFloat, approx_exp)
STAND_IN_OF(vFloat, int32_to_float)
STAND_IN_OF(vFloat, float_to_fp16a)
STAND_IN_OF(vFloat, float_to_fp16b)
STAND_IN_OF(vInt, float_to_int16)
STAND_IN_OF(vUInt, float_to_uint16)
STAND_IN_OF(vUInt, float_to_uint8)
STAND_IN_OF(vBool, is_nan)
STAND_IN_OF(vBool, is_inf)
STAND_IN_OF(vBool, is_finite)
STAND_IN_OF(vBool, is_zero)
STAND_IN_OF(vBool, is_pos)
STAND_IN_OF(vBool, is_neg)
STAND_IN_OF(vInt, rand)
struct lreg_pressure {};
template <Kind K>
std::pair<Vector<K>, Vector<K>> min_max(Vector<K>, Vector<K>);
template <Kind K>
void swap(Vector<K>&, Vector<K>&);
template <Kind K>
void vec_swap(Vector<K>&, Vector<K>&);
template <Kind K>
void vec_min_max(Vector<K>&, Vector<K>&);

// Fields of instructions; what they are is of no interest to a parser.
enum : unsigned {
    SFPABS_MOD1_INT, SFPAND_MOD1_USE_VB, SFPARECIP_MOD1_RECIP, SFPCAST_MOD1_INT32_TO_FP32_RNE,
    SFPCAST_MOD1_SM32_TO_FP32_RNE, SFPCFG_DEST_MISC, SFPCFG_DEST_SEQUENCE_BASE, SFPENCC_IMM12_BOTH,
    SFPENCC_MOD1_EI_RI, SFPENCC_MOD1_EU_R1, SFPEXEXP_MOD1_SET_CC_COMP_EXP, SFPEXEXP_MOD1_SET_CC_SGN_EXP,
    SFPEXMAN_MOD1_PAD9, SFPGT_MOD1_SET_ALL_ONES, SFPGT_MOD1_SET_CC, SFPGT_MOD1_SET_VD,
    SFPIADD_MOD1_ARG_2SCOMP_LREG_DST, SFPIADD_MOD1_ARG_IMM, SFPIADD_MOD1_ARG_LREG_DST, SFPIADD_MOD1_CC_GTE0,
    SFPIADD_MOD1_CC_LT0, SFPIADD_MOD1_CC_NONE, SFPLE_MOD1_SET_CC, SFPLE_MOD1_SET_VD, SFPLOADI_MOD0_,
    SFPLOADI_MOD0_FLOATA, SFPLOADI_MOD0_FLOATB, SFPLOADI_MOD0_LOWER, SFPLOADI_MOD0_SHORT, SFPLOADI_MOD0_UPPER,
    SFPLOADI_MOD0_USHORT, SFPLOAD_MOD0_FMT_FP16B, SFPLOAD_MOD0_FMT_SRCB, SFPLZ_MOD1_CC_NE0,
    SFPMAD_MOD1_INDIRECT_VA, SFPMAD_MOD1_INDIRECT_VD, SFPMAD_MOD1_NEGATE_VA, SFPMAD_MOD1_NEGATE_VC,
    SFPMAD_MOD1_OFFSET_NONE, SFPMOV_MOD1_NEGATE, SFPMUL24_MOD1_LOWER, SFPMUL24_MOD1_UPPER, SFPSETCC_MOD1_LREG_EQ0,
    SFPSETCC_MOD1_LREG_GTE0, SFPSETCC_MOD1_LREG_LT0, SFPSETCC_MOD1_LREG_NE0, SFPSETEXP_MOD1_ARG_EXPONENT,
    SFPSETSGN_MOD1_ARG_IMM, SFPSHFT2_MOD1_SHFT_IMM, SFPSHFT2_MOD1_SHFT_LREG, SFPSHFT2_MOD1_SUBVEC_SHFLROR1,
    SFPSHFT2_MOD1_SUBVEC_SHFLSHR1, SFPSHFT_MOD1_ARG_IMM, SFPSHFT_MOD1_ARG_IMM_USE_VC, SFPSHFT_MOD1_SHIFT_IMM,
    SFPSTOCHRND_MOD1_FP32_TO_FP16B, SFPSTOCHRND_MOD1_FP32_TO_INT16, SFPSTOCHRND_MOD1_FP32_TO_INT8,
    SFPSTOCHRND_MOD1_FP32_TO_UINT16, SFPSTOCHRND_MOD1_FP32_TO_UINT8, SFPSTOCHRND_RND_EVEN, SFPSTORE_MOD0_FMT_FP16B,
    SFPSTORE_MOD0_FMT_LO16, SFPSTORE_MOD0_FMT_SRCB, SFPSWAP_MOD1_SWAP, SFPSWAP_MOD1_VEC_MIN_MAX,
    SFP_DESTREG_STRIDE = 2
};
}  // namespace sfpi

sfpi::vFloat __builtin_rvtt_sfpmad(uint32_t, uint32_t, uint32_t, unsigned);
