//! Operations on arrays of any type: programs of one step, made once and kept.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{AnyArray, AnyView, Apply, Op, Rule};
//! use simulcast::types::Promotion;
//!
//! let (x, y) = (array![[1_i32, 2, 3], [4, 5, 6]], array![0.5_f32, 1.0, 1.5]);
//! let operands = [AnyView::from(&x), AnyView::from(&y)];
//! let product = Op::Multiply.apply(&operands)?; // int32 with float32 is float64, as in NumPy
//! assert_eq!(product, AnyArray::from(array![[0.5, 2.0, 4.5], [2.0, 5.0, 9.0]]));
//!
//! let error = Op::Add.apply_by(Rule::Numpy, Promotion::Strict, &operands).unwrap_err();
//! assert!(error.to_string().contains("int32 and float32 differ"));
//!
//! let (image, bias) = (array![[[1_u8], [2]], [[3], [4]]], array![10_u8, 20]);
//! let channels = Rule::Pdpd { axis: Some(1) };
//! let sum = Op::Add.apply_by(channels, Promotion::Strict, &[(&image).into(), (&bias).into()])?;
//! assert_eq!(sum, AnyArray::from(array![[[11_u8], [22]], [[13], [24]]]));
//! # Ok::<(), simulcast::ProgramError>(())
//! ```
//!
//! Programs are kept for the life of the process, one for each operation, element types and
//! promotion that was used; a call looks its program up without a lock.

use std::sync::OnceLock;

use simulcast_core::{BroadcastError, Plan, Rule, resolve};

use crate::by_name::dyn_array::{AnyArray, AnyView, AnyViewMut};
use crate::by_name::program::{Builder, ProgramError, ProgramErrorKind, TypedProgram};
use crate::by_name::types::{OperandType, Promotion, TypeError, TypeErrorKind};
use crate::layout::broadcast::{checked_len, strides_under};
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// Programs of one operation under one promotion, by the types of its operands.
type Cells = Box<[OnceLock<Box<TypedProgram>>]>;

const OPS: usize = Op::ALL.len();

/// Every program that was made.
static KEPT: [[OnceLock<Cells>; 2]; OPS] = [const { [const { OnceLock::new() }; 2] }; OPS];

/// The default names of operands.
pub(crate) const LETTERS: [&str; 3] = ["A", "B", "C"];

