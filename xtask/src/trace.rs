//! Traceability: each requirement with the WhyML declarations that state or prove it, the Rust items
//! that implement it, and the tests that check it.
//!
//! The links stand where the work is done: a comment `(* [TAG] *)` above a WhyML declaration,
//! `// Implements TAG.` above a Rust item, `// [TAG]` above a test. The table is generated from
//! them, and a link that leads nowhere is an error.
//!
//! A tag belongs to whatever follows it, so an item that is inserted below a tag would take it over.
//! Three checks prevent that: a comment of tags must touch its item or its declaration (above a WhyML
//! module a blank line may stand); the requirement's row names its Rust items, and those names must be the names
//! found; and a test takes a tag only where nothing but attributes stands between.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::check::{files, named_by_tests, read, tags};
use crate::run::root;

const TABLE: &str = "spec/traceability.md";
const PAGE: &str = "spec/broadcast.md";

/// A row of the requirements: the tag, and whether a proof is promised.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) tag: String,
    pub(crate) statement: String,
    pub(crate) proved: bool,
    /// The names of the items that implement it, as the row says.
    pub(crate) items: Vec<String>,
}

#[derive(Default)]
struct Links {
    proofs: Vec<String>,
    items: Vec<String>,
    tests: Vec<String>,
}

/// Writes the table anew.
pub(crate) fn write() -> Result<(), String> {
    std::fs::write(root().join(TABLE), table()?).map_err(|error| format!("{TABLE}: {error}"))?;
    println!("{TABLE}");
    Ok(())
}

/// Every link leads somewhere, and the table is what the links say.
pub(crate) fn check() -> Result<String, String> {
    let table = table()?;
    if read(&root().join(TABLE))? != table {
        return Err(format!("{TABLE} is out of date; run `cargo xtask trace`"));
    }
    let requirements = requirements()?;
    same_page(&requirements, &read(&root().join(PAGE))?)?;
    Ok(format!("{} requirements traced", requirements.len()))
}

/// The specification names requirements only, and every one that is proved.
fn same_page(requirements: &[Requirement], page: &str) -> Result<(), String> {
    let named: Vec<String> = page.lines().flat_map(tags).collect();
    if let Some(tag) = named.iter().find(|tag| !requirements.iter().any(|own| own.tag == **tag)) {
        return Err(format!("{PAGE} names {tag}, which is no requirement"));
    }
    match requirements.iter().find(|own| own.proved && !named.contains(&own.tag)) {
        Some(own) => Err(format!("{PAGE} does not name {}, which is proved", own.tag)),
        None => Ok(()),
    }
}

/// The requirements in their order. A proof is promised by the heading that a row stands under.
pub(crate) fn requirements() -> Result<Vec<Requirement>, String> {
    let text = read(&root().join("spec/requirements.md"))?;
    let (mut found, mut proved) = (Vec::<Requirement>::new(), false);
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            proved = heading.ends_with("(proved)");
        }
        let Some(row) = line.strip_prefix("| `E_") else { continue };
        let row = row.trim_end().trim_end_matches('|');
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [tag, statement, .., items] = cells[..] else { continue };
        let tag = format!("E_{}", tag.trim_end_matches('`'));
        if found.iter().any(|known| known.tag == tag) {
            return Err(format!("{tag} is defined twice"));
        }
        let items = items.split("`, `").map(|item| item.trim_matches('`').to_owned()).collect();
        found.push(Requirement { tag, statement: statement.into(), proved, items });
    }
    Ok(found)
}

