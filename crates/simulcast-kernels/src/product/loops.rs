//! The loops of a product, over vectors of one kind.

use super::vector::Vector;
use super::{Method, Part};
use crate::cpu::prefetch::prefetch;
use crate::tuning::{
    CACHE_LINE_BYTES, PRODUCT_CACHED_BYTES, PRODUCT_COLUMNS_BYTES, PRODUCT_FEW_ROWS,
    PRODUCT_NARROW_ROWS, PRODUCT_PANEL_ROWS, PRODUCT_PREFETCH_ROWS, PRODUCT_ROWS_AT_A_TIME,
};

/// The most lanes of a vector.
const LANES_MAX: usize = 16;

/// Vectors in a strip for a single row of A: so many sums hide how long an addition takes.
const WIDE: usize = 8;

/// Vectors in a strip for two or three rows of A: with 2, two rows of f32 with 256 x 1024 take 51 us on AVX2, with 3 33.
const FEW: usize = 3;

/// Computes a part of a product: dot products, in vectors `D`, of `DOTS` rows at a time by `ACROSS` columns, or of one row by
/// `ALONE`; tiles of `TALL` rows by `STRIP` vectors `V`.
///
/// # Safety
///
/// As `Loops::product`; the caller is compiled for the vector's instructions.
#[inline(always)]
pub(super) unsafe fn run<
    V: Vector,
    D: Vector<Element = V::Element>,
    const DOTS: usize,
    const ACROSS: usize,
    const ALONE: usize,
    const TALL: usize,
    const STRIP: usize,
>(
    method: Method,
    part: &Part<V::Element>,
) {
    const {
        assert!(
            D::LANES * size_of::<D::Element>() == CACHE_LINE_BYTES,
            "the same sums at every level"
        );
    };
    // SAFETY: the caller keeps the conditions.
    unsafe {
        match method {
            Method::Columns => columns::<D, DOTS, ACROSS, ALONE>(part),
            Method::Rows => strips::<V, TALL, STRIP, false>(part, rows_at_a_time(part)),
            Method::Packed => strips::<V, TALL, STRIP, true>(part, PRODUCT_PANEL_ROWS),
        }
    }
}

/// How many rows of B are read at a time where they lie. Few, where B comes from memory: columns of strips would be read
/// against the order of memory.
fn rows_at_a_time<T>(part: &Part<T>) -> usize {
    let [rows, _, inner] = part.sizes;
    let bytes = inner.saturating_mul(part.b_strides[0]).saturating_mul(size_of::<T>());
    match rows <= PRODUCT_FEW_ROWS && bytes > PRODUCT_CACHED_BYTES {
        true => PRODUCT_ROWS_AT_A_TIME,
        false => PRODUCT_PANEL_ROWS,
    }
}

/// Rows of A with columns of B, both contiguous. Some columns at a time, which stay in the L1 cache, meet all rows.
///
/// # Safety
///
/// As [`run`].
#[inline(always)]
unsafe fn columns<V: Vector, const DOTS: usize, const ACROSS: usize, const ALONE: usize>(
    part: &Part<V::Element>,
) {
    let [rows, columns, inner] = part.sizes;
    let bytes = inner.saturating_mul(size_of::<V::Element>());
    // Where all rows are met at once, columns are read once anyhow.
    let group = match rows <= DOTS {
        true => columns,
        false => (PRODUCT_COLUMNS_BYTES / bytes).max(1).next_multiple_of(8),
    };
    let mut first = 0;
    while first < columns {
        let count = group.min(columns - first);
        let mut row = 0;
        while row < rows {
            let tall = DOTS.min(rows - row);
            // SAFETY: rows and columns are within the part.
            unsafe {
                match tall {
                    1 => row_of_dots::<V, 1, ALONE>(part, row, first..first + count),
                    2 => row_of_dots::<V, 2, ACROSS>(part, row, first..first + count),
                    3 if DOTS > 3 => row_of_dots::<V, 3, ACROSS>(part, row, first..first + count),
                    4 if DOTS > 3 => row_of_dots::<V, 4, ACROSS>(part, row, first..first + count),
                    _ => {}
                }
            }
            row += tall;
        }
        first += count;
    }
}

