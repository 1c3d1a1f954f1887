//! Building programs: types are decided, constants folded, as the steps come.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{AnyView, DType, Op};
//! use simulcast::program::Builder;
//! use simulcast::types::{Literal, Promotion};
//!
//! let mut build = Builder::new(Promotion::Numpy);
//! let (x, mean) = (build.operand("x", DType::F32), build.operand("mean", DType::F32));
//! let centred = build.apply(Op::Subtract, &[x, mean])?;
//! let two = build.literal(Literal::Float(2.0));
//! let program = build.apply(Op::Power, &[centred, two]).map(|root| build.finish(root))??;
//!
//! let (x, mean) = (array![[1_f32, 2.0], [3.0, 4.0]], array![2_f32, 2.0]);
//! let result = program.run(&[AnyView::from(&x), AnyView::from(&mean)])?;
//! assert_eq!(result.typed::<f32>(), Some(array![[1_f32, 0.0], [1.0, 4.0]].view().into_dyn()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use crate::by_name::program::build::graph::{Bytes, Graph, Kind, Node, Over, Step, Value, View};
use crate::by_name::program::front::axes::{AxisPattern, Fold};
use crate::by_name::program::front::error::ProgramError;
use crate::by_name::program::front::python_literals::literally;
use crate::by_name::program::{JointProgram, ProgramOperand, TypedProgram};
use crate::by_name::types::{
    Literal, OperandType, Promotion, Signature, TypeError, TypeErrorKind, literal_as,
    literal_operand, signature,
};
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::{DType, Scalar};
use simulcast_kernels::op::Op;
use simulcast_kernels::ops;

/// A program under construction.
///
/// ```
/// use ndarray::array;
/// use simulcast::program::Builder;
/// use simulcast::types::Promotion;
/// use simulcast::{AnyArray, AnyView, DType, Op};
///
/// let mut build = Builder::new(Promotion::Numpy);
/// let (x, half) = (build.operand("x", DType::F32), build.literal(0.5.into()));
/// let root = build.apply(Op::Multiply, &[x, half])?;
/// let program = build.finish(root)?;
/// assert_eq!(program.run(&[AnyView::from(&array![2_f32, 4.0])])?, AnyArray::from(array![1_f32, 2.0]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Panics
///
/// Its methods take nodes that it made itself, or that the builder did which it is a clone of. A
/// node of another one is some other value here, or none: then they panic.
#[derive(Clone, Debug)]
pub struct Builder {
    graph: Graph,
    operands: Vec<ProgramOperand>,
    /// The place of each among them, by its name.
    places: BTreeMap<String, usize>,
    promotion: Promotion,
    /// Where the following steps stand in the text.
    span: Range<usize>,
    /// Whether a product and a sum may become one rounding.
    fast: bool,
}

impl Builder {
    /// A builder that decides types that way.
    #[must_use]
    pub fn new(promotion: Promotion) -> Self {
        let (graph, operands, places) = (Graph::default(), Vec::new(), BTreeMap::new());
        Self { graph, operands, places, promotion, span: 0..0, fast: false }
    }

    /// Whether `a * b + c` may be rounded once rather than twice; off unless said.
    pub const fn fast_math(&mut self, allowed: bool) {
        self.fast = allowed;
    }

    /// Says where the following steps stand in a text, so that errors can point there.
    #[doc(hidden)]
    pub const fn at(&mut self, span: Range<usize>) {
        self.span = span;
    }

    /// An operand; the same name again is the same operand.
    pub fn operand(&mut self, name: &str, dtype: DType) -> Node {
        let known = self.places.get(name).copied();
        let index = known.unwrap_or_else(|| {
            self.places.insert(name.into(), self.operands.len());
            self.operands.push(ProgramOperand { name: name.into(), dtype });
            self.operands.len() - 1
        });
        let dtype = self.operands.get(index).map_or(dtype, |input| input.dtype);
        self.graph.push(Kind::Operand(index), dtype, self.span.clone())
    }

    /// A number that takes the type of what it meets.
    pub fn literal(&mut self, literal: Literal) -> Node {
        self.graph.literal(literal, self.span.clone())
    }

    /// A number, or a text, of a type of its own.
    #[expect(clippy::needless_pass_by_value, reason = "a scalar is made to be given away")]
    pub fn constant(&mut self, scalar: Scalar) -> Node {
        let kind = Kind::Constant(Value::new(&scalar));
        self.graph.push(kind, scalar.dtype(), self.span.clone())
    }

