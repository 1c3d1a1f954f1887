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
use std::sync::{Mutex, OnceLock, PoisonError};

use ndarray::{Array, ArrayRef, Dimension, IxDyn};
use simulcast_core::{BroadcastError, Names, Refusal, Rule};

use crate::api::view::or_panic;
use crate::array::operand::{CommonDim, LaidOperands, Operand, Operands};
use crate::exec::closure::{Closure, Update};
use crate::exec::inner_loop::InnerLoop;
use crate::exec::launch::{Source, Work};
use crate::exec::strategy::Strategy;
use crate::exec::tiny::{Tiny, is_tiny};
use crate::layout::broadcast::Laid;
use simulcast_kernels::cpu::level::Level;

/// Operands in one shape, ready for a closure; see [`zip`].
///
/// ```
/// use ndarray::{Array2, Ix2, array};
/// use simulcast::{Zip, zip};
///
/// let (x, row) = (Array2::<f32>::ones((2, 3)), array![1_f32, 2.0, 3.0]);
/// let both: Zip<_, Ix2> = zip((&x, &row)); // nothing is computed yet
/// assert_eq!(both.shape(), [2, 3]);
/// assert_eq!(both.fold(0.0, |sum, x, row| sum + x * row), 12.0);
/// ```
#[must_use = "a zip does nothing until it is mapped, folded or visited"]
pub struct Zip<T, D> {
    operands: T,
    /// The operands' strides along the result, once something needed them. Under [`Rule::Numpy`] each call computes them
    /// anew: for tiny arrays that takes less time than to store them here.
    laid: OnceLock<LaidOperands>,
    /// Whether all operands have one shape, so that their own strides are those along the result.
    alike: bool,
    /// Whether the closure to come clones its only operand.
    copies: bool,
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
pub fn zip<T: CommonDim<Dim = D>, D: Dimension>(operands: T) -> Zip<T, D> {
    or_panic(checked(operands))
}

/// [`zip()`] without the panic.
///
/// ```
/// use ndarray::{Array2, array};
/// use simulcast::{BroadcastError, try_zip};
///
/// fn centred(x: &Array2<f64>, mean: &ndarray::Array1<f64>) -> Result<Array2<f64>, BroadcastError> {
///     try_zip((x, mean))?.try_map(|x, mean| x - mean)
/// }
/// let error = centred(&Array2::zeros((2, 3)), &array![1.0, 2.0]).unwrap_err();
/// assert_eq!(error.clash().map(|clash| (clash.axis, clash.sizes)), Some((1, [3, 2])));
/// ```
///
/// # Errors
///
/// Where the operands do not broadcast.
#[inline(always)]
pub fn try_zip<T: CommonDim<Dim = D>, D: Dimension>(
    operands: T,
) -> Result<Zip<T, D>, BroadcastError> {
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
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, try_zip_by};
///
/// // No operand may stretch.
/// let error = try_zip_by(Rule::Exact, (&array![1, 2, 3], &array![4])).unwrap_err();
/// assert!(error.to_string().contains("axis 0 (-1): A has 3, B has 1"));
/// ```
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

/// [`zip()`] of operands whose ranks the compiler does not know: the result's rank is known when it runs.
///
/// For code that is generic over dimensions, where `zip` needs a bound such as `D: DimMax<Ix1>`.
/// [`ranked`](Zip::ranked) and [`zip_onto`] give the dimension back.
///
/// ```
/// use ndarray::{Array, ArrayD, Dimension, array};
/// use simulcast::zip_dyn;
///
/// fn product<D: Dimension, E: Dimension>(x: &Array<f64, D>, y: &Array<f64, E>) -> ArrayD<f64> {
///     zip_dyn((x, y)).map(|x, y| x * y)
/// }
/// assert_eq!(product(&array![[1.0], [2.0]], &array![3.0, 4.0]), array![[3.0, 4.0], [6.0, 8.0]].into_dyn());
/// ```
///
/// # Panics
///
/// Where they do not broadcast, with the message of the [`BroadcastError`].
#[track_caller]
#[inline]
pub fn zip_dyn<T: Operands>(operands: T) -> Zip<T, IxDyn> {
    or_panic(try_zip_dyn(operands))
}

/// [`zip_dyn`] without the panic.
///
/// ```
/// use ndarray::{Array, Dimension, Ix1, array};
/// use simulcast::{BroadcastError, try_zip_dyn};
///
/// fn outer<D: Dimension>(x: &Array<f64, D>, row: &Array<f64, Ix1>) -> Result<Vec<usize>, BroadcastError> {
///     Ok(try_zip_dyn((x, row))?.shape().to_vec())
/// }
/// assert_eq!(outer(&array![[1.0], [2.0]], &array![3.0, 4.0, 5.0])?, [2, 3]);
/// # Ok::<(), BroadcastError>(())
/// ```
///
/// # Errors
///
/// Where the operands do not broadcast.
#[inline]
pub fn try_zip_dyn<T: Operands>(operands: T) -> Result<Zip<T, IxDyn>, BroadcastError> {
    checked(operands)
}

/// Brings operands onto the first under a rule: the result has the dimension of the first operand.
///
/// [`Rule::Unidirectional`], [`Rule::Pdpd`], [`Rule::Legacy`] and [`Rule::Exact`] promise that; under other rules it is an
/// error where the result has more axes. For code that is generic over a dimension too.
///
/// ```
/// use ndarray::{Array, Array1, Array4, Dimension, array};
/// use simulcast::{Rule, zip_onto};
///
/// let (images, bias) = (Array4::<f32>::zeros((2, 3, 4, 4)), array![1.0, 2.0, 3.0]);
/// let shifted: Array4<f32> = zip_onto(Rule::Pdpd { axis: Some(1) }, (&images, &bias)).map(|x, b| x + b);
/// assert_eq!(shifted[[1, 2, 3, 3]], 3.0);
///
/// fn scaled<D: Dimension>(x: &Array<f64, D>, scale: &Array1<f64>) -> Array<f64, D> {
///     zip_onto(Rule::Unidirectional, (x, scale)).map(|x, scale| x * scale)
/// }
/// assert_eq!(scaled(&array![[1.0, 2.0]], &array![3.0, 4.0]), array![[3.0, 8.0]]);
/// ```
///
/// # Panics
///
/// Where they do not broadcast, or the result has another rank, with the message of the [`BroadcastError`].
#[track_caller]
#[inline]
pub fn zip_onto<T: Operands>(rule: Rule<'_>, operands: T) -> Zip<T, T::First> {
    or_panic(try_zip_onto(rule, operands))
}

/// [`zip_onto`] without the panic.
///
/// ```
/// use ndarray::array;
/// use simulcast::{Rule, try_zip_onto};
///
/// let error = try_zip_onto(Rule::Numpy, (&array![1, 2], &array![[3], [4]])).unwrap_err();
/// assert!(error.to_string().ends_with("result has rank 2, the first operand has 1"));
/// ```
///
/// # Errors
///
/// Where the operands do not broadcast under the rule, or the result has another rank than the first operand.
#[inline]
pub fn try_zip_onto<T: Operands>(
    rule: Rule<'_>,
    operands: T,
) -> Result<Zip<T, T::First>, BroadcastError> {
    let zip: Zip<T, IxDyn> = laid(rule, operands)?;
    match zip.operands.first().len() {
        rank if rank == zip.shape().len() => Ok(zip.with_dim()),
        rank => Err(zip.misranked(rank, "the first operand")),
    }
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
            copies: false,
            level: Level::for_closures(),
            threads: None,
            dim: PhantomData,
        }
    }

    /// Lays them, once; an error where they cannot be. Not cold: under other rules than NumPy's all come here.
    #[inline(never)]
    fn lay(&self, rule: Rule<'_>) -> Result<&LaidOperands, BroadcastError> {
        let laid = self.operands.lay(rule)?;
        Ok(self.laid.get_or_init(|| laid))
    }

    /// The shape of the result.
    ///
    /// ```
    /// use ndarray::{Array2, array};
    /// use simulcast::zip;
    ///
    /// assert_eq!(zip((&Array2::<f32>::zeros((4, 1)), &array![1, 2, 3])).shape(), [4, 3]);
    /// ```
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        if self.alike {
            return self.operands.first();
        }
        let laid = self.laid.get().map_or_else(|| self.lay(Rule::Numpy), Ok);
        // Never an error: they fit.
        laid.map_or(&[], |laid| &laid.shape)
    }

    /// The same operands with a result of that dimension, which the rule could not tell the compiler.
    ///
    /// ```
    /// use ndarray::{Array4, Ix4, array};
    /// use simulcast::{Rule, zip_by};
    ///
    /// let (images, bias) = (Array4::<f32>::zeros((2, 3, 4, 4)), array![1.0, 2.0, 3.0]);
    /// let shifted = zip_by(Rule::Pdpd { axis: Some(1) }, (&images, &bias)).ranked::<Ix4>().map(|x, b| x + b);
    /// assert_eq!(shifted[[1, 2, 3, 3]], 3.0);
    /// let inferred: Array4<f32> = zip_by(Rule::Paddle { axis: Some(1) }, (&images, &bias)).ranked().map(|x, b| x + b);
    /// assert_eq!(inferred, shifted);
    /// ```
    ///
    /// # Panics
    ///
    /// Where the result has another rank, with the message of the [`BroadcastError`].
    #[track_caller]
    pub fn ranked<E: Dimension>(self) -> Zip<T, E> {
        or_panic(self.try_ranked())
    }

    /// [`ranked`](Self::ranked) without the panic.
    ///
    /// ```
    /// use ndarray::{Ix3, array};
    /// use simulcast::zip_dyn;
    ///
    /// let error = zip_dyn((&array![[1], [2]], &array![3, 4])).try_ranked::<Ix3>().unwrap_err();
    /// assert!(error.to_string().ends_with("result has rank 2, the type asked for has 3"));
    /// ```
    ///
    /// # Errors
    ///
    /// Where the result has another rank.
    pub fn try_ranked<E: Dimension>(self) -> Result<Zip<T, E>, BroadcastError> {
        match E::NDIM {
            Some(rank) if rank != self.shape().len() => {
                Err(self.misranked(rank, "the type asked for"))
            }
            _ => Ok(self.with_dim()),
        }
    }

    /// A result of another rank than is asked for.
    #[cold]
    fn misranked(&self, allowed: usize, whose: &'static str) -> BroadcastError {
        let shape = self.shape();
        let refusal = Refusal::Rank { operand: 0, rank: shape.len(), allowed, at_most: false };
        let error = BroadcastError::new(Rule::Exact, &[shape], refusal);
        error.with_names(Names::of(["result"])).with_target(whose).without_fixes()
    }

    /// The same with another dimension, which has the result's rank.
    fn with_dim<E>(self) -> Zip<T, E> {
        let Self { operands, laid, alike, copies, level, threads, dim: _ } = self;
        Zip { operands, laid, alike, copies, level, threads, dim: PhantomData }
    }

    /// Promises what closures will be, so that plain data moves as bytes.
    ///
    /// # Safety
    ///
    /// There is one operand, and every closure clones its elements.
    pub(crate) unsafe fn copying(mut self) -> Self {
        self.copies = true;
        self
    }

    /// Uses at most that many threads in the `par_…` calls: 1 keeps the work on this one.
    ///
    /// ```
    /// use ndarray::Array1;
    /// use simulcast::zip;
    ///
    /// let x = Array1::<f32>::ones(100_000);
    /// assert_eq!(zip((&x,)).threads(2).par_map(|x| x + 1.0).sum(), 200_000.0);
    /// ```
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Runs at that instruction-set level.
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::{Level, zip};
    ///
    /// assert_eq!(zip((&array![1, 2],)).level(Level::BASELINE).map(|x| x + 1), array![2, 3]);
    /// ```
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

