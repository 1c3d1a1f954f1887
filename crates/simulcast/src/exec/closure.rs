//! Closures as inner loops: all that is compiled anew for each closure.
//!
//! One vectorised loop over contiguous elements, compiled for the baseline and for AVX2, another with non-temporal stores,
//! and one loop over any strides.
//! A repeated operand comes as a block of copies of its element, so that no combination of repeated operands needs a
//! loop of its own.

use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop};
use std::slice;

use simulcast_kernels::compiled_for_levels;
use simulcast_kernels::cpu::level::{Kind, Level};
#[cfg(target_arch = "x86_64")]
use simulcast_kernels::cpu::nontemporal::{Compute, store_computed};
#[cfg(target_arch = "x86_64")]
use simulcast_kernels::cpu::prefetch::prefetch_operands;
use simulcast_kernels::pod::{is_bool, is_plain};
use simulcast_kernels::tuning::{ALIGNED_RUN_BYTES, REPEATED_BLOCK_ELEMENTS, VECTOR_BYTES};

use super::inner_loop::{Facts, InnerLoop, Operands, Repeated, RowLoop, Run};
use super::strategy::Stores;

/// A closure over elements of the types in `T`, with results of type `R`.
pub(crate) struct Closure<F, T, R> {
    f: F,
    /// Whether the output holds values already, which are to be dropped.
    assign: bool,
    /// Whether the closure clones its only operand.
    copies: bool,
    level: Level,
    /// How many results were written, counted where they have to be dropped.
    written: usize,
    types: PhantomData<fn(T) -> R>,
}

/// A closure on a run whose results are stored non-temporally.
#[cfg(target_arch = "x86_64")]
struct Streamed<'s, const HELD: bool, const COPIED: bool, C> {
    closure: &'s mut C,
    run: &'s Run<'s>,
}

/// The length of the first block of a run: of a long one, up to the first result that begins a vector, since stores that
/// cross cache lines take twice as long.
#[inline(always)]
fn first_block<R>(out: *mut R, len: usize, block: usize) -> usize {
    let (size, off) = (size_of::<R>().max(1), out.addr() % VECTOR_BYTES);
    let is_long = len.saturating_mul(size) >= ALIGNED_RUN_BYTES;
    let aligns = is_long && off != 0 && off.is_multiple_of(size);
    if aligns { block.min((VECTOR_BYTES - off) / size) } else { block }
}

/// Where an element of the output is: one without a size has any aligned place.
#[inline(always)]
fn place<R>(out: *mut u8) -> *mut R {
    if size_of::<R>() == 0 { std::ptr::NonNull::dangling().as_ptr() } else { out.cast() }
}

/// An element as a closure sees it: itself, or if it is `COPIED`, a copy, which is a register once the closure is inlined.
///
/// A reference into the operand costs the compiler what it knows, that operands and results do not overlap: it asks before each
/// run, and keeps a loop over single elements for where they do. What is copied is a constant, since the question whether a type
/// is plain is answered too late, after functions are inlined. `small_64`, AVX2, Zen 4, 2026-11-20: 17.3 ns with references, 14.4 with copies.
///
/// # Safety
///
/// There is an element at `from`, which nothing changes while the reference lives; it is plain data if it is copied.
#[inline(always)]
unsafe fn seen<const COPIED: bool, T>(from: *const T, copy: &mut MaybeUninit<T>) -> &T {
    // SAFETY: the condition of this function; bytes of plain data are a value.
    unsafe { if COPIED { copy.write(from.read()) } else { &*from } }
}

impl<F, T, R> Closure<F, T, R> {
    #[inline(always)]
    pub(crate) fn new(f: F, assign: bool, copies: bool, level: Level) -> Self {
        Self { f, assign, copies, level, written: 0, types: PhantomData }
    }

    /// Writes a result.
    ///
    /// # Safety
    ///
    /// `slot` is valid for writes, and holds a value where `assign` is set.
    #[inline(always)]
    unsafe fn put(slot: *mut R, value: R, assign: bool, written: &mut usize) {
        if !needs_drop::<R>() {
            // SAFETY: valid for writes by the condition of this function.
            return unsafe { slot.write(value) };
        }
        if assign {
            // SAFETY: it holds a value by the condition of this function.
            unsafe { *slot = value };
        } else {
            // SAFETY: valid for writes by the condition of this function.
            unsafe { slot.write(value) };
        }
        *written += 1;
    }
}

