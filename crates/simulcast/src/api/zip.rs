//! Zips: any closure over any number of broadcast operands.
//!
//! ```
//! use ndarray::{Array2, array};
//! use simulcast::zip;
//!
//! let (x, scale, shift) = (array![[1.0, 2.0], [3.0, 4.0]], array![10.0, 100.0], array![[1], [2]]);
//! let y = zip((&x, &scale, &shift)).map(|x, scale, &shift| x * scale + f64::from(shift));
//! assert_eq!(y, array![[11.0, 201.0], [32.0, 402.0]]);
//!
//! let mut out = Array2::zeros((2, 2));
//! zip((&x, &scale)).map_into(&mut out, |x, scale| x - scale);
//! assert_eq!(out, array![[-9.0, -98.0], [-7.0, -96.0]]);
//!
//! let error = simulcast::try_zip((&x, &array![1, 2, 3])).err().map(|error| error.to_string());
//! assert!(error.is_some_and(|text| text.contains("axis 1 (-1): A has 2, B has 3")));
//! ```
//!
//! - Operands are never expanded: one that repeats is read where it is stored. Beyond the output
//!   a thread needs 12 KiB of the stack for tiles. Larger tiles are on the heap: for elements of one size, at most 32 KiB
//!   for each operand that is packed and for the results beside a transposed one.
//! - A fresh output is row-major and written once, without a zero fill. An output of the caller's
//!   may have any strides. The result stretches to it where it must; the output never does.
//! - An output cannot overlap an operand: it is borrowed for writing while they are borrowed for
//!   reading, and the compiler refuses both at once.
//! - Where a closure panics, every result that was written is dropped exactly once; an output of
//!   the caller's holds values all the same, old or new.
//! - Closures see the elements themselves, or bit-equal copies of plain numbers; `update` changes the elements of an array
//!   where they are.
//! - In which order elements are visited is said only for `fold`, which goes in row-major order.

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use ndarray::{Array, ArrayRef, Dimension, IxDyn};
use simulcast_core::{BroadcastError, Rule};

use crate::api::view::or_panic;
use crate::array::operand::{CommonDim, Operand, Operands};
use crate::exec::closure::{Closure, Update};
use crate::exec::inner_loop::InnerLoop;
use crate::exec::launch::{Source, Work};
use crate::exec::strategy::Strategy;
use crate::exec::tiny::Tiny;
use crate::layout::broadcast::Laid;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::tuning::TINY_ELEMENTS;

/// Operands in one shape, ready for a closure; see [`zip`].
#[must_use = "a zip does nothing until it is mapped, folded or visited"]
pub struct Zip<T: Operands, D> {
    operands: T,
    /// The operands' strides along the result, once something needed them. Under [`Rule::Numpy`] each call computes them
    /// anew: for tiny arrays that takes less time than to store them here.
    laid: OnceLock<Box<T::Laid>>,
    /// Whether all operands have one shape, so that their own strides are those along the result.
    alike: bool,
    /// Whether the closure to come clones its only operand.
    moves: bool,
    level: Level,
    threads: Option<usize>,
    dim: PhantomData<D>,
}

// Implements E_BROADCAST_ANY_FUNC_3030, E_BROADCAST_ANY_ERR_3010.
/// Brings one to eight operands to their common shape under [`Rule::Numpy`].
///
/// # Panics
///
/// Where they do not broadcast, with the message of the [`BroadcastError`].
///
/// ```
/// use ndarray::array;
/// use simulcast::zip;
///
/// let words = zip((&array![["a"], ["b"]], &array![1, 2])).map(|word, &n| word.repeat(n));
/// assert_eq!(words, array![["a", "aa"], ["b", "bb"]]);
/// ```
#[track_caller]
#[inline(always)]
pub fn zip<T: CommonDim>(operands: T) -> Zip<T, T::Dim> {
    or_panic(checked(operands))
}

