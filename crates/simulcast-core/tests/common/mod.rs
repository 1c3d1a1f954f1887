//! The oracle: the source documents read literally, slow and short.
//!
//! Nothing of the crate is used here but the types of its questions.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use simulcast_core::Rule;

/// SONNX step 1: prepend ones up to `rank`.
pub fn step_1(shape: &[usize], rank: usize) -> Vec<usize> {
    let mut padded = vec![1; rank - shape.len()];
    padded.extend(shape);
    padded
}

/// The size of an axis: the one size that is not 1, or 1; `None` is E1.
pub fn common_size(sizes: &[usize]) -> Option<usize> {
    let mut others: Vec<usize> = sizes.iter().copied().filter(|&size| size != 1).collect();
    others.dedup();
    match others[..] {
        [] => Some(1),
        [size] => Some(size),
        _ => None,
    }
}

/// SONNX step 2 on shapes that step 1 made equally long.
pub fn step_2(padded: &[Vec<usize>], rank: usize) -> Option<Vec<usize>> {
    (0..rank).map(|i| common_size(&padded.iter().map(|y| y[i]).collect::<Vec<_>>())).collect()
}

/// The documents' own reading for two tensors: each size is the maximum, and it is E1 (`None`) where
/// a tensor has a size that is neither the maximum nor 1.
pub fn by_maximum(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let (ya, yb) = (step_1(a, rank), step_1(b, rank));
    let max: Vec<usize> = ya.iter().zip(&yb).map(|(x, y)| *x.max(y)).collect();
    let e1 = [&ya, &yb].iter().any(|y| y.iter().zip(&max).any(|(d, m)| d != m && *d != 1));
    (!e1).then_some(max)
}

/// `f(a, B, C)`: the index on an axis of size `size` for index `a` of the result.
pub fn f(a: usize, size: usize, result: usize) -> usize {
    if size == result { a } else { 0 }
}

/// What a rule says: the result, and each operand brought to the result's rank (`Y`), with the
/// operand axis behind each axis of `Y`.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub shape: Vec<usize>,
    pub laid: Vec<Vec<(usize, Option<usize>)>>,
}

/// Lays `shape` from axis `start` of a result of rank `rank`; `None` where it hangs over.
fn lay(shape: &[usize], start: usize, rank: usize) -> Option<Vec<(usize, Option<usize>)>> {
    let mut laid = vec![(1, None); rank];
    for (k, &size) in shape.iter().enumerate() {
        match laid.get_mut(start + k) {
            Some(place) => *place = (size, Some(k)),
            None => return None,
        }
    }
    Some(laid)
}

fn right(shape: &[usize], rank: usize) -> Option<Vec<(usize, Option<usize>)>> {
    lay(shape, rank.checked_sub(shape.len())?, rank)
}

fn sizes(laid: &[(usize, Option<usize>)]) -> Vec<usize> {
    laid.iter().map(|&(size, _)| size).collect()
}

/// Every size is 1 or that of `result`.
fn fits(laid: &[(usize, Option<usize>)], result: &[usize]) -> bool {
    laid.iter().zip(result).all(|(&(size, _), &r)| size == 1 || size == r)
}