    /// A number by its bytes.
    pub(in crate::by_name::program) fn number(&mut self, bytes: Bytes, dtype: DType) -> Node {
        self.graph.push(Kind::Constant(Value::Plain(bytes)), dtype, self.span.clone())
    }

    /// The steps so far.
    pub(in crate::by_name::program) const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The type of a value so far.
    #[must_use]
    #[track_caller]
    pub fn type_of(&self, node: Node) -> OperandType {
        self.own(node).is
    }

    #[track_caller]
    #[expect(clippy::panic, reason = "as an index that is out of bounds, with its reason")]
    fn own(&self, node: Node) -> &Step {
        match self.graph.steps.get(node.index()) {
            Some(step) => step,
            None => panic!("the node is of another builder"),
        }
    }

    /// An operation on values, element by element.
    ///
    /// # Errors
    ///
    /// Where it is not defined on their types, or takes another number of them.
    #[track_caller]
    pub fn apply(&mut self, op: Op, args: &[Node]) -> Result<Node, TypeError> {
        let types: Vec<OperandType> = args.iter().map(|&arg| self.type_of(arg)).collect();
        let literal = literally(op, &types);
        if let Some(literal) = literal.map_err(|kind| TypeError::new(Some(op), &types, kind))? {
            return Ok(self.literal(literal));
        }
        let signature = signature(op, &types, self.promotion)?;
        let mut own = [Node(0); 3];
        for (place, (own, &arg)) in own.iter_mut().zip(args).enumerate() {
            *own = match self.type_of(arg) {
                OperandType::Literal(literal) => {
                    let scalar =
                        literal_operand(op, &types, place, literal, signature.args[place])?;
                    let span = self.graph.step(arg).span.clone();
                    self.graph.push(Kind::Constant(Value::new(&scalar)), scalar.dtype(), span)
                }
                OperandType::Array(_) => self.converted(arg, signature.args[place])?,
            };
        }
        if signature.is_mixed() {
            return Ok(self.mixed(op, own, signature));
        }
        let made = self.step(op, signature.args[args.len() - 1], own, signature.result);
        // Python has these operators on its own complex numbers, and what they give is one again.
        let weak = matches!(op, Op::Divide | Op::Power)
            && signature.result == DType::C128
            && types.iter().all(|own| matches!(own, OperandType::Literal(_)));
        let number = self.graph.constant(made).filter(|_| weak).map(Bytes::complex);
        Ok(number.map_or(made, |number| self.literal(Literal::Complex(number))))
    }

    /// Three values as the type that they have together. Pairs of them may have another: the smallest
    /// type that holds `int8` and `uint8` does not go with `float16`, and each of them does. Numbers
    /// take the type of what they meet later, and what has nothing in common stays as it is.
    pub(crate) fn alike(&mut self, args: [Node; 3]) -> Result<[Node; 3], TypeError> {
        let types = args.map(|arg| self.type_of(arg));
        let Ok(common) = signature(Op::MultiplyAdd, &types, self.promotion) else {
            return Ok(args);
        };
        let mut made = args;
        for arg in &mut made {
            if let OperandType::Array(_) = self.type_of(*arg) {
                *arg = self.converted(*arg, common.compute)?;
            }
        }
        Ok(made)
    }

    /// An operation on values of one type.
    fn step(&mut self, op: Op, of: DType, args: [Node; 3], result: DType) -> Node {
        let (op, args) =
            if of == DType::String { (op, args) } else { self.simplified(op, of, args) };
        let kind = Kind::Apply(op, of, args);
        let folded = self.folded(&kind).map(|bytes| Kind::Constant(Value::Plain(bytes)));
        self.graph.push(folded.unwrap_or(kind), result, self.span.clone())
    }

    /// A comparison of `int64` with `uint64`, exactly: by the sign, and as `uint64`.
    fn mixed(&mut self, op: Op, [a, b, _]: [Node; 3], signature: Signature) -> Node {
        let none = Node(0);
        let (signed, flipped) =
            if signature.args[0] == DType::I64 { (a, false) } else { (b, true) };
        let zero = Kind::Constant(Value::new(&Scalar::Int(DType::I64, 0)));
        let zero = self.graph.push(zero, DType::I64, self.span.clone());
        let negative = self.step(Op::Less, DType::I64, [signed, zero, none], DType::Bool);
        let as_unsigned = self.graph.push(Kind::Cast(signed), DType::U64, self.span.clone());
        let pair = if flipped { [a, as_unsigned, none] } else { [as_unsigned, b, none] };
        let compared = self.step(op, DType::U64, pair, DType::Bool);
        // What holds where the signed one is negative, and so the smaller.
        let holds = match op {
            Op::NotEqual => true,
            Op::Less | Op::LessEqual => !flipped,
            Op::Greater | Op::GreaterEqual => flipped,
            _ => false,
        };
        if holds {
            return self.step(Op::LogicalOr, DType::Bool, [negative, compared, none], DType::Bool);
        }
        let positive = self.step(Op::LogicalNot, DType::Bool, [negative, none, none], DType::Bool);
        self.step(Op::LogicalAnd, DType::Bool, [positive, compared, none], DType::Bool)
    }