fn table() -> Result<String, String> {
    let requirements = requirements()?;
    let mut links: BTreeMap<String, Links> =
        requirements.iter().map(|r| (r.tag.clone(), Links::default())).collect();
    let mut link = |tag: &str, place: String, kind: fn(&mut Links) -> &mut Vec<String>| {
        let Some(links) = links.get_mut(tag) else {
            return Err(format!("{place} names {tag}, which is no requirement"));
        };
        let list = kind(links);
        if !list.contains(&place) {
            list.push(place);
        }
        Ok(())
    };
    for file in files(&root().join("spec/why3"), "mlw")? {
        for (name, tag) in declarations(&read(&file)?) {
            link(&tag, format!("{}.{name}", stem(&file)), |links| &mut links.proofs)?;
        }
    }
    let crates = files(&root().join("crates"), "rs")?;
    for file in crates.into_iter().chain(files(&root().join("conformance"), "rs")?) {
        let (source, place) = (read(&file)?, shown(&file));
        for (name, tag) in implemented(&source) {
            link(&tag, format!("{place}: {name}"), |links| &mut links.items)?;
        }
        for (name, tag) in named_by_tests(&source) {
            link(&tag, format!("{place}: {name}"), |links| &mut links.tests)?;
        }
    }
    let mut out = String::from(
        "# Traceability\n\nRequirement → WhyML declaration → Rust item → tests. Generated by `cargo xtask trace` \
         from the tags in\n[requirements.md](requirements.md), in `spec/why3`, and in the Rust sources.\n",
    );
    for Requirement { tag, statement, proved, items: named } in &requirements {
        let Some(Links { proofs, items, tests }) = links.get(tag) else { continue };
        same_items(tag, named, items)?;
        for (what, list, needed) in [
            ("WhyML declaration", proofs, *proved),
            ("Rust item", items, true),
            ("test", tests, true),
        ] {
            if needed && list.is_empty() {
                return Err(format!("no {what} names {tag}"));
            }
        }
        let _ = write!(out, "\n## {tag}\n\n{statement}\n\n");
        let not_modelled = vec!["not modelled".to_owned()];
        let proofs = if proofs.is_empty() { &not_modelled } else { proofs };
        for (what, list) in [("WhyML", proofs), ("Rust", items), ("tests", tests)] {
            let _ = writeln!(out, "- {what}: {}", quoted(list));
        }
    }
    Ok(out)
}

/// The items below the tag are those that the requirement's row names: a function that was inserted
/// between a tag and its item would otherwise be certified in its place.
fn same_items(tag: &str, named: &[String], found: &[String]) -> Result<(), String> {
    let name =
        |place: &String| place.split_once(": ").map_or(&**place, |(_, name)| name).to_owned();
    let mut found_names: Vec<String> = found.iter().map(name).collect();
    let mut named = named.to_vec();
    found_names.sort();
    named.sort();
    if found_names == named {
        return Ok(());
    }
    Err(format!(
        "spec/requirements.md says that {tag} is implemented by {}; in the code the tag stands above {}",
        quoted(&named),
        quoted(found)
    ))
}

fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|item| format!("`{item}`")).collect();
    quoted.join(", ")
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn shown(file: &Path) -> String {
    let file: PathBuf = file.strip_prefix(root()).map_or_else(|_| file.into(), PathBuf::from);
    file.display().to_string()
}

/// The WhyML declarations that follow a comment with tags, as `Module.name`.
fn declarations(source: &str) -> Vec<(String, String)> {
    let (mut found, mut pending, mut module) = (Vec::new(), Vec::new(), String::new());
    let (mut in_comment, mut touches) = (false, true);
    for line in source.lines().map(str::trim) {
        in_comment |= line.starts_with("(*");
        if in_comment {
            pending.extend(tags(line));
            in_comment = !line.ends_with("*)");
            touches = true;
            continue;
        }
        let mut words = line.split_whitespace();
        match words.next() {
            Some("module" | "theory") => {
                module = words.next().unwrap_or_default().to_owned();
                found.extend(pending.drain(..).map(|tag| (module.clone(), tag)));
            }
            Some(
                "lemma" | "goal" | "predicate" | "function" | "let" | "val" | "type" | "exception",
            ) => {
                let qualifier = ["rec", "ghost", "lemma", "function", "predicate", "constant"];
                let name = words.find(|word| !qualifier.contains(word)).unwrap_or_default();
                let name = name.trim_end_matches([':', '(']);
                // A tag that does not touch a declaration names none; its requirement then lacks one.
                pending.truncate(if touches { pending.len() } else { 0 });
                found.extend(pending.drain(..).map(|tag| (format!("{module}.{name}"), tag)));
            }
            // Only a module may stand a blank line below its tags.
            None => touches = false,
            Some(_) => pending.clear(),
        }
    }
    found
}

