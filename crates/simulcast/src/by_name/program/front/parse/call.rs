//! What follows an operand or a name: indices, attributes, and calls with their arguments.

use std::ops::Range;

use super::{COMPARISONS, Parsed, Parser};
use crate::by_name::program::front::axes::{AxisPattern, Fold};
use crate::by_name::program::front::builtins::{Function, near_dtype};
use crate::by_name::program::front::expr::{ExprId, ExprKind, Form};
use crate::by_name::program::front::syntax_error::{SyntaxError, SyntaxErrorKind};
use crate::by_name::program::front::token::Token;
use crate::by_name::types::Literal;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// The name of the rounding that takes decimals: `rint`, which is the same without any, takes none in NumPy either.
const ROUND: &str = "round";

/// What is wanted where an axis has to stand.
const AXIS: &str = "an axis, such as `-1`";

impl Parser {
    /// What stands between square brackets, after the opening one.
    pub(super) fn index(&mut self) -> Parsed<Vec<AxisPattern>> {
        let mut pattern = Vec::new();
        loop {
            let part = match self.token() {
                Token::Sign(":") => AxisPattern::Keep,
                Token::Sign("...") if !pattern.contains(&AxisPattern::Rest) => AxisPattern::Rest,
                Token::Name(name) if name == "None" || name == "newaxis" => AxisPattern::New,
                _ => return Err(self.error(SyntaxErrorKind::Index)),
            };
            self.advance();
            pattern.push(part);
            if self.take("]") {
                return Ok(pattern);
            }
            if !self.take(",") {
                return Err(self.error(SyntaxErrorKind::Index));
            }
            if self.take("]") {
                return Ok(pattern);
            }
        }
    }

