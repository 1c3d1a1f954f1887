//! The documentation as pages around the playground: every Markdown file of `docs/`, the README and the changelog.
//!
//! Pages are made of what is in the repository and need nothing from outside. A link to another page of the repository
//! leads to its page here, one to a file that is not part of the site to nothing at all, so it is only text. Searching
//! happens in the browser, over an index that is loaded when somebody searches. A shell line `$ simulcast explain …` can
//! be opened in the playground; on pages that explain a rule or a finding the playground is part of the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::check::read;
use crate::run::root;

/// The sections of the table of contents: a title, and the folder whose pages it lists.
const SECTIONS: [(&str, &str); 5] = [
    ("Start", ""),
    ("Guides", "docs/guide"),
    ("Reference", "docs/reference"),
    ("Findings", "docs/findings"),
    ("Contributing", "docs/contributing"),
];

/// The pages outside of folders, in their order: what they are made of, and where they go.
const TOP: [(&str, &str); 9] = [
    ("README.md", "docs/index.html"),
    ("docs/pictures.md", "docs/pictures.html"),
    ("docs/why.md", "docs/why.html"),
    ("docs/dialects.md", "docs/dialects.html"),
    ("docs/onnx-backend.md", "docs/onnx-backend.html"),
    ("docs/policy.md", "docs/policy.html"),
    ("docs/security.md", "docs/security.html"),
    ("spec/broadcast.md", "docs/specification.html"),
    ("CHANGELOG.md", "docs/changelog.html"),
];

/// The reference that `cargo doc` makes, as it is published; a site that has its own links to that.
const RUST_API: &str = "https://docs.rs/simulcast";
/// The folder of the site for what `cargo doc` makes.
pub(crate) const API: &str = "api";

/// What the reference of the Python package is made of: modules, and the file of each.
const PYTHON: [(&str, &str); 4] = [
    ("simulcast", "python/simulcast/__init__.py"),
    ("simulcast: functions and classes", "python/simulcast/_simulcast.pyi"),
    ("simulcast.rules", "python/simulcast/rules.py"),
    ("simulcast.onnx", "python/simulcast/onnx.py"),
];

/// A page.
struct Page {
    /// The file that it is made of, from the root.
    source: String,
    /// Where it goes in the site.
    path: String,
    section: usize,
    title: String,
    text: String,
}

/// Writes every page below `out`; how many there are.
pub(crate) fn write(out: &Path) -> Result<usize, String> {
    let pages = pages()?;
    let paths: BTreeMap<String, String> =
        pages.iter().map(|page| (page.source.clone(), page.path.clone())).collect();
    let mut index = Vec::new();
    for page in &pages {
        let made = Body::of(page, &paths);
        let file = out.join(&page.path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        }
        let whole = whole(page, &made, &pages, out.join(API).is_dir());
        fs::write(&file, whole).map_err(|error| format!("{}: {error}", page.path))?;
        for (anchor, title, text) in made.parts {
            let path = page.path.strip_prefix("docs/").unwrap_or(&page.path);
            let link = if anchor.is_empty() { path.into() } else { format!("{path}#{anchor}") };
            index.push(format!(
                "[{},{},{},{}]",
                quoted(&link),
                quoted(&page.title),
                quoted(&title),
                quoted(&text)
            ));
        }
    }
    fs::write(out.join("docs/search.json"), format!("[{}]\n", index.join(",\n")))
        .map_err(|error| error.to_string())?;
    for file in ["docs.css", "docs.js"] {
        fs::copy(root().join("web/page").join(file), out.join("docs").join(file))
            .map_err(|error| format!("{file}: {error}"))?;
    }
    pictures(out)?;
    Ok(pages.len())
}