    /// A value in another type. Literals are converted as Python's numbers are: floats to integers
    /// towards 0, and anything to a truth.
    ///
    /// # Errors
    ///
    /// Between strings and numbers, and for literals that the type does not hold all the same.
    #[track_caller]
    pub fn cast(&mut self, node: Node, dtype: DType) -> Result<Node, TypeError> {
        let node = match self.type_of(node) {
            OperandType::Literal(literal) if dtype == DType::Bool => {
                self.literal(Literal::Bool(literal.truth()))
            }
            #[expect(clippy::cast_possible_truncation, reason = "no type holds the largest either")]
            OperandType::Literal(Literal::Float(value))
                if dtype.is_integer() && value.is_finite() =>
            {
                self.literal(Literal::Int(value as i128))
            }
            _ => node,
        };
        self.converted(node, dtype)
    }

    /// A value with new axes of size 1, as `a[:, None]` writes it; a second `...` is refused when the
    /// program is finished.
    #[track_caller]
    pub fn insert_axes(&mut self, node: Node, pattern: &[AxisPattern]) -> Node {
        self.view(node, View::Insert(pattern.to_vec()))
    }

    /// A value with its axes in another order: reversed unless said.
    #[track_caller]
    pub fn transpose(&mut self, node: Node, axes: Option<&[isize]>) -> Node {
        self.view(node, View::Transpose(axes.map(<[isize]>::to_vec)))
    }

    #[track_caller]
    fn view(&mut self, node: Node, view: View) -> Node {
        // A number that no type holds is refused when the program is finished.
        let node = self.strong(node).unwrap_or(node);
        let dtype = self.graph.step(node).dtype();
        self.graph.push(Kind::View(node, view), dtype, self.span.clone())
    }

    /// A reduction over some axes, or over all of them.
    ///
    /// Sums and products of booleans and integers are of 64 bits; the mean of those is a `float64`.
    ///
    /// # Errors
    ///
    /// Where it is not defined on the type.
    #[track_caller]
    pub fn reduce(
        &mut self,
        fold: Fold,
        node: Node,
        axes: Option<&[isize]>,
        keepdims: bool,
    ) -> Result<Node, TypeError> {
        let node = self.strong(node)?;
        let dtype = self.graph.step(node).dtype();
        use simulcast_kernels::dtype::DTypeKind as Of;
        let wide = match (fold, dtype.kind()) {
            (_, Of::String) => {
                return Err(TypeError::new(
                    None,
                    &[OperandType::Array(dtype)],
                    TypeErrorKind::Reduction(fold.name()),
                ));
            }
            (Fold::Maximum | Fold::Minimum, _) | (_, Of::Float | Of::Complex) => dtype,
            (Fold::Mean, _) => DType::F64,
            (Fold::Sum | Fold::Product, Of::Unsigned) => DType::U64,
            (Fold::Sum | Fold::Product, _) => DType::I64,
        };
        let node = self.converted(node, wide)?;
        let over = Over { fold, axes: axes.map(<[isize]>::to_vec), keepdims };
        Ok(self.graph.push(Kind::Fold(node, over), wide, self.span.clone()))
    }

    /// The finished program, whose result is `root`.
    ///
    /// # Errors
    ///
    /// Where it is more than the engine takes.
    #[track_caller]
    pub fn finish(mut self, root: Node) -> Result<TypedProgram, ProgramError> {
        let root = self.strong(root)?;
        TypedProgram::new(self.graph, self.operands, root, Level::for_programs())
    }

    /// The finished program of several results.
    ///
    /// # Errors
    ///
    /// Where it is more than the engine takes.
    #[track_caller]
    pub fn finish_all(mut self, roots: &[Node]) -> Result<JointProgram, ProgramError> {
        let strong: Result<Vec<Node>, TypeError> =
            roots.iter().map(|&root| self.strong(root)).collect();
        JointProgram::new(self.graph, self.operands, strong?, Level::for_programs())
    }

