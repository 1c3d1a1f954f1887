//! What to write for `a @ b`: a product and a sum, checked with the shapes at hand.

use std::ops::Range;

use simulcast_core::Rule;

use super::expr::Expr;

/// Where `a @ b` stands for the `@` at that place, and what is the same: a product of operands whose shapes are known, and its
/// sum. None where what stands beside it is no name, or the shapes do not go together.
pub(super) fn suggestion<'a>(
    text: &str,
    at: &Range<usize>,
    shape_of: impl Fn(&str) -> Option<&'a [usize]>,
) -> Option<(Range<usize>, String)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let before = text.get(..at.start)?.trim_end();
    let after = text.get(at.end..)?;
    let left = before.trim_end_matches(is_name).len()..before.len();
    let first = text.len() - after.trim_start().len();
    let rest = &text[first..];
    let right = first..first + (rest.len() - rest.trim_start_matches(is_name).len());
    // What binds as strongly takes its operand first: `c / a @ b` is `(c / a) @ b`.
    let stands_alone = match before[..left.start].trim_end().chars().next_back() {
        Some(c) => "(,;+-<>=".contains(c),
        None => true,
    };
    let follows = text[right.end..].trim_start();
    if !stands_alone || follows.starts_with(['.', '(', '[', '@']) || follows.starts_with("**") {
        return None;
    }
    let (a, b) = (&text[left.clone()], &text[right.clone()]);
    let (shape_a, shape_b) = (shape_of(a)?, shape_of(b)?);
    let wanted = product(shape_a, shape_b)?;
    let made = match (shape_a.len(), shape_b.len()) {
        (1, 1) => format!("sum({a} * {b})"),
        (_, 1) => format!("sum({a} * {b}, axis=-1)"),
        (1, _) => format!("sum({a}[:, None] * {b}, axis=-2)"),
        _ => format!("sum({a}[..., None] * {b}[..., None, :, :], axis=-2)"),
    };
    let expr = Expr::parse(&made).ok()?;
    let shapes = expr.shapes(Rule::Numpy, |name| {
        [(a, shape_a), (b, shape_b)].into_iter().find(|(own, _)| *own == name).map(|own| own.1)
    });
    let whole = [&text[..left.start], &made, &text[right.end..]].concat();
    let is_right = shapes.len() == expr.nodes().len() && shapes.last()? == &Some(wanted);
    (is_right && Expr::parse_several(&whole).is_ok()).then_some((left.start..right.end, made))
}

/// The shape of a matrix product, as Python and NumPy have it.
fn product(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let (shared, row) = a.split_last()?;
    let (columns, along) = match b {
        [] => return None,
        [along] => (None, along),
        [.., along, columns] => (Some(*columns), along),
    };
    if shared != along {
        return None;
    }
    let batches = [&row[..row.len().saturating_sub(1)], &b[..b.len().saturating_sub(2)]];
    let mut shape = simulcast_core::broadcast_shapes(&batches).ok()?;
    shape.extend(row.last());
    shape.extend(columns);
    Some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_fits_the_shapes() {
        let suggested = |a: &[usize], b: &[usize]| {
            let shape_of = |name: &str| match name {
                "a" => Some(a),
                "b" => Some(b),
                _ => None,
            };
            suggestion("1 + a @ b", &(6..7), shape_of).map(|(_, made)| made)
        };
        let cases: [(&[usize], &[usize], Option<&str>); 8] = [
            (&[4], &[4], Some("sum(a * b)")),
            (&[3, 4], &[4], Some("sum(a * b, axis=-1)")),
            (&[4], &[4, 5], Some("sum(a[:, None] * b, axis=-2)")),
            (&[3, 4], &[4, 5], Some("sum(a[..., None] * b[..., None, :, :], axis=-2)")),
            (&[7, 3, 4], &[4, 5], Some("sum(a[..., None] * b[..., None, :, :], axis=-2)")),
            (&[7, 1, 3, 4], &[2, 4, 5], Some("sum(a[..., None] * b[..., None, :, :], axis=-2)")),
            (&[3, 4], &[3, 4], None),
            (&[], &[4], None),
        ];
        for (a, b, expected) in cases {
            assert_eq!(suggested(a, b).as_deref(), expected, "{a:?} {b:?}");
        }
        let one = |_: &str| Some(&[4_usize][..]);
        for text in [
            "(a + b) @ c",
            "f(a) @ c",
            "a @",
            "@ a",
            "a @ b @ c",
            "c / a @ b",
            "a @ b.T",
            "a @ b**2",
        ] {
            let at = text.find('@').unwrap();
            assert_eq!(suggestion(text, &(at..at + 1), one), None, "{text}");
        }
        assert_eq!(suggestion("-a @ b * 2", &(3..4), one), Some((1..6, "sum(a * b)".into())));
    }
}