fn pictures(out: &Path) -> Result<(), String> {
    for (from, to) in [
        ("docs/pictures", "docs/pictures"),
        ("spec/figures", "docs/figures"),
        ("bench/results", "docs/bench"),
    ] {
        let from = root().join(from);
        if !from.is_dir() {
            continue;
        }
        let to = out.join(to);
        fs::create_dir_all(&to).map_err(|error| error.to_string())?;
        for path in [files(&from, "svg")?, files(&from, "png")?].into_iter().flatten() {
            if let Some(name) = path.file_name() {
                fs::copy(&path, to.join(name)).map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(())
}

fn pages() -> Result<Vec<Page>, String> {
    let mut pages = Vec::new();
    for (source, path) in TOP {
        pages.push(page(source.into(), path.into(), 0)?);
    }
    for (section, (_, folder)) in SECTIONS.iter().enumerate().skip(1) {
        let mut own = Vec::new();
        for file in files(&root().join(folder), "md")? {
            let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
            let source = format!("{folder}/{name}");
            let path = source.replace("README.md", "index.md").replace(".md", ".html");
            own.push(page(source, path, section)?);
        }
        if *folder == "docs/reference" {
            own.push(Page {
                source: format!("{folder}/python.md"),
                path: format!("{folder}/python.html"),
                section,
                title: "Python API".into(),
                text: python()?,
            });
        }
        // The page of the folder first.
        own.sort_by_key(|page| (!page.path.ends_with("index.html"), page.path.clone()));
        pages.extend(own);
    }
    Ok(pages)
}

/// The reference of the Python package: what modules say of themselves, and the signatures of what they export.
fn python() -> Result<String, String> {
    let mut out = String::from(
        "# Python API\n\nSignatures as type checkers see them; `help(simulcast.explain)` and its like have the words. \
         NumPy's functions are in [their own list](operations.md), the checks of models in [the guide](../guide/onnx.md).\n",
    );
    for (module, file) in PYTHON {
        let text = read(&root().join(file))?;
        out += &format!("\n## `{module}`\n");
        let is_stub = file.ends_with(".pyi");
        if let Some((_, rest)) = text.split_once("\"\"\"")
            && let Some((words, _)) = rest.split_once("\"\"\"")
            && !is_stub
        {
            out += &format!("\n{}\n", docstring(words));
        }
        for (name, signature) in signatures(&text) {
            out += &format!("\n### `{name}`\n\n```python\n{signature}```\n");
        }
    }
    Ok(out)
}

/// A docstring with its examples as blocks.
fn docstring(words: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in words.trim().lines() {
        let opens = line.starts_with(">>> ");
        if opens && !inside {
            out += "```python\n";
        } else if line.is_empty() && inside {
            out += "```\n";
        }
        inside = opens || (inside && !line.is_empty());
        out += line;
        out.push('\n');
    }
    if inside {
        out += "```\n";
    }
    out
}

/// The functions and classes at the left margin whose names have no underscore: names, and what a stub says of each.
fn signatures(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut is_open = false;
    let mut in_docstring = false;
    for line in text.lines() {
        let quotes = line.matches("\"\"\"").count();
        let was = in_docstring;
        in_docstring ^= quotes % 2 == 1;
        if was || quotes > 0 {
            continue;
        }
        let start = line.strip_prefix("def ").or_else(|| line.strip_prefix("class "));
        if let Some(rest) = start {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            is_open = !name.starts_with('_');
            if is_open && found.last().is_none_or(|(last, _)| *last != name) {
                found.push((name, String::new()));
            }
        } else if !line.starts_with([' ', ')', '}']) && !line.is_empty() {
            is_open = false;
        }
        // Of a module that is no stub, bodies are left out.
        let body = line.starts_with("    ") && !line.trim_start().starts_with("def ");
        let is_stub_line = line.ends_with("...") || line.ends_with(',') || line.contains(": Final");
        if is_open
            && let Some((_, text)) = found.last_mut()
            && (!body || is_stub_line)
            && !line.trim_start().starts_with("def _")
            && !line.is_empty()
        {
            text.push_str(line);
            text.push('\n');
        }
    }
    found
}

/// The files of a folder with that ending, sorted.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|own| own == ending))
        .collect();
    files.sort();
    Ok(files)
}

fn page(source: String, path: String, section: usize) -> Result<Page, String> {
    let text = read(&root().join(&source))?;
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(&source);
    // The specification begins with its table of contents.
    let title = if source == "spec/broadcast.md" { "Specification" } else { title };
    let title = title.replace('`', "");
    Ok(Page { title, text, source, path, section })
}

/// A page's text as HTML, and its parts for the index: anchor, title, words.
#[derive(Default)]
struct Body {
    html: String,
    parts: Vec<(String, String, String)>,
    /// Headings of the second level: anchor and title.
    headings: Vec<(String, String)>,
}

impl Body {
    fn of(page: &Page, paths: &BTreeMap<String, String>) -> Self {
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
        let mut body = Self::default();
        body.parts.push((String::new(), page.title.clone(), String::new()));
        let mut events: Vec<Event<'_>> = Vec::new();
        let mut heading: Option<(HeadingLevel, usize)> = None;
        let mut code: Option<(String, String)> = None;
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut dropped = Vec::new();
        for event in Parser::new_ext(&page.text, options) {
            match event {
                Event::Start(Tag::Heading { level, .. }) => heading = Some((level, events.len())),
                Event::End(TagEnd::Heading(_)) => {
                    let Some((level, start)) = heading.take() else { continue };
                    let inside = events.split_off(start);
                    let title: String = inside.iter().filter_map(words).map(String::from).collect();
                    let mut anchor = slug(&title);
                    let times = known.entry(anchor.clone()).or_default();
                    *times += 1;
                    if *times > 1 {
                        anchor = format!("{anchor}-{}", *times - 1);
                    }
                    if level == HeadingLevel::H2 {
                        body.headings.push((anchor.clone(), title.clone()));
                    }
                    if level != HeadingLevel::H1 {
                        body.parts.push((anchor.clone(), title.clone(), String::new()));
                    }
                    let open = format!("<{level} id=\"{}\">", escape(&anchor));
                    events.push(Event::Html(open.into()));
                    events.extend(inside);
                    let link = format!(
                        " <a class=\"anchor\" href=\"#{}\" aria-label=\"Link to {}\">#</a></{level}>\n",
                        escape(&anchor),
                        escape(&title)
                    );
                    events.push(Event::Html(link.into()));
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        pulldown_cmark::CodeBlockKind::Fenced(own) => own.to_string(),
                        pulldown_cmark::CodeBlockKind::Indented => String::new(),
                    };
                    code = Some((language, String::new()));
                }
                Event::End(TagEnd::CodeBlock) => {
                    let (language, text) = code.take().unwrap_or_default();
                    events.push(Event::Html(block(&language, &text, page).into()));
                }
                Event::Text(text) if code.is_some() => {
                    if let Some((_, whole)) = &mut code {
                        *whole += &text;
                    }
                }
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    match target(&dest_url, page, paths) {
                        Some(url) => {
                            dropped.push(false);
                            events.push(Event::Start(Tag::Link {
                                link_type,
                                dest_url: url.into(),
                                title,
                                id,
                            }));
                        }
                        None => dropped.push(true),
                    }
                }
                Event::End(TagEnd::Link) => {
                    if dropped.pop() == Some(false) {
                        events.push(Event::End(TagEnd::Link));
                    }
                }
                Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                    let dest_url = image(&dest_url, page).into();
                    events.push(Event::Start(Tag::Image { link_type, dest_url, title, id }));
                }
                // Anchors that were written by hand stay; other markup is shown as text.
                Event::Html(text) | Event::InlineHtml(text) if !is_anchor(&text) => {
                    events.push(Event::Text(text));
                }
                other => {
                    if let (Some(part), Some(text)) = (body.parts.last_mut(), words(&other))
                        && heading.is_none()
                        && part.2.len() < 1500
                    {
                        part.2.push_str(text);
                        part.2.push(' ');
                    }
                    events.push(other);
                }
            }
        }
        html::push_html(&mut body.html, events.into_iter());
        body.html = body
            .html
            .replace(
                "<table>",
                "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>",
            )
            .replace("</table>", "</table></div>");
        body
    }
}

