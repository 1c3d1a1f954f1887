//! Formulas: steps of a program, written with Rust's operators.
//!
//! ```text
//! choose(x.less(0.0), x.expm1() * alpha, x)        // four operations, each of them a step
//! ```
//!
//! A [`Term`] is a value of the program that is being built. `+ - * /`, the negation and a method for each operation of the
//! table add a step; numbers are literals, which adopt the type that they meet. A step that is not defined on its types
//! makes a term without a value, so that formulas need no `?`: [`formula`] gives the first error.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use simulcast_kernels::every_op;
use simulcast_kernels::op::Op;

use crate::by_name::program::{Builder, Node};
use crate::by_name::types::{Literal, TypeError, TypeErrorKind};

/// A builder that formulas add steps to, and the first error.
pub(crate) struct Formula<'m> {
    state: RefCell<(&'m mut Builder, Option<TypeError>)>,
}

/// The value of a formula.
///
/// # Errors
///
/// Where a step is not defined on its types.
pub(crate) fn formula(
    build: &mut Builder,
    write: impl for<'b> FnOnce(&'b Formula<'_>) -> Term<'b>,
) -> Result<Node, TypeError> {
    let formula = Formula::new(build);
    let node = write(&formula).node;
    formula.finish(node)
}

impl<'m> Formula<'m> {
    pub(crate) fn new(build: &'m mut Builder) -> Self {
        Self { state: RefCell::new((build, None)) }
    }

    /// A value of the program as a term.
    pub(crate) fn term(&self, node: Node) -> Term<'_> {
        Term { steps: self, node: Some(node) }
    }

    /// A literal as a term.
    pub(crate) fn literal(&self, literal: Literal) -> Term<'_> {
        self.term(self.state.borrow_mut().0.literal(literal))
    }

    /// A number as a term: an integer where it is whole, which fits integers too.
    pub(crate) fn number(&self, value: f64) -> Term<'_> {
        #[expect(clippy::cast_possible_truncation, reason = "compared with what it came from")]
        let whole = value as i32;
        self.literal(match f64::from(whole).to_bits() == value.to_bits() {
            true => Literal::Int(whole.into()),
            false => Literal::Float(value),
        })
    }

    /// An operation on terms.
    pub(crate) fn apply<'b>(&'b self, op: Op, args: &[Term<'b>]) -> Term<'b> {
        let nodes: Option<Vec<Node>> = args.iter().map(|arg| arg.node).collect();
        match nodes {
            Some(nodes) => Steps::apply(self, op, &nodes),
            None => Term { steps: self, node: None },
        }
    }

    /// A term without a value, and its error.
    pub(crate) fn fail(&self, error: TypeError) -> Term<'_> {
        self.state.borrow_mut().1.get_or_insert(error);
        Term { steps: self, node: None }
    }

    /// Three terms, cast to the type that they have in common.
    pub(crate) fn alike<'b>(&'b self, [a, b, c]: [Term<'b>; 3]) -> [Term<'b>; 3] {
        let (Some(a), Some(b), Some(c)) = (a.node, b.node, c.node) else { return [a, b, c] };
        let made = self.state.borrow_mut().0.alike([a, b, c]);
        match made {
            Ok(nodes) => nodes.map(|node| self.term(node)),
            Err(error) => [self.fail(error); 3],
        }
    }

    /// The value, or the first error.
    pub(crate) fn finish(self, node: Option<Node>) -> Result<Node, TypeError> {
        match (self.state.into_inner().1, node) {
            (None, Some(node)) => Ok(node),
            (Some(error), _) => Err(error),
            // Never: a term has no value only after an error.
            (None, None) => Err(TypeError::new(None, &[], TypeErrorKind::Undefined)),
        }
    }
}

/// What terms are made by, whatever it borrows.
trait Steps {
    fn apply(&self, op: Op, args: &[Node]) -> Term<'_>;
    fn number_step(&self, value: f64) -> Term<'_>;
}

impl Steps for Formula<'_> {
    fn apply(&self, op: Op, args: &[Node]) -> Term<'_> {
        let made = self.state.borrow_mut().0.apply(op, args);
        match made {
            Ok(node) => self.term(node),
            Err(error) => self.fail(error),
        }
    }

    fn number_step(&self, value: f64) -> Term<'_> {
        self.number(value)
    }
}

/// A value of the program that is being built; none after an error.
#[derive(Clone, Copy)]
pub(crate) struct Term<'b> {
    steps: &'b (dyn Steps + 'b),
    pub(crate) node: Option<Node>,
}

/// An operand of a step: a term, or a number.
#[derive(Clone, Copy)]
pub(crate) enum Value<'b> {
    Term(Term<'b>),
    Number(f64),
}

impl<'b> From<Term<'b>> for Value<'b> {
    fn from(term: Term<'b>) -> Self {
        Self::Term(term)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// An operation, by the builder of one of its operands.
fn apply<'b, const N: usize>(by: Term<'b>, op: Op, args: [Value<'b>; N]) -> Term<'b> {
    let args = args.map(|arg| match arg {
        Value::Term(term) => term.node,
        Value::Number(value) => by.steps.number_step(value).node,
    });
    let mut nodes = [Node(0); N];
    for (node, arg) in nodes.iter_mut().zip(args) {
        let Some(arg) = arg else { return Term { node: None, ..by } };
        *node = arg;
    }
    by.steps.apply(op, &nodes)
}

/// `a` where the condition is true, else `b`.
pub(crate) fn choose<'b>(
    condition: Term<'b>,
    a: impl Into<Value<'b>>,
    b: impl Into<Value<'b>>,
) -> Term<'b> {
    apply(condition, Op::Where, [condition.into(), a.into(), b.into()])
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => { $(
        impl<'b, R: Into<Value<'b>>> $trait<R> for Term<'b> {
            type Output = Self;

            fn $method(self, other: R) -> Self {
                apply(self, Op::$op, [self.into(), other.into()])
            }
        }

        impl<'b> $trait<Term<'b>> for f64 {
            type Output = Term<'b>;

            fn $method(self, other: Term<'b>) -> Term<'b> {
                apply(other, Op::$op, [self.into(), other.into()])
            }
        }
    )* };
}

operators! {
    Add add Add;
    Sub sub Subtract;
    Mul mul Multiply;
    Div div Divide;
}

impl Neg for Term<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.negative()
    }
}

/// Writes a method for each operation of one or two operands.
macro_rules! methods {
    (
        { $grad:ident }
        $(
            $doc:literal
            $variant:ident = $name:literal $function:ident $operands:tt on $types:tt -> $gives:ident,
                typed $typed:tt, also $also:tt, text $text:tt, onnx $onnx:tt, slope $slopes:tt;
        )*
    ) => {
        #[allow(dead_code, reason = "one for each row of the table")]
        impl<'b> Term<'b> {
            $(methods! { @one $operands $doc $variant $function })*
        }
    };
    (@one ($a:ident) $doc:literal $variant:ident $function:ident) => {
        #[doc = $doc]
        pub(crate) fn $function(self) -> Self {
            apply(self, Op::$variant, [self.into()])
        }
    };
    (@one ($a:ident, $b:ident) $doc:literal $variant:ident $function:ident) => {
        #[doc = $doc]
        pub(crate) fn $function(self, other: impl Into<Value<'b>>) -> Self {
            apply(self, Op::$variant, [self.into(), other.into()])
        }
    };
    (@one $operands:tt $doc:literal $variant:ident $function:ident) => {};
}

every_op!(methods);