impl<T, D> fmt::Debug for Zip<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zip").field("level", &self.level).finish_non_exhaustive()
    }
}

macro_rules! zips {
    ($count:literal: $($name:ident $index:tt),*) => {
        impl<$($name: Operand,)* Dim: Dimension> Zip<($($name,)*), Dim> {
            /// Passes on what is to be run: the operands' strides along the result, which are computed here where nothing
            /// asked for them yet.
            #[inline(always)]
            fn with_source<Out>(&self, then: impl FnOnce(Source<'_>) -> Out) -> Out {
                let ins = [$(self.operands.$index.pointer().cast()),*];
                // SAFETY: these are the operands that were laid, or have one shape, and inner loops are made for their
                // element types below; the parallel calls ask for `Sync`.
                unsafe {
                    if self.alike {
                        let strides = [$(self.operands.$index.steps()),*];
                        return then(Source::new(self.operands.first(), &strides, &ins, self.level));
                    }
                    if let Some(laid) = self.laid.get() {
                        let strides = laid.slices();
                        return then(Source::new(&laid.shape, &strides[..$count], &ins, self.level));
                    }
                    let mut laid = Laid::<$count>::default();
                    let sizes = [$(self.operands.$index.sizes()),*];
                    let steps = [$(self.operands.$index.steps()),*];
                    if laid.lay(Rule::Numpy, &sizes, &steps).is_err() {
                        unreachable!("operands that fit are laid");
                    }
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
                if !is_tiny(out.len()) || self.laid.get().is_some() {
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
                    self.copies,
                    self.level,
                );
                self.with_source(|source| source.explain(
                    &inner.facts(),
                    self.threads,
                    std::mem::needs_drop::<R>(),
                ))
            }

            /// A new row-major array of the closure's results.
            ///
            /// ```
            /// use ndarray::array;
            /// use simulcast::zip;
            ///
            /// let (x, scale) = (array![[1, 2], [3, 4]], array![0.5, 2.0]);
            /// assert_eq!(zip((&x, &scale)).map(|&x, scale| f64::from(x) * scale), array![[0.5, 4.0], [1.5, 8.0]]);
            /// ```
            ///
            /// # Panics
            ///
            /// Where the result does not fit in memory.
            #[track_caller]
            #[must_use]
            pub fn map<R>(&self, f: impl FnMut($(&$name::Elem),*) -> R) -> Array<R, Dim> {
                or_panic(self.try_map(f))
            }

            /// [`map`](Self::map) without the panic.
            ///
            /// ```
            /// use ndarray::array;
            /// use simulcast::{broadcast_to, zip};
            ///
            /// let byte = array![0_u8];
            /// let endless = broadcast_to(&byte, 1 << 60);
            /// let error = zip((endless,)).try_map(|&x| x).unwrap_err();
            /// assert_eq!(error.code(), "E15"); // no memory for it
            /// ```
            ///
            /// # Errors
            ///
            /// Where the result does not fit in memory.
            pub fn try_map<R>(
                &self,
                f: impl FnMut($(&$name::Elem),*) -> R,
            ) -> Result<Array<R, Dim>, BroadcastError> {
                let mut inner = Closure::<_, ($($name::Elem,)*), R>::new(f, false, self.copies, self.level);
                self.with_source(|source| source.collect(Work::Here(&mut inner)))
            }

            /// The closure's results into `out`, to whose shape the result stretches.
            ///
            /// ```
            /// use ndarray::{Array3, array, s};
            /// use simulcast::zip;
            ///
            /// let mut out = Array3::zeros((2, 2, 3));
            /// zip((&array![1, 2], &array![[10], [20]])).map_into(&mut out.slice_mut(s![.., .., ..2]), |a, b| a + b);
            /// assert_eq!(out.slice(s![1, .., ..]), array![[11, 12, 0], [21, 22, 0]]);
            /// ```
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
            /// ```
            /// use ndarray::{Array2, array};
            /// use simulcast::zip;
            ///
            /// let (row, column) = (array![1, 2, 3], array![[10], [20]]);
            /// let mut out = Array2::zeros((1, 3));
            /// let error = zip((&row, &column)).try_map_into(&mut out, |a, b| a + b).unwrap_err();
            /// assert!(error.to_string().ends_with("axis 0 (-2): out has 1, result has 2"));
            /// ```
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
                let mut inner = Closure::<_, ($($name::Elem,)*), R>::new(f, true, self.copies, self.level);
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
            /// ```
            /// use ndarray::array;
            /// use simulcast::zip;
            ///
            /// let mut x = array![1, 2, 3];
            /// assert!(zip((&array![[1], [2]],)).try_update(&mut x, |x, n| *x += n).is_err()); // x would have to stretch
            /// assert_eq!(x, array![1, 2, 3]);
            /// ```
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
            ///
            /// ```
            /// use ndarray::array;
            /// use simulcast::zip;
            ///
            /// let mut largest = i32::MIN;
            /// zip((&array![[1], [7]], &array![3, 5])).for_each(|a, b| largest = largest.max(a * b));
            /// assert_eq!(largest, 35);
            /// ```
            pub fn for_each(&self, f: impl FnMut($(&$name::Elem),*)) {
                let mut inner = Closure::<_, ($($name::Elem,)*), ()>::new(f, false, false, self.level);
                self.with_source(|source| source.effects(Work::Here(&mut inner), true));
            }

            /// The number of elements of the result for which the closure is true.
            ///
            /// ```
            /// use ndarray::array;
            /// use simulcast::zip;
            ///
            /// let (x, limit) = (array![[1.0, 5.0], [3.0, 4.0]], array![2.0, 4.5]);
            /// assert_eq!(zip((&x, &limit)).count(|x, limit| x > limit), 2);
            /// let mask = array![[true, false], [true, true]];
            /// assert_eq!(zip((&mask,)).count(|&set| set), 3);
            /// ```
            #[must_use]
            pub fn count(&self, mut f: impl FnMut($(&$name::Elem),*) -> bool) -> usize {
                let mut count = 0;
                #[expect(non_snake_case, reason = "one name for a type and its value")]
                self.for_each(|$($name),*| count += usize::from(f($($name),*)));
                count
            }

            /// Folds every element of the result, in row-major order.
            ///
            /// ```
            /// use ndarray::array;
            /// use simulcast::zip;
            ///
            /// let (x, y) = (array![[1.0], [2.0]], array![3.0, 4.0]);
            /// assert_eq!(zip((&x, &y)).fold(0.0, |sum, x, y| sum + x * y), 21.0);
            /// ```
            #[must_use]
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
            /// ```
            /// use ndarray::Array2;
            /// use simulcast::{math, zip};
            ///
            /// let (x, row) = (Array2::<f32>::zeros((500, 300)), ndarray::Array1::<f32>::ones(300));
            /// assert_eq!(zip((&x, &row)).par_map(|x, row| math::exp(*x) + row).sum(), 300_000.0);
            /// ```
            ///
            /// # Panics
            ///
            /// Where the result does not fit in memory.
            #[track_caller]
            #[must_use]
            pub fn par_map<R: Send>(&self, f: impl Fn($(&$name::Elem),*) -> R + Sync) -> Array<R, Dim> {
                or_panic(self.try_par_map(f))
            }

            /// [`par_map`](Self::par_map) without the panic.
            ///
            /// ```
            /// use ndarray::array;
            /// use simulcast::{broadcast_to, zip};
            ///
            /// let byte = array![0_u8];
            /// let endless = broadcast_to(&byte, 1 << 60);
            /// assert!(zip((endless,)).try_par_map(|&x| x).is_err()); // no memory for it
            /// ```
            ///
            /// # Errors
            ///
            /// Where the result does not fit in memory.
            pub fn try_par_map<R: Send>(
                &self,
                f: impl Fn($(&$name::Elem),*) -> R + Sync,
            ) -> Result<Array<R, Dim>, BroadcastError> {
                let (copies, level) = (self.copies, self.level);
                let make = |run: &mut dyn FnMut(&mut dyn InnerLoop)| {
                    run(&mut Closure::<_, ($($name::Elem,)*), R>::new(&f, false, copies, level));
                };
                self.with_source(|source| source.collect(Work::Parts(&make, self.threads)))
            }

            /// [`map_into`](Self::map_into) on several threads.
            ///
            /// ```
            /// use ndarray::{Array2, array};
            /// use simulcast::zip;
            ///
            /// let mut out = Array2::zeros((1000, 3));
            /// zip((&array![1.0, 2.0, 3.0],)).par_map_into(&mut out, |x| 2.0 * x);
            /// assert_eq!(out.row(999), array![2.0, 4.0, 6.0]);
            /// ```
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
            /// ```
            /// use ndarray::{Array2, array};
            /// use simulcast::zip;
            ///
            /// let (row, mut out) = (array![1.0, 2.0, 3.0], Array2::zeros((1000, 2)));
            /// assert!(zip((&row,)).try_par_map_into(&mut out, |x| 2.0 * x).is_err());
            /// ```
            ///
            /// # Errors
            ///
            /// Where the result does not broadcast to the shape of `out`, which never stretches.
            pub fn try_par_map_into<R: Send, E: Dimension>(
                &self,
                out: &mut ArrayRef<R, E>,
                f: impl Fn($(&$name::Elem),*) -> R + Sync,
            ) -> Result<(), BroadcastError> {
                let (copies, level) = (self.copies, self.level);
                let make = |run: &mut dyn FnMut(&mut dyn InnerLoop)| {
                    run(&mut Closure::<_, ($($name::Elem,)*), R>::new(&f, true, copies, level));
                };
                let mut first = Closure::<_, ($($name::Elem,)*), R>::new(&f, true, copies, level);
                if self.assigned_tiny(&mut first, out) {
                    return Ok(());
                }
                self.with_source(|source| source.assign(Work::Parts(&make, self.threads), out))
            }

            /// [`update`](Self::update) on several threads.
            ///
            /// ```
            /// use ndarray::{Array2, array};
            /// use simulcast::zip;
            ///
            /// let mut x = Array2::<f32>::ones((1000, 3));
            /// zip((&array![1.0, 2.0, 3.0],)).par_update(&mut x, |x, n| *x += n);
            /// assert_eq!(x.row(999), array![2.0, 3.0, 4.0]);
            /// ```
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
                or_panic(self.try_par_update(x, f));
            }

            /// [`par_update`](Self::par_update) without the panic.
            ///
            /// ```
            /// use ndarray::{Array2, array};
            /// use simulcast::zip;
            ///
            /// let (column, mut x) = (array![[1], [2]], Array2::<i32>::zeros((1, 3)));
            /// let error = zip((&column,)).try_par_update(&mut x, |x, n| *x += n).unwrap_err();
            /// assert!(error.to_string().ends_with("axis 0 (-2): out has 1, result has 2"));
            /// ```
            ///
            /// # Errors
            ///
            /// Where the operands do not broadcast to the shape of `x`, which never stretches.
            pub fn try_par_update<X: Send, E: Dimension>(
                &self,
                x: &mut ArrayRef<X, E>,
                f: impl Fn(&mut X, $(&$name::Elem),*) + Sync,
            ) -> Result<(), BroadcastError> {
                let level = self.level;
                let make = |run: &mut dyn FnMut(&mut dyn InnerLoop)| {
                    run(&mut Update::<_, ($($name::Elem,)*), X>::new(&f, level));
                };
                self.with_source(|source| source.assign(Work::Parts(&make, self.threads), x))
            }

            /// [`count`](Self::count) on several threads.
            ///
            /// ```
            /// use ndarray::{Array1, array};
            /// use simulcast::zip;
            ///
            /// let x = Array1::from_iter(0..100_000);
            /// assert_eq!(zip((&x, &array![[2], [3]])).par_count(|x, n| x % n == 0), 50_000 + 33_334);
            /// ```
            #[must_use]
            pub fn par_count(&self, f: impl Fn($(&$name::Elem),*) -> bool + Sync) -> usize {
                #[expect(non_snake_case, reason = "one name for a type and its value")]
                self.par_fold(|| 0, |count, $($name),*| count + usize::from(f($($name),*)), |a, b| a + b)
            }

            /// [`fold`](Self::fold) on several threads: each folds elements from `start`, in any order, and what they come
            /// to is combined in any order.
            ///
            /// `start` gives a value that changes nothing when it is combined, as 0 for a sum: it is called at least once
            /// for every part. How many parts there are depends on the threads, so a sum of floats may differ in its last
            /// bits; [`par_sum_to`](crate::par_sum_to) has the same on any number of threads.
            ///
            /// ```
            /// use ndarray::{Array2, array};
            /// use simulcast::zip;
            ///
            /// let (x, scale) = (Array2::<f32>::ones((300, 200)), array![[2_f32]]);
            /// let largest = zip((&x, &scale)).par_fold(|| f32::MIN, |most, x, s| most.max(x * s), f32::max);
            /// assert_eq!(largest, 2.0);
            /// ```
            #[must_use]
            pub fn par_fold<Acc: Send>(
                &self,
                start: impl Fn() -> Acc + Sync,
                f: impl Fn(Acc, $(&$name::Elem),*) -> Acc + Sync,
                combine: impl FnMut(Acc, Acc) -> Acc,
            ) -> Acc {
                let (level, done) = (self.level, Mutex::new(Vec::new()));
                let make = |run: &mut dyn FnMut(&mut dyn InnerLoop)| {
                    let mut value = Some(start());
                    #[expect(non_snake_case, reason = "one name for a type and its value")]
                    let step = |$($name: &$name::Elem),*| {
                        // Never `None`, but where the closure panicked.
                        value = value.take().map(|value| f(value, $($name),*));
                    };
                    run(&mut Closure::<_, ($($name::Elem,)*), ()>::new(step, false, false, level));
                    done.lock().unwrap_or_else(PoisonError::into_inner).extend(value);
                };
                self.with_source(|source| source.effects(Work::Parts(&make, self.threads), true));
                let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
                done.into_iter().reduce(combine).unwrap_or_else(start)
            }

            /// [`for_each`](Self::for_each) on several threads.
            ///
            /// ```
            /// use ndarray::Array1;
            /// use simulcast::zip;
            /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
            ///
            /// let hits = Array1::from_shape_fn(8, |_| AtomicU64::new(0));
            /// let x = Array1::from_iter(0..100_000_usize);
            /// zip((&x,)).par_for_each(|x| _ = hits[x % 8].fetch_add(1, Relaxed));
            /// assert!(hits.iter().all(|hits| hits.load(Relaxed) == 12_500));
            /// ```
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
