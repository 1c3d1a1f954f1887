//! Runs: the innermost loops, one for each pattern of contiguous and repeated operands.
//!
//! A [`Body`] is a closure with the types of what it reads and writes. [`Body::dense`] is for runs
//! on which the output and every operand are contiguous, or repeat one element ("splat"); the
//! pattern is a constant of the loop, so that the compiler sees slices and vectorises.
//! [`Body::strided`] is for everything else.
//!
//! Invariant of every call: pointers are aligned and reach `len` elements along their strides, all
//! of them valid for reads (operands) or writes (output); the output overlaps no operand, since it
//! comes from a `&mut` borrow or a fresh allocation while the operands are borrowed.

use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop};
use std::slice;

use crate::layout::loop_nest::Loop;
use simulcast_kernels::cpu::nontemporal::{self, Ask, Far, Strip};
use simulcast_kernels::pod::is_plain;

/// Work on runs of `N` operands.
pub(crate) trait Body<const N: usize> {
    /// What is written.
    type Out;

    /// Whether `dense` takes patterns other than 0.
    const PATTERNS: bool;

    /// Whether its loops are compiled for levels of their own, so that the driver need not be for
    /// every one.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there is one level"))]
    const OWN_LEVELS: bool = false;

    /// How many `Out` make one result; the output's strides count them.
    #[inline(always)]
    fn unit(&self) -> usize {
        1
    }

    /// Whether one loop does all, and takes longer than memory does: then reading and writing go on
    /// beside it, and moving results out at once would hold it up.
    #[inline(always)]
    fn spreads(&self) -> bool {
        false
    }

    /// What tells it from most other bodies.
    fn identity(&self) -> usize;

    /// The bytes of each operand's elements.
    fn sizes(&self) -> [usize; N];

    /// Whether each operand's elements are plain data.
    fn plain(&self) -> [bool; N];

    /// How many results were written, counted where they need to be dropped.
    fn done(&self) -> usize;

    /// A run on which the output is contiguous, and operand n too unless bit n of `splat` is set.
    ///
    /// # Safety
    ///
    /// The invariant of this module; `splat` is below `1 << N`, and 0 unless `PATTERNS`.
    unsafe fn dense(&mut self, out: *mut Self::Out, ins: [*const u8; N], splat: usize, len: usize);

    /// Whether short rows are worth a call each.
    #[inline(always)]
    fn takes_rows(&self) -> bool {
        true
    }

    /// Some rows, each as [`Body::dense`]: a loop over them says how far apart they are.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn rows(
        &mut self,
        out: *mut Self::Out,
        ins: [*const u8; N],
        splat: usize,
        len: usize,
        rows: &Loop<N>,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { row_by_row(self, out, ins, splat, len, rows) };
    }

    /// The same for so few results that every question counts.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    unsafe fn few(
        &mut self,
        out: *mut Self::Out,
        ins: [*const u8; N],
        splat: usize,
        len: usize,
        rows: &Loop<N>,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { self.rows(out, ins, splat, len, rows) };
    }

    /// As [`Body::dense`], with results that go past the caches, and operands that come from memory.
    ///
    /// # Safety
    ///
    /// As there; results are plain data, and with `WIDE` the caller is compiled for AVX.
    unsafe fn streamed<const WIDE: bool>(
        &mut self,
        out: *mut Self::Out,
        ins: [*const u8; N],
        splat: usize,
        len: usize,
        far: Far,
    );

    /// The operand whose elements are the results, where there is one.
    fn copies(&self) -> Option<usize>;

    /// Whether one loop makes a strip.
    fn strips(&self) -> bool;

    /// As [`Body::streamed`], for operands that are in a cache and results that lie as a strip says.
    ///
    /// # Safety
    ///
    /// As there, and the results fit the strip, or it is none.
    unsafe fn strip<const WIDE: bool>(
        &mut self,
        out: *mut Self::Out,
        ins: [*const u8; N],
        splat: usize,
        len: usize,
        strip: &Strip,
    );

    /// A run with any strides, in elements.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    unsafe fn strided(
        &mut self,
        out: *mut Self::Out,
        step: isize,
        ins: [*const u8; N],
        steps: [isize; N],
        len: usize,
    );
}

