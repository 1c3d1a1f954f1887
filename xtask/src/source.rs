//! Rust sources as checks read them: code without comments, texts and tests, and the paths that it names.

/// Code with blanks in place of comments, of what stands in quotes, and of items under `#[cfg(test)]`; lines stay lines.
pub(crate) fn code(source: &str) -> String {
    without_tests(&without_texts(source))
}

fn without_texts(source: &str) -> String {
    let all: Vec<char> = source.chars().collect();
    let mut out: Vec<char> = all.clone();
    let blank = |out: &mut Vec<char>, from: usize, to: usize| {
        for place in out.get_mut(from..to).unwrap_or_default() {
            if *place != '\n' {
                *place = ' ';
            }
        }
    };
    let is =
        |at: usize, text: &str| text.chars().enumerate().all(|(k, c)| all.get(at + k) == Some(&c));
    let mut at = 0;
    while at < all.len() {
        let begin = at;
        if is(at, "//") {
            while at < all.len() && all[at] != '\n' {
                at += 1;
            }
            blank(&mut out, begin, at);
        } else if is(at, "/*") {
            let mut depth = 0;
            while at < all.len() {
                match (is(at, "/*"), is(at, "*/")) {
                    (true, _) => (depth, at) = (depth + 1, at + 2),
                    (_, true) => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
                if depth == 0 {
                    break;
                }
            }
            blank(&mut out, begin, at);
        } else if let Some(hashes) = raw(&all, at) {
            let end: String =
                std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            at += hashes + 2;
            while at < all.len() && !is(at, &end) {
                at += 1;
            }
            at += end.len();
            blank(&mut out, begin, at.min(all.len()));
        } else if all[at] == '"' {
            at += 1;
            while at < all.len() && all[at] != '"' {
                at += if all[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
            blank(&mut out, begin + 1, (at - 1).min(all.len()));
        } else if all[at] == '\'' {
            // A character, not a lifetime.
            let long = all.get(at + 1) == Some(&'\\');
            let close = if long {
                (at + 3..at + 12).find(|&k| all.get(k) == Some(&'\''))
            } else {
                Some(at + 2)
            };
            match close.filter(|&close| all.get(close) == Some(&'\'')) {
                Some(close) => {
                    blank(&mut out, begin + 1, close);
                    at = close + 1;
                }
                None => at += 1,
            }
        } else {
            at += 1;
        }
    }
    out.into_iter().collect()
}

/// The hashes of a raw string that begins here.
fn raw(all: &[char], at: usize) -> Option<usize> {
    let starts = all[at] == 'r'
        && !at.checked_sub(1).is_some_and(|before| is_word(all[before]) && all[before] != 'b');
    let hashes = all[at..].iter().skip(1).take_while(|&&c| c == '#').count();
    (starts && all.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Blanks each item under `#[cfg(test)]`: to its closing bracket, or to its semicolon where it has no brackets.
fn without_tests(code: &str) -> String {
    const TEST: &str = "#[cfg(test)]";
    let (mut out, mut rest) = (String::new(), code);
    while let Some(at) = rest.find(TEST) {
        out += &rest[..at];
        let item = &rest[at..];
        let mut depth = 0;
        let end = item.char_indices().skip(TEST.len()).find(|&(_, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            depth == 0 && (c == '}' || c == ';')
        });
        let end = end.map_or(item.len(), |(at, _)| at + 1);
        out.extend(item[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &item[end..];
    }
    out + rest
}

/// The module of a file: `a/b.rs` and `a/b/mod.rs` are `a::b`.
pub(crate) fn rooms_of(file: &str) -> Vec<String> {
    let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
    module.split('/').map(str::to_owned).collect()
}

/// The paths that begin at the root or at a module above, as they stand from the root.
pub(crate) struct Paths;

impl Paths {
    /// Each with its line.
    pub(crate) fn of(code: &str, module: &[String]) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        for (number, at) in starts(code) {
            let mut base = module.to_vec();
            let mut rest = &code[at..];
            if let Some(inner) = rest.strip_prefix("crate") {
                base.clear();
                rest = inner;
            } else {
                while let Some(inner) = rest.strip_prefix("super") {
                    base.pop();
                    rest = inner.trim_start();
                    match rest.strip_prefix("::").map(str::trim_start) {
                        Some(inner) if inner.starts_with("super") => rest = inner,
                        _ => break,
                    }
                }
            }
            expand(&base, rest, &mut |path| found.push((number, path)));
        }
        found
    }
}

/// Where `crate::` and the first `super::` of a path begin, with their lines.
fn starts(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for word in ["crate", "super"] {
        for (at, _) in code.match_indices(word) {
            let before = code[..at].trim_end();
            let apart = !code[..at].ends_with(is_word) && !before.ends_with("::");
            // Who may see an item is no import.
            let seen = before.ends_with("(in");
            let follows = code[at + word.len()..].trim_start().starts_with("::");
            if apart && follows && !seen {
                found.push((code[..at].matches('\n').count() + 1, at));
            }
        }
    }
    found.sort_unstable();
    found
}

/// Calls with every path that a tree of names after a base stands for; returns what follows the tree.
fn expand<'c>(base: &[String], rest: &'c str, each: &mut impl FnMut(Vec<String>)) -> &'c str {
    let Some(inner) = rest.trim_start().strip_prefix("::").map(str::trim_start) else {
        each(base.to_vec());
        return rest;
    };
    if let Some(mut list) = inner.strip_prefix('{') {
        loop {
            list = list.trim_start();
            if let Some(end) = list.strip_prefix('}') {
                return end;
            }
            let end = list.find(|c| !is_word(c)).unwrap_or(list.len());
            if end == 0 {
                // A comma, a star: nothing more to follow here.
                let Some(next) = list.chars().next() else { return list };
                list = &list[next.len_utf8()..];
                continue;
            }
            let path = [base, &[list[..end].to_owned()]].concat();
            list = expand(&path, &list[end..], each);
            if let Some(renamed) = list.trim_start().strip_prefix("as ") {
                let renamed = renamed.trim_start();
                list = &renamed[renamed.find(|c| !is_word(c)).unwrap_or(renamed.len())..];
            }
        }
    }
    let end = inner.find(|c| !is_word(c)).unwrap_or(inner.len());
    if end == 0 {
        each(base.to_vec());
        return inner;
    }
    expand(&[base, &[inner[..end].to_owned()]].concat(), &inner[end..], each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_texts_and_tests_are_blank() {
        let source = "a // unsafe\nb /* x /* y */ z */ c \"unsafe \\\" d\" 'e' r#\"f \" g\"# &'h i '\\n' j\n\
                      #[cfg(test)]\nmod tests { fn k() { {} } }\n#[cfg(test)]\nuse l;\nm";
        let code = code(source);
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words, ["a", "b", "c", "\"", "\"", "'", "'", "&'h", "i", "'", "'", "j", "m"]);
        assert_eq!(code.lines().count(), source.lines().count());
    }

    #[test]
    fn paths_are_those_of_the_root() {
        let module = rooms_of("a/b/c.rs");
        let code = "use crate::d::{self, e::{f, g as h}, i};\nsuper::j::k();\nuse super::super::{l, m::*};\n\
                    mycrate::n; self::o; crate::p!(); pub(in crate::q) r;";
        let found: Vec<String> = Paths::of(code, &module)
            .into_iter()
            .map(|(line, path)| format!("{line} {}", path.join("::")))
            .collect();
        let expected = [
            "1 d::self",
            "1 d::e::f",
            "1 d::e::g",
            "1 d::i",
            "2 a::b::j::k",
            "3 a::l",
            "3 a::m",
            "4 p",
        ];
        assert_eq!(found, expected);
    }
}
