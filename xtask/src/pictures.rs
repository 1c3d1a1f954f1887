//! The pictures of the documentation and the figures of the specification, all made by `simulcast explain`, and the
//! page that teaches broadcasting by them.

use std::fs;

use crate::check::read;
use crate::run::{cargo, root};

/// A picture of the teaching page.
struct Picture {
    file: &'static str,
    /// The heading: what is to be seen.
    heading: &'static str,
    /// The rule that it teaches.
    text: &'static str,
    /// The words of `simulcast explain`.
    words: &'static [&'static str],
}

/// The pictures in the order in which they teach.
const PICTURES: [Picture; 10] = [
    Picture {
        file: "scalar",
        heading: "A scalar meets anything",
        text: "A scalar has no axes. Every axis of the other operand is one that the scalar lacks, so its only value is repeated along all of them.",
        words: &["2,3", "()"],
    },
    Picture {
        file: "bias",
        heading: "Shapes are aligned on the right",
        text: "The last axes meet, then the ones before them. `bias` has no axis 0, so it is repeated along it: one bias for each column of a batch.",
        words: &["batch:3,5", "bias:5"],
    },
    Picture {
        file: "column-and-row",
        heading: "An axis of size 1 stretches",
        text: "A column of 3 rows meets a row of 4 columns. Where one size is 1 and the other is not, the 1 is repeated; here both operands are, and the result is a table of all pairs. Solid cells are stored, dotted ones repeated: nothing is copied.",
        words: &["3,1", "4"],
    },
    Picture {
        file: "four-axes",
        heading: "Any number of axes, each by itself",
        text: "Each axis is decided alone, so four are no harder than two. From more than three axes on the picture is a table, with the strides of each view: stride 0 is what repeats.",
        words: &["8,1,6,1", "7,1,5"],
    },
    Picture {
        file: "clash",
        heading: "Two sizes that differ, and neither is 1",
        text: "Then there is no result. The axis is named from both ends, and every fix was checked: here the mask lacks the axis in the middle.",
        words: &["image:2,3,4", "mask:2,4"],
    },
    Picture {
        file: "square-outer",
        heading: "The accident: a column meets a row of its own length",
        text: "Predictions of shape (4, 1) minus targets of shape (4,) is legal, and a table of all pairs. Its mean is a number that looks like a loss. This is finding SC102, and the fix is one index.",
        words: &["pred:4,1", "target:4"],
    },
    Picture {
        file: "empty",
        heading: "Size 0 takes the 1 with it",
        text: "There is no element to repeat, so 1 against 0 is 0 (the maximum, 1, would be wrong), and 0 against 3 is an error.",
        words: &["0,3", "3"],
    },
    Picture {
        file: "channels",
        heading: "Another rule: laid on from an axis",
        text: "Under rule `pdpd` the second operand is laid onto the first from an axis that the operator names, not from the right: a bias for each channel without writing `bias[:, None]`.",
        words: &["--rule", "pdpd:1", "image:2,3,4", "bias:3"],
    },
    Picture {
        file: "broadcast-axes",
        heading: "Another rule: the new axes are named",
        text: "nGraph's Broadcast takes the result's shape and the axes that are new. The operand's axes are the others, in order, and nothing has to have size 1.",
        words: &["--rule", "axes:3,2/1", "arg:3"],
    },
    Picture {
        file: "named",
        heading: "Another rule: axes meet by name",
        text: "With names, position does not count: `w` meets `w` and `h` meets `h`, whatever their order. An accident such as the one above cannot happen.",
        words: &["--rule", "named", "image:h=2,w=3", "weight:w=3,h=2"],
    },
];

const OPENING: &str = "\
# Broadcasting in ten pictures

Broadcasting lets tensors of different shapes meet: each is shown at one common shape, and what is missing is repeated without being
copied. Two steps, always the same: *align* the axes, then *stretch* those that have size 1. The pictures show both.

Each is drawn by the command under it; add `--svg FILE` or `--html FILE`, or omit both for text. `cargo xtask pictures` makes
this page.
";

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
    let mut page = String::from(OPENING);
    let mut files = Vec::new();
    for (number, Picture { file, heading, text, words }) in (1..).zip(&PICTURES) {
        let shown: Vec<String> = words
            .iter()
            .map(|w| if w.contains('(') { format!("'{w}'") } else { (*w).into() })
            .collect();
        let call = shown.join(" ");
        page += &format!(
            "\n## {number}. {heading}\n\n{text}\n\n![{heading}](pictures/{file}.svg)\n\n`simulcast explain {call}`\n"
        );
        files.push((format!("docs/pictures/{file}.svg"), draw(words)?));
    }
    files.push(("docs/pictures.md".into(), page));
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
