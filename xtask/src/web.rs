//! The site: the page in the browser with its compiled code, and the documentation around it, in `target/web`.
//!
//! ```text
//!  web/src/*.rs ─▶ simulcast.wasm       one module, called with JSON: no generated glue
//!  web/page/src/*.js ─▶ app.js          the modules in one script, so that the page loads with four requests
//!  web/page/*.{html,css} ─▶ themselves
//!  crates/simulcast-onnx/models ─▶ models/    examples, loaded when one is clicked
//!  docs/**/*.md ─▶ docs/**/*.html       `site.rs`
//! ```
//!
//! Nothing is needed but Rust; rustup adds the target once. The tests need Chromium and Node as well.

mod browser;
mod requests;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::check::read;
use crate::run::{Step, cargo, ensure_target, root};
use crate::site;

const TARGET: &str = "wasm32-unknown-unknown";
/// The modules of the page, each after those that it imports.
const MODULES: [&str; 13] = [
    "dom",
    "engine",
    "link",
    "axes",
    "cells",
    "slices",
    "parts",
    "take",
    "shapes",
    "error",
    "expression",
    "model",
    "main",
];
const PORT: u16 = 8417;

pub(crate) use browser::test;

pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    match options {
        [] => build(false).map(drop),
        ["--api"] => build(true).map(drop),
        ["--serve"] => serve(PORT),
        ["--serve", port] => serve(port.parse().map_err(|_| format!("{port:?} is no port"))?),
        _ => Err("web takes --api, or --serve and after it a port".into()),
    }
}

/// Builds the site, with the references of the crates if they are asked for; its folder.
pub(crate) fn build(with_api: bool) -> Result<PathBuf, String> {
    let out = root().join("target/web");
    ensure_target(TARGET)
        .map_err(|why| format!("the target {TARGET} cannot be installed: {}", why.trim()))?;
    Step::new("the compiled code of the page").run(cargo([
        "build",
        "--quiet",
        "-p",
        "simulcast-web",
        "--profile",
        "wasm",
        "--target",
        TARGET,
    ]))?;
    if with_api {
        let crates = [
            "simulcast",
            "simulcast-core",
            "simulcast-explain",
            "simulcast-files",
            "simulcast-onnx",
        ];
        let mut docs =
            cargo(["doc", "--quiet", "--no-deps", "--all-features", "--target-dir", "target/api"]);
        docs.args(crates.iter().flat_map(|name| ["-p", *name]));
        Step::new("the references of the crates").run(docs)?;
    }
    Step::new("the site, in target/web").check(|| {
        let failed = |error: std::io::Error| error.to_string();
        match fs::remove_dir_all(&out) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        fs::create_dir_all(&out).map_err(failed)?;
        let built = root().join("target").join(TARGET).join("wasm/simulcast_web.wasm");
        let bytes = fs::copy(built, out.join("simulcast.wasm")).map_err(failed)?;
        for file in ["index.html", "style.css"] {
            fs::copy(root().join("web/page").join(file), out.join(file)).map_err(failed)?;
        }
        fs::write(out.join("app.js"), script()?).map_err(failed)?;
        fs::create_dir_all(out.join("models")).map_err(failed)?;
        for model in ["loss.onnx", "clash.onnx", "legacy.onnx"] {
            let own = root().join("crates/simulcast-onnx/models").join(model);
            fs::copy(own, out.join("models").join(model)).map_err(failed)?;
        }
        if with_api {
            copy_folder(&root().join("target/api/doc"), &out.join(site::API)).map_err(failed)?;
        }
        let pages = site::write(&out)?;
        Ok(format!("{} kB of compiled code, {pages} pages", bytes / 1000))
    })?;
    Ok(out)
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &to)?,
            false => drop(fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}

/// The modules in one script, each in a scope of its own that gives what it exports.
fn script() -> Result<String, String> {
    let mut out = String::from("\"use strict\";\n(() => {\n");
    for name in MODULES {
        let text = read(&root().join(format!("web/page/src/{name}.js")))?;
        let scope = scope(&text).map_err(|why| format!("{name}.js: {why}"))?;
        out += &format!("const {name}_js = (() => {{\n{scope}}})();\n");
    }
    out += "})();\n";
    Ok(out)
}

