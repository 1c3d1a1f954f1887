//! `JUnit`'s XML, as Jenkins, GitLab and Azure DevOps read it: a suite for each file, a test case for each finding.
//!
//! What is confirmed or refused is a failure. What is only possible passes, with its text as output: it must not
//! make a build red.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Notice, Severity};

pub(super) fn junit(notices: &[Notice]) -> String {
    let mut files: BTreeMap<&str, Vec<&Notice>> = BTreeMap::new();
    for notice in notices {
        files.entry(&notice.file).or_default().push(notice);
    }
    let failed = |notices: &[&Notice]| notices.iter().filter(|notice| fails(notice)).count();
    let all: Vec<&Notice> = notices.iter().collect();
    // Readers take a report without a test for one of a run that failed.
    let tests = notices.len().max(1);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"simulcast\" tests=\"{tests}\" failures=\"{}\" errors=\"0\">",
        failed(&all)
    );
    if files.is_empty() {
        out.push_str("  <testsuite name=\"simulcast\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\">\n");
        out.push_str(
            "    <testcase name=\"no findings\" classname=\"simulcast\"/>\n  </testsuite>\n",
        );
    }
    for (file, notices) in files {
        let file = escape(file);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{file}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\">",
            notices.len(),
            failed(&notices)
        );
        for notice in notices {
            case(&mut out, notice, &file);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn fails(notice: &Notice) -> bool {
    notice.severity() > Severity::Note
}

fn case(out: &mut String, notice: &Notice, file: &str) {
    let name = escape(&format!("{} {}", notice.place(), notice.code));
    let _ = writeln!(out, "    <testcase name=\"{name}\" classname=\"{file}\">");
    let said = format!("{}: {}: {}", notice.place(), notice.label(), notice.with_help("\n"));
    let said = escape(&said);
    if fails(notice) {
        let (message, kind) = (escape(&notice.message), escape(&notice.code));
        let _ =
            writeln!(out, "      <failure message=\"{message}\" type=\"{kind}\">{said}</failure>");
    } else {
        let _ = writeln!(out, "      <system-out>{said}</system-out>");
    }
    out.push_str("    </testcase>\n");
}

/// Text in XML 1.0, which has no control characters but tabs and line ends.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push('\t'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
