//! Every stable code: of errors, of findings, and of findings that only a model can show.
//!
//! `--help`, `simulcast codes`, the pages of errors and findings, and JSON take titles and explanations from this list.
//!
//! ```
//! use simulcast_core::Code;
//!
//! let code = Code::find("sc102").unwrap();
//! assert_eq!(code.title, "a column meets a row of the same length");
//! assert_eq!(code.anchor().to_string(), "docs/findings/SC102.md");
//! ```

use core::fmt;

/// What a code is of.
///
/// ```
/// use simulcast_core::{Code, CodeKind};
///
/// assert_eq!(Code::find("E1").map(|code| code.kind), Some(CodeKind::Error));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// An error: shapes do not broadcast, or a question has no answer.
    Error,
    /// A finding: a broadcast that is legal and suspicious.
    Finding,
    /// A finding that only a model can show.
    Model,
}

/// A stable code with what it stands for.
///
/// ```
/// use simulcast_core::Code;
///
/// let code = Code::find("e1").unwrap();
/// assert_eq!((code.code, code.title), ("E1", "incompatible sizes on an axis"));
/// assert!(Code::ALL.iter().any(|other| other == code));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Code {
    /// The code as text: `E1`, `SC102`.
    pub code: &'static str,
    /// What it is of.
    pub kind: CodeKind,
    /// What it stands for, in a few words.
    pub title: &'static str,
    /// What happened, why it matters, and what to do.
    pub explanation: &'static str,
    /// Arguments of `simulcast` that show it; empty where no command line does.
    pub example: &'static str,
}

const fn error(
    code: &'static str,
    title: &'static str,
    explanation: &'static str,
    example: &'static str,
) -> Code {
    Code { code, kind: CodeKind::Error, title, explanation, example }
}

const fn finding(
    code: &'static str,
    title: &'static str,
    explanation: &'static str,
    example: &'static str,
) -> Code {
    Code { code, kind: CodeKind::Finding, title, explanation, example }
}

const fn model(code: &'static str, title: &'static str, explanation: &'static str) -> Code {
    Code { code, kind: CodeKind::Model, title, explanation, example: "" }
}