/// A module as the body of a function: imports read from the scopes of others, exports are returned.
fn scope(text: &str) -> Result<String, String> {
    let (mut out, mut exported) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some(import) = line.strip_prefix("import ") {
            let parts = import.strip_suffix(".js\";").and_then(|own| own.split_once(" from \"./"));
            let (names, from) = parts.ok_or_else(|| format!("not an import: {line}"))?;
            out += &format!("const {names} = {from}_js;\n");
            continue;
        }
        let own = line.strip_prefix("export ");
        if let Some(own) = own {
            let mut words = own.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let kind = |word: &&str| !matches!(*word, "async" | "function" | "class" | "const");
            exported.push(words.find(kind).ok_or_else(|| format!("not an export: {line}"))?);
        }
        out += own.unwrap_or(line);
        out.push('\n');
    }
    out += &format!("return {{ {} }};\n", exported.join(", "));
    Ok(out)
}

/// Builds the site and shows it on localhost until it is stopped.
fn serve(port: u16) -> Result<(), String> {
    let folder = build(false)?;
    let listener = TcpListener::bind(("127.0.0.1", port))
        .map_err(|error| format!("port {port} cannot be used: {error}"))?;
    println!("http://localhost:{port}/ (Ctrl-C ends it)");
    answer_all(&listener, &folder);
    Ok(())
}

/// Answers every request for a file below the folder.
pub(crate) fn answer_all(listener: &TcpListener, folder: &Path) {
    for stream in listener.incoming().flatten() {
        let folder = folder.to_owned();
        std::thread::spawn(move || answer(&stream, &folder));
    }
}

/// One request, one answer. A browser that goes away is no failure.
fn answer(mut stream: &TcpStream, folder: &Path) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let mut lines = BufReader::new(stream.take(1 << 16)).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or("/"));
    // The rest is read, so that closing does not reset the connection.
    for _ in lines.take_while(|line| !line.is_empty()) {}
    let found = match method {
        Some("GET" | "HEAD") => file(target, folder),
        _ => None,
    };
    let (status, kind, bytes) = match found {
        Some((kind, bytes)) => ("200 OK", kind, bytes),
        None => ("404 Not Found", "text/plain", b"not found\n".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-cache\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        bytes.len()
    );
    let _ = stream.write_all(head.as_bytes());
    if method == Some("GET") {
        let _ = stream.write_all(&bytes);
    }
}

/// A file below the folder, and its type.
fn file(target: &str, folder: &Path) -> Option<(&'static str, Vec<u8>)> {
    let path = target.split(['?', '#']).next()?.trim_start_matches('/');
    let path = Path::new(if path.is_empty() { "index.html" } else { path });
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let mut path = folder.join(path);
    if path.is_dir() {
        path.push("index.html");
    }
    let kind = match path.extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "onnx" => "application/octet-stream",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => return None,
    };
    Some((kind, fs::read(path).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_scopes() {
        let text = "import { a, b } from \"./dom.js\";\n/** Doc. */\nexport async function c(x) {\n}\nexport const d = 1;\nconst e = 2;\n";
        let scope = scope(text).unwrap();
        assert_eq!(
            scope,
            "const { a, b } = dom_js;\n/** Doc. */\nasync function c(x) {\n}\nconst d = 1;\nconst e = 2;\nreturn { c, d };\n"
        );
        assert!(super::scope("import dom from \"dom\";\n").is_err());
    }

    #[test]
    fn every_module_is_in_the_script() {
        let files = fs::read_dir(root().join("web/page/src")).unwrap();
        assert_eq!(files.count(), MODULES.len());
        let script = script().unwrap();
        assert!(!script.contains("\nimport ") && !script.contains("\nexport "));
    }

    #[test]
    fn nothing_outside_the_folder_is_served() {
        let folder = root().join("web/page");
        assert!(file("/style.css?v=1", &folder).is_some());
        assert!(file("/", &folder).is_some());
        for target in ["/../Cargo.toml", "//etc/passwd", "/src/../../Cargo.toml", "/none.css"] {
            assert!(file(target, &folder).is_none(), "{target}");
        }
    }
}
