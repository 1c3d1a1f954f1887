//! A check as notices: what the formats of editors and continuous integration are made of, and what a baseline
//! knows.

use simulcast_core::{Certainty, Outcome};
use simulcast_explain::{Baseline, Notice};

use crate::check::{Check, Checked};

/// The code of an error that is no broadcast's.
const MODEL_ERROR: &str = "model";

impl Check {
    /// Every error and finding, at its node in the model's file.
    #[must_use]
    pub fn notices(&self, file: &str) -> Vec<Notice> {
        let mut notices = Vec::new();
        for checked in &self.broadcasts {
            let Outcome::Error(error) = &checked.broadcast.outcome else { continue };
            // The code and the fixes have their own fields.
            let (code, text) = (error.code(), error.to_string());
            let message = text.split_once(": ").map_or(&*text, |(_, message)| message);
            let message = message.split("; help: ").next().unwrap_or_default();
            let mut notice = Notice::new(code, None, message, file);
            let names = error.names();
            notice.help = error.fixes().iter().map(|fix| fix.describe(names)).collect();
            notice.operands =
                (0..error.shapes().len()).map(|operand| names.operand(operand)).collect();
            notice.node = Some(checked.broadcast.node.clone());
            notices.push(notice);
        }
        for problem in &self.inference.problems {
            let mut notice = Notice::new(MODEL_ERROR, None, &*problem.message, file);
            notice.node = Some(format!("{} ({})", problem.node, problem.op));
            notices.push(notice);
        }
        notices.extend(self.finding_notices(file));
        notices
    }

    /// Every finding, at its node. These are what a baseline holds; a model with an error does not work, so that errors
    /// are in none.
    #[must_use]
    pub fn finding_notices(&self, file: &str) -> Vec<Notice> {
        let mut notices: Vec<Notice> =
            self.broadcasts.iter().flat_map(|checked| of_broadcast(checked, file)).collect();
        notices.extend(self.findings.iter().map(|finding| {
            let code = finding.code.as_str();
            let mut notice = Notice::new(code, Some(finding.certainty), &*finding.message, file);
            notice.node = Some(finding.at.clone());
            notice.denied = finding.denied;
            notice
        }));
        notices
    }

    /// Leaves the findings out that a baseline knows.
    pub fn retain_new(&mut self, file: &str, baseline: &Baseline) {
        let mut new = baseline.news(&self.finding_notices(file)).into_iter();
        let mut is_new = || new.next().unwrap_or(true);
        for checked in &mut self.broadcasts {
            let (mut place, denied) = (0, checked.denied);
            checked.findings.retain(|_| {
                let (kept, is_denied) = (is_new(), place < denied);
                place += 1;
                if is_denied && !kept {
                    checked.denied -= 1;
                }
                kept
            });
        }
        self.findings.retain(|_| is_new());
    }
}

/// The findings of a broadcast, those that the policy denies first.
fn of_broadcast(checked: &Checked, file: &str) -> Vec<Notice> {
    let names = &checked.broadcast.names;
    let of = |(place, finding): (usize, &simulcast_core::Finding)| {
        let certainty: Option<Certainty> = Some(finding.certainty);
        let mut notice = Notice::new(finding.code.as_str(), certainty, &*finding.message, file);
        notice.help = finding.fixes.iter().map(|fix| fix.describe(names)).collect();
        notice.operands = finding.operands.iter().map(|operand| names.operand(*operand)).collect();
        notice.node = Some(checked.broadcast.node.clone());
        notice.denied = place < checked.denied;
        notice
    };
    checked.findings.iter().enumerate().map(of).collect()
}
