//! Operations on complex numbers, in order of the real part and then of the imaginary one.
//!
//! Products are written out and quotients are Smith's, as in NumPy: neither guards against an
//! overflow in the middle. Squares do. The functions of `complex64` are computed in `f64` and rounded once.

use num_complex::Complex;

use super::{Kernels, bodies};
use crate::math::Real;
use crate::ops::complex_functions;
use crate::ops::float::Float;
use crate::{Level, Op};

/// A complex number.
pub(crate) trait Number: Copy {
    type Part: Float;
    fn parts(self) -> (Self::Part, Self::Part);
    fn of(real: Self::Part, imag: Self::Part) -> Self;
    /// A function that is computed in `f64`.
    fn via(self, function: impl Fn(Complex<f64>) -> Complex<f64>) -> Self {
        let (real, imag) = self.parts();
        let value = function(Complex { re: real.wide(), im: imag.wide() });
        Self::of(Self::Part::narrow(value.re), Self::Part::narrow(value.im))
    }
}

impl<T: Float> Number for Complex<T> {
    type Part = T;
    #[inline(always)]
    fn parts(self) -> (T, T) {
        (self.re, self.im)
    }
    #[inline(always)]
    fn of(real: T, imag: T) -> Self {
        Self { re: real, im: imag }
    }
}

/// The loops of an operation on complex numbers with such parts.
pub(crate) fn complex<T: Float>(op: Op, level: Level) -> Option<Kernels> {
    number::<Complex<T>>(op, level)
}

bodies! {
    /// The loops of an operation on complex numbers.
    fn number<T: Number>;
    light Negative(a) -> T { each(a, |part| -part) }
    light Square(a) -> T { square(a) }
    heavy Sign(a) -> T { sign(a) }
    heavy Reciprocal(a) -> T { reciprocal(a) }
    heavy Sqrt(a) -> T { a.via(complex_functions::sqrt) }
    heavy Exp(a) -> T { a.via(complex_functions::exp) }
    heavy Exp2(a) -> T { a.via(complex_functions::exp2) }
    heavy Expm1(a) -> T { a.via(complex_functions::expm1) }
    heavy Log(a) -> T { a.via(complex_functions::log) }
    heavy Log2(a) -> T { a.via(complex_functions::log2) }
    heavy Log10(a) -> T { a.via(complex_functions::log10) }
    heavy Log1p(a) -> T { a.via(complex_functions::log1p) }
    heavy Sin(a) -> T { a.via(complex_functions::sin) }
    heavy Cos(a) -> T { a.via(complex_functions::cos) }
    heavy Tan(a) -> T { a.via(complex_functions::tan) }
    heavy Arcsin(a) -> T { a.via(complex_functions::arcsin) }
    heavy Arccos(a) -> T { a.via(complex_functions::arccos) }
    heavy Arctan(a) -> T { a.via(complex_functions::arctan) }
    heavy Sinh(a) -> T { a.via(complex_functions::sinh) }
    heavy Cosh(a) -> T { a.via(complex_functions::cosh) }
    heavy Tanh(a) -> T { a.via(complex_functions::tanh) }
    heavy Arcsinh(a) -> T { a.via(complex_functions::arcsinh) }
    heavy Arccosh(a) -> T { a.via(complex_functions::arccosh) }
    heavy Arctanh(a) -> T { a.via(complex_functions::arctanh) }
    light Conjugate(a) -> T { T::of(a.parts().0, -a.parts().1) }
    light Real(a) -> T::Part { a.parts().0 }
    light Imag(a) -> T::Part { a.parts().1 }
    light Round(a) -> T { each(a, Float::round) }
    tiled Absolute(a) -> T::Part { a.parts().0.hypot::<FMA>(a.parts().1) }
    light LogicalNot(a) -> u8 { u8::from(!truth(a)) }
    light Isnan(a) -> u8 { u8::from(nan(a)) }
    light Isinf(a) -> u8 { u8::from(any(a, |part| part.magnitude() == T::Part::INFINITY)) }
    light Isfinite(a) -> u8 {
        u8::from(a.parts().0.magnitude() < T::Part::INFINITY)
            & u8::from(a.parts().1.magnitude() < T::Part::INFINITY)
    }
    light Add(a, b) -> T { add(a, b) }
    light Subtract(a, b) -> T { subtract(a, b) }
    light Multiply(a, b) -> T { multiply(a, b) }
    heavy Divide(a, b) -> T { divide(a, b) }
    heavy Power(a, b) -> T {
        a.via(|a| complex_functions::power(a, Complex { re: b.parts().0.wide(), im: b.parts().1.wide() }))
    }
    heavy Maximum(a, b) -> T { maximum(a, b) }
    heavy Minimum(a, b) -> T { minimum(a, b) }
    light LogicalAnd(a, b) -> u8 { u8::from(truth(a)) & u8::from(truth(b)) }
    light LogicalOr(a, b) -> u8 { u8::from(truth(a)) | u8::from(truth(b)) }
    light LogicalXor(a, b) -> u8 { u8::from(truth(a)) ^ u8::from(truth(b)) }
    light Equal(a, b) -> u8 { u8::from(a.parts() == b.parts()) }
    light NotEqual(a, b) -> u8 { u8::from(a.parts() != b.parts()) }
    heavy Less(a, b) -> u8 { u8::from(greater(b, a, false)) }
    heavy LessEqual(a, b) -> u8 { u8::from(greater(b, a, true)) }
    light MultiplyAdd(a, b, c) -> T { add(multiply(a, b), c) }
}

