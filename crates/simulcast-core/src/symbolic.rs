//! Symbolic shapes: resolution when sizes are not known yet.
//!
//! A rule's frame depends on ranks alone, so it serves here unchanged; what differs is how sizes
//! meet. Resolution is sound: what it says of the result holds for every choice of sizes that
//! satisfies the recorded constraints, the constraints hold exactly where the rule accepts the
//! sizes, and an error means that no choice can succeed on the axes it names.
//!
//! | on one axis | result | constraint |
//! |---|---|---|
//! | `n`, `n` | `n` | |
//! | `n`, 1 | `n` | |
//! | `n`, 4 | 4 | n is 1 or 4 |
//! | `n`, `m` | `bcast(n, m)` | n and m are equal or one is 1 |
//! | `n` above 1, `m` | `n` | m is 1 or n |
//!
//! A symbol is never taken to differ from 1 unless its interval says so. Results are operands of the
//! next resolution: `bcast(n, m)` is the common size of its symbols, whose agreement was recorded
//! where it came up.
//!
//! | file | what is in it |
//! |---|---|
//! | `resolve_dims.rs` | symbolic resolution, its outcome, and binding it to sizes |
//! | `solver.rs` | what meets on each axis, and what follows for symbols |
//! | `constraint.rs` | what must hold for sizes once they are known |
//! | `dim.rs` | dimensions: sizes, intervals, symbols |
//! | `interval.rs` | intervals of sizes, and their join |
//! | `text.rs` | shapes as people write them |

mod interval;

#[cfg(feature = "alloc")]
mod constraint;
#[cfg(feature = "alloc")]
mod dim;
#[cfg(feature = "alloc")]
mod resolve_dims;
#[cfg(feature = "alloc")]
mod solver;
#[cfg(feature = "alloc")]
mod text;

pub use interval::Interval;

#[cfg(feature = "alloc")]
pub use {
    constraint::{Constraint, Term},
    dim::{Dim, Dims, Symbol, format_shape},
    resolve_dims::{SymbolicPlan, resolve_dims},
    text::{ParseError, ShapeText},
};
