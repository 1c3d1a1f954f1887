//! The text of kernels that reduce: along neighbouring elements, and across rows.

use std::fmt::Write as _;

use simulcast::DType;

use super::{Access, Across, Along, Load, NAME, THREADS, Writer, constants, names, offset};
use crate::body::{Body, computed, stored};

/// How a thread goes through the reduced elements: `unroll` steps of `vector` results at once, `abreast` threads in turn,
/// of which this one is number `first`.
struct Lanes<'n> {
    vector: usize,
    unroll: usize,
    reduced: usize,
    first: &'n str,
    abreast: u32,
}

impl Writer {
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

    /// Where operands begin for the result, whose coordinates along these axes are known, and the slice of reduced elements.
    fn slices(&mut self, body: &Body, axes: &[String]) {
        for n in 0..body.leaves.len() {
            line!(
                self,
                "    const i64 b{n} = {};",
                offset(self.index, axes, &format!("a.in_kept[{n}]"))
            );
        }
        line!(self, "    const u32 begin = blockIdx.y * a.slice;");
        line!(self, "    const u32 until = begin + a.slice < a.total ? begin + a.slice : a.total;");
        line!(self, "    const u32 end = o < a.outputs ? until : 0;");
    }

    /// What a thread has of its slice, joined into `acc[0]`; `load` loads the operands at the coordinates `r`.
    fn accumulated(&mut self, body: &Body, lanes: &Lanes<'_>, load: impl FnOnce(&mut Self)) {
        let Lanes { vector, unroll, reduced, first, abreast } = *lanes;
        let element = computed(body.element.unwrap_or(DType::F32));
        line!(self, "    {element} acc[{unroll}][{vector}];");
        line!(
            self,
            "#pragma unroll\n    for (int k = 0; k < {unroll}; k++) for (int v = 0; v < {vector}; v++) acc[k][v] = identity();"
        );
        line!(
            self,
            "    for (u32 j = begin + {first}; j < end; j += {}u) {{",
            abreast as usize * unroll
        );
        self.leaves(body, vector, unroll);
        line!(self, "#pragma unroll");
        line!(
            self,
            "    for (int k = 0; k < {unroll}; k++) {{ const u32 at = j + k * {abreast}u; if (at < end) {{"
        );
        self.declare("r", reduced);
        self.coordinates("r", "at", reduced, "reduced");
        load(self);
        line!(self, "    }} }}");
        line!(self, "#pragma unroll");
        line!(self, "    for (int k = 0; k < {unroll}; k++) if (j + k * {abreast}u < end) {{");
        line!(
            self,
            "#pragma unroll\n        for (int v = 0; v < {vector}; v++) acc[k][v] = join(acc[k][v], {}); }}",
            Self::value(body, "k", "v")
        );
        line!(self, "    }}");
        self.joined(unroll, vector);
    }

    pub(super) fn along(&mut self, body: &Body, kind: &Along) {
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
        self.slices(body, &places);
        let lanes = Lanes { vector, unroll, reduced, first: "lane", abreast: group };
        self.accumulated(body, &lanes, |this| {
            let places = names("r", reduced);
            let outer = &places[..reduced.saturating_sub(1)];
            let last = places.last().map_or("0", String::as_str);
            this.reduced_loads(body, ins, vector, outer, last, reduced.saturating_sub(1));
        });
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

    pub(super) fn across(&mut self, body: &Body, kind: &Across) {
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
        self.slices(body, outer);
        let lanes = Lanes { vector, unroll, reduced, first: "row", abreast: rows };
        self.accumulated(body, &lanes, |this| {
            let all = names("r", reduced);
            for (n, (&access, &dtype)) in ins.iter().zip(&body.leaves).enumerate() {
                let own = stored(dtype);
                let base =
                    format!("(b{n} + {})", offset(this.index, &all, &format!("a.in_reduced[{n}]")));
                let step = format!("a.in_kept[{n}][{}]", kept.saturating_sub(1));
                let once = ins.len() == 1;
                let how =
                    Load { vector, at: "k", base: &base, coordinate: last, step: &step, once };
                this.load(n, own, access, &how);
            }
        });
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
