//! Expressions called by the names of their operands, with the types that come.
//!
//! ```
//! use ndarray::{Array2, array};
//!
//! let (x, mean) = (array![[1_f32, 2.0], [3.0, 6.0]], array![2_f32, 4.0]);
//! let y: Array2<f32> = simulcast::eval("(x - mean) / 2", (("x", &x), ("mean", &mean)))?.try_into()?;
//! assert_eq!(y, array![[-0.5, -1.0], [0.5, 1.0]]);
//!
//! let error = simulcast::eval("(x - men) / 2", (("x", &x), ("mean", &mean))).unwrap_err().to_string();
//! assert!(error.contains("did you mean `men`?"));
//! # Ok::<(), simulcast::ProgramError>(())
//! ```
//!
//! A [`Program`] finds the types of its operands when it is called, and keeps what it compiled for them: the
//! [`TypedProgram`]s of the last few lists of types. Arguments are pairs of a name and an array of any element type and
//! storage, or a number, which adopts the type of what it meets: a tuple of pairs, an array, a slice or a vector of them.
//! An error shows the expression and points into it.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use ndarray::{Array, Dimension};
use simulcast_core::Rule;

use crate::by_name::dyn_array::{AnyArray, AnyView, AnyViewMut};
use crate::by_name::program::build::builder::Builder;
use crate::by_name::program::front::builtins::nearest;
use crate::by_name::program::front::diagnostic::Diagnostic;
use crate::by_name::program::front::error::{ProgramError, ProgramErrorKind};
use crate::by_name::program::front::expr::Expr;
use crate::by_name::program::{Hoisting, Run, TypedProgram};
use crate::by_name::types::{IntoArrayError, Literal, Promotion};
use simulcast_kernels::dtype::{DType, Element};

/// The number of compiled programs that each [`Program`] keeps.
const KEPT: usize = 16;

/// The value of an expression, for arguments by name: [`Program::parse`] and [`Program::call`] in one.
///
/// ```
/// use ndarray::{Array1, array};
///
/// let (a, b) = (array![[1.0, 2.0], [3.0, 4.0]], array![10, 20]);
/// let sums: Array1<f64> = simulcast::eval("sum(a * b * c, axis=1)", (("a", &a), ("b", &b), ("c", 0.5)))?.try_into()?;
/// assert_eq!(sums, array![25.0, 55.0]);
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// A text that is no expression, names without an argument, arguments without a name, types that do not go together,
/// shapes that do not broadcast: [`ProgramError`], whose text shows the expression and points into it.
///
/// ```
/// use ndarray::Array;
///
/// let (image, mean) = (Array::<f32, _>::zeros((8, 3, 4, 4)), Array::<f32, _>::zeros(3));
/// let error = simulcast::eval("image - mean", (("image", &image), ("mean", &mean))).unwrap_err();
/// assert!(error.to_string().starts_with("\
/// error[E1]: operands of `-` do not broadcast
///   |
/// 1 | image - mean
///   | ----- ^ ---- float32 (3,)
///   | |     |
///   | |     axis 3 (-1): 4 and 3 differ, and neither is 1
///   | float32 (8, 3, 4, 4)
///   |
/// help: as (3, 1, 1) it fits, and the result is (8, 3, 4, 4)
///   |
/// 1 | image - mean[:, None, None]
///   |             +++++++++++++++"));
/// ```
pub fn eval<'a>(text: &str, arguments: impl Arguments<'a>) -> Result<AnyArray, ProgramError> {
    Program::parse(text)?.call(arguments)?.compute()
}

