//! Findings: broadcasts that are legal and suspicious; and policies: what to do about them.
//!
//! | file | what is in it |
//! |---|---|
//! | `finding.rs` | the stable codes, and what a finding says |
//! | `certainty.rs` | how sure a finding is, and what makes it surer |
//! | `search.rs` | the search for findings in a plan |
//! | `policy.rs` | strictness and actions, their text, and a policy's verdict on a plan |

mod certainty;
mod finding;
mod policy;
mod search;

pub use certainty::{Certainty, Evidence};
pub use finding::{Finding, FindingCode, Limits};
pub use policy::{Action, Chosen, Policy, PolicyError, Strictness, Verdict};
pub use search::MAX_COMPARED_OPERANDS;
