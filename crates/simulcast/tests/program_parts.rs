//! Results in parts: the same bits as in one piece, within the memory that was announced.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ndarray::{Array1, Array2, ArrayD, Axis, Ix3, IxDyn, array};
use simulcast::program::{Expr, row_axis};
use simulcast::types::Promotion;
use simulcast::{AnyArray, AnyView, DType, ProgramErrorKind, Rule, TypedProgram};
use simulcast_threads::set_threads;

/// Counts the bytes that a thread has in use, and the most that it had: other tests, and what runs
/// them, come and go beside it.
struct Counting;

thread_local! {
    static USED: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's own, counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Memory may be freed by another thread than it was for: only differences mean something.
        let used = USED.get().wrapping_add(layout.size());
        USED.set(used);
        MOST.set(MOST.get().max(used));
        // SAFETY: the caller keeps the conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.set(USED.get().wrapping_sub(layout.size()));
        // SAFETY: the caller keeps the conditions.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn compiled(text: &str, operands: &[(&str, DType)]) -> TypedProgram {
    Expr::parse(text).unwrap().compile(operands, Promotion::Numpy).unwrap()
}

/// Numbers whose sums depend on the order.
fn uneven(shape: &[usize]) -> ArrayD<f64> {
    let mut state = 1_u64;
    ArrayD::from_shape_simple_fn(IxDyn(shape), || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 40) as f64 / 1000.0 - 8000.0
    })
}

