//! The engine of programs: the case's expression, compiled once and run on one and on all threads,
//! or, where the case says so, the compiling itself.

use std::hint::black_box;
use std::rc::Rc;

use half::{bf16, f16};
use simulcast::{AnyArray, AnyView, Apply as _, DType, Expr, ExprKind, Op, Program, Promotion};

use crate::case::Case;
use crate::engines::stored;
use crate::measure::Task;

/// The case's expression as programs; nothing for what is no expression.
pub(crate) fn tasks(case: &Case) -> Vec<(&'static str, Task)> {
    if ["copy", "sum_to", "broadcast_shapes", "broadcast_to"].contains(&case.op.as_str()) {
        return Vec::new();
    }
    let expr = Expr::parse(&case.op).expect("an expression");
    let operands: Vec<AnyArray> =
        case.types().iter().enumerate().map(|(n, element)| array(case, n, element)).collect();
    let named: Vec<(&str, DType)> =
        ["a", "b", "c", "d", "e"].into_iter().zip(operands.iter().map(AnyArray::dtype)).collect();
    if case.compile {
        let (text, types) = (case.op.clone(), named);
        let compile = move || drop(black_box(compiled(&text, &types)));
        return vec![("program-1", Box::new(compile))];
    }
    let program = Rc::new(compiled(&case.op, &named));
    let operands = Rc::new(operands);
    let mut all = vec![
        ("program-1", run(case, &program, &operands, Some(1))),
        ("program", run(case, &program, &operands, None)),
    ];
    // A call by name looks its program up; that is seen where there is little to do.
    if let Some(op) = single(&expr).filter(|_| case.elements() < 100) {
        let held = Held::new(&operands);
        let mut out = program.run(held.views()).expect("a result");
        all.push((
            "operator-1",
            Box::new(move || {
                black_box(op.apply_into(held.views(), &mut out.view_mut()).is_ok());
            }),
        ));
    }
    all
}

fn compiled(text: &str, types: &[(&str, DType)]) -> Program {
    let expr = Expr::parse(text).expect("an expression");
    expr.compile(types, Promotion::Numpy).expect("a program")
}

/// The operation, where the expression is one on its operands.
fn single(expr: &Expr) -> Option<Op> {
    match &expr.nodes().last()?.kind {
        ExprKind::Apply(op, args) if args.len() + 1 == expr.nodes().len() => Some(*op),
        _ => None,
    }
}

fn run(
    case: &Case,
    program: &Rc<Program>,
    operands: &Rc<Vec<AnyArray>>,
    threads: Option<usize>,
) -> Task {
    let (program, held, fresh) = (Rc::clone(program), Held::new(operands), case.fresh);
    let mut out = program.run(held.views()).expect("a result");
    Box::new(move || {
        let mut run = program.on(held.views());
        if let Some(threads) = threads {
            run = run.threads(threads);
        }
        if fresh {
            black_box(run.collect().is_ok());
        } else {
            black_box(run.collect_into(&mut out.view_mut()).is_ok());
        }
    })
}

/// Views of operands, made once as a caller would, beside the arrays that they show.
struct Held {
    views: Vec<AnyView<'static>>,
    _arrays: Rc<Vec<AnyArray>>,
}

impl Held {
    fn new(arrays: &Rc<Vec<AnyArray>>) -> Self {
        // SAFETY: the arrays are kept as long as the views, and nobody changes or moves them.
        let shown: &'static [AnyArray] = unsafe { &*std::ptr::from_ref(arrays.as_slice()) };
        Self { views: shown.iter().map(AnyArray::view).collect(), _arrays: Rc::clone(arrays) }
    }

    /// The views. A closure that asks for them keeps the arrays too; one that took the field would
    /// keep the field alone.
    fn views(&self) -> &[AnyView<'static>] {
        &self.views
    }
}

fn array(case: &Case, n: usize, element: &str) -> AnyArray {
    match element {
        "f32" => stored::<f32>(case, n).into(),
        "f64" => stored::<f64>(case, n).into(),
        "f16" => stored::<f16>(case, n).into(),
        "bf16" => stored::<bf16>(case, n).into(),
        "i8" => stored::<i8>(case, n).into(),
        "u8" => stored::<u8>(case, n).into(),
        "i64" => stored::<i64>(case, n).into(),
        "bool" => stored::<bool>(case, n).into(),
        _ => panic!("{element} is no type of a case"),
    }
}
