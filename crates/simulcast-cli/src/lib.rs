//! The `simulcast` command: shapes in, an explanation or a shape out; arrays in, a result out.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 fine,
//! 1 incompatible or denied, 2 usage, 128 and its number after a signal.
//!
//! The command is a library so that the Python wheel carries it too, without a second copy of the
//! engine: `main.rs` and the wheel's `simulcast` both call [`run`].

mod args;
mod codes;
mod devices;
mod eval;
mod explain;
mod file_word;
mod jsonl;
mod onnx;
mod output;
mod request;
mod shape;
pub mod signals;

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::{CommandFactory as _, Parser as _};

use args::{Cli, Command};

// Implements E_BROADCAST_ANY_FUNC_2240.
/// Why the command failed, and with which exit code.
#[derive(Debug)]
enum Failure {
    /// The shapes do not broadcast, or a finding was denied: exit code 1. The text has been, or
    /// is to be, said on standard error where it is not empty.
    Refused(String),
    /// The command cannot be understood, or a file cannot be read or written: exit code 2.
    Usage(String),
    /// An expression that cannot be read or computed, shown with its place: that exit code.
    Shown(String, u8),
    /// Standard output was closed by the reader (EPIPE): exit with 0, print nothing.
    Closed,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Usage(error.to_string())
    }
}

/// Runs the command on the words of a command line, the program's name first, and returns its exit
/// code.
///
/// `watch` is called before a command that may write files; it has to see to it that a signal ends
/// the process through [`signals::clean_up`].
pub fn run(args: Vec<OsString>, watch: impl FnOnce()) -> u8 {
    let cli = match Cli::try_parse_from(words(args)) {
        Ok(cli) => cli,
        // Help and versions come as errors too, with exit code 0.
        Err(error) => {
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    cli.color.write_global();
    if let Err(error) = simulcast::check_environment() {
        let _ = writeln!(
            anstream::stderr(),
            "error: {}",
            simulcast_explain::terminal_safe(&error.to_string())
        );
        return 2;
    }
    if matches!(cli.command, Command::Eval(_) | Command::Onnx(_)) {
        watch();
    }
    let outcome = match cli.command {
        Command::Shape(args) => shape::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Onnx(command) => onnx::run(&command),
        Command::Devices => devices::run(),
        Command::Codes { code } => codes::run(code.as_deref()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "simulcast", &mut script);
            output::put(&script)
        }
        Command::Man { command } => man(command.as_deref()),
    };
    let (message, code) = match outcome {
        Ok(()) | Err(Failure::Closed) => return 0,
        Err(Failure::Refused(message)) => (message, 1),
        Err(Failure::Shown(message, code)) => (message, code),
        Err(Failure::Usage(message)) => (format!("error: {message}"), 2),
    };
    if !message.is_empty() {
        let _ = writeln!(anstream::stderr(), "{}", simulcast_explain::terminal_safe(&message));
    }
    code
}

/// The words of the command line; shapes among them are no options.
fn words(words: Vec<OsString>) -> Vec<OsString> {
    let commands = ["explain", "shape", "eval", "onnx"];
    let command = words.iter().skip(1).find_map(|word| commands.iter().find(|own| word == **own));
    match command {
        Some(name @ (&"explain" | &"shape")) => {
            let options = Cli::command();
            let options = options.find_subcommand(name);
            let takes_value = |word: &OsString| {
                let named = |arg: &&clap::Arg| {
                    let long = arg.get_long().is_some_and(|long| *word == *format!("--{long}"));
                    let short = arg.get_short().is_some_and(|short| *word == *format!("-{short}"));
                    (long || short) && arg.get_action().takes_values()
                };
                options.is_some_and(|own| own.get_arguments().any(|arg| named(&arg)))
            };
            let mut is_value = false;
            let one = |word: OsString| {
                let own = std::mem::replace(&mut is_value, takes_value(&word));
                if own { word } else { shape_word(word) }
            };
            words.into_iter().map(one).collect()
        }
        _ => words,
    }
}

/// A shape may begin with -1, for a size that is not known; no option begins with a digit.
fn shape_word(word: OsString) -> OsString {
    match word.to_str() {
        Some(text)
            if text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit()) =>
        {
            format!("({text})").into()
        }
        _ => word,
    }
}

/// The manual page of the command, or of one of its subcommands.
fn man(name: Option<&str>) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    let page = match name {
        None => command,
        Some(name) => command
            .find_subcommand(name)
            .ok_or_else(|| Failure::Usage(format!("there is no command {name:?}")))?
            .clone(),
    };
    // After `build`, a subcommand's display name is the command's and its own: simulcast-explain.
    let title = page.get_display_name().unwrap_or("simulcast").to_owned();
    let mut text = Vec::new();
    clap_mangen::Man::new(page).title(title).render(&mut text)?;
    output::put(&text)
}