/// An expression, ready for operands of any types; see [the module's page](crate::program).
///
/// ```
/// use ndarray::{Array2, Ix2, array};
/// use simulcast::Program;
///
/// let program = Program::parse("(x - mean) / 2")?;
/// let (x, mean) = (array![[1_f32, 2.0], [3.0, 6.0]], array![2_f32, 4.0]);
/// let y = program.call([("mean", mean.view().into_dyn()), ("x", x.view().into_dyn())])?.into_array::<f32, Ix2>()?;
/// assert_eq!(y, array![[-0.5, -1.0], [0.5, 1.0]]);
///
/// let mut out = Array2::<f64>::zeros((2, 2)); // the same program, of other types
/// program.call((("x", &x.mapv(f64::from)), ("mean", 1)))?.write(&mut out)?;
/// assert_eq!(out, array![[0.0, 0.5], [1.0, 2.5]]);
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
pub struct Program {
    expr: Expr,
    /// Every name of the expression, once, those of constants included.
    names: Vec<Box<str>>,
    promotion: Promotion,
    kept: Mutex<Vec<(Key, Arc<Compiled>)>>,
}

/// What a compiled program depends on, for each name of the expression.
type Key = Vec<Option<KeyPart>>;

/// The type of an array, or the bits of a number, which stands in the program.
#[derive(Clone, Copy, PartialEq)]
enum KeyPart {
    Array(DType),
    Bool(bool),
    Int(i128),
    Float(u64),
    Complex(u64, u64),
}

/// An expression with its numbers, and the program that computes it for arrays of certain types.
struct Compiled {
    expr: Expr,
    program: TypedProgram,
}

impl Program {
    /// Reads an expression, in [this language](crate::program).
    ///
    /// # Errors
    ///
    /// What was expected, and where: the error's text points at it.
    pub fn parse(text: &str) -> Result<Self, ProgramError> {
        match Expr::parse(text) {
            Ok(expr) => Ok(expr.into()),
            Err(error) => Err(Diagnostic::of_text(text, error).into()),
        }
    }

    /// The program in which operands of different types meet otherwise than in NumPy.
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::Program;
    /// use simulcast::types::Promotion;
    ///
    /// let strict = Program::parse("a + b")?.with_promotion(Promotion::Strict);
    /// let error = strict.call((("a", &array![1_f32]), ("b", &array![1_f64]))).unwrap_err();
    /// assert!(error.to_string().contains("float64(a) + b"));
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    #[must_use]
    pub fn with_promotion(self, promotion: Promotion) -> Self {
        Self { promotion, kept: Mutex::default(), ..self }
    }

    /// The expression.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The names of the operands, in the order in which the text first has them.
    ///
    /// ```
    /// # use simulcast::Program;
    /// assert_eq!(Program::parse("(x - mean) / (2 * pi)")?.operands().collect::<Vec<_>>(), ["x", "mean"]);
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    pub fn operands(&self) -> impl Iterator<Item = &str> {
        self.expr.operands()
    }

