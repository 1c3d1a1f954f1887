//! What the page in the browser calls: explanations, errors, expressions and models.
//!
//! One function, [`answer`]: a request in JSON, with the bytes of a file where there is one; an answer in JSON, with the
//! bytes of a file where one is made. `memory.rs` is how JavaScript calls it.
//!
//! ```text
//!  {"do": "explain", "shapes": ["8,1,6,1", "7,1,5"]}   the explanation of the command, a table, a picture, fixes to apply
//!  {"do": "error", "text": "…"}                        the errors that a pasted text holds, each explained
//!  {"do": "expression", "text": "(x - m) / s", …}      every operation with its type and shape
//!  {"do": "model", "sizes": {"N": 4}}                  the report on the model in the attachment, which is kept
//!  {"do": "broadcast", "index": 0}                     the picture of one of its broadcasts
//!  {"do": "annotate"} {"do": "report"}                 the model with its shapes; a page about it
//!  {"do": "facts"}                                     rules, codes, version
//! ```
//!
//! ```
//! let reply = simulcast_web::answer(r#"{"do": "explain", "shapes": ["3,1", "4"]}"#, Vec::new());
//! assert_eq!(reply.json["explanation"]["result"]["shape"], serde_json::json!([3, 4]));
//! ```
//!
//! # Limits
//!
//! In the browser sizes have 32 bits, so numbers of elements above 4,294,967,295 are `null` here where the command says
//! them; the page counts them itself.

mod ask;
mod expression;
mod facts;
mod files;
mod memory;
mod model;
mod shapes;

use serde_json::{Value, json};

/// What is answered.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The answer; where the request cannot be answered, `{"usage": "why"}`.
    pub json: Value,
    /// A file, where one was made.
    pub attachment: Vec<u8>,
}

impl From<Value> for Reply {
    fn from(json: Value) -> Self {
        Self { json, attachment: Vec::new() }
    }
}

/// Answers a request; `attachment` is the file that it is about.
#[must_use]
pub fn answer(request: &str, attachment: Vec<u8>) -> Reply {
    let answered = ask::Ask::new(request).and_then(|ask| match ask.text("do")? {
        "explain" => shapes::explain(&ask).map(Reply::from),
        "error" => shapes::messages(&ask).map(Reply::from),
        "expression" => expression::explain(&ask).map(Reply::from),
        "model" => model::open(&ask, attachment).map(Reply::from),
        "broadcast" => model::broadcast(&ask).map(Reply::from),
        "annotate" => model::annotated(&ask),
        "report" => model::report(&ask),
        "facts" => Ok(facts::facts().into()),
        other => Err(format!("there is nothing called {other:?} to do")),
    });
    answered.unwrap_or_else(|why| json!({ "usage": why }).into())
}