fn words<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    match event {
        Event::Text(text) | Event::Code(text) => Some(text),
        _ => None,
    }
}

fn is_anchor(text: &str) -> bool {
    let inside = text.trim().strip_prefix("<a id=\"").and_then(|rest| rest.strip_suffix("\"></a>"));
    let inside = inside
        .or_else(|| text.trim().strip_prefix("<a id=\"").and_then(|rest| rest.strip_suffix("\">")));
    text.trim() == "</a>"
        || inside.is_some_and(|id| id.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_'))
}

/// A block of code; shell lines of the command open in the playground, which some pages have within them.
fn block(language: &str, text: &str, page: &Page) -> String {
    let mut links = String::new();
    let explains =
        page.path == "docs/reference/rules.html" || page.path.starts_with("docs/findings/SC");
    for line in text.lines() {
        let words = line.strip_prefix("$ simulcast explain ");
        let Some(fragment) = words.and_then(playground) else { continue };
        let (up, fragment) = (up(&page.path), escape(&fragment));
        let link = format!(
            "<a class=\"try\" href=\"{up}index.html{fragment}\">Open in the playground</a>"
        );
        links += &match explains {
            true => format!(
                "<details class=\"embed\"><summary>Try it here</summary>\
                 <iframe class=\"playground\" title=\"The playground: {}\" data-src=\"{up}index.html{fragment}&amp;embed\"></iframe>\
                 {link}</details>",
                escape(words.unwrap_or_default())
            ),
            false => link,
        };
    }
    let language = language.split([',', ' ']).next().unwrap_or_default();
    format!(
        "<div class=\"block\"><pre tabindex=\"0\"><code class=\"language-{}\">{}</code></pre>{links}</div>\n",
        escape(language),
        escape(text)
    )
}

/// The state of the playground for the words of `simulcast explain`; none where it takes files or writes them.
fn playground(words: &str) -> Option<String> {
    let mut parts = Vec::new();
    let mut words = split(words).into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rule" => parts.push(format!("rule={}", words.next()?)),
            // What is found is shown in any case.
            "--deny" | "--allow" => drop(words.next()?),
            "--set" => parts.push(format!("set={}", words.next()?.replace('=', ":"))),
            option if option.starts_with("--") || option == "-" || option.contains(".np") => {
                return None;
            }
            shape => parts.push(format!("op={shape}")),
        }
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "=,:/().@?-_&".contains(c);
    let query = parts.join("&");
    (!parts.is_empty() && query.chars().all(plain)).then(|| format!("#/shapes?{query}"))
}