    /// The program with its arguments: a pair of a name and an array or a number for each operand. Nothing is computed
    /// before the [`Call`] is asked for its result.
    ///
    /// # Errors
    ///
    /// A name without an argument, an argument without a name or given twice, types that do not go together.
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::Program;
    ///
    /// let program = Program::parse("x * scale")?;
    /// let error = program.call((("x", &array![1.0]), ("scales", 2.0))).unwrap_err();
    /// assert_eq!(error.to_string(), "the expression has no operand `scales`; did you mean `scale`?");
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    pub fn call<'a>(&self, arguments: impl Arguments<'a>) -> Result<Call<'a>, ProgramError> {
        let mut given: Vec<Option<Argument<'a>>> = Vec::new();
        given.resize_with(self.names.len(), || None);
        let mut refused = None;
        arguments.visit(&mut |name, argument| {
            let place = self.names.iter().position(|own| **own == *name);
            let kind = match place.and_then(|place| given.get_mut(place)) {
                Some(place @ None) => {
                    *place = Some(argument);
                    return;
                }
                Some(Some(_)) => ProgramErrorKind::GivenTwice { name: name.into() },
                None => {
                    let near = nearest(name, self.operands()).map(String::from);
                    ProgramErrorKind::NotInExpression { name: name.into(), near }
                }
            };
            refused.get_or_insert_with(|| ProgramError::new(kind, 0..0));
        });
        if let Some(error) = refused {
            return Err(error);
        }
        let compiled = self.compiled(&given)?;
        let arrays = given.into_iter().filter_map(|argument| match argument {
            Some(Argument::Array(view)) => Some(view),
            _ => None,
        });
        Ok(Call {
            compiled,
            promotion: self.promotion,
            views: arrays.collect(),
            rule: Rule::Numpy,
            threads: None,
            hoisting: Hoisting::WherePays,
        })
    }

    /// What was compiled for these types, or is now.
    fn compiled(&self, given: &[Option<Argument<'_>>]) -> Result<Arc<Compiled>, ProgramError> {
        let key: Key = given.iter().map(|one| one.as_ref().map(Argument::key_part)).collect();
        let known = |kept: &Vec<(Key, Arc<Compiled>)>| {
            kept.iter().find(|(own, _)| *own == key).map(|(_, compiled)| Arc::clone(compiled))
        };
        if let Some(compiled) = known(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(compiled);
        }
        let (mut numbers, mut arrays, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
        for (name, argument) in self.names.iter().zip(given) {
            match argument {
                Some(Argument::Number(number)) => numbers.push((&**name, *number)),
                Some(Argument::Array(view)) => {
                    arrays.push((&**name, view.dtype()));
                    shapes.push((&**name, view.dtype(), view.shape()));
                }
                None => {}
            }
        }
        let expr = self.expr.with_numbers(&numbers);
        let mut builder = Builder::new(self.promotion);
        let made = expr.lower(&mut builder, &arrays).and_then(|root| builder.finish(root));
        let compiled = match made {
            Ok(program) => Arc::new(Compiled { expr, program }),
            Err(error) => {
                let shown = Diagnostic::new(&expr, error, &shapes, Rule::Numpy, self.promotion);
                return Err(shown.into());
            }
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((key, Arc::clone(&compiled)));
        Ok(compiled)
    }
}

impl From<Expr> for Program {
    fn from(expr: Expr) -> Self {
        let mut names: Vec<Box<str>> = Vec::new();
        for name in expr.names() {
            if !names.iter().any(|own| **own == *name) {
                names.push(name.into());
            }
        }
        Self { expr, names, promotion: Promotion::Numpy, kept: Mutex::default() }
    }
}

impl FromStr for Program {
    type Err = ProgramError;

    fn from_str(text: &str) -> Result<Self, ProgramError> {
        Self::parse(text)
    }
}

impl Clone for Program {
    fn clone(&self) -> Self {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (expr, names) = (self.expr.clone(), self.names.clone());
        Self { expr, names, promotion: self.promotion, kept: Mutex::new(kept) }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({:?})", self.expr.text())
    }
}

/// What a name stands for: an array, or a number that adopts the type of what it meets.
///
/// ```
/// use ndarray::array;
/// use simulcast::program::Argument;
///
/// let x = array![1.0, 2.0];
/// let arguments = [("x", Argument::from(&x)), ("scale", Argument::from(2))]; // an array and a number in one list
/// assert_eq!(simulcast::eval("x * scale", arguments)?.shape(), [2]);
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Argument<'a> {
    /// An array.
    Array(AnyView<'a>),
    /// A number.
    Number(Literal),
}

impl Argument<'_> {
    fn key_part(&self) -> KeyPart {
        match self {
            Self::Array(view) => KeyPart::Array(view.dtype()),
            Self::Number(Literal::Bool(value)) => KeyPart::Bool(*value),
            Self::Number(Literal::Int(value)) => KeyPart::Int(*value),
            Self::Number(Literal::Float(value)) => KeyPart::Float(value.to_bits()),
            Self::Number(Literal::Complex(value)) => {
                KeyPart::Complex(value.re.to_bits(), value.im.to_bits())
            }
        }
    }
}

impl<'a, A: Into<AnyView<'a>>> From<A> for Argument<'a> {
    fn from(array: A) -> Self {
        Self::Array(array.into())
    }
}

