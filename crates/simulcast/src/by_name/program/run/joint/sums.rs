//! The sums of a pass: of every part, joined in pairs, and made into results.

use simulcast_core::Refusal;
use simulcast_kernels::cpu::aligned_buf::CacheLine;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::pack::pack;
use simulcast_kernels::reduce::Rows;
use simulcast_kernels::tuning::CACHE_LINE_BYTES;
use simulcast_threads::SendPtr;

use super::Value;
use super::nest::{AxisParts, Folded, Nest, row_major};
use crate::array::output::reserve;
use crate::by_name::dyn_array::AnyArray;
use crate::by_name::program::run::reduction::results::Finish;
use crate::by_name::program::run::run_map::fresh;

/// The sums of each reduction.
pub(super) struct Sums(Vec<Own>);

struct Own {
    memory: Vec<CacheLine>,
    copies: usize,
    /// The bytes of a copy: whole cache lines.
    stride: usize,
}

/// Where the sums of a reduction are: those of its first part, and the bytes to the next.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) first: SendPtr<u8>,
    pub(super) stride: usize,
}

impl Sums {
    /// Sums of no elements yet.
    pub(super) fn new(nest: &Nest<'_>, parts: &AxisParts) -> Result<Self, Refusal> {
        let mut all = Vec::with_capacity(nest.folds.len());
        for fold in &nest.folds {
            let size = fold.wide.value_bytes;
            let bytes = fold.len.checked_mul(size).ok_or(Refusal::Overflow)?;
            let lines = bytes / CACHE_LINE_BYTES + 1;
            let copies = parts.copies(fold);
            let mut memory: Vec<CacheLine> = Vec::new();
            reserve(&mut memory, lines.checked_mul(copies).ok_or(Refusal::Overflow)?)?;
            let (to, stride) = (memory.as_mut_ptr().cast::<u8>(), lines * CACHE_LINE_BYTES);
            let mut neutral = [0_u64; 2];
            for copy in 0..copies {
                // SAFETY: there is room for a value of any type, and for all sums of every copy.
                unsafe {
                    let one: *mut u8 = (&raw mut neutral).cast();
                    // The reduction of no elements is what changes nothing.
                    let none = Rows { first: one.cast_const(), stride: 0, step: 1 };
                    (fold.wide.along)(one, [none; 2], 1, 0, false);
                    pack::<false>(size, to.add(copy * stride), one, &[(fold.len, 0)]);
                }
            }
            all.push(Own { memory, copies, stride });
        }
        Ok(Self(all))
    }

    pub(super) fn places(&mut self) -> Vec<Place> {
        let place = |own: &mut Own| Place {
            first: SendPtr::new(own.memory.as_mut_ptr().cast()),
            stride: own.stride,
        };
        self.0.iter_mut().map(place).collect()
    }

    /// The result of a reduction, when all parts have run.
    pub(super) fn finish(
        &mut self,
        nest: &Nest<'_>,
        number: usize,
        value: &Value,
        level: Level,
    ) -> Result<AnyArray, Refusal> {
        let (Some(own), Some(fold), Some((kind, mask))) =
            (self.0.get_mut(number), nest.folds.get(number), &value.fold)
        else {
            return Err(Refusal::Overflow);
        };
        let first: *mut u8 = own.memory.as_mut_ptr().cast();
        let mut apart = 1;
        while apart < own.copies {
            for copy in (0..own.copies - apart).step_by(2 * apart) {
                // SAFETY: both are copies, of so many sums.
                unsafe {
                    let to = first.add(copy * own.stride);
                    (fold.wide.join)(to, first.add((copy + apart) * own.stride), fold.len);
                }
            }
            apart *= 2;
        }
        let count = value.count;
        let finish = Finish::new(*kind, fold.types[1], count, value.dtype, level);
        // Never `None`: there was a loop for the sums.
        let finish = finish.ok_or(Refusal::Overflow)?;
        let size = fold.wide.value_bytes;
        let kept: Vec<bool> = mask.iter().map(|gone| !gone).collect();
        let in_order = row_major(&value.shape, &kept)
            .iter()
            .zip(&fold.own_steps)
            .zip(&value.shape)
            .all(|((own, steps), &size)| size == 1 || own == steps);
        let mut sorted: Vec<CacheLine> = Vec::new();
        let sums = if in_order || fold.len == 0 {
            first
        } else {
            reserve(&mut sorted, fold.len * size / CACHE_LINE_BYTES + 1)?;
            let loops: Vec<(usize, isize)> = value
                .shape
                .iter()
                .zip(&fold.own_steps)
                .zip(&kept)
                .filter(|(_, kept)| **kept)
                .map(|((&size, &step), _)| (size, step.cast_signed()))
                .collect();
            let to = sorted.as_mut_ptr().cast();
            // SAFETY: the loops visit every sum once, and there is room for all.
            unsafe { pack::<false>(size, to, first, &loops) };
            to
        };
        fresh(value.dtype, &value.shape, fold.len, &mut |out| {
            // SAFETY: there are so many sums, and room for as many results.
            unsafe {
                match count {
                    0 => finish.nothing(out, fold.len),
                    _ => finish.finish(out, sums, fold.len),
                }
            }
        })
    }
}

/// Adds values to sums of a wider type, or joins them with sums of their own.
///
/// # Safety
///
/// There are `count` values of the reduction's elements, and so many sums; the two do not overlap.
#[inline]
pub(super) unsafe fn join(fold: &Folded, to: *mut u8, values: *const u8, count: usize) {
    // SAFETY: by the condition of this function; a complex number is two floats.
    unsafe {
        match fold.types {
            [DType::F32, DType::F64] => widened(to.cast(), values.cast(), count),
            [DType::C64, DType::C128] => widened(to.cast(), values.cast(), 2 * count),
            _ => (fold.wide.join)(to, values, count),
        }
    }
}

/// # Safety
///
/// As [`join`].
unsafe fn widened(to: *mut f64, values: *const f32, count: usize) {
    for at in 0..count {
        // SAFETY: by the condition of this function.
        unsafe { *to.add(at) += f64::from(values.add(at).read()) };
    }
}
