//! A request: operands with their names, and a rule, from the words of the command line.

use std::collections::BTreeSet;

use simulcast_core::{Dim, Dims, NamedAxes, Names, OwnedRule, Refusal, Rule, RuleKind, ShapeText};
use simulcast_explain::Outcome;
use simulcast_files::Limits;

use crate::Failure;
use crate::args::RequestArgs;
use crate::file_word::FileWord;

/// Operands, their names, and the rule.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) rule: OwnedRule,
    pub(crate) shapes: Vec<Dims>,
    pub(crate) names: Names,
}

impl Request {
    pub(crate) fn new(args: &RequestArgs) -> Result<Self, Failure> {
        let mut rule: OwnedRule =
            args.rule.parse().map_err(|error| Failure::Usage(format!("{error}")))?;
        let (mut shapes, mut names) = (Vec::new(), Names::default());
        for word in &args.shapes {
            let shape = operand(word).map_err(Failure::Usage)?;
            let by_name = rule.kind == RuleKind::Named;
            names.axes.push(if by_name { shape.axis_names() } else { shape.axes });
            names.operands.push(shape.name.unwrap_or_default());
            shapes.push(shape.dims);
        }
        let mut known = BTreeSet::new();
        for word in &args.sizes {
            let (name, size) = symbol_size(word).map_err(Failure::Usage)?;
            if !known.insert(name) {
                return Err(Failure::Usage(format!("{name} is set twice")));
            }
            set(&mut shapes, name, size).map_err(Failure::Usage)?;
        }
        if rule.kind == RuleKind::Named {
            rule.axes = labels(&names).map_err(Failure::Usage)?;
        }
        Ok(Self { rule, shapes, names })
    }

    /// Resolves the shapes.
    pub(crate) fn resolve(&self) -> Outcome {
        Outcome::of(&self.rule, &self.shapes, &self.names)
    }
}

/// An operand: shape text, or an array in a file; either may have a name before it.
fn operand(word: &str) -> Result<ShapeText, String> {
    let (name, text) = match word.split_once([':', '=']) {
        Some((name, text)) if FileWord::new(text).is_some() && !name.contains(['/', '\\', '.']) => {
            (Some(name), text)
        }
        _ => (None, word),
    };
    let Some(file) = FileWord::new(text) else {
        return word.parse().map_err(|error| format!("{error}"));
    };
    let shape = file.open(&Limits::default()).and_then(|store| store.shape(file.array));
    let shape = shape.map_err(|error| error.to_string())?;
    let name = name.or(file.array).map(str::to_owned).or_else(|| file.stem());
    Ok(ShapeText { name, axes: vec![String::new(); shape.len()], dims: Dims::from(&shape[..]) })
}

/// `N=4`: a symbol and its size.
pub(crate) fn symbol_size(word: &str) -> Result<(&str, usize), String> {
    let parsed = word.split_once('=');
    let parsed = parsed.and_then(|(name, size)| Some((name.trim(), size.trim().parse().ok()?)));
    parsed.ok_or_else(|| format!("{word:?} is not SYMBOL=SIZE"))
}

/// Puts a size in the place of a symbol, wherever it stands.
fn set(shapes: &mut [Dims], name: &str, size: usize) -> Result<(), String> {
    let mut found = false;
    for dims in shapes {
        let Dims::Ranked(dims) = dims else { continue };
        for dim in dims {
            let Dim::Symbol(symbol) = dim else { continue };
            if *symbol.name != *name {
                continue;
            }
            if !symbol.range.contains(size) {
                return Err(format!("{name} must be in {}, not {size}", symbol.range));
            }
            *dim = Dim::Size(size);
            found = true;
        }
    }
    if found { Ok(()) } else { Err(format!("there is no symbol {name:?}")) }
}

fn labels(names: &Names) -> Result<Vec<usize>, String> {
    let named = NamedAxes::new(&names.axes).map_err(|refusal| match refusal {
        Refusal::Unnamed { operand, axis } => {
            format!("axis {axis} of {} has no name; write b=32,c=3", names.operand(operand))
        }
        Refusal::Duplicate { operand, axis } => {
            let twice = names.axis(operand, axis).unwrap_or_default();
            format!("{} has two axes with the name {twice:?}", names.operand(operand))
        }
        other => other.to_string(),
    })?;
    match named.rule() {
        Rule::Named { labels } => Ok(labels.to_vec()),
        _ => Ok(Vec::new()),
    }
}