macro_rules! closure {
    ($count:literal: $($name:ident $value:ident $index:tt),*) => {
        const _: () = {
            /// Whether there are masks, and all of them repeat along a run.
            #[inline(always)]
            fn is_held<$($name),*>(run: &Run<'_>) -> bool {
                let masks = 0 $(| Operands::from(is_bool::<$name>()) << $index)*;
                masks != 0 && run.repeated & masks == masks
            }

            /// Whether all operands are plain data.
            #[inline(always)]
            fn are_plain<$($name),*>() -> bool {
                true $(&& is_plain::<$name>())*
            }

            /// The loop over contiguous elements. The slices are references, and so promised not to overlap.
            ///
            /// With `HELD`, every mask is its first element: the compiler takes a choice by it out of the loop, and what is
            /// not chosen is not read. `where3`, (4096, 4096) f32 and a mask that is a column, Zen 4, 2026-11-19: 0.76 to 0.89
            /// of the speed of a loop made for that one pattern if masks are read element by element, 0.97 with this.
            ///
            /// # Safety
            ///
            /// `assign` is set only where `out` holds values; each slice has `out.len()` elements; with `COPIED`, all operands
            /// are plain data.
            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "one for each operand")]
            unsafe fn each<const HELD: bool, const COPIED: bool, $($name,)* R, Func: FnMut($(&$name),*) -> R>(
                f: &mut Func,
                out: &mut [MaybeUninit<R>],
                $($value: &[$name],)*
                assign: bool,
                written: &mut usize,
            ) {
                for at in 0..out.len() {
                    let mut copies = ($(MaybeUninit::<$name>::uninit(),)*);
                    // SAFETY: `at` is below the length of every slice.
                    $(let $value = unsafe {
                        let from = $value.as_ptr().add(if HELD && is_bool::<$name>() { 0 } else { at });
                        seen::<COPIED, _>(from, &mut copies.$index)
                    };)*
                    let value = f($($value),*);
                    // SAFETY: `at` is below the length, and the caller vouches for `assign`.
                    unsafe {
                        let slot = out.get_unchecked_mut(at);
                        if needs_drop::<R>() {
                            Closure::<Func, ($($name,)*), R>::put(slot.as_mut_ptr(), value, assign, written);
                        } else {
                            // Not by a function, which would be inlined too late, as above.
                            *slot = MaybeUninit::new(value);
                        }
                    }
                }
            }

            impl<$($name,)* R, Func: FnMut($(&$name),*) -> R> Closure<Func, ($($name,)*), R> {
                /// Each row in blocks where an operand repeats.
                ///
                /// # Safety
                ///
                /// As [`InnerLoop::contiguous`].
                #[inline(always)]
                unsafe fn rows<const HELD: bool, const COPIED: bool>(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
                    let whole = run.len.max(1);
                    let block = [$(if run.repeated >> $index & 1 == 1 {
                        REPEATED_BLOCK_ELEMENTS
                    } else {
                        whole
                    }),*];
                    let block = block.into_iter().fold(whole, usize::min);
                    $(let $value = if run.repeated >> $index & 1 == 1 { 0 } else { 1 };)*
                    let (mut out, mut ins) = (run.out, [$(run.ins[$index]),*]);
                    for _ in 0..rows.count {
                        let (mut done, mut most) = (0, first_block::<R>(out.cast(), run.len, block));
                        while done < run.len {
                            let len = most.min(run.len - done);
                            most = block;
                            // SAFETY: the invariant of `inner_loop` gives contiguous operands `run.len` elements and
                            // repeated ones a block, and output memory that nothing else refers to.
                            unsafe {
                                let out = place::<R>(out).cast::<MaybeUninit<R>>().add(done);
                                each::<HELD, COPIED, $($name,)* R, Func>(
                                    &mut self.f,
                                    slice::from_raw_parts_mut(out, len),
                                    $(slice::from_raw_parts(ins[$index].cast::<$name>().add($value * done), len),)*
                                    self.assign,
                                    &mut self.written,
                                );
                            }
                            done += len;
                        }
                        rows.advance(&mut out, &mut ins);
                    }
                }

                /// Each row at once, where the compiler sees it: [`InnerLoop::few`].
                ///
                /// # Safety
                ///
                /// As there.
                #[inline(always)]
                unsafe fn few_rows<const COPIED: bool>(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
                    for row in 0..rows.count.cast_signed() {
                        let at = |array: usize| row.wrapping_mul(rows.steps[array]);
                        // SAFETY: the invariant of `inner_loop`: all operands have `run.len` elements in every row.
                        unsafe {
                            let out = place::<R>(run.out.wrapping_offset(at(0)));
                            each::<false, COPIED, $($name,)* R, Func>(
                                &mut self.f,
                                slice::from_raw_parts_mut(out.cast::<MaybeUninit<R>>(), run.len),
                                $(slice::from_raw_parts(
                                    run.ins[$index].wrapping_offset(at($index + 1)).cast::<$name>(),
                                    run.len,
                                ),)*
                                self.assign,
                                &mut self.written,
                            );
                        }
                    }
                }

                compiled_for_levels! {
                    /// [`Self::rows`], compiled for AVX2.
                    ///
                    /// # Safety
                    ///
                    /// As there, and the machine has AVX2.
                    #[inline(never)]
                    unsafe fn rows_avx2(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
                        // SAFETY: the caller keeps the conditions.
                        unsafe {
                            match is_held::<$($name),*>(run) {
                                true if are_plain::<$($name),*>() => self.rows::<true, true>(run, rows),
                                _ if are_plain::<$($name),*>() => self.rows::<false, true>(run, rows),
                                _ => self.rows::<false, false>(run, rows),
                            }
                        }
                    }
                }

                compiled_for_levels! {
                    /// Results that go from registers to memory. An ordinary store behind a non-temporal one waits until
                    /// that has gone to memory, so that a tile in between would hold up all that follows: `where3`,
                    /// 4096 x 4096 f32, Zen 4: 5.3 ms from registers, 16.8 through a tile.
                    ///
                    /// # Safety
                    ///
                    /// As [`InnerLoop::contiguous`], and the machine has AVX2.
                    unsafe fn stream_avx2(&mut self, run: &Run<'_>) {
                        // SAFETY: the caller keeps the conditions.
                        unsafe {
                            match is_held::<$($name),*>(run) {
                                true if are_plain::<$($name),*>() => self.stream::<true, true>(run),
                                _ if are_plain::<$($name),*>() => self.stream::<false, true>(run),
                                _ => self.stream::<false, false>(run),
                            }
                        }
                    }
                }

                /// [`Self::stream_avx2`], inlined there.
                ///
                /// # Safety
                ///
                /// As there.
                #[cfg(target_arch = "x86_64")]
                #[inline(always)]
                unsafe fn stream<const HELD: bool, const COPIED: bool>(&mut self, run: &Run<'_>) {
                    let mut results = Streamed::<HELD, COPIED, _> { closure: self, run };
                    // SAFETY: the caller keeps the conditions; results are plain data, as `Facts::nontemporal` says, and no
                    // larger than a cache line (`Question::stores`).
                    unsafe { store_computed::<R, true>(run.out.cast(), run.len, &mut results) };
                }
            }

            #[cfg(target_arch = "x86_64")]
            impl<const HELD: bool, const COPIED: bool, $($name,)* R, Func: FnMut($(&$name),*) -> R> Compute<R>
                for Streamed<'_, HELD, COPIED, Closure<Func, ($($name,)*), R>>
            {
                #[inline(always)]
                unsafe fn compute(&mut self, to: *mut R, from: usize, count: usize) {
                    let (run, sizes) = (self.run, [$(size_of::<$name>()),*]);
                    prefetch_operands(run.prefetch as usize, run.ins, &sizes, from..from + count);
                    // SAFETY: contiguous operands have `run.len` elements, and the block of a repeated one never fewer than
                    // are computed at a time.
                    unsafe {
                        each::<HELD, COPIED, $($name,)* R, Func>(
                            &mut self.closure.f,
                            slice::from_raw_parts_mut(to.cast::<MaybeUninit<R>>(), count),
                            $(slice::from_raw_parts(
                                run.ins[$index].cast::<$name>().add(if run.repeated >> $index & 1 == 1 { 0 } else { from }),
                                count,
                            ),)*
                            self.closure.assign,
                            &mut self.closure.written,
                        );
                    }
                }
            }

            // SAFETY: the facts are those of the element types, and every result of a run is written once.
            unsafe impl<$($name,)* R, Func: FnMut($(&$name),*) -> R> InnerLoop for Closure<Func, ($($name,)*), R> {
                fn facts(&self) -> Facts<'_> {
                    Facts {
                        sizes: const { &[if size_of::<R>() == 0 { 1 } else { size_of::<R>() }, $(size_of::<$name>()),*] },
                        plain: 0 $(| Operands::from(is_plain::<$name>()) << $index)*,
                        plain_result: is_plain::<R>(),
                        repeated: Repeated::Block,
                        copies: ($count == 1 && self.copies).then_some(0),
                        nontemporal: is_plain::<R>() && self.level != Level::BASELINE,
                        prefetches: false,
                        compute_bound: false,
                        operations: 1,
                    }
                }

                unsafe fn contiguous(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
                    // SAFETY: the caller keeps the conditions; a `Level` exists only where the machine has it.
                    unsafe {
                        match (self.level.kind(), run.stores) {
                            // Facts promise no other stores for the baseline.
                            (Kind::Baseline, _) if are_plain::<$($name),*>() => self.rows::<false, true>(run, rows),
                            (Kind::Baseline, _) => self.rows::<false, false>(run, rows),
                            #[cfg(target_arch = "x86_64")]
                            (Kind::Avx2 | Kind::Avx512, Stores::Cached) => self.rows_avx2(run, rows),
                            #[cfg(target_arch = "x86_64")]
                            (Kind::Avx2 | Kind::Avx512, Stores::NonTemporal) => self.stream_avx2(run),
                        }
                    }
                }

                #[inline(always)]
                unsafe fn few(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
                    // SAFETY: the caller keeps the conditions.
                    unsafe {
                        match are_plain::<$($name),*>() {
                            true => self.few_rows::<true>(run, rows),
                            false => self.few_rows::<false>(run, rows),
                        }
                    }
                }

                unsafe fn strided(&mut self, out: *mut u8, ins: &[*const u8], steps: &[isize], len: usize) {
                    let steps: [isize; $count + 1] = std::array::from_fn(|array| steps[array]);
                    for at in 0..len.cast_signed() {
                        // SAFETY: the pointers reach `len` elements along their steps, by the invariant of `inner_loop`.
                        unsafe {
                            let value = (self.f)($(&*ins[$index].offset(at * steps[$index + 1]).cast::<$name>()),*);
                            Self::put(place::<R>(out.wrapping_offset(at * steps[0])), value, self.assign, &mut self.written);
                        }
                    }
                }

                fn written(&self) -> usize {
                    self.written
                }
            }
        };
    };
}