/// The Rust items that follow a comment `// Implements …`.
fn implemented(source: &str) -> Vec<(String, String)> {
    let (mut found, mut pending, mut reading) = (Vec::new(), Vec::new(), false);
    let mut in_attribute = false;
    for line in source.lines().map(str::trim) {
        in_attribute |= line.starts_with("#[");
        if in_attribute {
            // An attribute may take several lines.
            in_attribute = !line.ends_with(']');
            continue;
        }
        let comment = line.starts_with("//") && !line.starts_with("///");
        reading = comment && (reading || line.starts_with("// Implements "));
        if reading {
            pending.extend(tags(line));
        } else if line.is_empty() {
            pending.clear();
        } else if !line.starts_with("///") {
            let name = item_name(line);
            found.extend(pending.drain(..).map(|tag| (name.clone(), tag)));
        }
    }
    found
}

/// `join` of `pub const fn join(…`, the whole line of an `impl`.
fn item_name(line: &str) -> String {
    let mut words = line.split_whitespace();
    let keyword =
        words.find(|word| ["fn", "struct", "enum", "trait", "const", "mod"].contains(word));
    let keyword =
        if keyword == Some("const") && line.contains(" fn ") { words.next() } else { keyword };
    match keyword.and_then(|_| words.next()) {
        Some(name) => name.split(['(', '<', ':', ';']).next().unwrap_or(name).to_owned(),
        None => line.trim_end_matches(" {").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_take_the_tags_above_them() {
        let source = "module M\n  (** says [E_BROADCAST_A_1]\n      and [E_BROADCAST_A_2] *)\n  let rec ghost function f (x: int) = x\n\
            (* [E_BROADCAST_A_3] *)\nlemma l: true\nend\n(** [E_BROADCAST_A_4] *)\nmodule N";
        let named: Vec<String> =
            declarations(source).iter().map(|(name, tag)| format!("{name} {tag}")).collect();
        assert_eq!(
            named,
            [
                "M.f E_BROADCAST_A_1",
                "M.f E_BROADCAST_A_2",
                "M.l E_BROADCAST_A_3",
                "N E_BROADCAST_A_4"
            ]
        );
    }

    #[test]
    fn the_page_names_what_is_proved_and_nothing_else() {
        let own = |tag: &str, proved| Requirement {
            tag: tag.into(),
            statement: String::new(),
            proved,
            items: Vec::new(),
        };
        let all = [own("E_BROADCAST_A_1", true), own("E_BROADCAST_A_2", false)];
        assert_eq!(same_page(&all, "[E_BROADCAST_A_1]"), Ok(()));
        assert!(same_page(&all, "[E_BROADCAST_A_2]").is_err_and(|why| why.contains("A_1")));
        assert!(same_page(&all, "[E_BROADCAST_A_1] E_BROADCAST_A_3").is_err());
    }

    #[test]
    fn a_tag_that_touches_nothing_names_nothing() {
        assert_eq!(declarations("(* [E_BROADCAST_A_1] *)\n\nlemma l: true"), []);
        assert_eq!(implemented("// Implements E_BROADCAST_A_1.\n\nfn f() {}"), []);
    }

    #[test]
    fn a_tag_above_another_item_than_the_row_names_is_refused() {
        let named = ["legacy".to_owned()];
        assert_eq!(same_items("T", &named, &["frame.rs: legacy".to_owned()]), Ok(()));
        let refused = same_items("T", &named, &["frame.rs: wide".to_owned()]);
        assert!(refused.is_err_and(|why| why.contains("`frame.rs: wide`")));
        assert!(same_items("T", &named, &["f.rs: legacy".into(), "g.rs: more".into()]).is_err());
        assert!(same_items("T", &named, &[]).is_err());
    }

    #[test]
    fn items_take_the_tags_above_them() {
        let source = "// Implements E_BROADCAST_A_1,\n// E_BROADCAST_A_2.\n/// Doc.\n#[must_use]\n#[a(\n    b,\n)]\npub(crate) const fn join(a: u8) {}\n\
            // [E_BROADCAST_A_3]\n#[test]\nfn t() {}\n// Implements E_BROADCAST_A_4.\nimpl From<A> for B {";
        let named: Vec<String> =
            implemented(source).iter().map(|(name, tag)| format!("{name} {tag}")).collect();
        assert_eq!(
            named,
            ["join E_BROADCAST_A_1", "join E_BROADCAST_A_2", "impl From<A> for B E_BROADCAST_A_4"]
        );
    }
}
