//! Functions by the names that people know them by, and names that are near.

use std::cmp::Ordering;

use crate::by_name::program::front::axes::Fold;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// What a name means before an opening bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::by_name::program) enum Function {
    Op(Op),
    Cast(DType),
    /// `astype(x, float32)`
    AsType,
    /// `max(a, b)` compares, `max(a, axis=0)` reduces.
    Extreme(Op, Fold),
    Reduce(Fold),
    Clip,
    Transpose,
}

/// Functions that are not operations; the names of operations stand in their table.
const OTHERS: [(&str, Function); 12] = [
    ("sum", Function::Reduce(Fold::Sum)),
    ("mean", Function::Reduce(Fold::Mean)),
    ("prod", Function::Reduce(Fold::Product)),
    ("product", Function::Reduce(Fold::Product)),
    ("max", Function::Extreme(Op::Maximum, Fold::Maximum)),
    ("amax", Function::Reduce(Fold::Maximum)),
    ("min", Function::Extreme(Op::Minimum, Fold::Minimum)),
    ("amin", Function::Reduce(Fold::Minimum)),
    ("clip", Function::Clip),
    ("clamp", Function::Clip),
    ("astype", Function::AsType),
    ("transpose", Function::Transpose),
];

impl Function {
    pub(in crate::by_name::program) fn named(name: &str) -> Option<Self> {
        let op = || Op::ALL.iter().copied().find(|&op| names_of(op).any(|own| own == name));
        let other = || OTHERS.iter().find(|(own, _)| *own == name).map(|(_, function)| *function);
        let dtype = || name.parse().ok().map(Self::Cast);
        op().map(Self::Op).or_else(other).or_else(dtype)
    }

    /// Every name of a function.
    fn names() -> impl Iterator<Item = &'static str> {
        let ops = Op::ALL.iter().copied().flat_map(names_of);
        let dtypes = DType::ALL.iter().map(|dtype| dtype.name());
        ops.chain(OTHERS.iter().map(|(name, _)| *name)).chain(dtypes)
    }

    /// The name of a function that was perhaps meant.
    pub(in crate::by_name::program) fn near(name: &str) -> Option<&'static str> {
        of_python(name).or_else(|| nearest(name, Self::names()))
    }
}

/// Every name of an operation in expressions.
fn names_of(op: Op) -> impl Iterator<Item = &'static str> {
    let row = op.row();
    [row.name].into_iter().chain(row.also.iter().chain(row.text).copied())
}

/// What NumPy takes Python's own types for. Elsewhere they mean others: ONNX's float has 32 bits.
fn of_python(name: &str) -> Option<&'static str> {
    let own = match name {
        "float" => DType::F64,
        "int" => DType::I64,
        "complex" => DType::C128,
        "str" => DType::String,
        _ => return None,
    };
    Some(own.name())
}

/// The name of a type that was perhaps meant.
pub(in crate::by_name::program) fn near_dtype(name: &str) -> Option<&'static str> {
    of_python(name).or_else(|| nearest(name, DType::ALL.iter().map(|dtype| dtype.name())))
}

/// The candidate that is nearest to the name, where one is near enough to be a slip of the finger; never the name itself.
///
/// ```
/// use simulcast::program::nearest;
///
/// let names = ["scale", "mean"];
/// assert_eq!((nearest("scal", names.into_iter()), nearest("x", names.into_iter())), (Some("scale"), None));
/// assert_eq!(nearest("mean", names.into_iter()), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    // Nobody mistypes names of hundreds of letters, and they would take long to compare.
    if length > 64 {
        return None;
    }
    let allowed = match length {
        0..=4 => 1,
        5 => 2,
        _ => length / 3,
    };
    candidates
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(far, candidate)| (1..=allowed).contains(far) && *far < candidate.chars().count())
        .min_by(|(a, _), (b, _)| a.cmp(b).then(Ordering::Equal))
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, taken out, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=b.len()).collect()];
    for (i, x) in a.iter().enumerate() {
        rows.rotate_left(1);
        let [before, last, row] = &mut rows;
        row.clear();
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
    }
    rows[2].last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_means_one_thing() {
        let mut names: Vec<&str> = Function::names().collect();
        assert!(names.iter().all(|name| Function::named(name).is_some()));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn slips_of_the_finger_are_recognised() {
        assert_eq!(Function::near("sqrrt"), Some("sqrt"));
        assert_eq!(Function::near("maximun"), Some("maximum"));
        assert_eq!(Function::near("flaot16"), Some("float16"));
        assert_eq!(Function::near("convolve"), None);
        assert_eq!(distance("abcd", "acbd"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("maen", ["gain", "mean", "x"].into_iter()), Some("mean"));
        assert_eq!(nearest("y", ["x"].into_iter()), None);
    }
}