/// Operations on arrays whose types are known when they run: methods of [`Op`].
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyArray, AnyView, Apply, Op};
///
/// let (x, y) = (array![1_i32, 2], array![[0.5_f32], [2.0]]);
/// let sum = Op::Add.apply(&[AnyView::from(&x), AnyView::from(&y)])?;
/// assert_eq!(sum, AnyArray::from(array![[1.5, 2.5], [3.0, 4.0]])); // float64, as in NumPy
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
pub trait Apply: sealed::Sealed + Sized {
    /// The result for some arrays, under NumPy's rule and promotion.
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::{AnyArray, AnyView, Apply, Op};
    ///
    /// let x = array![4.0, 9.0];
    /// assert_eq!(Op::Sqrt.apply(&[AnyView::from(&x)])?, AnyArray::from(array![2.0, 3.0]));
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Another number of arrays than [`Op::arity`], types that it is not defined on, shapes that do
    /// not broadcast.
    fn apply(self, operands: &[AnyView<'_>]) -> Result<AnyArray, ProgramError>;

    /// [`Apply::apply`] into `out`, to whose shape the result stretches.
    ///
    /// ```
    /// use ndarray::{Array2, array};
    /// use simulcast::{AnyView, AnyViewMut, Apply, Op};
    ///
    /// let (x, mut out) = (array![4.0, 9.0], Array2::<f64>::zeros((2, 2)));
    /// Op::Sqrt.apply_into(&[AnyView::from(&x)], &mut AnyViewMut::from(&mut out))?;
    /// assert_eq!(out, array![[2.0, 3.0], [2.0, 3.0]]);
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Apply::apply`], and where the result has another type than `out` or does not fit it.
    fn apply_into(
        self,
        operands: &[AnyView<'_>],
        out: &mut AnyViewMut<'_>,
    ) -> Result<(), ProgramError>;

    // Implements E_BROADCAST_ANY_FUNC_3100, E_BROADCAST_ANY_ERR_3100.
    /// The result for some arrays, under any rule and promotion.
    ///
    /// A rule of one operand, such as [`Rule::To`], goes with an operation of one.
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::types::Promotion;
    /// use simulcast::{AnyArray, AnyView, Apply, Op, Rule};
    ///
    /// let (x, by_row) = (array![[1, 2], [3, 4]], array![10, 20]);
    /// let operands = [AnyView::from(&x), AnyView::from(&by_row)];
    /// let sum = Op::Add.apply_by(Rule::Pdpd { axis: Some(0) }, Promotion::Strict, &operands)?;
    /// assert_eq!(sum, AnyArray::from(array![[11, 12], [23, 24]]));
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Apply::apply`].
    fn apply_by(
        self,
        rule: Rule<'_>,
        promotion: Promotion,
        operands: &[AnyView<'_>],
    ) -> Result<AnyArray, ProgramError>;

    /// [`Apply::apply_by`] into `out`, to whose shape the result stretches.
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::types::Promotion;
    /// use simulcast::{AnyView, AnyViewMut, Apply, Op, Rule};
    ///
    /// let (x, mut out) = (array![1, 2], array![[0, 0], [0, 0]]);
    /// let to = Rule::To { target: &[2, 2] };
    /// Op::Negative.apply_by_into(to, Promotion::Numpy, &[AnyView::from(&x)], &mut AnyViewMut::from(&mut out))?;
    /// assert_eq!(out, array![[-1, -2], [-1, -2]]);
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Apply::apply_by`], and where the result has another type than `out` or does not fit it.
    fn apply_by_into(
        self,
        rule: Rule<'_>,
        promotion: Promotion,
        operands: &[AnyView<'_>],
        out: &mut AnyViewMut<'_>,
    ) -> Result<(), ProgramError>;

    /// The program of this one step for operands of these types, which is kept for the life of the
    /// process.
    ///
    /// ```
    /// use simulcast::types::Promotion;
    /// use simulcast::{Apply, DType, Op};
    ///
    /// let program = Op::Add.program(Promotion::Numpy, &[DType::I32, DType::F32])?;
    /// assert_eq!(program.dtype(), DType::F64);
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Another number of types than [`Op::arity`], and types that it is not defined on.
    fn program(
        self,
        promotion: Promotion,
        dtypes: &[DType],
    ) -> Result<&'static TypedProgram, ProgramError>;
}

/// Closes [`Apply`] to [`Op`].
mod sealed {
    pub trait Sealed {}
    impl Sealed for simulcast_kernels::op::Op {}
}

impl Apply for Op {
    fn apply(self, operands: &[AnyView<'_>]) -> Result<AnyArray, ProgramError> {
        for_views(self, Promotion::Numpy, operands)?.run(operands)
    }

    fn apply_into(
        self,
        operands: &[AnyView<'_>],
        out: &mut AnyViewMut<'_>,
    ) -> Result<(), ProgramError> {
        for_views(self, Promotion::Numpy, operands)?.run_into(operands, out)
    }

    fn apply_by(
        self,
        rule: Rule<'_>,
        promotion: Promotion,
        operands: &[AnyView<'_>],
    ) -> Result<AnyArray, ProgramError> {
        let program = for_views(self, promotion, operands)?;
        if rule == Rule::Numpy {
            return program.run(operands);
        }
        program.run(&lay(rule, operands)?.1)
    }

    fn apply_by_into(
        self,
        rule: Rule<'_>,
        promotion: Promotion,
        operands: &[AnyView<'_>],
        out: &mut AnyViewMut<'_>,
    ) -> Result<(), ProgramError> {
        let program = for_views(self, promotion, operands)?;
        if rule == Rule::Numpy {
            return program.run_into(operands, out);
        }
        program.run_into(&lay(rule, operands)?.1, out)
    }

    #[inline]
    fn program(
        self,
        promotion: Promotion,
        dtypes: &[DType],
    ) -> Result<&'static TypedProgram, ProgramError> {
        if dtypes.len() != self.arity() {
            return Err(miscounted(self, dtypes));
        }
        let types = DType::ALL.len();
        let place = dtypes.iter().fold(0, |place, &dtype| place * types + dtype as usize);
        // The indices are those of an operation, a promotion, and as many types as it has operands.
        let cells = KEPT[self as usize][promotion as usize].get_or_init(|| {
            let count = types.pow(self.arity() as u32);
            (0..count).map(|_| OnceLock::new()).collect()
        });
        let cell = &cells[place];
        match cell.get() {
            Some(program) => Ok(program),
            None => {
                let program = Box::new(made(self, promotion, dtypes)?);
                Ok(cell.get_or_init(|| program))
            }
        }
    }
}

/// The program for these arrays.
#[inline]
fn for_views(
    op: Op,
    promotion: Promotion,
    operands: &[AnyView<'_>],
) -> Result<&'static TypedProgram, ProgramError> {
    let mut dtypes = [DType::Bool; LETTERS.len()];
    match dtypes.get_mut(..operands.len()) {
        Some(dtypes) => {
            dtypes.iter_mut().zip(operands).for_each(|(dtype, view)| *dtype = view.dtype());
            op.program(promotion, dtypes)
        }
        None => Err(miscounted(op, &operands.iter().map(AnyView::dtype).collect::<Vec<_>>())),
    }
}

#[cold]
fn miscounted(op: Op, dtypes: &[DType]) -> ProgramError {
    let types: Vec<OperandType> = dtypes.iter().map(|&dtype| dtype.into()).collect();
    let kind = TypeErrorKind::Arity { expected: op.arity() };
    TypeError::new(Some(op), &types, kind).into()
}

#[cold]
fn made(op: Op, promotion: Promotion, dtypes: &[DType]) -> Result<TypedProgram, ProgramError> {
    let mut build = Builder::new(promotion);
    let named = LETTERS.iter().zip(dtypes);
    let args: Vec<_> = named.map(|(name, &dtype)| build.operand(name, dtype)).collect();
    let root = build.apply(op, &args)?;
    build.finish(root)
}

/// Operands laid onto their result under any rule, as views of its shape; and the plan.
pub(crate) fn lay<'v>(
    rule: Rule<'_>,
    operands: &[AnyView<'v>],
) -> Result<(Plan, Vec<AnyView<'v>>), ProgramError> {
    let shapes: Vec<&[usize]> = operands.iter().map(AnyView::shape).collect();
    let refused = |error| ProgramError::new(ProgramErrorKind::Broadcast(error), 0..0);
    let plan = resolve(rule, &shapes).map_err(refused)?;
    let too_large = |refusal| refused(BroadcastError::new(rule, &shapes, refusal));
    checked_len(plan.shape()).map_err(too_large)?;
    let mut laid = Vec::with_capacity(operands.len());
    for (operand, view) in operands.iter().enumerate() {
        let strides = strides_under(&plan, operand, view.strides()).map_err(too_large)?;
        // SAFETY: by the plan each stride is the view's own, on an axis of its length, or 0; the
        // product of the sizes was checked.
        laid.push(unsafe { view.relaid(plan.shape(), &strides) });
    }
    Ok((plan, laid))
}
