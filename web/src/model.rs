//! Models: a report that is kept, pictures of its broadcasts, and the model with its shapes.

use std::cell::RefCell;

use serde_json::{Value, json};
use simulcast_onnx::{AnnotateOptions, Check, CheckPolicy, Model, annotate, check};

use crate::Reply;
use crate::ask::Ask;
use crate::files::chosen;
use crate::shapes::shown;

/// A model that was opened.
struct Opened {
    bytes: Vec<u8>,
    model: Model,
    found: Check,
}

thread_local! {
    static OPENED: RefCell<Option<Opened>> = const { RefCell::new(None) };
}

/// The report on the model in the attachment, or without one on the model that is open.
pub(crate) fn open(ask: &Ask, attachment: Vec<u8>) -> Result<Value, String> {
    let sizes = ask.sizes()?;
    let kept = OPENED.take();
    let (bytes, model) = match (attachment.is_empty(), kept) {
        (true, Some(Opened { bytes, model, .. })) => (bytes, model),
        (true, None) => return Err("the file is empty".into()),
        (false, _) => {
            let model = Model::from_bytes_beside(&attachment, chosen());
            let model = model.map_err(|error| error.to_string())?;
            (attachment, model)
        }
    };
    let found = check(&model, &sizes, &CheckPolicy::default());
    let answer = found.as_ref().map(|found| json!({ "report": found.json(&model) }));
    let answer = answer.map_err(ToString::to_string);
    // A size that is refused leaves the model open.
    let found = found.or_else(|_| check(&model, &[], &CheckPolicy::default()));
    OPENED.set(found.ok().map(|found| Opened { bytes, model, found }));
    answer
}

fn with_opened<T>(then: impl FnOnce(&Opened) -> Result<T, String>) -> Result<T, String> {
    OPENED.with_borrow(|opened| then(opened.as_ref().ok_or("no model is open")?))
}

/// The picture of a broadcast.
pub(crate) fn broadcast(ask: &Ask) -> Result<Value, String> {
    let index = ask.number("index")?;
    with_opened(|opened| {
        let checked = opened.found.broadcasts.get(index);
        let checked = checked.ok_or_else(|| format!("there is no broadcast {index}"))?;
        Ok(shown(&checked.subject()).into())
    })
}

/// The model with its shapes written in.
pub(crate) fn annotated(ask: &Ask) -> Result<Reply, String> {
    let sizes = ask.sizes()?;
    with_opened(|opened| {
        let mut options = AnnotateOptions::default();
        options.sizes = &sizes;
        let files = chosen();
        options.files = Some(&files);
        let made = annotate(opened.bytes.clone(), options).map_err(|error| error.to_string())?;
        let json = json!({ "annotated": made.report.json(), "errors": made.inference.errors() });
        Ok(Reply { json, attachment: made.bytes })
    })
}

/// The page about the model that `simulcast onnx check --html` writes.
pub(crate) fn report(ask: &Ask) -> Result<Reply, String> {
    let title = ask.text_or_empty("title")?;
    with_opened(|opened| {
        let page = opened.found.html(&opened.model, title);
        Ok(Reply { json: json!({}), attachment: page.into_bytes() })
    })
}
