//! Errors: what does not fit, where, and how to fix it.
//!
//! | file | what is in it |
//! |---|---|
//! | `refusal.rs` | one reason as plain data, without allocation |
//! | `broadcast_error.rs` | a refusal with the shapes, every clashing axis, names and fixes |
//! | `fix.rs` | small changes that make shapes broadcast, each checked by resolving again |

mod refusal;

#[cfg(feature = "alloc")]
mod broadcast_error;
#[cfg(feature = "alloc")]
pub(crate) mod fix;

#[cfg(feature = "alloc")]
pub use {
    broadcast_error::{BroadcastError, Clash},
    fix::{Edit, Fix},
};

pub use refusal::{Refusal, Side};
