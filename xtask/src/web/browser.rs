//! The page's tests: the site, shown on localhost, in a real Chromium that Playwright drives.
//!
//! Chromium and Node are the machine's; Playwright's driver and axe-core are installed under `target/`, at the versions
//! and with the digests of `web/tests/package-lock.json`. The tests themselves are `web/tests/*.mjs`.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::{answer_all, build, requests};
use crate::check::read;
use crate::run::{Step, cargo, command, exists, install_packages, output, program, root};

/// The names of the browser.
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/// Runs every test of the page, or says why it cannot.
pub(crate) fn test() -> Result<(), String> {
    let step = Step::new("Chromium, Node and what drives them");
    let (browser, tools) = match (browser(), tools()) {
        (Ok(browser), Ok(tools)) => (browser, tools),
        (Err(why), _) | (_, Err(why)) => return step.skipped(&why),
    };
    step.check(|| Ok(browser.clone()))?;
    let folder = build(false)?;
    Step::new("the command").run(cargo(["build", "--quiet", "-p", "simulcast-cli"]))?;
    let asked = tools.join("requests.jsonl");
    Step::new("what the command says to random requests").check(|| requests::write(&asked))?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let served = folder.clone();
    std::thread::spawn(move || answer_all(&listener, &served));
    let mut run = command("node", ["--test-reporter=spec"]);
    run.env("WEB_SITE", format!("http://localhost:{port}/")).env("WEB_FOLDER", &folder);
    run.env("WEB_COMMAND", root().join("target/debug/simulcast"));
    run.env("WEB_TOOLS", &tools).env("WEB_BROWSER", browser).env("WEB_REQUESTS", &asked);
    run.arg(root().join("web/tests/run.mjs"));
    Step::new("the page in the browser").run(run)
}

/// The browser's program.
fn browser() -> Result<String, String> {
    if let Some(browser) = BROWSERS.into_iter().find_map(program) {
        return Ok(browser);
    }
    install_packages(&["chromium"], "Chromium is needed; ")?;
    program("chromium").ok_or_else(|| "no Chromium after its installation".into())
}

/// The folder in which Playwright and axe-core are, installed where their versions changed.
fn tools() -> Result<PathBuf, String> {
    if !(exists("node") && exists("npm")) {
        install_packages(&["nodejs", "npm"], "Node and npm are needed; ")?;
    }
    let home = root().join("target/web-tests");
    let lock = read(&root().join("web/tests/package-lock.json"))?;
    let done = home.join("installed.json");
    if fs::read_to_string(&done).is_ok_and(|made| made == lock) {
        return Ok(home);
    }
    install(&home)?;
    fs::write(&done, lock).map_err(|error| error.to_string())?;
    Ok(home)
}

fn install(home: &Path) -> Result<(), String> {
    fs::create_dir_all(home).map_err(|error| error.to_string())?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(root().join("web/tests").join(file), home.join(file))
            .map_err(|error| format!("{file}: {error}"))?;
    }
    let mut npm = command("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    output(npm.current_dir(home)).map(drop)
}
