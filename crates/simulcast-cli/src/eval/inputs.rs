//! The operands of an expression: `name=` and a file, a value, a shape or a call.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use simulcast::{AnyArray, AnyView};
use simulcast_files::{FileError, ReadLimits, Store};

use super::generate::{Source, shape};
use super::word::Word;
use crate::Failure;
use crate::file_word::FileWord;

/// Every operand that was given, in the order of the command line.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// Files, each opened once.
    stores: BTreeMap<String, Store>,
    given: Vec<(String, Given)>,
    /// The bytes of memory that are left.
    pub(crate) left: u64,
}

#[derive(Debug)]
enum Given {
    File { path: String, array: Option<String> },
    Made(AnyArray),
}

impl Inputs {
    /// With `any_name`, names need not be those that an expression can have.
    pub(crate) fn new(
        words: &[String],
        seed: u64,
        memory: u64,
        any_name: bool,
    ) -> Result<Self, Failure> {
        let mut this = Self { stores: BTreeMap::new(), given: Vec::new(), left: memory };
        for (at, word) in words.iter().enumerate() {
            let (name, text) = split(word, any_name).map_err(Failure::Usage)?;
            if this.given.iter().any(|(known, _)| known == name) {
                return Err(Failure::Usage(format!("`{name}` is given twice")));
            }
            let given = match FileWord::new(text) {
                Some(file) => this.open(file).map_err(file_failure)?,
                None => {
                    // Another sequence for each operand.
                    let seed = seed.wrapping_add((at as u64).wrapping_mul(0xd134_2543_de82_ef95));
                    let made = Word::parse(text)
                        .and_then(|word| Source { seed, memory: this.left }.array(&word))
                        .map_err(|why| Failure::Usage(format!("{word}: {why}")))?;
                    let bytes = made.view().len() * made.dtype().size();
                    this.left = this.left.saturating_sub(bytes as u64);
                    Given::Made(made)
                }
            };
            this.given.push((name.to_owned(), given));
        }
        Ok(this)
    }

    /// Opens the file (once per path) and charges what this array needs to the shared memory budget.
    fn open(&mut self, file: FileWord<'_>) -> Result<Given, FileError> {
        let (store, before) = match self.stores.entry(file.path.to_owned()) {
            Entry::Occupied(known) => {
                let store = known.into_mut();
                store.limit(self.left);
                let before = store.taken();
                (store, before)
            }
            Entry::Vacant(place) => {
                let store =
                    file.open(&ReadLimits { memory: self.left, ..ReadLimits::default() })?;
                (place.insert(store), 0)
            }
        };
        store.get(file.array)?;
        self.left = self.left.saturating_sub(store.taken() - before);
        Ok(Given::File { path: file.path.to_owned(), array: file.array.map(str::to_owned) })
    }

    /// Names and arrays, in the order of the command line.
    pub(crate) fn views(&self) -> Result<Vec<(&str, AnyView<'_>)>, Failure> {
        let mut views = Vec::new();
        for (name, given) in &self.given {
            let view = match given {
                Given::Made(array) => array.view(),
                Given::File { path, array } => match self.stores.get(path) {
                    Some(store) => store.get(array.as_deref()).map_err(file_failure)?,
                    None => continue,
                },
            };
            views.push((name.as_str(), view));
        }
        Ok(views)
    }
}

/// The shapes of the operands that can be read, by name; of those that are given by a shape, without values.
pub(crate) fn shapes(words: &[String], memory: u64) -> Vec<(String, Vec<usize>)> {
    let known = |word: &String| {
        let (name, text) = split(word, false).ok()?;
        let own = match (FileWord::new(text), Word::parse(text)) {
            (None, Ok(Word::Tuple(sizes))) => shape(&sizes).ok()?,
            _ => {
                let one = Inputs::new(std::slice::from_ref(word), 0, memory, false).ok()?;
                one.views().ok()?.first()?.1.shape().to_vec()
            }
        };
        Some((name.to_owned(), own))
    };
    words.iter().filter_map(known).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where errors are mapped")]
fn file_failure(error: FileError) -> Failure {
    Failure::Usage(error.to_string())
}

/// `name=text`, with a name that an expression can have unless any will do.
fn split(word: &str, any_name: bool) -> Result<(&str, &str), String> {
    let (name, text) = word.split_once('=').ok_or_else(|| {
        format!("{word:?} is no operand; write NAME=FILE, NAME=VALUE or NAME='(3, 4)'")
    })?;
    let name = name.trim();
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    if any_name && !name.is_empty() || first && letters.all(|c| c.is_alphanumeric() || c == '_') {
        Ok((name, text.trim()))
    } else {
        Err(format!("{name:?} is no name for an operand"))
    }
}
