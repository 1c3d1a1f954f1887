//! Transposed operands of large results: rows that are whole lines of memory are written strip by strip, and others are
//! not, and neither may show.

use half::f16;
use ndarray::{Array1, Array2, Array3, ArrayView2, ArrayViewMut2, Axis, arr0, s};
use num_complex::Complex;
use simulcast::program::Expr;
use simulcast::types::Promotion;
use simulcast::{AnyArray, AnyView, DType, Level, copy_to, par_copy_into, zip};

/// An array whose transpose has that shape.
fn turned<T>(shape: (usize, usize), of: impl Fn(usize) -> T) -> Array2<T> {
    Array2::from_shape_fn((shape.1, shape.0), |(i, j)| of(i * 31 + j * 7))
}

fn expected<R>(shape: (usize, usize), f: impl Fn(usize, usize) -> R) -> Array2<R> {
    Array2::from_shape_fn(shape, |(i, j)| f(i, j))
}

/// More than the caches hold, of elements of so many bytes: whole lines a row, and others.
fn shapes(size: usize) -> [(usize, usize); 3] {
    let columns = 4608 / size;
    [(960, columns), (941, columns + 64 / size), (967, columns + 3)]
}

fn copies<T: Copy + PartialEq + Send + Sync>(of: impl Fn(usize) -> T) {
    for shape in shapes(size_of::<T>()) {
        let a = turned(shape, &of);
        let check = |view: ArrayView2<'_, T>| {
            let same = expected(view.dim(), |i, j| view[[i, j]]);
            assert!(copy_to(view, view.dim()) == same);
            let mut wide = Array2::from_elem((shape.0, shape.1 + 64 / size_of::<T>()), of(1));
            let mut out = wide.slice_mut(s![..view.nrows(), 1..=view.ncols()]);
            par_copy_into(view, &mut *out);
            assert!(out == same);
            assert!(
                wide.column(0).iter().chain(wide.column(view.ncols() + 1)).all(|&x| x == of(1))
            );
        };
        check(a.t());
        // Columns that run backwards, and rows.
        check(a.slice(s![.., ..;-1]).reversed_axes());
        check(a.slice(s![..;-1, 3..]).reversed_axes());
    }
}

// [E_BROADCAST_ANY_FUNC_3020]
#[test]
fn copies_of_every_size() {
    copies(|n| n as u8);
    copies(|n| n as u16);
    copies(|n| n as f32);
    copies(|n| n as u64);
    copies(|n| Complex::new(n as f64, -1.0));
}