impl Code {
    /// Every code, errors first, each kind in the order of its numbers.
    pub const ALL: &'static [Self] = &[
        error(
            "E0",
            "a line that is not a request",
            "A line of `simulcast shape --jsonl` is not a JSON object with shapes, or names a rule that \
             does not exist. The message says what is wrong with it; the next line is answered as usual.",
            "",
        ),
        error(
            "E1",
            "incompatible sizes on an axis",
            "Two sizes meet on one axis of the result, they differ, and neither may stretch. Every \
             clashing axis is listed, counted from both ends. A help line is a change that was checked \
             to work.",
            "explain image:2,3,4 mask:2,4",
        ),
        error(
            "E2",
            "a rank that the rule does not allow",
            "An operand has more axes than the rule allows, or another number than it needs. Rule \
             `unidirectional` keeps the first operand's rank, `exact` wants one rank for all.",
            "explain --rule unidirectional 3 2,3",
        ),
        error(
            "E3",
            "an axis out of range",
            "The `axis` of the rule, or an entry of its list of axes, is not an axis of the shape that it \
             counts in.",
            "explain --rule pdpd:3 2,3 3",
        ),
        error(
            "E4",
            "two axes of one operand on one result axis",
            "A result axis can be fed by one axis of an operand only: `axes_mapping` names an axis twice, \
             or an operand has one name on two axes.",
            "explain --rule mapping:2,3/1,1 3,3",
        ),
        error(
            "E5",
            "axes_mapping does not increase",
            "Axes are never transposed by a broadcast, so `axes_mapping` must increase. Transpose the \
             operand first.",
            "explain --rule mapping:2,3/1,0 3,2",
        ),
        error(
            "E6",
            "a number of operands that the rule does not take",
            "`pdpd`, `legacy` and `paddle` take two operands; `to`, `bidirectional`, `axes` and `mapping` \
             take one, and carry the shape that it meets.",
            "explain --rule pdpd 2,3 3 3",
        ),
        error(
            "E7",
            "a list of axes of another length than the operands' ranks",
            "`axes_mapping` needs one entry for each axis of the operand, labels of named axes one for \
             each axis of each operand.",
            "explain --rule mapping:2,3/1 2,3",
        ),
        error(
            "E8",
            "a number of elements that overflows",
            "A shape is only arithmetic, so a result too large to allocate still has a shape; its number \
             of elements, or an offset in it, does not fit in the machine's integers.",
            "",
        ),
        error(
            "E9",
            "a slice that is too short",
            "A buffer that the caller passed has fewer entries than the result has axes.",
            "",
        ),
        error(
            "E10",
            "labels not numbered in the order of first appearance",
            "The labels of rule `named` are result axes: a new name takes the next number, from 0. \
             `NamedAxes` makes them from names.",
            "",
        ),
        error(
            "E11",
            "axes that hang over the end of the other shape",
            "Laid from `axis`, the operand reaches beyond the last axis of the other shape with a size \
             other than 1. Choose a smaller `axis`, or drop the axes that hang over.",
            "explain --rule pdpd:2 2,3,4 4,5",
        ),
        error(
            "E12",
            "an operand or an index that does not exist",
            "A question about a plan names an operand, an axis or an index that it does not have.",
            "",
        ),
        error(
            "E13",
            "a size that a symbolic shape does not allow",
            "A size is not what its symbol, its interval or its rank allows: one symbol stands for one \
             size everywhere.",
            "",
        ),
        error(
            "E14",
            "an axis without a name",
            "Under rule `named` axes meet by name, so each needs one: `b=32,c=3`.",
            "",
        ),
        error(
            "E15",
            "no memory for the result",
            "The shapes broadcast, and the system refused the memory for the result.",
            "",
        ),
        finding(
            "SC100",
            "an operand repeats where the strictness forbids it",
            "The policy's strictness is `exact` or `scalar-only`, and an operand is repeated to the result's \
             shape. Write the repetition out, or choose another strictness.",
            "explain --strictness exact 2,3 3",
        ),
        finding(
            "SC101",
            "both operands grow",
            "Two operands each repeat along an axis where the other does not, so the result is larger \
             than both. An outer product is meant to do that; a loss between predictions and targets is \
             not.",
            "explain --deny SC101 2,1 3",
        ),
        finding(
            "SC102",
            "a column meets a row of the same length",
            "An operand `(n, 1)` meets `(n,)`: every element meets every other, and the result is \
             `(n, n)`. Nearly always the two vectors were to be combined element by element. This is the \
             one finding that warns by default, once it is confirmed that the lengths are not equal by \
             chance; the help line drops or adds the axis.",
            "explain pred:32,1 target:32",
        ),
        finding(
            "SC103",
            "axes were added on the left",
            "An operand that is no scalar has fewer axes than the result. That is how a bias is added, and \
             how an operand is aligned with axes that it was not meant for. The help line writes the axes \
             out.",
            "explain --deny SC103 batch:32,10 bias:10",
        ),
        finding(
            "SC104",
            "an operand would fit elsewhere too",
            "The sizes of an operand also fit at another place, such as `(3,)` on `(3, 3)`: right-alignment \
             decided, not the sizes. Write the axes of size 1 out to say which place is meant.",
            "explain --deny SC104 3,3 3",
        ),
        finding(
            "SC105",
            "the result is much larger than the operands",
            "The result has more than `growth` (16) times the elements of all operands together, or takes \
             more than `bytes`. A computation that does not hold the result, such as a sum in one pass, \
             may be what is needed.",
            "explain 1000,1 1,1000",
        ),
        finding(
            "SC106",
            "a named axis stretches",
            "An axis that has a name has size 1 and is repeated. A name promises a size; 1 is rarely it.",
            "explain --deny SC106 b=1,c=3 b=32,c=3",
        ),
        finding(
            "SC107",
            "an axis of size 1 becomes empty",
            "An axis of size 1 meets one of size 0, so the result is empty. The source documents' maximum \
             calls that an error; raising this finding is their strict reading.",
            "explain --deny SC107 0,3 1,3",
        ),
        finding(
            "SC111",
            "axes of different names meet",
            "Two named axes meet by position, and their names differ. Under rule `named` they would meet \
             by name.",
            "explain --deny SC111 h=2,w=3 w=2,h=3",
        ),
        model(
            "SC109",
            "a declared shape is not the inferred one",
            "The model declares a shape for a value, and inference from the inputs gives another one. The \
             declaration is stale, or the model does not compute what its author believed.",
        ),
        model(
            "SC110",
            "both operands grow, and the result is reduced to one number",
            "A broadcast in which both operands grow (SC101, SC102) is followed by a reduction of the whole \
             result to one number: a loss over every pair instead of every element. The wrong shape leaves \
             no trace in the output.",
        ),
        model(
            "SC112",
            "a slope of the channels' length lies on other axes",
            "The slope of a PRelu has as many elements as the input has channels, and right-alignment lays \
             it on the last axis instead. Give it the shape `(C, 1, 1)`.",
        ),
        model(
            "SC113",
            "a name stands for two sizes of the inputs",
            "Equal names of sizes mean equal sizes in ONNX. Here several sizes of the inputs have one name, and the \
             model needs it to be two numbers. Exporters reuse names, and ONNX Runtime does not compare them; \
             `--trust-names=no` takes them apart.",
        ),
        model(
            "SC114",
            "a constant fixes a size of the inputs that has a name",
            "A size of the inputs has a name, as if it were free, and an initializer that broadcasts with it allows it \
             to be 1 or one number only. An error in the shape of a constant, such as a bias (n, 1), shows nowhere else.",
        ),
    ];

    /// The code of that text, in capitals or not.
    #[must_use]
    pub fn find(text: &str) -> Option<&'static Self> {
        const ALL: &[Code] = Code::ALL;
        ALL.iter().find(|own| own.code.eq_ignore_ascii_case(text))
    }

    /// Where the documentation explains it, below the repository's root.
    #[must_use]
    pub const fn anchor(&self) -> Anchor {
        Anchor { code: self.code, kind: self.kind }
    }
}

/// A place in the documentation: `docs/findings/SC102.md`, `docs/reference/errors.md#e1`.
///
/// ```
/// use simulcast_core::Code;
///
/// let anchor = Code::find("SC102").unwrap().anchor();
/// assert_eq!(anchor.to_string(), "docs/findings/SC102.md");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Anchor {
    code: &'static str,
    kind: CodeKind,
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CodeKind::Finding | CodeKind::Model => write!(f, "docs/findings/{}.md", self.code),
            CodeKind::Error => {
                f.write_str("docs/reference/errors.md#")?;
                self.code.chars().try_for_each(|c| write!(f, "{}", c.to_ascii_lowercase()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_say_something() {
        for (at, own) in Code::ALL.iter().enumerate() {
            assert!(Code::ALL.iter().skip(at + 1).all(|other| other.code != own.code));
            assert!(!own.title.is_empty());
            assert!(own.explanation.ends_with('.'), "{}", own.code);
            assert_eq!(Code::find(own.code), Some(own));
        }
        assert_eq!(Code::find("SC108"), None);
    }
}