    /// What stands after the dot of `a.T`, `a.sum(axis=0)`.
    pub(super) fn attribute(&mut self, of: ExprId, start: usize) -> Parsed {
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
            (Some(Function::Clip), true) => self.clipped(of, start, head),
            (Some(Function::Op(Op::Round)), true) if name == ROUND => self.rounded(of, start, head),
            (Some(Function::Op(op)), true) if op.arity() == 1 => {
                self.want(")", "`)`")?;
                Ok(self.push(ExprKind::Apply(op, vec![of]), start, head))
            }
            _ => Err(SyntaxError::new(head, SyntaxErrorKind::UnknownMethod(name))),
        }
    }

    /// A function's operands; its name is taken, the bracket is not.
    pub(super) fn call(&mut self, name: &str, head: &Range<usize>) -> Parsed {
        let Some(function) = Function::named(name) else {
            let near = Function::near(name);
            let kind = SyntaxErrorKind::UnknownFunction { name: name.into(), near };
            return Err(SyntaxError::new(head.clone(), kind));
        };
        self.advance();
        let (start, head) = (head.start, head.clone());
        let arity = |expected: String, given: usize| {
            let function = name.to_string();
            Err(SyntaxError::new(
                head.clone(),
                SyntaxErrorKind::Arity { function, expected, given },
            ))
        };
        let operands = |op: Op| {
            let s = if op.arity() == 1 { "" } else { "s" };
            let or_more = if is_chained(op) { " or more" } else { "" };
            format!("{} operand{s}{or_more}", op.arity())
        };
        if self.is(")") {
            let some =
                if let Function::Op(op) = function { operands(op) } else { "operands".into() };
            return arity(some, 0);
        }
        let first = self.argument(name)?;
        match function {
            Function::Op(Op::Round) if name == ROUND => {
                self.separated()?;
                self.rounded(first, start, head)
            }
            Function::Op(op) => {
                let args = self.more(name, first)?;
                let count = args.len();
                if count != op.arity() && !(is_chained(op) && count > 2) {
                    return arity(operands(op), count);
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
                let args = self.more(name, first)?;
                Ok(self.push(ExprKind::Apply(op, args), start, head))
            }
            Function::Reduce(fold) => {
                self.separated()?;
                self.reduced(name, fold, first, start, head)
            }
            Function::Cast(dtype) => {
                let args = self.more(name, first)?;
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
                self.separated()?;
                self.clipped(first, start, head)
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
    fn more(&mut self, function: &str, first: ExprId) -> Parsed<Vec<ExprId>> {
        let mut args = vec![first];
        if self.take(",") {
            args.extend(self.arguments(function)?);
        } else {
            self.want(")", "`,`, `)` or an operator")?;
        }
        Ok(args)
    }

    /// Operands up to the closing bracket.
    fn arguments(&mut self, function: &str) -> Parsed<Vec<ExprId>> {
        let mut args = Vec::new();
        while !self.take(")") {
            args.push(self.argument(function)?);
            if !self.take(",") {
                self.want(")", "`,`, `)` or an operator")?;
                break;
            }
        }
        Ok(args)
    }

    /// An operand, which has no keyword.
    fn argument(&mut self, function: &str) -> Parsed {
        match self.token().clone() {
            Token::Name(keyword) if self.names(1) => {
                let function = function.into();
                Err(self.error(SyntaxErrorKind::Keyword { function, keyword }))
            }
            _ => self.conditional(),
        }
    }

    /// Takes a keyword and its sign, where one stands here: its place among those that the function
    /// has, of which some are given already.
    fn keyword(
        &mut self,
        function: &str,
        known: [&str; 2],
        given: [bool; 2],
    ) -> Parsed<Option<usize>> {
        let keyword = match self.token() {
            Token::Name(keyword) if self.names(1) => keyword.clone(),
            _ => return Ok(None),
        };
        let function = function.into();
        match known.iter().position(|own| *own == keyword) {
            None => Err(self.error(SyntaxErrorKind::Keyword { function, keyword })),
            Some(at) if given[at] => Err(self.error(SyntaxErrorKind::Twice { function, keyword })),
            at => {
                self.at += 2;
                Ok(at)
            }
        }
    }

    /// The bounds of `clip`, up to the closing bracket: two, or some by name, or `None`.
    fn clipped(&mut self, of: ExprId, start: usize, head: Range<usize>) -> Parsed {
        let (mut bounds, mut count, mut named) = ([None; 2], 0, false);
        while !self.take(")") {
            let given = bounds.map(|bound: Option<_>| bound.is_some());
            let at = match self.keyword("clip", ["min", "max"], given)? {
                Some(at) => {
                    named = true;
                    at
                }
                None if named => return Err(self.unexpected("`min=`, `max=` or `)`")),
                None => count,
            };
            let bound = if self.take("None") { None } else { Some(self.conditional()?) };
            if let Some(place) = bounds.get_mut(at) {
                *place = Some(bound);
            }
            count += 1;
            if !self.take(",") {
                self.want(")", "`,`, `)` or an operator")?;
                break;
            }
        }
        if count != 2 && !(named && count == 1) {
            let (function, expected) = ("clip".into(), "an operand and two bounds".into());
            let kind = SyntaxErrorKind::Arity { function, expected, given: count + 1 };
            return Err(SyntaxError::new(head, kind));
        }
        let kind = match bounds.map(Option::flatten) {
            [Some(low), Some(high)] => ExprKind::Clip(of, low, high),
            [Some(low), None] => ExprKind::Apply(Op::Maximum, vec![of, low]),
            [None, Some(high)] => ExprKind::Apply(Op::Minimum, vec![of, high]),
            [None, None] => {
                self.widen(of, start, Form::Open);
                return Ok(of);
            }
        };
        Ok(self.push(kind, start, head))
    }

    /// The decimals of `round`, up to the closing bracket: none, or an integer, which may have its name.
    fn rounded(&mut self, of: ExprId, start: usize, head: Range<usize>) -> Parsed {
        let mut decimals = 0;
        if !self.is(")") {
            self.keyword(ROUND, ["decimals"; 2], [false; 2])?;
            decimals = self.integer("a number of decimals, such as `2`")?;
            self.take(",");
        }
        self.want(")", "`)`")?;
        let kind = match decimals {
            0 => ExprKind::Apply(Op::Round, vec![of]),
            decimals => ExprKind::Round(of, decimals),
        };
        Ok(self.push(kind, start, head))
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
        let (mut axes, mut keepdims) = (None, false);
        let mut given = [false; 2];
        while !self.take(")") {
            let at = match self.keyword(function, ["axis", "keepdims"], given)? {
                Some(at) => at,
                None if given == [false; 2] => 0,
                None => return Err(self.unexpected("`axis=`, `keepdims=` or `)`")),
            };
            match at {
                0 => axes = self.axes()?,
                _ => keepdims = self.flag()?,
            }
            given[at] = true;
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
            return Ok(Some(vec![self.integer(AXIS)?]));
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
            all.push(self.integer(AXIS)?);
            if !self.take(",") {
                break;
            }
        }
        Ok(all)
    }

    fn integer(&mut self, wanted: &'static str) -> Parsed<isize> {
        let start = self.at;
        let negative = self.take("-");
        if let Token::Number(Literal::Int(value)) = *self.token()
            && let Ok(value) = isize::try_from(if negative { -value } else { value })
        {
            self.advance();
            return Ok(value);
        }
        let error = self.unexpected(wanted);
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
        let dtype = dtype.map_err(|_| {
            let near = near_dtype(&name);
            self.error(SyntaxErrorKind::UnknownType { name, near })
        })?;
        self.advance();
        Ok(dtype)
    }
}

/// Whether it takes more than two operands, one after the other.
const fn is_chained(op: Op) -> bool {
    matches!(op, Op::Maximum | Op::Minimum | Op::Concat)
}
