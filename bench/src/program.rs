//! The engine of programs: the case's expression, compiled once and run on one and on all threads,
//! or, where the case says so, the compiling itself.

use std::cell::LazyCell;
use std::hint::black_box;
use std::rc::Rc;

use crate::case::{Case, NAMES};
use crate::engines::Engines;
use crate::measure::Task;
use crate::names::*;
use crate::operands::stored;
use crate::rotation::{Rotation, count};
use half::{bf16, f16};

/// The case's expression as programs; nothing for what is no expression.
pub fn tasks(to: &mut Engines<'_>, case: &Case) {
    if ["copy", "sum_to", "broadcast_shapes", "broadcast_to"].contains(&case.op.as_str()) {
        return;
    }
    if case.grad.is_some() {
        #[cfg(gradients)]
        for (engine, threads) in [("program-1", Some(1)), ("program", None)] {
            to.add(engine, || gradients(case, threads));
        }
        return;
    }
    if case.compile {
        to.add("program-1", || {
            let (text, types) = (case.op.clone(), types(case));
            Box::new(move || drop(black_box(compiled(&text, &types))))
        });
        return;
    }
    let operands = LazyCell::new(|| operands(case));
    to.add("program-1", || run(case, &operands, Some(1)));
    to.add("program", || run(case, &operands, None));
    // A call by name looks its program up; that is seen where there is little to do.
    if case.elements() < 100
        && let Some(op) = single(&Expr::parse(&case.op).expect("an expression"))
    {
        to.add("operator-1", || {
            let mut sets = Rotation::new(operands.iter().map(Held::new));
            let program = compiled(&case.op, &types(case));
            let mut out = program.run(sets.turn().views()).expect("a result");
            Box::new(move || {
                black_box(op.apply_into(sets.turn().views(), &mut out.view_mut()).is_ok());
            })
        });
    }
}

/// Every operand, as often as the case has copies.
fn operands(case: &Case) -> Vec<Rc<Vec<AnyArray>>> {
    (0..count(case)).map(|_| set(case)).collect()
}

/// Every operand once.
fn set(case: &Case) -> Rc<Vec<AnyArray>> {
    let types = case.types();
    Rc::new(types.iter().enumerate().map(|(n, element)| array(case, n, element)).collect())
}

/// The operands' names and types.
fn types(case: &Case) -> Vec<(&'static str, DType)> {
    let small = |element: &String| match element.as_str() {
        "f32" => DType::F32,
        "f64" => DType::F64,
        "f16" => DType::F16,
        "bf16" => DType::Bf16,
        "i8" => DType::I8,
        "u8" => DType::U8,
        "i64" => DType::I64,
        "bool" => DType::Bool,
        _ => panic!("{element} is no type of a case"),
    };
    NAMES.into_iter().zip(case.types().iter().map(small)).collect()
}

fn compiled(text: &str, types: &[(&str, DType)]) -> TypedProgram {
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

/// How the case's program runs on its operands: a stage after the other.
#[cfg(not(older_names))]
pub fn strategy(case: &Case) -> Option<String> {
    let expression = !["copy", "sum_to", "broadcast_shapes", "broadcast_to", "onnx_check"]
        .contains(&case.op.as_str());
    if !expression || case.compile || case.grad.is_some() || case.element == "string" {
        return None;
    }
    let program = compiled(&case.op, &types(case));
    let held = Held::new(&set(case));
    let strategy = program.bind(held.views()).strategy().ok()?;
    let stages = strategy.stages.iter().map(|stage| match &stage.execution {
        Some(execution) => execution.to_string(),
        None => "reduction".into(),
    });
    Some(stages.collect::<Vec<_>>().join("; then "))
}

/// Older revisions do not tell their strategy.
#[cfg(older_names)]
pub fn strategy(_: &Case) -> Option<String> {
    None
}

fn run(case: &Case, operands: &[Rc<Vec<AnyArray>>], threads: Option<usize>) -> Task {
    let (program, fresh) = (compiled(&case.op, &types(case)), case.fresh);
    let set = |operands| {
        let held = Held::new(operands);
        let out = program.run(held.views()).expect("a result");
        (held, out)
    };
    let mut sets = Rotation::new(operands.iter().map(set));
    Box::new(move || {
        let (held, out) = sets.turn();
        let mut run = program.bind(held.views());
        if let Some(threads) = threads {
            run = run.threads(threads);
        }
        if fresh {
            black_box(run.compute().is_ok());
        } else {
            black_box(run.write(&mut out.view_mut()).is_ok());
        }
    })
}

/// The value and its gradients.
#[cfg(gradients)]
fn gradients(case: &Case, threads: Option<usize>) -> Task {
    let wrt: Vec<&str> = case.grad.iter().flatten().map(String::as_str).collect();
    let program = compiled(&case.op, &types(case)).value_and_grad(&wrt).expect("a program");
    let operands = operands(case);
    let mut sets = Rotation::new(operands.iter().map(Held::new));
    Box::new(move || {
        let mut run = program.bind(sets.turn().views());
        if let Some(threads) = threads {
            run = run.threads(threads);
        }
        black_box(run.compute().is_ok());
    })
}

/// Views of operands, made once as a caller would, beside the arrays that they show.
struct Held {
    views: Vec<AnyView<'static>>,
    _arrays: Rc<Vec<AnyArray>>,
}

impl Held {
    fn new(arrays: &Rc<Vec<AnyArray>>) -> Self {
        // SAFETY: the arrays are kept as long as the views, and nothing changes or moves them.
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
