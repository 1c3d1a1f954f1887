//! A request and its outcome: operands and a rule, resolved whether their sizes are known or not, and
//! judged by a policy. The command, Python, JSON lines and models all ask in this way.
//!
//! ```
//! use simulcast_core::{Outcome, Policy, Request};
//!
//! let operands = ["pred:N,1", "target:N"].map(|text| text.parse().unwrap());
//! let request = Request::new("numpy".parse()?, operands)?;
//! let outcome = request.resolve();
//! assert_eq!(outcome.shape().unwrap().to_string(), "(N, N)");
//! let verdict = outcome.judge(&Policy::default(), &request.names).unwrap();
//! assert_eq!(verdict.warned[0].code.as_str(), "SC102");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::{
    BroadcastError, Dim, Dims, Evidence, NamedAxes, Names, OwnedRule, Plan, Policy, Refusal,
    ShapeText, SymbolicPlan, Verdict, resolve, resolve_dims,
};

/// Operands, what they are called, and the rule under which they meet.
///
/// ```
/// use simulcast_core::{Request, RequestError};
///
/// let operands = ["pred:32,1", "target:32"].map(|text| text.parse().unwrap());
/// let request = Request::new("numpy".parse().unwrap(), operands)?;
/// assert_eq!(request.names.operand(0), "pred");
/// assert_eq!(request.resolve().shape().unwrap().to_string(), "(32, 32)");
/// # Ok::<(), RequestError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The rule; under `named`, with labels for the operands' axes.
    pub rule: OwnedRule,
    /// The operands' shapes.
    pub shapes: Vec<Dims>,
    /// The names of operands and axes.
    pub names: Names,
}

impl Request {
    /// A request of operands as they are written; under `named`, axes meet by their names or by those of
    /// their symbols.
    ///
    /// # Errors
    ///
    /// A [`RequestError`] where rule `named` meets an axis without a name, or an operand has one twice.
    pub fn new(
        rule: OwnedRule,
        operands: impl IntoIterator<Item = ShapeText>,
    ) -> Result<Self, RequestError> {
        let by_name = rule.kind().parameters().labels;
        let (mut shapes, mut names) = (Vec::new(), Names::default());
        for operand in operands {
            names.axes.push(if by_name { operand.axis_names() } else { operand.axes });
            names.operands.push(operand.name.unwrap_or_default());
            shapes.push(operand.dims);
        }
        Self { rule, shapes, names }.labelled()
    }

    /// The request with labels for the names of its axes, where its rule takes them.
    fn labelled(mut self) -> Result<Self, RequestError> {
        if self.rule.kind().parameters().labels {
            let named = NamedAxes::new(&self.names.axes);
            let labels = |refusal| RequestError::Axes(refusal, Box::new(self.names.clone()));
            self.rule = named.map_err(labels)?.into_rule();
        }
        Ok(self)
    }

    /// Puts a size in the place of a symbol, wherever it stands.
    ///
    /// # Errors
    ///
    /// A [`RequestError`] where there is no such symbol, or it does not allow that size.
    pub fn set(&mut self, symbol: &str, size: usize) -> Result<(), RequestError> {
        let mut found = false;
        for dims in &mut self.shapes {
            let Dims::Ranked(dims) = dims else { continue };
            for dim in dims {
                let Dim::Symbol(own) = dim else { continue };
                match (*own.name == *symbol, own.range.contains(size)) {
                    (false, _) => continue,
                    (true, true) => {}
                    (true, false) => {
                        let allowed = own.range.to_string();
                        return Err(RequestError::Size { symbol: symbol.into(), size, allowed });
                    }
                }
                *dim = Dim::Size(size);
                found = true;
            }
        }
        match found {
            true => Ok(()),
            false => Err(RequestError::NoSymbol(symbol.into())),
        }
    }

    /// Resolves the shapes.
    #[must_use]
    pub fn resolve(&self) -> Outcome {
        Outcome::of(&self.rule, &self.shapes, &self.names)
    }
}

