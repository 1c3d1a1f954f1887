//! Programs on little data: every kind of step, against plain loops.

use ndarray::{Array1, Array2, Array3, ArrayD, Axis, array, s};
use simulcast::program::{AxisPattern, Builder, Expr, Fold};
use simulcast::types::{Literal, Promotion};
use simulcast::{AnyArray, AnyView, Complex, DType, Level, Op, Rule, Scalar, TypedProgram, zip};
use simulcast_threads::set_threads;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// `(x - m) / s * g + b`
fn affine() -> Result<TypedProgram, Box<dyn std::error::Error>> {
    let mut build = Builder::new(Promotion::Numpy);
    let [x, m, s, g, b] = ["x", "m", "s", "g", "b"].map(|name| build.operand(name, DType::F32));
    let centred = build.apply(Op::Subtract, &[x, m])?;
    let scaled = build.apply(Op::Divide, &[centred, s])?;
    let gained = build.apply(Op::Multiply, &[scaled, g])?;
    let root = build.apply(Op::Add, &[gained, b])?;
    Ok(build.finish(root)?)
}

#[test]
fn five_operands_of_five_shapes_are_one_pass() -> Outcome {
    let program = affine()?;
    assert_eq!(program.stages(), 1);
    let shapes = [(3, 5), (7, 300), (1, 1), (64, 3), (130, 1025)];
    for (rows, columns) in shapes.into_iter().take(if cfg!(miri) { 2 } else { 5 }) {
        let x = Array2::from_shape_fn((rows, columns), |(i, j)| (i * 31 + j * 7) as f32 / 3.0);
        let m = Array1::from_shape_fn(columns, |j| j as f32);
        let s = Array2::from_shape_fn((rows, 1), |(i, _)| i as f32 + 0.5);
        let g = array![1.7_f32];
        let b = Array2::from_shape_fn((1, columns), |(_, j)| j as f32 * 0.3);
        let views: [AnyView<'_>; 5] =
            [(&x).into(), (&m).into(), (&s).into(), (&g).into(), (&b).into()];
        let expected = zip((&x, &m, &s, &g, &b)).map(|x, m, s, g, b| (x - m) / s * g + b);
        for level in Level::available() {
            let program = program.at_level(level)?;
            let result = program.run(&views)?;
            assert_eq!(result.typed::<f32>(), Some(expected.view().into_dyn()), "{}", level.name());
            // Into an output with gaps, and a stretched one.
            let mut wide = Array3::<f32>::zeros((2, rows, columns * 2));
            let mut out = wide.slice_mut(s![.., .., ..;2]);
            program.run_into(&views, &mut (&mut *out).into())?;
            assert_eq!(out.index_axis(Axis(0), 1), expected);
            let mut part = Array2::<f32>::zeros((1, columns));
            program.bind(&views).by_rows()?.rows_into(rows - 1..rows, &mut (&mut *part).into())?;
            assert_eq!(part.row(0), expected.row(rows - 1));
        }
        assert_eq!(program.bind(&views).shape()?, [rows, columns]);
    }
    Ok(())
}

#[test]
fn rows_of_a_few_lines_take_an_element_each() -> Outcome {
    let a = Array3::from_shape_fn((5, 9, 1), |(i, j, _)| (i * 31 + j * 7) as f32);
    let b = Array3::from_shape_fn((5, 1, 70), |(i, _, j)| (i + j) as f32 / 3.0);
    let wide = |array: &Array3<f32>| array.broadcast((5, 9, 70)).map(|wide| wide.to_owned());
    let (Some(tall), Some(long)) = (wide(&a), wide(&b)) else { return Err("shapes".into()) };
    let views: [AnyView<'_>; 2] = [(&a).into(), (&b).into()];
    let inputs = [("a", DType::F32), ("b", DType::F32)];
    for level in Level::available() {
        let of = |text: &str, inputs| -> Result<_, Box<dyn std::error::Error>> {
            Ok(text.parse::<Expr>()?.compile(inputs, Promotion::Numpy)?.at_level(level)?)
        };
        let expected = &tall - &long;
        let result = of("a - b", &inputs)?.run(&views)?;
        assert_eq!(result.typed::<f32>(), Some(expected.view().into_dyn()), "{}", level.name());
        // No instruction at all, and one with a constant.
        let mut out = Array3::<f32>::zeros((5, 9, 70));
        of("a", &inputs[..1])?.run_into(&views[..1], &mut (&mut *out).into())?;
        assert_eq!(out, tall);
        of("a + 3", &inputs[..1])?.run_into(&views[..1], &mut (&mut *out).into())?;
        assert_eq!(out, &tall + 3.0);
    }
    Ok(())
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn long_rows_of_one_operation_are_computed_in_pieces() -> Outcome {
    // More elements a row than are computed without asking whether to stop; gaps between rows keep them apart.
    let columns = if cfg!(miri) { 20 } else { 2 * (1 << 14) + 77 };
    let all = Array2::from_shape_fn((3, columns + 1), |(i, j)| (i * 100_003 + j) as i32);
    let (x, row) = (all.slice(s![.., ..columns]), Array1::from_shape_fn(columns, |j| 3 * j as i32));
    let by_row = Array2::from_shape_fn((3, 1), |(i, _)| i % 2 == 0);
    let types = [("x", DType::I32), ("row", DType::I32), ("m", DType::Bool)];
    let operands = [AnyView::from(&x), AnyView::from(&row), AnyView::from(&by_row)];
    for (text, types, operands) in
        [("x + row", &types[..2], &operands[..2]), ("where(m, x, row)", &types[..], &operands[..])]
    {
        let result = TypedProgram::parse(text, types)?.run(operands)?;
        let result = result.typed::<i32>().ok_or("int32")?.into_dimensionality::<ndarray::Ix2>()?;
        for ((i, j), &got) in result.indexed_iter() {
            let expected = match text {
                "x + row" => x[[i, j]] + row[j],
                _ if by_row[[i, 0]] => x[[i, j]],
                _ => row[j],
            };
            assert_eq!(got, expected, "{text} {i} {j}");
        }
    }
    Ok(())
}

#[test]
fn halves_are_computed_wide_and_rounded_once() -> Outcome {
    let mut build = Builder::new(Promotion::Numpy);
    let (a, b) = (build.operand("a", DType::F16), build.operand("b", DType::F16));
    let product = build.apply(Op::Multiply, &[a, b])?;
    let root = build.apply(Op::Subtract, &[product, a])?;
    let program = build.finish(root)?;
    assert_eq!(program.dtype(), DType::F16);
    let a = Array1::from_shape_fn(100, |i| half::f16::from_f32(i as f32 / 7.0));
    let b = array![half::f16::from_f32(3.3)];
    let result = program.run(&[(&a).into(), (&b).into()])?;
    let expected = a.mapv(|a| half::f16::from_f32(a.to_f32() * b[0].to_f32() - a.to_f32()));
    assert_eq!(result.typed::<half::f16>(), Some(expected.view().into_dyn()));
    Ok(())
}

/// `np.float32(np.arctan(np.float16(1)))` is 0.78515625 too, where pi / 4 is 0.7853982.
#[test]
fn constants_are_rounded_to_their_type() -> Outcome {
    let mut build = Builder::new(Promotion::Numpy);
    let one = build.literal(Literal::Int(1));
    let one = build.cast(one, DType::F16)?;
    let angle = build.apply(Op::Arctan, &[one])?;
    let root = build.cast(angle, DType::F32)?;
    let result = build.finish(root)?.run(&[])?;
    assert_eq!(result.typed::<f32>(), Some(ndarray::aview0(&0.785_156_25).into_dyn()));
    Ok(())
}

#[test]
fn views_reductions_and_text_are_stages_where_they_must() -> Outcome {
    use AxisPattern::{Keep, New};
    // Pairwise squared distances.
    let mut build = Builder::new(Promotion::Numpy);
    let (x, y) = (build.operand("x", DType::F64), build.operand("y", DType::F64));
    let (x, y) = (build.insert_axes(x, &[Keep, New]), build.insert_axes(y, &[New]));
    let apart = build.apply(Op::Subtract, &[x, y])?;
    let two = build.literal(Literal::Int(2));
    let squares = build.apply(Op::Power, &[apart, two])?;
    let root = build.reduce(Fold::Sum, squares, Some(&[-1]), false)?;
    let program = build.finish(root)?;
    assert_eq!(program.stages(), 1);
    let x = Array2::from_shape_fn((37, 5), |(i, j)| (i * j) as f64 / 3.0);
    let y = Array2::from_shape_fn((41, 5), |(i, j)| (i + j) as f64);
    let result = program.run(&[(&x).into(), (&y).into()])?;
    let result = result.typed::<f64>().ok_or("another type")?;
    assert_eq!(result.shape(), [37, 41]);
    for ((i, j), value) in result.into_dimensionality::<ndarray::Ix2>()?.indexed_iter() {
        let expected: f64 = (0..5).map(|k| (x[[i, k]] - y[[j, k]]).powi(2)).sum();
        assert!((value - expected).abs() <= 1e-12 * expected, "{value} {expected}");
    }
    // A softmax: two reductions before the last pass.
    let mut build = Builder::new(Promotion::Numpy);
    let x = build.operand("x", DType::F32);
    let most = build.reduce(Fold::Maximum, x, Some(&[1]), true)?;
    let apart = build.apply(Op::Subtract, &[x, most])?;
    let powers = build.apply(Op::Exp, &[apart])?;
    let sum = build.reduce(Fold::Sum, powers, Some(&[1]), true)?;
    let root = build.apply(Op::Divide, &[powers, sum])?;
    let program = build.finish(root)?;
    assert_eq!(program.stages(), 3);
    let x = Array2::from_shape_fn((6, if cfg!(miri) { 300 } else { 2000 }), |(i, j)| {
        ((i * j) % 17) as f32
    });
    let result = program.run(&[(&x).into()])?;
    let result = result.typed::<f32>().ok_or("another type")?;
    for row in result.axis_iter(Axis(0)) {
        assert!((row.iter().map(|&p| f64::from(p)).sum::<f64>() - 1.0).abs() < 1e-5);
    }
    // Text.
    let mut build = Builder::new(Promotion::Numpy);
    let (a, b) = (build.operand("a", DType::String), build.operand("b", DType::String));
    let dash = build.constant(Scalar::String("-".into()));
    let left = build.apply(Op::Concat, &[a, dash])?;
    let both = build.apply(Op::Concat, &[left, b])?;
    let program = build.finish(both)?;
    let a = array![["x".to_owned()], ["y".to_owned()]];
    let b = array!["1".to_owned(), "2".to_owned()];
    let result = program.run(&[(&a).into(), (&b).into()])?;
    let expected = array![["x-1", "x-2"], ["y-1", "y-2"]].mapv(String::from);
    assert_eq!(result.typed::<String>(), Some(expected.view().into_dyn()));
    Ok(())
}

#[test]
fn reductions_over_any_axes_are_those_of_ndarray() -> Outcome {
    let filled = |shape: [usize; 3]| {
        Array3::from_shape_fn(shape, |(i, j, k)| ((i * 7 + j * 3 + k) % 11) as i64 - 5)
    };
    // Of the last, the rows of a block are more than one, and the blocks.
    let shapes = match cfg!(miri) {
        true => [[2, 3, 7], [1, 9, 2049]],
        false => [[13, 40, 70], [2, 40, 2100]],
    };
    for x in &shapes.map(filled) {
        for mask in 0..8_isize {
            if cfg!(miri) && x.len() > 1000 && mask != 2 {
                continue;
            }
            let axes: Vec<isize> = (0..3).filter(|axis| mask >> axis & 1 == 1).collect();
            let folds = [Fold::Sum, Fold::Maximum, Fold::Minimum];
            for fold in folds.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
                let mut build = Builder::new(Promotion::Numpy);
                let a = build.operand("a", DType::I64);
                let doubled = build.apply(Op::Add, &[a, a])?;
                let root = build.reduce(fold, doubled, Some(&axes), false)?;
                let program = build.finish(root)?;
                let mut expected: ArrayD<i64> = x.mapv(|v| 2 * v).into_dyn();
                for &axis in axes.iter().rev() {
                    let axis = Axis(axis.unsigned_abs());
                    expected = match fold {
                        Fold::Sum => expected.sum_axis(axis),
                        Fold::Maximum => expected.fold_axis(axis, i64::MIN, |a, b| *a.max(b)),
                        _ => expected.fold_axis(axis, i64::MAX, |a, b| *a.min(b)),
                    };
                }
                let views = [AnyView::from(x)];
                set_threads(8);
                for threads in [1, 2, 3, 8] {
                    let result = program.bind(&views).threads(threads).compute()?;
                    assert_eq!(result.typed::<i64>(), Some(expected.view()), "{fold:?} {axes:?}");
                }
            }
        }
    }
    // Of nothing.
    let none = AnyArray::from(Array2::<f32>::zeros((3, 0)));
    for (fold, expected) in [(Fold::Sum, 0_f32), (Fold::Product, 1.0)] {
        let mut build = Builder::new(Promotion::Numpy);
        let a = build.operand("a", DType::F32);
        let root = build.reduce(fold, a, Some(&[1]), false)?;
        let result = build.finish(root)?.run(&[none.view()])?;
        assert_eq!(result, AnyArray::from(Array1::from_elem(3, expected)));
    }
    let mut build = Builder::new(Promotion::Numpy);
    let a = build.operand("a", DType::F32);
    let root = build.reduce(Fold::Maximum, a, None, false)?;
    assert!(build.finish(root)?.run(&[none.view()]).is_err());
    Ok(())
}

#[test]
fn distances_between_points_are_exact_where_numbers_are_whole() -> Outcome {
    let x = Array3::from_shape_fn((9, 1, 10), |(i, _, k)| ((i * 5 + k * 3) % 7) as f32);
    let y = Array2::from_shape_fn((11, 10), |(j, k)| ((j * 3 + k * 11) % 5) as f32);
    let wide = (&x - &y).into_dyn();
    let mut build = Builder::new(Promotion::Numpy);
    let (a, b) = (build.operand("a", DType::F32), build.operand("b", DType::F32));
    let less = build.apply(Op::Subtract, &[a, b])?;
    let square = build.apply(Op::Square, &[less])?;
    let views = [AnyView::from(&x), AnyView::from(&y)];
    let sums = build.reduce(Fold::Sum, square, Some(&[-1]), false)?;
    let result = build.clone().finish(sums)?.run(&views)?;
    let expected = wide.mapv(|d| d * d).sum_axis(Axis(2));
    assert_eq!(result.typed::<f32>(), Some(expected.view()));
    let most = build.reduce(Fold::Maximum, less, Some(&[-1]), false)?;
    let result = build.finish(most)?.run(&views)?;
    let expected = wide.fold_axis(Axis(2), f32::NEG_INFINITY, |a, b| a.max(*b));
    assert_eq!(result.typed::<f32>(), Some(expected.view()));
    // The variance of rows: the second operand is one element for each of them.
    let mut build = Builder::new(Promotion::Numpy);
    let (a, b) = (build.operand("a", DType::F32), build.operand("b", DType::F32));
    let less = build.apply(Op::Subtract, &[a, b])?;
    let square = build.apply(Op::Square, &[less])?;
    let mean = build.reduce(Fold::Mean, square, Some(&[1]), true)?;
    let middle = y.sum_axis(Axis(1)).mapv(|sum| (sum / 10.0).round()).insert_axis(Axis(1));
    let result = build.finish(mean)?.run(&[AnyView::from(&y), AnyView::from(&middle)])?;
    let expected = (&y - &middle).mapv(|d| d * d).sum_axis(Axis(1)).insert_axis(Axis(1)) / 10.0;
    assert_eq!(result.typed::<f32>(), Some(expected.view().into_dyn()));
    Ok(())
}

#[test]
fn more_operands_than_registers_are_cut_into_stages() -> Outcome {
    let mut build = Builder::new(Promotion::Numpy);
    let count = if cfg!(miri) { 40 } else { 10_000 };
    let names: Vec<String> = (0..count).map(|n| format!("a{n}")).collect();
    let first = build.operand(&names[0], DType::I32);
    let mut sum = first;
    for name in &names[1..] {
        let next = build.operand(name, DType::I32);
        sum = build.apply(Op::Add, &[sum, next])?;
    }
    let program = build.finish(sum)?;
    let arrays: Vec<_> = (0..count).map(|n| array![[n], [n + 1]]).collect();
    let views: Vec<AnyView<'_>> = arrays.iter().map(AnyView::from).collect();
    let result = program.run(&views)?;
    let sum = count * (count - 1) / 2;
    assert_eq!(result, AnyArray::from(array![[sum], [sum + count]]));
    Ok(())
}

#[test]
fn other_rules_lay_operands_where_they_say() -> Outcome {
    let mut build = Builder::new(Promotion::Numpy);
    let (a, b) = (build.operand("a", DType::F32), build.operand("b", DType::F32));
    let two = build.literal(Literal::Float(2.0));
    let twice = build.apply(Op::Multiply, &[b, two])?;
    let root = build.apply(Op::Add, &[a, twice])?;
    let program = build.finish(root)?;
    let a = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (i * 12 + j * 4 + k) as f32);
    let b = array![[1_f32], [2.0], [3.0]];
    let views = [AnyView::from(&a), AnyView::from(&b)];
    let result = program.bind(&views).rule(Rule::Pdpd { axis: Some(1) }).compute()?;
    let expected = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| a[[i, j, k]] + 2.0 * b[[j, 0]]);
    assert_eq!(result.typed::<f32>(), Some(expected.view().into_dyn()));
    let error = program.bind(&views).rule(Rule::Exact).compute().map_err(|error| error.to_string());
    assert!(error.is_err_and(|text| text.contains("exact") || text.contains("equal")));
    Ok(())
}

