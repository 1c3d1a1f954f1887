//! Passes of several results: element-wise steps and reductions over one loop nest, every operand read once.
//!
//! ```text
//! part      a share of one axis, for a thread       sums of its own, where other parts have the same results
//! group     some rows                               sums in the type of the elements
//! piece     a row, or a part of it; short rows      the code, in registers in the first-level cache
//!           together
//! ```
//!
//! What a piece computes is reduced while it is in the cache: to one value, to a row, or to a value for each row. After a
//! group, those are added to the part's sums, which are kept in `float64` for `float32`. Parts follow from the shape and
//! the strides alone, and their sums are joined in pairs: so the bits are the same on any number of threads.

pub(crate) mod machine;
pub(crate) mod nest;
pub(crate) mod sums;
pub(crate) mod task;

use std::marker::PhantomData;

use ndarray::{ArrayD, IxDyn};
use simulcast_core::Refusal;
use simulcast_threads::for_each_part;

use self::nest::Nest;
use self::sums::Sums;
use crate::array::output::Fresh;
use crate::by_name::dyn_array::{AnyArray, AnyView, AnyViewMut};
use crate::by_name::program::build::bytecode::{Flat, Several};
use crate::by_name::program::front::axes::Fold;
use crate::layout::broadcast::checked_len;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;

/// Where a leaf comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Origin {
    Operand(usize),
    /// An array that an earlier pass made.
    Made(usize),
}

/// An array that a pass reads: for each of its axes, the axis of the pass along which it moves.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) origin: Origin,
    pub(crate) axes: Vec<Option<usize>>,
}

/// An array that a pass makes.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// The reduction, and the axes along which it goes; none for an array of all elements.
    pub(crate) fold: Option<(Fold, Vec<bool>)>,
    /// How many elements each of its values is made of.
    pub(crate) count: usize,
}

/// One pass over the elements of a shape.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    pub(crate) shape: Vec<usize>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) code: Several,
    /// The steps that the code was made of, and the place of each value's among them.
    pub(crate) steps: Vec<(Flat, DType)>,
    pub(crate) ends: Vec<usize>,
    /// What it makes, in the order of the code's results; each is the array of that number.
    pub(crate) values: Vec<(usize, Value)>,
    /// Arrays that no later pass reads, and that are no results.
    pub(crate) spent: Vec<usize>,
}

impl Pass {
    /// Runs the pass on at most `threads` threads, if that is said: what it makes, in order. An array of all elements that
    /// has a place, by its number, is written there, and not given back.
    pub(crate) fn run(
        &self,
        operands: &[AnyView<'_>],
        made: &[Option<AnyArray>],
        places: &mut [Option<Place<'_>>],
        level: Level,
        threads: Option<usize>,
    ) -> Result<Vec<Option<AnyArray>>, Refusal> {
        checked_len(&self.shape)?;
        let views: Option<Vec<AnyView<'_>>> = self
            .leaves
            .iter()
            .map(|leaf| match leaf.origin {
                Origin::Operand(operand) => operands.get(operand).cloned(),
                Origin::Made(made_by) => Some(made.get(made_by)?.as_ref()?.view()),
            })
            .collect();
        // Never `None`: passes are in order.
        let views = views.ok_or(Refusal::Overflow)?;
        let mut maps: Vec<Unwritten> = Vec::new();
        for (number, value) in self.values.iter().filter(|(_, value)| value.fold.is_none()) {
            let place = places.get_mut(*number).and_then(Option::take);
            maps.push(match place.filter(|place| place.fits(value)) {
                Some(Place { pointer, .. }) => Unwritten { pointer, finish: None },
                None => Unwritten::new(value.dtype, &value.shape)?,
            });
        }
        let outs: Vec<*mut u8> = maps.iter().map(|map| map.pointer).collect();
        // Never `None`: there is code for every step, and there are loops for what is reduced.
        let nest = Nest::new(self, &views, &outs, level).ok_or(Refusal::Overflow)?;
        let parts = nest.partition();
        let mut sums = Sums::new(&nest, &parts)?;
        if nest.len() > 0 {
            let places = sums.places();
            // SAFETY: the views reach every element of the nest, results have room for all of theirs, and no two parts write
            // the same sums.
            let work = |part: usize| unsafe { nest.run(&parts, part, &places) };
            for_each_part(parts.count, threads, &work);
        }
        let mut maps = maps.into_iter();
        let mut folds = 0;
        let mut arrays = Vec::with_capacity(self.values.len());
        for (_, value) in &self.values {
            arrays.push(match value.fold {
                None => {
                    let Unwritten { finish, .. } = maps.next().ok_or(Refusal::Overflow)?;
                    // The pass wrote every element. Never `None` of a finished one: the shape is its own.
                    let finished = finish.map(|finish| finish().ok_or(Refusal::Overflow));
                    finished.transpose()?
                }
                Some(_) => {
                    folds += 1;
                    Some(sums.finish(&nest, folds - 1, value, level)?)
                }
            });
        }
        Ok(arrays)
    }
}

/// A row-major array of the caller's, in which all elements of a value are written.
pub(crate) struct Place<'p> {
    pointer: *mut u8,
    dtype: DType,
    len: usize,
    elements: PhantomData<&'p mut u8>,
}

impl<'p> Place<'p> {
    /// The place of a view; none where its elements do not lie side by side in C's order.
    pub(crate) fn of(view: &'p mut AnyViewMut<'_>) -> Option<Self> {
        let (dtype, len) = (view.dtype(), checked_len(view.shape()).ok()?);
        let own = dtype != DType::String && view.is_row_major();
        own.then(|| Self { pointer: view.as_mut_ptr(), dtype, len, elements: PhantomData })
    }

    fn fits(&self, value: &Value) -> bool {
        self.dtype == value.dtype && checked_len(&value.shape).is_ok_and(|len| len == self.len)
    }
}

/// An array whose elements are not written yet.
struct Unwritten {
    pointer: *mut u8,
    /// Makes the array, once every element was written; `None` for memory of the caller's.
    finish: Option<Box<dyn FnOnce() -> Option<AnyArray>>>,
}

impl Unwritten {
    fn new(dtype: DType, shape: &[usize]) -> Result<Self, Refusal> {
        let (len, shape) = (checked_len(shape)?, IxDyn(shape));
        macro_rules! by_type {
            ($($variant:ident)*) => {
                match dtype {
                    $(DType::$variant => {
                        let fresh = Fresh::new(len)?;
                        Ok(Self::of(fresh, shape, len, AnyArray::$variant))
                    })*
                    // Never: text is not computed in passes.
                    DType::String => Err(Refusal::Overflow),
                }
            };
        }
        by_type!(Bool I8 I16 I32 I64 U8 U16 U32 U64 F16 Bf16 F32 F64 C64 C128)
    }

    fn of<T: 'static>(
        mut fresh: Fresh<T>,
        shape: IxDyn,
        len: usize,
        any: fn(ArrayD<T>) -> AnyArray,
    ) -> Self {
        let pointer = fresh.pointer().cast();
        // SAFETY: this is called when all elements were written.
        let finish = move || unsafe { fresh.finish(shape, len) }.map(any);
        Self { pointer, finish: Some(Box::new(finish)) }
    }
}
