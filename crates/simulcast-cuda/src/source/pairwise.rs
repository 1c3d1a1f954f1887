//! The text of kernels that compute a square of results, each the reduction of what a row of one operand and a row of
//! another make of each other: distances, products of matrices.
//!
//! ```text
//! for each slab of DEPTH steps along what is reduced
//!     every operand's elements of the square's rows, or columns, to shared memory
//!     each thread joins DEPTH values to each of its PER × PER results, which stay in registers
//! ```
//!
//! An element is read from memory once for each square rather than for each result, and from shared memory once for
//! `PER` results. The steps of a result are joined in their order; of many, parts are joined first.

use std::fmt::Write as _;

use simulcast::DType;

use super::{Facing, NAME, Pairwise, THREADS, Writer, constants, names, offset};
use crate::body::{Body, computed, stored};
use crate::tuning::{PAIRWISE_DEPTH, PAIRWISE_PART_SLABS};

/// Threads along each side of a square.
pub(crate) const ABREAST: usize = 16;

impl Writer {
    pub(super) fn pairwise(&mut self, body: &Body, kind: &Pairwise) {
        let Pairwise { kept, reduced, per_thread, vector, is_deep, ref ins, .. } = *kind;
        let element = computed(body.element.unwrap_or(DType::F32));
        let (made, count) = (stored(body.result), body.leaves.len().max(1));
        let (side, depth, groups) = (ABREAST * per_thread, PAIRWISE_DEPTH, per_thread / 4);
        let (y, x, constants) = (kept - 2, kept - 1, constants(body));
        let r = reduced.max(1);
        line!(
            self,
            "struct Args {{ u8 *out; const u8 *in[{count}]; {constants}i64 out_step[{kept}]; i64 in_kept[{count}][{kept}]; i64 in_reduced[{count}][{r}]; u64 count; Div tiles[{kept}]; Div reduced[{r}]; u32 height, width, total; }};"
        );
        line!(
            self,
            "extern \"C\" __global__ void __launch_bounds__({THREADS}{}) {NAME}(const Args a) {{",
            // Two blocks share a multiprocessor: 20% of a copy for distances, and 16% with one (H200).
            if is_deep { "" } else { ", 2" }
        );
        self.pointers(body);
        for (n, (&dtype, facing)) in body.leaves.iter().zip(ins).enumerate() {
            let own = stored(dtype);
            match facing {
                Facing::Neither => line!(self, "    __shared__ {own} s{n}[{depth}];"),
                _ => line!(self, "    __shared__ Vec<{own}, 4> s{n}[{depth}][{}];", side / 4 + 1),
            }
        }
        self.declare("c", kept);
        self.coordinates("c", "blockIdx.x", kept, "tiles");
        let outer = names("c", y);
        line!(self, "    const u32 top = c{y} * {side}u, start = c{x} * {side}u;");
        line!(self, "    const u32 tx = threadIdx.x % {ABREAST}u, ty = threadIdx.x / {ABREAST}u;");
        for n in 0..body.leaves.len() {
            let base = offset(self.index, &outer, &format!("a.in_kept[{n}]"));
            line!(self, "    const i64 b{n} = {base};");
        }
        line!(self, "    {element} acc[{per_thread}][{per_thread}];");
        let all = format!(
            "#pragma unroll\n    for (int i = 0; i < {per_thread}; i++)\n#pragma unroll\n    for (int j = 0; j < {per_thread}; j++)"
        );
        line!(self, "{all} acc[i][j] = identity();");
        if is_deep {
            line!(self, "    {element} whole[{per_thread}][{per_thread}];");
            line!(self, "{all} whole[i][j] = identity();");
        }
        line!(self, "    for (u32 base = 0; base < a.total; base += {depth}u) {{");
        line!(self, "    __syncthreads();");
        for (n, facing) in ins.iter().enumerate() {
            self.slab(n, *facing, (side, depth), (y, x), reduced);
        }
        line!(self, "    __syncthreads();");
        line!(self, "    const u32 end = a.total - base < {depth}u ? a.total - base : {depth}u;");
        line!(self, "#pragma unroll 4");
        line!(self, "    for (u32 k = 0; k < end; k++) {{");
        for (n, (&dtype, facing)) in body.leaves.iter().zip(ins).enumerate() {
            let own = stored(dtype);
            let lane = if matches!(facing, Facing::Height { .. }) { "ty" } else { "tx" };
            match facing {
                Facing::Neither => line!(self, "    const {own} x{n} = s{n}[k];"),
                _ => {
                    line!(self, "    Vec<{own}, 4> x{n}[{groups}];");
                    line!(
                        self,
                        "#pragma unroll\n    for (int g = 0; g < {groups}; g++) x{n}[g] = s{n}[k][g * {ABREAST} + {lane}];"
                    );
                }
            }
        }
        let value = Self::call(body, "value", |n| match ins[n] {
            Facing::Neither => format!("x{n}"),
            Facing::Height { .. } => format!("x{n}[i / 4].at[i % 4]"),
            Facing::Width { .. } => format!("x{n}[j / 4].at[j % 4]"),
        });
        line!(self, "{all} acc[i][j] = join(acc[i][j], {value});");
        line!(self, "    }}");
        if is_deep {
            let last = PAIRWISE_PART_SLABS - 1;
            line!(
                self,
                "    if (base / {depth}u % {PAIRWISE_PART_SLABS}u == {last}u) {{\n{all} {{ whole[i][j] = join(whole[i][j], acc[i][j]); acc[i][j] = identity(); }}\n    }}"
            );
        }
        line!(self, "    }}");
        let result = if is_deep { "join(whole[i][j + v], acc[i][j + v])" } else { "acc[i][j + v]" };
        line!(self, "#pragma unroll\n    for (int i = 0; i < {per_thread}; i++) {{");
        line!(self, "    const u32 row = top + i / 4 * 64u + ty * 4u + i % 4;");
        line!(self, "    if (row < a.height) {{");
        let base = offset(self.index, &outer, "a.out_step");
        line!(
            self,
            "    {made} *const to = ({made} *)a.out + {base} + {};",
            self.far("row", &format!("a.out_step[{y}]"))
        );
        line!(self, "#pragma unroll\n    for (int j = 0; j < {per_thread}; j += {vector}) {{");
        line!(self, "    const u32 column = start + j / 4 * 64u + tx * 4u + j % 4;");
        line!(self, "    Vec<{made}, {vector}> made;");
        line!(
            self,
            "#pragma unroll\n    for (int v = 0; v < {vector}; v++) made.at[v] = finish({result}, a.count);"
        );
        match vector {
            1 => line!(
                self,
                "    if (column < a.width) store_one(to + {}, made.at[0]);",
                self.far("column", &format!("a.out_step[{x}]"))
            ),
            _ => line!(self, "    if (column < a.width) store(to + column, made);"),
        }
        line!(self, "    }} }} }}\n}}");
    }