// [E_BROADCAST_ANY_FUNC_3030] [E_BROADCAST_ANY_FUNC_3050]
#[test]
fn zips_with_what_repeats_and_what_does_not() {
    for shape in shapes(4) {
        let (a, b) = (turned(shape, |n| n as f32), turned(shape, |n| (n % 9) as f64));
        let row = Array1::from_shape_fn(shape.1, |j| j as f32);
        let column = Array1::from_shape_fn(shape.0, |i| i as f32).insert_axis(Axis(1));
        let rows = expected(shape, |i, j| a[[j, i]] + row[j]);
        let below = expected(shape, |i, j| a[[j, i]] < row[j]);
        let all = expected(shape, |i, j| {
            f64::from(a[[j, i]] - row[j]) * b[[j, i]] + f64::from(column[[i, 0]])
        });
        for level in Level::available() {
            let two = zip((a.t(), &row)).level(level);
            assert!(two.map(|a, r| a + r) == rows && two.par_map(|a, r| a + r) == rows);
            assert!(two.par_map(|a, r| a < r) == below);
            let many = zip((a.t(), &row, b.t(), &column)).level(level);
            let sums = many.par_map(|a, r, b, c| f64::from(a - r) * b + f64::from(*c));
            assert!(sums == all, "at {}", level.name());
        }
    }
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn zips_with_what_is_no_number() {
    let shape = shapes(4)[0];
    let a = turned(shape, |n| n as f32);
    let names = Array1::from_shape_fn(shape.1, |j| "x".repeat(j % 7));
    let named = expected(shape, |i, j| a[[j, i]] + names[j].len() as f32);
    assert!(zip((a.t(), &names)).par_map(|a, name| a + name.len() as f32) == named);
    let colours = Array1::from_shape_fn(shape.1, |j| [j as f32, 1.0, 2.0]);
    let tinted = expected(shape, |i, j| a[[j, i]] + colours[j][0] + colours[j][2]);
    assert!(zip((a.t(), &colours)).par_map(|a, c| a + c[0] + c[2]) == tinted);
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn what_is_one_element_is_so_in_every_column() {
    // Of four operands, one that repeats is laid out: for columns of different widths.
    let one = arr0(3.0_f32);
    for shape in [(64, 280), shapes(4)[0], shapes(4)[2]] {
        let (a, b) = (turned(shape, |n| n as f32), turned(shape, |n| (n % 9) as f32));
        let row = Array1::from_shape_fn(shape.1, |j| j as f32);
        let all = expected(shape, |i, j| a[[j, i]] + b[[j, i]] * 3.0 - row[j]);
        assert!(zip((a.t(), b.t(), &row, &one)).map(|a, b, r, one| a + b * one - r) == all);
        let mut odd = Array2::zeros((shape.0, shape.1 + 16));
        let mut out = odd.slice_mut(s![.., 3..shape.1 + 3]);
        zip((a.t(), b.t(), &row, &one)).map_into(&mut out, |a, b, r, one| a + b * one - r);
        assert!(out == all);
    }
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn results_that_are_smaller_than_what_they_are_made_of() {
    for shape in [(967, 2307), (1024, 2304)] {
        let a = turned(shape, |n| n as i64);
        let row = Array1::from_shape_fn(shape.1, |j| (j * 29) as i64);
        let below = expected(shape, |i, j| a[[j, i]] < row[j]);
        assert!(zip((a.t(), &row)).map(|a, r| a < r) == below);
        assert!(zip((a.t(), &row)).par_map(|a, r| a < r) == below);
    }
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn many_of_them_one_after_the_other() {
    for (rows, columns) in [(503, 701), (512, 704)] {
        let a = Array3::from_shape_fn((3, columns, rows), |(i, j, k)| (i * 9 + j * 31 + k) as f32);
        let row = Array1::from_shape_fn(columns, |j| j as f32);
        let turned = a.view().permuted_axes([0, 2, 1]);
        let sums = Array3::from_shape_fn((3, rows, columns), |(i, j, k)| a[[i, k, j]] + row[k]);
        assert!(zip((turned, &row)).map(|a, r| a + r) == sums);
        assert!(zip((turned, &row)).par_map(|a, r| a + r) == sums);
    }
}

// [E_BROADCAST_ANY_FUNC_3030]
#[test]
fn complex_numbers_that_never_begin_at_a_line() {
    let (rows, columns) = (967, 1155);
    let a = turned((rows, columns), |n| Complex::new(n as f32, 1.0));
    let mut memory = vec![0.5_f32; 2 * rows * columns + 2];
    // Both places of two numbers in a line's pair.
    for first in [0, 1] {
        let own = memory[first..].as_mut_ptr().cast::<Complex<f32>>();
        // SAFETY: there are as many pairs, which are aligned as their parts are.
        let mut out = unsafe { ArrayViewMut2::from_shape_ptr((rows, columns), own) };
        zip((a.t(),)).map_into(&mut out, |a| a * 2.0);
        assert!(out.indexed_iter().all(|((i, j), &made)| made == a[[j, i]] * 2.0));
    }
    assert_eq!(memory.last(), Some(&0.5));
}

// [E_BROADCAST_ANY_FUNC_3030] [E_BROADCAST_ANY_FUNC_3050]
#[test]
fn programs_of_one_step_and_of_several() -> Result<(), Box<dyn std::error::Error>> {
    for shape in shapes(2) {
        let (f, h) =
            (|n: usize| (n % 1009) as f32 / 8.0, |n: usize| f16::from_f32((n % 99) as f32));
        let (a, b, c) = (turned(shape, f), turned(shape, h), turned(shape, |n| n as i64 - 3));
        let r = Array1::from_shape_fn(shape.1, |j| (j % 17) as f32);
        let (s, t) = (r.mapv(f16::from_f32), r.mapv(|x| x as i64 - 5));
        let (x, y, z) = (a.t(), b.t(), c.t());
        let laid = x.as_standard_layout();
        let views: [AnyView<'_>; 6] =
            [(&x).into(), (&r).into(), (&y).into(), (&s).into(), (&z).into(), (&t).into()];
        let names = ["a", "r", "b", "s", "c", "t"];
        let types = [DType::F32, DType::F32, DType::F16, DType::F16, DType::I64, DType::I64];
        let leaves: Vec<_> = names.into_iter().zip(types).collect();
        let run = |text: &str, level| -> Result<AnyArray, Box<dyn std::error::Error>> {
            let expr = Expr::parse(text)?;
            let program = expr.compile(&leaves, Promotion::Numpy)?.at_level(level)?;
            Ok(program.run(&views)?)
        };
        for level in Level::available() {
            let moved = expected(shape, |i, j| b[[j, i]]);
            assert!(run("b", level)? == moved.into_dyn().into(), "at {}", level.name());
            let sums: AnyArray = expected(shape, |i, j| a[[j, i]] + r[j]).into_dyn().into();
            assert!(run("a + r", level)? == sums, "at {}", level.name());
            let tripled: AnyArray = expected(shape, |i, j| a[[j, i]] * 3.0).into_dyn().into();
            assert!(run("a * 3", level)? == tripled, "at {}", level.name());
            let below: AnyArray = expected(shape, |i, j| a[[j, i]] < r[j]).into_dyn().into();
            assert!(run("a < r", level)? == below, "at {}", level.name());
            let wide = |x: f16| x.to_f32();
            let halves = expected(shape, |i, j| f16::from_f32(wide(b[[j, i]]) + wide(s[j])));
            assert!(run("b + s", level)? == halves.into_dyn().into(), "at {}", level.name());
            let turned = run("s + b", level)?;
            assert!(turned == run("b + s", level)?, "at {}", level.name());
            let products: AnyArray = expected(shape, |i, j| c[[j, i]] * t[j]).into_dyn().into();
            assert!(run("c * t", level)? == products, "at {}", level.name());
            let steps = expected(shape, |i, j| (a[[j, i]] - r[j]) * 2.0 + 1.0);
            assert!(
                run("(a - r) * 2 + 1", level)? == steps.into_dyn().into(),
                "at {}",
                level.name()
            );
            if level == Level::BASELINE {
                continue;
            }
            // Of chains, the same as where the operand lies as the results do.
            for text in ["exp(a)", "a * sigmoid(a + r)", "where(a > r, a - r, r - a) * r + a"] {
                let expr = Expr::parse(text)?;
                let program = expr.compile(&leaves, Promotion::Numpy)?.at_level(level)?;
                let mut straight = views.clone();
                straight[0] = (&laid).into();
                assert!(
                    program.run(&views)? == program.run(&straight)?,
                    "{text} at {}",
                    level.name()
                );
            }
        }
    }
    Ok(())
}
