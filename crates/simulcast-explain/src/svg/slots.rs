//! Which cells of an axis are drawn: all, or the first ones, an ellipsis and the last.

/// A place along an axis of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The element of that index.
    At(usize),
    /// Elements that are left out.
    Gap,
}

/// At most `cap` slots for an axis of that size.
pub(super) fn slots(size: usize, cap: usize) -> Vec<Slot> {
    if size <= cap {
        return (0..size).map(Slot::At).collect();
    }
    let head = (0..cap.saturating_sub(2)).map(Slot::At);
    head.chain([Slot::Gap, Slot::At(size - 1)]).collect()
}

/// The columns of a table of that many axes: all, or both ends and what must be seen between them.
pub(super) fn columns(rank: usize, must: impl IntoIterator<Item = usize>) -> Vec<Slot> {
    const ALL: usize = 12;
    const ENDS: usize = 4;
    const MUST: usize = 3;
    if rank <= ALL {
        return (0..rank).map(Slot::At).collect();
    }
    let mut axes: Vec<usize> = (0..ENDS).chain(rank - ENDS..rank).collect();
    axes.extend(must.into_iter().filter(|&axis| axis < rank).take(MUST));
    axes.sort_unstable();
    axes.dedup();
    let mut slots = Vec::new();
    let mut next = 0;
    for axis in axes {
        if axis > next {
            slots.push(Slot::Gap);
        }
        slots.push(Slot::At(axis));
        next = axis + 1;
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use Slot::{At, Gap};

    #[test]
    fn long_axes_show_both_ends() {
        assert_eq!(slots(0, 8), []);
        assert_eq!(slots(3, 4), [At(0), At(1), At(2)]);
        assert_eq!(slots(9, 4), [At(0), At(1), Gap, At(8)]);
        assert_eq!(slots(usize::MAX, 4).last(), Some(&At(usize::MAX - 1)));
    }

    #[test]
    fn wide_tables_keep_the_columns_that_matter() {
        assert_eq!(columns(2, []), [At(0), At(1)]);
        let wide = columns(20, [9, 3, 400]);
        let ends = [At(0), At(1), At(2), At(3), Gap, At(9), Gap];
        assert_eq!(wide[..7], ends);
        assert_eq!(wide[7..], [At(16), At(17), At(18), At(19)]);
    }
}