/// The result, made of parts of so many rows.
fn in_parts(
    program: &TypedProgram,
    operands: &[AnyView<'_>],
    rule: Rule<'_>,
    step: usize,
) -> AnyArray {
    let run = program.bind(operands).rule(rule);
    let ready = run.by_rows().unwrap();
    let mut whole = ArrayD::<f64>::zeros(run.shape().unwrap());
    let axis = Axis(row_axis(whole.shape()));
    for (at, mut part) in whole.axis_chunks_iter_mut(axis, step).enumerate() {
        let rows = at * step..at * step + part.len_of(axis);
        ready.rows_into(rows, &mut (&mut *part).into()).unwrap();
    }
    whole.into()
}

#[test]
fn parts_have_the_bits_of_the_whole() {
    // Few rows and many, columns that end within a block or with one left over, and runs of blocks.
    let shapes: [&[usize]; 6] =
        [&[5, 7, 3], &[70, 20, 9], &[3, 2049, 9], &[2, 20, 2049], &[6, 20_000, 1], &[37, 11, 700]];
    let texts = [
        "x * 2 + x.mean(axis=1, keepdims=True)",
        "sum(x, axis=0)",
        "sum(x, axis=1)",
        "mean(x, axis=2)",
        "sum(x, axis=(0, 2))",
        "sum(x, axis=(1, 2))",
        "sum(x, axis=(0, 1), keepdims=True)",
        "sum(x.T * x.mean(axis=0, keepdims=True).T, axis=1)",
        "sum(x.T, axis=0)",
    ];
    for shape in shapes {
        let x = uneven(shape);
        let operands = [AnyView::from(&x)];
        for text in texts {
            let program = compiled(text, &[("x", DType::F64)]);
            for rule in [Rule::Numpy, Rule::Unidirectional] {
                let whole = program.bind(&operands).rule(rule).compute().unwrap();
                let rows = whole.shape()[0];
                for step in [1, rows / 2 + 1] {
                    // Thousands of parts of one row show no more than some.
                    let step = step.max(rows / 12);
                    let parts = in_parts(&program, &operands, rule, step);
                    assert!(parts == whole, "{text} of {shape:?} by {step}");
                }
            }
        }
    }
}

#[test]
fn crossed_rows_have_the_bits_of_rows_by_themselves() {
    // Rows that are short, middling and long; some axes around them, more columns than a tile has,
    // and a last column of its own.
    let shapes: [(&[usize], &[usize]); 7] = [
        (&[9, 1, 3], &[8, 3]),
        (&[20, 1, 8], &[33, 8]),
        (&[2, 11, 1, 19], &[2, 1, 300, 19]),
        (&[270, 1, 32], &[65, 32]),
        (&[12, 1, 63], &[17, 63]),
        (&[12, 1, 200], &[40, 200]),
        (&[8, 1, 2050], &[9, 2050]),
    ];
    let texts = [
        "sum((x - y) ** 2, axis=-1)",
        "sum(abs(y - x), axis=-1)",
        "mean(x * y, axis=-1)",
        "max(x - y, axis=-1)",
        "min(y - x, axis=-1, keepdims=True)",
        "prod(x / 8000 + y, axis=-1)",
        "prod(x + y, axis=-1)",
    ];
    let turned = |array: &ArrayD<f64>| array.t().as_standard_layout().into_owned().reversed_axes();
    for (one, many) in shapes {
        let (x, y) = (uneven(one), uneven(many).mapv(|y| y / 3.0));
        let (far, back) = (turned(&x), turned(&y));
        let views = [AnyView::from(&x), AnyView::from(&y)];
        for (at, text) in texts.into_iter().enumerate() {
            let program = compiled(text, &[("x", DType::F64), ("y", DType::F64)]);
            let whole = program.run(&views).unwrap();
            // Seven rows at a time are too few to be crossed.
            assert!(in_parts(&program, &views, Rule::Numpy, 7) == whole, "{text} of {one:?}");
            set_threads(8);
            for threads in [1, 2, 3, 8] {
                let again = program.bind(&views).threads(threads).compute().unwrap();
                assert!(again == whole, "{text} of {one:?} on {threads}");
            }
            let elsewhere = program.run(&[AnyView::from(&far), AnyView::from(&back)]).unwrap();
            assert!(elsewhere == whole, "{text} of {one:?}, turned");
            if at == 0 {
                let naive = (&x - &y).mapv(|d| d * d).sum_axis(Axis(one.len() - 1));
                let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b;
                assert!(whole.typed::<f64>().unwrap().iter().zip(&naive).all(near), "{one:?}");
            }
        }
    }
}

#[test]
fn rows_that_are_not_there_are_left_out() {
    let x = uneven(&[4, 3]);
    let operands = [AnyView::from(&x)];
    for text in ["x + 1", "sum(x, axis=1)", "sum(x, axis=1, keepdims=True)"] {
        let program = compiled(text, &[("x", DType::F64)]);
        let ready = program.bind(&operands).by_rows().unwrap();
        let mut shape = program.bind(&operands).shape().unwrap();
        let whole = program.run(&operands).unwrap();
        let whole = whole.typed::<f64>().unwrap();
        shape[0] = 1;
        let mut last = ArrayD::<f64>::zeros(&shape[..]);
        ready.rows_into(3..9, &mut (&mut *last).into()).unwrap();
        assert_eq!(last, whole.slice_axis(Axis(0), (3..).into()), "{text}");
        shape[0] = 0;
        let mut none = ArrayD::<f64>::zeros(&shape[..]);
        for rows in [2..2, 4..9, usize::MAX..usize::MAX] {
            ready.rows_into(rows, &mut (&mut *none).into()).unwrap();
        }
    }
    // Those of a batch of one are steps of its second axis.
    for text in ["x[None] + 1", "sum(x[None], axis=2)", "sum(x, axis=1, keepdims=True)[None]"] {
        let program = compiled(text, &[("x", DType::F64)]);
        let run = program.bind(&operands);
        let mut shape = run.shape().unwrap();
        shape[1] = 2;
        let mut middle = ArrayD::<f64>::zeros(&shape[..]);
        run.by_rows().unwrap().rows_into(1..3, &mut (&mut *middle).into()).unwrap();
        let whole = program.run(&operands).unwrap();
        let whole = whole.typed::<f64>().unwrap();
        assert_eq!(middle, whole.slice_axis(Axis(1), (1..3).into()), "{text}");
    }
    // A number has no rows.
    let program = compiled("sum(x)", &[("x", DType::F64)]);
    let mut one = ndarray::arr0(0.0);
    program.bind(&operands).by_rows().unwrap().rows_into(0..1, &mut (&mut *one).into()).unwrap();
    assert_eq!(AnyArray::from(one), program.run(&operands).unwrap());
    // Text is compared once.
    let words = array!["a", "b", "a"].mapv(String::from);
    let program = compiled("w == 'a'", &[("w", DType::String)]);
    let operands = [AnyView::from(&words)];
    let mut rows = array![false, true];
    let ready = program.bind(&operands).by_rows().unwrap();
    ready.rows_into(1..3, &mut (&mut *rows).into()).unwrap();
    assert_eq!(rows, array![false, true]);
    ready.rows_into(0..2, &mut (&mut *rows).into()).unwrap();
    assert_eq!(rows, array![true, false]);
}

#[test]
fn what_fails_before_the_last_stage_fails_before_the_first_row() {
    let x = Array2::<f64>::zeros((0, 3));
    let operands = [AnyView::from(&x)];
    let program = compiled("x - max(x, axis=0)", &[("x", DType::F64)]);
    let error = program.bind(&operands).by_rows().unwrap_err();
    assert!(matches!(error.kind, ProgramErrorKind::Empty(_)));
    // Another type is no output.
    let y = Array1::<f64>::zeros(3);
    let operands = [AnyView::from(&y)];
    let program = compiled("x - max(x, axis=0)", &[("x", DType::F64)]);
    let ready = program.bind(&operands).by_rows().unwrap();
    let mut narrow = Array1::<f32>::zeros(3);
    let error = ready.rows_into(0..3, &mut (&mut *narrow).into()).unwrap_err();
    assert!(matches!(error.kind, ProgramErrorKind::DType { .. }));
}

#[test]
fn memory_is_what_was_announced() {
    const KB: usize = 1024;
    let (a, b) = (Array1::<f64>::ones(64 * KB), Array2::<f32>::ones((512, 256)));
    let c = a.mapv(|x| x as f32).into_shape_with_order(Ix3(64, 32, 32)).unwrap();
    let d = Array2::<f64>::ones((20_000, 8));
    let views: [AnyView<'_>; 4] = [(&a).into(), (&b).into(), (&c).into(), (&d).into()];
    let types = ["a", "b", "c", "d"].into_iter().zip(views.iter().map(AnyView::dtype));
    let types: Vec<(&str, DType)> = types.collect();
    let (whole, halved) = (usize::MAX, 256);
    let cases = [
        ("a * 2 + 1", whole, 0),
        // A sum, and the room in which it is made.
        ("b - b.mean(axis=0)", whole, 2 * 256 * 4),
        // Two stages of 512 kB, each of which the last one reads.
        ("a + (a + 1).T + (a + 2).T", whole, 2 * 512 * KB),
        // One after the other: the first is gone when the third is made.
        ("(((a + 1).T * 2).T * 3).T * 4", whole, 2 * 512 * KB),
        ("((((a + 1).T * 2).T * 3).T * 4).T * 5", whole, 2 * 512 * KB),
        // Narrow columns.
        ("sum(d + 1, axis=0)", whole, 2 * 8 * 8),
        // Of half of the rows, half of the room.
        ("sum(c + 1, axis=2)", whole, 2 * 64 * 32 * 4),
        ("sum(b.T + b.T, axis=1)", 128, 2 * 128 * 4),
        ("sum((b * 2).T, axis=1)", halved, 512 * KB + 2 * 256 * 4),
    ];
    for (text, rows, bytes) in cases {
        let program = compiled(text, &types);
        let run = program.bind(&views).threads(1);
        assert_eq!(run.memory(rows).unwrap(), bytes as u64, "{text}");
        let mut shape = run.shape().unwrap();
        shape[0] = shape[0].min(rows);
        let mut out = AnyArray::from(ArrayD::<f64>::zeros(&shape[..]));
        if program.dtype() == DType::F32 {
            out = AnyArray::from(ArrayD::<f32>::zeros(&shape[..]));
        }
        // Registers, lists and blocks are small, and stay.
        let mut go = || {
            let end = shape[0];
            run.by_rows().unwrap().rows_into(0..end, &mut out.view_mut()).unwrap();
        };
        go();
        let before = USED.get();
        MOST.set(before);
        go();
        let most = MOST.get() - before;
        assert!(most >= bytes, "{text}: {most} of {bytes}");
        assert!(most <= bytes + 320 * KB, "{text}: {most} of {bytes}");
        assert_eq!(USED.get(), before, "{text}");
    }
    // More than can be counted is as much as can be said.
    let one = ndarray::arr0(1.0);
    let size = 1 << (usize::BITS / 16 * 5);
    let many = one.broadcast(IxDyn(&[size, size, 1])).unwrap();
    let operands = [AnyView::from(&many)];
    let program =
        compiled("(x + x).T * (x + 1).T.sum(axis=0)[:, None, None]", &[("x", DType::F64)]);
    assert!(program.bind(&operands).memory(1).unwrap() >= (size * size * 8) as u64);
}
