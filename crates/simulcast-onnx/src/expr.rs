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
/// The longest text that is read as an expression, and how deep its brackets may be.
const PARSED: usize = 400;
const NESTED: usize = 32;

/// A polynomial with integer coefficients over symbols; each term is its symbols, in order, and its
/// coefficient, which is not 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct SizeExpr(Vec<(Vec<Arc<str>>, i64)>);

impl From<i64> for SizeExpr {
    fn from(value: i64) -> Self {
        Self(if value == 0 { Vec::new() } else { vec![(Vec::new(), value)] })
    }
}

impl SizeExpr {
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

    fn from_terms(terms: Vec<(Vec<Arc<str>>, i64)>) -> Option<Self> {
        let mut sum: Vec<(Vec<Arc<str>>, i64)> = Vec::new();
        for (symbols, value) in terms {
            match sum.binary_search_by(|(own, _)| own.cmp(&symbols)) {
                Ok(at) => sum[at].1 = sum[at].1.checked_add(value)?,
                Err(at) => sum.insert(at, (symbols, value)),
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
            (None, Some(by @ 1..)) => self.floor(by),
            (_, Some(_)) => None,
            _ => self.named(&format!("{}//{}", self.factor()?, by.factor()?)),
        }
    }

    /// The quotient by a number above 0, rounded down, in a form that equal quotients share: what is a
    /// multiple of the number goes in front, and common factors go.
    fn floor(&self, by: i64) -> Option<Self> {
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        for (symbols, value) in &self.0 {
            whole.push((symbols.clone(), value.div_euclid(by)));
            rest.push((symbols.clone(), value.rem_euclid(by)));
        }
        let common = rest.iter().filter(|(symbols, _)| !symbols.is_empty());
        let common = common.fold(by, |common, (_, value)| divisor(common, *value));
        // A rest below the common factor does not change the rounded quotient.
        rest.iter_mut().for_each(|(_, value)| *value /= common);
        let (whole, rest) = (Self::from_terms(whole)?, Self::from_terms(rest)?);
        match (rest.constant(), by / common) {
            (Some(value), by) => whole.add(&Self::from(value.div_euclid(by))),
            (None, 1) => whole.add(&rest),
            (None, by) => whole.add(&rest.named(&format!("{}//{by}", rest.factor()?))?),
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

    /// What a text says: sums, products, quotients inside `floor` or `ceil`, and rounded quotients, of
    /// numbers and of the names that `symbol` knows.
    pub(crate) fn parse(text: &str, symbol: &dyn Fn(&str) -> Option<Self>) -> Option<Self> {
        if text.len() > PARSED || !text.contains(['+', '-', '*', '/', '(']) {
            return None;
        }
        let mut parser = Parser { rest: text, symbol, depth: 0 };
        let quotient = parser.sum()?;
        parser.rest.trim_start().is_empty().then_some(quotient)?.whole()
    }

    fn factor(&self) -> Option<String> {
        let text = self.text()?;
        let is_plain = match self.0.as_slice() {
            [(symbols, value)] => symbols.is_empty() || (symbols.len() == 1 && *value == 1),
            _ => self.0.is_empty(),
        };
        Some(if is_plain && !text.contains("//") { text } else { format!("({text})") })
    }
}

/// The greatest common divisor of a number above 0 and one that is at least 0.
fn divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// An expression over a number above 0.
struct Quotient(SizeExpr, i64);

impl Quotient {
    fn whole(self) -> Option<SizeExpr> {
        if self.1 == 1 { Some(self.0) } else { self.0.div_exact(&SizeExpr::from(self.1)) }
    }

    fn add(&self, other: &Self) -> Option<Self> {
        let (left, right) =
            (self.0.mul(&SizeExpr::from(other.1))?, other.0.mul(&SizeExpr::from(self.1))?);
        Some(Self(left.add(&right)?, self.1.checked_mul(other.1)?))
    }

    fn mul(&self, other: &Self) -> Option<Self> {
        Some(Self(self.0.mul(&other.0)?, self.1.checked_mul(other.1)?))
    }

    fn negated(self) -> Option<Self> {
        Some(Self(self.0.mul(&SizeExpr::from(-1))?, self.1))
    }

    fn over(self, by: Self) -> Option<Self> {
        let by = by.whole()?;
        match by.constant() {
            Some(by @ 1..) => Some(Self(self.0, self.1.checked_mul(by)?)),
            Some(_) => None,
            None => Some(Self(self.whole()?.div_exact(&by)?, 1)),
        }
    }

    fn floor(self) -> Option<SizeExpr> {
        match self.0.constant() {
            Some(value) => Some(SizeExpr::from(value.div_euclid(self.1))),
            None if self.1 == 1 => Some(self.0),
            None => self.0.floor(self.1),
        }
    }
}

/// Reads expressions as exporters write them: `floor(height/2 - 1/2) + 1`, `batch*seq`, `(N - 1)//2`.
struct Parser<'t, 's> {
    rest: &'t str,
    symbol: &'s dyn Fn(&str) -> Option<SizeExpr>,
    depth: usize,
}

impl Parser<'_, '_> {
    fn takes(&mut self, word: &str) -> bool {
        match self.rest.trim_start().strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<Quotient> {
        let mut sum = self.product()?;
        loop {
            if self.takes("+") {
                sum = sum.add(&self.product()?)?;
            } else if self.takes("-") {
                sum = sum.add(&self.product()?.negated()?)?;
            } else {
                return Some(sum);
            }
        }
    }

    fn product(&mut self) -> Option<Quotient> {
        let mut product = self.atom()?;
        loop {
            if self.takes("**") {
                return None;
            } else if self.takes("*") {
                product = product.mul(&self.atom()?)?;
            } else if self.takes("//") {
                let by = self.atom()?;
                product = match by.1 == 1 && by.0.constant().is_none() {
                    true => Quotient(product.whole()?.div_floor(&by.0)?, 1),
                    false => Quotient(product.over(by)?.floor()?, 1),
                };
            } else if self.takes("/") {
                product = product.over(self.atom()?)?;
            } else {
                return Some(product);
            }
        }
    }

    fn atom(&mut self) -> Option<Quotient> {
        self.depth += 1;
        if self.depth > NESTED {
            return None;
        }
        let atom = self.inner();
        self.depth -= 1;
        atom
    }

    fn inner(&mut self) -> Option<Quotient> {
        if self.takes("-") {
            return self.atom()?.negated();
        }
        if self.takes("(") {
            let inner = self.sum()?;
            return self.takes(")").then_some(inner);
        }
        let text = self.rest.trim_start();
        let is_part =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '#' | '@' | '$');
        let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            return Some(Quotient(SizeExpr::from(word.parse::<i64>().ok()?), 1));
        }
        let rounds = matches!(word, "floor" | "ceil" | "ceiling");
        if rounds && self.takes("(") {
            let inner = self.sum()?;
            if !self.takes(")") {
                return None;
            }
            return Some(match word {
                "floor" => Quotient(inner.floor()?, 1),
                // The same form as a size that is rounded up by adding.
                _ => {
                    let more = SizeExpr::from(inner.1.checked_sub(1)?);
                    Quotient(Quotient(inner.0.add(&more)?, inner.1).floor()?, 1)
                }
            });
        }
        Some(Quotient((self.symbol)(word)?, 1))
    }
}

/// `2*N*M + N - 1`
impl fmt::Display for SizeExpr {
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
            // A quotient that is multiplied, or negative, is one only in brackets.
            let alone = size == 1 && symbols.len() == 1 && (position > 0 || *value > 0);
            for (position, symbol) in symbols.iter().enumerate() {
                f.write_str(if position == 0 { "" } else { "*" })?;
                match !alone && symbol.contains("//") {
                    true => write!(f, "({symbol})")?,
                    false => f.write_str(symbol)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_finds_equal_expressions_equal() {
        let (n, m) = (SizeExpr::symbol("N"), SizeExpr::symbol("M"));
        let two = SizeExpr::from(2);
        let sum =
            n.mul(&two).unwrap().mul(&m).unwrap().add(&n).unwrap().sub(&SizeExpr::from(1)).unwrap();
        assert_eq!(sum.to_string(), "2*M*N + N - 1");
        assert_eq!(sum.sub(&sum).unwrap().constant(), Some(0));
        assert_eq!(m.mul(&n), n.mul(&m));
        assert_eq!(n.mul(&two).unwrap().div_floor(&two), Some(n.clone()));
        assert_eq!(n.mul(&m).unwrap().div_exact(&m), Some(n.clone()));
        assert_eq!(n.div_exact(&two), None);
        assert_eq!(sum.div_floor(&two).unwrap().to_string(), "(N + 1)//2 + M*N - 1");
        assert_eq!(SizeExpr::from(7).div_floor(&two), Some(SizeExpr::from(3)));
        assert_eq!(SizeExpr::from(7).div_floor(&SizeExpr::from(0)), None);
        assert!(n.add(&two).unwrap().is_at_least(2) && !n.is_at_least(1));
        assert!(!sum.is_at_least(0));
    }

    #[test]
    fn texts_of_exporters_are_the_expressions_that_are_inferred() {
        let parse = |text: &str| {
            SizeExpr::parse(text, &|name| {
                matches!(name, "height" | "batch" | "seq").then(|| SizeExpr::symbol(name))
            })
        };
        let said = |text: &str| parse(text).map(|expr| expr.to_string());
        let half = |expr: &SizeExpr| expr.sub(&SizeExpr::from(1))?.div_floor(&SizeExpr::from(2));
        let height = SizeExpr::symbol("height");
        let one = SizeExpr::from(1);
        let first = half(&height).unwrap().add(&one).unwrap();
        assert_eq!(parse("floor(height/2 - 1/2) + 1").as_ref(), Some(&first));
        let second = half(&first).unwrap().add(&one).unwrap();
        assert_eq!(parse("floor(floor(height/2 - 1/2)/2) + 1").as_ref(), Some(&second));
        assert_eq!(parse("(height + 1)//2"), Some(first));
        assert_eq!(said("batch*seq").as_deref(), Some("batch*seq"));
        assert_eq!(said("ceil(height/2)").as_deref(), Some("(height + 1)//2"));
        assert_eq!(said("2*(height//2)*batch").as_deref(), Some("2*batch*(height//2)"));
        assert_eq!(said("2*(batch + 1) - seq").as_deref(), Some("2*batch - seq + 2"));
        for no in [
            "batch",
            "other + 1",
            "batch +",
            "(batch",
            "floor(batch",
            "batch/2",
            "batch/0",
            "2**batch",
            "",
        ] {
            assert_eq!(parse(no), None, "{no}");
        }
        assert_eq!(parse(&"(".repeat(300)), None);
    }

    #[test]
    fn growth_is_bounded() {
        let mut power = SizeExpr::symbol("N");
        let mut steps = 0;
        while let Some(next) = power.mul(&power) {
            (power, steps) = (next, steps + 1);
        }
        assert_eq!(steps, 2);
        assert_eq!(SizeExpr::from(i64::MAX).add(&SizeExpr::from(1)), None);
        assert_eq!(SizeExpr::from(i64::MIN).mul(&SizeExpr::from(-1)), None);
        assert_eq!(SizeExpr::from(i64::MIN).div_exact(&SizeExpr::from(-1)), None);
    }
}
