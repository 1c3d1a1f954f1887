// Operations on truths, integers and floats, and conversions; the meaning of special cases is that of the engine's
// table (`Op`).

template <class T> struct Unsigned;
template <> struct Unsigned<i8> { typedef u32 type; };
template <> struct Unsigned<i16> { typedef u32 type; };
template <> struct Unsigned<i32> { typedef u32 type; };
template <> struct Unsigned<i64> { typedef u64 type; };
template <> struct Unsigned<u8> { typedef u32 type; };
template <> struct Unsigned<u16> { typedef u32 type; };
template <> struct Unsigned<u32> { typedef u32 type; };
template <> struct Unsigned<u64> { typedef u64 type; };

template <class T> FN bool is_signed() { return (T)-1 < (T)1; }
template <class T> FN T smallest() {
    return is_signed<T>() ? (T)((u64)1 << (8 * sizeof(T) - 1)) : (T)0;
}
template <class T> FN T largest() { return (T)~smallest<T>(); }

// Floats to 16 bits, rounded once, ties to even.

FN f32 widen(bf16 x) { return f32_bits((u32)x.bits << 16); }

#if __CUDA_ARCH__ >= 800
FN bf16 bf16_of(f32 x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
#else
FN bf16 bf16_of(f32 x) {
    const u32 bits = __float_as_uint(x);
    const u32 number = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const u32 nan = bits >> 16 | 0x40;
    bf16 made = {(u16)((bits & 0x7fffffff) > 0x7f800000 ? nan : number)};
    return made;
}
#endif

#ifdef SIMULCAST_HOST
FN f32 widen(f16 x) {
    const u32 sign = (u32)(x.bits & 0x8000) << 16, rest = x.bits & 0x7fff;
    // Scaled by 2^112, which is exact also of subnormal numbers.
    const f32 number = f32_bits(rest << 13) * f32_bits(0x77800000);
    const u32 magnitude = rest >= 0x7c00 ? 0x7f800000 | rest << 13 : __float_as_uint(number);
    return f32_bits(sign | magnitude);
}
FN f16 f16_of(f32 x) {
    const u32 bits = __float_as_uint(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    const u32 normal = (rest - ((127 - 15) << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    const u32 subnormal = __float_as_uint(f32_bits(rest) + 0.5f) - 0x3f000000;
    const u32 finite = rest < (127 - 14) << 23 ? subnormal : normal;
    const u32 number = rest < (127u + 16) << 23 ? finite : 0x7c00;
    f16 made = {(u16)(sign | (rest > 0x7f800000 ? 0x7e00 : number))};
    return made;
}
#else
FN f32 widen(f16 x) {
    f32 y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
FN f16 f16_of(f32 x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
#endif

// The number, or of its two neighbours the one whose last bit is set: it is on the same side of every midpoint of
// 16-bit floats, so that rounding it again is rounding once.
FN f32 to_odd(f64 x) {
    const f32 near = (f32)x;
    const f64 back = near;
    const u32 below = __float_as_uint(near) - (fabs(back) > fabs(x));
    return back < x || back > x ? f32_bits(below | 1) : near;
}

// An integer of 64 bits as a double that is on the same side of every midpoint.
FN f64 sided(i64 x) {
    const u64 size = x < 0 ? 0 - (u64)x : (u64)x;
    return size >> 53 == 0 ? (f64)x : (f64)((x & ~(i64)0xfff) | ((x & 0xfff) == 0 ? 0 : 0x800));
}
FN f64 sided(u64 x) {
    return x >> 53 == 0 ? (f64)x : (f64)((x & ~(u64)0xfff) | ((x & 0xfff) == 0 ? 0 : 0x800));
}

// Conversions between the types that values are computed in, and to those of memory.

template <class T, class F> FN T saturated(F x) {
    if (!(x == x)) return 0;
    if (x <= (F)smallest<T>()) return smallest<T>();
    if (x >= (F)(largest<T>() / 2 + 1) * 2) return largest<T>();
    return (T)x;
}

template <class T, class From> FN T int_of(From x) { return (T)x; }
template <class T> FN T int_of(f32 x) { return saturated<T, f32>(x); }
template <class T> FN T int_of(f64 x) { return saturated<T, f64>(x); }
template <class T> FN T int_of(c64 x) { return saturated<T, f32>(x.re); }
template <class T> FN T int_of(c128 x) { return saturated<T, f64>(x.re); }

template <class From> FN bool bool_of(From x) { return x != (From)0; }
FN bool bool_of(c64 x) { return x.re != 0 || x.im != 0; }
FN bool bool_of(c128 x) { return x.re != 0 || x.im != 0; }

template <class From> FN f32 f32_of(From x) { return (f32)x; }
FN f32 f32_of(c64 x) { return x.re; }
FN f32 f32_of(c128 x) { return (f32)x.re; }

template <class From> FN f64 f64_of(From x) { return (f64)x; }
FN f64 f64_of(c64 x) { return x.re; }
FN f64 f64_of(c128 x) { return x.re; }

FN f16 f16_of(f64 x) { return f16_of(to_odd(x)); }
FN bf16 bf16_of(f64 x) { return bf16_of(to_odd(x)); }
FN f16 f16_of(i64 x) { return f16_of(sided(x)); }
FN bf16 bf16_of(i64 x) { return bf16_of(sided(x)); }
FN f16 f16_of(u64 x) { return f16_of(sided(x)); }
FN bf16 bf16_of(u64 x) { return bf16_of(sided(x)); }
FN f16 f16_of(c64 x) { return f16_of(x.re); }
FN bf16 bf16_of(c64 x) { return bf16_of(x.re); }
FN f16 f16_of(c128 x) { return f16_of(x.re); }
FN bf16 bf16_of(c128 x) { return bf16_of(x.re); }
template <class From> FN f16 f16_of(From x) { return f16_of((f64)x); }
template <class From> FN bf16 bf16_of(From x) { return bf16_of((f64)x); }

template <class From> FN c64 c64_of(From x) {
    c64 made = {f32_of(x), 0};
    return made;
}
FN c64 c64_of(c64 x) { return x; }
FN c64 c64_of(c128 x) {
    c64 made = {(f32)x.re, (f32)x.im};
    return made;
}
template <class From> FN c128 c128_of(From x) {
    c128 made = {f64_of(x), 0};
    return made;
}
FN c128 c128_of(c128 x) { return x; }
FN c128 c128_of(c64 x) {
    c128 made = {x.re, x.im};
    return made;
}

// What is alike for truths, integers and floats.

template <class T> FN T op_where(bool c, T a, T b) { return c ? a : b; }
template <class T> FN bool op_logical_not(T a) { return !bool_of(a); }
template <class T> FN bool op_logical_and(T a, T b) { return bool_of(a) && bool_of(b); }
template <class T> FN bool op_logical_or(T a, T b) { return bool_of(a) || bool_of(b); }
template <class T> FN bool op_logical_xor(T a, T b) { return bool_of(a) != bool_of(b); }
template <class T> FN bool op_equal(T a, T b) { return a == b; }
template <class T> FN bool op_not_equal(T a, T b) { return a != b; }
template <class T> FN bool op_less(T a, T b) { return a < b; }
template <class T> FN bool op_less_equal(T a, T b) { return a <= b; }
template <class T> FN bool op_greater(T a, T b) { return a > b; }
template <class T> FN bool op_greater_equal(T a, T b) { return a >= b; }
template <class T> FN T op_conjugate(T a) { return a; }
template <class T> FN T op_real(T a) { return a; }
template <class T> FN T op_imag(T) { return (T)0; }

// Integers: they wrap, and a division by 0 gives 0.

template <class T> FN typename Unsigned<T>::type raw(T a) { return (typename Unsigned<T>::type)a; }

template <class T> FN T op_add(T a, T b) { return (T)(raw(a) + raw(b)); }
template <class T> FN T op_subtract(T a, T b) { return (T)(raw(a) - raw(b)); }
template <class T> FN T op_multiply(T a, T b) { return (T)(raw(a) * raw(b)); }
template <class T> FN T op_multiply_add(T a, T b, T c) { return (T)(raw(a) * raw(b) + raw(c)); }
template <class T> FN T op_negative(T a) { return (T)(0 - raw(a)); }
template <class T> FN T op_absolute(T a) { return a < (T)0 ? (T)(0 - raw(a)) : a; }

// Of signed integers of 8 and 16 bits these are made in 32 bits and cut. As operations of 16 bits the compiler leaves their
// results uncut where they become wider next: the negative of -32768 is then 32768 in a sum. The statement hides how the 32
// bits were made, so that it does not make them operations of 16 again.
FN i32 cut_later(i32 a) {
#ifndef SIMULCAST_HOST
    asm("" : "+r"(a));
#endif
    return a;
}
#define OF_NARROW(T)                                                                               \
    FN T op_subtract(T a, T b) { return (T)cut_later((i32)a - (i32)b); }                           \
    FN T op_multiply(T a, T b) { return (T)cut_later((i32)a * (i32)b); }                           \
    FN T op_negative(T a) { return (T)cut_later(-(i32)a); }                                        \
    FN T op_absolute(T a) { return (T)cut_later(a < 0 ? -(i32)a : (i32)a); }
OF_NARROW(i8)
OF_NARROW(i16)
#undef OF_NARROW

template <class T> FN T op_sign(T a) { return (T)((a > (T)0) - (a < (T)0)); }
template <class T> FN T op_square(T a) { return op_multiply(a, a); }
template <class T> FN T op_reciprocal(T a) {
    return a == (T)1 || (is_signed<T>() && a == (T)-1) ? a : (T)0;
}
template <class T> FN T op_relu(T a) { return a > (T)0 ? a : (T)0; }
template <class T> FN T op_floor(T a) { return a; }
template <class T> FN T op_ceil(T a) { return a; }
template <class T> FN T op_round(T a) { return a; }
template <class T> FN T op_trunc(T a) { return a; }
template <class T> FN bool op_isnan(T) { return false; }
template <class T> FN bool op_isinf(T) { return false; }
template <class T> FN bool op_isfinite(T) { return true; }
template <class T> FN T op_maximum(T a, T b) { return a > b ? a : b; }
template <class T> FN T op_minimum(T a, T b) { return a < b ? a : b; }
template <class T> FN T op_bitwise_not(T a) { return (T)~raw(a); }
template <class T> FN T op_bitwise_and(T a, T b) { return (T)(raw(a) & raw(b)); }
template <class T> FN T op_bitwise_or(T a, T b) { return (T)(raw(a) | raw(b)); }
template <class T> FN T op_bitwise_xor(T a, T b) { return (T)(raw(a) ^ raw(b)); }
template <class T> FN T op_left_shift(T a, T b) {
    return b >= (T)0 && (u64)b < 8 * sizeof(T) ? (T)(raw(a) << (u32)b) : (T)0;
}
template <class T> FN T op_right_shift(T a, T b) {
    const bool inside = b >= (T)0 && (u64)b < 8 * sizeof(T);
    // Of signed integers a shift copies the sign.
    return inside ? (T)(a >> (u32)b) : is_signed<T>() && a < (T)0 ? (T)-1 : (T)0;
}
template <class T> FN T op_trunc_divide(T a, T b) {
    if (b == (T)0) return 0;
    if (is_signed<T>() && b == (T)-1) return op_negative(a);
    return (T)(a / b);
}
template <class T> FN T op_fmod(T a, T b) {
    if (b == (T)0 || (is_signed<T>() && b == (T)-1)) return 0;
    return (T)(a % b);
}
template <class T> FN T op_floor_divide(T a, T b) {
    if (b == (T)0) return 0;
    if (is_signed<T>() && b == (T)-1) return op_negative(a);
    const T q = (T)(a / b);
    return (T)(a % b) != (T)0 && (a < (T)0) != (b < (T)0) ? (T)(q - 1) : q;
}
template <class T> FN T op_remainder(T a, T b) {
    const T left = op_fmod(a, b);
    return left != (T)0 && (left < (T)0) != (b < (T)0) ? (T)(left + b) : left;
}
template <class T> FN T op_power(T a, T b) {
    if (b < (T)0 && a != (T)1 && a != (T)-1) return 0;
    T power = 1, square = a;
    for (u64 left = b < (T)0 ? (u64)b & 1 : (u64)b; left != 0; left >>= 1) {
        if (left & 1) power = op_multiply(power, square);
        square = op_multiply(square, square);
    }
    return power;
}

// Truths: sums are or, products are and.

FN bool op_add(bool a, bool b) { return a || b; }
FN bool op_multiply(bool a, bool b) { return a && b; }
FN bool op_multiply_add(bool a, bool b, bool c) { return (a && b) || c; }
FN bool op_maximum(bool a, bool b) { return a || b; }
FN bool op_minimum(bool a, bool b) { return a && b; }
FN bool op_absolute(bool a) { return a; }
FN bool op_bitwise_not(bool a) { return !a; }
FN bool op_bitwise_and(bool a, bool b) { return a && b; }
FN bool op_bitwise_or(bool a, bool b) { return a || b; }
FN bool op_bitwise_xor(bool a, bool b) { return a != b; }
FN bool op_less(bool a, bool b) { return !a && b; }
FN bool op_less_equal(bool a, bool b) { return !a || b; }
FN bool op_greater(bool a, bool b) { return a && !b; }
FN bool op_greater_equal(bool a, bool b) { return a || !b; }

// Floats.

#define OF_FLOATS(T, S, INF)                                                                       \
    FN T op_add(T a, T b) { return a + b; }                                                        \
    FN T op_subtract(T a, T b) { return a - b; }                                                   \
    FN T op_multiply(T a, T b) { return a * b; }                                                   \
    FN T op_divide(T a, T b) { return a / b; }                                                     \
    FN T op_multiply_add(T a, T b, T c) { return fma##S(a, b, c); }                                \
    FN T op_negative(T a) { return -a; }                                                           \
    FN T op_absolute(T a) { return fabs##S(a); }                                                   \
    FN T op_sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a + (T)0; }                          \
    FN T op_square(T a) { return a * a; }                                                          \
    FN T op_reciprocal(T a) { return (T)1 / a; }                                                   \
    FN T op_relu(T a) { return a <= 0 ? (T)0 : a; }                                                \
    FN T op_sqrt(T a) { return sqrt##S(a); }                                                       \
    FN T op_cbrt(T a) { return cbrt##S(a); }                                                       \
    FN T op_exp(T a) { return exp##S(a); }                                                         \
    FN T op_exp2(T a) { return exp2##S(a); }                                                       \
    FN T op_expm1(T a) { return expm1##S(a); }                                                     \
    FN T op_log(T a) { return log##S(a); }                                                         \
    FN T op_log2(T a) { return log2##S(a); }                                                       \
    FN T op_log10(T a) { return log10##S(a); }                                                     \
    FN T op_log1p(T a) { return log1p##S(a); }                                                     \
    FN T op_sin(T a) { return sin##S(a); }                                                         \
    FN T op_cos(T a) { return cos##S(a); }                                                         \
    FN T op_tan(T a) { return tan##S(a); }                                                         \
    FN T op_arcsin(T a) { return asin##S(a); }                                                     \
    FN T op_arccos(T a) { return acos##S(a); }                                                     \
    FN T op_arctan(T a) { return atan##S(a); }                                                     \
    FN T op_sinh(T a) { return sinh##S(a); }                                                       \
    FN T op_cosh(T a) { return cosh##S(a); }                                                       \
    FN T op_tanh(T a) { return tanh##S(a); }                                                       \
    FN T op_arcsinh(T a) { return asinh##S(a); }                                                   \
    FN T op_arccosh(T a) { return acosh##S(a); }                                                   \
    FN T op_arctanh(T a) { return atanh##S(a); }                                                   \
    FN T op_erf(T a) { return erf##S(a); }                                                         \
    FN T op_sigmoid(T a) {                                                                         \
        /* Of -|a|, whose exponential is never infinite. */                                        \
        const T e = exp##S(-fabs##S(a));                                                           \
        return (a < 0 ? e : (T)1) / ((T)1 + e);                                                    \
    }                                                                                              \
    FN T op_softsign(T a) { return a / ((T)1 + fabs##S(a)); }                                      \
    FN T op_floor(T a) { return floor##S(a); }                                                     \
    FN T op_ceil(T a) { return ceil##S(a); }                                                       \
    FN T op_round(T a) { return rint##S(a); }                                                      \
    FN T op_trunc(T a) { return trunc##S(a); }                                                     \
    FN bool op_isnan(T a) { return a != a; }                                                       \
    FN bool op_isinf(T a) { return fabs##S(a) == INF; }                                            \
    FN bool op_isfinite(T a) { return fabs##S(a) < INF; }                                          \
    FN T op_fmod(T a, T b) { return fmod##S(a, b); }                                               \
    FN T op_power(T a, T b) { return pow##S(a, b); }                                               \
    FN T op_arctan2(T a, T b) { return atan2##S(a, b); }                                           \
    FN T op_hypot(T a, T b) { return hypot##S(a, b); }                                             \
    FN T op_maximum(T a, T b) { return a != a ? a : a > b ? a : b; }                               \
    FN T op_minimum(T a, T b) { return a != a ? a : a < b ? a : b; }                               \
    FN T op_floor_divide(T a, T b) {                                                               \
        if (b == 0) return a / b;                                                                  \
        const T left = fmod##S(a, b);                                                              \
        const bool below = left != 0 && (b < 0) != (left < 0);                                     \
        const T q = (a - left) / b - (below ? (T)1 : (T)0);                                        \
        if (q == 0) return copysign##S((T)0, a / b);                                               \
        const T whole = floor##S(q);                                                               \
        return q - whole > (T)0.5 ? whole + (T)1 : whole;                                          \
    }                                                                                              \
    FN T op_remainder(T a, T b) {                                                                  \
        const T left = fmod##S(a, b);                                                              \
        if (b == 0 || left != left) return left;                                                   \
        if (left == 0) return copysign##S((T)0, b);                                                \
        return (b < 0) != (left < 0) ? left + b : left;                                            \
    }

OF_FLOATS(f32, f, f32_bits(0x7f800000u))
OF_FLOATS(f64, , f64_bits(0x7ff0000000000000ull))
