//! Short lists without an allocation: up to a fixed number of values in place, more on the heap.
//!
//! Places that hold no value are not written: for tiny arrays, filling them took longer than the work.
//!
//! Invariant: where nothing is on the heap, there are `len` values, at most `PLACES`, and the first `len` places hold them.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// How many values are kept in place: arrays of more axes are rare.
pub(crate) const INLINE: usize = 8;

/// A list of sizes, strides or loops, one for each axis.
pub(crate) type Inline<T> = SmallVec<T, INLINE>;

/// A list with this number of places.
#[derive(Clone)]
pub(crate) struct SmallVec<T: Copy, const PLACES: usize> {
    len: usize,
    place: [MaybeUninit<T>; PLACES],
    heap: Vec<T>,
}

impl<T: Copy, const PLACES: usize> SmallVec<T, PLACES> {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { len: 0, place: [MaybeUninit::uninit(); PLACES], heap: Vec::new() }
    }

    /// Makes an empty list one of `len` equal values, which fit in place.
    #[inline(always)]
    pub(crate) fn grow(&mut self, len: usize, value: T) {
        self.place = [MaybeUninit::new(value); PLACES];
        self.len = len.min(PLACES);
    }

    #[inline(always)]
    pub(crate) fn from_slice(values: &[T]) -> Self {
        let mut this = Self::new();
        if values.len() > PLACES {
            this.heap.extend_from_slice(values);
        } else {
            for (place, &value) in this.place.iter_mut().zip(values) {
                place.write(value);
            }
        }
        this.len = values.len();
        this
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        if let Some(place) = self.place.get_mut(self.len).filter(|_| self.heap.is_empty()) {
            place.write(value);
            self.len += 1;
        } else {
            self.push_to_heap(value);
        }
    }

    #[cold]
    fn push_to_heap(&mut self, value: T) {
        if self.heap.is_empty() {
            self.heap = self.to_vec();
        }
        self.heap.push(value);
        self.len = self.heap.len();
    }

    /// The first `len` values.
    #[inline(always)]
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.len {
            if self.heap.is_empty() {
                self.len = len;
            } else {
                *self = Self::from_slice(self.get(..len).unwrap_or(&[]));
            }
        }
    }
}

impl<T: Copy + Default, const PLACES: usize> SmallVec<T, PLACES> {
    /// `len` default values.
    #[inline(always)]
    pub(crate) fn of_len(len: usize) -> Self {
        let mut this = Self::new();
        if len > PLACES {
            (this.heap, this.len) = (vec![T::default(); len], len);
        } else {
            this.grow(len, T::default());
        }
        this
    }
}

impl<T: Copy, const PLACES: usize> Deref for SmallVec<T, PLACES> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        if self.heap.is_empty() {
            // SAFETY: the first `len` places hold a value, by the invariant of this module.
            unsafe { std::slice::from_raw_parts(self.place.as_ptr().cast(), self.len) }
        } else {
            &self.heap
        }
    }
}

impl<T: Copy, const PLACES: usize> DerefMut for SmallVec<T, PLACES> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        if self.heap.is_empty() {
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts_mut(self.place.as_mut_ptr().cast(), self.len) }
        } else {
            &mut self.heap
        }
    }
}

impl<T: Copy + fmt::Debug, const PLACES: usize> fmt::Debug for SmallVec<T, PLACES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_vector_whatever_its_length() {
        for len in 0..20 {
            let values: Vec<usize> = (0..len).collect();
            let mut pushed = Inline::new();
            values.iter().for_each(|&value| pushed.push(value));
            assert_eq!(pushed[..], values);
            assert_eq!(Inline::from_slice(&values)[..], values);
            assert_eq!(format!("{pushed:?}"), format!("{values:?}"));
            assert_eq!(Inline::<usize>::of_len(len)[..], vec![0; len]);
            for cut in 0..len + 2 {
                let mut cut_off = pushed.clone();
                cut_off.truncate(cut);
                assert_eq!(cut_off[..], values[..cut.min(len)]);
                cut_off.push(7);
                assert_eq!(cut_off.last(), Some(&7));
                assert_eq!(cut_off.len(), cut.min(len) + 1);
            }
        }
    }
}
