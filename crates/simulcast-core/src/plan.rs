//! Plans: shapes and a rule resolved into what goes where.
//!
//! | file | what is in it |
//! |---|---|
//! | `resolve.rs` | shapes and a rule in, a plan or an error out; the one loop of all rules |
//! | `plan.rs` | the plan: which operand axis feeds which result axis, strides, offsets, sums, cost |
//! | `offsets.rs` | the offsets of all elements, one after another |
//! | `source.rs` | where a result axis gets its elements from, and the strides that follow |
//! | `size.rs` | the rule for one axis, and products that never wrap |
//! | `stored.rs` | a plan as it is written down |

mod offsets;
pub(crate) mod resolve;
mod size;
mod source;

#[cfg(feature = "alloc")]
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod plan;
#[cfg(all(feature = "alloc", feature = "serde"))]
mod stored;

#[cfg(feature = "alloc")]
pub use {
    plan::{Alignment, Cost, Plan},
    resolve::{broadcast_shapes, resolve},
};

pub use offsets::{Offsets, offsets};
pub use resolve::{resolve_into, sources_into, strides_into};
pub use size::{elements, join};
pub use source::{Source, offset_through, row_major_into, view_strides_into};