/// Why operands and a rule are no request, or a symbol cannot be set.
///
/// ```
/// use simulcast_core::Request;
///
/// let operands = ["a:32,3", "b:3"].map(|text| text.parse().unwrap());
/// let error = Request::new("named".parse().unwrap(), operands).unwrap_err();
/// assert_eq!(error.to_string(), "axis 0 of a has no name; write b=32,c=3");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// Axes that cannot meet by name, with the names of operands and axes.
    Axes(Refusal, Box<Names>),
    /// There is no such symbol.
    NoSymbol(String),
    /// The symbol's interval does not allow the size.
    Size {
        /// The symbol.
        symbol: String,
        /// The size.
        size: usize,
        /// The interval.
        allowed: String,
    },
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Axes(Refusal::Unnamed { operand, axis }, names) => {
                let name = names.operand(*operand);
                write!(f, "axis {axis} of {name} has no name; write b=32,c=3")
            }
            Self::Axes(Refusal::Duplicate { operand, axis }, names) => {
                let (name, twice) = (names.operand(*operand), names.axis(*operand, *axis));
                write!(f, "{name} has two axes with the name {:?}", twice.unwrap_or_default())
            }
            Self::Axes(refusal, _) => write!(f, "{refusal}"),
            Self::NoSymbol(symbol) => write!(f, "there is no symbol {symbol:?}"),
            Self::Size { symbol, size, allowed } => {
                write!(f, "{symbol} must be in {allowed}, not {size}")
            }
        }
    }
}

impl core::error::Error for RequestError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Axes(refusal, _) => Some(refusal),
            Self::NoSymbol(_) | Self::Size { .. } => None,
        }
    }
}

/// What came of shapes under a rule.
///
/// ```
/// use simulcast_core::{Outcome, Request};
///
/// let operands = ["2,3", "4"].map(|text| text.parse().unwrap());
/// let outcome = Request::new("numpy".parse()?, operands)?.resolve();
/// assert!(matches!(&outcome, Outcome::Error(error) if error.code() == "E1"));
/// assert!(outcome.shape().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every size is known, and they broadcast.
    Plan(Plan),
    /// They broadcast as far as can be said.
    Symbolic(SymbolicPlan),
    /// They do not.
    Error(BroadcastError),
}

impl Outcome {
    /// Resolves shapes, plainly where every size is known; the names go to the plan or the error.
    ///
    /// ```
    /// use simulcast_core::{Names, Outcome, OwnedRule, ShapeText};
    ///
    /// let shapes = [("N,1"), ("4")].map(|text| text.parse::<ShapeText>().unwrap().dims);
    /// let outcome = Outcome::of(&OwnedRule::Numpy, &shapes, &Names::default());
    /// assert!(matches!(outcome, Outcome::Symbolic(plan) if plan.shape().to_string() == "(N, 4)"));
    /// ```
    #[must_use]
    pub fn of(rule: &OwnedRule, shapes: &[Dims], names: &Names) -> Self {
        let sizes: Option<Vec<Vec<usize>>> = shapes.iter().map(Dims::sizes).collect();
        let outcome = match sizes {
            Some(sizes) => resolve(rule.as_rule(), &sizes)
                .map(|plan| Self::Plan(plan.with_names(names.clone()))),
            None => resolve_dims(rule.as_rule(), shapes).map(Self::Symbolic),
        };
        outcome.unwrap_or_else(|error| Self::Error(error.with_names(names.clone())))
    }

    /// What a policy says; `None` where a rank is not known, or sizes cannot stand for the symbols.
    ///
    /// Of an error it says nothing: that is refused already.
    #[must_use]
    pub fn judge(&self, policy: &Policy, names: &Names) -> Option<Verdict> {
        self.judge_with(policy, names, Evidence::default())
    }

