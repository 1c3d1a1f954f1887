//! The text of kernels that compute partial values of several reductions of the same elements, each of which is read once.
//!
//! A block goes over some rows of one range of columns. Of a reduction
//!
//! | to | a thread keeps | a block stores |
//! |---|---|---|
//! | one value | a value | a value |
//! | a value for each column | one for each of its columns | its columns |
//! | a value for each row | nothing | for each row one value a warp |

use std::fmt::Write as _;

use super::{Joint, NAME, Partial, THREADS, Writer, constants, names, offset};
use crate::body::{Body, computed, stored};

impl Writer {
    pub(super) fn joint(&mut self, body: &Body, kind: &Joint) {
        let Joint { rank, vector, columns, unroll, ref ins, ref values, .. } = *kind;
        let (count, constants) = (body.leaves.len().max(1), constants(body));
        let (outer, abreast, made) = (rank - 1, THREADS / columns, values.len());
        line!(
            self,
            "struct Args {{ u8 *out; const u8 *in[{count}]; {constants}i64 partial[{made}]; i64 in_step[{count}][{rank}]; Div size[{}]; u32 rows, width, slice, blocks; }};",
            outer.max(1)
        );
        line!(
            self,
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {NAME}(const Args a) {{"
        );
        self.pointers(body);
        line!(
            self,
            "    const u32 column = threadIdx.x % {columns}u, line = threadIdx.x / {columns}u;"
        );
        line!(self, "    const u32 o = blockIdx.x * {columns}u + column;");
        line!(self, "    const bool inside = o < a.width;");
        line!(self, "    const u32 begin = blockIdx.y * a.slice;");
        line!(self, "    const u32 end = begin + a.slice < a.rows ? begin + a.slice : a.rows;");
        for (n, (part, value)) in body.parts.iter().zip(values).enumerate() {
            let element = computed(part.element);
            if *value != Partial::Rows {
                line!(
                    self,
                    "    {element} acc{n}[{vector}];\n#pragma unroll\n    for (int v = 0; v < {vector}; v++) acc{n}[v] = v{n}::identity();"
                );
            }
        }
        line!(self, "    for (u32 j = begin; j < end; j += {}u) {{", abreast as usize * unroll);
        self.leaves(body, vector, unroll);
        line!(self, "#pragma unroll");
        line!(
            self,
            "    for (int k = 0; k < {unroll}; k++) {{ const u32 at = j + line + k * {abreast}u; if (at < end && inside) {{"
        );
        self.declare("c", outer);
        self.coordinates("c", "at", outer, "size");
        let places = names("c", outer);
        for (n, (&access, &dtype)) in ins.iter().zip(&body.leaves).enumerate() {
            let steps = format!("a.in_step[{n}]");
            let base = format!("({})", offset(self.index, &places, &steps));
            let step = format!("{steps}[{outer}]");
            let how = super::Load {
                vector,
                at: "k",
                base: &base,
                coordinate: "o",
                step: &step,
                once: false,
            };
            self.load(n, stored(dtype), access, &how);
        }
        line!(self, "    }} }}");
        line!(self, "#pragma unroll");
        line!(self, "    for (int k = 0; k < {unroll}; k++) {{");
        line!(
            self,
            "    const u32 at = j + line + k * {abreast}u; const bool is_one = at < end && inside;"
        );
        for (n, (part, value)) in body.parts.iter().zip(values).enumerate() {
            let list: String =
                part.leaves.iter().map(|leaf| format!(", x{leaf}[k].at[v]")).collect();
            let own = match body.constants.is_empty() {
                true => format!("v{n}::value(0{list})"),
                false => format!("v{n}::value(a.constant + {}{list})", part.constants),
            };
            if *value != Partial::Rows {
                line!(
                    self,
                    "    if (is_one) {{\n#pragma unroll\n    for (int v = 0; v < {vector}; v++) acc{n}[v] = v{n}::join(acc{n}[v], {own}); }}"
                );
                continue;
            }
            let (element, kept) = (computed(part.element), stored(part.element));
            line!(self, "    {{ {element} row = v{n}::identity();");
            line!(
                self,
                "    if (is_one) {{\n#pragma unroll\n    for (int v = 0; v < {vector}; v++) row = v{n}::join(row, {own}); }}"
            );
            line!(
                self,
                "#pragma unroll\n    for (int m = 16; m > 0; m /= 2) row = v{n}::join(row, of_lane(row, m));"
            );
            line!(
                self,
                "    if (column % 32 == 0 && at < end) store_one(({kept} *)(a.out + a.partial[{n}]) + ((u64)(blockIdx.x * {}u + column / 32) * a.rows + at), ({kept})row); }}",
                columns / 32
            );
        }
        line!(self, "    }}\n    }}");
        for (n, (part, value)) in body.parts.iter().zip(values).enumerate() {
            let (element, kept) = (computed(part.element), stored(part.element));
            match value {
                Partial::Rows => {}
                Partial::Columns => {
                    if abreast > 1 {
                        line!(self, "    {{ __shared__ {element} all[{abreast}][{columns}];");
                        line!(
                            self,
                            "    for (int v = 0; v < {vector}; v++) {{ __syncthreads(); all[line][column] = acc{n}[v]; __syncthreads();"
                        );
                        line!(
                            self,
                            "    for (int w = 1; w < {abreast}; w++) if (line == 0) acc{n}[v] = v{n}::join(acc{n}[v], all[w][column]); }} }}"
                        );
                    }
                    line!(
                        self,
                        "    if (line == 0 && inside) for (int v = 0; v < {vector}; v++) store_one(({kept} *)(a.out + a.partial[{n}]) + (((u64)blockIdx.y * a.width + o) * {vector} + v), ({kept})acc{n}[v]);"
                    );
                }
                Partial::All => {
                    let warps = THREADS / 32;
                    line!(self, "    {{ {element} all = acc{n}[0];");
                    line!(
                        self,
                        "    for (int v = 1; v < {vector}; v++) all = v{n}::join(all, acc{n}[v]);"
                    );
                    line!(
                        self,
                        "    for (int m = 16; m > 0; m /= 2) all = v{n}::join(all, of_lane(all, m));"
                    );
                    line!(self, "    __shared__ {element} warps[{warps}];");
                    line!(self, "    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = all;");
                    line!(self, "    __syncthreads();");
                    line!(
                        self,
                        "    if (threadIdx.x == 0) {{ for (int w = 1; w < {warps}; w++) all = v{n}::join(all, warps[w]); store_one(({kept} *)(a.out + a.partial[{n}]) + ((u64)blockIdx.y * a.blocks + blockIdx.x), ({kept})all); }} }}"
                    );
                }
            }
        }
        line!(self, "}}");
    }
}
