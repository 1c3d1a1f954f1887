//! Rules: the dialects of broadcasting.
//!
//! | rule | source | operands | in words |
//! |---|---|---|---|
//! | [`Exact`](Rule::Exact) | OpenVINO "None" | N | all shapes equal |
//! | [`Numpy`](Rule::Numpy) | SONNX Broadcast, OpenVINO "Numpy", ONNX multidirectional | N | right-align, pad with 1 on the left; on each axis the sizes other than 1 agree |
//! | [`Unidirectional`](Rule::Unidirectional) | ONNX unidirectional | N | as `Numpy`, and the result is the first operand's shape |
//! | [`Pdpd`](Rule::Pdpd) | OpenVINO "PDPD" | 2 | B is laid onto A from `axis`; only B stretches |
//! | [`Legacy`](Rule::Legacy) | ONNX opsets 1 to 6, `broadcast=1` | 2 | as `Pdpd`, and nothing but a single element may hang over A's end |
//! | [`Paddle`](Rule::Paddle) | Paddle 3 element-wise | 2 | the shorter is laid onto the longer from `axis`; both stretch |
//! | [`Bidirectional`](Rule::Bidirectional) | OpenVINO "Bidirectional", ONNX `Expand` | 1 | as `Numpy` against a target; the result may be larger than the target |
//! | [`To`](Rule::To) | NumPy `broadcast_to` | 1 | as `Numpy`, and the result is the target |
//! | [`Axes`](Rule::Axes) | nGraph `Broadcast` | 1 | the operand's shape is `shape` without `broadcast_axes` |
//! | [`Mapping`](Rule::Mapping) | OpenVINO `Broadcast`, mode explicit | 1 | operand axis k feeds result axis `axes_mapping[k]` |
//! | [`Named`](Rule::Named) | xarray, einops | N | axes meet by name, never by position |
//!
//! | file | what is in it |
//! |---|---|
//! | `rule.rs` | every rule: its variant, its row of facts, its frame |
//! | `owned.rs` | rules that own their parameters, and their text |
//! | `frame.rs` | what a rule comes down to once ranks are known: where axes are laid, and the loop's step |
//! | `layout.rs` | a frame applied to ranks: the result axis of each axis of each operand |
//! | `names.rs` | names of operands and axes; axes that meet by name |

pub(crate) mod frame;
mod rule;

#[cfg(feature = "alloc")]
mod layout;
#[cfg(feature = "alloc")]
mod names;
#[cfg(feature = "alloc")]
mod owned;

#[cfg(feature = "alloc")]
pub use {
    layout::Layout,
    names::{NamedAxes, Names},
    owned::{OwnedRule, RuleError},
};

#[cfg(feature = "alloc")]
pub(crate) use rule::{Fixed, Unranked};
pub use rule::{Parameters, Parts, Rule, RuleKind, RuleOf};
