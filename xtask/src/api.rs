//! The public interface of the crates that users add, as text: a change of it is seen in review. And whether every public
//! item has an example.
//!
//! rustdoc's JSON is read, which a stable compiler writes with `RUSTC_BOOTSTRAP=1`; nothing is installed. Its format belongs to
//! a version of the compiler: with another one the step says so and is left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::check::read;
use crate::run::{Step, cargo, output, root};

/// The format that is read here: Rust 1.95's.
const FORMAT: u64 = 57;

/// The crates, and their features.
const CRATES: [(&str, &str); 2] = [("simulcast-core", "alloc,serde"), ("simulcast", "program")];

/// Modules whose own page shows how what is in them is used together.
const SHOWN_TOGETHER: [&str; 2] = ["simulcast::compose::", "simulcast::program::lowered::"];

/// Compares the interface with the text that was accepted, or accepts it.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let accept = match options {
        [] => false,
        ["--accept"] => true,
        _ => return Err("cargo xtask api [--accept]".into()),
    };
    for (name, features) in CRATES {
        let step = Step::new(&format!("the public interface of {name}"));
        let mut doc = cargo(["rustdoc", "-p", name, "--features", features, "--lib", "--"]);
        doc.args(["-Z", "unstable-options", "--output-format", "json"]);
        output(doc.env("RUSTC_BOOTSTRAP", "1"))?;
        let made = root().join(format!("target/doc/{}.json", name.replace('-', "_")));
        let json: Value = serde_json::from_str(&read(&made)?).map_err(|error| error.to_string())?;
        if json["format_version"] != FORMAT {
            let format = &json["format_version"];
            step.skipped(&format!("rustdoc's JSON has format {format}, {FORMAT} is read"))?;
            continue;
        }
        let api = Api::of(&json);
        step.check(|| api.check(name, accept))?;
    }
    Ok(())
}

/// What is public in a crate.
#[derive(Default)]
struct Api {
    /// A line for each item, by its path.
    lines: BTreeSet<String>,
    /// Functions and types that have no example, and whose type has none.
    without_example: Vec<String>,
    items: usize,
}

impl Api {
    fn of(json: &Value) -> Self {
        let mut reader =
            Reader { index: &json["index"], seen: BTreeSet::new(), api: Self::default() };
        let root = reader.item(&json["root"]);
        let name = root["name"].as_str().unwrap_or_default();
        reader.module(root, name);
        reader.api
    }

    fn check(&self, name: &str, accept: bool) -> Result<String, String> {
        if !self.without_example.is_empty() {
            let listed = self.without_example.join("\n  ");
            let count = self.without_example.len();
            return Err(format!("{count} public items of {name} have no example:\n  {listed}"));
        }
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        let file: PathBuf = root().join(format!("crates/{name}/api.txt"));
        if accept {
            fs::write(&file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let accepted = read(&file)?;
        let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
            (accepted.lines().collect(), text.lines().collect());
        let gone = old.difference(&new).map(|line| format!("- {line}"));
        let changes: Vec<String> =
            gone.chain(new.difference(&old).map(|line| format!("+ {line}"))).collect();
        match changes.as_slice() {
            [] => Ok(format!("{} items, each with an example", self.items)),
            _ => Err(format!(
                "it changed; `cargo xtask api --accept` if that is meant:\n{}",
                changes.join("\n")
            )),
        }
    }
}

struct Reader<'j> {
    index: &'j Value,
    /// The items that were visited.
    seen: BTreeSet<String>,
    api: Api,
}

impl<'j> Reader<'j> {
    fn item(&self, id: &Value) -> &'j Value {
        &self.index[id.to_string()]
    }

    /// The items of a module: those that are shown on its own page first, modules in it last.
    fn module(&mut self, module: &'j Value, path: &str) {
        let mut later = Vec::new();
        for id in list(&module["inner"]["module"]["items"]) {
            let mut item = self.item(id);
            let mut name = item["name"].as_str().unwrap_or_default();
            if let Some(used) = item["inner"].get("use") {
                name = used["name"].as_str().unwrap_or_default();
                let target = self.item(&used["id"]);
                if used["is_glob"] == true {
                    self.module(target, path);
                    continue;
                }
                if target.is_null() {
                    let source = used["source"].as_str().unwrap_or_default();
                    self.api.lines.insert(format!("use {source} as {path}::{name}"));
                    continue;
                }
                item = target;
            }
            let path = format!("{path}::{name}");
            match item["inner"].get("module") {
                Some(_) => later.push((item, path)),
                None => self.public(item, &path, false),
            }
        }
        for (item, path) in later {
            if self.seen.insert(item["id"].to_string()) {
                self.module(item, &path);
            }
        }
    }