/// `M` rows with some columns, `N` at a time.
///
/// # Safety
///
/// As [`run`]; there are that many rows from this one on.
#[inline(always)]
unsafe fn row_of_dots<V: Vector, const M: usize, const N: usize>(
    part: &Part<V::Element>,
    row: usize,
    columns: std::ops::Range<usize>,
) {
    let mut at = columns.start;
    // SAFETY: by the conditions of this function.
    unsafe {
        while at + N <= columns.end {
            dots::<V, M, N>(part, row, at);
            at += N;
        }
        while at < columns.end {
            dots::<V, M, 1>(part, row, at);
            at += 1;
        }
    }
}

/// `M` rows with `N` columns. Each element is summed in the lanes of one vector, then over its lanes.
///
/// # Safety
///
/// As [`run`]; there are that many rows and columns from these on.
#[inline(always)]
unsafe fn dots<V: Vector, const M: usize, const N: usize>(
    part: &Part<V::Element>,
    row: usize,
    column: usize,
) {
    let ([_, _, inner], width) = (part.sizes, part.c_down);
    let (down, right) = (part.a_strides[0], part.b_strides[1]);
    // SAFETY: `inner` elements are behind each of these pointers, in steps of one; `c` has the part's rows.
    unsafe {
        let (a, b) = (part.a.add(row * down), part.b.add(column * right));
        let mut sums = [[V::zero(); M]; N];
        let whole = inner - inner % V::LANES;
        let mut at = 0;
        while at < whole {
            let mut rows = [V::zero(); M];
            for (m, row) in rows.iter_mut().enumerate() {
                *row = V::load(a.add(m * down + at));
            }
            for (n, sums) in sums.iter_mut().enumerate() {
                let column = V::load(b.add(n * right + at));
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = sum.plus(row, column);
                }
            }
            at += V::LANES;
        }
        if whole < inner {
            let mut rows = [V::zero(); M];
            for (m, row) in rows.iter_mut().enumerate() {
                *row = some::<V>(a.add(m * down + whole), inner - whole);
            }
            for (n, sums) in sums.iter_mut().enumerate() {
                let column = some::<V>(b.add(n * right + whole), inner - whole);
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = sum.plus(row, column);
                }
            }
        }
        for (n, sums) in sums.iter().enumerate() {
            for (m, sum) in sums.iter().enumerate() {
                part.c.add((row + m) * width + column + n).write(sum.sum());
            }
        }
    }
}

/// A vector of some elements, and of zeros.
///
/// # Safety
///
/// There are so many elements, fewer than a vector has.
#[inline(always)]
unsafe fn some<V: Vector>(from: *const V::Element, count: usize) -> V {
    let mut own = [V::Element::default(); LANES_MAX];
    // SAFETY: by the conditions of this function; the array is long enough.
    unsafe {
        std::ptr::copy_nonoverlapping(from, own.as_mut_ptr(), count);
        V::load(own.as_ptr())
    }
}

/// Rows of B in blocks, and in each block strips of columns: all rows of A meet one after another.
///
/// # Safety
///
/// As [`run`]; unless they are packed, rows of B are contiguous.
#[inline(always)]
unsafe fn strips<V: Vector, const TALL: usize, const STRIP: usize, const PACKED: bool>(
    part: &Part<V::Element>,
    block: usize,
) {
    let [rows, columns, inner] = part.sizes;
    let ([_, a_right], [b_down, b_right]) = (part.a_strides, part.b_strides);
    let wide = STRIP * V::LANES;
    let block = block.min(inner);
    let panel_width = if PACKED { wide } else { V::LANES };
    let mut panel = vec![V::Element::default(); block * panel_width];
    // The last columns, fewer than a vector has, are computed here, some rows at a time.
    let rest = if columns.is_multiple_of(V::LANES) { 0 } else { rows.min(PRODUCT_NARROW_ROWS) };
    let mut narrow = vec![V::Element::default(); rest * V::LANES];
    let mut start = 0;
    while start < inner {
        let depth = block.min(inner - start);
        let is_first = start == 0;
        let mut column = 0;
        while column < columns {
            // SAFETY: rows, columns and depth are within the part; the panel has `depth` rows of its width.
            unsafe {
                let a = part.a.add(start * a_right);
                let b = part.b.add(start * b_down + column * b_right);
                let left = columns - column;
                let whole = left / V::LANES;
                let vectors = match whole {
                    WIDE.. if rows == 1 && !PACKED => WIDE,
                    FEW.. if rows <= FEW && !PACKED => FEW,
                    _ if whole >= STRIP => STRIP,
                    _ => whole.min(1),
                };
                let width = if vectors == 0 { left } else { vectors * V::LANES };
                let (b, b_down) = match PACKED || vectors == 0 {
                    true => {
                        let padded = vectors.max(1) * V::LANES;
                        pack(b, part.b_strides, [depth, width], &mut panel, padded);
                        (panel.as_ptr(), padded)
                    }
                    false => (b, b_down),
                };
                let a_strides = part.a_strides;
                // The first rows of A fetch this strip, the next ones that beside it, before they are read.
                let ahead = match PACKED || vectors == 0 {
                    true => [0, 0],
                    false => [PRODUCT_PREFETCH_ROWS.wrapping_mul(b_down), width],
                };
                let strip = Strip { a, a_strides, b, b_down, rows, depth, is_first, ahead };
                let c = part.c.add(column);
                match vectors {
                    WIDE => strip.tile::<V, 1, WIDE>(0, c, part.c_down),
                    0 => strip.narrow::<V, TALL>(c, part.c_down, width, &mut narrow),
                    1 => strip.run::<V, 1, TALL>(c, part.c_down),
                    FEW if STRIP != FEW => strip.run::<V, FEW, FEW>(c, part.c_down),
                    _ => strip.run::<V, STRIP, TALL>(c, part.c_down),
                }
                column += width;
            }
        }
        start += depth;
    }
}