    /// A literal gets the type that it has alone.
    #[track_caller]
    fn strong(&mut self, node: Node) -> Result<Node, TypeError> {
        let dtype = self.own(node).dtype();
        self.converted(node, dtype)
    }

    /// A value as one of that type.
    #[track_caller]
    fn converted(&mut self, node: Node, dtype: DType) -> Result<Node, TypeError> {
        let step = self.own(node);
        let (is, span) = (step.is, step.span.clone());
        match is {
            OperandType::Array(own) if own == dtype => Ok(node),
            OperandType::Literal(literal) => {
                let kind = Kind::Constant(Value::new(&literal_as(literal, dtype)?));
                Ok(self.graph.push(kind, dtype, span))
            }
            OperandType::Array(own) if own == DType::String || dtype == DType::String => {
                Err(TypeError::new(None, &[is], TypeErrorKind::Cast(dtype)))
            }
            OperandType::Array(own) => {
                let bytes = self.graph.constant(node).and_then(|bytes| cast(bytes, own, dtype));
                let kind = bytes.map_or(Kind::Cast(node), |b| Kind::Constant(Value::Plain(b)));
                Ok(self.graph.push(kind, dtype, span))
            }
        }
    }

    /// The same by a cheaper operation, where no bit of any result differs, or fewer are wrong.
    fn simplified(&mut self, op: Op, compute: DType, args: [Node; 3]) -> (Op, [Node; 3]) {
        let [a, b, _] = args;
        let is = |node: Node, value: f64| {
            let scalar = if compute.is_integer() {
                #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
                Scalar::Int(compute, value as i128)
            } else if compute.is_float() {
                Scalar::Float(compute, value)
            } else {
                return false;
            };
            // Compared as they are stored, so that integers count as many bytes as they have.
            let size = compute.size();
            match (self.graph.constant(node), Value::new(&scalar)) {
                (Some(own), Value::Plain(other)) => own.0.get(..size) == other.0.get(..size),
                _ => false,
            }
        };
        match op {
            Op::Power if is(b, 2.0) => (Op::Square, [a, Node(0), Node(0)]),
            Op::Power if compute.is_float() && is(b, -1.0) => {
                (Op::Reciprocal, [a, Node(0), Node(0)])
            }
            Op::Add if self.fast && compute.is_float() => {
                let product = |node: Node| match self.graph.step(node).kind {
                    Kind::Apply(Op::Multiply, _, [x, y, _]) => Some((x, y)),
                    _ => None,
                };
                match (product(a), product(b)) {
                    (Some((x, y)), _) => (Op::MultiplyAdd, [x, y, b]),
                    (None, Some((x, y))) => (Op::MultiplyAdd, [x, y, a]),
                    (None, None) => (op, args),
                }
            }
            _ => (op, args),
        }
    }

    /// The value of an operation on constants.
    fn folded(&self, kind: &Kind) -> Option<Bytes> {
        let Kind::Apply(op, compute, _) = *kind else { return None };
        let wide = widened(compute);
        let mut values = [Bytes::default(); 3];
        for (at, (value, &arg)) in values.iter_mut().zip(kind.args()).enumerate() {
            let own = if op == Op::Where && at == 0 { DType::Bool } else { compute };
            let to = if own == compute { wide } else { own };
            *value = cast(self.graph.constant(arg)?, own, to)?;
        }
        let op = ops::swapped(op).inspect(|_| values.swap(0, 1)).unwrap_or(op);
        let kernel = ops::kernels(op, wide, Level::for_closures())?.cached;
        let mut result = Bytes::default();
        let ins = std::array::from_fn(|n| (&raw const values[n]).cast());
        // SAFETY: one element of each operand's type, and room for one of any type.
        unsafe { kernel((&raw mut result).cast(), &ins, 0, 1) };
        let made = ops::result_of(op, wide);
        cast(result, made, if made == wide { compute } else { made })
    }
}

/// What a type is computed in.
pub(crate) const fn widened(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        other => other,
    }
}

/// One value in another type.
fn cast(bytes: Bytes, from: DType, to: DType) -> Option<Bytes> {
    if from == to {
        return Some(bytes);
    }
    let conversion = ops::cast(from, to, Level::for_closures())?;
    let mut result = Bytes::default();
    let one = (&raw const bytes).cast();
    // SAFETY: one element of that type, and room for one of any type.
    unsafe { conversion.run((&raw mut result).cast(), one, [from.size(), to.size()], 1) };
    Some(result)
}