    /// An item, with what belongs to it. An item that is public in two places is listed where it came first.
    fn public(&mut self, item: &'j Value, path: &str, of_type: bool) {
        if !self.seen.insert(item["id"].to_string()) {
            return;
        }
        let has_example = item["docs"].as_str().is_some_and(|docs| docs.contains("```"));
        self.api.items += 1;
        let together = SHOWN_TOGETHER.iter().any(|module| path.starts_with(module));
        if !has_example && !of_type && !together {
            self.api.without_example.push(path.to_owned());
        }
        let of_type = of_type || has_example;
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next())
        else {
            return;
        };
        let (generics, bounds) = (generics(&inner["generics"]), conditions(&inner["generics"]));
        let non_exhaustive = match list(&item["attrs"]).any(|attr| attr == "non_exhaustive") {
            true => "#[non_exhaustive] ",
            false => "",
        };
        let line = match kind.as_str() {
            "function" => function(inner, path),
            "constant" => format!("const {path}: {}", ty(&inner["type"])),
            "assoc_const" => format!("const {path}: {}", ty(&inner["type"])),
            "static" => format!("static {path}: {}", ty(&inner["type"])),
            "type_alias" => format!("type {path}{generics} = {}{bounds}", ty(&inner["type"])),
            "assoc_type" => {
                let value = if inner["type"].is_null() {
                    String::new()
                } else {
                    format!(" = {}", ty(&inner["type"]))
                };
                format!("type {path}{generics}{}{value}", colon(&inner["bounds"]))
            }
            "trait" => format!("trait {path}{generics}{}{bounds}", colon(&inner["bounds"])),
            kind => format!("{non_exhaustive}{kind} {path}{generics}{bounds}"),
        };
        self.api.lines.insert(line);
        for id in list(&inner["variants"]).chain(list(&inner["kind"]["plain"]["fields"])) {
            self.field(id, path);
        }
        for id in list(&inner["items"]) {
            let item = self.item(id);
            self.public(
                item,
                &format!("{path}::{}", item["name"].as_str().unwrap_or_default()),
                of_type,
            );
        }
        for id in list(&inner["impls"]) {
            self.implementation(self.item(id), path, of_type);
        }
    }

    /// A field, or a variant with its fields.
    fn field(&mut self, id: &Value, path: &str) {
        let item = self.item(id);
        let path = format!("{path}::{}", item["name"].as_str().unwrap_or_default());
        let inner = &item["inner"];
        if let Some(kind) = inner["variant"].get("kind") {
            let types = list(&kind["tuple"]).map(|id| ty(&self.item(id)["inner"]["struct_field"]));
            let types: Vec<String> = types.collect();
            let types =
                if types.is_empty() { String::new() } else { format!("({})", types.join(", ")) };
            self.api.lines.insert(format!("variant {path}{types}"));
            for id in list(&kind["struct"]["fields"]) {
                self.field(id, &path);
            }
        } else if !inner.is_null() {
            self.api.lines.insert(format!("field {path}: {}", ty(&inner["struct_field"])));
        }
    }

    /// What is implemented for a type: its own functions one by one, a trait as one line.
    fn implementation(&mut self, item: &'j Value, path: &str, of_type: bool) {
        let inner = &item["inner"]["impl"];
        if inner["is_synthetic"] == true || !inner["blanket_impl"].is_null() {
            return;
        }
        let (generics, bounds) = (generics(&inner["generics"]), conditions(&inner["generics"]));
        if inner["trait"].is_null() {
            let own = ty(&inner["for"]);
            for id in list(&inner["items"]) {
                let item = self.item(id);
                let name = item["name"].as_str().unwrap_or_default();
                let module = path.rsplit_once("::").map_or("", |(module, _)| module);
                self.public(item, &format!("{module}::{own}::{name}"), of_type);
            }
        } else {
            let line = format!(
                "impl{generics} {} for {}{bounds}",
                trait_(&inner["trait"]),
                ty(&inner["for"])
            );
            self.api.lines.insert(line);
        }
    }
}

/// The elements of a list, none where there is no list.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn joined(values: &Value, each: impl Fn(&Value) -> String, with: &str) -> String {
    list(values).map(each).collect::<Vec<_>>().join(with)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn function(inner: &Value, path: &str) -> String {
    let (sig, header) = (&inner["sig"], &inner["header"]);
    let mut words = String::new();
    for (key, word) in [("is_const", "const "), ("is_unsafe", "unsafe ")] {
        if header[key] == true {
            words += word;
        }
    }
    let inputs = joined(
        &sig["inputs"],
        |input| format!("{}: {}", input[0].as_str().unwrap_or("_"), ty(&input[1])),
        ", ",
    );
    let output =
        if sig["output"].is_null() { String::new() } else { format!(" -> {}", ty(&sig["output"])) };
    let (generics, bounds) = (generics(&inner["generics"]), conditions(&inner["generics"]));
    format!("{words}fn {path}{generics}({inputs}){output}{bounds}")
}

