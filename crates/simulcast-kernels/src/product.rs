//! Products of matrices of `f32` and `f64`, on one thread: loops for few rows that read B once, and packed strips for many.
//!
//! ```text
//! C (m x n)  =  A (m x k)  @  B (k x n)
//!
//! columns   columns of B are contiguous (B.T, which torch writes for every Linear), and A has not many rows or B not
//!           many columns: each element is a dot product, 4 x 4 or 1 x 8 at a time in registers. B is read once for every
//!           4 rows, from the L1 cache after the first
//! rows      rows of B are contiguous, and A has not many: strips of B, three vectors wide, meet 8 rows of A at a time
//!           in registers (4 with AVX2). A large B is read in blocks of few rows, in the order in which it lies in memory
//! packed    everything else: as rows, of strips that are copied into a panel first, which stays in the L2 cache
//! ```
//!
//! Which loop runs depends on the sizes of the whole product and on how the operands lie in memory, and within a loop the
//! order of the additions of an element on `k` alone: a dot product is summed in 64 bytes of lanes at every level, in
//! several registers where one is shorter, and then in halves; the other loops add one product after another.
//! Multiplications and additions are rounded apart, since the baseline cannot fuse them. So a product that is cut into
//! parts, by rows or by columns, has the bits of the whole; neither the number of threads nor the level changes one,
//! apart from the payloads of NaN.
//!
//! ```
//! # #[cfg(feature = "product")] {
//! use simulcast_kernels::Level;
//! use simulcast_kernels::product::{Matrix, Out, Product};
//!
//! let (a, b) = ([1_f32, 2.0, 3.0], [4_f32, 5.0, 6.0]);
//! let row = Matrix::new(&a, [1, 3], [3, 1]).unwrap();
//! let column = Matrix::new(&b, [3, 1], [1, 1]).unwrap();
//! let mut out = [0.0];
//! let product = Product::new(row, column).unwrap();
//! product.run(Level::for_programs(), 0..1, 0..1, Out::new(&mut out, [1, 1]).unwrap());
//! assert_eq!(out, [32.0]);
//! # }
//! ```

mod loops;
mod out;
#[cfg(test)]
mod tests;
mod vector;

use std::ops::Range;

pub use out::Out;

use crate::cpu::level::{Kind, Level};
use crate::tuning::{PRODUCT_COLUMNS_MAX, PRODUCT_COLUMNS_ROWS_MAX, PRODUCT_ROWS_MAX};

/// A type that products have loops for.
pub trait Factor: Copy + Default + private::Loops {}

impl Factor for f32 {}
impl Factor for f64 {}

/// A matrix in memory.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    elements: &'a [T],
    rows: usize,
    columns: usize,
    /// From a row to the next, and from a column to the next.
    strides: [usize; 2],
}

impl<'a, T> Matrix<'a, T> {
    /// A matrix whose element of row r and column c is `elements[r * strides[0] + c * strides[1]]`; `None` where one
    /// would lie beyond them.
    #[must_use]
    pub fn new(
        elements: &'a [T],
        [rows, columns]: [usize; 2],
        strides: [usize; 2],
    ) -> Option<Self> {
        let own = Self { elements, rows, columns, strides };
        if rows == 0 || columns == 0 {
            return Some(own);
        }
        let [down, right] = strides;
        let last = (rows - 1).checked_mul(down)?.checked_add((columns - 1).checked_mul(right)?)?;
        (last < elements.len()).then_some(own)
    }

    /// The matrix that is its transpose, in the same memory.
    #[must_use]
    pub const fn transposed(self) -> Self {
        let Self { elements, rows, columns, strides: [down, right] } = self;
        Self { elements, rows: columns, columns: rows, strides: [right, down] }
    }
}

/// The loops of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Dot products with columns of B that are contiguous.
    Columns,
    /// Rows of B that are contiguous, where they lie.
    Rows,
    /// Strips of B that are copied first.
    Packed,
}

/// A product of two matrices, and the loops that compute it.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a, T> {
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    method: Method,
}

impl<'a, T: Factor> Product<'a, T> {
    /// `None` where the inner sizes differ.
    #[must_use]
    pub fn new(a: Matrix<'a, T>, b: Matrix<'a, T>) -> Option<Self> {
        let is_row = |own: &Matrix<'_, T>| own.strides[1] == 1;
        let method = match a.rows {
            // A row of A is read as it lies.
            rows if b.strides[0] == 1
                && is_row(&a)
                && (rows <= PRODUCT_COLUMNS_ROWS_MAX || b.columns <= PRODUCT_COLUMNS_MAX) =>
            {
                Method::Columns
            }
            rows if is_row(&b) && rows <= PRODUCT_ROWS_MAX => Method::Rows,
            _ => Method::Packed,
        };
        (a.columns == b.rows).then_some(Self { a, b, method })
    }

