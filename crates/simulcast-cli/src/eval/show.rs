//! Results for people and for programs: values where there are few, numbers about them where there
//! are many.

use serde_json::{Value, json};
use simulcast::program::{Builder, Fold};
use simulcast::types::Promotion;
use simulcast::{AnyArray, AnyView, Complex, DType, DTypeKind, dispatch};
use simulcast_core::format_shape;
use simulcast_explain::width as columns;

use super::bytes_of;

/// Arrays of more elements than this are summed up.
const FEW: usize = 120;

/// And those of more axes, which few could read, and no stack would hold the brackets of.
const DEEP: usize = 64;

/// The columns that a row of values takes at most.
const WIDTH: usize = 96;

/// What is said of a result.
pub(crate) enum Shown {
    /// Every element, as text.
    Values(Vec<String>),
    /// Numbers about the elements, with their names.
    About(Vec<(&'static str, String)>),
}

impl Shown {
    pub(crate) fn of(view: &AnyView<'_>) -> Self {
        if is_small(view) {
            return Self::Values(cells(view));
        }
        let answers = about(view).into_iter();
        Self::About(
            answers.filter_map(|(name, one)| Some((name, cells(&one.view()).pop()?))).collect(),
        )
    }
}

fn is_small(view: &AnyView<'_>) -> bool {
    view.len() <= FEW && view.shape().len() <= DEEP
}

/// A line about the array, and its values or the numbers about them.
pub(crate) fn text(dtype: DType, shape: &[usize], shown: &Shown) -> String {
    let bytes = simulcast_explain::human_bytes(bytes_of(dtype, shape));
    match shown {
        Shown::Values(cells) => {
            format!("{dtype} {}\n{}\n", format_shape(shape), nested(shape, cells))
        }
        Shown::About(about) => {
            let about: Vec<String> =
                about.iter().map(|(name, value)| format!("{name} {value}")).collect();
            let about = if about.is_empty() { String::new() } else { about.join("   ") + "\n" };
            format!("{dtype} {}   {bytes}\n{about}", format_shape(shape))
        }
    }
}

/// Elements in brackets, as columns.
fn nested(shape: &[usize], cells: &[String]) -> String {
    let width = cells.iter().map(|cell| columns(cell)).max().unwrap_or(0);
    let mut out = String::new();
    brackets(shape, cells, width, 0, &mut out);
    out
}

fn brackets(shape: &[usize], cells: &[String], width: usize, depth: usize, out: &mut String) {
    let Some((&size, inner)) = shape.split_first() else {
        let cell = cells.first().map_or("", String::as_str);
        let space = if depth == 0 { 0 } else { width.saturating_sub(columns(cell)) };
        out.push_str(&format!("{:space$}{cell}", ""));
        return;
    };
    out.push('[');
    let step = cells.len().checked_div(size).unwrap_or(0);
    for at in 0..size {
        // Long rows go on below their beginning.
        let line = (WIDTH.saturating_sub(depth) / (width + 2)).max(1);
        if at > 0 && inner.is_empty() && !at.is_multiple_of(line) {
            out.push_str(", ");
        } else if at > 0 && inner.is_empty() {
            out.push_str(",\n");
            out.extend(std::iter::repeat_n(' ', depth + 1));
        } else if at > 0 {
            out.push(',');
            out.extend(std::iter::repeat_n('\n', inner.len()));
            out.extend(std::iter::repeat_n(' ', depth + 1));
        }
        let cells = cells.get(at * step..(at + 1) * step).unwrap_or_default();
        brackets(inner, cells, width, depth + 1, out);
    }
    out.push(']');
}

/// An element as people see it, and in JSON.
trait Shows {
    fn cell(&self) -> String;
    fn json(&self) -> Value;
}

macro_rules! shows {
    ($($type:ty),* => $cell:expr, $json:expr) => {
        $(impl Shows for $type {
            fn cell(&self) -> String {
                let cell: fn(&Self) -> String = $cell;
                cell(self)
            }

            fn json(&self) -> Value {
                let json: fn(&Self) -> Value = $json;
                json(self)
            }
        })*
    };
}

shows!(bool, i8, i16, i32, i64, u8, u16, u32, u64 => ToString::to_string, |x| json!(x));
shows!(half::f16, half::bf16 => |x| format!("{x:?}"), |x| number(x.to_f64()));
shows!(f32 => |x| format!("{x:?}"), |x| number(f64::from(*x)));
shows!(f64 => |x| format!("{x:?}"), |x| number(*x));
shows!(
    Complex<f32> => |x| format!("{:?}{:+?}j", x.re, x.im),
    |x| json!([number(f64::from(x.re)), number(f64::from(x.im))])
);
shows!(
    Complex<f64> => |x| format!("{:?}{:+?}j", x.re, x.im),
    |x| json!([number(x.re), number(x.im)])
);
shows!(String => |x| format!("{x:?}"), |x| json!(x));

/// The elements in row-major order.
fn cells(view: &AnyView<'_>) -> Vec<String> {
    dispatch!(view.dtype(), T => view.typed::<T>().iter().flatten().map(Shows::cell).collect())
}

/// Least, largest, mean, by the engine itself.
fn about(view: &AnyView<'_>) -> Vec<(&'static str, AnyArray)> {
    let questions: &[(&str, Fold)] = match view.dtype().kind() {
        DTypeKind::String => &[],
        DTypeKind::Bool => &[("true", Fold::Sum), ("mean", Fold::Mean)],
        DTypeKind::Complex => &[("mean", Fold::Mean)],
        _ => &[("min", Fold::Minimum), ("max", Fold::Maximum), ("mean", Fold::Mean)],
    };
    let ask = |fold: Fold| {
        let mut builder = Builder::new(Promotion::Numpy);
        let x = builder.operand("x", view.dtype());
        let answer = builder.reduce(fold, x, None, false).ok()?;
        builder.finish(answer).ok()?.run(std::slice::from_ref(view)).ok()
    };
    questions.iter().filter_map(|&(name, fold)| Some((name, ask(fold)?))).collect()
}

/// The same as JSON; numbers that JSON does not have are text.
pub(crate) fn json_of(dtype: DType, shape: &[usize], view: Option<&AnyView<'_>>) -> Value {
    let mut value = json!({ "dtype": dtype.name(), "shape": shape });
    let Some(view) = view else { return value };
    if is_small(view) {
        let mut values = values(view);
        for &size in shape.iter().skip(1).rev() {
            let count = values.len().checked_div(size).unwrap_or_default();
            let mut flat = values.into_iter();
            values = (0..count).map(|_| flat.by_ref().take(size).collect()).collect();
        }
        value["values"] = match shape {
            [] => values.pop().unwrap_or_default(),
            _ => values.into(),
        };
    } else {
        for (name, one) in about(view) {
            value[name] = values(&one.view()).pop().unwrap_or_default();
        }
    }
    value
}

/// Every element.
fn values(view: &AnyView<'_>) -> Vec<Value> {
    dispatch!(view.dtype(), T => view.typed::<T>().iter().flatten().map(Shows::json).collect())
}

fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { x.to_string().to_lowercase().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn shown(array: impl Into<AnyArray>) -> String {
        let array = array.into();
        text(array.dtype(), array.shape(), &Shown::of(&array.view()))
    }

    #[test]
    fn few_values_are_shown_as_columns() {
        let x = array![[[1.5_f32, 20.0]], [[f32::NAN, -3.0]]];
        assert_eq!(shown(x), "float32 (2, 1, 2)\n[[[ 1.5, 20.0]],\n\n [[ NaN, -3.0]]]\n");
        assert_eq!(shown(ndarray::arr0(7_i64)), "int64 ()\n7\n");
        assert_eq!(
            shown(array![["a", "b\n"]].mapv(String::from)),
            "string (1, 2)\n[[  \"a\", \"b\\n\"]]\n"
        );
        // Each of the first two takes two columns of a terminal.
        assert_eq!(
            shown(array![["画像"], ["abcde"]].mapv(String::from)),
            "string (2, 1)\n[[ \"画像\"],\n [\"abcde\"]]\n"
        );
        assert_eq!(shown(ndarray::Array2::<u8>::default((2, 0))), "uint8 (2, 0)\n[[],\n []]\n");
        let z = array![Complex::new(1.0_f64, -2.5)];
        assert_eq!(shown(z), "complex128 (1,)\n[1.0-2.5j]\n");
    }

    #[test]
    fn values_of_many_axes_are_summed_up() {
        let one = ndarray::ArrayD::<i8>::ones(vec![1; 20_000]);
        let said = shown(one.clone());
        assert!(said.starts_with("int8 (1, 1, ") && said.ends_with("min 1   max 1   mean 1.0\n"));
        let json = json_of(DType::I8, one.shape(), Some(&(&one).into()));
        assert_eq!((&json["values"], &json["max"]), (&Value::Null, &json!(1)));
    }

    #[test]
    fn numbers_about_many_values_are_written_as_values_are() {
        let json = |x: &AnyArray| json_of(x.dtype(), x.shape(), Some(&x.view()));
        let nans = json(&ndarray::Array1::from_elem(1000, f32::NAN).into());
        assert_eq!((&nans["min"], &nans["mean"]), (&json!("nan"), &json!("nan")));
        let turned = json(&ndarray::Array1::from_elem(1000, Complex::new(0.5, -2.0)).into());
        assert_eq!(turned["mean"], json!([0.5, -2.0]));
    }

    #[test]
    fn many_values_are_summed_up() {
        let x = ndarray::Array1::from_iter(0_i32..1000);
        assert_eq!(shown(x), "int32 (1000,)   4 kB\nmin 0   max 999   mean 499.5\n");
        let x = ndarray::Array1::from_iter((0..1000).map(|x| x % 4 == 0));
        assert_eq!(shown(x), "bool (1000,)   1 kB\ntrue 250   mean 0.25\n");
    }
}
