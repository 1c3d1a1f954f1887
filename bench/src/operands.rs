//! The arrays of a case: elements of every type, from numbers.

use half::{bf16, f16};
use ndarray::{Array, ArrayD, Axis, Dimension};

use crate::case::Case;

/// Elements of any type from numbers.
pub trait Element: Clone + Send + Sync + 'static {
    fn of(n: usize) -> Self;
}

/// After how many elements they repeat.
const PERIOD: usize = 97;

macro_rules! element {
    ($($type:ty = $make:expr;)*) => { $(
        impl Element for $type {
            fn of(n: usize) -> Self {
                let make: fn(usize) -> $type = $make;
                make(n % PERIOD)
            }
        }
    )* };
}

element! {
    f32 = |n| (n + 1) as f32 / 16.0;
    f64 = |n| (n + 1) as f64 / 16.0;
    i8 = |n| n as i8;
    u8 = |n| n as u8;
    i64 = |n| n as i64;
    f16 = |n| f16::from_f32((n + 1) as f32 / 16.0);
    bf16 = |n| bf16::from_f32((n + 1) as f32 / 16.0);
    bool = |n| n % 3 == 0;
    String = |n| format!("text {n}");
}

/// The rank that a case is computed in: 2 or 4.
pub fn rank(case: &Case) -> usize {
    if case.output().len() <= 2 { 2 } else { 4 }
}

/// The output's shape in that rank.
pub fn shape(case: &Case) -> Vec<usize> {
    let own = case.output();
    [vec![1; rank(case) - own.len()], own].concat()
}

/// Operand `n` of a case.
pub fn stored<T: Element>(case: &Case, n: usize) -> ArrayD<T> {
    let shape = &case.shapes[n];
    let count = shape.iter().product();
    let mut elements: Vec<T> = Vec::with_capacity(count);
    elements.extend((0..count.min(PERIOD)).map(T::of));
    // What is there is whole periods until the last copy.
    while elements.len() < count {
        let more = elements.len().min(count - elements.len());
        elements.extend_from_within(..more);
    }
    let mut array = ArrayD::from_shape_vec(&shape[..], elements).expect("as many as the shape has");
    if n == 0 && case.transposed {
        array = array.reversed_axes();
    }
    if n == 0 && case.backwards {
        array.invert_axis(Axis(shape.len() - 1));
    }
    array
}

/// Operand `n` of a case, of the rank that it is computed in.
pub fn operand<T: Element>(case: &Case, n: usize) -> ArrayD<T> {
    let mut array = stored(case, n);
    while array.ndim() < rank(case) {
        array.insert_axis_inplace(Axis(0));
    }
    array
}

/// The same array with a rank that is known when it is compiled.
pub fn fixed<D: Dimension, T>(array: ArrayD<T>) -> Array<T, D> {
    array.into_dimensionality().expect("the result's rank")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_those_of_their_numbers() {
        let text = r#"{"name": "x", "op": "copy", "type": "u8", "shapes": [[3, 131]]}"#;
        let case: Case = serde_json::from_str(text).expect("a case");
        let all: Vec<u8> = stored(&case, 0).into_iter().collect();
        assert!(all.iter().enumerate().all(|(n, &one)| one == u8::of(n)) && all.len() == 393);
    }
}