#[test]
fn complex_numbers_and_mixed_integers_are_exact() -> Outcome {
    let mut build = Builder::new(Promotion::Numpy);
    let (a, b) = (build.operand("a", DType::I64), build.operand("b", DType::U64));
    let root = build.apply(Op::Less, &[a, b])?;
    let program = build.finish(root)?;
    let a = array![-1_i64, 5, i64::MAX, 0];
    let b = array![0_u64, 5, i64::MAX as u64 + 1, u64::MAX];
    let result = program.run(&[(&a).into(), (&b).into()])?;
    assert_eq!(result, AnyArray::from(array![true, false, true, true]));

    let mut build = Builder::new(Promotion::Numpy);
    let z = build.operand("z", DType::C64);
    let root = build.apply(Op::Multiply, &[z, z])?;
    let program = build.finish(root)?;
    let z = Array2::from_shape_fn((5, 33), |(i, j)| Complex::new(i as f32, j as f32));
    // Transposed, so that it is packed.
    let result = program.run(&[AnyView::from(&z.t())])?;
    assert_eq!(result.typed::<Complex<f32>>(), Some(z.t().mapv(|z| z * z).view().into_dyn()));
    Ok(())
}

#[test]
fn dense_operands_go_the_short_way() -> Outcome {
    let (f16, f32, i64) = (DType::F16, DType::F32, DType::I64);
    let a = Array1::from_shape_fn(700, |n| n as f32 - 350.0);
    let b = Array1::from_shape_fn(700, |n| (n * n) as i64 - 9);
    let c = Array1::from_shape_fn(700, |n| half::f16::from_f32(n as f32 / 8.0));
    let texts =
        ["a + b", "where(a < b, c, a)", "maximum(a, c) * 0.5", "sqrt(float64(c)) + a", "-b"];
    for text in texts {
        let expr = Expr::parse(text)?;
        let program = expr.compile(&[("a", f32), ("b", i64), ("c", f16)], Promotion::Numpy)?;
        let cases = [(3, 0), (257, 0b101), (5, 0b111), (1, 0), (700, 0), (700, 0b010)];
        for (len, single) in cases.into_iter().take(if cfg!(miri) { 3 } else { 6 }) {
            let count = |operand: usize| if single >> operand & 1 == 1 { 1 } else { len };
            let (a, b) = (a.slice(s![..count(0)]), b.slice(s![..count(1)]));
            let c = c.slice(s![..count(2)]);
            let views: [AnyView<'_>; 3] = [(&a).into(), (&b).into(), (&c).into()];
            let whole = program.run(&views)?.view().to_owned();
            let mut out = vec![[0_u64; 2]; len];
            let pointers = views.each_ref().map(AnyView::as_ptr);
            // SAFETY: the views' own elements, side by side, and room for results of any type.
            let done =
                unsafe { program.run_dense(out.as_mut_ptr().cast(), &pointers, single, len) };
            let size = program.dtype().size();
            // Of operands that all repeat, the last result is looked at.
            let (skipped, shape) = if whole.shape() == [1] { (len - 1, 1) } else { (0, len) };
            // SAFETY: results of that type were written there.
            let ours = unsafe {
                let first = out.as_ptr().cast::<u8>().add(skipped * size);
                AnyView::from_raw(program.dtype(), first, &[shape], &[1])
            };
            assert!(done && ours.to_owned() == whole, "{text} {len} {single}");
        }
    }
    let summed = Expr::parse("a.sum()")?.compile(&[("a", f32)], Promotion::Numpy)?;
    let mut out = 0_f32;
    // SAFETY: one element, and room for one.
    let done = unsafe { summed.run_dense((&raw mut out).cast(), &[a.as_ptr().cast()], 0, 1) };
    assert!(!done);
    Ok(())
}

#[test]
fn plus_joins_text() -> Outcome {
    let words = array!["a", "b"].mapv(String::from);
    let typed = [("s", DType::String)];
    let program = Expr::parse("'<' + s + '>'")?.compile(&typed, Promotion::Numpy)?;
    let joined = program.run(&[(&words).into()])?;
    assert_eq!(joined, AnyArray::from(array!["<a>", "<b>"].mapv(String::from)));
    assert!(Expr::parse("s - s")?.compile(&typed, Promotion::Numpy).is_err());
    assert!(Expr::parse("s + 1")?.compile(&typed, Promotion::Numpy).is_err());
    Ok(())
}

/// Those of `x` and `y` that a program reads.
fn given<'a>(program: &TypedProgram, all: &[AnyView<'a>; 2]) -> Vec<AnyView<'a>> {
    let own = program.operands().iter();
    own.map(|own| all[usize::from(own.name == "y")].clone()).collect()
}