    /// The loops that compute it.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Computes some rows and columns of the product.
    ///
    /// # Panics
    ///
    /// Where the ranges are not within the product, or `out` has not their size.
    pub fn run(&self, level: Level, rows: Range<usize>, columns: Range<usize>, out: Out<'_, T>) {
        assert!(rows.start <= rows.end && rows.end <= self.a.rows, "rows of the product");
        assert!(columns.start <= columns.end && columns.end <= self.b.columns, "its columns");
        assert_eq!([rows.len(), columns.len()], out.sizes(), "its elements");
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        let inner = self.a.columns;
        if inner == 0 {
            out.fill(T::default());
            return;
        }
        let (c, c_down) = out.into_raw();
        let ([a_down, a_right], [b_down, b_right]) = (self.a.strides, self.b.strides);
        let part = Part {
            a: self.a.elements[rows.start * a_down..].as_ptr(),
            a_strides: [a_down, a_right],
            b: self.b.elements[columns.start * b_right..].as_ptr(),
            b_strides: [b_down, b_right],
            sizes: [rows.len(), columns.len(), inner],
            c,
            c_down,
        };
        // SAFETY: the matrices hold every element of their sizes, `out` one for each of the result, none of which is
        // empty, and no other reference has them; with `Columns`, columns of B and rows of A are contiguous, with `Rows`, rows of B: by `new`.
        unsafe { T::product(level, self.method, &part) }
    }
}

/// Pointers to a part of a product: rows of C are contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Part<T> {
    a: *const T,
    a_strides: [usize; 2],
    b: *const T,
    b_strides: [usize; 2],
    /// Rows, columns, and the inner size.
    sizes: [usize; 3],
    c: *mut T,
    /// From a row of C to the next.
    c_down: usize,
}

mod private {
    use super::{Level, Method, Part};

    /// The loops of a type, at every level.
    pub trait Loops: Sized {
        /// # Safety
        ///
        /// The part's pointers reach all elements of its sizes, which are not 0; `c` is nobody else's. The memory lies
        /// as the method says.
        unsafe fn product(level: Level, method: Method, part: &Part<Self>);
    }
}

/// Writes the loops of a type.
macro_rules! compiled {
    ($type:ty, $portable:ty, $avx2:ident $with_avx2:ident, $avx512:ident $with_avx512:ident) => {
        const _: () = {
            use vector::Pair;

            #[cfg(target_arch = "x86_64")]
            use std::arch::x86_64::{$avx2, $avx512};

            // Of 16 registers, tiles of 6 by 2 take all: 12 sums, two columns, a factor, and a product, which is no
            // part of its sum. With 4 by 3 there is one too few. 24 rows of f32, Zen 4, 2026-11-20, 4 by 3 and
            // 6 by 2: 2112 x 128 240 us and 150, 1024 x 256 233 and 145, 256 x 1024 239 and 187.
            crate::compiled_for_levels! {
                unsafe fn $with_avx2(method: Method, part: &Part<$type>) {
                    // SAFETY: the caller keeps the conditions of the loops, and has the instructions.
                    unsafe { loops::run::<$avx2, Pair<$avx2>, 2, 2, 4, 6, 2>(method, part) }
                }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(
                enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,movbe,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
            )]
            unsafe fn $with_avx512(method: Method, part: &Part<$type>) {
                // SAFETY: as above.
                unsafe { loops::run::<$avx512, $avx512, 4, 4, 8, 8, 3>(method, part) }
            }

            impl private::Loops for $type {
                unsafe fn product(level: Level, method: Method, part: &Part<Self>) {
                    // SAFETY: the caller keeps the conditions of the loops; the level proves the instructions.
                    unsafe {
                        match level.kind() {
                            Kind::Baseline => {
                                loops::run::<$portable, Pair<Pair<$portable>>, 2, 1, 2, 4, 3>(
                                    method, part,
                                )
                            }
                            #[cfg(target_arch = "x86_64")]
                            Kind::Avx2 => $with_avx2(method, part),
                            #[cfg(target_arch = "x86_64")]
                            Kind::Avx512 => $with_avx512(method, part),
                        }
                    }
                }
            }
        };
    };
}
compiled!(f32, [f32; 4], __m256 f32_avx2, __m512 f32_avx512);
compiled!(f64, [f64; 2], __m256d f64_avx2, __m512d f64_avx512);
