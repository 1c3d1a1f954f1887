//! A line of memory: room that begins at one is stored to in whole vectors.

use std::mem::MaybeUninit;

use crate::cpu::nontemporal::LINE;

/// Room for a line.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub struct Line(#[expect(dead_code, reason = "reached through pointers")] [MaybeUninit<u8>; LINE]);

/// Room for so many bytes, at least one line.
pub fn room(bytes: usize) -> Vec<Line> {
    Vec::with_capacity(bytes / size_of::<Line>() + 1)
}
