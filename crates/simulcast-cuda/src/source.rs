//! Kernels as text: CUDA C++ for a [`Body`] over loops of some kind.
//!
//! | kind | when | a thread computes |
//! |---|---|---|
//! | [`Elementwise`] | always possible | vectors of neighbouring elements of the result |
//! | [`Tiled`] | an operand is transposed | its part of a square, whose transposed operands go through shared memory |
//! | [`Along`] | neighbouring elements are reduced | vectors of one result, with 1 to 255 others |
//! | [`Across`] | neighbouring elements belong to different results | a vector of results, over some of the rows |
//! | [`Pairwise`] | a reduction, no operand of which moves along both of two loops of results | 16 or 64 results, whose operands go through shared memory |
//! | [`Joint`] | several reductions of the same elements | a vector of some rows, for partial values of all |
//!
//! No size is in the text: the same kernel serves every shape whose operands lie alike. How an operand lies on the
//! innermost loop is its [`Access`], and belongs to the operand alone: one that repeats, or is not aligned, is read
//! element by element, and the others still by vectors.

use std::fmt::Write as _;

use crate::body::{Body, stored};

/// Threads of a block, of every kernel.
pub(crate) const THREADS: u32 = 256;

const BASE: &str = include_str!("device_code/base.cuh");
const NUMBERS: &str = include_str!("device_code/numbers.cuh");
const COMPLEX: &str = include_str!("device_code/complex.cuh");

/// How an operand lies along the innermost loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// One element for all of the result.
    Scalar,
    /// One element for all of the innermost loop.
    Repeated,
    /// Element by element with the result, over all loops, in whole vectors.
    Flat,
    /// Neighbouring elements, in whole vectors.
    Row,
    /// Neighbouring elements that do not begin at vectors.
    Loose,
    /// Elements at some distance.
    Strided,
    /// Neighbouring elements along the other loop of a square: read by vectors, or one by one.
    Transposed { vectors: bool },
}

/// How offsets within arrays are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Index {
    /// Every offset of every array fits 32 bits.
    Narrow,
    Wide,
}

/// A kernel that computes element by element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Elementwise {
    pub(crate) rank: usize,
    pub(crate) index: Index,
    /// Elements of a vector.
    pub(crate) vector: usize,
    /// Vectors of a thread.
    pub(crate) unroll: usize,
    /// Whether rows are no whole number of vectors: the result is contiguous then, and vectors go on over its rows.
    pub(crate) is_ragged: bool,
    /// `Flat`, `Row` or `Strided`.
    pub(crate) out: Access,
    pub(crate) ins: Vec<Access>,
}

/// A kernel that computes squares of elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tiled {
    /// The loops, of which the last two are those of the square.
    pub(crate) rank: usize,
    pub(crate) index: Index,
    /// Elements of a vector, of which rows of the result have a whole number, unless it is slanted.
    pub(crate) vector: usize,
    /// Elements along a side of the square.
    pub(crate) side: usize,
    /// Each row of the square begins where a multiple of so many elements of memory does; 0 where all begin alike.
    pub(crate) slant: usize,
    pub(crate) ins: Vec<Access>,
}

/// A kernel that reduces neighbouring elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Along {
    pub(crate) index: Index,
    pub(crate) kept: usize,
    pub(crate) reduced: usize,
    pub(crate) vector: usize,
    /// Threads of a result: a power of two up to 32, or all of a block.
    pub(crate) group: u32,
    pub(crate) unroll: usize,
    /// Whether it makes results, rather than values that another launch joins.
    pub(crate) finishes: bool,
    pub(crate) ins: Vec<Access>,
}

/// A kernel that reduces rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Across {
    pub(crate) index: Index,
    pub(crate) kept: usize,
    pub(crate) reduced: usize,
    pub(crate) vector: usize,
    /// Threads side by side along the results; the others of the block take other rows.
    pub(crate) columns: u32,
    pub(crate) unroll: usize,
    pub(crate) finishes: bool,
    pub(crate) ins: Vec<Access>,
}

/// Which loops of a square of results an operand moves along, beside those that are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Facing {
    /// None of them.
    Neither,
    /// That of its rows; its neighbours may lie along what is reduced.
    Height { is_along: bool },
    /// That of its columns.
    Width { is_along: bool },
}

