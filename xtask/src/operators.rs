//! The page of ONNX operators, from the table of `simulcast-onnx`.

use std::fs;

use crate::check::read;
use crate::run::root;

const PAGE: &str = "docs/reference/onnx-operators.md";

/// Writes the page anew.
pub(crate) fn write() -> Result<(), String> {
    fs::write(root().join(PAGE), simulcast_onnx::operators_page())
        .map_err(|error| format!("{PAGE}: {error}"))?;
    println!("{PAGE}");
    Ok(())
}

/// The page has what the table says now.
pub(crate) fn check() -> Result<String, String> {
    match read(&root().join(PAGE))? == simulcast_onnx::operators_page() {
        true => Ok(PAGE.into()),
        false => Err(format!("{PAGE} is out of date; run `cargo xtask operators`")),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_of_operators_is_what_the_table_says() {
        super::check().unwrap();
    }
}
