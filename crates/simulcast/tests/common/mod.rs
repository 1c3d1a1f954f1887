//! The oracle: index by index, through the plan; and arrays stored in every way there is.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use ndarray::{ArrayBase, ArrayD, ArrayViewD, Axis, IxDyn, Slice};
use proptest::prelude::*;
use simulcast::{Rule, resolve};

/// Every index of a shape, in row-major order.
pub fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &size in shape {
        all = all
            .iter()
            .flat_map(|index| (0..size).map(move |i| [&index[..], &[i]].concat()))
            .collect();
    }
    all
}

/// What a broadcast shows of each operand, element by element.
pub fn shown<T: Clone>(rule: Rule<'_>, operands: &[ArrayViewD<'_, T>]) -> Vec<ArrayD<T>> {
    let shapes: Vec<&[usize]> = operands.iter().map(ArrayBase::shape).collect();
    let plan = resolve(rule, &shapes).expect("shapes that broadcast");
    let all = indices(plan.shape());
    let show = |(operand, view): (usize, &ArrayViewD<'_, T>)| {
        let element = |index: &Vec<usize>| {
            view[&plan.source_index(operand, index).expect("an index of the result")[..]].clone()
        };
        let elements: Vec<T> = all.iter().map(element).collect();
        ArrayD::from_shape_vec(plan.shape(), elements).expect("as many as the result has")
    };
    operands.iter().enumerate().map(show).collect()
}

/// An array and how it is looked at: in another axis order, with steps, backwards.
#[derive(Clone, Debug)]
pub struct Stored<T> {
    pub memory: ArrayD<T>,
    /// For each axis of the view: the axis in memory, the step, and whether it runs backwards.
    pub axes: Vec<(usize, usize, bool)>,
    pub shape: Vec<usize>,
}

impl<T> Stored<T> {
    pub fn view(&self) -> ArrayViewD<'_, T> {
        let order: Vec<usize> = self.axes.iter().map(|axis| axis.0).collect();
        let mut view = self.memory.view().permuted_axes(IxDyn(&order));
        for (axis, &(_, step, backwards)) in self.axes.iter().enumerate() {
            view.slice_axis_inplace(Axis(axis), Slice::new(0, None, step as isize));
            if backwards {
                view.invert_axis(Axis(axis));
            }
        }
        assert_eq!(view.shape(), self.shape);
        view
    }
}

/// An array of that shape in some storage; its elements are made from their places in memory.
pub fn stored<T: Clone + std::fmt::Debug + 'static>(
    shape: Vec<usize>,
    make: fn(usize) -> T,
) -> impl Strategy<Value = Stored<T>> {
    let rank = shape.len();
    let kinds = prop::collection::vec((1_usize..3, any::<bool>()), rank);
    let plain = any::<bool>();
    let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
    (plain, order, kinds, 0_usize..1000).prop_map(move |(plain, order, kinds, salt)| {
        let mut axes = Vec::new();
        let mut memory = vec![1; rank];
        for axis in 0..rank {
            let (place, (step, backwards)) =
                if plain { (axis, (1, false)) } else { (order[axis], kinds[axis]) };
            memory[place] = match shape[axis] {
                0 => 0,
                size => (size - 1) * step + 1,
            };
            axes.push((place, step, backwards));
        }
        let count: usize = memory.iter().product();
        let elements = (0..count).map(|n| make(n + salt)).collect();
        let memory = ArrayD::from_shape_vec(memory, elements).expect("as many as the shape has");
        Stored { memory, axes, shape: shape.clone() }
    })
}

/// Sizes: 0, 1, primes, around vector widths and tiles.
pub fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 1_usize..5,
        1 => Just(0),
        3 => prop::sample::select(vec![7, 8, 9, 13, 15, 16, 17, 31, 32, 33]),
        1 => prop::sample::select(vec![63, 64, 65, 127, 128, 129, 257]),
    ]
}

/// A result of some thousand elements at most, and shapes that broadcast to it under `numpy`.
pub fn shapes(operands: usize) -> impl Strategy<Value = Vec<Vec<usize>>> {
    let result = prop::collection::vec(size(), 0..5)
        .prop_filter("small", |shape| shape.iter().product::<usize>() <= 20_000);
    (result, prop::collection::vec((0_usize..3, any::<u8>()), operands)).prop_map(
        |(result, how)| {
            let cut = |(drop, ones): (usize, u8)| {
                let from = drop.min(result.len());
                let axes = result.iter().enumerate().skip(from);
                axes.map(|(axis, &size)| if ones >> axis & 1 == 1 { 1 } else { size }).collect()
            };
            how.into_iter().map(cut).collect()
        },
    )
}