#[test]
fn every_byte_but_0_is_true() -> Outcome {
    let texts = [
        "x",
        "x.T",
        "~x",
        "abs(x)",
        "x & y",
        "x | y",
        "x ^ y",
        "x == y",
        "x != y",
        "x < y",
        "x <= y",
        "x > y",
        "x >= y",
        "fma(x, y, x)",
        "logical_not(x & y) | x",
        "where(x, x, y)",
        "where(x, 1.5, 2.5)",
        "x * 2.5",
        "x + 1",
        "int8(x) - y",
        "(x & y)[:, None] ^ x",
        "sum(x)",
        "mean(x, axis=0)",
        "prod(x, axis=-1)",
        "max(x)",
        "min(x)",
        "max(x, axis=0)",
        "min(x, axis=-1)",
        "min(x | y, axis=-1) ^ max(y, axis=-1)",
        "where(x, \"a\", \"b\") + where(x.T.T, \"c\", \"d\")",
    ];
    let (sizes, each) = if cfg!(miri) { (1, 3) } else { (6, 1) };
    let shapes = [(3, 5), (5, 3), (1, 1), (7, 30), (2, 600), (40, 3000)];
    for (rows, columns) in shapes.into_iter().take(sizes) {
        let byte = |i: usize, j: usize, seed: usize| match (i * 7 + j * 3 + seed) % 11 {
            0..4 => 0_u8,
            4..6 => 1,
            6 => 2,
            7 => 128,
            8 => 255,
            _ => 6,
        };
        let x = Array2::from_shape_fn((rows, 2 * columns), |(i, j)| byte(i, j, 0));
        let y = Array2::from_shape_fn((rows, columns), |(i, j)| byte(i, j, 5));
        let x = x.slice(s![.., ..;-2]);
        // SAFETY: the arrays' own pointers, sizes and strides.
        let loose = unsafe {
            [
                AnyView::from_raw_truths(x.as_ptr(), x.shape(), x.strides()),
                AnyView::from_raw_truths(y.as_ptr(), y.shape(), y.strides()),
            ]
        };
        let (x, y) = (x.mapv(|byte| byte != 0), y.mapv(|byte| byte != 0));
        let settled = [AnyView::from(&x), AnyView::from(&y)];
        let types = [("x", DType::Bool), ("y", DType::Bool)];
        for text in texts.into_iter().step_by(each) {
            let program = Expr::parse(text)?.compile(&types, Promotion::Numpy)?;
            for level in Level::available() {
                let program = program.at_level(level)?;
                let made = program.run(&given(&program, &loose))?;
                let expected = program.run(&given(&program, &settled))?;
                if made.dtype() == DType::Bool {
                    let bytes = |any: &AnyArray| {
                        let view = any.view();
                        // SAFETY: a row-major array of so many bytes.
                        unsafe { std::slice::from_raw_parts(view.as_ptr(), view.len()) }.to_vec()
                    };
                    assert_eq!(bytes(&made), bytes(&expected), "{text} of {rows} x {columns}");
                } else {
                    assert_eq!(made, expected, "{text} of {rows} x {columns}");
                }
            }
        }
    }
    Ok(())
}
