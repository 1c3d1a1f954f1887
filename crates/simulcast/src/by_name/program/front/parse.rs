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

mod call;

use std::ops::Range;

use crate::by_name::program::front::expr::{Expr, ExprId, ExprKind, ExprNode, Form};
use crate::by_name::program::front::syntax_error::{SyntaxError, SyntaxErrorKind};
use crate::by_name::program::front::token::{Spanned, Token, tokens};
use crate::by_name::types::Literal;
use simulcast_kernels::op::Op;

/// How deep expressions nest; a call counts twice. Unoptimised, a level takes 8 KiB of stack.
const DEPTH: usize = 128;

pub(in crate::by_name::program) const COMPARISON: u8 = 4;
pub(in crate::by_name::program) const NOT: u8 = 3;
pub(in crate::by_name::program) const UNARY: u8 = 11;
pub(in crate::by_name::program) const POWER: u8 = 12;
pub(in crate::by_name::program) const POSTFIX: u8 = 13;

/// The operators that join two operands from left to right, but comparisons.
pub(in crate::by_name::program) const BINARY: [(&str, u8, Op); 13] = [
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

pub(in crate::by_name::program) const COMPARISONS: [(&str, Op); 6] = [
    ("<", Op::Less),
    ("<=", Op::LessEqual),
    (">", Op::Greater),
    (">=", Op::GreaterEqual),
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
];

/// Operators of other languages.
const FOREIGN: [(&str, &str); 8] = [
    ("@", "write the product and the sum over the axis that both have, which are one pass"),
    ("&&", "write `and`"),
    ("||", "write `or`"),
    ("!", "write `not`, or `~` for bits"),
    ("?", "write `a if condition else b`"),
    ("=", "an expression assigns nothing; `==` compares"),
    (":=", "an expression assigns nothing; `==` compares"),
    ("->", "an expression has no arrows"),
];

/// Where people have functions from; a module, unless an operand has the name.
const MODULES: [&str; 7] = ["np", "numpy", "jnp", "math", "torch", "cp", "simulcast"];

const KEYWORDS: [&str; 8] = ["and", "or", "not", "if", "else", "is", "in", "lambda"];

/// Reads an expression.
pub(in crate::by_name::program) fn parse(text: &str) -> Result<Expr, SyntaxError> {
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

type Parsed<T = ExprId> = Result<T, SyntaxError>;

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
    fn unexpected(&self, wanted: &'static str) -> SyntaxError {
        let found = match self.token() {
            Token::Number(literal) => format!("`{literal}`"),
            Token::Text(_) => "a text".into(),
            Token::Name(name) => format!("`{name}`"),
            Token::Sign(sign) => match FOREIGN.iter().find(|(foreign, _)| foreign == sign) {
                Some(&(operator, instead)) => {
                    return self.error(SyntaxErrorKind::Operator { operator, instead });
                }
                None => format!("`{sign}`"),
            },
            Token::End => "the end".into(),
        };
        self.error(SyntaxErrorKind::Expected { wanted, found })
    }

    fn error(&self, kind: SyntaxErrorKind) -> SyntaxError {
        SyntaxError::new(self.span(), kind)
    }

    fn push(&mut self, kind: ExprKind, start: usize, head: Range<usize>) -> ExprId {
        let id = ExprId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(ExprNode { kind, span: start..self.end(), head, form: Form::Open });
        id
    }

    /// Counts what stands around a node as its own text, from a place up to what was taken last.
    fn widen(&mut self, id: ExprId, start: usize, form: Form) {
        let end = self.end();
        if let Some(node) = self.nodes.get_mut(id.index()) {
            (node.span, node.form) = (start..end, form);
        }
    }

    /// One level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH {
            return Err(self.error(SyntaxErrorKind::Deep));
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
                let attribute = self.deeper(|own| own.attribute(of, start));
                of = attribute.map_err(|error| self.of_module(of, head.end).unwrap_or(error))?;
            } else {
                if let Some(node) = self.nodes.get_mut(of.index())
                    && node.form == Form::Open
                {
                    node.form = Form::Tight;
                }
                return Ok(of);
            }
        }
    }

    /// The error of a module before a dot that ends there.
    fn of_module(&self, of: ExprId, end: usize) -> Option<SyntaxError> {
        let node = self.nodes.get(of.index())?;
        match &node.kind {
            ExprKind::Name(name) if MODULES.contains(&name.as_str()) => {
                Some(SyntaxError::new(node.span.start..end, SyntaxErrorKind::Module(name.clone())))
            }
            _ => None,
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
                self.widen(inner, span.start, Form::Bracket);
                Ok(inner)
            }
            _ => Err(self.unexpected("an operand")),
        }
    }
}
