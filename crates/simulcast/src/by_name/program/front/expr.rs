//! Expressions as they are written: a list of nodes, operands before what is computed of them.
//!
//! A list, not a tree of boxes: chains of any length are built, walked, shown and dropped without
//! recursion. Two expressions are equal where they mean the same; where their parts stand in the
//! text makes no difference.
//!
//! ```
//! use simulcast::program::Expr;
//!
//! let expr: Expr = "(x-mean)/ std*gain + bias".parse()?;
//! assert_eq!(expr.operands().collect::<Vec<_>>(), ["x", "mean", "std", "gain", "bias"]);
//! assert_eq!(expr.to_string(), "(x - mean) / std * gain + bias");
//! # Ok::<(), simulcast::program::SyntaxError>(())
//! ```

use std::ops::Range;
use std::str::FromStr;

use simulcast_core::Rule;

use crate::by_name::program::front::axes::{AxisPattern, Fold};
use crate::by_name::program::front::parse;
use crate::by_name::program::front::shapes::shapes;
use crate::by_name::program::front::syntax_error::SyntaxError;
use crate::by_name::types::Literal;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// A node of an [`Expr`], by its place in the list.
///
/// ```
/// use simulcast::program::{Expr, ExprId};
///
/// let expr = Expr::parse("a + b")?;
/// assert_eq!(expr.node(ExprId::new(2)).map(|node| node.span.clone()), Some(0..5));
/// # Ok::<(), simulcast::program::SyntaxError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(in crate::by_name::program) u32);

impl ExprId {
    /// The node at a place in [`Expr::nodes`].
    #[must_use]
    pub fn new(index: usize) -> Self {
        // No expression has more nodes.
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Its place in [`Expr::nodes`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
///
/// ```
/// use simulcast::Op;
/// use simulcast::program::{Expr, ExprKind};
///
/// let expr = Expr::parse("a + 2")?;
/// let [a, two, sum] = expr.nodes() else { panic!("three nodes") };
/// assert!(matches!(&a.kind, ExprKind::Name(name) if name == "a"));
/// assert!(matches!(two.kind, ExprKind::Literal(_)) && matches!(sum.kind, ExprKind::Apply(Op::Add, _)));
/// # Ok::<(), simulcast::program::SyntaxError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A number.
    Literal(Literal),
    /// Text in quotes.
    Text(String),
    /// An operand, or one of the constants `nan`, `inf`, `pi`, `e` where no operand has that name.
    Name(String),
    /// An operation on as many operands as it takes; `maximum`, `minimum` and `concat` on two or more.
    Apply(Op, Vec<ExprId>),
    /// `a < b <= c`: every neighbour compared, all of them true. One comparison or more.
    Compare(ExprId, Vec<(Op, ExprId)>),
    /// `a if condition else b`: those three, in that order.
    If(ExprId, ExprId, ExprId),
    /// `clip(x, low, high)`, which is `minimum(maximum(x, low), high)`.
    Clip(ExprId, ExprId, ExprId),
    /// `round(x, 2)`: to that many decimals, or before the point where they are negative. Without any it is an operation.
    Round(ExprId, isize),
    /// The operand as another type.
    Cast(DType, ExprId),
    /// `a[:, None]`
    Index(ExprId, Vec<AxisPattern>),
    /// `a.T`, or with an order of axes.
    Transpose(ExprId, Option<Vec<isize>>),
    /// `a.sum(axis=0)`
    Reduce {
        /// What is done.
        fold: Fold,
        /// The operand.
        of: ExprId,
        /// Along which axes; `None` along all.
        axes: Option<Vec<isize>>,
        /// Whether they stay, with size 1.
        keepdims: bool,
    },
}

impl ExprKind {
    /// The nodes that it is computed of, in the order of the text.
    #[must_use]
    pub fn children(&self) -> Vec<ExprId> {
        match self {
            Self::Literal(_) | Self::Text(_) | Self::Name(_) => Vec::new(),
            Self::Apply(_, args) => args.clone(),
            Self::Compare(first, rest) => {
                [*first].into_iter().chain(rest.iter().map(|(_, operand)| *operand)).collect()
            }
            Self::If(a, b, c) | Self::Clip(a, b, c) => vec![*a, *b, *c],
            Self::Cast(_, of)
            | Self::Round(of, _)
            | Self::Index(of, _)
            | Self::Transpose(of, _)
            | Self::Reduce { of, .. } => vec![*of],
        }
    }
}

impl ExprKind {
    /// The same of other nodes.
    fn move_children(&mut self, to: impl Fn(ExprId) -> ExprId) {
        match self {
            Self::Literal(_) | Self::Text(_) | Self::Name(_) => {}
            Self::Apply(_, args) => args.iter_mut().for_each(|id| *id = to(*id)),
            Self::Compare(first, rest) => {
                *first = to(*first);
                rest.iter_mut().for_each(|(_, id)| *id = to(*id));
            }
            Self::If(a, b, c) | Self::Clip(a, b, c) => {
                for id in [a, b, c] {
                    *id = to(*id);
                }
            }
            Self::Cast(_, of)
            | Self::Round(of, _)
            | Self::Index(of, _)
            | Self::Transpose(of, _)
            | Self::Reduce { of, .. } => *of = to(*of),
        }
    }
}

/// A node and where it stands in the text.
///
/// ```
/// use simulcast::program::Expr;
///
/// let expr = Expr::parse("sqrt(x)")?;
/// let whole = &expr.nodes()[1];
/// assert_eq!((whole.span.clone(), whole.head.clone()), (0..7, 0..4));
/// # Ok::<(), simulcast::program::SyntaxError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExprNode {
    /// What it is.
    pub kind: ExprKind,
    /// All of it, in bytes.
    pub span: Range<usize>,
    /// Its operator or the function's name.
    pub head: Range<usize>,
    /// How its text holds together.
    pub(in crate::by_name::program) form: Form,
}

/// How the text of a node holds together, where more is written around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::by_name::program) enum Form {
    /// By an operator, which may bind less strongly.
    Open,
    /// As a name, a call, an index: what is written behind it is about all of it.
    Tight,
    /// In brackets of its own.
    Bracket,
}