/// Copies some rows and columns of B, row after row; further columns become 0.
///
/// # Safety
///
/// B has those rows and columns.
#[inline(always)]
unsafe fn pack<T: Copy + Default>(
    b: *const T,
    [down, right]: [usize; 2],
    [rows, columns]: [usize; 2],
    panel: &mut [T],
    width: usize,
) {
    debug_assert!(rows * width <= panel.len() && columns <= width);
    let to = panel.as_mut_ptr();
    // SAFETY: B has those rows and columns, and the panel `rows` rows of `width`.
    unsafe {
        if columns < width {
            panel[..rows * width].fill(T::default());
        }
        if right == 1 {
            for row in 0..rows {
                std::ptr::copy_nonoverlapping(b.add(row * down), to.add(row * width), columns);
            }
            return;
        }
        // A cache line of each column at a time: the rows that they become stay in the L1 cache.
        let line = CACHE_LINE_BYTES / size_of::<T>();
        let mut first = 0;
        while first < rows {
            let last = rows.min(first + line);
            for column in 0..columns {
                for row in first..last {
                    to.add(row * width + column).write(b.add(row * down + column * right).read());
                }
            }
            first = last;
        }
    }
}

/// All rows of A with a strip of B.
#[derive(Clone, Copy)]
struct Strip<T> {
    a: *const T,
    a_strides: [usize; 2],
    b: *const T,
    b_down: usize,
    rows: usize,
    depth: usize,
    /// Whether the result begins here; else it is added to.
    is_first: bool,
    /// How far ahead the first tile prefetches, and the second; 0 where they do not.
    ahead: [usize; 2],
}

impl<T> Strip<T> {
    /// A strip of fewer columns than a vector has, in rows of `down` elements: some rows at a time are computed in `beside`.
    ///
    /// # Safety
    ///
    /// As [`Strip::run`], of one vector, but `c` has `width` elements in each row.
    #[inline(always)]
    unsafe fn narrow<V: Vector<Element = T>, const TALL: usize>(
        &self,
        c: *mut T,
        down: usize,
        width: usize,
        beside: &mut [T],
    ) where
        T: Copy,
    {
        let (own, most) = (beside.as_mut_ptr(), beside.len() / V::LANES);
        let mut first = 0;
        while first < self.rows {
            let rows = most.min(self.rows - first);
            // SAFETY: by the conditions of this function; `beside` has a vector for each of `rows` rows.
            unsafe {
                let (a, c) = (self.a.add(first * self.a_strides[0]), c.add(first * down));
                if !self.is_first {
                    for row in 0..rows {
                        let (from, to) = (c.add(row * down), own.add(row * V::LANES));
                        std::ptr::copy_nonoverlapping(from, to, width);
                    }
                }
                Self { a, rows, ..*self }.run::<V, 1, TALL>(own, V::LANES);
                for row in 0..rows {
                    let (from, to) = (own.add(row * V::LANES), c.add(row * down));
                    std::ptr::copy_nonoverlapping(from, to, width);
                }
            }
            first += rows;
        }
    }