/// How far apart the rows of each operand are, in bytes.
#[inline(always)]
fn bytes<const N: usize>(rows: &Loop<N>, sizes: [usize; N]) -> [isize; N] {
    std::array::from_fn(|n| rows.ins[n].wrapping_mul(sizes[n].cast_signed()))
}

/// A run for each of some rows.
///
/// # Safety
///
/// As [`Body::rows`].
#[inline(always)]
pub(crate) unsafe fn row_by_row<B: Body<N> + ?Sized, const N: usize>(
    body: &mut B,
    mut out: *mut B::Out,
    mut ins: [*const u8; N],
    splat: usize,
    len: usize,
    rows: &Loop<N>,
) {
    let steps = bytes(rows, body.sizes());
    for _ in 0..rows.len {
        // SAFETY: the caller keeps the conditions.
        unsafe { body.dense(out, ins, splat, len) };
        out = out.wrapping_offset(rows.out);
        for (place, step) in ins.iter_mut().zip(steps) {
            *place = place.wrapping_offset(step);
        }
    }
}

/// Which ends of rows that are not whole lines lie within columns that others make too: a row begins and ends there at the
/// next line, so that every line is written at once, by one of them.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) left: bool,
    pub(crate) right: bool,
}

/// A run for each of some rows, each of which lies as a strip says; what to `ask` for is asked for before each.
///
/// # Safety
///
/// As [`Body::strip`], and a row has as many elements more as there are in a line, where others make those at its right
/// too; results are aligned for their size then.
#[inline(always)]
pub(crate) unsafe fn strips<B: Body<N>, const N: usize, const WIDE: bool>(
    body: &mut B,
    (mut out, mut ins, splat, len): (*mut B::Out, [*const u8; N], usize, usize),
    ends: Ends,
    rows: &Loop<N>,
    strip: &Strip,
    mut ask: Ask,
) {
    let (sizes, unit) = (body.sizes(), body.unit());
    let size = (size_of::<B::Out>() * unit).max(1);
    let steps = bytes(rows, sizes);
    let in_line = |at: *mut B::Out| at.addr().wrapping_neg() % nontemporal::LINE / size;
    for _ in 0..rows.len {
        ask.some();
        let skip = if ends.left { in_line(out) } else { 0 };
        let more = if ends.right { in_line(out.wrapping_add(len * unit)) } else { 0 };
        let from = std::array::from_fn(|n| {
            ins[n].wrapping_add(if splat >> n & 1 == 1 { 0 } else { skip * sizes[n] })
        });
        let to = out.wrapping_add(skip * unit);
        // SAFETY: the caller keeps the conditions.
        unsafe { body.strip::<WIDE>(to, from, splat, len + more - skip, strip) };
        out = out.wrapping_offset(rows.out);
        for (place, step) in ins.iter_mut().zip(steps) {
            *place = place.wrapping_offset(step);
        }
    }
}

/// A closure over elements of the types in `T`, with results of type `R`.
pub(crate) struct Map<F, T, R> {
    f: F,
    /// Whether the output holds values already, which are to be dropped.
    assign: bool,
    /// Whether the closure clones its only operand.
    moves: bool,
    /// How many results were written, counted where they need to be dropped.
    done: usize,
    types: PhantomData<fn(T) -> R>,
}

impl<F, T, R> Map<F, T, R> {
    #[inline(always)]
    pub(crate) fn new(f: F, assign: bool, moves: bool) -> Self {
        Self { f, assign, moves, done: 0, types: PhantomData }
    }
}

/// Writes a result.
///
/// # Safety
///
/// `slot` is valid for writes, and holds a value where `assign` is set.
#[inline(always)]
unsafe fn put<R>(slot: *mut R, value: R, assign: bool, done: &mut usize) {
    if !needs_drop::<R>() {
        // SAFETY: valid for writes by the condition of this function.
        unsafe { slot.write(value) };
        return;
    }
    if assign {
        // SAFETY: it holds a value by the condition of this function.
        unsafe { *slot = value };
    } else {
        // SAFETY: valid for writes by the condition of this function.
        unsafe { slot.write(value) };
    }
    *done += 1;
}

