//! The `simulcast` command; see the library beside this file.

use std::process::ExitCode;

fn main() -> ExitCode {
    simulcast_cli::run(std::env::args_os().collect(), simulcast_cli::signals::watch).into()
}
