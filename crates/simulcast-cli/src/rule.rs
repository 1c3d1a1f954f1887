//! The rule as it is written on the command line: `numpy`, `pdpd:1`, `to:2,3`, `axes:2,3/0`.

use simulcast_core::{Rule, RuleKind, ShapeText};

/// A rule that owns its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedRule {
    pub(crate) kind: RuleKind,
    pub(crate) axis: Option<isize>,
    /// The target, or the shape of the result.
    pub(crate) shape: Vec<usize>,
    /// The broadcast axes, the mapping, or the labels of named axes.
    pub(crate) axes: Vec<usize>,
}

impl OwnedRule {
    pub(crate) fn new(kind: RuleKind) -> Self {
        Self { kind, axis: None, shape: Vec::new(), axes: Vec::new() }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name.trim(), Some(parameter.trim())),
            None => (text.trim(), None),
        };
        let kind = match name {
            "uni" => RuleKind::Unidirectional,
            "none" => RuleKind::Exact,
            name => RuleKind::from_name(name).ok_or_else(|| unknown(name))?,
        };
        let mut rule = Self::new(kind);
        match (kind, parameter) {
            (RuleKind::Pdpd | RuleKind::Paddle | RuleKind::Legacy, None) => {}
            (RuleKind::Pdpd | RuleKind::Paddle | RuleKind::Legacy, Some(axis)) => {
                let axis = axis.parse().map_err(|_| format!("{axis:?} is not an axis"))?;
                rule.axis = Some(axis);
            }
            (RuleKind::To | RuleKind::Bidirectional, Some(target)) => rule.shape = sizes(target)?,
            (RuleKind::Axes | RuleKind::Mapping, Some(both)) => {
                let cut = both.split_once('/').or_else(|| both.rsplit_once(':'));
                let (shape, axes) = cut.ok_or_else(|| {
                    format!("rule {name} is written {name}:SHAPE/AXES, such as {name}:2,3/0")
                })?;
                rule.shape = sizes(shape)?;
                rule.axes = if axes.trim().is_empty() { Vec::new() } else { sizes(axes)? };
            }
            (RuleKind::To | RuleKind::Bidirectional, None) => {
                return Err(format!("rule {name} needs a shape, such as {name}:2,3"));
            }
            (RuleKind::Axes | RuleKind::Mapping, None) => {
                return Err(format!("rule {name} needs a shape and axes, such as {name}:2,3/0"));
            }
            (_, None) => {}
            (_, Some(_)) => return Err(format!("rule {name} takes no parameter")),
        }
        Ok(rule)
    }

    pub(crate) fn rule(&self) -> Rule<'_> {
        let (axis, shape, axes) = (self.axis, &self.shape, &self.axes);
        match self.kind {
            RuleKind::Exact => Rule::Exact,
            RuleKind::Unidirectional => Rule::Unidirectional,
            RuleKind::Pdpd => Rule::Pdpd { axis },
            RuleKind::Legacy => Rule::Legacy { axis },
            RuleKind::Paddle => Rule::Paddle { axis },
            RuleKind::Bidirectional => Rule::Bidirectional { target: shape },
            RuleKind::To => Rule::To { target: shape },
            RuleKind::Axes => Rule::Axes { shape, broadcast_axes: axes },
            RuleKind::Mapping => Rule::Mapping { shape, axes_mapping: axes },
            RuleKind::Named => Rule::Named { labels: axes },
            _ => Rule::Numpy,
        }
    }
}

pub(crate) fn unknown(name: &str) -> String {
    let names: Vec<&str> = RuleKind::ALL.iter().map(|kind| kind.name()).collect();
    format!("there is no rule {name:?}; there are {}", names.join(", "))
}

fn sizes(text: &str) -> Result<Vec<usize>, String> {
    let shape: ShapeText = text.parse().map_err(|error| format!("{error}"))?;
    shape.dims.sizes().ok_or_else(|| format!("{text:?} must have known sizes"))
}
