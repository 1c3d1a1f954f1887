//! The parser: Python's syntax and precedence, for what the language has of it.
//!
//! Precedence climbing: a chain of operators of one strength is a loop, so its length costs no stack;
//! only brackets, signs, powers and conditions nest, and their depth is bounded.
//!
//! | strength | operators |
//! |---|---|
//! | 0 | `a if c else b` |
//! | 1, 2, 3 | `or`, `and`, `not` |
//! | 4 | `< <= > >= == !=`, chained as in Python |
//! | 5, 6, 7 | `\|`, `^`, `&` |
//! | 8 | `<< >>` |
//! | 9 | `+ -` |
//! | 10 | `* / // %` |
//! | 11 | `-a`, `+a`, `~a` |
//! | 12 | `**`, from right to left |
//! | 13 | `a[:, None]`, `a.T`, `f(a)` |

use std::ops::Range;

use super::expr::{Expr, ExprId, ExprKind, ExprNode};
use super::functions::Function;
use super::graph::{AxisPattern, Fold};
use super::parse_error::{ParseError, ParseErrorKind};
use super::token::{Spanned, Token, tokens};
use crate::dtype::DType;
use crate::op::Op;
use crate::typing::Literal;

/// How deep expressions nest; a call counts twice. Unoptimised, a level takes 8 KiB of stack.
const DEPTH: usize = 128;

pub(super) const COMPARISON: u8 = 4;
pub(super) const NOT: u8 = 3;
pub(super) const UNARY: u8 = 11;
pub(super) const POWER: u8 = 12;
pub(super) const POSTFIX: u8 = 13;

/// The operators that join two operands from left to right, but comparisons.
pub(super) const BINARY: [(&str, u8, Op); 13] = [
    ("or", 1, Op::LogicalOr),
    ("and", 2, Op::LogicalAnd),
    ("|", 5, Op::BitwiseOr),
    ("^", 6, Op::BitwiseXor),
    ("&", 7, Op::BitwiseAnd),
    ("<<", 8, Op::LeftShift),
    (">>", 8, Op::RightShift),
    ("+", 9, Op::Add),
    ("-", 9, Op::Subtract),
    ("*", 10, Op::Multiply),
    ("/", 10, Op::Divide),
    ("//", 10, Op::FloorDivide),
    ("%", 10, Op::Remainder),
];

pub(super) const COMPARISONS: [(&str, Op); 6] = [
    ("<", Op::Less),
    ("<=", Op::LessEqual),
    (">", Op::Greater),
    (">=", Op::GreaterEqual),
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
];

/// Operators of other languages.
const FOREIGN: [(&str, &str); 8] = [
    ("@", "write the product and the sum: `(a[:, :, None] * b).sum(axis=1)`"),
    ("&&", "write `and`"),
    ("||", "write `or`"),
    ("!", "write `not`, or `~` for bits"),
    ("?", "write `a if condition else b`"),
    ("=", "an expression assigns nothing; `==` compares"),
    (":=", "an expression assigns nothing; `==` compares"),
    ("->", "an expression has no arrows"),
];

