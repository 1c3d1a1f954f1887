//! GitHub's workflow commands and GitLab's Code Quality report.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Notice, Position, Severity, fingerprints};

/// `::warning title=…,file=…,line=…::message`, a line each.
///
/// <https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>
pub(super) fn github(notices: &[Notice]) -> String {
    let mut out = String::new();
    for notice in notices {
        let command = match notice.severity() {
            Severity::Note => "notice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let title = property(&format!("Simulcast {}", notice.label()));
        let _ = write!(out, "::{command} title={title},file={}", property(&notice.file));
        let places = [(notice.start, "line", "col"), (notice.end, "endLine", "endColumn")];
        for (place, line, column) in places {
            let Some(place) = place else { continue };
            let _ = write!(out, ",{line}={}", place.line);
            if let Some(own) = place.column {
                let _ = write!(out, ",{column}={own}");
            }
        }
        let node = notice.node.as_ref().map_or_else(String::new, |node| format!("{node}: "));
        let _ = writeln!(out, "::{}", data(&format!("{node}{}", notice.with_help("\n"))));
    }
    out
}

/// Text of a command, which takes a line.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    text.replace(char::is_control, "?")
}

/// A property of a command, which ends at a comma or a colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A Code Quality report: <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.
pub(super) fn gitlab(notices: &[Notice]) -> Value {
    let prints = fingerprints(notices);
    let issues = notices.iter().zip(prints).map(|(notice, fingerprint)| {
        let severity = match notice.severity() {
            Severity::Note => "info",
            Severity::Warning => "major",
            Severity::Error => "critical",
        };
        // A line is required, also of files that have none.
        let start = notice.start.unwrap_or(Position { line: 1, column: None });
        let end = notice.end.unwrap_or(start);
        let node = notice.node.as_ref().map_or_else(String::new, |node| format!("{node}: "));
        json!({
            "description": format!("{}: {node}{}", notice.label(), notice.with_help("; ")),
            "check_name": notice.code,
            "fingerprint": fingerprint,
            "severity": severity,
            "location": {
                "path": notice.file,
                "lines": { "begin": start.line, "end": end.line },
            },
        })
    });
    Value::Array(issues.collect())
}