impl ExprNode {
    /// Whether an index or a method written behind its text is about all of it, not about its last
    /// operand.
    ///
    /// ```
    /// use simulcast::program::Expr;
    ///
    /// let whole = |text| Expr::parse(text).map(|expr| expr.nodes().last().unwrap().is_tight());
    /// assert_eq!(whole("(a + b)"), Ok(true));
    /// assert_eq!(whole("(a) + (b)"), Ok(false));
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn is_tight(&self) -> bool {
        self.form != Form::Open
    }

    /// Whether its text is in brackets of its own.
    #[must_use]
    #[doc(hidden)]
    pub fn is_bracketed(&self) -> bool {
        self.form == Form::Bracket
    }
}

/// An expression that was read from text.
///
/// ```
/// use simulcast::DType;
/// use simulcast::program::Expr;
/// use simulcast::types::Promotion;
///
/// let expr = Expr::parse("(x - mean) / 2")?;
/// assert_eq!(expr.operands().collect::<Vec<_>>(), ["x", "mean"]);
/// let program = expr.compile(&[("x", DType::F32), ("mean", DType::F32)], Promotion::Strict)?;
/// assert_eq!(program.dtype(), DType::F32);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expr {
    pub(in crate::by_name::program) text: String,
    pub(in crate::by_name::program) nodes: Vec<ExprNode>,
}

