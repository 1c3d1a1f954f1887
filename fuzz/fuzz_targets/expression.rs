//! Any text: an expression that is shown and read back as itself, and computed whole and row by row,
//! or a clear error within the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ndarray::{ArrayD, IxDyn, ShapeBuilder as _};
use simulcast::program::{Diagnostic, Expr};
use simulcast::types::Promotion;
use simulcast::{AnyArray, AnyView, Complex, DType, ProgramError, Rule};

/// The most elements of a value that is computed.
const MOST: usize = 1 << 14;

fuzz_target!(|text: &str| {
    match Expr::parse(text) {
        Ok(expr) => {
            let shown = expr.to_string();
            let again = Expr::parse(&shown).expect("what is shown is read back");
            assert_eq!(again, expr, "{shown}");
            assert_eq!(again.to_string(), shown);
            compute(&expr);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(text.get(error.span).is_some());
        }
    }
});

/// Operands of every type, of shapes that mostly broadcast.
fn operand(at: usize) -> AnyArray {
    let shapes: [&[usize]; 6] = [&[2, 3], &[3], &[2, 1], &[], &[0, 3], &[1, 1, 3]];
    let shape = IxDyn(shapes[at % shapes.len()]).set_f(at % 7 == 0);
    macro_rules! of {
        ($($place:pat => $of:expr,)*) => {
            match at % 9 {
                $($place => {
                    let mut next = 0_i8;
                    ArrayD::from_shape_simple_fn(shape, || { next += 1; $of(next) }).into()
                })*
            }
        };
    }
    of! {
        0 => f64::from, 1 => |x: i8| x, 2 => f32::from, 3 => |x: i8| x % 2 == 0, 4 => i64::from,
        5 => |x: i8| x as u64, 6 => |x: i8| half::f16::from_f32(x.into()),
        7 => |x: i8| Complex::new(1.0, f64::from(x)), _ => |x: i8| x.to_string(),
    }
}

fn compute(expr: &Expr) {
    let names: Vec<&str> = expr.operands().collect();
    let arrays: Vec<AnyArray> = (0..names.len()).map(operand).collect();
    let known: Vec<(&str, DType, &[usize])> =
        names.iter().zip(&arrays).map(|(name, x)| (*name, x.dtype(), x.shape())).collect();
    let shape_of = |name: &str| known.iter().find(|own| own.0 == name).map(|own| own.2);
    let shapes = expr.shapes(Rule::Numpy, shape_of);
    let large = |shape: &Vec<usize>| {
        shape.len() > 32 || shape.iter().fold(1_usize, |all, &n| all.saturating_mul(n)) > MOST
    };
    if shapes.iter().flatten().any(large) {
        return;
    }
    let said = |error: ProgramError| {
        let shown = Diagnostic::new(expr, error, &known, Rule::Numpy, Promotion::Numpy).to_string();
        assert!(shown.starts_with("error"), "{shown}");
    };
    let types: Vec<(&str, DType)> = known.iter().map(|&(name, dtype, _)| (name, dtype)).collect();
    let program = match expr.compile(&types, Promotion::Numpy) {
        Ok(program) => program,
        Err(error) => return said(error),
    };
    let views: Vec<AnyView<'_>> = arrays.iter().map(AnyArray::view).collect();
    let run = program.on(&views).threads(1);
    match run.collect() {
        Ok(whole) => {
            let shape = run.shape().expect("what was computed has a shape");
            assert_eq!(whole.shape(), shape);
            run.memory(1).expect("what was computed has a size");
            let mut again = whole.clone();
            let ready = run.ready().expect("what was computed once can be again");
            let mut parts = again.view_mut();
            ready.rows_into(0..usize::MAX, &mut parts).expect("all rows are some");
            assert_eq!(format!("{again:?}"), format!("{whole:?}"));
        }
        Err(error) => said(error),
    }
}