    /// As [`Outcome::judge`], with what is known beside the shapes.
    #[must_use]
    pub fn judge_with(
        &self,
        policy: &Policy,
        names: &Names,
        evidence: Evidence,
    ) -> Option<Verdict> {
        match self {
            Self::Plan(plan) => Some(policy.judge_with(plan, evidence)),
            Self::Symbolic(plan) => policy.judge_symbolic(plan, names, evidence),
            Self::Error(_) => Some(Verdict::default()),
        }
    }

    /// The rule that was resolved, with its parameters.
    #[must_use]
    pub fn rule(&self) -> &OwnedRule {
        match self {
            Self::Plan(plan) => plan.rule(),
            Self::Symbolic(plan) => plan.rule(),
            Self::Error(error) => error.rule(),
        }
    }

    /// The result's dimensions; `None` where the shapes do not broadcast.
    #[must_use]
    pub fn shape(&self) -> Option<Dims> {
        match self {
            Self::Plan(plan) => Some(Dims::from(plan.shape())),
            Self::Symbolic(plan) => Some(plan.shape().clone()),
            Self::Error(_) => None,
        }
    }

    /// The operands' dimensions, as given.
    #[must_use]
    pub fn shapes(&self) -> Vec<Dims> {
        match self {
            Self::Plan(plan) => {
                let own = |operand| plan.operand_shape(operand).unwrap_or_default();
                (0..plan.operand_count()).map(|operand| Dims::from(&*own(operand))).collect()
            }
            Self::Symbolic(plan) => plan.shapes().to_vec(),
            Self::Error(error) => error.shapes().to_vec(),
        }
    }

    /// Why the shapes do not broadcast, where they do not.
    #[must_use]
    pub fn error(&self) -> Option<&BroadcastError> {
        match self {
            Self::Plan(_) | Self::Symbolic(_) => None,
            Self::Error(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rule: &str, operands: &[&str]) -> Result<Request, RequestError> {
        let operands = operands.iter().map(|text| text.parse().unwrap());
        Request::new(rule.parse().unwrap(), operands)
    }

    #[test]
    fn axes_meet_by_name_or_the_request_says_why_not() {
        let named = request("named", &["image:h=2,w=3", "w=3,h=2"]).unwrap();
        assert_eq!(named.resolve().shape().unwrap().to_string(), "(2, 3)");
        let refused = request("named", &["image:2,3"]).unwrap_err();
        assert_eq!(refused.to_string(), "axis 0 of image has no name; write b=32,c=3");
        let refusal = core::error::Error::source(&refused).and_then(|why| why.downcast_ref());
        assert_eq!(refusal, Some(&Refusal::Unnamed { operand: 0, axis: 0 }));
        let refused = request("named", &["b=2,b=3"]).unwrap_err();
        assert_eq!(refused.to_string(), "A has two axes with the name \"b\"");
    }

    #[test]
    fn a_symbol_is_set_wherever_it_stands() {
        let mut symbolic = request("numpy", &["N@2..8,1", "N"]).unwrap();
        assert!(matches!(symbolic.resolve(), Outcome::Symbolic(_)));
        let said = |refused: Result<(), RequestError>| refused.unwrap_err().to_string();
        assert_eq!(said(symbolic.set("N", 9)), "N must be in 2..8, not 9");
        assert_eq!(said(symbolic.set("M", 3)), "there is no symbol \"M\"");
        symbolic.set("N", 4).unwrap();
        let outcome = symbolic.resolve();
        assert!(matches!(outcome, Outcome::Plan(_)));
        assert_eq!(outcome.shapes(), symbolic.shapes);
    }

    #[test]
    fn what_is_refused_is_an_error_with_names() {
        let outcome = request("to:2,3", &["x:4"]).unwrap().resolve();
        assert!(outcome.error().unwrap().to_string().contains("x has 4"));
        assert_eq!((outcome.shape(), outcome.rule().to_string().as_str()), (None, "to:2,3"));
    }
}