macro_rules! body {
    ($count:literal, $patterns:literal, [$($pattern:literal)*]: $($name:ident $value:ident $index:tt),*) => {
        const _: () = {
            /// The loop for one pattern. The slices are references, and so promised not to overlap.
            ///
            /// # Safety
            ///
            /// `assign` is set only where `out` holds values; each slice has `out.len()` elements,
            /// or one where its bit of `PATTERN` is set.
            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "one for each operand")]
            unsafe fn run<const PATTERN: usize, $($name,)* R, Func: FnMut($(&$name),*) -> R>(
                f: &mut Func,
                out: &mut [MaybeUninit<R>],
                $($value: &[$name],)*
                assign: bool,
                done: &mut usize,
            ) {
                for at in 0..out.len() {
                    // SAFETY: `at` is below the length of every slice that is not repeated.
                    $(let $value = unsafe {
                        $value.get_unchecked(if PATTERN >> $index & 1 == 1 { 0 } else { at })
                    };)*
                    let value = f($($value),*);
                    // SAFETY: `at` is below the length, and the caller vouches for `assign`.
                    unsafe { put(out.get_unchecked_mut(at).as_mut_ptr(), value, assign, done) };
                }
            }

            impl<$($name,)* R, Func: FnMut($(&$name),*) -> R> Map<Func, ($($name,)*), R> {
                /// # Safety
                ///
                /// As [`Body::dense`].
                #[inline(always)]
                unsafe fn pattern<const PATTERN: usize>(
                    &mut self,
                    out: *mut R,
                    ins: [*const u8; $count],
                    len: usize,
                ) {
                    // SAFETY: the invariant of this module gives each pointer as many elements as
                    // the pattern says, and output memory that nobody else sees.
                    unsafe {
                        run::<PATTERN, $($name,)* R, Func>(
                            &mut self.f,
                            slice::from_raw_parts_mut(out.cast(), len),
                            $(slice::from_raw_parts(
                                ins[$index].cast(),
                                if PATTERN >> $index & 1 == 1 { 1 } else { len },
                            ),)*
                            self.assign,
                            &mut self.done,
                        );
                    }
                }

                /// [`Self::pattern`] for each of some rows.
                ///
                /// # Safety
                ///
                /// As [`Body::rows`].
                #[inline(always)]
                unsafe fn patterns<const PATTERN: usize>(
                    &mut self,
                    mut out: *mut R,
                    mut ins: [*const u8; $count],
                    len: usize,
                    rows: &Loop<$count>,
                ) {
                    let steps = bytes(rows, self.sizes());
                    for _ in 0..rows.len {
                        // SAFETY: the caller keeps the conditions.
                        unsafe { self.pattern::<PATTERN>(out, ins, len) };
                        out = out.wrapping_offset(rows.out);
                        $(ins[$index] = ins[$index].wrapping_offset(steps[$index]);)*
                    }
                }

                /// [`Self::pattern`], past the caches.
                ///
                /// # Safety
                ///
                /// As [`Body::streamed`].
                #[inline(always)]
                unsafe fn past<const PATTERN: usize, const WIDE: bool>(
                    &mut self,
                    out: *mut R,
                    ins: [*const u8; $count],
                    len: usize,
                    strip: &Strip,
                    asked: usize,
                ) {
                    let sizes = self.sizes();
                    // SAFETY: the caller keeps the conditions, and results are asked for within `len`.
                    unsafe {
                        nontemporal::results::<R, WIDE>(out, len, strip, |to, from, count| {
                            nontemporal::ask_for(asked, &ins, &sizes, from..from + count);
                            let ins = [$(ins[$index].add(match PATTERN >> $index & 1 {
                                1 => 0,
                                _ => from * size_of::<$name>(),
                            })),*];
                            self.pattern::<PATTERN>(to, ins, count);
                        });
                    }
                }
            }

            impl<$($name,)* R, Func: FnMut($(&$name),*) -> R> Body<$count> for Map<Func, ($($name,)*), R> {
                type Out = R;
                const PATTERNS: bool = $patterns;

                #[inline(always)]
                fn identity(&self) -> usize {
                    std::any::type_name::<Func>().as_ptr().addr()
                }

                #[inline(always)]
                fn sizes(&self) -> [usize; $count] {
                    [$(size_of::<$name>()),*]
                }

                #[inline(always)]
                fn plain(&self) -> [bool; $count] {
                    [$(is_plain::<$name>()),*]
                }

                #[inline(always)]
                fn done(&self) -> usize {
                    self.done
                }

                #[inline(always)]
                unsafe fn dense(
                    &mut self,
                    out: *mut R,
                    ins: [*const u8; $count],
                    splat: usize,
                    len: usize,
                ) {
                    let head = nontemporal::head(out, len);
                    for (from, to) in [(0, head), (head, len)] {
                        if from == to {
                            continue;
                        }
                        let skip = |n: usize, size: usize| if splat >> n & 1 == 1 { 0 } else { from * size };
                        // SAFETY: the caller keeps the conditions.
                        unsafe {
                            let ins = [$(ins[$index].add(skip($index, size_of::<$name>()))),*];
                            let (out, len) = (out.add(from), to - from);
                            match splat {
                                $($pattern => self.pattern::<$pattern>(out, ins, len),)*
                                _ => {}
                            }
                        }
                    }
                }

                #[inline(always)]
                unsafe fn few(
                    &mut self,
                    out: *mut R,
                    ins: [*const u8; $count],
                    splat: usize,
                    len: usize,
                    rows: &Loop<$count>,
                ) {
                    // SAFETY: the caller keeps the conditions.
                    unsafe {
                        match splat {
                            $($pattern => self.patterns::<$pattern>(out, ins, len, rows),)*
                            _ => {}
                        }
                    }
                }

                #[inline(always)]
                unsafe fn streamed<const WIDE: bool>(
                    &mut self,
                    out: *mut R,
                    ins: [*const u8; $count],
                    splat: usize,
                    len: usize,
                    far: Far,
                ) {
                    let bytes = len * size_of::<R>();
                    let asked = far.asked(&self.sizes(), size_of::<R>());
                    // SAFETY: the caller keeps the conditions; a closure that clones its only
                    // operand makes results of its type.
                    unsafe {
                        if self.copies().is_some() && splat == 0 {
                            return nontemporal::copy::<WIDE>(out.cast(), ins[0], bytes);
                        }
                        match splat {
                            $($pattern => self.past::<$pattern, WIDE>(out, ins, len, &Strip::NONE, asked),)*
                            _ => {}
                        }
                    }
                }

                #[inline(always)]
                fn copies(&self) -> Option<usize> {
                    ($count == 1 && self.moves).then_some(0)
                }

                #[inline(always)]
                fn strips(&self) -> bool {
                    true
                }

                #[inline(always)]
                unsafe fn strip<const WIDE: bool>(
                    &mut self,
                    out: *mut R,
                    ins: [*const u8; $count],
                    splat: usize,
                    len: usize,
                    strip: &Strip,
                ) {
                    // SAFETY: the caller keeps the conditions.
                    unsafe {
                        match splat {
                            $($pattern => self.past::<$pattern, WIDE>(out, ins, len, strip, 0),)*
                            _ => {}
                        }
                    }
                }

                #[inline(always)]
                unsafe fn strided(
                    &mut self,
                    out: *mut R,
                    step: isize,
                    ins: [*const u8; $count],
                    steps: [isize; $count],
                    len: usize,
                ) {
                    for at in 0..len.cast_signed() {
                        // SAFETY: the pointers reach `len` elements by the invariant of this module.
                        unsafe {
                            let value = (self.f)($(&*ins[$index].cast::<$name>().offset(at * steps[$index])),*);
                            put(out.offset(at * step), value, self.assign, &mut self.done);
                        }
                    }
                }
            }
        };
    };
}

body!(1, true, [0 1]: A a 0);
body!(2, true, [0 1 2 3]: A a 0, B b 1);
body!(3, true, [0 1 2 3 4 5 6 7]: A a 0, B b 1, C c 2);
body!(4, false, [0]: A a 0, B b 1, C c 2, D d 3);
body!(5, false, [0]: A a 0, B b 1, C c 2, D d 3, E e 4);
body!(6, false, [0]: A a 0, B b 1, C c 2, D d 3, E e 4, F f_ 5);
body!(7, false, [0]: A a 0, B b 1, C c 2, D d 3, E e 4, F f_ 5, G g 6);
body!(8, false, [0]: A a 0, B b 1, C c 2, D d 3, E e 4, F f_ 5, G g 6, H h 7);