/// A kernel that reduces what the rows of two operands make of each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pairwise {
    pub(crate) index: Index,
    /// The loops of results, of which the last two are those of the square.
    pub(crate) kept: usize,
    pub(crate) reduced: usize,
    /// Results of a thread along each side of the square: 4 or 8.
    pub(crate) per_thread: usize,
    /// Results that are stored at once: 1, 2 or 4.
    pub(crate) vector: usize,
    /// Whether parts of many steps are joined first.
    pub(crate) is_deep: bool,
    pub(crate) ins: Vec<Facing>,
}

/// What a reduction of rows leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Partial {
    /// One value.
    All,
    /// A value for each row.
    Rows,
    /// A value for each column.
    Columns,
}

/// A kernel that computes partial values of several reductions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Joint {
    pub(crate) index: Index,
    /// The loops, of which the last is along rows.
    pub(crate) rank: usize,
    /// Elements of a vector, of which rows have a whole number.
    pub(crate) vector: usize,
    /// Threads side by side along a row: a power of two from 32 on.
    pub(crate) columns: u32,
    pub(crate) unroll: usize,
    pub(crate) ins: Vec<Access>,
    pub(crate) values: Vec<Partial>,
}

/// A kernel without what it computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Elementwise(Elementwise),
    Tiled(Tiled),
    Along(Along),
    Across(Across),
    Pairwise(Pairwise),
    Joint(Joint),
}

/// The name of the kernel in every text.
pub(crate) const NAME: &str = "simulcast";

/// The whole text of a kernel.
pub(crate) fn text(body: &Body, kind: &Kind) -> String {
    let complex = if body.is_complex { COMPLEX } else { "" };
    format!("{BASE}\n{NUMBERS}\n{complex}\n{}", own_text(body, kind))
}

/// The text after what all kernels share.
pub(crate) fn own_text(body: &Body, kind: &Kind) -> String {
    let index = match *kind {
        Kind::Elementwise(Elementwise { index, .. })
        | Kind::Tiled(Tiled { index, .. })
        | Kind::Along(Along { index, .. })
        | Kind::Across(Across { index, .. })
        | Kind::Pairwise(Pairwise { index, .. })
        | Kind::Joint(Joint { index, .. }) => index,
    };
    let mut w = Writer { text: body.text.clone(), index };
    if let (Kind::Elementwise(_), Some(packed)) = (kind, &body.packed) {
        w.text += packed;
    }
    match kind {
        Kind::Elementwise(kind) => w.elementwise(body, kind),
        Kind::Tiled(kind) => w.tiled(body, kind),
        Kind::Along(kind) => w.along(body, kind),
        Kind::Across(kind) => w.across(body, kind),
        Kind::Pairwise(kind) => w.pairwise(body, kind),
        Kind::Joint(kind) => w.joint(body, kind),
    }
    w.text
}

/// What all kernels share, with complex numbers.
#[cfg(test)]
pub(crate) fn shared_text() -> String {
    format!("{BASE}\n{NUMBERS}\n{COMPLEX}\n")
}

struct Writer {
    text: String,
    index: Index,
}

/// Adds a line to the text; writing to a string never fails.
macro_rules! line {
    ($w:expr, $($format:tt)*) => {{
        let _ = writeln!($w.text, $($format)*);
    }};
}

mod elementwise;
mod joint;
pub(crate) mod pairwise;
mod reductions;
mod tiled;

/// `c0 * a.step[0] + c1 * a.step[1] + …`
fn offset(index: Index, coordinates: &[String], steps: &str) -> String {
    let terms: Vec<String> = coordinates
        .iter()
        .enumerate()
        .map(|(at, c)| match index {
            Index::Narrow => format!("{c} * (u32){steps}[{at}]"),
            Index::Wide => format!("(i64){c} * {steps}[{at}]"),
        })
        .collect();
    match (index, terms.is_empty()) {
        (_, true) => "0".into(),
        // The sum is that of signed numbers, modulo 2^32.
        (Index::Narrow, false) => format!("(i64)(i32)({})", terms.join(" + ")),
        (Index::Wide, false) => terms.join(" + "),
    }
}

/// The field of the arguments that has the program's numbers.
fn constants(body: &Body) -> String {
    match body.constants.len() {
        0 => String::new(),
        count => format!("u64 constant[{count}]; "),
    }
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{prefix}{at}")).collect()
}

impl Writer {
    /// A place times a step.
    fn far(&self, place: &str, step: &str) -> String {
        match self.index {
            Index::Narrow => format!("(i64)(i32)({place} * (u32){step})"),
            Index::Wide => format!("(i64){place} * {step}"),
        }
    }

