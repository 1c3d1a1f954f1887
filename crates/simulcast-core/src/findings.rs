//! Findings: broadcasts that are legal and suspicious; and policies: what to do about them.
//!
//! | file | what is in it |
//! |---|---|
//! | `finding.rs` | the stable codes, and what a finding says |
//! | `search.rs` | the search for findings in a plan |
//! | `policy.rs` | strictness and actions, their text, and a policy's verdict on a plan |

mod finding;
mod policy;
mod search;

pub use finding::{Finding, FindingCode, Limits};
pub use policy::{Action, Policy, PolicyError, Strictness, Verdict};
pub use search::MAX_COMPARED_OPERANDS;
