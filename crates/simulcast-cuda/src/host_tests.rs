//! Kernels on the host: the text that a GPU would get, compiled by the C++ compiler of this machine with a shim, run
//! over random programs, types, shapes and strides, and compared with the engine of `simulcast`.
//!
//! All kernels of a test are one file, so that the compiler starts once. Where there is no C++ compiler the tests say
//! so and pass; with `XTASK_STRICT=1` they fail.

pub(crate) mod cases;
mod joint;
pub(crate) mod random;
mod squares;

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use ndarray::{ArrayD, IxDyn};
use simulcast::program::Hoisting;
use simulcast::program::lowered::LeafSource;
use simulcast::{AnyArray, AnyView, DType, Rule, TypedProgram};

use crate::body::Body;
use crate::launch::{Limits, Place};
use crate::plan::{Layout, Plan, PlannedPass, bytes_of, contiguous, copy, sum_to};
use crate::source::{Kind, own_text, shared_text};

/// Memory of 16-byte words, zeroed, of which every array of a test is a part.
pub(crate) struct Memory(pub(crate) Vec<u128>);

impl Memory {
    fn new(bytes: usize) -> Self {
        Self(vec![0; bytes.div_ceil(16) + 1])
    }

    fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

/// An array of a test: its memory, where its first element lies, and how it lies.
pub(crate) struct Operand {
    pub(crate) memory: Memory,
    /// The bytes from the memory's start to the first element in the order of indices.
    pub(crate) offset: usize,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
}

impl Operand {
    pub(crate) fn view(&self) -> AnyView<'_> {
        let first = (self.memory.address() + self.offset) as *const u8;
        // SAFETY: the memory holds every element that the shape and the strides reach; truths may be any byte.
        unsafe {
            match self.dtype {
                DType::Bool => AnyView::from_raw_truths(first, &self.shape, &self.strides),
                dtype => AnyView::from_raw(dtype, first, &self.shape, &self.strides),
            }
        }
    }

    fn layout(&self) -> Layout {
        Layout {
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            low_bits: (self.memory.address() + self.offset) % 16,
        }
    }
}

/// What a test runs: passes, and the operands that they read.
struct Case {
    name: String,
    passes: Vec<PlannedPass>,
    operands: Vec<Operand>,
    dtype: DType,
    shape: Vec<usize>,
    /// The types and shapes of further results.
    others: Vec<(DType, Vec<usize>)>,
}

#[repr(C)]
struct Range {
    begin: usize,
    end: usize,
    writable: bool,
}