    /// # Safety
    ///
    /// As [`run`]: A has the rows, B `W` vectors in each row, `c` the same in rows of `width` elements.
    #[inline(always)]
    unsafe fn run<V: Vector<Element = T>, const W: usize, const TALL: usize>(
        &self,
        c: *mut T,
        width: usize,
    ) where
        T: Copy,
    {
        let mut row = 0;
        // SAFETY: by the conditions of this function.
        unsafe {
            while row + TALL <= self.rows {
                let left = self.rows - row;
                // Two tiles of about half the rows, not a tall one and a low one, which would wait for its additions:
                // 9 rows with 256 x 1024, f32, AVX-512, Zen 4, 2026-11-20: 55 us, and 68 with 8 and 1.
                if TALL > 4 && left > TALL && left < 2 * TALL {
                    break;
                }
                self.tile::<V, TALL, W>(row, c, width);
                row += TALL;
            }
            if self.rows - row > TALL {
                let half = (self.rows - row).div_ceil(2);
                self.low::<V, W, TALL>(row, half, c, width);
                row += half;
            }
            self.low::<V, W, TALL>(row, self.rows - row, c, width);
        }
    }

    /// A tile of at most as many rows as a whole one.
    ///
    /// # Safety
    ///
    /// As [`Strip::run`].
    #[inline(always)]
    unsafe fn low<V: Vector<Element = T>, const W: usize, const TALL: usize>(
        &self,
        row: usize,
        rows: usize,
        c: *mut T,
        width: usize,
    ) where
        T: Copy,
    {
        // SAFETY: by the conditions of this function.
        unsafe {
            match rows {
                8 if TALL > 7 => self.tile::<V, 8, W>(row, c, width),
                7 if TALL > 7 => self.tile::<V, 7, W>(row, c, width),
                6 if TALL > 5 => self.tile::<V, 6, W>(row, c, width),
                5 if TALL > 5 => self.tile::<V, 5, W>(row, c, width),
                4 if TALL > 4 => self.tile::<V, 4, W>(row, c, width),
                3 => self.tile::<V, 3, W>(row, c, width),
                2 => self.tile::<V, 2, W>(row, c, width),
                1 => self.tile::<V, 1, W>(row, c, width),
                _ => {}
            }
        }
    }

    /// `M` rows with the strip, in registers.
    ///
    /// # Safety
    ///
    /// As [`Strip::run`].
    #[inline(always)]
    unsafe fn tile<V: Vector<Element = T>, const M: usize, const W: usize>(
        &self,
        row: usize,
        c: *mut T,
        width: usize,
    ) where
        T: Copy,
    {
        let [down, right] = self.a_strides;
        // SAFETY: by the conditions of this function.
        unsafe {
            let (a, c) = (self.a.add(row * down), c.add(row * width));
            let ahead = match row / M {
                0 => self.ahead[0],
                1 => self.ahead[1],
                _ => 0,
            };
            let mut sums = [[V::zero(); W]; M];
            if !self.is_first {
                for (m, sums) in sums.iter_mut().enumerate() {
                    for (w, sum) in sums.iter_mut().enumerate() {
                        *sum = V::load(c.add(m * width + w * V::LANES));
                    }
                }
            }
            for at in 0..self.depth {
                let mut columns = [V::zero(); W];
                let b = self.b.add(at * self.b_down);
                for (w, column) in columns.iter_mut().enumerate() {
                    *column = V::load(b.add(w * V::LANES));
                }
                if ahead != 0 {
                    for w in 0..W {
                        prefetch(b.wrapping_add(ahead).wrapping_add(w * V::LANES));
                    }
                }
                for (m, sums) in sums.iter_mut().enumerate() {
                    let factor = V::all(a.add(m * down + at * right).read());
                    for (sum, column) in sums.iter_mut().zip(columns) {
                        *sum = sum.plus(factor, column);
                    }
                }
            }
            for (m, sums) in sums.iter().enumerate() {
                for (w, sum) in sums.iter().enumerate() {
                    sum.store(c.add(m * width + w * V::LANES));
                }
            }
        }
    }
}
