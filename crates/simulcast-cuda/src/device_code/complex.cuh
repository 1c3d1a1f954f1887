// Operations on complex numbers: products are written out, quotients are Smith's; functions are computed in f64.

FN c128 pair(f64 re, f64 im) {
    c128 z = {re, im};
    return z;
}
FN c64 pair(f32 re, f32 im) {
    c64 z = {re, im};
    return z;
}

FN f64 infinity() { return f64_bits(0x7ff0000000000000ull); }
FN f64 not_a_number() { return f64_bits(0x7ff8000000000000ull); }
FN bool is_infinite(f64 x) { return fabs(x) == infinity(); }
FN bool is_finite(f64 x) { return fabs(x) < infinity(); }
FN f64 with_sign(f64 x, f64 sign) { return copysign(x, sign); }
FN f32 with_sign(f32 x, f32 sign) { return copysignf(x, sign); }
FN f64 larger(f64 a, f64 b) { return a > b || b != b ? a : b; }
FN f64 smaller(f64 a, f64 b) { return a < b || b != b ? a : b; }

// Whether `a` comes after `b`, or with it where `equal` says that this is enough.
template <class C> FN bool after(C a, C b, bool equal) {
    return (a.re > b.re && a.im == a.im && b.im == b.im) ||
           (a.re == b.re && (a.im > b.im || (equal && a.im == b.im)));
}