macro_rules! numbers {
    ($($type:ty)*) => { $(
        impl From<$type> for Argument<'_> {
            fn from(number: $type) -> Self {
                Self::Number(number.into())
            }
        }
    )* };
}

numbers! { Literal bool i8 i16 i32 i64 i128 isize u8 u16 u32 u64 usize f32 f64 }

/// Arguments by name: pairs of a name and what it stands for, in a tuple of up to twelve, an array, a slice or a vector.
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyView, eval};
///
/// let x = array![1.0, 2.0];
/// let alone = eval("x + 1", ("x", &x))?;
/// let tuple = eval("x + y", (("x", &x), ("y", 1)))?;
/// let slice = eval("x + y", &[("x", AnyView::from(&x)), ("y", (&array![1]).into())][..])?;
/// assert!(alone == tuple && tuple == slice);
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// Sealed: the forms above are all there are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of arguments by name",
    label = "not pairs of a name and an array or a number",
    note = "pass pairs: `((\"x\", &x), (\"mean\", &mean))`; one pair alone: `(\"x\", &x)`"
)]
pub trait Arguments<'a>: sealed::Sealed {
    #[doc(hidden)]
    fn visit(self, visit: &mut dyn FnMut(&str, Argument<'a>));
}

mod sealed {
    pub trait Sealed {}
}

impl<'a, A: Into<Argument<'a>>> sealed::Sealed for (&str, A) {}
impl<'a, A: Into<Argument<'a>>> Arguments<'a> for (&str, A) {
    fn visit(self, visit: &mut dyn FnMut(&str, Argument<'a>)) {
        visit(self.0, self.1.into());
    }
}

macro_rules! lists {
    ($([$($generics:tt)*] $type:ty;)*) => { $(
        impl<'a, A: Into<Argument<'a>> + Clone, $($generics)*> sealed::Sealed for $type {}
        impl<'a, A: Into<Argument<'a>> + Clone, $($generics)*> Arguments<'a> for $type {
            fn visit(self, visit: &mut dyn FnMut(&str, Argument<'a>)) {
                for (name, argument) in self.iter() {
                    visit(name, argument.clone().into());
                }
            }
        }
    )* };
}

lists! {
    [const N: usize] [(&str, A); N];
    [] &[(&str, A)];
    [] Vec<(&str, A)>;
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*);)*) => { $(
        impl<'a, $($name: Into<Argument<'a>>),*> sealed::Sealed for ($((&str, $name),)*) {}
        impl<'a, $($name: Into<Argument<'a>>),*> Arguments<'a> for ($((&str, $name),)*) {
            #[allow(unused_variables, reason = "no arguments are visited")]
            fn visit(self, visit: &mut dyn FnMut(&str, Argument<'a>)) {
                $(visit(self.$index.0, self.$index.1.into());)*
            }
        }
    )* };
}

tuples! {
    ();
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
}

/// A [`Program`] with its arguments, compiled for their types; see [`Program::call`].
///
/// ```
/// use ndarray::array;
/// use simulcast::{DType, Program, Rule};
///
/// let program = Program::parse("x + by_row")?;
/// let (x, by_row) = (array![[1, 2], [3, 4]], array![10, 20]);
/// let call = program.call((("x", &x), ("by_row", &by_row)))?.rule(Rule::Pdpd { axis: Some(0) }).threads(1);
/// assert_eq!((call.dtype(), call.shape()?), (DType::I32, vec![2, 2]));
/// assert_eq!(call.into_array::<i32, ndarray::Ix2>()?, array![[11, 12], [23, 24]]);
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing is computed until the result is asked for"]
pub struct Call<'a> {
    compiled: Arc<Compiled>,
    promotion: Promotion,
    /// The arrays, in the order of the program's operands.
    views: Vec<AnyView<'a>>,
    rule: Rule<'a>,
    threads: Option<usize>,
    hoisting: Hoisting,
}

