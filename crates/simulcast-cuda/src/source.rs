//! Kernels as text: CUDA C++ for a [`Body`] over loops of some kind.
//!
//! | kind | when | a thread computes |
//! |---|---|---|
//! | [`Elementwise`] | always possible | vectors of neighbouring elements of the result |
//! | [`Tiled`] | an operand is transposed | its part of a square, whose transposed operands go through shared memory |
//! | [`Along`] | neighbouring elements are reduced | vectors of one result, with 1 to 255 others |
//! | [`Across`] | neighbouring elements belong to different results | a vector of results, over some of the rows |
//!
//! No size is in the text: the same kernel serves every shape whose operands lie alike. How an operand lies on the
//! innermost loop is its [`Access`], and belongs to the operand alone: one that repeats, or is not aligned, is read
//! element by element, and the others still by vectors.

use std::fmt::Write as _;

use simulcast::DType;

use crate::body::{Body, computed, stored};

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
    /// Elements of a vector, of which rows of the result have a whole number.
    pub(crate) vector: usize,
    /// Elements along a side of the square.
    pub(crate) side: usize,
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

/// A kernel without what it computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Elementwise(Elementwise),
    Tiled(Tiled),
    Along(Along),
    Across(Across),
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
        | Kind::Across(Across { index, .. }) => index,
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

    fn elementwise(&mut self, body: &Body, kind: &Elementwise) {
        let Elementwise { rank, vector, unroll, is_ragged, out, ref ins, .. } = *kind;
        let (count, made) = (body.leaves.len().max(1), stored(body.result));
        let (loops, constants) = (rank.max(1), constants(body));
        line!(
            self,
            "struct Args {{ u8 *out; const u8 *in[{count}]; {constants}i64 out_step[{loops}]; i64 in_step[{count}][{loops}]; Div size[{loops}]; u32 total, elements; }};"
        );
        line!(
            self,
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {NAME}(const Args a) {{"
        );
        line!(self, "    {made} *__restrict__ const out = ({made} *)a.out;");
        self.pointers(body);
        line!(
            self,
            "    const u32 first = blockIdx.x * {}u + threadIdx.x;",
            THREADS as usize * unroll
        );
        // Elements of 8 and 16 bits go by words, where the program has such a form.
        let lanes = (4 / body.result.size()).max(1);
        let goes = body.packed.is_some()
            && !is_ragged
            && vector % lanes == 0
            && matches!(out, Access::Flat | Access::Row);
        let words = goes.then_some(vector / lanes);
        match words {
            None => self.leaves(body, vector, unroll),
            Some(words) => self.word_leaves(body, ins, (vector, words), unroll),
        }
        let needs_places = out != Access::Flat
            || ins.iter().any(|own| !matches!(own, Access::Flat | Access::Scalar));
        let all = names("c", rank);
        let outer = &all[..rank.saturating_sub(1)];
        let last = all.last().map_or("0", String::as_str);
        line!(self, "#pragma unroll");
        line!(
            self,
            "    for (int u = 0; u < {unroll}; u++) {{ const u32 i = first + u * {THREADS}u; if (i < a.total) {{"
        );
        if needs_places {
            self.declare("c", rank);
        }
        let from = if is_ragged { format!("i * {vector}u") } else { "i".into() };
        if needs_places {
            self.coordinates("c", &from, rank, "size");
        }
        if is_ragged {
            line!(
                self,
                "        const u32 e = i * {vector}u; const bool full = e + {vector}u <= a.elements;"
            );
        }
        let mut lanes: Vec<(usize, &str)> = Vec::new();
        for (n, (&access, &dtype)) in ins.iter().zip(&body.leaves).enumerate() {
            let own = stored(dtype);
            match access {
                Access::Flat if is_ragged => {
                    line!(self, "        if (full) x{n}[u] = load<{own}, {vector}>(p{n} + e);");
                    line!(
                        self,
                        "        else for (int v = 0; v < {vector}; v++) x{n}[u].at[v] = load_one(p{n} + (e + v < a.elements ? e + v : e));"
                    );
                }
                Access::Flat => {
                    let from = format!("p{n} + (u64)i * {vector}");
                    match words {
                        Some(words) => line!(
                            self,
                            "        x{n}[u] = load<u32, {words}>((const u32 *)({from}));"
                        ),
                        None => line!(self, "        x{n}[u] = load<{own}, {vector}>({from});"),
                    }
                }
                Access::Scalar if words.is_some() => {
                    line!(self, "        x{n}[u] = splat(load_one(p{n}));");
                }
                Access::Scalar => {
                    let how = Load {
                        vector,
                        at: "u",
                        base: "0",
                        coordinate: "0",
                        step: "0",
                        once: false,
                    };
                    self.load(n, own, access, &how);
                }
                _ if is_ragged => lanes.push((n, own)),
                _ => {
                    let steps = format!("a.in_step[{n}]");
                    let base = offset(self.index, outer, &steps);
                    match (access, words) {
                        (Access::Row, Some(words)) => {
                            line!(
                                self,
                                "        x{n}[u] = load<u32, {words}>((const u32 *)(p{n} + {base} + (i64){last} * {vector}));"
                            );
                            continue;
                        }
                        (Access::Repeated, Some(_)) => {
                            line!(self, "        x{n}[u] = splat(load_one(p{n} + {base}));");
                            continue;
                        }
                        _ => {}
                    }
                    let step = format!("{steps}[{}]", rank.saturating_sub(1));
                    let how = Load {
                        vector,
                        at: "u",
                        base: &base,
                        coordinate: last,
                        step: &step,
                        once: false,
                    };
                    self.load(n, own, access, &how);
                }
            }
        }
        if !lanes.is_empty() {
            // Lane by lane, over the ends of rows.
            line!(self, "#pragma unroll");
            line!(self, "        for (int v = 0; v < {vector}; v++) {{");
            line!(self, "        const bool inside = e + v < a.elements;");
            for (n, _) in lanes {
                let place = offset(self.index, &all, &format!("a.in_step[{n}]"));
                line!(self, "        x{n}[u].at[v] = load_one(p{n} + (inside ? {place} : 0));");
            }
            for at in (1..rank).rev() {
                line!(self, "        if (++c{at} == a.size[{at}].size) {{ c{at} = 0;");
            }
            line!(self, "        ++c0;{}", " }".repeat(rank.saturating_sub(1)));
            line!(self, "        }}");
        }
        line!(self, "    }} }}");
        line!(self, "#pragma unroll");
        line!(
            self,
            "    for (int u = 0; u < {unroll}; u++) {{ const u32 i = first + u * {THREADS}u; if (i < a.total) {{"
        );
        let store = |to: &str| match words {
            Some(_) => format!("store((u32 *)({to}), y);"),
            None => format!("store({to}, y);"),
        };
        match words {
            Some(words) => {
                line!(self, "        Vec<u32, {words}> y;");
                line!(self, "#pragma unroll");
                let call = Self::call(body, "packed", |n| match ins[n] {
                    Access::Flat | Access::Row => format!("x{n}[u].at[w]"),
                    Access::Scalar | Access::Repeated => format!("x{n}[u]"),
                    _ => format!("word(x{n}[u], w)"),
                });
                line!(self, "        for (int w = 0; w < {words}; w++) y.at[w] = {call};");
            }
            None => {
                line!(self, "        Vec<{made}, {vector}> y;");
                line!(self, "#pragma unroll");
                line!(
                    self,
                    "        for (int v = 0; v < {vector}; v++) y.at[v] = {};",
                    Self::value(body, "u", "v")
                );
            }
        }
        match out {
            Access::Flat if is_ragged => {
                line!(self, "        const u32 e = i * {vector}u;");
                line!(self, "        if (e + {vector}u <= a.elements) store(out + e, y);");
                line!(
                    self,
                    "        else for (int v = 0; v < {vector}; v++) if (e + v < a.elements) store_one(out + e + v, y.at[v]);"
                );
            }
            Access::Flat if vector > 1 => {
                line!(self, "        {}", store(&format!("out + (u64)i * {vector}")));
            }
            Access::Flat => line!(self, "        store_one(out + (u64)i, y.at[0]);"),
            _ => {
                self.declare("c", rank);
                self.coordinates("c", "i", rank, "size");
                let base = offset(self.index, outer, "a.out_step");
                if out == Access::Row && vector > 1 {
                    let to = format!("out + {base} + (i64){last} * {vector}");
                    line!(self, "        {}", store(&to));
                } else {
                    let step = rank.saturating_sub(1);
                    line!(
                        self,
                        "        for (int v = 0; v < {vector}; v++) store_one(out + {base} + {}, y.at[v]);",
                        self.far(
                            &format!("({last} * {vector} + v)"),
                            &format!("a.out_step[{step}]")
                        )
                    );
                }
            }
        }
        line!(self, "    }} }}\n}}");
    }

    fn tiled(&mut self, body: &Body, kind: &Tiled) {
        let Tiled { rank, vector, side, ref ins, .. } = *kind;
        let (count, made) = (body.leaves.len().max(1), stored(body.result));
        let across = side / vector;
        let rows = THREADS as usize / across;
        let unroll = side / rows;
        let (y, x) = (rank - 2, rank - 1);
        let constants = constants(body);
        line!(
            self,
            "struct Args {{ u8 *out; const u8 *in[{count}]; {constants}i64 out_step[{rank}]; i64 in_step[{count}][{rank}]; Div tiles[{rank}]; u32 height, width; }};"
        );
        line!(
            self,
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {NAME}(const Args a) {{"
        );
        line!(self, "    {made} *__restrict__ const out = ({made} *)a.out;");
        self.pointers(body);
        for (n, (&access, &dtype)) in ins.iter().zip(&body.leaves).enumerate() {
            if matches!(access, Access::Transposed { .. }) {
                line!(self, "    __shared__ {} tile{n}[{side}][{}];", stored(dtype), side + 1);
            }
        }
        self.declare("c", rank);
        self.coordinates("c", "blockIdx.x", rank, "tiles");
        let outer = names("c", y);
        line!(self, "    const u32 top = c{y} * {side}u, start = c{x} * {side}u;");
        line!(self, "    const u32 tx = threadIdx.x % {across}u, ty = threadIdx.x / {across}u;");
        for (n, (&access, &dtype)) in ins.iter().zip(&body.leaves).enumerate() {
            let Access::Transposed { vectors } = access else { continue };
            let own = stored(dtype);
            let base = offset(self.index, &outer, &format!("a.in_step[{n}]"));
            line!(self, "#pragma unroll");
            line!(self, "    for (int k = 0; k < {unroll}; k++) {{");
            line!(self, "        const u32 column = start + ty + k * {rows}u;");
            line!(self, "        if (column < a.width) {{");
            line!(
                self,
                "        const {own} *const from = p{n} + {base} + {};",
                self.far("column", &format!("a.in_step[{n}][{x}]"))
            );
            if vectors {
                line!(
                    self,
                    "        const u32 row = top + tx * {vector}u; if (row < a.height) {{ const Vec<{own}, {vector}> own = load<{own}, {vector}>(from + row);"
                );
                line!(
                    self,
                    "        for (int v = 0; v < {vector}; v++) tile{n}[ty + k * {rows}u][tx * {vector}u + v] = own.at[v]; }}"
                );
            } else {
                line!(
                    self,
                    "        for (int v = 0; v < {vector}; v++) {{ const u32 row = tx + v * {across}u; if (top + row < a.height) tile{n}[ty + k * {rows}u][row] = load_one(from + top + row); }}"
                );
            }
            line!(self, "        }}\n    }}");
        }
        self.leaves(body, vector, unroll);
        line!(self, "#pragma unroll");
        line!(
            self,
            "    for (int k = 0; k < {unroll}; k++) {{ const u32 row = top + ty + k * {rows}u, column = start + tx * {vector}u;"
        );
        line!(self, "        if (row < a.height && column < a.width) {{");
        for (n, (&access, &dtype)) in ins.iter().zip(&body.leaves).enumerate() {
            let own = stored(dtype);
            let steps = format!("a.in_step[{n}]");
            let base = format!(
                "{} + {}",
                offset(self.index, &outer, &steps),
                self.far("row", &format!("{steps}[{y}]"))
            );
            let step = format!("{steps}[{x}]");
            match access {
                Access::Transposed { .. } => {}
                Access::Scalar | Access::Repeated => {
                    let how = Load {
                        vector,
                        at: "k",
                        base: &base,
                        coordinate: "0",
                        step: "0",
                        once: false,
                    };
                    self.load(n, own, access, &how);
                }
                Access::Row if vector > 1 => {
                    line!(self, "        x{n}[k] = load<{own}, {vector}>(p{n} + {base} + column);");
                }
                _ => {
                    line!(
                        self,
                        "        for (int v = 0; v < {vector}; v++) x{n}[k].at[v] = load_one(p{n} + {base} + {});",
                        self.far("(column + v)", &step)
                    );
                }
            }
        }
        line!(self, "        }}\n    }}");
        line!(self, "    __syncthreads();");
        line!(self, "#pragma unroll");
        line!(
            self,
            "    for (int k = 0; k < {unroll}; k++) {{ const u32 row = top + ty + k * {rows}u, column = start + tx * {vector}u;"
        );
        line!(self, "        if (row < a.height && column < a.width) {{");
        for (n, &access) in ins.iter().enumerate() {
            if matches!(access, Access::Transposed { .. }) {
                line!(
                    self,
                    "        for (int v = 0; v < {vector}; v++) x{n}[k].at[v] = tile{n}[tx * {vector}u + v][ty + k * {rows}u];"
                );
            }
        }
        line!(self, "        Vec<{made}, {vector}> made;");
        line!(self, "#pragma unroll");
        line!(
            self,
            "        for (int v = 0; v < {vector}; v++) made.at[v] = {};",
            Self::value(body, "k", "v")
        );
        line!(
            self,
            "        {made} *const to = out + {} + (i64)row * a.out_step[{y}] + column;",
            offset(self.index, &outer, "a.out_step")
        );
        match vector {
            // Cache lines that begin in one square and end in the next are merged in the cache.
            1 => line!(self, "        keep_one(to, made.at[0]);"),
            _ => line!(self, "        store(to, made);"),
        }
        line!(self, "        }}\n    }}\n}}");
    }

    /// The arguments of reductions, and where operands begin.
    fn reduction(&mut self, body: &Body, kept: usize, reduced: usize) {
        let count = body.leaves.len().max(1);
        let (k, r, constants) = (kept.max(1), reduced.max(1), constants(body));
        line!(
            self,
            "struct Args {{ u8 *out; const u8 *in[{count}]; {constants}i64 out_step[{k}]; i64 in_kept[{count}][{k}]; i64 in_reduced[{count}][{r}]; u64 count; Div kept[{k}]; Div reduced[{r}]; u32 outputs, total, slice, rows; }};"
        );
        line!(
            self,
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {NAME}(const Args a) {{"
        );
        self.pointers(body);
    }

    /// Joins what a thread has of `unroll` steps into the first.
    fn joined(&mut self, unroll: usize, vector: usize) {
        let mut half = unroll / 2;
        while half > 0 {
            line!(
                self,
                "    for (int k = 0; k < {half}; k++) for (int v = 0; v < {vector}; v++) acc[k][v] = join(acc[k][v], acc[k + {half}][v]);"
            );
            half /= 2;
        }
    }

    fn along(&mut self, body: &Body, kind: &Along) {
        let Along { kept, reduced, vector, group, unroll, finishes, ref ins, .. } = *kind;
        let element = computed(body.element.unwrap_or(DType::F32));
        let made = stored(body.result);
        let partial = stored(body.element.unwrap_or(DType::F32));
        self.reduction(body, kept, reduced);
        line!(
            self,
            "    const u32 lane = threadIdx.x % {group}u, o = blockIdx.x * {}u + threadIdx.x / {group}u;",
            THREADS / group
        );
        self.declare("k", kept);
        self.coordinates("k", "o", kept, "kept");
        let places = names("k", kept);
        for n in 0..body.leaves.len() {
            line!(
                self,
                "    const i64 b{n} = {};",
                offset(self.index, &places, &format!("a.in_kept[{n}]"))
            );
        }
        line!(self, "    const u32 begin = blockIdx.y * a.slice;");
        line!(self, "    const u32 until = begin + a.slice < a.total ? begin + a.slice : a.total;");
        line!(self, "    const u32 end = o < a.outputs ? until : 0;");
        line!(self, "    {element} acc[{unroll}][{vector}];");
        line!(
            self,
            "#pragma unroll\n    for (int k = 0; k < {unroll}; k++) for (int v = 0; v < {vector}; v++) acc[k][v] = identity();"
        );
        line!(
            self,
            "    for (u32 j = begin + lane; j < end; j += {}u) {{",
            group as usize * unroll
        );
        self.leaves(body, vector, unroll);
        line!(self, "#pragma unroll");
        line!(
            self,
            "    for (int k = 0; k < {unroll}; k++) {{ const u32 at = j + k * {group}u; if (at < end) {{"
        );
        self.declare("r", reduced);
        self.coordinates("r", "at", reduced, "reduced");
        let places = names("r", reduced);
        let outer = &places[..reduced.saturating_sub(1)];
        let last = places.last().map_or("0", String::as_str);
        self.reduced_loads(body, ins, vector, outer, last, reduced.saturating_sub(1));
        line!(self, "    }} }}");
        line!(self, "#pragma unroll");
        line!(self, "    for (int k = 0; k < {unroll}; k++) if (j + k * {group}u < end) {{");
        line!(
            self,
            "#pragma unroll\n        for (int v = 0; v < {vector}; v++) acc[k][v] = join(acc[k][v], {}); }}",
            Self::value(body, "k", "v")
        );
        line!(self, "    }}");
        self.joined(unroll, vector);
        let mut half = vector / 2;
        while half > 0 {
            line!(
                self,
                "    for (int v = 0; v < {half}; v++) acc[0][v] = join(acc[0][v], acc[0][v + {half}]);"
            );
            half /= 2;
        }
        line!(self, "    {element} all = acc[0][0];");
        if group > 1 {
            line!(
                self,
                "    for (int m = {}; m > 0; m /= 2) all = join(all, of_lane(all, m));",
                group.min(32) / 2
            );
        }
        if group == THREADS {
            line!(self, "    __shared__ {element} warps[{}];", THREADS / 32);
            line!(self, "    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = all;");
            line!(self, "    __syncthreads();");
            line!(
                self,
                "    for (int w = 1; w < {}; w++) all = lane == 0 ? join(all, warps[w]) : all;",
                THREADS / 32
            );
        }
        line!(self, "    if (lane == 0 && o < a.outputs) {{");
        if finishes {
            line!(
                self,
                "        store_one(({made} *)a.out + ({}), finish(all, a.count));",
                offset(self.index, &names("k", kept), "a.out_step")
            );
        } else {
            line!(
                self,
                "        store_one(({partial} *)a.out + ((u64)blockIdx.y * a.outputs + o), ({partial})all);"
            );
        }
        line!(self, "    }}\n}}");
    }

    fn reduced_loads(
        &mut self,
        body: &Body,
        ins: &[Access],
        vector: usize,
        outer: &[String],
        last: &str,
        inner: usize,
    ) {
        for (n, (&access, &dtype)) in ins.iter().zip(&body.leaves).enumerate() {
            let own = stored(dtype);
            let steps = format!("a.in_reduced[{n}]");
            let base = format!("(b{n} + {})", offset(self.index, outer, &steps));
            let step = format!("{steps}[{inner}]");
            let once = ins.len() == 1;
            let how = Load { vector, at: "k", base: &base, coordinate: last, step: &step, once };
            self.load(n, own, access, &how);
        }
    }

    fn across(&mut self, body: &Body, kind: &Across) {
        let Across { kept, reduced, vector, columns, unroll, finishes, ref ins, .. } = *kind;
        let element = computed(body.element.unwrap_or(DType::F32));
        let made = stored(body.result);
        let partial = stored(body.element.unwrap_or(DType::F32));
        let rows = THREADS / columns;
        self.reduction(body, kept, reduced);
        line!(
            self,
            "    const u32 column = threadIdx.x % {columns}u, row = threadIdx.x / {columns}u;"
        );
        line!(self, "    const u32 o = blockIdx.x * {columns}u + column;");
        self.declare("k", kept);
        self.coordinates("k", "o", kept, "kept");
        let places = names("k", kept);
        let outer = &places[..kept.saturating_sub(1)];
        let last = places.last().map_or("0", String::as_str);
        for n in 0..body.leaves.len() {
            line!(
                self,
                "    const i64 b{n} = {};",
                offset(self.index, outer, &format!("a.in_kept[{n}]"))
            );
        }
        line!(self, "    const u32 begin = blockIdx.y * a.slice;");
        line!(self, "    const u32 until = begin + a.slice < a.total ? begin + a.slice : a.total;");
        line!(self, "    const u32 end = o < a.outputs ? until : 0;");
        line!(self, "    {element} acc[{unroll}][{vector}];");
        line!(
            self,
            "#pragma unroll\n    for (int k = 0; k < {unroll}; k++) for (int v = 0; v < {vector}; v++) acc[k][v] = identity();"
        );
        line!(self, "    for (u32 j = begin + row; j < end; j += {}u) {{", rows as usize * unroll);
        self.leaves(body, vector, unroll);
        line!(self, "#pragma unroll");
        line!(
            self,
            "    for (int k = 0; k < {unroll}; k++) {{ const u32 at = j + k * {rows}u; if (at < end) {{"
        );
        self.declare("r", reduced);
        self.coordinates("r", "at", reduced, "reduced");
        let all = names("r", reduced);
        for (n, (&access, &dtype)) in ins.iter().zip(&body.leaves).enumerate() {
            let own = stored(dtype);
            let base =
                format!("(b{n} + {})", offset(self.index, &all, &format!("a.in_reduced[{n}]")));
            let step = format!("a.in_kept[{n}][{}]", kept.saturating_sub(1));
            let once = ins.len() == 1;
            let how = Load { vector, at: "k", base: &base, coordinate: last, step: &step, once };
            self.load(n, own, access, &how);
        }
        line!(self, "    }} }}");
        line!(self, "#pragma unroll");
        line!(self, "    for (int k = 0; k < {unroll}; k++) if (j + k * {rows}u < end) {{");
        line!(
            self,
            "#pragma unroll\n        for (int v = 0; v < {vector}; v++) acc[k][v] = join(acc[k][v], {}); }}",
            Self::value(body, "k", "v")
        );
        line!(self, "    }}");
        self.joined(unroll, vector);
        if rows > 1 {
            line!(self, "    __shared__ {element} all[{rows}][{}];", columns as usize * vector);
            line!(
                self,
                "    for (int v = 0; v < {vector}; v++) all[row][column * {vector} + v] = acc[0][v];"
            );
            line!(self, "    __syncthreads();");
            line!(self, "    for (u32 half = {}u; half > 0; half /= 2) {{", rows / 2);
            line!(self, "        if (row < half) for (int v = 0; v < {vector}; v++) {{");
            line!(
                self,
                "            acc[0][v] = join(acc[0][v], all[row + half][column * {vector} + v]);"
            );
            line!(self, "            all[row][column * {vector} + v] = acc[0][v]; }}");
            line!(self, "        __syncthreads();\n    }}");
        }
        line!(self, "    if (row == 0 && o < a.outputs) {{");
        if finishes {
            let base = offset(self.index, outer, "a.out_step");
            let step = kept.saturating_sub(1);
            line!(
                self,
                "        for (int v = 0; v < {vector}; v++) store_one(({made} *)a.out + ({base} + ((i64){last} * {vector} + v) * a.out_step[{step}]), finish(acc[0][v], a.count));"
            );
        } else {
            line!(
                self,
                "        for (int v = 0; v < {vector}; v++) store_one(({partial} *)a.out + (((u64)blockIdx.y * a.outputs + o) * {vector} + v), ({partial})acc[0][v]);"
            );
        }
        line!(self, "    }}\n}}");
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
