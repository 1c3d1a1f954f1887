//! The text of kernels that compute element by element.

use std::fmt::Write as _;

use super::{Access, Elementwise, Load, NAME, THREADS, Writer, constants, names, offset};
use crate::body::{Body, stored};

impl Writer {
    pub(super) fn elementwise(&mut self, body: &Body, kind: &Elementwise) {
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
}