    /// Splits an index into the coordinates of loops, all of which were declared before.
    fn coordinates(&mut self, prefix: &str, index: &str, rank: usize, loops: &str) {
        if rank == 0 {
            return;
        }
        line!(self, "        {{ u32 left = {index};");
        for at in (1..rank).rev() {
            line!(
                self,
                "        {{ const u32 q = quotient(left, a.{loops}[{at}]); {prefix}{at} = left - q * a.{loops}[{at}].size; left = q; }}"
            );
        }
        line!(self, "        {prefix}0 = left; }}");
    }

    fn declare(&mut self, prefix: &str, rank: usize) {
        if rank > 0 {
            let list: Vec<String> =
                names(prefix, rank).iter().map(|name| format!("{name} = 0")).collect();
            line!(self, "        u32 {};", list.join(", "));
        }
    }

    fn leaves(&mut self, body: &Body, vector: usize, unroll: usize) {
        for (n, &dtype) in body.leaves.iter().enumerate() {
            line!(self, "    Vec<{}, {vector}> x{n}[{unroll}];", stored(dtype));
        }
    }

    /// The same where elements go by words: what is read by vectors is words, and what repeats is one.
    fn word_leaves(
        &mut self,
        body: &Body,
        ins: &[Access],
        (vector, words): (usize, usize),
        unroll: usize,
    ) {
        for (n, (&dtype, access)) in body.leaves.iter().zip(ins).enumerate() {
            match access {
                Access::Flat | Access::Row => {
                    line!(self, "    Vec<u32, {words}> x{n}[{unroll}];");
                }
                Access::Scalar | Access::Repeated => line!(self, "    u32 x{n}[{unroll}];"),
                _ => line!(self, "    Vec<{}, {vector}> x{n}[{unroll}];", stored(dtype)),
            }
        }
    }

    /// The pointers of operands.
    fn pointers(&mut self, body: &Body) {
        for (n, &dtype) in body.leaves.iter().enumerate() {
            let own = stored(dtype);
            line!(self, "    const {own} *__restrict__ const p{n} = (const {own} *)a.in[{n}];");
        }
    }

    /// `x[…]` is loaded, of an operand that is `Scalar`, `Repeated`, `Row`, `Loose` or `Strided`, from `base`, where the
    /// innermost coordinate counts vectors.
    fn load(&mut self, n: usize, own: &str, access: Access, how: &Load<'_>) {
        let Load { vector, at, base, coordinate, step, once } = *how;
        let load = if once { "load_once" } else { "load" };
        match access {
            Access::Scalar | Access::Repeated => {
                line!(self, "        {{ const {own} one = load_one(p{n} + {base});");
                line!(
                    self,
                    "        for (int v = 0; v < {vector}; v++) x{n}[{at}].at[v] = one; }}"
                );
            }
            Access::Row if vector > 1 => {
                line!(
                    self,
                    "        x{n}[{at}] = {load}<{own}, {vector}>(p{n} + {base} + (i64){coordinate} * {vector});"
                );
            }
            Access::Row | Access::Loose => {
                line!(
                    self,
                    "        for (int v = 0; v < {vector}; v++) x{n}[{at}].at[v] = load_one(p{n} + {base} + ((i64){coordinate} * {vector} + v));"
                );
            }
            _ => {
                line!(
                    self,
                    "        for (int v = 0; v < {vector}; v++) x{n}[{at}].at[v] = load_one(p{n} + {base} + {});",
                    self.far(&format!("({coordinate} * {vector} + v)"), step)
                );
            }
        }
    }

    /// The call of `value` for one element of vectors.
    fn value(body: &Body, at: &str, lane: &str) -> String {
        Self::call(body, "value", |n| format!("x{n}[{at}].at[{lane}]"))
    }

    /// The call of a function of the body.
    fn call(body: &Body, name: &str, argument: impl Fn(usize) -> String) -> String {
        let constants = if body.constants.is_empty() { "0" } else { "a.constant" };
        let list: String = (0..body.leaves.len()).map(|n| format!(", {}", argument(n))).collect();
        format!("{name}({constants}{list})")
    }
}

/// How elements are loaded.
#[derive(Clone, Copy)]
struct Load<'l> {
    vector: usize,
    /// The place among the vectors of a thread.
    at: &'l str,
    /// Where the innermost loop begins.
    base: &'l str,
    /// The place along the innermost loop, in vectors.
    coordinate: &'l str,
    step: &'l str,
    /// Whether no other thread reads the elements.
    once: bool,
}