/// [`zip`] without the panic.
///
/// # Errors
///
/// Where the operands do not broadcast.
#[inline(always)]
pub fn try_zip<T: CommonDim>(operands: T) -> Result<Zip<T, T::Dim>, BroadcastError> {
    checked(operands)
}

/// Brings operands to their common shape under a rule; the result's rank is known when it runs.
///
/// # Panics
///
/// Where they do not broadcast, with the message of the [`BroadcastError`].
///
/// ```
/// use ndarray::{array, ArrayD};
/// use simulcast::{NamedAxes, zip_by};
///
/// let named = NamedAxes::new(&[&["city", "day"][..], &["city"]])?;
/// let (rain, area) = (array![[1, 2, 3], [4, 5, 6]], array![10, 100]);
/// let water: ArrayD<i32> = zip_by(named.as_rule(), (&rain, &area)).map(|r, a| r * a);
/// assert_eq!(water, array![[10, 20, 30], [400, 500, 600]].into_dyn());
/// # Ok::<(), simulcast::Refusal>(())
/// ```
#[track_caller]
#[inline]
pub fn zip_by<T: Operands>(rule: Rule<'_>, operands: T) -> Zip<T, IxDyn> {
    or_panic(try_zip_by(rule, operands))
}

/// [`zip_by`] without the panic.
///
/// # Errors
///
/// Where the operands do not broadcast under the rule.
#[inline]
pub fn try_zip_by<T: Operands>(
    rule: Rule<'_>,
    operands: T,
) -> Result<Zip<T, IxDyn>, BroadcastError> {
    laid(rule, operands)
}

#[inline(always)]
pub(crate) fn laid<T: Operands, D>(
    rule: Rule<'_>,
    operands: T,
) -> Result<Zip<T, D>, BroadcastError> {
    if rule == Rule::Numpy {
        return checked(operands);
    }
    let zip = Zip { alike: false, ..Zip::new(operands) };
    zip.lay(rule)?;
    Ok(zip)
}

#[inline(always)]
fn checked<T: Operands, D>(operands: T) -> Result<Zip<T, D>, BroadcastError> {
    let zip = Zip::new(operands);
    if !(zip.alike || zip.operands.fit()) {
        zip.lay(Rule::Numpy)?;
    }
    Ok(zip)
}

impl<T: Operands, D> Zip<T, D> {
    /// Operands that are not laid yet, as for [`Rule::Numpy`].
    #[inline(always)]
    fn new(operands: T) -> Self {
        let alike = operands.alike();
        Self {
            operands,
            laid: OnceLock::new(),
            alike,
            moves: false,
            level: Level::for_closures(),
            threads: None,
            dim: PhantomData,
        }
    }

    /// Lays them, once; an error where they cannot be. Not cold: under other rules than NumPy's all come here.
    #[inline(never)]
    fn lay(&self, rule: Rule<'_>) -> Result<&T::Laid, BroadcastError> {
        let mut laid = Box::<T::Laid>::default();
        self.operands.lay(rule, &mut laid)?;
        Ok(self.laid.get_or_init(|| laid))
    }

    /// Promises what closures will be, so that plain data moves as bytes.
    ///
    /// # Safety
    ///
    /// There is one operand, and every closure clones its elements.
    pub(crate) unsafe fn moving(mut self) -> Self {
        self.moves = true;
        self
    }

    /// Uses at most that many threads in the `par_…` calls: 1 keeps the work on this one.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Runs at that instruction-set level.
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

impl<T: Operands, D> fmt::Debug for Zip<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zip").field("level", &self.level).finish_non_exhaustive()
    }
}