impl<'a> Call<'a> {
    /// Under another rule than NumPy's, as [`Run::rule`].
    ///
    /// ```
    /// use ndarray::array;
    /// use simulcast::{AnyArray, Program, Rule};
    ///
    /// let (x, bias) = (array![[1, 2], [3, 4]], array![10, 20]);
    /// let call = Program::parse("x + bias")?.call((("x", &x), ("bias", &bias)))?;
    /// let y = call.rule(Rule::Pdpd { axis: Some(0) }).compute()?;
    /// assert_eq!(y, AnyArray::from(array![[11, 12], [23, 24]]));
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    pub fn rule(mut self, rule: Rule<'a>) -> Self {
        self.rule = rule;
        self
    }

    /// On at most that many threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Which sub-expressions are computed at their own shape first; [`Hoisting::WherePays`] unless set.
    pub fn hoisting(mut self, hoisting: Hoisting) -> Self {
        self.hoisting = hoisting;
        self
    }

    /// The program that was compiled for these types.
    #[must_use]
    pub fn program(&self) -> &TypedProgram {
        &self.compiled.program
    }

    /// The type of the result's elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.compiled.program.dtype()
    }

    /// The shape of the result.
    ///
    /// # Errors
    ///
    /// Where the arrays do not broadcast.
    pub fn shape(&self) -> Result<Vec<usize>, ProgramError> {
        self.run().shape().map_err(|error| self.shown(error))
    }

    /// The result as a new array.
    ///
    /// # Errors
    ///
    /// Where the arrays do not broadcast, or the result does not fit in memory.
    pub fn compute(&self) -> Result<AnyArray, ProgramError> {
        self.run().compute().map_err(|error| self.shown(error))
    }

    /// The result as a new array of `T` with the dimension `D`; nothing is computed where it is of another type or rank.
    ///
    /// # Errors
    ///
    /// As [`Call::compute`], and where the result has another type or rank.
    ///
    /// ```
    /// use ndarray::{Ix1, array};
    /// use simulcast::Program;
    ///
    /// let program = Program::parse("x / 2")?;
    /// let x = array![1_i32, 2];
    /// assert_eq!(program.call(("x", &x))?.into_array::<f64, Ix1>()?, array![0.5, 1.0]);
    /// let error = program.call(("x", &x))?.into_array::<f32, Ix1>().unwrap_err();
    /// assert_eq!(error.to_string(), "the array is float64 (2,), not float32 with 1 axis");
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    pub fn into_array<T: Element, D: Dimension>(self) -> Result<Array<T, D>, ProgramError> {
        IntoArrayError::check::<T, D>(self.dtype(), &self.shape()?)?;
        Ok(self.compute()?.into_array()?)
    }

    /// The result into `out`, to whose shape it stretches: an array or a view for writing, of the result's type.
    ///
    /// # Errors
    ///
    /// As [`Call::compute`], and where the result does not fit `out`.
    pub fn write<'o>(&self, out: impl Into<AnyViewMut<'o>>) -> Result<(), ProgramError> {
        self.run().write(&mut out.into()).map_err(|error| self.shown(error))
    }

    fn run(&self) -> Run<'_> {
        let run = self.compiled.program.bind(&self.views).rule(self.rule).hoisting(self.hoisting);
        match self.threads {
            Some(threads) => run.threads(threads),
            None => run,
        }
    }

    /// The error in the text.
    #[cold]
    fn shown(&self, error: ProgramError) -> ProgramError {
        let Compiled { expr, program } = &*self.compiled;
        let named = program.operands().iter().zip(&self.views);
        let operands: Vec<_> =
            named.map(|(own, view)| (own.name.as_str(), view.dtype(), view.shape())).collect();
        Diagnostic::new(expr, error, &operands, self.rule, self.promotion).into()
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("expr", &self.compiled.expr.text())
            .field("operands", &self.views)
            .finish_non_exhaustive()
    }
}
