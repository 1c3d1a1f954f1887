//! Sizes as expressions: polynomials over symbols, so that `2*N` divided by 2 is `N` again.
//!
//! Exported models compute shapes: `Shape`, `Gather`, `Mul`, `Concat`, `Reshape`. Following that
//! with sizes that are not known needs their arithmetic, and equal expressions must be seen to be
//! equal. A sum of products in a fixed order does both. What is no polynomial (a rounded division)
//! becomes a symbol whose name says what it is.

use std::fmt;
use std::sync::Arc;

/// At most this many terms, and this many symbols in each: sizes in real models have two or three.
const TERMS: usize = 8;
const DEGREE: usize = 6;
/// The longest text of an expression that may become a symbol's name.
const TEXT: usize = 120;

/// A polynomial with integer coefficients over symbols; each term is its symbols, in order, and its
/// coefficient, which is not 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Expr(Vec<(Vec<Arc<str>>, i64)>);

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        Self(if value == 0 { Vec::new() } else { vec![(Vec::new(), value)] })
    }
}

impl Expr {
    pub(crate) fn symbol(name: impl Into<Arc<str>>) -> Self {
        Self(vec![(vec![name.into()], 1)])
    }

    pub(crate) fn constant(&self) -> Option<i64> {
        match self.0.as_slice() {
            [] => Some(0),
            [(symbols, value)] if symbols.is_empty() => Some(*value),
            _ => None,
        }
    }

    /// The symbol, where it is one and nothing else.
    pub(crate) fn single(&self) -> Option<&Arc<str>> {
        match self.0.as_slice() {
            [(symbols, 1)] if symbols.len() == 1 => symbols.first(),
            _ => None,
        }
    }

    pub(crate) fn symbols(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|(symbols, _)| symbols.iter().map(AsRef::as_ref))
    }

    /// Whether it is at least `low` whatever its symbols are, which as sizes are at least 0.
    pub(crate) fn is_at_least(&self, low: i64) -> bool {
        let constant = self.0.iter().find(|(symbols, _)| symbols.is_empty()).map_or(0, |(_, c)| *c);
        constant >= low && self.0.iter().all(|(symbols, c)| symbols.is_empty() || *c >= 0)
    }

    fn from_terms(mut terms: Vec<(Vec<Arc<str>>, i64)>) -> Option<Self> {
        terms.sort();
        let mut sum: Vec<(Vec<Arc<str>>, i64)> = Vec::new();
        for (symbols, value) in terms {
            match sum.last_mut() {
                Some((last, total)) if *last == symbols => *total = total.checked_add(value)?,
                _ => sum.push((symbols, value)),
            }
        }
        sum.retain(|(_, value)| *value != 0);
        let fits = sum.len() <= TERMS && sum.iter().all(|(symbols, _)| symbols.len() <= DEGREE);
        fits.then_some(Self(sum))
    }

    pub(crate) fn add(&self, other: &Self) -> Option<Self> {
        Self::from_terms(self.0.iter().chain(&other.0).cloned().collect())
    }

    pub(crate) fn sub(&self, other: &Self) -> Option<Self> {
        self.add(&other.mul(&Self::from(-1))?)
    }

    pub(crate) fn mul(&self, other: &Self) -> Option<Self> {
        let mut terms = Vec::new();
        for (left, a) in &self.0 {
            for (right, b) in &other.0 {
                let mut symbols: Vec<Arc<str>> = left.iter().chain(right).cloned().collect();
                symbols.sort();
                terms.push((symbols, a.checked_mul(*b)?));
            }
        }
        Self::from_terms(terms)
    }

    /// The quotient, where there is one without remainder.
    pub(crate) fn div_exact(&self, other: &Self) -> Option<Self> {
        let [(by, value)] = other.0.as_slice() else {
            return (self == other && !self.0.is_empty()).then(|| Self::from(1));
        };
        let term = |(symbols, coefficient): &(Vec<Arc<str>>, i64)| {
            let mut left = symbols.clone();
            for symbol in by {
                let position = left.iter().position(|own| own == symbol)?;
                left.remove(position);
            }
            let quotient = coefficient.checked_div(*value)?;
            (quotient.checked_mul(*value)? == *coefficient).then_some((left, quotient))
        };
        Self::from_terms(self.0.iter().map(term).collect::<Option<_>>()?)
    }

    /// The quotient rounded down, of what is at least 0 by what is above 0.
    pub(crate) fn div_floor(&self, by: &Self) -> Option<Self> {
        if let Some(exact) = self.div_exact(by) {
            return Some(exact);
        }
        match (self.constant(), by.constant()) {
            (Some(a), Some(b)) => (a >= 0 && b > 0).then(|| Self::from(a / b)),
            (_, Some(..=0)) => None,
            _ => self.named(&format!("{}//{}", self.factor()?, by.factor()?)),
        }
    }

    /// A symbol that stands for an operation on expressions that is no polynomial.
    pub(crate) fn named(&self, text: &str) -> Option<Self> {
        (text.len() <= TEXT).then(|| Self::symbol(text))
    }

    pub(crate) fn product<'a>(factors: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        factors.into_iter().try_fold(Self::from(1), |product, factor| product.mul(factor))
    }

    /// The text, where it is short enough to be a name.
    pub(crate) fn text(&self) -> Option<String> {
        Some(self.to_string()).filter(|text| text.len() <= TEXT)
    }

    fn factor(&self) -> Option<String> {
        let text = self.text()?;
        Some(if self.0.len() > 1 { format!("({text})") } else { text })
    }
}

