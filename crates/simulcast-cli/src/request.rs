//! A request: operands with their names, and a rule, from the words of the command line.

use std::collections::BTreeSet;
use std::fmt;

use simulcast_core::{Dims, Request, RuleError, ShapeText};
use simulcast_files::ReadLimits;

use crate::Failure;
use crate::args::RequestArgs;
use crate::file_word::FileWord;

/// The request that the words of the command line make.
pub(crate) fn request(args: &RequestArgs) -> Result<Request, Failure> {
    let usage = |error: &dyn fmt::Display| Failure::Usage(error.to_string());
    let rule = args.rule.parse().map_err(|error: RuleError| usage(&error))?;
    let operands: Result<Vec<_>, _> = args.shapes.iter().map(|word| operand(word)).collect();
    let operands = operands.map_err(Failure::Usage)?;
    let mut request = Request::new(rule, operands).map_err(|error| usage(&error))?;
    let mut known = BTreeSet::new();
    for word in &args.sizes {
        let (name, size) = symbol_size(word).map_err(Failure::Usage)?;
        if !known.insert(name) {
            return Err(Failure::Usage(format!("{name} is set twice")));
        }
        request.set(name, size).map_err(|error| usage(&error))?;
    }
    Ok(request)
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
    let shape = file.open(&ReadLimits::default()).and_then(|store| store.shape(file.array));
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