#define OF_COMPLEX(C, T)                                                                           \
    FN C op_add(C a, C b) { return pair(a.re + b.re, a.im + b.im); }                               \
    FN C op_subtract(C a, C b) { return pair(a.re - b.re, a.im - b.im); }                          \
    FN C op_multiply(C a, C b) {                                                                   \
        return pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);                         \
    }                                                                                              \
    FN C op_divide(C a, C b) {                                                                     \
        if (op_absolute(b.re) >= op_absolute(b.im)) {                                              \
            if (b.re == 0 && b.im == 0)                                                            \
                return pair(a.re / op_absolute(b.re), a.im / op_absolute(b.re));                   \
            const T ratio = b.im / b.re, scale = (T)1 / (b.re + b.im * ratio);                     \
            return pair((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);             \
        }                                                                                          \
        const T ratio = b.re / b.im, scale = (T)1 / (b.im + b.re * ratio);                         \
        return pair((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);                 \
    }                                                                                              \
    FN C op_multiply_add(C a, C b, C c) { return op_add(op_multiply(a, b), c); }                   \
    FN C op_negative(C a) { return pair(-a.re, -a.im); }                                           \
    FN C op_square(C a) {                                                                          \
        const T product = a.re * a.im;                                                             \
        return pair((a.re - a.im) * (a.re + a.im) + (T)0, product + product);                      \
    }                                                                                              \
    FN T op_absolute(C a) { return op_hypot(a.re, a.im); }                                         \
    FN C op_reciprocal(C a) {                                                                      \
        if (op_absolute(a.im) <= op_absolute(a.re)) {                                              \
            const T ratio = a.im / a.re, size = a.re + a.im * ratio;                               \
            return pair((T)1 / size, -ratio / size);                                               \
        }                                                                                          \
        const T ratio = a.re / a.im, size = a.re * ratio + a.im;                                   \
        return pair(ratio / size, (T)-1 / size);                                                   \
    }                                                                                              \
    FN C op_sign(C a) {                                                                            \
        const T size = op_hypot(a.re, a.im);                                                       \
        const bool re = op_isinf(a.re), im = op_isinf(a.im);                                       \
        if (size == 0) return pair((T)0, (T)0);                                                    \
        if (re && !im) return pair(with_sign((T)1, a.re), (T)0);                                   \
        if (im && !re) return pair((T)0, with_sign((T)1, a.im));                                   \
        if (re && im) return pair((T)not_a_number(), (T)not_a_number());                           \
        return pair(a.re / size, a.im / size);                                                     \
    }                                                                                              \
    FN C op_conjugate(C a) { return pair(a.re, -a.im); }                                           \
    FN T op_real(C a) { return a.re; }                                                             \
    FN T op_imag(C a) { return a.im; }                                                             \
    FN C op_round(C a) { return pair(op_round(a.re), op_round(a.im)); }                            \
    FN bool op_isnan(C a) { return a.re != a.re || a.im != a.im; }                                 \
    FN bool op_isinf(C a) { return op_isinf(a.re) || op_isinf(a.im); }                             \
    FN bool op_isfinite(C a) { return op_isfinite(a.re) && op_isfinite(a.im); }                    \
    FN bool op_equal(C a, C b) { return a.re == b.re && a.im == b.im; }                            \
    FN bool op_not_equal(C a, C b) { return !(a.re == b.re && a.im == b.im); }                     \
    FN bool op_less(C a, C b) { return after(b, a, false); }                                       \
    FN bool op_less_equal(C a, C b) { return after(b, a, true); }                                  \
    FN bool op_greater(C a, C b) { return after(a, b, false); }                                    \
    FN bool op_greater_equal(C a, C b) { return after(a, b, true); }                               \
    FN C op_maximum(C a, C b) { return op_isnan(a) || after(a, b, true) ? a : b; }                 \
    FN C op_minimum(C a, C b) { return op_isnan(a) || after(b, a, true) ? a : b; }

OF_COMPLEX(c64, f32)
OF_COMPLEX(c128, f64)

// i z and -i z, exactly.
FN c128 turned(c128 z) { return pair(-z.im, z.re); }
FN c128 turned_back(c128 z) { return pair(z.im, -z.re); }

#define LN_2 0.693147180559945309417
#define LOG2_E 1.44269504088896340736
#define LOG10_E 0.434294481903251827651
#define HALF_PI 1.57079632679489661923
// Beyond it the 1 that is added to a number is lost, and its square may be infinite.
#define LARGE 1e150
// Below it the square of a number may be lost, and is lost beside 1 in any case.
#define SMALL 1e-150
FN bool is_small(c128 z) { return fabs(z.re) < SMALL && fabs(z.im) < SMALL; }

FN c128 op_sqrt(c128 z) {
    f64 x = z.re, y = z.im;
    if (x == 0 && y == 0) return pair(0.0, y);
    if (is_infinite(y)) return pair(infinity(), y);
    if (is_infinite(x)) {
        const f64 small = y != y ? y : with_sign(0.0, y);
        return x > 0 ? pair(x, small) : pair(fabs(small), with_sign(fabs(x), y));
    }
    // Away from the ends of the range, where doubling would overflow or halving lose bits: by 2^108 and 2^-54.
    const f64 size = larger(fabs(x), fabs(y));
    f64 factor = 1, root = 1;
    if (size > 1e300) factor = 0.0625, root = 4;
    else if (size < 1e-290) factor = f64_bits(0x46b0000000000000ull), root = f64_bits(0x3c90000000000000ull);
    x *= factor, y *= factor;
    const f64 longer = sqrt((fabs(x) + hypot(x, y)) / 2), shorter = fabs(y) / (2 * longer);
    const f64 re = x >= 0 ? longer : shorter, im = x >= 0 ? shorter : longer;
    return pair(re * root, with_sign(im * root, z.im));
}

// scale e^(x + iy), in two steps where e^x alone would be infinite.
FN c128 scaled_exp(f64 scale, f64 x, f64 y) {
    const f64 first = scale * (x > 700 ? exp(x - 700) : exp(x)), rest = x > 700 ? exp(700.0) : 1.0;
    return pair(first * cos(y) * rest, first * sin(y) * rest);
}
FN c128 op_exp(c128 z) {
    const f64 x = z.re, y = z.im;
    if (y == 0) return pair(exp(x), y);
    if (x == -infinity() && !is_finite(y)) return pair(0.0, with_sign(0.0, y));
    if (x == infinity() && !is_finite(y)) return pair(x, not_a_number());
    return scaled_exp(1.0, x, y);
}
FN c128 op_exp2(c128 z) { return op_exp(pair(z.re * LN_2, z.im * LN_2)); }
FN c128 op_expm1(c128 z) {
    const f64 half = sin(z.im / 2);
    return pair(expm1(z.re) * cos(z.im) - 2 * half * half, exp(z.re) * sin(z.im));
}

// The logarithm of |z|.
FN f64 log_size(c128 z) {
    const f64 large = larger(fabs(z.re), fabs(z.im)), small = smaller(fabs(z.re), fabs(z.im));
    if (is_infinite(z.re) || is_infinite(z.im)) return infinity();
    if (large >= 0.5 && large <= 2 && hypot(z.re, z.im) < 3) {
        // Near 1, from what |z|^2 is more than 1; the square is split so that nothing is lost.
        const f64 a = large - 1, b = large + 1, product = a * b, rest = fma(a, b, -product);
        const f64 square = small * small, left = fma(small, small, -square);
        return log1p(product + square + (rest + left)) / 2;
    }
    const f64 scale = f64_bits(0x6570000000000000ull);
    if (large < 1e-300) return log(hypot(z.re * scale, z.im * scale)) - 600 * LN_2;
    if (large > 1e300) return log(hypot(z.re / 4, z.im / 4)) + 2 * LN_2;
    return log(hypot(z.re, z.im));
}
FN c128 op_log(c128 z) { return pair(log_size(z), atan2(z.im, z.re)); }
FN c128 op_log2(c128 z) {
    const c128 l = op_log(z);
    return pair(l.re * LOG2_E, l.im * LOG2_E);
}
FN c128 op_log10(c128 z) {
    const c128 l = op_log(z);
    return pair(l.re * LOG10_E, l.im * LOG10_E);
}
FN c128 op_log1p(c128 z) {
    const f64 im = atan2(z.im, 1 + z.re);
    // |1 + z|^2 = 1 + x (2 + x) + y^2
    if (larger(fabs(z.re), fabs(z.im)) < 0.5)
        return pair(log1p(z.re * (2 + z.re) + z.im * z.im) / 2, im);
    return pair(log_size(pair(1 + z.re, z.im)), im);
}

FN c128 op_sinh(c128 z) {
    const f64 x = z.re, y = z.im;
    if (y == 0) return pair(sinh(x), y);
    if (!is_finite(y) && (x == 0 || is_infinite(x)))
        return pair(x == 0 ? x : infinity(), not_a_number());
    if (fabs(x) > 700 && is_finite(x)) {
        const c128 both = scaled_exp(0.5, fabs(x), y);
        return pair(both.re * with_sign(1.0, x), both.im);
    }
    return pair(sinh(x) * cos(y), cosh(x) * sin(y));
}
FN c128 op_cosh(c128 z) {
    const f64 x = z.re, y = z.im;
    if (!is_finite(y) && (x == 0 || is_infinite(x)))
        return x == 0 ? pair(not_a_number(), 0.0) : pair(infinity(), not_a_number());
    if (y == 0) return pair(cosh(x), x != x ? y : y * with_sign(1.0, x));
    if (fabs(x) > 700 && is_finite(x)) {
        const c128 both = scaled_exp(0.5, fabs(x), y);
        return pair(both.re, both.im * with_sign(1.0, x));
    }
    return pair(cosh(x) * cos(y), sinh(x) * sin(y));
}
FN c128 op_tanh(c128 z) {
    const f64 x = z.re, y = z.im;
    if (y == 0) return pair(tanh(x), y);
    if (x == 0 && !is_finite(y)) return pair(x, not_a_number());
    if (!is_finite(y))
        return is_infinite(x) ? pair(with_sign(1.0, x), with_sign(0.0, y))
                              : pair(not_a_number(), not_a_number());
    if (fabs(x) > 20) {
        // One, but for terms below its last place; the imaginary part is still told from 0, and has its sign there.
        const f64 decay = exp(-fabs(x));
        return pair(with_sign(1.0, x), 4 * sin(y) * cos(y) * decay * decay);
    }
    const f64 tangent = tan(y), sine = sinh(x);
    const f64 beta = 1 + tangent * tangent, rho = sqrt(1 + sine * sine);
    if (is_infinite(tangent)) return pair(rho / sine, 1 / tangent);
    const f64 below = 1 + beta * sine * sine;
    return pair(beta * rho * sine / below, tangent / below);
}
FN c128 op_sin(c128 z) {
    if (is_infinite(z.im) && !is_finite(z.re)) return pair(not_a_number(), infinity());
    return turned_back(op_sinh(turned(z)));
}
FN c128 op_cos(c128 z) { return op_cosh(turned(z)); }
FN c128 op_tan(c128 z) { return turned_back(op_tanh(turned(z))); }

FN c128 op_arcsin(c128 z) {
    if ((z.re == 0 && z.im != z.im) || is_small(z)) return z;
    if (larger(fabs(z.re), fabs(z.im)) > LARGE)
        return pair(atan2(z.re, fabs(z.im)), with_sign(log_size(z) + LN_2, z.im));
    const c128 minus = op_sqrt(pair(1 - z.re, -z.im)), plus = op_sqrt(pair(1 + z.re, z.im));
    return pair(atan2(z.re, minus.re * plus.re - minus.im * plus.im),
                asinh(minus.re * plus.im - minus.im * plus.re));
}
FN c128 op_arccos(c128 z) {
    if (z.re == 0 && z.im != z.im) return pair(HALF_PI, z.im);
    if (is_small(z)) return pair(HALF_PI, -z.im);
    if (larger(fabs(z.re), fabs(z.im)) > LARGE)
        return pair(atan2(fabs(z.im), z.re), with_sign(log_size(z) + LN_2, -z.im));
    const c128 minus = op_sqrt(pair(1 - z.re, -z.im)), plus = op_sqrt(pair(1 + z.re, z.im));
    return pair(2 * atan2(minus.re, plus.re), asinh(plus.re * minus.im - plus.im * minus.re));
}
FN c128 op_arcsinh(c128 z) { return turned_back(op_arcsin(turned(z))); }
FN c128 op_arccosh(c128 z) {
    if (z.re == 0 && z.im != z.im) return pair(z.im, HALF_PI);
    if (is_small(z)) return pair(fabs(z.im), with_sign(HALF_PI, z.im));
    if (larger(fabs(z.re), fabs(z.im)) > LARGE)
        return pair(log_size(z) + LN_2, atan2(z.im, z.re));
    const c128 minus = op_sqrt(pair(z.re - 1, z.im)), plus = op_sqrt(pair(z.re + 1, z.im));
    return pair(asinh(minus.re * plus.re + minus.im * plus.im), 2 * atan2(minus.im, plus.re));
}
FN c128 op_arctanh(c128 z) {
    if (z.re == 0 && z.im != z.im) return z;
    const f64 x = fabs(z.re), y = z.im, size = larger(x, fabs(y));
    if (size > LARGE) {
        const f64 quarter = y != y ? y : with_sign(HALF_PI, y);
        if (!is_finite(size)) return pair(with_sign(0.0, z.re), quarter);
        if (x != x || y != y) return pair(not_a_number(), not_a_number());
        const f64 u = x / size, v = y / size;
        return pair(with_sign(u / (u * u + v * v) / size, z.re), quarter);
    }
    const f64 apart = (1 - x) * (1 - x) + y * y;
    // Beside the pole the square is 0, and its quotient infinite.
    const f64 re = x == 1 && fabs(y) < SMALL ? (LN_2 - log(fabs(y))) / 2 : log1p(4 * x / apart) / 4;
    return pair(with_sign(re, z.re), atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2);
}
FN c128 op_arctan(c128 z) { return turned_back(op_arctanh(turned(z))); }

// The product of Annex G of C99, in which a factor that is infinite makes an infinite product.
FN f64 boxed(f64 part) { return with_sign(is_infinite(part) ? 1.0 : 0.0, part); }
FN f64 unless_nan(f64 part) { return part != part ? with_sign(0.0, part) : part; }
FN bool is_infinite(c128 z) { return is_infinite(z.re) || is_infinite(z.im); }
FN c128 annex_g_product(c128 a, c128 b) {
    const c128 plain = op_multiply(a, b);
    if (plain.re == plain.re || plain.im == plain.im) return plain;
    c128 own = a, other = b;
    bool again = false;
    if (is_infinite(own)) {
        own = pair(boxed(own.re), boxed(own.im)), again = true;
        other = pair(unless_nan(other.re), unless_nan(other.im));
    }
    if (is_infinite(other)) {
        other = pair(boxed(other.re), boxed(other.im)), again = true;
        own = pair(unless_nan(own.re), unless_nan(own.im));
    }
    if (!again && (is_infinite(a.re * b.re) || is_infinite(a.im * b.im) ||
                   is_infinite(a.re * b.im) || is_infinite(a.im * b.re))) {
        own = pair(unless_nan(own.re), unless_nan(own.im)), again = true;
        other = pair(unless_nan(other.re), unless_nan(other.im));
    }
    if (!again) return plain;
    return pair(infinity() * (own.re * other.re - own.im * other.im),
                infinity() * (own.re * other.im + own.im * other.re));
}

// By products where the exponent is a small whole number; otherwise by the logarithm.
FN c128 op_power(c128 a, c128 b) {
    if (b.re == 0 && b.im == 0) return pair(1.0, 0.0);
    if (a.re == 0 && a.im == 0)
        return b.re > 0 ? pair(0.0, 0.0) : pair(not_a_number(), not_a_number());
    if (b.im == 0 && b.re == 1) return a;
    if (b.im == 0 && b.re == 2) return op_multiply(a, a);
    if (b.im == 0 && b.re == 3) return op_multiply(a, op_multiply(a, a));
    if (b.im == 0 && b.re == trunc(b.re) && fabs(b.re) < 100) {
        c128 made = pair(1.0, 0.0), square = a;
        for (u32 left = (u32)fabs(b.re); left > 0; left >>= 1) {
            if (left & 1) made = op_multiply(made, square);
            square = op_multiply(square, square);
        }
        return b.re < 0 ? op_divide(pair(1.0, 0.0), made) : made;
    }
    return op_exp(annex_g_product(b, op_log(a)));
}

#define ROUNDED(F) FN c64 F(c64 a) { return c64_of(F(c128_of(a))); }
ROUNDED(op_sqrt) ROUNDED(op_exp) ROUNDED(op_exp2) ROUNDED(op_expm1) ROUNDED(op_log) ROUNDED(op_log2)
ROUNDED(op_log10) ROUNDED(op_log1p) ROUNDED(op_sin) ROUNDED(op_cos) ROUNDED(op_tan) ROUNDED(op_sinh)
ROUNDED(op_cosh) ROUNDED(op_tanh) ROUNDED(op_arcsin) ROUNDED(op_arccos) ROUNDED(op_arctan)
ROUNDED(op_arcsinh) ROUNDED(op_arccosh) ROUNDED(op_arctanh)
FN c64 op_power(c64 a, c64 b) { return c64_of(op_power(c128_of(a), c128_of(b))); }