fn ty(value: &Value) -> String {
    let Some((kind, inner)) = value.as_object().and_then(|object| object.iter().next()) else {
        return value.as_str().unwrap_or("_").to_owned();
    };
    let mutable = |constant| if inner["is_mutable"] == true { "mut " } else { constant };
    match kind.as_str() {
        "resolved_path" => trait_(inner),
        "generic" | "primitive" => inner.as_str().unwrap_or_default().to_owned(),
        "tuple" => format!("({})", joined(inner, ty, ", ")),
        "slice" => format!("[{}]", ty(inner)),
        "array" => format!("[{}; {}]", ty(&inner["type"]), text(inner, "len")),
        "borrowed_ref" => {
            let lifetime =
                inner["lifetime"].as_str().map(|name| format!("{name} ")).unwrap_or_default();
            format!("&{lifetime}{}{}", mutable(""), ty(&inner["type"]))
        }
        "raw_pointer" => format!("*{}{}", mutable("const "), ty(&inner["type"])),
        "impl_trait" => format!("impl {}", joined(inner, bound, " + ")),
        "dyn_trait" => {
            format!("dyn {}", joined(&inner["traits"], |one| trait_(&one["trait"]), " + "))
        }
        "qualified_path" => {
            let (own, name) = (ty(&inner["self_type"]), text(inner, "name"));
            match inner["trait"].is_null() || text(&inner["trait"], "path").is_empty() {
                true => format!("{own}::{name}{}", args(&inner["args"])),
                false => format!(
                    "<{own} as {}>::{name}{}",
                    trait_(&inner["trait"]),
                    args(&inner["args"])
                ),
            }
        }
        "function_pointer" => {
            let sig = &inner["sig"];
            format!(
                "fn({}) -> {}",
                joined(&sig["inputs"], |input| ty(&input[1]), ", "),
                ty(&sig["output"])
            )
        }
        other => other.to_owned(),
    }
}

/// A path with its arguments; of its modules only the last name is kept.
fn trait_(value: &Value) -> String {
    let name = text(value, "path").rsplit("::").next().unwrap_or_default();
    format!("{name}{}", args(&value["args"]))
}

fn args(value: &Value) -> String {
    if let Some(inner) = value.get("parenthesized") {
        let output = if inner["output"].is_null() {
            String::new()
        } else {
            format!(" -> {}", ty(&inner["output"]))
        };
        return format!("({}){output}", joined(&inner["inputs"], ty, ", "));
    }
    let inner = &value["angle_bracketed"];
    let one = |arg: &Value| match arg.as_object().and_then(|arg| arg.iter().next()) {
        Some((kind, arg)) if kind == "type" => ty(arg),
        Some((kind, arg)) if kind == "const" => text(arg, "expr").to_owned(),
        Some((_, arg)) => arg.as_str().unwrap_or("_").to_owned(),
        None => "_".to_owned(),
    };
    let equal = |constraint: &Value| {
        let binding = &constraint["binding"];
        match binding.get("equality") {
            Some(value) => {
                format!("{} = {}", text(constraint, "name"), ty(value.get("type").unwrap_or(value)))
            }
            None => format!(
                "{}: {}",
                text(constraint, "name"),
                joined(&binding["constraint"], bound, " + ")
            ),
        }
    };
    let all: Vec<String> =
        list(&inner["args"]).map(one).chain(list(&inner["constraints"]).map(equal)).collect();
    if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
}

fn bound(value: &Value) -> String {
    match value.get("trait_bound") {
        Some(inner) => {
            let maybe = if text(inner, "modifier") == "maybe" { "?" } else { "" };
            let lifetimes =
                joined(&inner["generic_params"], |param| text(param, "name").to_owned(), ", ");
            let lifetimes =
                if lifetimes.is_empty() { lifetimes } else { format!("for<{lifetimes}> ") };
            format!("{lifetimes}{maybe}{}", trait_(&inner["trait"]))
        }
        None => text(value, "outlives").to_owned(),
    }
}

fn colon(bounds: &Value) -> String {
    let all = joined(bounds, bound, " + ");
    if all.is_empty() { all } else { format!(": {all}") }
}

/// The parameters of an item; those that `impl Trait` stands for are shown where it stands.
fn generics(value: &Value) -> String {
    let one = |param: &Value| {
        let (name, kind) = (text(param, "name"), &param["kind"]);
        match (kind.get("type"), kind.get("const")) {
            (Some(inner), _) => format!("{name}{}", colon(&inner["bounds"])),
            (_, Some(inner)) => format!("const {name}: {}", ty(&inner["type"])),
            _ => name.to_owned(),
        }
    };
    let shown =
        list(&value["params"]).filter(|param| param["kind"]["type"]["is_synthetic"] != true);
    let all: Vec<String> = shown.map(one).collect();
    if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
}

fn conditions(value: &Value) -> String {
    let one = |predicate: &Value| {
        let inner = &predicate["bound_predicate"];
        format!("{}{}", ty(&inner["type"]), colon(&inner["bounds"]))
    };
    let all = joined(&value["where_predicates"], one, ", ");
    if all.is_empty() { all } else { format!(" where {all}") }
}
