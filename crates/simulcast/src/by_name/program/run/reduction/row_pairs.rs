//! Crossed rows: every row of one leaf meets every row of another, as in distances between points.
//!
//! ```text
//! one      the leaf that stays where it is along the last axis that is kept: a row of it at a time
//! many     the other one, which is the same for all rows of the first: turned, and kept near
//! tile     columns of many that the first-level cache holds, for some hundred rows of one
//! ```
//!
//! Operation and fold are one loop, with one result in each lane. It joins in the order of the rows'
//! own fold: what goes this way has the bits of what does not.

use crate::DType;
use crate::by_name::program::run::reduction::blocking::{Axis, Cuts, merged, moved};
use crate::by_name::program::run::reduction::operation::{Arg, Operation};
use crate::by_name::program::run::reduction::reducer::Spare;
use crate::by_name::program::run::reduction::task::FoldTask;
use simulcast_kernels::cpu::aligned_buf;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::pack::pack_apart;
use simulcast_kernels::reduce::{Abreast, LEAF, WIDE};
use simulcast_threads::SendPtr;

/// The bytes of a tile: half of a first-level cache.
const TILE: usize = 16384;
/// The rows of one for which a tile is kept.
const HIGH: usize = 256;
/// With fewer rows of either leaf, turning costs more than it saves.
const FEW: usize = 8;

/// How rows cross.
pub(super) struct Cross<const N: usize> {
    fold: Abreast,
    one: usize,
    many: usize,
    /// The axes around both, that of the rows of one, that of many, and the reduced one.
    around: Vec<Axis<N>>,
    down: Axis<N>,
    across: Axis<N>,
    along: Axis<N>,
}

impl<const N: usize> Cross<N> {
    /// How two leaves cross, where they do, and there is a loop for it.
    pub(super) fn new(
        operation: &Operation,
        fold: simulcast_kernels::reduce::Fold,
        dtype: DType,
        cuts: &Cuts<N>,
        level: Level,
    ) -> Option<Self> {
        if !cuts.columns().is_empty() {
            return None;
        }
        let mut around = merged(&cuts.axes[..cuts.inner.start]);
        let (across, down) = (around.pop()?, around.pop()?);
        let [along] = merged(&cuts.axes[cuts.inner.clone()])[..] else { return None };
        let [Arg::Leaf(a), Arg::Leaf(b)] = operation.args else { return None };
        let (one, many) = match (across.1[a], across.1[b]) {
            (0, _) => (a, b),
            (_, 0) => (b, a),
            _ => return None,
        };
        if down.1[many] != 0 || down.0.min(across.0) < FEW || along.0 > LEAF {
            return None;
        }
        let fold =
            simulcast_kernels::reduce::abreast(fold, &operation.ops, one == b, dtype, level)?;
        Some(Self { fold, one, many, around, down, across, along })
    }
}

impl<const N: usize> FoldTask<'_, N> {
    /// Tile after tile.
    pub(super) fn crossed(
        &self,
        cross: &Cross<N>,
        out: *mut u8,
        parallel: usize,
        limit: Option<usize>,
    ) {
        let (folding, size, len) = (self.folding, self.folding.size, cross.along.0);
        let (down, across) = (cross.down.0, cross.across.0);
        // Whole vectors of columns.
        let vector = WIDE / size;
        let wide = (TILE / size / len / vector).clamp(1, across.div_ceil(vector)) * vector;
        let (tiles, parts) = (across.div_ceil(wide), down.div_ceil(HIGH));
        let units = cross.around.iter().map(|(size, _)| size).product::<usize>();
        let (shared, this) = (SendPtr::new(out), self);
        Self::each(units * tiles * parts, parallel, limit, |tasks| {
            let (out, bytes) = (shared.get(), wide * len * size);
            let mut room = aligned_buf::room(bytes);
            let tile = room.as_mut_ptr().cast::<u8>();
            // SAFETY: there is room for so many. Columns that are not there are computed too, and
            // thrown away.
            unsafe { tile.write_bytes(0, bytes) };
            let mut folded = Spare::new(folding, wide);
            let mut held = None;
            for task in tasks {
                let (turned, part) = (task / parts, task % parts);
                let (unit, column) = (turned / tiles, turned % tiles * wide);
                let count = wide.min(across - column);
                let at = moved(&cross.around, unit);
                if held != Some(turned) {
                    let first = this.place(cross.many, at, cross.across, column);
                    let loops =
                        [(len, cross.along.1[cross.many]), (count, cross.across.1[cross.many])];
                    // SAFETY: the leaf reaches every element along its own strides, and the tile
                    // has room for `len` rows of `wide`.
                    unsafe {
                        if this.level == Level::BASELINE {
                            pack_apart::<false>(size, tile, wide, first, &loops);
                        } else {
                            pack_apart::<true>(size, tile, wide, first, &loops);
                        }
                    }
                    held = Some(turned);
                }
                for row in part * HIGH..down.min((part + 1) * HIGH) {
                    let one = this.place(cross.one, at, cross.down, row);
                    let first = (unit * down + row) * across + column;
                    // SAFETY: every row of a tile writes results of its own, of which there are
                    // `count`; the row and the tile have `len` elements each.
                    unsafe {
                        folded.through(out.add(first * folding.gives), count, |to| {
                            let one = (one, cross.along.1[cross.one]);
                            (cross.fold)(to, one, (tile.cast_const(), wide), count, len);
                        });
                    }
                }
            }
        });
    }

    /// Where a leaf is, some steps of an axis from a place on.
    fn place(&self, leaf: usize, at: [isize; N], axis: Axis<N>, steps: usize) -> *const u8 {
        self.leaf(leaf, at[leaf] + axis.1[leaf] * steps.cast_signed())
    }
}
