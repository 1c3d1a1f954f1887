//! Which names the engine has: this benchmark is compiled with the engines of older revisions too (`cargo xtask bench
//! --against`), and only `src/names.rs` knows the difference.

use std::{env, fs};

fn main() {
    let home = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| ".".into());
    let file = format!("{home}/../crates/simulcast/src/by_name/program.rs");
    println!("cargo::rustc-check-cfg=cfg(older_names, gradients)");
    println!("cargo::rerun-if-changed={file}");
    let text = fs::read_to_string(file).unwrap_or_default();
    if !text.contains("pub struct TypedProgram") {
        println!("cargo::rustc-cfg=older_names");
    }
    // Older engines have no gradients of programs.
    if text.contains("JointProgram") {
        println!("cargo::rustc-cfg=gradients");
    }
}