impl Expr {
    /// Reads an expression: Python's syntax and precedence, see [the language](crate::TypedProgram).
    ///
    /// # Errors
    ///
    /// What was expected, and where.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parse::parse(text)
    }

    /// Reads expressions that are separated by `;`. Their nodes' places are those in the whole text.
    ///
    /// # Errors
    ///
    /// As [`Expr::parse`].
    pub fn parse_several(text: &str) -> Result<Vec<Self>, SyntaxError> {
        let shifted = |range: &mut Range<usize>, by: usize| {
            *range = range.start + by..range.end + by;
        };
        let (mut all, mut start) = (Vec::new(), 0);
        for part in parts(text) {
            let mut own = Self::parse(part).map_err(|mut error| {
                shifted(&mut error.span, start);
                error
            })?;
            for node in &mut own.nodes {
                shifted(&mut node.span, start);
                shifted(&mut node.head, start);
            }
            own.text = text.into();
            all.push(own);
            start += part.len() + 1;
        }
        Ok(all)
    }

    /// The text that it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every node, operands before what is computed of them; the last one is the whole.
    #[must_use]
    pub fn nodes(&self) -> &[ExprNode] {
        &self.nodes
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: ExprId) -> Option<&ExprNode> {
        self.nodes.get(id.index())
    }

    /// The names of operands, in the order in which they first appear; without those constants that
    /// an operand's name would hide.
    pub fn operands(&self) -> impl Iterator<Item = &str> {
        let mut seen = std::collections::HashSet::new();
        self.names().filter(move |name| constant(name).is_none() && seen.insert(*name))
    }

    /// The expression in which these names stand for numbers, which adopt the type of what they meet.
    ///
    /// ```
    /// use simulcast::DType;
    /// use simulcast::program::Expr;
    /// use simulcast::types::{Literal, Promotion};
    ///
    /// let halved = Expr::parse("x * by")?.with_numbers(&[("by", Literal::Float(0.5))]);
    /// let program = halved.compile(&[("x", DType::F32)], Promotion::Numpy)?;
    /// assert_eq!(program.dtype(), DType::F32);
    /// # Ok::<(), simulcast::ProgramError>(())
    /// ```
    #[must_use]
    pub fn with_numbers(&self, numbers: &[(&str, Literal)]) -> Self {
        let mut bound = self.clone();
        for node in &mut bound.nodes {
            if let ExprKind::Name(name) = &node.kind
                && let Some((_, number)) = numbers.iter().find(|(own, _)| own == name)
            {
                node.kind = ExprKind::Literal(*number);
            }
        }
        bound
    }

    /// The expression of one of the nodes, in which some of the others are operands by these names. It
    /// keeps the whole text, which its nodes point into; `None` where there is no such node.
    ///
    /// ```
    /// use simulcast::program::{Expr, ExprId};
    ///
    /// let whole = Expr::parse("exp(a - sum(b, axis=1)) * c")?;
    /// let id = |text: &str| {
    ///     let at = whole.nodes().iter().position(|node| whole.written(node) == text);
    ///     at.map(ExprId::new).unwrap_or_default()
    /// };
    /// let part = whole.part(id("exp(a - sum(b, axis=1))"), &[(id("sum(b, axis=1)"), "total")]);
    /// let part = part.unwrap_or_else(|| unreachable!());
    /// assert_eq!(part.operands().collect::<Vec<_>>(), ["a", "total"]);
    /// assert_eq!(part, Expr::parse("exp(a - total)")?);
    /// # Ok::<(), simulcast::program::SyntaxError>(())
    /// ```
    #[must_use]
    pub fn part(&self, root: ExprId, operands: &[(ExprId, &str)]) -> Option<Self> {
        let named = |id: usize| operands.iter().find(|(own, _)| own.index() == id).map(|own| own.1);
        let mut needed = vec![false; self.nodes.len()];
        *needed.get_mut(root.index())? = true;
        // Operands come before what is computed of them.
        for (id, node) in self.nodes.iter().enumerate().rev() {
            if needed[id] && named(id).is_none() {
                for child in node.kind.children() {
                    *needed.get_mut(child.index())? = true;
                }
            }
        }
        let (mut places, mut nodes) = (vec![ExprId::default(); needed.len()], Vec::new());
        for (id, node) in self.nodes.iter().enumerate().filter(|(id, _)| needed[*id]) {
            places[id] = ExprId::new(nodes.len());
            let mut node = node.clone();
            match named(id) {
                Some(name) => node.kind = ExprKind::Name(name.to_owned()),
                None => node.kind.move_children(|child| places[child.index()]),
            }
            nodes.push(node);
        }
        Some(Self { text: self.text.clone(), nodes })
    }

    /// The shape of each node, for operands of these shapes under a rule, up to the first without one
    /// that fits; none for numbers, which fit everywhere.
    pub fn shapes<'a>(
        &self,
        rule: Rule<'_>,
        operand: impl Fn(&str) -> Option<&'a [usize]>,
    ) -> Vec<Option<Vec<usize>>> {
        shapes(self, rule, operand)
    }

    /// A node as it is written, on one line, so that an index or a method can follow.
    ///
    /// ```
    /// use simulcast::program::Expr;
    ///
    /// let expr = Expr::parse("(a -\n b) * c")?;
    /// let written: Vec<String> = expr.nodes().iter().map(|node| expr.written(node)).collect();
    /// assert_eq!(written, ["a", "b", "(a - b)", "c", "((a - b) * c)"]);
    /// # Ok::<(), simulcast::program::SyntaxError>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn written(&self, node: &ExprNode) -> String {
        let words = self.text.get(node.span.clone()).unwrap_or_default().split_whitespace();
        let text = words.collect::<Vec<_>>().join(" ");
        if node.is_tight() { text } else { format!("({text})") }
    }

    /// Every name, constants and repetitions included.
    pub(in crate::by_name::program) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter_map(|node| match &node.kind {
            ExprKind::Name(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// The parts of a text between semicolons that are not in quotes.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let (mut quote, mut escaped) = (None, false);
    text.split(move |letter| {
        let ends = quote.is_none() && letter == ';';
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(own), letter) if own == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            _ => {}
        }
        ends
    })
}

/// What a name stands for where no operand has it.
pub(in crate::by_name::program) fn constant(name: &str) -> Option<Literal> {
    Some(Literal::Float(match name {
        "nan" => f64::NAN,
        "inf" => f64::INFINITY,
        "pi" => std::f64::consts::PI,
        "e" => std::f64::consts::E,
        _ => return None,
    }))
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.nodes.len() == other.nodes.len()
            && self.nodes.iter().zip(&other.nodes).all(|(a, b)| a.kind == b.kind)
    }
}

impl FromStr for Expr {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Self::parse(text)
    }
}
