//! Any text: an expression that is shown and read back as itself, or a clear error within the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simulcast::Expr;

fuzz_target!(|text: &str| {
    match Expr::parse(text) {
        Ok(expr) => {
            let shown = expr.to_string();
            let again = Expr::parse(&shown).expect("what is shown is read back");
            assert_eq!(again, expr, "{shown}");
            assert_eq!(again.to_string(), shown);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(text.get(error.span).is_some());
        }
    }
});