/// `2*N*M + N - 1`
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("0");
        }
        // The constant comes last.
        let constant = self.0.iter().filter(|(symbols, _)| symbols.is_empty());
        let others = self.0.iter().filter(|(symbols, _)| !symbols.is_empty());
        for (position, (symbols, value)) in others.chain(constant).enumerate() {
            f.write_str(match (position, *value < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            })?;
            let size = value.unsigned_abs();
            if size != 1 || symbols.is_empty() {
                write!(f, "{size}{}", if symbols.is_empty() { "" } else { "*" })?;
            }
            f.write_str(&symbols.join("*"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_finds_equal_expressions_equal() {
        let (n, m) = (Expr::symbol("N"), Expr::symbol("M"));
        let two = Expr::from(2);
        let sum =
            n.mul(&two).unwrap().mul(&m).unwrap().add(&n).unwrap().sub(&Expr::from(1)).unwrap();
        assert_eq!(sum.to_string(), "2*M*N + N - 1");
        assert_eq!(sum.sub(&sum).unwrap().constant(), Some(0));
        assert_eq!(m.mul(&n), n.mul(&m));
        assert_eq!(n.mul(&two).unwrap().div_floor(&two), Some(n.clone()));
        assert_eq!(n.mul(&m).unwrap().div_exact(&m), Some(n.clone()));
        assert_eq!(n.div_exact(&two), None);
        assert_eq!(sum.div_floor(&two).unwrap().to_string(), "(2*M*N + N - 1)//2");
        assert_eq!(Expr::from(7).div_floor(&two), Some(Expr::from(3)));
        assert_eq!(Expr::from(7).div_floor(&Expr::from(0)), None);
        assert!(n.add(&two).unwrap().is_at_least(2) && !n.is_at_least(1));
        assert!(!sum.is_at_least(0));
    }

    #[test]
    fn growth_is_bounded() {
        let mut power = Expr::symbol("N");
        let mut steps = 0;
        while let Some(next) = power.mul(&power) {
            (power, steps) = (next, steps + 1);
        }
        assert_eq!(steps, 2);
        assert_eq!(Expr::from(i64::MAX).add(&Expr::from(1)), None);
        assert_eq!(Expr::from(i64::MIN).mul(&Expr::from(-1)), None);
        assert_eq!(Expr::from(i64::MIN).div_exact(&Expr::from(-1)), None);
    }
}
