//! The text of kernels that compute squares of elements, whose transposed operands go through shared memory.

use std::fmt::Write as _;

use super::{Access, Load, NAME, THREADS, Tiled, Writer, constants, names, offset};
use crate::body::{Body, stored};

impl Writer {
    pub(super) fn tiled(&mut self, body: &Body, kind: &Tiled) {
        let Tiled { rank, vector, side, slant, ref ins, .. } = *kind;
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
                let own = stored(dtype);
                line!(self, "    __shared__ {own} tile{n}[{}][{}];", side + slant, side + 1);
            }
        }
        self.declare("c", rank);
        self.coordinates("c", "blockIdx.x", rank, "tiles");
        let outer = names("c", y);
        // Columns before the first are beyond the last, modulo 2^32.
        line!(self, "    const u32 top = c{y} * {side}u, start = c{x} * {side}u - {slant}u;");
        line!(self, "    const u32 tx = threadIdx.x % {across}u, ty = threadIdx.x / {across}u;");
        for (n, &access) in ins.iter().enumerate() {
            if let Access::Transposed { vectors } = access {
                let dtype = body.leaves[n];
                self.transposed(n, stored(dtype), if vectors { vector } else { 1 }, kind);
            }
        }
        self.leaves(body, vector, unroll);
        let out_base = offset(self.index, &outer, "a.out_step");
        let place = |w: &mut Self| {
            line!(w, "#pragma unroll");
            line!(
                w,
                "    for (int k = 0; k < {unroll}; k++) {{ const u32 row = top + ty + k * {rows}u;"
            );
            if slant == 0 {
                line!(w, "        const u32 shift = 0, column = start + tx * {vector}u;");
            } else {
                line!(
                    w,
                    "        const u32 shift = 0u - (u32)((u64)a.out / sizeof({made}) + ({out_base}) + (i64)row * a.out_step[{y}]) & {}u;",
                    slant - 1
                );
                line!(w, "        const u32 column = start + tx * {vector}u + shift;");
            }
        };
        // Whether an element of a vector is one of the result.
        let (any, lane) = match slant {
            0 => ("column < a.width".to_owned(), String::new()),
            _ => (
                format!("(column < a.width || column + {}u < a.width)", vector - 1),
                "if (column + v < a.width) ".to_owned(),
            ),
        };
        place(self);
        line!(self, "        if (row < a.height && {any}) {{");
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
                        "        for (int v = 0; v < {vector}; v++) {lane}x{n}[k].at[v] = load_one(p{n} + {base} + {});",
                        self.far("(column + v)", &step)
                    );
                }
            }
        }
        line!(self, "        }}\n    }}");
        line!(self, "    __syncthreads();");
        place(self);
        line!(self, "        if (row < a.height && {any}) {{");
        for (n, &access) in ins.iter().enumerate() {
            if matches!(access, Access::Transposed { .. }) {
                line!(
                    self,
                    "        for (int v = 0; v < {vector}; v++) x{n}[k].at[v] = tile{n}[tx * {vector}u + v + shift][ty + k * {rows}u];"
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
            "        {made} *const to = out + {out_base} + (i64)row * a.out_step[{y}] + (i64)(i32)column;"
        );
        if slant == 0 && vector == 1 {
            // Cache lines that begin in one square and end in the next are merged in the cache.
            line!(self, "        keep_one(to, made.at[0]);");
        } else if slant == 0 {
            line!(self, "        store(to, made);");
        } else {
            line!(
                self,
                "        if (column < a.width && column + {}u < a.width) keep(to, made);",
                vector - 1
            );
            line!(
                self,
                "        else for (int v = 0; v < {vector}; v++) if (column + v < a.width) keep_one(to + v, made.at[v]);"
            );
        }
        line!(self, "        }}\n    }}\n}}");
    }

    /// A transposed operand's part of a square, to shared memory; `vector` rows are neighbours.
    fn transposed(&mut self, n: usize, own: &str, vector: usize, kind: &Tiled) {
        let Tiled { rank, side, slant, .. } = *kind;
        let outer = names("c", rank - 2);
        let lanes = side / vector;
        let (abreast, columns) = (THREADS as usize / lanes, side + slant);
        let base = offset(self.index, &outer, &format!("a.in_step[{n}]"));
        line!(self, "#pragma unroll");
        line!(self, "    for (int k = 0; k < {}; k++) {{", columns.div_ceil(abreast));
        line!(
            self,
            "        const u32 own = threadIdx.x / {lanes}u + k * {abreast}u, column = start + own;"
        );
        let inside = match columns.is_multiple_of(abreast) {
            true => String::new(),
            false => format!("own < {columns}u && "),
        };
        line!(
            self,
            "        const u32 place = threadIdx.x % {lanes}u * {vector}u, row = top + place;"
        );
        line!(self, "        if ({inside}column < a.width && row < a.height) {{");
        let far = self.far("column", &format!("a.in_step[{n}][{}]", rank - 1));
        line!(self, "        const {own} *const from = p{n} + {base} + {far} + row;");
        match vector {
            1 => line!(self, "        tile{n}[own][place] = load_one(from);"),
            _ => {
                line!(
                    self,
                    "        const Vec<{own}, {vector}> all = load<{own}, {vector}>(from);"
                );
                line!(
                    self,
                    "        for (int v = 0; v < {vector}; v++) tile{n}[own][place + v] = all.at[v];"
                );
            }
        }
        line!(self, "        }}\n    }}");
    }
}