/// Every kernel of some cases, compiled.
struct Compiled {
    library: libloading::Library,
    /// The number of each kernel, by its text.
    numbers: HashMap<String, usize>,
    folder: PathBuf,
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Compiled {
    /// None where there is no compiler.
    fn new(name: &str, cases: &[Case]) -> Option<Self> {
        let mut numbers = HashMap::new();
        let mut text = format!("{}\n{}\n", include_str!("host_tests/shim.h"), shared_text());
        for pass in cases.iter().flat_map(|case| &case.passes) {
            for launch in &pass.launches {
                let own = kernel_text(pass, launch.joins_partial, &launch.kind);
                let next = numbers.len();
                if numbers.contains_key(&own) {
                    continue;
                }
                let barriers = own.contains("__syncthreads") || own.contains("of_lane");
                let renamed = own.replace("extern \"C\" __global__ void", "static void");
                let _ = writeln!(
                    text,
                    "namespace k{next} {{\n{renamed}\n}}\nextern \"C\" void launch_{next}(const void *a, unsigned x, unsigned y) {{ shim::run(x, y, {barriers}, [a] {{ k{next}::simulcast(*(const k{next}::Args *)a); }}); }}\nextern \"C\" unsigned size_{next}() {{ return sizeof(k{next}::Args); }}"
                );
                numbers.insert(own, next);
            }
        }
        let folder =
            std::env::temp_dir().join(format!("simulcast-cuda-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for kernels");
        let (source, library) = (folder.join("kernels.cpp"), folder.join("kernels.so"));
        std::fs::write(&source, text).expect("the text of kernels");
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
        let mut command = Command::new(compiler);
        command.args([
            "-std=c++17",
            "-O0",
            "-w",
            "-fPIC",
            "-shared",
            "-ffp-contract=off",
            "-fwrapv",
        ]);
        let done = command.arg(&source).arg("-o").arg(&library).output();
        let done = match done {
            Ok(done) => done,
            Err(error) if std::env::var_os("XTASK_STRICT").is_none() => {
                eprintln!("skipped: no C++ compiler ({error})");
                return None;
            }
            Err(error) => panic!("no C++ compiler: {error}"),
        };
        let said = String::from_utf8_lossy(&done.stderr);
        let said: String = said.lines().take(40).collect::<Vec<_>>().join("\n");
        assert!(done.status.success(), "kernels are no C++:\n{said}");
        // SAFETY: the library was just made of the text above, and runs nothing when it is loaded.
        let library = unsafe { libloading::Library::new(&library) }.expect("the compiled kernels");
        Some(Self { library, numbers, folder })
    }

    /// Runs a case, and gives the result.
    fn run(&self, case: &Case) -> AnyArray {
        self.run_all(case).remove(0)
    }

    /// Runs a case, and gives all results.
    fn run_all(&self, case: &Case) -> Vec<AnyArray> {
        let mut results = vec![(case.dtype, case.shape.clone())];
        results.extend(case.others.iter().cloned());
        let mut made: Vec<Memory> = Vec::new();
        for pass in &case.passes {
            let bytes = match pass.place {
                Some(place) => {
                    bytes_of(&results[place].1, results[place].0).expect("a small result")
                }
                None => pass.result_bytes,
            };
            made.push(Memory::new(bytes));
            let scratch = Memory::new(pass.scratch_bytes);
            let out = made.last().expect("the result").address();
            let source = |n: usize| match pass.sources[n] {
                LeafSource::Operand(at) => {
                    let own = &case.operands[at];
                    (
                        own.memory.address() + own.offset,
                        own.memory.address(),
                        own.memory.0.len() * 16,
                    )
                }
                LeafSource::Pass(at) => {
                    (made[at].address(), made[at].address(), made[at].0.len() * 16)
                }
            };
            let mut ranges = vec![
                Range { begin: out, end: out + bytes, writable: true },
                Range {
                    begin: scratch.address(),
                    end: scratch.address() + pass.scratch_bytes,
                    writable: true,
                },
            ];
            ranges.extend((0..pass.sources.len()).map(|n| {
                let (_, begin, bytes) = source(n);
                Range { begin, end: begin + bytes, writable: false }
            }));
            for launch in &pass.launches {
                let text = kernel_text(pass, launch.joins_partial, &launch.kind);
                let number = self.numbers[&text];
                let mut args = vec![0_u64; launch.args.len() / 8];
                for (word, bytes) in args.iter_mut().zip(launch.args.chunks_exact(8)) {
                    *word = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
                }
                for (word, &(place, offset)) in args.iter_mut().zip(&launch.addresses) {
                    let base = match place {
                        Place::Out => out,
                        Place::Leaf(n) => source(n).0,
                        Place::Scratch => scratch.address(),
                    };
                    *word = base.wrapping_add_signed(offset) as u64;
                }
                let now =
                    CString::new(format!("{} {:?}", case.name, launch.kind)).expect("no zeros");
                // SAFETY: the functions have these types, the arguments are the kernel's own, and the shim checks every
                // access against the ranges.
                unsafe {
                    let size = self.library.get::<unsafe extern "C" fn() -> u32>(
                        format!("size_{number}\0").as_bytes(),
                    );
                    assert_eq!(size.expect("a size")() as usize, launch.args.len(), "{now:?}");
                    let set = self
                        .library
                        .get::<unsafe extern "C" fn(*const Range, c_int, *const c_char)>(
                            b"shim_ranges\0",
                        );
                    set.expect("ranges")(ranges.as_ptr(), ranges.len() as c_int, now.as_ptr());
                    let run = self.library.get::<unsafe extern "C" fn(*const u64, u32, u32)>(
                        format!("launch_{number}\0").as_bytes(),
                    );
                    run.expect("a kernel")(args.as_ptr(), launch.grid[0], launch.grid[1]);
                    let wrong = self
                        .library
                        .get::<unsafe extern "C" fn() -> *const c_char>(b"shim_wrong\0");
                    let wrong = CStr::from_ptr(wrong.expect("a text")());
                    assert!(wrong.is_empty(), "{wrong:?}");
                }
            }
        }
        let result = |(place, (dtype, shape)): (usize, &(DType, Vec<usize>))| {
            let at = case.passes.iter().position(|pass| pass.place == Some(place));
            let first = made[at.expect("a pass for each result")].address() as *const u8;
            // SAFETY: the memory has room for all elements, of numbers, and of truths that kernels made.
            unsafe { AnyView::from_raw(*dtype, first, shape, &contiguous(shape)) }.to_owned()
        };
        results.iter().enumerate().map(result).collect()
    }
}

fn kernel_text(pass: &PlannedPass, joins_partial: bool, kind: &Kind) -> String {
    let partial = pass.partial.as_ref().filter(|_| joins_partial);
    own_text(partial.unwrap_or(&pass.body), kind)
}

/// A case of a program, on a device with small limits.
fn case(
    name: String,
    program: &TypedProgram,
    rule: Rule<'_>,
    hoisting: Hoisting,
    operands: Vec<Operand>,
    limits: &Limits,
) -> Case {
    let shapes: Vec<&[usize]> = operands.iter().map(|own| &own.shape[..]).collect();
    let passes = program.lower(&shapes, rule, hoisting).expect("operands that fit");
    let layouts: Vec<Layout> = operands.iter().map(Operand::layout).collect();
    let mut plan = Plan::new(&passes, &layouts, None, limits).expect("a plan");
    Case {
        name,
        passes: plan.passes,
        operands,
        dtype: program.dtype(),
        shape: plan.shapes.remove(0),
        others: Vec::new(),
    }
}

/// Elements of any type as complex numbers, in the order of indices.
pub(crate) fn numbers(array: &AnyArray) -> Vec<simulcast::Complex<f64>> {
    macro_rules! of {
        ($($variant:ident => |$x:ident| $re:expr, $im:expr;)*) => {
            match array {
                $(AnyArray::$variant(own) => own.iter().map(|$x| simulcast::Complex::new($re, $im)).collect(),)*
                other => panic!("{} is no number", other.dtype()),
            }
        };
    }
    of! {
        Bool => |x| f64::from(u8::from(*x)), 0.0;
        I8 => |x| f64::from(*x), 0.0; I16 => |x| f64::from(*x), 0.0; I32 => |x| f64::from(*x), 0.0;
        I64 => |x| *x as f64, 0.0; U8 => |x| f64::from(*x), 0.0; U16 => |x| f64::from(*x), 0.0;
        U32 => |x| f64::from(*x), 0.0; U64 => |x| *x as f64, 0.0;
        F16 => |x| x.to_f64(), 0.0; Bf16 => |x| x.to_f64(), 0.0; F32 => |x| f64::from(*x), 0.0;
        F64 => |x| *x, 0.0; C64 => |x| f64::from(x.re), f64::from(x.im); C128 => |x| x.re, x.im;
    }
}

/// Whether two arrays are the same: bit for bit but for the bits of NaN, or within some units of the type's precision.
pub(crate) fn compare(name: &str, got: &AnyArray, expected: &AnyArray, places: f64) {
    assert_eq!((got.dtype(), got.shape()), (expected.dtype(), expected.shape()), "{name}");
    if got == expected {
        return;
    }
    let precision = match got.dtype() {
        DType::F16 => 1.0 / 1024.0,
        DType::Bf16 => 1.0 / 128.0,
        DType::F32 | DType::C64 => f64::from(f32::EPSILON),
        DType::F64 | DType::C128 => f64::EPSILON,
        _ => 0.0,
    };
    // A function of narrower numbers is as near as they are, whatever the type of the result.
    let narrow = ["F16", "Bf16", "F32", "C64"].iter().any(|own| name.contains(own));
    let precision =
        if narrow && places > 0.0 { precision.max(f64::from(f32::EPSILON)) } else { precision };
    for (at, (a, b)) in numbers(got).into_iter().zip(numbers(expected)).enumerate() {
        // Terms of sums may cancel.
        let least = match () {
            () if name.contains("sum") || name.contains("mean") => 300.0,
            () if name.contains("+ exp") => 10.0,
            () => f64::MIN_POSITIVE,
        };
        let size = b.re.abs().max(b.im.abs()).max(least);
        let near = |x: f64, y: f64| {
            x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= places * precision * size
        };
        assert!(near(a.re, b.re) && near(a.im, b.im), "{name}: at {at}, {a:?} is not {b:?}");
    }
}

fn zeros(dtype: DType, shape: &[usize]) -> Operand {
    let memory = Memory::new(bytes_of(shape, dtype).expect("a small array"));
    Operand { memory, offset: 0, dtype, shape: shape.to_vec(), strides: contiguous(shape) }
}

#[test]
fn every_operation_of_every_type() {
    let limits = Limits { multiprocessors: 2, ..Limits::new(2) };
    let mut source = random::Source::new(1);
    let (mut cases, mut programs) = (Vec::new(), Vec::new());
    for own in cases::every_operation() {
        let operands: Vec<Operand> =
            own.types.iter().map(|own| source.array(own.1, &[50], false)).collect();
        cases.push(case(own.name, &own.program, Rule::Numpy, Hoisting::Never, operands, &limits));
        programs.push((own.op, own.program));
    }
    let Some(compiled) = Compiled::new("operations", &cases) else { return };
    for ((op, program), case) in programs.iter().zip(&cases) {
        let views: Vec<AnyView<'_>> = case.operands.iter().map(Operand::view).collect();
        let expected = program.run(&views).expect("the engine's result");
        compare(&case.name, &compiled.run(case), &expected, random::places(op.name()));
    }
}

#[test]
fn every_conversion() {
    let limits = Limits::new(2);
    let mut source = random::Source::new(2);
    let (mut cases, mut programs) = (Vec::new(), Vec::new());
    for &from in DType::ALL {
        for &to in DType::ALL {
            if from == DType::String || to == DType::String {
                continue;
            }
            let text = format!("x.astype({to})");
            let Ok(program) = TypedProgram::parse(&text, &[("x", from)]) else { continue };
            let operands = vec![source.array(from, &[150], false)];
            let name = format!("{from} to {to}");
            cases.push(case(name, &program, Rule::Numpy, Hoisting::Never, operands, &limits));
            programs.push(program);
        }
    }
    let Some(compiled) = Compiled::new("conversions", &cases) else { return };
    for (program, case) in programs.iter().zip(&cases) {
        let views: Vec<AnyView<'_>> = case.operands.iter().map(Operand::view).collect();
        let expected = program.run(&views).expect("the engine's result");
        compare(&case.name, &compiled.run(case), &expected, 0.0);
    }
}

#[test]
fn random_programs_over_random_layouts() {
    let mut source = random::Source::new(3);
    let (mut cases, mut programs) = (Vec::new(), Vec::new());
    while cases.len() < 200 {
        let limits = Limits {
            multiprocessors: [1, 4, 132][source.below(3)],
            elements: if source.below(4) == 0 { 300 } else { 1 << 30 },
            loops: if source.below(4) == 0 { 2 } else { 8 },
            joined: [0, 1 << 20][source.below(2)],
            joint: 0,
        };
        let Some((name, program, operands, hoisting)) = source.program() else { continue };
        cases.push(case(name, &program, Rule::Numpy, hoisting, operands, &limits));
        programs.push(program);
    }
    let Some(compiled) = Compiled::new("programs", &cases) else { return };
    let mut seen = HashMap::new();
    for (program, case) in programs.iter().zip(&cases) {
        let views: Vec<AnyView<'_>> = case.operands.iter().map(Operand::view).collect();
        let expected = program.run(&views).expect("the engine's result");
        compare(&case.name, &compiled.run(case), &expected, random::places(&case.name));
        for launch in case.passes.iter().flat_map(|pass| &pass.launches) {
            let kind = match &launch.kind {
                Kind::Elementwise(own) if own.is_ragged => "ragged",
                Kind::Elementwise(_) => "elementwise",
                Kind::Tiled(_) => "tiled",
                Kind::Along(_) => "along",
                Kind::Across(_) => "across",
                Kind::Pairwise(_) => "pairwise",
                Kind::Joint(_) => "joint",
            };
            *seen.entry(kind).or_insert(0) += 1;
            if launch.joins_partial {
                *seen.entry("joins").or_insert(0) += 1;
            }
        }
    }
    for kind in ["ragged", "elementwise", "tiled", "along", "across", "joins"] {
        assert!(seen.get(kind).is_some_and(|&count| count > 3), "{kind} in {seen:?}");
    }
}

#[test]
fn short_rows_are_joined() {
    let limits = Limits { joined: 0, ..Limits::new(4) };
    let mut source = random::Source::new(6);
    let (mut cases, mut programs) = (Vec::new(), Vec::new());
    for (text, types, shapes) in [
        ("(a - b) * c", [DType::U8, DType::F32, DType::F32], [&[3, 8, 4, 3][..], &[3], &[3]]),
        ("a + b * 2", [DType::F32; 3], [&[64, 5], &[5], &[]]),
        ("a & b", [DType::Bool; 3], [&[32, 7], &[7], &[]]),
        ("where(a > b, exp(b) * a, c)", [DType::F16; 3], [&[6, 16, 9], &[1, 9], &[6, 16, 9]]),
        ("a * b", [DType::I8; 3], [&[10, 3], &[3], &[]]),
    ] {
        let names = ["a", "b", "c"];
        let used = names
            .iter()
            .zip(types)
            .filter(|own| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == *own.0));
        let used: Vec<(&str, DType)> = used.map(|own| (*own.0, own.1)).collect();
        let program = TypedProgram::parse(text, &used).expect("a program");
        let operands: Vec<Operand> =
            used.iter().zip(shapes).map(|(own, shape)| source.array(own.1, shape, false)).collect();
        let name = format!("{text} of {used:?}");
        cases.push(case(name, &program, Rule::Numpy, Hoisting::Never, operands, &limits));
        programs.push(program);
    }
    let joined = |case: &Case| case.passes.iter().filter(|pass| pass.is_expansion).count();
    // Ten rows of three are no whole number of vectors of sixteen.
    assert_eq!(cases.iter().map(joined).collect::<Vec<_>>(), [2, 1, 1, 1, 0]);
    let Some(compiled) = Compiled::new("joined", &cases) else { return };
    for (program, case) in programs.iter().zip(&cases) {
        let views: Vec<AnyView<'_>> = case.operands.iter().map(Operand::view).collect();
        let expected = program.run(&views).expect("the engine's result");
        compare(&case.name, &compiled.run(case), &expected, random::places(&case.name));
    }
}

#[test]
fn other_rules_bring_operands_together_as_on_the_host() {
    let limits = Limits::new(4);
    let mut source = random::Source::new(4);
    let f32 = DType::F32;
    let program =
        TypedProgram::parse("a * b * 2 - 1", &[("a", f32), ("b", f32)]).expect("a program");
    let (mut cases, mut kept) = (Vec::new(), Vec::new());
    for (rule, a, b) in cases::RULES {
        let operands = vec![source.array(f32, a, true), source.array(f32, b, true)];
        cases.push(case(
            format!("{rule:?}"),
            &program,
            rule,
            Hoisting::WherePays,
            operands,
            &limits,
        ));
        kept.push(rule);
    }
    let Some(compiled) = Compiled::new("rules", &cases) else { return };
    for (rule, case) in kept.iter().zip(&cases) {
        let views: Vec<AnyView<'_>> = case.operands.iter().map(Operand::view).collect();
        let expected = program.bind(&views).rule(*rule).compute().expect("the engine's result");
        compare(&case.name, &compiled.run(case), &expected, 0.0);
    }
}

#[test]
fn copies_and_sums_to_a_shape() {
    let limits = Limits::new(4);
    let mut source = random::Source::new(5);
    let (mut cases, mut expected) = (Vec::new(), Vec::new());
    for &dtype in &[DType::U8, DType::I32, DType::F16, DType::F32, DType::C128] {
        for (shape, to) in [
            (&[3, 40, 7][..], &[40, 7][..]),
            (&[3, 40, 7], &[1, 40, 1]),
            (&[700, 3], &[3]),
            (&[5, 6], &[]),
            (&[5, 6], &[5, 6]),
            (&[0, 6], &[6]),
        ] {
            let operand = source.array(dtype, shape, true);
            let out = Layout::fresh(to);
            let pass = sum_to(dtype, &operand.layout(), &out, &limits);
            let whole = numbers(&operand.view().to_owned());
            let mut sums = ArrayD::from_elem(IxDyn(to), simulcast::Complex::new(0.0, 0.0));
            let array = ArrayD::from_shape_vec(IxDyn(shape), whole).expect("as many elements");
            for (at, x) in array.indexed_iter() {
                let at: Vec<usize> = (0..to.len())
                    .map(|k| if to[k] == 1 { 0 } else { at[k + shape.len() - to.len()] })
                    .collect();
                sums[IxDyn(&at)] += x;
            }
            expected.push((false, sums));
            let name = format!("sum of {dtype} {shape:?} to {to:?}");
            cases.push(Case {
                name,
                passes: vec![pass],
                operands: vec![operand],
                dtype,
                shape: to.to_vec(),
                others: Vec::new(),
            });
            let operand = source.array(dtype, to, true);
            let pass = copy(dtype, &operand.layout(), &Layout::fresh(shape), &limits);
            let own = ArrayD::from_shape_vec(IxDyn(to), numbers(&operand.view().to_owned()));
            let own =
                own.expect("as many elements").broadcast(IxDyn(shape)).expect("it fits").to_owned();
            expected.push((true, own));
            let name = format!("copy of {dtype} {to:?} to {shape:?}");
            cases.push(Case {
                name,
                passes: vec![pass],
                operands: vec![operand],
                dtype,
                shape: shape.to_vec(),
                others: Vec::new(),
            });
        }
    }
    let Some(compiled) = Compiled::new("copies", &cases) else { return };
    for ((is_copy, expected), case) in expected.iter().zip(&cases) {
        let got = compiled.run(case);
        let precision = match case.dtype {
            DType::F16 => 2e-3,
            DType::F32 => 1e-5,
            _ => 1e-12,
        };
        for (a, b) in numbers(&got).into_iter().zip(expected) {
            // Sums of integers wrap.
            let wrapped = match case.dtype {
                DType::U8 => (b.re as i64 as u8).into(),
                DType::I32 => (b.re as i64 as i32).into(),
                _ => b.re,
            };
            let bound = if *is_copy { 0.0 } else { precision * (50.0 + wrapped.abs()) };
            assert!(
                (a.re - wrapped).abs() <= bound
                    || a.re.is_nan() && b.re.is_nan()
                    || a.re == wrapped,
                "{}: {a:?} is not {b:?}",
                case.name
            );
        }
    }
}

#[test]
fn constants_alone_and_empty_arrays_are_computed() {
    let limits = Limits::new(4);
    let f32 = DType::F32;
    let (mut cases, mut programs) = (Vec::new(), Vec::new());
    for (text, shape) in [
        ("x * 0 + 2", &[][..]),
        ("x + 1", &[0, 4]),
        ("sum(x, axis=0)", &[0, 4]),
        ("sum(x, axis=1)", &[0, 4]),
        ("mean(x)", &[0]),
        ("prod(x, axis=0)", &[0, 3]),
        ("max(x)", &[1]),
    ] {
        let program = TypedProgram::parse(text, &[("x", f32)]).expect("a program");
        let operands = vec![zeros(f32, shape)];
        cases.push(case(text.into(), &program, Rule::Numpy, Hoisting::Never, operands, &limits));
        programs.push(program);
    }
    let Some(compiled) = Compiled::new("empty", &cases) else { return };
    for (program, case) in programs.iter().zip(&cases) {
        let views: Vec<AnyView<'_>> = case.operands.iter().map(Operand::view).collect();
        let expected = program.run(&views).expect("the engine's result");
        compare(&case.name, &compiled.run(case), &expected, 0.0);
    }
}

/// A body needs the text of complex numbers exactly where it has one.
#[test]
fn what_is_not_complex_is_compiled_without_complex_numbers() {
    let real = Body::copy(DType::F32);
    let kind = Kind::Elementwise(crate::source::Elementwise {
        rank: 1,
        index: crate::source::Index::Narrow,
        vector: 4,
        unroll: 1,
        is_ragged: false,
        out: crate::source::Access::Flat,
        ins: vec![crate::source::Access::Flat],
    });
    assert!(!crate::source::text(&real, &kind).contains("op_arctanh(c128"));
    assert!(crate::source::text(&Body::copy(DType::C64), &kind).contains("op_arctanh(c128"));
}
