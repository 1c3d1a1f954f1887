//! Selection: `where`, which moves elements whatever they are, by their size.

use std::hint::select_unpredictable;
use std::marker::PhantomData;

use super::{ElementOp, Kernels, body, kernels_of};
use crate::{DType, Level};

/// A choice, not a branch: both are read whatever is chosen, so that loads need no masks. If one condition holds for all,
/// what it chooses is read for both.
struct Where<T>(PhantomData<T>);

impl<T: Copy> ElementOp for Where<T> {
    body!(Light 3 T { select_unpredictable(a != 0, b, c) } a: u8, b: T, c: T);

    #[inline(always)]
    fn only(a: u8) -> Option<usize> {
        Some(if a != 0 { 1 } else { 2 })
    }
}

/// The loops of `where`. The halves of 16 bytes are aligned as the parts of a complex number.
pub(super) fn select(dtype: DType, level: Level) -> Option<Kernels> {
    if dtype == DType::String {
        return None;
    }
    match dtype.size() {
        1 => Some(kernels_of::<Where<u8>>(level)),
        2 => Some(kernels_of::<Where<u16>>(level)),
        4 => Some(kernels_of::<Where<u32>>(level)),
        8 if dtype.align() == 8 => Some(kernels_of::<Where<u64>>(level)),
        8 => Some(kernels_of::<Where<[u32; 2]>>(level)),
        16 => Some(kernels_of::<Where<[u64; 2]>>(level)),
        _ => None,
    }
}