macro_rules! zips {
    ($count:literal: $($name:ident $index:tt),*) => {
        impl<$($name: Operand,)* Dim: Dimension> Zip<($($name,)*), Dim> {
            /// The shape of the result.
            #[must_use]
            pub fn shape(&self) -> &[usize] {
                if self.alike {
                    return self.operands.0.sizes();
                }
                let laid = self.laid.get().map_or_else(|| self.lay(Rule::Numpy), |laid| Ok(laid));
                // Never an error: they fit.
                laid.map_or(&[], |laid| &laid.shape)
            }

            /// Passes on what is to be run: the operands' strides along the result, which are computed here where nothing
            /// asked for them yet.
            #[inline(always)]
            fn with_source<Out>(&self, then: impl FnOnce(Source<'_>) -> Out) -> Out {
                let ins = [$(self.operands.$index.pointer().cast()),*];
                let own;
                // SAFETY: these are the operands that were laid, or have one shape, and inner loops are made for their
                // element types below; the parallel calls ask for `Sync`.
                unsafe {
                    if self.alike {
                        let strides = [$(self.operands.$index.steps()),*];
                        let shape = self.operands.0.sizes();
                        return then(Source::new(shape, &strides, &ins, self.level));
                    }
                    let laid = match self.laid.get() {
                        Some(laid) => laid,
                        None => {
                            let mut laid = Laid::default();
                            if self.operands.lay(Rule::Numpy, &mut laid).is_err() {
                                unreachable!("operands that fit are laid");
                            }
                            own = laid;
                            &own
                        }
                    };
                    then(Source::new(&laid.shape, &laid.slices(), &ins, self.level))
                }
            }

            /// Runs a closure into a tiny output, to whose shape all operands stretch; says whether it was one.
            #[inline(always)]
            fn assigned_tiny<R, E: Dimension>(
                &self,
                inner: &mut impl InnerLoop,
                out: &mut ArrayRef<R, E>,
            ) -> bool {
                if out.len() > TINY_ELEMENTS || self.laid.get().is_some() {
                    return false;
                }
                let to = out.as_mut_ptr().cast();
                let arrays = [
                    (out.shape(), out.strides()),
                    $((self.operands.$index.sizes(), self.operands.$index.steps())),*
                ];
                let Some(tiny) = Tiny::<{ $count + 1 }>::new(&inner.facts(), &arrays) else { return false };
                // SAFETY: the output is borrowed for writing, and holds values of its type; these are the operands' own
                // pointers, shapes and strides, and a closure for their element types.
                unsafe { tiny.run(inner, to, &[$(self.operands.$index.pointer().cast()),*]) };
                true
            }

            /// How [`par_map`](Self::par_map) with results of that type would run: which loops, stores and threads.
            ///
            /// ```
            /// use ndarray::Array2;
            /// use simulcast::zip;
            ///
            /// let (a, b) = (Array2::<f32>::zeros((256, 256)), Array2::<f32>::zeros((256, 256)));
            /// let strategy = zip((&a, &b.t())).strategy::<f32>();
            /// assert!(strategy.to_string().starts_with("blocked"));
            /// ```
            #[must_use]
            pub fn strategy<R>(&self) -> Strategy {
                #[allow(clippy::too_many_arguments, reason = "one for each operand")]
                fn never<$($name,)* R>($(_: &$name),*) -> R {
                    unreachable!("the strategy needs the facts of the closure, not the closure")
                }
                let inner = Closure::<_, ($($name::Elem,)*), R>::new(
                    never::<$($name::Elem,)* R>,
                    false,
                    self.moves,
                    self.level,
                );
                self.with_source(|source| source.explain(&inner.facts(), self.threads))
            }

            /// A new row-major array of the closure's results.
            ///
            /// # Panics
            ///
            /// Where the result does not fit in memory.
            #[track_caller]
            pub fn map<R>(&self, f: impl FnMut($(&$name::Elem),*) -> R) -> Array<R, Dim> {
                or_panic(self.try_map(f))
            }

            /// [`map`](Self::map) without the panic.
            ///
            /// # Errors
            ///
            /// Where the result does not fit in memory.
            pub fn try_map<R>(
                &self,
                f: impl FnMut($(&$name::Elem),*) -> R,
            ) -> Result<Array<R, Dim>, BroadcastError> {
                let mut inner = Closure::<_, ($($name::Elem,)*), R>::new(f, false, self.moves, self.level);
                self.with_source(|source| source.collect(Work::Here(&mut inner)))
            }

            /// The closure's results into `out`, to whose shape the result stretches.
            ///
            /// # Panics
            ///
            /// Where the result does not broadcast to the shape of `out`.
            #[track_caller]
            #[inline(always)]
            pub fn map_into<R, E: Dimension>(
                &self,
                out: &mut ArrayRef<R, E>,
                f: impl FnMut($(&$name::Elem),*) -> R,
            ) {
                or_panic(self.try_map_into(out, f));
            }

            /// [`map_into`](Self::map_into) without the panic.
            ///
            /// # Errors
            ///
            /// Where the result does not broadcast to the shape of `out`, which never stretches.
            #[inline(always)]
            pub fn try_map_into<R, E: Dimension>(
                &self,
                out: &mut ArrayRef<R, E>,
                f: impl FnMut($(&$name::Elem),*) -> R,
            ) -> Result<(), BroadcastError> {
                let mut inner = Closure::<_, ($($name::Elem,)*), R>::new(f, true, self.moves, self.level);
                if self.assigned_tiny(&mut inner, out) {
                    return Ok(());
                }
                self.with_source(|source| source.assign(Work::Here(&mut inner), out))
            }

            /// Changes every element of `x` in place, beside the operands' elements, which stretch to its shape.
            ///
            /// ```
            /// use ndarray::array;
            /// use simulcast::zip;
            ///
            /// let mut x = array![[1.0, 2.0], [3.0, 4.0]];
            /// zip((&array![10.0, 20.0], &array![[1.0], [2.0]])).update(&mut x, |x, row, column| *x = *x * column - row);
            /// assert_eq!(x, array![[-9.0, -18.0], [-4.0, -12.0]]);
            /// ```
            ///
            /// # Panics
            ///
            /// Where the operands do not broadcast to the shape of `x`.
            #[track_caller]
            pub fn update<X, E: Dimension>(
                &self,
                x: &mut ArrayRef<X, E>,
                f: impl FnMut(&mut X, $(&$name::Elem),*),
            ) {
                or_panic(self.try_update(x, f));
            }

            /// [`update`](Self::update) without the panic.
            ///
            /// # Errors
            ///
            /// Where the operands do not broadcast to the shape of `x`, which never stretches.
            pub fn try_update<X, E: Dimension>(
                &self,
                x: &mut ArrayRef<X, E>,
                f: impl FnMut(&mut X, $(&$name::Elem),*),
            ) -> Result<(), BroadcastError> {
                let mut inner = Update::<_, ($($name::Elem,)*), X>::new(f, self.level);
                self.with_source(|source| source.assign(Work::Here(&mut inner), x))
            }

            /// Calls the closure for every element of the result, in any order.
            pub fn for_each(&self, f: impl FnMut($(&$name::Elem),*)) {
                let mut inner = Closure::<_, ($($name::Elem,)*), ()>::new(f, false, false, self.level);
                self.with_source(|source| source.effects(Work::Here(&mut inner), true));
            }

            /// Folds every element of the result, in row-major order.
            pub fn fold<Acc>(&self, start: Acc, mut f: impl FnMut(Acc, $(&$name::Elem),*) -> Acc) -> Acc {
                let mut value = Some(start);
                #[expect(non_snake_case, reason = "one name for a type and its value")]
                let step = |$($name: &$name::Elem),*| {
                    // Never `None`, but where the closure panicked.
                    value = value.take().map(|value| f(value, $($name),*));
                };
                let mut inner = Closure::<_, ($($name::Elem,)*), ()>::new(step, false, false, self.level);
                self.with_source(|source| source.effects(Work::Here(&mut inner), false));
                match value {
                    Some(value) => value,
                    None => unreachable!("a fold that panicked does not come here"),
                }
            }
        }

        impl<$($name: Operand<Elem: Sync>,)* Dim: Dimension> Zip<($($name,)*), Dim> {
            /// [`map`](Self::map) on several threads.
            ///
            /// # Panics
            ///
            /// Where the result does not fit in memory.
            #[track_caller]
            pub fn par_map<R: Send>(&self, f: impl Fn($(&$name::Elem),*) -> R + Sync) -> Array<R, Dim> {
                or_panic(self.try_par_map(f))
            }

            /// [`par_map`](Self::par_map) without the panic.
            ///
            /// # Errors
            ///
            /// Where the result does not fit in memory.
            pub fn try_par_map<R: Send>(
                &self,
                f: impl Fn($(&$name::Elem),*) -> R + Sync,
            ) -> Result<Array<R, Dim>, BroadcastError> {
                let (moves, level) = (self.moves, self.level);
                let make = |run: &mut dyn FnMut(&mut dyn InnerLoop)| {
                    run(&mut Closure::<_, ($($name::Elem,)*), R>::new(&f, false, moves, level));
                };
                self.with_source(|source| source.collect(Work::Parts(&make, self.threads)))
            }

            /// [`map_into`](Self::map_into) on several threads.
            ///
            /// # Panics
            ///
            /// Where the result does not broadcast to the shape of `out`.
            #[track_caller]
            pub fn par_map_into<R: Send, E: Dimension>(
                &self,
                out: &mut ArrayRef<R, E>,
                f: impl Fn($(&$name::Elem),*) -> R + Sync,
            ) {
                or_panic(self.try_par_map_into(out, f));
            }

            /// [`par_map_into`](Self::par_map_into) without the panic.
            ///
            /// # Errors
            ///
            /// Where the result does not broadcast to the shape of `out`, which never stretches.
            pub fn try_par_map_into<R: Send, E: Dimension>(
                &self,
                out: &mut ArrayRef<R, E>,
                f: impl Fn($(&$name::Elem),*) -> R + Sync,
            ) -> Result<(), BroadcastError> {
                let (moves, level) = (self.moves, self.level);
                let make = |run: &mut dyn FnMut(&mut dyn InnerLoop)| {
                    run(&mut Closure::<_, ($($name::Elem,)*), R>::new(&f, true, moves, level));
                };
                let mut first = Closure::<_, ($($name::Elem,)*), R>::new(&f, true, moves, level);
                if self.assigned_tiny(&mut first, out) {
                    return Ok(());
                }
                self.with_source(|source| source.assign(Work::Parts(&make, self.threads), out))
            }

            /// [`update`](Self::update) on several threads.
            ///
            /// # Panics
            ///
            /// Where the operands do not broadcast to the shape of `x`.
            #[track_caller]
            pub fn par_update<X: Send, E: Dimension>(
                &self,
                x: &mut ArrayRef<X, E>,
                f: impl Fn(&mut X, $(&$name::Elem),*) + Sync,
            ) {
                let level = self.level;
                let make = |run: &mut dyn FnMut(&mut dyn InnerLoop)| {
                    run(&mut Update::<_, ($($name::Elem,)*), X>::new(&f, level));
                };
                or_panic(self.with_source(|source| source.assign(Work::Parts(&make, self.threads), x)));
            }

            /// [`for_each`](Self::for_each) on several threads.
            pub fn par_for_each(&self, f: impl Fn($(&$name::Elem),*) + Sync) {
                let level = self.level;
                let make = |run: &mut dyn FnMut(&mut dyn InnerLoop)| {
                    run(&mut Closure::<_, ($($name::Elem,)*), ()>::new(&f, false, false, level));
                };
                self.with_source(|source| source.effects(Work::Parts(&make, self.threads), true));
            }
        }
    };
}

zips!(1: A 0);
zips!(2: A 0, B 1);
zips!(3: A 0, B 1, C 2);
zips!(4: A 0, B 1, C 2, D 3);
zips!(5: A 0, B 1, C 2, D 3, E0 4);
zips!(6: A 0, B 1, C 2, D 3, E0 4, F 5);
zips!(7: A 0, B 1, C 2, D 3, E0 4, F 5, G 6);
zips!(8: A 0, B 1, C 2, D 3, E0 4, F 5, G 6, H 7);