const KEYWORDS: [&str; 8] = ["and", "or", "not", "if", "else", "is", "in", "lambda"];

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Expr, ParseError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, nodes: Vec::new(), depth: 0 };
    parser.conditional()?;
    match parser.token() {
        Token::End => Ok(Expr { text: text.into(), nodes: parser.nodes }),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser {
    tokens: Vec<Spanned>,
    at: usize,
    nodes: Vec<ExprNode>,
    depth: usize,
}

type Parsed<T = ExprId> = Result<T, ParseError>;

impl Parser {
    fn token(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |spanned| &spanned.token)
    }

    fn span(&self) -> Range<usize> {
        self.tokens.get(self.at).map_or(0..0, |spanned| spanned.span.clone())
    }

    /// Where the last token that was taken ends.
    fn end(&self) -> usize {
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        last.map_or(0, |spanned| spanned.span.end)
    }

    fn advance(&mut self) -> Range<usize> {
        let span = self.span();
        self.at += 1;
        span
    }

    fn is(&self, sign: &str) -> bool {
        match self.token() {
            Token::Sign(own) => *own == sign,
            Token::Name(name) => name == sign,
            _ => false,
        }
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, sign: &str, wanted: &'static str) -> Parsed<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    /// The error for the token that stands here.
    fn unexpected(&self, wanted: &'static str) -> ParseError {
        let found = match self.token() {
            Token::Number(literal) => format!("`{literal}`"),
            Token::Text(_) => "a text".into(),
            Token::Name(name) => format!("`{name}`"),
            Token::Sign(sign) => match FOREIGN.iter().find(|(foreign, _)| foreign == sign) {
                Some(&(operator, instead)) => {
                    return self.error(ParseErrorKind::Operator { operator, instead });
                }
                None => format!("`{sign}`"),
            },
            Token::End => "the end".into(),
        };
        self.error(ParseErrorKind::Expected { wanted, found })
    }

    fn error(&self, kind: ParseErrorKind) -> ParseError {
        ParseError::new(self.span(), kind)
    }

    fn push(&mut self, kind: ExprKind, start: usize, head: Range<usize>) -> ExprId {
        let id = ExprId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(ExprNode { kind, span: start..self.end(), head });
        id
    }

    /// One level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH {
            return Err(self.error(ParseErrorKind::Deep));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// `a if condition else b`
    fn conditional(&mut self) -> Parsed {
        self.deeper(|own| {
            let start = own.span().start;
            let yes = own.binary(1)?;
            if !own.is("if") {
                return Ok(yes);
            }
            let head = own.advance();
            let condition = own.binary(1)?;
            own.want("else", "`else`")?;
            let no = own.conditional()?;
            Ok(own.push(ExprKind::If(yes, condition, no), start, head))
        })
    }

    /// Operands joined by operators of that strength or more.
    fn binary(&mut self, least: u8) -> Parsed {
        let start = self.span().start;
        let mut left = match self.is("not") && least <= NOT {
            true => self.negated()?,
            false => self.unary()?,
        };
        loop {
            if least <= COMPARISON && self.comparison().is_some() {
                left = self.compared(left, start)?;
                continue;
            }
            let joins = |(sign, strength, _): &&(&str, u8, Op)| *strength >= least && self.is(sign);
            let Some(&(_, strength, op)) = BINARY.iter().find(joins) else { return Ok(left) };
            let head = self.advance();
            let right = self.deeper(|own| own.binary(strength + 1))?;
            left = self.push(ExprKind::Apply(op, vec![left, right]), start, head);
        }
    }

    fn comparison(&self) -> Option<Op> {
        COMPARISONS.iter().find(|(sign, _)| self.is(sign)).map(|(_, op)| *op)
    }

    /// `a < b <= c`, from the first operator on.
    fn compared(&mut self, first: ExprId, start: usize) -> Parsed {
        let (head, mut rest) = (self.span(), Vec::new());
        while let Some(op) = self.comparison() {
            self.advance();
            rest.push((op, self.deeper(|own| own.binary(COMPARISON + 1))?));
        }
        Ok(self.push(ExprKind::Compare(first, rest), start, head))
    }

    fn negated(&mut self) -> Parsed {
        self.deeper(|own| {
            let head = own.advance();
            let of = own.binary(NOT)?;
            Ok(own.push(ExprKind::Apply(Op::LogicalNot, vec![of]), head.start, head))
        })
    }

    /// A sign before an operand, or a power.
    fn unary(&mut self) -> Parsed {
        let op = match self.token() {
            Token::Sign("-") => Some(Op::Negative),
            Token::Sign("~") => Some(Op::BitwiseNot),
            Token::Sign("+") => None,
            _ => return self.power(),
        };
        self.deeper(|own| {
            let head = own.advance();
            let of = own.unary()?;
            Ok(match op {
                Some(op) => own.push(ExprKind::Apply(op, vec![of]), head.start, head),
                None => of,
            })
        })
    }

    fn power(&mut self) -> Parsed {
        let start = self.span().start;
        let base = self.postfix()?;
        if !self.is("**") {
            return Ok(base);
        }
        let head = self.advance();
        let exponent = self.deeper(Self::unary)?;
        Ok(self.push(ExprKind::Apply(Op::Power, vec![base, exponent]), start, head))
    }

    /// An operand with what follows it: indices, attributes, methods.
    fn postfix(&mut self) -> Parsed {
        let start = self.span().start;
        let mut of = self.primary()?;
        loop {
            let head = self.span();
            if self.take("[") {
                let pattern = self.index()?;
                of = self.push(ExprKind::Index(of, pattern), start, head);
            } else if self.take(".") {
                of = self.deeper(|own| own.attribute(of, start))?;
            } else {
                return Ok(of);
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let span = self.span();
        match self.token().clone() {
            Token::Number(literal) => {
                self.advance();
                Ok(self.push(ExprKind::Literal(literal), span.start, span))
            }
            Token::Text(text) => {
                self.advance();
                Ok(self.push(ExprKind::Text(text), span.start, span))
            }
            Token::Name(name) if !KEYWORDS.contains(&name.as_str()) => {
                self.advance();
                if self.is("(") {
                    return self.deeper(|own| own.call(&name, &span));
                }
                let kind = match name.as_str() {
                    "True" => ExprKind::Literal(Literal::Bool(true)),
                    "False" => ExprKind::Literal(Literal::Bool(false)),
                    "None" => {
                        self.at -= 1;
                        return Err(self.unexpected("an operand"));
                    }
                    _ => ExprKind::Name(name),
                };
                Ok(self.push(kind, span.start, span))
            }
            Token::Sign("(") => {
                self.advance();
                let inner = self.conditional()?;
                self.want(")", "an operator or `)`")?;
                // The brackets belong to the operand, so that an index can be put after them.
                let end = self.end();
                if let Some(node) = self.nodes.get_mut(inner.index()) {
                    node.span = span.start..end;
                }
                Ok(inner)
            }
            _ => Err(self.unexpected("an operand")),
        }
    }

    /// What stands between square brackets, after the opening one.
    fn index(&mut self) -> Parsed<Vec<AxisPattern>> {
        let mut pattern = Vec::new();
        loop {
            let part = match self.token() {
                Token::Sign(":") => AxisPattern::Keep,
                Token::Sign("...") if !pattern.contains(&AxisPattern::Rest) => AxisPattern::Rest,
                Token::Name(name) if name == "None" || name == "newaxis" => AxisPattern::New,
                _ => return Err(self.error(ParseErrorKind::Index)),
            };
            self.advance();
            pattern.push(part);
            if self.take("]") {
                return Ok(pattern);
            }
            if !self.take(",") {
                return Err(self.error(ParseErrorKind::Index));
            }
            if self.take("]") {
                return Ok(pattern);
            }
        }
    }

    /// What stands after the dot of `a.T`, `a.sum(axis=0)`.
    fn attribute(&mut self, of: ExprId, start: usize) -> Parsed {
        let head = self.span();
        let Token::Name(name) = self.token().clone() else {
            return Err(self.unexpected("the name of a method"));
        };
        self.advance();
        let called = self.take("(");
        match (Function::named(&name), called) {
            (Some(Function::Op(op @ (Op::Real | Op::Imag))), false) => {
                Ok(self.push(ExprKind::Apply(op, vec![of]), start, head))
            }
            _ if name == "T" && !called => {
                Ok(self.push(ExprKind::Transpose(of, None), start, head))
            }
            (Some(Function::Extreme(_, fold) | Function::Reduce(fold)), true) => {
                self.reduced(&name, fold, of, start, head)
            }
            (Some(Function::AsType), true) => {
                let dtype = self.dtype()?;
                self.want(")", "`)`")?;
                Ok(self.push(ExprKind::Cast(dtype, of), start, head))
            }
            (Some(Function::Transpose), true) => self.transposed(of, start, head),
            (Some(Function::Clip), true) => {
                let bounds = self.arguments()?;
                self.clipped(of, &bounds, start, head)
            }
            (Some(Function::Op(op)), true) if op.arity() == 1 => {
                self.want(")", "`)`")?;
                Ok(self.push(ExprKind::Apply(op, vec![of]), start, head))
            }
            _ => Err(ParseError::new(head, ParseErrorKind::UnknownMethod(name))),
        }
    }

    /// A function's operands; its name is taken, the bracket is not.
    fn call(&mut self, name: &str, head: &Range<usize>) -> Parsed {
        let Some(function) = Function::named(name) else {
            let near = Function::near(name);
            let kind = ParseErrorKind::UnknownFunction { name: name.into(), near };
            return Err(ParseError::new(head.clone(), kind));
        };
        self.advance();
        let (start, head) = (head.start, head.clone());
        let arity = |expected: String, given: usize| {
            let function = name.to_string();
            Err(ParseError::new(head.clone(), ParseErrorKind::Arity { function, expected, given }))
        };
        if self.is(")") {
            return arity("operands".into(), 0);
        }
        let first = self.conditional()?;
        match function {
            Function::Op(op) => {
                let args = self.more(first)?;
                let (count, many) = (args.len(), is_chained(op));
                if count != op.arity() && !(many && count > 2) {
                    let s = if op.arity() == 1 { "" } else { "s" };
                    let or_more = if many { " or more" } else { "" };
                    return arity(format!("{} operand{s}{or_more}", op.arity()), count);
                }
                Ok(match (COMPARISONS.iter().any(|(_, own)| *own == op), args.as_slice()) {
                    (true, &[a, b]) => self.push(ExprKind::Compare(a, vec![(op, b)]), start, head),
                    _ => self.push(ExprKind::Apply(op, args), start, head),
                })
            }
            Function::Extreme(op, fold) => {
                let alone = self.is(")") || (self.is(",") && self.closes(1));
                if alone || self.names(2) {
                    self.separated()?;
                    return self.reduced(name, fold, first, start, head);
                }
                let args = self.more(first)?;
                Ok(self.push(ExprKind::Apply(op, args), start, head))
            }
            Function::Reduce(fold) => {
                self.separated()?;
                self.reduced(name, fold, first, start, head)
            }
            Function::Cast(dtype) => {
                let args = self.more(first)?;
                match args.len() {
                    1 => Ok(self.push(ExprKind::Cast(dtype, first), start, head)),
                    given => arity("1 operand".into(), given),
                }
            }
            Function::AsType => {
                self.want(",", "`,` and a type")?;
                let dtype = self.dtype()?;
                self.want(")", "`)`")?;
                Ok(self.push(ExprKind::Cast(dtype, first), start, head))
            }
            Function::Transpose => {
                self.separated()?;
                self.transposed(first, start, head)
            }
            Function::Clip => {
                let args = self.more(first)?;
                self.clipped(first, args.get(1..).unwrap_or_default(), start, head)
            }
        }
    }

    /// Takes the comma after a first operand, where the bracket does not close at once.
    fn separated(&mut self) -> Parsed<()> {
        if self.is(")") { Ok(()) } else { self.want(",", "`,`, `)` or an operator") }
    }

    /// Whether the token so far ahead is the sign after a keyword.
    fn names(&self, ahead: usize) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|next| next.token == Token::Sign("="))
    }

    /// Whether the token so far ahead is the closing bracket.
    fn closes(&self, ahead: usize) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|next| next.token == Token::Sign(")"))
    }

    /// The operands after the first one, up to the closing bracket.
    fn more(&mut self, first: ExprId) -> Parsed<Vec<ExprId>> {
        let mut args = vec![first];
        if self.take(",") {
            args.extend(self.arguments()?);
        } else {
            self.want(")", "`,`, `)` or an operator")?;
        }
        Ok(args)
    }

    /// Operands up to the closing bracket.
    fn arguments(&mut self) -> Parsed<Vec<ExprId>> {
        let mut args = Vec::new();
        while !self.take(")") {
            args.push(self.conditional()?);
            if !self.take(",") {
                self.want(")", "`,`, `)` or an operator")?;
                break;
            }
        }
        Ok(args)
    }

    fn clipped(
        &mut self,
        of: ExprId,
        bounds: &[ExprId],
        start: usize,
        head: Range<usize>,
    ) -> Parsed {
        let &[low, high] = bounds else {
            let (function, expected) = ("clip".into(), "an operand and two bounds".into());
            let kind = ParseErrorKind::Arity { function, expected, given: bounds.len() + 1 };
            return Err(ParseError::new(head, kind));
        };
        Ok(self.push(ExprKind::Clip(of, low, high), start, head))
    }

    /// What stands between the operand of a reduction and the closing bracket.
    fn reduced(
        &mut self,
        function: &str,
        fold: Fold,
        of: ExprId,
        start: usize,
        head: Range<usize>,
    ) -> Parsed {
        let (mut axes, mut keepdims, mut first) = (None, false, true);
        while !self.take(")") {
            let keyword = match self.token().clone() {
                Token::Name(name) if self.names(1) => {
                    self.at += 2;
                    name
                }
                _ if first => "axis".into(),
                _ => return Err(self.unexpected("`axis=`, `keepdims=` or `)`")),
            };
            match keyword.as_str() {
                "axis" => axes = self.axes()?,
                "keepdims" => keepdims = self.flag()?,
                _ => {
                    self.at -= 2;
                    let kind = ParseErrorKind::Keyword { function: function.into(), keyword };
                    return Err(self.error(kind));
                }
            }
            first = false;
            if !self.take(",") {
                self.want(")", "`,` or `)`")?;
                break;
            }
        }
        Ok(self.push(ExprKind::Reduce { fold, of, axes, keepdims }, start, head))
    }

    /// An order of axes, up to the closing bracket: as operands, or as one tuple.
    fn transposed(&mut self, of: ExprId, start: usize, head: Range<usize>) -> Parsed {
        let mut axes = None;
        if !self.is(")") {
            axes = match self.is("(") || self.is("None") {
                true => self.axes()?,
                false => Some(self.integers(")")?),
            };
        }
        self.want(")", "`)`")?;
        Ok(self.push(ExprKind::Transpose(of, axes), start, head))
    }

    /// An axis, some in brackets, or `None`.
    fn axes(&mut self) -> Parsed<Option<Vec<isize>>> {
        if self.take("None") {
            return Ok(None);
        }
        let Some(closing) = [("(", ")"), ("[", "]")].into_iter().find(|(open, _)| self.is(open))
        else {
            return Ok(Some(vec![self.integer()?]));
        };
        self.advance();
        let axes = self.integers(closing.1)?;
        self.want(closing.1, "`,` or a closing bracket")?;
        Ok(Some(axes))
    }

    /// Integers with commas between them, up to a sign that is not taken.
    fn integers(&mut self, closing: &str) -> Parsed<Vec<isize>> {
        let mut all = Vec::new();
        while !self.is(closing) {
            all.push(self.integer()?);
            if !self.take(",") {
                break;
            }
        }
        Ok(all)
    }

    fn integer(&mut self) -> Parsed<isize> {
        let start = self.at;
        let negative = self.take("-");
        if let Token::Number(Literal::Int(value)) = *self.token()
            && let Ok(value) = isize::try_from(if negative { -value } else { value })
        {
            self.advance();
            return Ok(value);
        }
        let error = self.unexpected("an axis, such as `-1`");
        self.at = start;
        Err(error)
    }

    fn flag(&mut self) -> Parsed<bool> {
        let value = self.is("True");
        if value || self.is("False") {
            self.advance();
            return Ok(value);
        }
        Err(self.unexpected("`True` or `False`"))
    }

    fn dtype(&mut self) -> Parsed<DType> {
        let (Token::Name(name) | Token::Text(name)) = self.token().clone() else {
            return Err(self.unexpected("a type, such as `float32`"));
        };
        let dtype = name.parse();
        let dtype = dtype.map_err(|_| self.error(ParseErrorKind::UnknownType(name)))?;
        self.advance();
        Ok(dtype)
    }
}

/// Whether it takes more than two operands, one after the other.
pub(super) const fn is_chained(op: Op) -> bool {
    matches!(op, Op::Maximum | Op::Minimum | Op::Concat)
}