#[inline(always)]
fn each<T: Number>(a: T, f: impl Fn(T::Part) -> T::Part) -> T {
    let (real, imag) = a.parts();
    T::of(f(real), f(imag))
}

#[inline(always)]
fn any<T: Number>(a: T, f: impl Fn(T::Part) -> bool) -> bool {
    let (real, imag) = a.parts();
    f(real) | f(imag)
}

#[inline(always)]
fn truth<T: Number>(a: T) -> bool {
    any(a, |part| part != T::Part::ZERO)
}

#[inline(always)]
pub(crate) fn nan<T: Number>(a: T) -> bool {
    any(a, Float::nan)
}

#[inline(always)]
pub(crate) fn add<T: Number>(a: T, b: T) -> T {
    T::of(a.parts().0 + b.parts().0, a.parts().1 + b.parts().1)
}

#[inline(always)]
fn subtract<T: Number>(a: T, b: T) -> T {
    T::of(a.parts().0 - b.parts().0, a.parts().1 - b.parts().1)
}

#[inline(always)]
pub(crate) fn multiply<T: Number>(a: T, b: T) -> T {
    let ((ar, ai), (br, bi)) = (a.parts(), b.parts());
    T::of(ar * br - ai * bi, ar * bi + ai * br)
}

/// The real part as `(x - y) * (x + y)`: it neither overflows nor cancels where the squares of the parts would. A zero is
/// positive, as that of a difference of squares.
#[inline(always)]
fn square<T: Number>(a: T) -> T {
    let (real, imag) = a.parts();
    let product = real * imag;
    T::of((real - imag) * (real + imag) + T::Part::ZERO, product + product)
}

/// Whether `a` comes after `b`, or with it where `equal` says that this is enough.
#[inline(always)]
pub(crate) fn greater<T: Number>(a: T, b: T, equal: bool) -> bool {
    let ((ar, ai), (br, bi)) = (a.parts(), b.parts());
    let ahead = ar > br && !ai.nan() && !bi.nan();
    ahead || ar == br && (ai > bi || equal && ai == bi)
}

/// The later one, or the first that is not a number.
#[inline(always)]
pub(crate) fn maximum<T: Number>(a: T, b: T) -> T {
    if nan(a) || greater(a, b, true) { a } else { b }
}

/// The earlier one, or the first that is not a number.
#[inline(always)]
pub(crate) fn minimum<T: Number>(a: T, b: T) -> T {
    if nan(a) || greater(b, a, true) { a } else { b }
}

/// Smith's quotient: the smaller part of the divisor is measured by the larger one.
#[inline(always)]
pub(crate) fn divide<T: Number>(a: T, b: T) -> T {
    let ((ar, ai), (br, bi)) = (a.parts(), b.parts());
    if br.magnitude() >= bi.magnitude() {
        if br == T::Part::ZERO && bi == T::Part::ZERO {
            return T::of(ar / br.magnitude(), ai / br.magnitude());
        }
        let ratio = bi / br;
        let scale = T::Part::ONE / (br + bi * ratio);
        T::of((ar + ai * ratio) * scale, (ai - ar * ratio) * scale)
    } else {
        let ratio = br / bi;
        let scale = T::Part::ONE / (bi + br * ratio);
        T::of((ar * ratio + ai) * scale, (ai * ratio - ar) * scale)
    }
}

/// `1 / a`, measured by the larger part.
#[inline(always)]
pub(crate) fn reciprocal<T: Number>(a: T) -> T {
    let (real, imag) = a.parts();
    if imag.magnitude() <= real.magnitude() {
        let ratio = imag / real;
        let size = real + imag * ratio;
        T::of(T::Part::ONE / size, -ratio / size)
    } else {
        let ratio = real / imag;
        let size = real * ratio + imag;
        T::of(ratio / size, -T::Part::ONE / size)
    }
}

/// The number of length 1 in the same direction; 0 of 0.
#[inline(always)]
fn sign<T: Number>(a: T) -> T {
    let (real, imag) = a.parts();
    let size = real.hypot::<false>(imag);
    let infinite = [real, imag].map(|part| part.magnitude() == T::Part::INFINITY);
    match infinite {
        _ if size == T::Part::ZERO => T::of(T::Part::ZERO, T::Part::ZERO),
        [true, false] => T::of(T::Part::ONE.copysign(real), T::Part::ZERO),
        [false, true] => T::of(T::Part::ZERO, T::Part::ONE.copysign(imag)),
        [false, false] => T::of(real / size, imag / size),
        _ => T::of(T::Part::NAN, T::Part::NAN),
    }
}
