//! `simulcast explain -`: the broadcasting errors in a log, a traceback or an issue.

use std::io::{self, Read as _};

use serde_json::json;
use simulcast_explain::{SCHEMA, TextOptions, read_messages};

use crate::args::ExplainArgs;
use crate::{Failure, output};

/// More of a text is not read: logs may be endless.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Explains each message on standard input.
pub(super) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(Failure::Usage(format!("the text has more than {TEXT_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8_lossy(&bytes);
    let messages = read_messages(&text);
    if args.json {
        let listed: Vec<_> = messages.iter().map(simulcast_explain::Message::json).collect();
        output::put(format!("{}\n", json!({ "schema": SCHEMA, "messages": listed })))?;
    } else {
        let options = TextOptions { unicode: !args.ascii, color: true };
        let said: Vec<String> = messages.iter().map(|message| message.text(options)).collect();
        output::print(&said.join("\n"))?;
    }
    match messages.is_empty() {
        true => Err(Failure::Refused("no message about broadcasting in the text".into())),
        false => Ok(()),
    }
}
