//! Baselines: findings that are known, so that only new ones are reported.
//!
//! A baseline is a JSON file of fingerprints. What stands beside a fingerprint is for people who read the file
//! and for reviews of its changes; it is not compared:
//!
//! ```json
//! {
//!   "schema": 1,
//!   "findings": [
//!     { "fingerprint": "d228cb69…", "code": "SC102", "file": "train.py", "text": "loss = ((pred - target) ** 2).mean()" }
//!   ]
//! }
//! ```

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Value, json};

use super::{FINDINGS_SCHEMA, Notice, fingerprints};

/// Findings that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    known: BTreeSet<String>,
}

/// Why a text is no baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineError(String);

impl fmt::Display for BaselineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a baseline of findings: {}; write it again with --write-baseline", self.0)
    }
}

impl std::error::Error for BaselineError {}

impl Baseline {
    /// Reads the text of a baseline.
    ///
    /// # Errors
    ///
    /// A [`BaselineError`] for what is no JSON, of another schema, or damaged.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let refuse = |why: String| Err(BaselineError(why));
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return refuse(error.to_string()),
        };
        match value.get("schema") {
            Some(schema) if *schema == json!(FINDINGS_SCHEMA) => {}
            Some(schema) => {
                return refuse(format!("its schema is {schema}, not {FINDINGS_SCHEMA}"));
            }
            None => return refuse("it has no schema".into()),
        }
        let Some(findings) = value.get("findings").and_then(Value::as_array) else {
            return refuse("it has no list of findings".into());
        };
        let mut known = BTreeSet::new();
        for (place, finding) in findings.iter().enumerate() {
            let print = finding.get("fingerprint").and_then(Value::as_str);
            let is_print = |text: &&str| {
                text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            };
            match print.filter(is_print) {
                Some(print) => known.insert(print.to_owned()),
                None => return refuse(format!("finding {place} has no fingerprint")),
            };
        }
        Ok(Self { known })
    }

    /// The text of a baseline of these findings, sorted by file and text.
    #[must_use]
    pub fn text_of(notices: &[Notice]) -> String {
        let prints = fingerprints(notices);
        let mut rows: Vec<(&Notice, String)> = notices.iter().zip(prints).collect();
        let key = |notice: &Notice| (notice.file.clone(), notice.node.clone(), notice.code.clone());
        rows.sort_by(|(a, first), (b, second)| (key(a), first).cmp(&(key(b), second)));
        let rows = rows.into_iter().map(|(notice, fingerprint)| {
            let mut row = json!({
                "fingerprint": fingerprint, "code": notice.code, "file": notice.file,
            });
            if let Some(node) = &notice.node {
                row["node"] = json!(node);
            }
            let lines: Vec<&str> = notice.snippet.lines().map(str::trim).collect();
            if !lines.is_empty() {
                row["text"] = json!(lines.join("\n"));
            }
            row
        });
        let rows: Vec<Value> = rows.collect();
        super::pretty(&json!({ "schema": FINDINGS_SCHEMA, "findings": rows }))
    }

    /// For each finding, whether it is new.
    #[must_use]
    pub fn news(&self, notices: &[Notice]) -> Vec<bool> {
        fingerprints(notices).iter().map(|print| !self.known.contains(print)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(file: &str) -> Notice {
        Notice::new("SC102", None, "said", file)
    }

    #[test]
    fn what_is_in_a_baseline_is_not_new() {
        let known = [notice("b.py"), notice("a.py"), notice("a.py")];
        let text = Baseline::text_of(&known);
        let baseline = Baseline::parse(&text).unwrap();
        assert_eq!(baseline.news(&known), [false; 3]);
        // A third one like the two that are known is new.
        let more = [notice("a.py"), notice("a.py"), notice("a.py"), notice("c.py")];
        assert_eq!(baseline.news(&more), [false, false, true, true]);
        let swapped = [notice("a.py"), notice("b.py"), notice("a.py")];
        assert_eq!(Baseline::text_of(&swapped), text, "the order of findings changes no file");
        assert_eq!(Baseline::parse(&Baseline::text_of(&[])), Ok(Baseline::default()));
    }

    #[test]
    fn what_is_damaged_is_said_clearly() {
        let print = "0".repeat(32);
        let cases = [
            ("".to_owned(), "EOF while parsing a value at line 1 column 0"),
            ("{\"schema\": 1, \"findings\": [".into(), "EOF while parsing a list"),
            ("[]".into(), "it has no schema"),
            ("{\"schema\": 2, \"findings\": []}".into(), "its schema is 2, not 1"),
            ("{\"schema\": 1}".into(), "it has no list of findings"),
            (
                format!(
                    "{{\"schema\": 1, \"findings\": [{{\"fingerprint\": \"{print}\"}}, {{}}]}}"
                ),
                "finding 1 has no fingerprint",
            ),
            (
                "{\"schema\": 1, \"findings\": [{\"fingerprint\": \"xyz\"}]}".into(),
                "finding 0 has no",
            ),
        ];
        for (text, said) in cases {
            let error = Baseline::parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("not a baseline of findings: {said}")), "{error}");
            assert!(error.ends_with("write it again with --write-baseline"), "{error}");
        }
        // Nesting without end is no way to exhaust the stack.
        assert!(Baseline::parse(&"[".repeat(100_000)).is_err());
    }
}
