//! Names of operands and axes: they never change what a rule does, save for [`Rule::Named`].

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::{OwnedRule, Refusal, Rule};

/// What operands and their axes are called. An empty text stands for no name.
///
/// ```
/// use simulcast_core::Names;
///
/// let names = Names::of(["image"]);
/// assert_eq!((names.operand(0).as_str(), names.operand(1).as_str()), ("image", "B"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Names {
    /// The operands' names.
    pub operands: Vec<String>,
    /// The names of each operand's axes.
    pub axes: Vec<Vec<String>>,
}

impl Names {
    /// Names for operands, none for axes.
    pub fn of<S: ToString>(operands: impl IntoIterator<Item = S>) -> Self {
        let operands = operands.into_iter().map(|name| name.to_string()).collect();
        Self { operands, axes: Vec::new() }
    }

    /// The name of an operand: the one given, or `A` to `Z`, then `X26` and so on.
    #[must_use]
    pub fn operand(&self, operand: usize) -> String {
        match self.operands.get(operand) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => match u8::try_from(operand).ok().and_then(|n| b'A'.checked_add(n)) {
                Some(letter @ b'A'..=b'Z') => char::from(letter).to_string(),
                _ => format!("X{operand}"),
            },
        }
    }

    /// The name of an operand's axis, if it has one.
    #[must_use]
    pub fn axis(&self, operand: usize, axis: usize) -> Option<&str> {
        let name = self.axes.get(operand)?.get(axis)?;
        (!name.is_empty()).then_some(name)
    }
}

/// Names of axes as the labels that [`Rule::Named`] takes.
///
/// ```
/// use simulcast_core::{NamedAxes, resolve};
///
/// let named = NamedAxes::new(&[&["b", "c"][..], &["w", "c"]])?;
/// let plan = resolve(named.as_rule(), &[[32, 3], [8, 3]])?;
/// assert_eq!(plan.shape(), [32, 3, 8]);
/// assert_eq!(named.names(), ["b", "c", "w"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAxes {
    labels: Vec<usize>,
    names: Vec<String>,
}

impl NamedAxes {
    /// The names of each operand's axes.
    ///
    /// # Errors
    ///
    /// [`Refusal::Unnamed`] for an empty name, [`Refusal::Duplicate`] for a name that an operand
    /// has twice.
    pub fn new<A: AsRef<[S]>, S: AsRef<str>>(axes: &[A]) -> Result<Self, Refusal> {
        // The label of each name, and the last operand that had each label.
        let (mut known, mut last) = (BTreeMap::<&str, usize>::new(), Vec::new());
        let mut this = Self { labels: Vec::new(), names: Vec::new() };
        for (operand, own) in axes.iter().enumerate() {
            for (axis, name) in own.as_ref().iter().enumerate() {
                let name = name.as_ref();
                if name.is_empty() {
                    return Err(Refusal::Unnamed { operand, axis });
                }
                let label = *known.entry(name).or_insert(this.names.len());
                match last.get_mut(label) {
                    Some(last) if *last == operand => {
                        return Err(Refusal::Duplicate { operand, axis });
                    }
                    Some(last) => *last = operand,
                    None => {
                        last.push(operand);
                        this.names.push(name.to_string());
                    }
                }
                this.labels.push(label);
            }
        }
        Ok(this)
    }

    /// The rule under which these axes meet by name.
    #[must_use]
    pub fn as_rule(&self) -> Rule<'_> {
        Rule::Named { labels: &self.labels }
    }

    /// One label for each axis of each operand, operand after operand, as [`Rule::Named`] takes them.
    #[must_use]
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// The rule, which then owns the labels.
    #[must_use]
    pub fn into_rule(self) -> OwnedRule {
        OwnedRule::Named { labels: self.labels }
    }

    /// The names of the result's axes.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_without_a_name_are_lettered() {
        let names = Names::of(["pred", ""]);
        let called = |operand| names.operand(operand);
        assert_eq!([called(0), called(1), called(25), called(26)], ["pred", "B", "Z", "X26"]);
        assert_eq!(called(300), "X300");
        assert_eq!(names.axis(0, 0), None);
    }

    // [E_BROADCAST_ANY_ERR_0040]
    #[test]
    fn axes_need_distinct_names() {
        let refused = NamedAxes::new(&[&["b"][..], &["c", ""]]);
        assert_eq!(refused, Err(Refusal::Unnamed { operand: 1, axis: 1 }));
        let refused = NamedAxes::new(&[&["b"][..], &["c", "b", "c"]]);
        assert_eq!(refused, Err(Refusal::Duplicate { operand: 1, axis: 2 }));
    }
}