    /// The elements of an operand that a square needs for some steps, to shared memory.
    fn slab(
        &mut self,
        n: usize,
        facing: Facing,
        (side, depth): (usize, usize),
        (y, x): (usize, usize),
        reduced: usize,
    ) {
        let places = names("r", reduced);
        let along = offset(self.index, &places, &format!("a.in_reduced[{n}]"));
        let (first, most, axis, is_along) = match facing {
            Facing::Neither => {
                line!(
                    self,
                    "    if (threadIdx.x < {depth}u && base + threadIdx.x < a.total) {{ const u32 at = base + threadIdx.x;"
                );
                self.declare("r", reduced);
                self.coordinates("r", "at", reduced, "reduced");
                line!(self, "    s{n}[threadIdx.x] = load_one(p{n} + b{n} + {along}); }}");
                return;
            }
            Facing::Height { is_along } => ("top", "a.height", y, is_along),
            Facing::Width { is_along } => ("start", "a.width", x, is_along),
        };
        // Neighbouring threads read neighbouring elements.
        let (k, place) = match is_along {
            true => (format!("e % {depth}u"), format!("e / {depth}u")),
            false => (format!("e / {side}u"), format!("e % {side}u")),
        };
        line!(self, "#pragma unroll");
        line!(
            self,
            "    for (u32 e = threadIdx.x; e < {}u; e += {THREADS}u) {{ const u32 k = {k}, place = {place}, at = base + k;",
            side * depth
        );
        line!(self, "    if (at < a.total && {first} + place < {most}) {{");
        self.declare("r", reduced);
        self.coordinates("r", "at", reduced, "reduced");
        line!(
            self,
            "    s{n}[k][place / 4].at[place % 4] = load_one(p{n} + b{n} + {} + {along}); }} }}",
            self.far(&format!("({first} + place)"), &format!("a.in_kept[{n}][{axis}]"))
        );
    }
}
