//! `simulcast explain`: the table, the picture, the findings and the fixes.

mod pasted;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use simulcast_core::{
    Action, Chosen, Finding, FindingCode, Limits, Outcome, Policy, Strictness, Verdict,
};
use simulcast_explain::{Subject, TextOptions, json, page, svg, text};

use crate::args::ExplainArgs;
use crate::request::request;
use crate::{Failure, output};

// Implements E_BROADCAST_ANY_FUNC_2220.
pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    if args.request.shapes == ["-"] {
        return pasted(args);
    }
    let policy = policy(args)?;
    let to_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    let outputs = [to_stdout(&args.svg), to_stdout(&args.html), args.json];
    if outputs.iter().filter(|out| **out).count() > 1 {
        return Err(Failure::Usage("only one of --svg -, --html - and --json can print".into()));
    }
    if args.max_growth.is_nan() {
        return Err(Failure::Usage("--max-growth is not a number".into()));
    }
    if args.request.shapes.is_empty() {
        return Err(Failure::Usage("give at least one shape, such as 8,1,6,1 7,1,5".into()));
    }
    let request = request(&args.request)?;
    let outcome = request.resolve();
    let (mut refused, findings) = match outcome.judge(&policy, &request.names) {
        Some(verdict) => judged(verdict),
        None if args.deny.is_empty() && policy.strictness == Strictness::Numpy => {
            (None, Vec::new())
        }
        None => {
            let why = "--deny and --strictness need shapes whose ranks are known";
            return Err(Failure::Usage(why.into()));
        }
    };
    if let Outcome::Error(error) = &outcome {
        refused = Some(error.to_string());
    }
    let subject = Subject::of(&outcome, &request.names, &findings);
    match (show(args, &subject), refused) {
        // A reader that has seen enough changes nothing about the verdict.
        (Err(Failure::Closed), Some(message)) => Err(Failure::Refused(message)),
        (Err(failure), _) => Err(failure),
        // On a terminal the explanation has said it; elsewhere one line does.
        (Ok(()), Some(_)) if said_on_terminal(args, &outcome) => {
            Err(Failure::Refused(String::new()))
        }
        (Ok(()), Some(message)) => Err(Failure::Refused(message)),
        (Ok(()), None) => Ok(()),
    }
}

/// Explains the messages on standard input, which bring their own shapes, names and rules.
fn pasted(args: &ExplainArgs) -> Result<(), Failure> {
    let request = &args.request;
    let pictures = args.svg.is_some() || args.html.is_some();
    if pictures || !request.sizes.is_empty() || !args.deny.is_empty() || !args.allow.is_empty() {
        let why = "with - for a text that holds messages, there are --json, --ascii and --color";
        return Err(Failure::Usage(why.into()));
    }
    pasted::run(args)
}

/// What a verdict denies, as text, and every finding that is shown.
fn judged(Verdict { denied, warned, .. }: Verdict) -> (Option<String>, Vec<Finding>) {
    let said: Vec<String> = denied.iter().map(|finding| format!("denied: {finding}")).collect();
    let refused = (!said.is_empty()).then(|| said.join("\n"));
    (refused, denied.into_iter().chain(warned).collect())
}

/// Writes the files that were asked for, and the text unless one of them took its place.
fn show(args: &ExplainArgs, subject: &Subject<'_>) -> Result<(), Failure> {
    let plain = TextOptions { unicode: !args.ascii, color: false };
    let stdout = |path: &Option<_>| path.as_deref() == Some(Path::new("-"));
    if let Some(path) = &args.svg {
        output::write(path, svg(subject))?;
    }
    if let Some(path) = &args.html {
        output::write(path, page(subject, &text(subject, plain)))?;
    }
    if stdout(&args.svg) || stdout(&args.html) {
        return Ok(());
    }
    if args.json {
        return output::put(format!("{}\n", json(subject)));
    }
    // anstream takes the colours out where they are not wanted.
    output::print(&text(subject, TextOptions { color: true, ..plain }))
}

fn said_on_terminal(args: &ExplainArgs, outcome: &Outcome) -> bool {
    let is_text = !args.json && args.svg.is_none() && args.html.is_none();
    is_text && matches!(outcome, Outcome::Error(_)) && io::stdout().is_terminal()
}

/// The command fails on findings that are denied, and shows what explanations show.
fn policy(args: &ExplainArgs) -> Result<Policy, Failure> {
    let mut policy = Policy::for_explanations().with_strictness(args.strictness);
    policy.limits =
        Limits { growth: args.max_growth, bytes: args.max_bytes, element: args.element_size };
    for (words, action) in [(&args.allow, Action::Allow), (&args.deny, Action::Deny)] {
        for word in words {
            let chosen = chosen(word)?;
            if let Some(code) = chosen.code
                && policy.is_fixed_by_strictness(code)
                && action != Action::Deny
            {
                return Err(Failure::Usage(format!(
                    "what the strictness forbids is denied: {code} cannot be allowed at strictness {}",
                    policy.strictness
                )));
            }
            policy = policy.with_chosen(&chosen, action);
        }
    }
    Ok(policy)
}

fn chosen(word: &str) -> Result<Chosen, Failure> {
    let (code, _) = Chosen::split(word).map_err(|error| Failure::Usage(error.to_string()))?;
    word.parse().map_err(|_| {
        let known: Vec<String> =
            FindingCode::ALL.iter().map(|code| format!("  {code}  {}", code.title())).collect();
        Failure::Usage(format!("there is no finding {code:?}; there are\n{}", known.join("\n")))
    })
}
