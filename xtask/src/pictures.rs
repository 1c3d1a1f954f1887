//! The pictures of the documentation and the figures of the specification, all made by `simulcast explain`, and the page that shows them.

use std::fs;

use crate::check::read;
use crate::run::{cargo, root};

/// A picture: the file's name, what is to be seen, and the words of the command.
const PICTURES: [(&str, &str, &[&str]); 10] = [
    ("column-and-row", "A column and a row meet in a table.", &["3,1", "4"]),
    (
        "square-outer",
        "A column of predictions meets a row of targets: nearly always a mistake.",
        &["pred:4,1", "target:4"],
    ),
    ("bias", "A bias for each column of a batch.", &["batch:3,5", "bias:5"]),
    (
        "channels",
        "A bias for each channel, by PDPD's axis.",
        &["--rule", "pdpd:1", "image:2,3,4", "bias:3"],
    ),
    ("scalar", "A scalar meets anything.", &["2,3", "()"]),
    ("empty", "A size of 0 takes the 1 with it.", &["0,3", "3"]),
    (
        "broadcast-axes",
        "nGraph's Broadcast: the axes that are new are named.",
        &["--rule", "axes:3,2/1", "arg:3"],
    ),
    (
        "named",
        "Axes meet by name, and order does not count.",
        &["--rule", "named", "image:h=2,w=3", "weight:w=3,h=2"],
    ),
    (
        "four-axes",
        "More than three axes are a table, with the strides of each view.",
        &["8,1,6,1", "7,1,5"],
    ),
    ("clash", "What does not fit, and the fixes.", &["image:2,3,4", "mask:2,4"]),
];

/// The figures of the specification: the whole, what step 1 makes, and what step 2 shows.
const FIGURES: [(&str, &[&str]); 3] = [
    ("broadcast", &["X0:3,1", "X1:4"]),
    ("y", &["--rule", "mapping:1,4/1", "X1:4"]),
    ("f", &["Y0:3,1", "Y1:1,4"]),
];

/// Makes every picture anew.
pub(crate) fn write() -> Result<(), String> {
    for folder in ["docs/pictures", "spec/figures"] {
        fs::create_dir_all(root().join(folder)).map_err(|error| error.to_string())?;
    }
    for (file, text) in files()? {
        fs::write(root().join(&file), text).map_err(|error| format!("{file}: {error}"))?;
        println!("{file}");
    }
    Ok(())
}

/// Every picture is what the command draws now.
pub(crate) fn check() -> Result<String, String> {
    let files = files()?;
    for (file, text) in &files {
        if read(&root().join(file))? != *text {
            return Err(format!("{file} is out of date; run `cargo xtask pictures`"));
        }
    }
    Ok(format!("{} files", files.len()))
}

fn files() -> Result<Vec<(String, String)>, String> {
    let mut gallery = String::from(
        "# Gallery\n\nEvery picture is made by the command under it (`cargo xtask pictures`).\n",
    );
    let mut files = Vec::new();
    for (name, caption, words) in PICTURES {
        let picture = draw(words)?;
        let shown: Vec<String> = words
            .iter()
            .map(|w| if w.contains('(') { format!("'{w}'") } else { (*w).into() })
            .collect();
        gallery += &format!(
            "\n## {caption}\n\n![{caption}](pictures/{name}.svg)\n\n`simulcast explain {} --svg {name}.svg`\n",
            shown.join(" ")
        );
        files.push((format!("docs/pictures/{name}.svg"), picture));
    }
    files.push(("docs/gallery.md".into(), gallery));
    for (name, words) in FIGURES {
        files.push((format!("spec/figures/{name}.svg"), draw(words)?));
    }
    Ok(files)
}

/// The picture of a call; an error has one too, and exit code 1.
fn draw(words: &[&str]) -> Result<String, String> {
    let mut command = cargo(["run", "--quiet", "--package", "simulcast-cli", "--"]);
    let command = command.args(["explain", "--svg", "-"]).args(words);
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.code() {
        Some(0 | 1) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