/// A closure that changes elements of type `X` in place, beside elements of the types in `T`.
pub(crate) struct Update<F, T, X> {
    f: F,
    level: Level,
    types: PhantomData<fn(&mut X, T)>,
}

impl<F, T, X> Update<F, T, X> {
    #[inline(always)]
    pub(crate) fn new(f: F, level: Level) -> Self {
        Self { f, level, types: PhantomData }
    }
}

macro_rules! update {
    ($count:literal: $($name:ident $value:ident $index:tt),*) => {
        impl<X, $($name,)* Func: FnMut(&mut X, $(&$name),*)> Update<Func, ($($name,)*), X> {
            /// Each row in blocks where an operand repeats.
            ///
            /// # Safety
            ///
            /// As [`InnerLoop::contiguous`].
            #[inline(always)]
            unsafe fn rows<const COPIED: bool>(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
                let whole = run.len.max(1);
                let block = [$(if run.repeated >> $index & 1 == 1 {
                    REPEATED_BLOCK_ELEMENTS
                } else {
                    whole
                }),*];
                let block = block.into_iter().fold(whole, usize::min);
                $(let $value = if run.repeated >> $index & 1 == 1 { 0 } else { 1 };)*
                let (mut out, mut ins) = (run.out, [$(run.ins[$index]),*]);
                for _ in 0..rows.count {
                    let (mut done, mut most) = (0, first_block::<X>(out.cast(), run.len, block));
                    while done < run.len {
                        let len = most.min(run.len - done);
                        most = block;
                        // SAFETY: the invariant of `inner_loop` gives contiguous operands `run.len` elements and repeated
                        // ones a block, and output memory that nothing else refers to, which holds values.
                        unsafe {
                            let all = slice::from_raw_parts_mut(place::<X>(out).add(done), len);
                            $(let $value = slice::from_raw_parts(ins[$index].cast::<$name>().add($value * done), len);)*
                            for at in 0..len {
                                let mut copies = ($(MaybeUninit::<$name>::uninit(),)*);
                                $(let $value = seen::<COPIED, _>($value.as_ptr().add(at), &mut copies.$index);)*
                                (self.f)(all.get_unchecked_mut(at), $($value),*);
                            }
                        }
                        done += len;
                    }
                    rows.advance(&mut out, &mut ins);
                }
            }

            compiled_for_levels! {
                /// [`Self::rows`], compiled for AVX2.
                ///
                /// # Safety
                ///
                /// As there, and the machine has AVX2.
                unsafe fn rows_avx2(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
                    // SAFETY: the caller keeps the conditions.
                    unsafe {
                        match true $(&& is_plain::<$name>())* {
                            true => self.rows::<true>(run, rows),
                            false => self.rows::<false>(run, rows),
                        }
                    }
                }
            }
        }

        // SAFETY: the facts are those of the element types; the elements of the output hold values before and after.
        unsafe impl<X, $($name,)* Func: FnMut(&mut X, $(&$name),*)> InnerLoop for Update<Func, ($($name,)*), X> {
            fn facts(&self) -> Facts<'_> {
                Facts {
                    sizes: const { &[if size_of::<X>() == 0 { 1 } else { size_of::<X>() }, $(size_of::<$name>()),*] },
                    plain: 0 $(| Operands::from(is_plain::<$name>()) << $index)*,
                    // Elements are changed where they are: they must not come from a tile.
                    plain_result: false,
                    repeated: Repeated::Block,
                    copies: None,
                    nontemporal: false,
                    prefetches: false,
                    compute_bound: false,
                    operations: 1,
                }
            }

            unsafe fn contiguous(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
                // SAFETY: the caller keeps the conditions; a `Level` exists only where the machine has it.
                unsafe {
                    match self.level.kind() {
                        Kind::Baseline => self.rows::<false>(run, rows),
                        #[cfg(target_arch = "x86_64")]
                        Kind::Avx2 | Kind::Avx512 => self.rows_avx2(run, rows),
                    }
                }
            }

            unsafe fn strided(&mut self, out: *mut u8, ins: &[*const u8], steps: &[isize], len: usize) {
                let steps: [isize; $count + 1] = std::array::from_fn(|array| steps[array]);
                for at in 0..len.cast_signed() {
                    // SAFETY: the pointers reach `len` elements along their steps, by the invariant of `inner_loop`.
                    unsafe {
                        let element = &mut *place::<X>(out.wrapping_offset(at * steps[0]));
                        (self.f)(element, $(&*ins[$index].offset(at * steps[$index + 1]).cast::<$name>()),*);
                    }
                }
            }
        }
    };
}

closure!(1: A a 0);
closure!(2: A a 0, B b 1);
closure!(3: A a 0, B b 1, C c 2);
closure!(4: A a 0, B b 1, C c 2, D d 3);
closure!(5: A a 0, B b 1, C c 2, D d 3, E e 4);
closure!(6: A a 0, B b 1, C c 2, D d 3, E e 4, F f_ 5);
closure!(7: A a 0, B b 1, C c 2, D d 3, E e 4, F f_ 5, G g 6);
closure!(8: A a 0, B b 1, C c 2, D d 3, E e 4, F f_ 5, G g 6, H h 7);

update!(1: A a 0);
update!(2: A a 0, B b 1);
update!(3: A a 0, B b 1, C c 2);
update!(4: A a 0, B b 1, C c 2, D d 3);
update!(5: A a 0, B b 1, C c 2, D d 3, E e 4);
update!(6: A a 0, B b 1, C c 2, D d 3, E e 4, F f_ 5);
update!(7: A a 0, B b 1, C c 2, D d 3, E e 4, F f_ 5, G g 6);
update!(8: A a 0, B b 1, C c 2, D d 3, E e 4, F f_ 5, G g 6, H h 7);
