//! Short lists without an allocation: up to eight values in place, more on the heap.

use std::ops::{Deref, DerefMut};

/// How many values are kept in place: arrays of more axes are rare.
pub(crate) const INLINE: usize = 8;

/// A list of sizes, strides or loops.
#[derive(Clone, Debug)]
pub(crate) struct Inline<T> {
    len: usize,
    place: [T; INLINE],
    heap: Vec<T>,
}

impl<T: Copy + Default> Inline<T> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { len: 0, place: [T::default(); INLINE], heap: Vec::new() }
    }

    /// `len` default values.
    #[inline(always)]
    pub(crate) fn of_len(len: usize) -> Self {
        let heap = if len > INLINE { vec![T::default(); len] } else { Vec::new() };
        Self { len, place: [T::default(); INLINE], heap }
    }

    /// Makes an empty list one of `len` equal values, which fit in place.
    #[inline(always)]
    pub(crate) fn grow(&mut self, len: usize, value: T) {
        self.len = len.min(INLINE);
        self.place = [value; INLINE];
    }

    #[inline(always)]
    pub(crate) fn from_slice(values: &[T]) -> Self {
        let mut this = Self::of_len(values.len());
        this.copy_from_slice(values);
        this
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        if let Some(place) = self.place.get_mut(self.len).filter(|_| self.heap.is_empty()) {
            *place = value;
        } else {
            if self.heap.is_empty() {
                self.heap.extend_from_slice(&self.place);
            }
            self.heap.push(value);
        }
        self.len += 1;
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

impl<T> Deref for Inline<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        if self.heap.is_empty() { self.place.get(..self.len).unwrap_or(&[]) } else { &self.heap }
    }
}

impl<T> DerefMut for Inline<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        if self.heap.is_empty() {
            self.place.get_mut(..self.len).unwrap_or(&mut [])
        } else {
            &mut self.heap
        }
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
