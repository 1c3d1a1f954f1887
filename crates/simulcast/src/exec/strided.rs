//! Element by element, with any steps: [`Shape::Strided`](super::strategy::Shape::Strided).

use super::cursor::{Cursor, Pointers};
use super::inner_loop::InnerLoop;
use super::launch::Job;
use crate::layout::nest::Steps;

/// # Safety
///
/// The invariant of [`super::launch`].
pub(crate) unsafe fn strided(inner: &mut dyn InnerLoop, job: &Job<'_>) {
    let nest = job.nest;
    let none = Steps::of_len(nest.arrays());
    let (outer, len, steps) = match nest.rank().checked_sub(1) {
        Some(last) => (last, nest.len(last), nest.step(last)),
        None => (0, 1, &none[..]),
    };
    let mut cursor = Cursor::new(nest, 0..outer, Pointers::start(nest, job.out, job.ins));
    loop {
        // SAFETY: the nest stays within the arrays.
        unsafe { inner.strided(cursor.at.out(), cursor.at.ins(), steps, len) };
        if !cursor.step() {
            return;
        }
    }
}