/// The answer of a rule, or `None` where it refuses.
pub fn answer(rule: Rule<'_>, shapes: &[Vec<usize>]) -> Option<Answer> {
    let both = |laid: Vec<Vec<(usize, Option<usize>)>>, rank| {
        let padded: Vec<Vec<usize>> = laid.iter().map(|l| sizes(l)).collect();
        Some(Answer { shape: step_2(&padded, rank)?, laid })
    };
    let onto = |shape: &[usize], laid: Vec<Vec<(usize, Option<usize>)>>| {
        let shape = shape.to_vec();
        laid.iter().all(|l| fits(l, &shape)).then_some(Answer { shape, laid })
    };
    let largest = shapes.iter().map(Vec::len).max().unwrap_or(0);
    let all_right = |rank| shapes.iter().map(|s| right(s, rank)).collect::<Option<Vec<_>>>();
    match rule {
        Rule::Exact => {
            let first = shapes.first().cloned().unwrap_or_default();
            shapes.iter().all(|s| *s == first).then(|| onto(&first, all_right(largest)?))?
        }
        Rule::Numpy => both(all_right(largest)?, largest),
        Rule::Unidirectional => {
            let first = shapes.first().cloned().unwrap_or_default();
            onto(&first, all_right(first.len())?)
        }
        Rule::Pdpd { axis } | Rule::Legacy { axis } => {
            let [a, b] = shapes else { return None };
            let axis = axis.unwrap_or(-1);
            if b.len() > a.len() || axis < -1 || axis > a.len() as isize {
                return None;
            }
            let start = if axis == -1 { a.len() - b.len() } else { axis as usize };
            // Rule 5: trailing ones of B are ignored where they would hang over.
            let mut b = b.clone();
            if matches!(rule, Rule::Legacy { .. })
                && b.iter().all(|&size| size == 1)
                && start + b.len() > a.len()
            {
                b.clear();
            }
            while matches!(rule, Rule::Pdpd { .. })
                && start + b.len() > a.len()
                && b.last() == Some(&1)
            {
                b.pop();
            }
            onto(a, vec![lay(a, 0, a.len())?, lay(&b, start.min(a.len()), a.len())?])
        }
        Rule::Paddle { axis } => {
            let [a, b] = shapes else { return None };
            let axis = axis.unwrap_or(-1);
            if a == b {
                return onto(a, vec![lay(a, 0, a.len())?, lay(b, 0, a.len())?]);
            }
            let rank = largest as isize;
            if axis < -1 || axis >= rank || (a.len() == b.len() && axis > 0) {
                return None;
            }
            let start = |s: &[usize]| match axis {
                _ if s.len() == largest => 0,
                -1 => largest - s.len(),
                axis => axis as usize,
            };
            both(vec![lay(a, start(a), largest)?, lay(b, start(b), largest)?], largest)
        }
        Rule::Bidirectional { target } => {
            let [x] = shapes else { return None };
            let rank = x.len().max(target.len());
            let (x, target) = (right(x, rank)?, step_1(target, rank));
            Some(Answer { shape: step_2(&[sizes(&x), target], rank)?, laid: vec![x] })
        }
        Rule::To { target } => {
            let [x] = shapes else { return None };
            onto(target, vec![right(x, target.len())?])
        }
        Rule::Axes { shape, broadcast_axes } => {
            let [x] = shapes else { return None };
            if broadcast_axes.iter().any(|&axis| axis >= shape.len()) {
                return None;
            }
            let kept: Vec<usize> =
                (0..shape.len()).filter(|axis| !broadcast_axes.contains(axis)).collect();
            let removed: Vec<usize> = kept.iter().map(|&axis| shape[axis]).collect();
            let mut laid = vec![(1, None); shape.len()];
            kept.iter().enumerate().for_each(|(k, &axis)| laid[axis] = (shape[axis], Some(k)));
            (*x == removed).then(|| Answer { shape: shape.to_vec(), laid: vec![laid] })
        }
        Rule::Mapping { shape, axes_mapping } => {
            let [x] = shapes else { return None };
            let increasing = axes_mapping.windows(2).all(|w| w[0] < w[1]);
            if axes_mapping.len() != x.len()
                || !increasing
                || axes_mapping.iter().any(|&a| a >= shape.len())
            {
                return None;
            }
            let mut laid = vec![(1, None); shape.len()];
            x.iter().enumerate().for_each(|(k, &size)| laid[axes_mapping[k]] = (size, Some(k)));
            onto(shape, vec![laid])
        }
        Rule::Named { labels } => {
            let rank = labels.iter().max().map_or(0, |&label| label + 1);
            let mut labels = labels.iter();
            let mut all = Vec::new();
            for shape in shapes {
                let mut laid = vec![(1, None); rank];
                for (k, &size) in shape.iter().enumerate() {
                    laid[*labels.next()?] = (size, Some(k));
                }
                all.push(laid);
            }
            both(all, rank)
        }
        _ => unreachable!("a rule that the oracle does not know"),
    }
}

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

/// The row-major position of an index.
pub fn position(shape: &[usize], index: &[usize]) -> usize {
    indices(shape).iter().position(|i| i == index).expect("a valid index")
}

/// Every shape of rank up to `rank` with sizes up to `size`.
pub fn all_shapes(rank: usize, size: usize) -> Vec<Vec<usize>> {
    (0..=rank).flat_map(|rank| indices(&vec![size + 1; rank])).collect()
}