/// The words of a shell line without escapes.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ' ') => words.push(String::new()),
            _ => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).map(|word| word.replace(' ', "")).collect()
}

/// Where a link leads in the site; `None` for what is not part of it.
fn target(url: &str, page: &Page, paths: &BTreeMap<String, String>) -> Option<String> {
    if url.starts_with('#') || url.starts_with("https://") || url.starts_with("mailto:") {
        return Some(url.into());
    }
    let (file, anchor) = url.split_once('#').map_or((url, None), |(file, own)| (file, Some(own)));
    let found = resolved(file, &page.source);
    let folder = format!("{found}/README.md");
    let path = paths.get(&found).or_else(|| paths.get(&folder))?;
    let anchor = anchor.map_or_else(String::new, |own| format!("#{own}"));
    Some(format!("{}{path}{anchor}", up(&page.path)))
}

/// A picture, from the page's place in the site.
fn image(url: &str, page: &Page) -> String {
    let found = resolved(url, &page.source);
    let found =
        found.replace("spec/figures", "docs/figures").replace("bench/results", "docs/bench");
    format!("{}{found}", up(&page.path))
}

/// A relative path from the root, for one that stands in a file.
fn resolved(url: &str, source: &str) -> String {
    let mut parts: Vec<&str> = source.split('/').collect();
    parts.pop();
    for part in Path::new(url).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(own) => parts.extend(own.to_str()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The way from a page up to the root of the site.
fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}

/// An anchor as code forges make it from a heading.
fn slug(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A text in JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The whole page: its text between the table of contents and its own headings.
fn whole(page: &Page, body: &Body, pages: &[Page], has_api: bool) -> String {
    let up = up(&page.path);
    let title = escape(&page.title);
    let mut contents = String::new();
    for (number, (name, folder)) in SECTIONS.iter().enumerate() {
        contents += &format!("<h2>{name}</h2>\n<ul>\n");
        for own in pages.iter().filter(|own| own.section == number) {
            let current = if own.path == page.path { " aria-current=\"page\"" } else { "" };
            contents += &format!(
                "<li><a href=\"{up}{}\"{current}>{}</a></li>\n",
                own.path,
                escape(&own.title)
            );
        }
        if *folder == "docs/reference" {
            let own = format!("{up}{API}/simulcast/index.html");
            let link = if has_api { &own } else { RUST_API };
            contents += &format!("<li><a href=\"{link}\">Rust API</a></li>\n");
        }
        contents += "</ul>\n";
    }
    let headings: String = body
        .headings
        .iter()
        .map(|(anchor, title)| {
            format!("<li><a href=\"#{}\">{}</a></li>\n", escape(anchor), escape(title))
        })
        .collect();
    let own = if body.headings.len() > 1 {
        format!(
            "<nav class=\"own\" aria-label=\"On this page\"><h2>On this page</h2><ul>\n{headings}</ul></nav>\n"
        )
    } else {
        String::new()
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'self'; style-src 'self'; \
         connect-src 'self'; img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title} · Simulcast</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <link rel=\"stylesheet\" href=\"{up}docs/docs.css\">\n<script src=\"{up}docs/docs.js\" defer></script>\n</head>\n\
         <body data-root=\"{up}\">\n<a class=\"skip\" href=\"#main\">Skip to the text</a>\n\
         <header class=\"top\"><a class=\"brand\" href=\"{up}index.html\">simulcast</a>\
         <a href=\"{up}index.html\">Playground</a>\
         <div class=\"search\"><input type=\"search\" id=\"search\" placeholder=\"Search\" aria-label=\"Search the documentation\" \
         autocomplete=\"off\" role=\"combobox\" aria-expanded=\"false\" aria-controls=\"found\"><ul id=\"found\" role=\"listbox\" aria-label=\"Found\" hidden></ul></div>\
         <button id=\"menu\" type=\"button\" aria-expanded=\"false\" aria-controls=\"contents\">Contents</button></header>\n\
         <div class=\"columns\">\n<nav id=\"contents\" aria-label=\"Contents\">\n{contents}</nav>\n\
         <main id=\"main\" tabindex=\"-1\">\n{}</main>\n{own}</div>\n</body>\n</html>\n",
        body.html
    )
}
