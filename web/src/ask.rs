//! A request, and its fields by name and type.

use serde_json::{Map, Value};

/// A request.
pub(crate) struct Ask(Map<String, Value>);

impl Ask {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(_) => Err("a request is an object".into()),
            Err(error) => Err(format!("not JSON: {error}")),
        }
    }

    pub(crate) fn text(&self, key: &str) -> Result<&str, String> {
        self.0.get(key).and_then(Value::as_str).ok_or_else(|| format!("{key} is not a text"))
    }

    /// A text; empty where there is none.
    pub(crate) fn text_or_empty(&self, key: &str) -> Result<&str, String> {
        if self.0.contains_key(key) { self.text(key) } else { Ok("") }
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn texts(&self, key: &str) -> Result<Vec<&str>, String> {
        let list = match self.0.get(key) {
            None => return Ok(Vec::new()),
            Some(list) => list.as_array(),
        };
        let texts = list.and_then(|list| list.iter().map(Value::as_str).collect());
        texts.ok_or_else(|| format!("{key} is not a list of texts"))
    }

    pub(crate) fn number(&self, key: &str) -> Result<usize, String> {
        let number = self.0.get(key).and_then(Value::as_u64);
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| format!("{key} is not a number"))
    }

    /// Sizes by the names of symbols, as an object.
    pub(crate) fn sizes(&self) -> Result<Vec<(&str, usize)>, String> {
        let Some(sizes) = self.0.get("sizes") else { return Ok(Vec::new()) };
        let sizes = sizes.as_object().ok_or("sizes is not an object")?;
        let size = |(name, size): (&'_ String, &Value)| {
            let size = size.as_u64().and_then(|size| usize::try_from(size).ok());
            size.ok_or_else(|| format!("the size of {name} is not a number"))
        };
        sizes.iter().map(|(name, own)| Ok((name.as_str(), size((name, own))?))).collect()
    }
}
