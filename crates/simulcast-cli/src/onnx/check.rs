//! `simulcast onnx check`: every broadcast of models, in text, in the formats of continuous integration, and
//! beside a baseline of findings that are known.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use simulcast_core::Action;
use simulcast_explain::{Baseline, Format, Notice, TextOptions, format_notices, report_path};
use simulcast_onnx::{Check, CheckPolicy, Model, check};

use super::{load_with, sizes};
use crate::args::OnnxCheckArgs;
use crate::{Failure, output};

/// A model that was checked.
struct Checked {
    path: PathBuf,
    /// The path as reports write it.
    file: String,
    model: Model,
    found: Check,
}

// Implements E_BROADCAST_ANY_FUNC_2290.
pub(super) fn run(args: &OnnxCheckArgs) -> Result<(), Failure> {
    let page = args.html.as_deref() == Some(Path::new("-"));
    if page && args.json {
        return Err(Failure::Usage("only one of --html - and --json can print".into()));
    }
    if args.models.len() > 1 && (args.html.is_some() || args.json) {
        let why = "--html and --json are of one model; --format json is of several";
        return Err(Failure::Usage(why.into()));
    }
    let policy = policy(args)?;
    let sizes = sizes(&args.sizes)?;
    let known = args.baseline.as_deref().map(baseline).transpose()?;
    let folder = std::env::current_dir().unwrap_or_default();
    let (mut all, mut unread) = (Vec::new(), Vec::new());
    for path in &args.models {
        let file = report_path(&path.to_string_lossy(), &folder.to_string_lossy());
        let read = load_with(path, args.trust_names).and_then(|model| {
            let about = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
            let found = check(&model, &sizes, &policy).map_err(about)?;
            Ok((model, found))
        });
        match read {
            Ok((model, found)) => all.push(Checked { path: path.clone(), file, model, found }),
            // One file that is no model does not hide what is found in the others.
            Err(Failure::Usage(why)) if args.models.len() > 1 => unread.push((file, why)),
            Err(failure) => return Err(failure),
        }
    }
    let written = args.write_baseline.as_deref().map(|path| write_baseline(path, &all));
    let written = written.transpose()?;
    for known in known.iter().chain(&written) {
        for one in &mut all {
            one.found.retain_new(&one.file, known);
        }
    }
    // GitHub reads standard error too: no line may begin with a name of the model.
    let is_named = args.models.len() > 1 || args.format == Format::Github;
    let mut failures: Vec<String> = all.iter().flat_map(|one| failures(one, is_named)).collect();
    failures.extend(unread.iter().map(|(_, why)| format!("error: {}", one_line(why))));
    let failed = failures.join("\n");
    let verdict = match (unread.is_empty(), failures.is_empty()) {
        (false, _) => Err(Failure::Shown(failed, 2)),
        (true, false) => Err(Failure::Refused(failed)),
        (true, true) => Ok(()),
    };
    match (show(args, &all, &unread, page), verdict) {
        // A reader that has seen enough changes nothing about the verdict.
        (Ok(()) | Err(Failure::Closed), Err(verdict)) => Err(verdict),
        (shown, _) => shown,
    }
}

/// A text as one line.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], "?")
}

fn policy(args: &OnnxCheckArgs) -> Result<CheckPolicy, Failure> {
    let mut policy = CheckPolicy::default();
    for (words, action) in [(&args.allow, Action::Allow), (&args.deny, Action::Deny)] {
        for word in words {
            policy = policy.with(word, action).map_err(Failure::Usage)?;
        }
    }
    Ok(policy)
}

/// Why a model fails, a line each, with its name where that is asked for.
fn failures(one: &Checked, is_named: bool) -> Vec<String> {
    let lines = one.found.failures();
    match is_named {
        false => lines,
        true => lines.into_iter().map(|line| format!("{}: {line}", one_line(&one.file))).collect(),
    }
}

/// More of a file is not read: a device has no end.
const BASELINE_BYTES_MAX: u64 = 1 << 26;

fn baseline(path: &Path) -> Result<Baseline, Failure> {
    let about = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    let mut text = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(BASELINE_BYTES_MAX).read_to_end(&mut text));
    read.map_err(|error| about(error.to_string()))?;
    let text = String::from_utf8(text)
        .map_err(|_| about("not a baseline of findings: it is no text".into()))?;
    Baseline::parse(&text).map_err(|error| about(error.to_string()))
}

/// Writes every finding into a baseline, which then knows them.
fn write_baseline(path: &Path, all: &[Checked]) -> Result<Baseline, Failure> {
    if path == Path::new("-") {
        return Err(Failure::Usage("--write-baseline takes the name of a file".into()));
    }
    let notices: Vec<Notice> =
        all.iter().flat_map(|one| one.found.finding_notices(&one.file)).collect();
    let text = Baseline::text_of(&notices);
    output::write(path, &text)?;
    Baseline::parse(&text).map_err(|error| Failure::Usage(error.to_string()))
}

/// Writes the page that was asked for, and prints the report unless something took its place.
fn show(
    args: &OnnxCheckArgs,
    all: &[Checked],
    unread: &[(String, String)],
    page: bool,
) -> Result<(), Failure> {
    if let (Some(path), [one]) = (&args.html, all) {
        let title = one.path.file_name().unwrap_or(one.path.as_os_str());
        output::write(path, one.found.html(&one.model, &title.to_string_lossy()))?;
    }
    if page {
        return Ok(());
    }
    if let (true, [one]) = (args.json, all) {
        return output::put(format!("{}\n", one.found.json(&one.model)));
    }
    let notices = || -> Vec<Notice> {
        let of_file = |(file, why): &(String, String)| Notice::new("model", None, &**why, &**file);
        let found = all.iter().flat_map(|one| one.found.notices(&one.file));
        found.chain(unread.iter().map(of_file)).collect()
    };
    match (args.format, args.quiet) {
        (Format::Text, false) => {
            let text: Vec<String> = all.iter().map(|one| text(one, args.models.len())).collect();
            output::print(&text.join("\n"))
        }
        (Format::Text, true) => {
            let notices = notices();
            match notices.is_empty() {
                true => Ok(()),
                false => output::print(&format_notices(&notices, Format::Text)),
            }
        }
        (format, _) => output::put(format_notices(&notices(), format)),
    }
}

fn text(one: &Checked, models: usize) -> String {
    // anstream takes the colours out where they are not wanted.
    let options = TextOptions { color: true, ..TextOptions::default() };
    let text = one.found.text_within(&one.model, options, output::columns());
    match models {
        0 | 1 => text,
        _ => format!("{}: {text}", simulcast_explain::terminal_safe(&one.file)),
    }
}
