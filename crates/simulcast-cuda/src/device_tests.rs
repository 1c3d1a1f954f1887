//! Programs on a GPU against the engine of `simulcast`: `cargo xtask test gpu`.
//!
//! They need a device, and run where `SIMULCAST_TEST_GPU` is set; elsewhere they pass without doing anything. The
//! compiled test needs nothing but the driver and NVRTC, so that it may be built on one machine and run on another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ndarray::{ArrayD, ArrayView1, IxDyn};
use simulcast::program::Hoisting;
use simulcast::{AnyArray, AnyView, DType, Rule, TypedProgram};

use crate::host_tests::{Operand, cases, compare, numbers, random};
use crate::{Device, DeviceArray, DeviceProgram, DeviceView, DeviceViewMut, Error, OnDevice as _};
use crate::{Stream, ULP_MAX, copy_into, copy_to, samples, sum_to};

/// How many threads compile kernels at once.
const THREADS_MAX: usize = 16;

/// The device, where tests on one are wanted.
fn device() -> Option<Device> {
    std::env::var_os("SIMULCAST_TEST_GPU")?;
    Some(Device::new(0).expect("a device"))
}

/// Runs `one` for all numbers below `count`, on many threads, each with a stream of its own.
fn on_threads(device: &Device, count: usize, one: impl Fn(usize, &Stream) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let stream = device.stream().expect("a stream");
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    one(at, &stream);
                }
            });
        }
    });
}

/// An operand of the host's tests on the device: the same bytes around it, the same strides.
struct Uploaded<'o> {
    memory: DeviceArray,
    operand: &'o Operand,
}

impl<'o> Uploaded<'o> {
    fn new(operand: &'o Operand, stream: &Stream) -> Self {
        let words = &operand.memory.0;
        // SAFETY: the words as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * size_of::<u128>())
        };
        let memory = stream.upload(&AnyView::from(&ArrayView1::from(bytes))).expect("an upload");
        Self { memory, operand }
    }

    fn view(&self) -> DeviceView<'_> {
        let Operand { offset, dtype, shape, strides, .. } = self.operand;
        let address = self.memory.address() + *offset as u64;
        let device = self.memory.device();
        // SAFETY: the operand's shape and strides stay within its memory, which was copied.
        unsafe { DeviceView::from_raw(device, *dtype, address, shape, strides) }.expect("a view")
    }
}

fn run_on(program: &DeviceProgram, operands: &[Operand], stream: &Stream) -> AnyArray {
    let uploaded: Vec<Uploaded<'_>> =
        operands.iter().map(|own| Uploaded::new(own, stream)).collect();
    let views: Vec<DeviceView<'_>> = uploaded.iter().map(Uploaded::view).collect();
    let made = program.run_on(&views, stream).expect("a result");
    made.download().expect("a download")
}

#[test]
fn every_kernel_of_the_matrix_is_loaded() {
    let Some(device) = device() else { return };
    let all = samples();
    assert!(all.len() > 3000, "{} kernels in the matrix", all.len());
    let start = Instant::now();
    on_threads(&device, all.len(), |at, _| {
        let sample = &all[at];
        if let Err(error) = device.kernel(&sample.text) {
            panic!("{}: {error}", sample.name);
        }
    });
    println!("{} kernels of the matrix in {:.1?}", all.len(), start.elapsed());
}

#[test]
fn operations_of_every_type_in_every_layout() {
    let Some(device) = device() else { return };
    let shapes: [(&str, &[usize], &[usize]); 8] = [
        ("alike", &[40, 72], &[40, 72]),
        ("row", &[40, 72], &[72]),
        ("column", &[40, 72], &[40, 1]),
        ("middle", &[5, 16, 24], &[5, 1, 24]),
        ("odd row", &[33, 31], &[31]),
        ("one number", &[40, 72], &[]),
        ("outer", &[70, 1], &[1, 64]),
        ("one axis", &[4099], &[4099]),
    ];
    let programs = cases::every_operation();
    on_threads(&device, programs.len(), |at, stream| {
        let cases::Operation { op, name, program, types } = &programs[at];
        let mut source = random::Source::new(at as u64);
        let on_device = program.on_device(&device);
        // Two layouts each: kernels of all are in the matrix, and take a while to compile.
        for turn in 0..2 {
            let (kind, first, others) = shapes[(at + turn * 3) % shapes.len()];
            for is_odd in [false, true] {
                let operands: Vec<Operand> = types
                    .iter()
                    .enumerate()
                    .map(|(n, own)| {
                        source.array(own.1, if n == 0 { first } else { others }, is_odd)
                    })
                    .collect();
                let views: Vec<AnyView<'_>> = operands.iter().map(Operand::view).collect();
                let expected = program.run(&views).expect("the engine's result");
                let got = run_on(&on_device, &operands, stream);
                compare(&format!("{name}, {kind}"), &got, &expected, random::places(op.name()));
            }
        }
    });
    println!("{} operations, four layouts each", programs.len());
}

#[test]
fn conversions_between_all_types() {
    let Some(device) = device() else { return };
    let numbers = || DType::ALL.iter().copied().filter(|own| *own != DType::String);
    let pairs: Vec<(DType, DType)> =
        numbers().flat_map(|from| numbers().map(move |to| (from, to))).collect();
    on_threads(&device, pairs.len(), |at, stream| {
        let (from, to) = pairs[at];
        let text = format!("x.astype({to})");
        let Ok(program) = TypedProgram::parse(&text, &[("x", from)]) else { return };
        let operands = [random::Source::new(at as u64).array(from, &[5000], false)];
        let expected = program.run(&[operands[0].view()]).expect("the engine's result");
        let got = run_on(&program.on_device(&device), &operands, stream);
        compare(&format!("{from} to {to}"), &got, &expected, 0.0);
    });
}

/// The distance of two numbers in units in the last place of the second.
fn ulps(got: f64, expected: f64, digits: i32, least: i32) -> f64 {
    if got == expected || got.is_nan() && expected.is_nan() {
        return 0.0;
    }
    if !got.is_finite() || !expected.is_finite() {
        return f64::INFINITY;
    }
    let (_, exponent) = (0, expected.abs().log2().floor() as i32);
    let unit = 2_f64.powi((exponent - digits + 1).max(least));
    (got - expected).abs() / unit
}

/// Functions of one and two real numbers, and where they are asked for.
const FUNCTIONS: [(&str, f64, f64); 31] = [
    ("exp(x)", -80.0, 80.0),
    ("exp2(x)", -120.0, 120.0),
    ("expm1(x)", -30.0, 80.0),
    ("log(x)", 1e-30, 1e30),
    ("log2(x)", 1e-30, 1e30),
    ("log10(x)", 1e-30, 1e30),
    ("log1p(x)", -0.999, 1e20),
    ("sin(x)", -1e4, 1e4),
    ("cos(x)", -1e4, 1e4),
    ("tan(x)", -1e4, 1e4),
    ("sin(x)", -1e30, 1e30),
    ("arcsin(x)", -1.0, 1.0),
    ("arccos(x)", -1.0, 1.0),
    ("arctan(x)", -1e3, 1e3),
    ("sinh(x)", -80.0, 80.0),
    ("cosh(x)", -80.0, 80.0),
    ("tanh(x)", -20.0, 20.0),
    ("arcsinh(x)", -1e10, 1e10),
    ("arccosh(x)", 1.0, 1e10),
    ("arctanh(x)", -1.0, 1.0),
    ("erf(x)", -6.0, 6.0),
    ("sigmoid(x)", -80.0, 80.0),
    ("softsign(x)", -1e3, 1e3),
    ("cbrt(x)", -1e30, 1e30),
    ("sqrt(x)", 0.0, 1e30),
    ("reciprocal(x)", -1e30, 1e30),
    ("power(abs(x), y)", -10.0, 10.0),
    ("arctan2(x, y)", -1e3, 1e3),
    ("hypot(x, y)", -1e15, 1e15),
    ("fmod(x, y)", -1e3, 1e3),
    ("x / y", -1e15, 1e15),
];

#[test]
fn functions_stay_within_the_stated_bound() {
    const COUNT: usize = 1 << 20;
    let Some(device) = device() else { return };
    println!("| function | from | to | float32, ULP | float64, ULP |\n|---|--:|--:|--:|--:|");
    let mut most = [0.0_f64; 2];
    for (k, (text, low, high)) in FUNCTIONS.into_iter().enumerate() {
        let mut source = random::Source::new(k as u64);
        let mut argument = || -> f64 {
            let part = (source.next() >> 11) as f64 / (1_u64 << 53) as f64;
            // Half of them evenly, half of them by magnitude.
            if source.below(2) == 0 || low == 0.0 && high == 0.0 {
                return low + (high - low) * part;
            }
            let size = low.abs().max(high.abs());
            let small = size * 2_f64.powf(-60.0 * part);
            let signed = if low < 0.0 && source.below(2) == 0 { -small } else { small };
            signed.clamp(low, high)
        };
        let takes_two = text.contains('y');
        let xs: Vec<f64> = (0..COUNT).map(|_| argument()).collect();
        let ys: Vec<f64> = (0..COUNT).map(|_| argument()).collect();
        let mut worst = [0.0; 2];
        for (place, dtype) in [DType::F32, DType::F64].into_iter().enumerate() {
            let (digits, least) = if place == 0 { (24, -149) } else { (53, -1074) };
            let rounded = |own: &[f64]| -> ArrayD<f64> {
                let own = own.iter().map(|&x| if place == 0 { f64::from(x as f32) } else { x });
                ArrayD::from_shape_vec(IxDyn(&[COUNT]), own.collect()).expect("a vector")
            };
            let arrays = [rounded(&xs), rounded(&ys)];
            let used = &arrays[..if takes_two { 2 } else { 1 }];
            let types = |dtype| -> Vec<(&'static str, DType)> {
                ["x", "y"][..used.len()].iter().map(|name| (*name, dtype)).collect()
            };
            // Of float32 the reference has twice the digits.
            let reference = TypedProgram::parse(text, &types(DType::F64)).expect("a program");
            let views: Vec<AnyView<'_>> = used.iter().map(AnyView::from).collect();
            let expected = numbers(&reference.run(&views).expect("the engine's result"));
            let program = TypedProgram::parse(text, &types(dtype)).expect("a program");
            let uploaded: Vec<DeviceArray> = used
                .iter()
                .map(|own| match dtype {
                    DType::F32 => device.upload(&AnyView::from(&own.mapv(|x| x as f32))),
                    _ => device.upload(&AnyView::from(own)),
                })
                .collect::<Result<_, _>>()
                .expect("uploads");
            let uploaded: Vec<&DeviceArray> = uploaded.iter().collect();
            let got = program.on_device(&device).run(&uploaded).expect("a result");
            let got = numbers(&got.download().expect("a download"));
            for (got, expected) in got.iter().zip(&expected) {
                // What float32 cannot hold is infinite in it, whatever float64 says.
                let expected = if place == 0 && expected.re.abs() > f64::from(f32::MAX) {
                    f64::from(expected.re as f32)
                } else {
                    expected.re
                };
                worst[place] = ulps(got.re, expected, digits, least).max(worst[place]);
            }
            most[place] = most[place].max(worst[place]);
        }
        println!("| `{text}` | {low:e} | {high:e} | {:.2} | {:.2} |", worst[0], worst[1]);
    }
    assert!(most.iter().all(|&own| own <= ULP_MAX), "{most:?} is above {ULP_MAX}");
}

#[test]
fn ten_thousand_random_expressions() {
    let Some(device) = device() else { return };
    let wanted = std::env::var("SIMULCAST_TEST_EXPRESSIONS").ok().and_then(|own| own.parse().ok());
    let (count, start) = (wanted.unwrap_or(10_000), Instant::now());
    let exact = AtomicUsize::new(0);
    on_threads(&device, count, |at, stream| {
        let mut source = random::Source::new(0x5eed + at as u64);
        let case = std::iter::repeat_with(|| source.expression()).flatten().next();
        let case = case.expect("an expression");
        let views: Vec<AnyView<'_>> = case.operands.iter().map(Operand::view).collect();
        let expected = case.program.run(&views).expect("the engine's result");
        let on_device = case.program.on_device(&device).hoisting(case.hoisting);
        let got = run_on(&on_device, &case.operands, stream);
        let name = format!("{at}: {}", case.name);
        assert_eq!((got.dtype(), got.shape()), (expected.dtype(), expected.shape()), "{name}");
        let scale = case.scale.map(|scale| numbers(&scale.run(&views).expect("magnitudes")));
        if scale.is_none() && case.units == 0.0 {
            exact.fetch_add(1, Ordering::Relaxed);
        }
        let precision = match got.dtype() {
            DType::F16 => 1.0 / 1024.0,
            DType::Bf16 => 1.0 / 128.0,
            DType::F32 | DType::C64 => f64::from(f32::EPSILON),
            DType::F64 | DType::C128 => f64::EPSILON,
            _ => 0.0,
        }
        .max(case.precision);
        for (n, (a, b)) in numbers(&got).into_iter().zip(numbers(&expected)).enumerate() {
            let bound = match &scale {
                Some(scale) if !scale[n].re.is_finite() => continue,
                Some(scale) => 64.0 * precision * scale[n].re,
                None => case.units * precision * b.re.abs().max(f64::from(f32::MIN_POSITIVE)),
            };
            let near =
                |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= bound;
            assert!(near(a.re, b.re) && near(a.im, b.im), "{name}: at {n}, {a:?} is not {b:?}");
        }
    });
    let exact = exact.into_inner();
    println!("{count} expressions, {exact} of them bit for bit, in {:.1?}", start.elapsed());
}

#[test]
fn other_rules_copies_and_sums() {
    let Some(device) = device() else { return };
    let f32 = DType::F32;
    let program =
        TypedProgram::parse("a * b * 2 - 1", &[("a", f32), ("b", f32)]).expect("a program");
    let (stream, mut source) = (device.stream().expect("a stream"), random::Source::new(7));
    for (rule, a, b) in cases::RULES {
        let operands = [source.array(f32, a, true), source.array(f32, b, true)];
        let views: Vec<AnyView<'_>> = operands.iter().map(Operand::view).collect();
        let expected = program.bind(&views).rule(rule).compute().expect("the engine's result");
        let got = run_on(&program.on_device(&device).rule(rule), &operands, &stream);
        compare(&format!("{rule:?}"), &got, &expected, 0.0);
    }
    for dtype in DType::ALL.iter().copied().filter(|own| *own != DType::String) {
        for (shape, to) in [
            (&[3, 400, 70][..], &[400, 70][..]),
            (&[3, 400, 70], &[1, 400, 1]),
            (&[7000, 3], &[3]),
            (&[50, 600], &[]),
            (&[5, 6], &[5, 6]),
            (&[0, 6], &[6]),
            (&[257, 4096], &[4096]),
            (&[8, 16, 33, 33], &[16, 1, 1]),
        ] {
            let operand = source.array(dtype, to, true);
            let own = Uploaded::new(&operand, &stream);
            let got = copy_to(&own.view(), shape, &stream).expect("a copy");
            let expected = operand.view().broadcast_to(shape).expect("it fits").to_owned();
            let name = format!("copy of {dtype} {to:?} to {shape:?}");
            compare(&name, &got.download().expect("a download"), &expected, 0.0);
            if dtype == DType::Bool {
                continue;
            }
            let operand = source.array(dtype, shape, true);
            let whole = operand.view().to_owned();
            let missing = shape.len() - to.len();
            let axes: Vec<String> = (0..shape.len())
                .filter(|&at| at < missing || to[at - missing] != shape[at])
                .map(|at| at.to_string())
                .collect();
            let text = match axes.len() {
                0 => "x + 0".to_owned(),
                _ => format!("sum(x, axis=({},))", axes.join(", ")),
            };
            let sum = TypedProgram::parse(&format!("({text}).astype({dtype})"), &[("x", dtype)]);
            let own = Uploaded::new(&operand, &stream);
            let got = sum_to(&own.view(), to, &stream).expect("a sum").download().expect("it");
            assert_eq!(got.shape(), to);
            let expected = numbers(&sum.expect("a sum").run(&[whole.view()]).expect("the sum"));
            let precision = match dtype {
                DType::F16 => 2e-3,
                DType::Bf16 => 2e-2,
                DType::F32 | DType::C64 => 1e-5,
                _ => 1e-12,
            };
            for (a, b) in numbers(&got).into_iter().zip(expected) {
                let bound = precision * (2000.0 + b.re.abs());
                let near = |x: f64, y: f64| {
                    x == y
                        || x.is_nan() && y.is_nan()
                        || !dtype.is_integer() && (x - y).abs() <= bound
                };
                let name = format!("sum of {dtype} {shape:?} to {to:?}");
                assert!(near(a.re, b.re) && near(a.im, b.im), "{name}: {a:?} is not {b:?}");
            }
        }
    }
}

/// Sums of narrow integers are as wide as 64 bits: what is added is what the narrow type holds.
#[test]
fn sums_of_every_narrow_integer() {
    let Some(device) = device() else { return };
    let types = [DType::I8, DType::I16, DType::U8, DType::U16];
    const TEXTS: [&str; 11] = [
        "abs(a)",
        "-a",
        "a * a",
        "a + a",
        "a - b",
        "a << b",
        "~a",
        "abs(a - b)",
        "0 - a",
        "a * b * 127",
        "a // b",
    ];
    on_threads(&device, TEXTS.len() * types.len(), |at, stream| {
        let (text, dtype) = (TEXTS[at / types.len()], types[at % types.len()]);
        let text = format!("sum({text}, axis=-1)");
        let program = TypedProgram::parse(&text, &[("a", dtype), ("b", dtype)]);
        let program = program.expect("a program");
        let values = random::Source::every(dtype);
        let operands = [values, random::Source::new(at as u64).array(dtype, &[256, 1], false)];
        let views: Vec<AnyView<'_>> = operands.iter().map(Operand::view).collect();
        let expected = program.run(&views).expect("the engine's result");
        let got = run_on(&program.on_device(&device), &operands, stream);
        compare(&format!("{text} of {dtype}"), &got, &expected, 0.0);
    });
}

#[test]
fn squares_of_results() {
    let Some(device) = device() else { return };
    let types = cases::SQUARE_TYPES;
    on_threads(&device, cases::SQUARES.len() * types.len(), |at, stream| {
        let (text, a, b) = cases::SQUARES[at / types.len()];
        let dtype = types[at % types.len()];
        let Ok(program) = TypedProgram::parse(text, &[("a", dtype), ("b", dtype)]) else { return };
        let mut source = random::Source::new(at as u64);
        // Enough squares for all multiprocessors, and results of a few.
        for (more, is_odd) in [(1, false), (1, true), (12, false), (12, true)] {
            let longer = |shape: &[usize]| -> Vec<usize> {
                shape.iter().map(|&size| if size > 35 { size * more } else { size }).collect()
            };
            let (a, b) = (longer(a), longer(b));
            let passes = program.lower(&[&a, &b], Rule::Numpy, Hoisting::Never).expect("shapes");
            let steps = passes.iter().map(|pass| pass.shape().iter().product::<usize>()).sum();
            if (40_000_000..).contains::<usize>(&steps) {
                continue;
            }
            let operands = [&a, &b].map(|shape| source.bounded(dtype, shape, is_odd));
            let views: Vec<AnyView<'_>> = operands.iter().map(Operand::view).collect();
            let expected = program.run(&views).expect("the engine's result");
            let got = run_on(&program.on_device(&device), &operands, stream);
            let places = if got.dtype().is_integer() { 0.0 } else { random::places(text) };
            compare(&format!("{text} of {dtype}"), &got, &expected, places);
        }
    });
}

#[test]
fn values_and_gradients() {
    let Some(device) = device() else { return };
    let types = [DType::F32, DType::F64, DType::F16, DType::Bf16];
    on_threads(&device, cases::LOSSES.len() * types.len(), |at, stream| {
        let ((text, wrt, shapes), dtype) =
            (cases::LOSSES[at / types.len()], types[at % types.len()]);
        let names = [("a", dtype), ("b", dtype), ("c", dtype)];
        let loss = TypedProgram::parse(text, &names).expect("a loss");
        let program = loss.value_and_grad(wrt).expect("gradients");
        let on_device = program.on_device(&device);
        let mut source = random::Source::new(at as u64);
        // As they are, and large enough to be computed together.
        for (more, is_odd) in [(1, false), (1, true), (16, false), (16, true)] {
            let longer = |shape: &[usize]| -> Vec<usize> {
                shape.iter().map(|&size| if size > 9 { size * more } else { size }).collect()
            };
            let operands: Vec<Operand> =
                shapes.iter().map(|shape| source.small(dtype, &longer(shape), is_odd)).collect();
            let views: Vec<AnyView<'_>> = operands.iter().map(Operand::view).collect();
            let expected = program.run(&views).expect("the engine's results");
            let uploaded: Vec<Uploaded<'_>> =
                operands.iter().map(|own| Uploaded::new(own, stream)).collect();
            let views: Vec<DeviceView<'_>> = uploaded.iter().map(Uploaded::view).collect();
            let made = on_device.run_on(&views, stream).expect("results");
            for (got, expected) in made.iter().zip(&expected) {
                let got = got.download().expect("a download");
                compare(&format!("gradients, the sum {text} of {dtype}"), &got, expected, 256.0);
            }
        }
    });
}

#[test]
fn results_go_into_places_of_any_layout() {
    let Some(device) = device() else { return };
    let stream = device.stream().expect("a stream");
    let mut source = random::Source::new(11);
    let types = [("a", DType::F32), ("b", DType::F32)];
    for text in
        ["a * 2 + b", "sum(a, axis=0) + b", "sum(a * b, axis=-1, keepdims=True)", "a.T * b.T"]
    {
        let program = TypedProgram::parse(text, &types).expect("a program");
        let on_device = program.on_device(&device);
        for _ in 0..30 {
            let operands =
                [source.array(DType::F32, &[37, 70], true), source.array(DType::F32, &[70], true)];
            let views: Vec<AnyView<'_>> = operands.iter().map(Operand::view).collect();
            let Ok(expected) = program.run(&views) else { continue };
            let place = loop {
                // A place that repeats is none.
                let place = source.array(DType::F32, expected.shape(), true);
                if crate::array::is_apart(&place.shape, &place.strides) {
                    break place;
                }
            };
            let own: Vec<Uploaded<'_>> =
                operands.iter().map(|own| Uploaded::new(own, &stream)).collect();
            let views: Vec<DeviceView<'_>> = own.iter().map(Uploaded::view).collect();
            let out = Uploaded::new(&place, &stream);
            let address = out.memory.address() + place.offset as u64;
            // SAFETY: the place's own memory.
            let to = unsafe {
                DeviceViewMut::from_raw(&device, DType::F32, address, &place.shape, &place.strides)
            };
            on_device.run_into(&views, &mut to.expect("a place"), &stream).expect("a result");
            let got = copy_to(&out.view(), expected.shape(), &stream).expect("a copy");
            compare(text, &got.download().expect("a download"), &expected, 64.0);
        }
    }
    // What is read and written at once is read first.
    let shape = [64, 64];
    let x = source.array(DType::F32, &shape, false);
    let program = TypedProgram::parse("a.T + a", &types[..1]).expect("a program");
    let expected = program.run(&[x.view()]).expect("the engine's result");
    let own = Uploaded::new(&x, &stream);
    let place = own.memory.address() + x.offset as u64;
    // SAFETY: the memory of x, which nothing else uses.
    let to = unsafe { DeviceViewMut::from_raw(&device, DType::F32, place, &shape, &x.strides) };
    let on_device = program.on_device(&device);
    on_device.run_into(&[own.view()], &mut to.expect("a place"), &stream).expect("a result");
    let got = copy_to(&own.view(), &shape, &stream).expect("a copy").download();
    compare("a.T + a into a", &got.expect("a download"), &expected, 0.0);
    // SAFETY: as above; it is refused before anything is written.
    let repeated = unsafe { DeviceViewMut::from_raw(&device, DType::F32, place, &shape, &[0, 1]) };
    assert_eq!(repeated.err(), Some(Error::RepeatedOut));
}

#[test]
fn more_elements_than_32_bits_count() {
    const SIDE: usize = 70_001;
    let Some(device) = device() else { return };
    let stream = device.stream().expect("a stream");
    let row = ArrayD::from_shape_fn(IxDyn(&[SIDE]), |at| (at[0] % 251) as u8);
    let column = ArrayD::from_shape_fn(IxDyn(&[SIDE, 1]), |at| (at[0] % 241) as u8);
    let types = [("a", DType::U8), ("b", DType::U8)];
    let program = TypedProgram::parse("a * 3 + b", &types).expect("a program");
    let (a, b) = (device.upload(&AnyView::from(&column)), device.upload(&AnyView::from(&row)));
    let (a, b) = (a.expect("a column"), b.expect("a row"));
    let program = program.on_device(&device);
    let made = program.run_on(&[a.view(), b.view()], &stream).expect("a result");
    let expected =
        |r: usize, c: usize| ((r % 241) as u8).wrapping_mul(3).wrapping_add((c % 251) as u8);
    let check = |name: &str, array: AnyArray, expected: &(dyn Fn(usize, usize) -> u8 + Sync)| {
        let AnyArray::U8(array) = array else { panic!("{name}: {}", array.dtype()) };
        assert_eq!(array.shape(), [SIDE, SIDE], "{name}");
        let all = array.as_slice().expect("contiguous");
        std::thread::scope(|scope| {
            for (part, rows) in all.chunks(SIDE * SIDE.div_ceil(16)).enumerate() {
                scope.spawn(move || {
                    for (r, row) in rows.chunks(SIDE).enumerate() {
                        let r = part * SIDE.div_ceil(16) + r;
                        for (c, &x) in row.iter().enumerate() {
                            assert_eq!(x, expected(r, c), "{name}: at {r}, {c}");
                        }
                    }
                });
            }
        });
    };
    check("a column and a row", made.download().expect("a download"), &expected);
    // Transposed, and backwards from the last element.
    let turned = made.permuted_axes(&[1, 0]).expect("two axes");
    let turned = copy_to(&turned.view(), &[SIDE, SIDE], &stream).expect("a copy");
    check("transposed", turned.download().expect("a download"), &|r, c| expected(c, r));
    drop(turned);
    let last = made.address() + (SIDE * SIDE - 1) as u64;
    let strides = [-SIDE.cast_signed(), -1];
    // SAFETY: from the last element of `made` back to the first.
    let back = unsafe { DeviceView::from_raw(&device, DType::U8, last, &[SIDE, SIDE], &strides) };
    let back = copy_to(&back.expect("a view"), &[SIDE, SIDE], &stream).expect("a copy");
    let mirrored = |r: usize, c: usize| expected(SIDE - 1 - r, SIDE - 1 - c);
    check("backwards", back.download().expect("a download"), &mirrored);
    drop(back);
    for axis in [0, 1] {
        let text = format!("sum(a, axis={axis}, dtype=int64)");
        let Ok(sum) = TypedProgram::parse(&text, &types[..1]).or_else(|_| {
            TypedProgram::parse(&format!("sum(a.astype(int64), axis={axis})"), &types[..1])
        }) else {
            panic!("{text}")
        };
        let sum = sum.on_device(&device).run_on(&[made.view()], &stream).expect("a sum");
        let sum = numbers(&sum.download().expect("a download"));
        for k in [0, 1, 12_345, SIDE - 1] {
            let own = |n: usize| f64::from(if axis == 0 { expected(n, k) } else { expected(k, n) });
            assert_eq!(sum[k].re, (0..SIDE).map(own).sum::<f64>(), "axis {axis}, at {k}");
        }
    }
}

#[test]
fn results_are_made_in_parts() {
    let Some(device) = device() else { return };
    let stream = device.stream().expect("a stream");
    let mut source = random::Source::new(17);
    let types = [("a", DType::F32), ("b", DType::F32)];
    for text in ["a * 2 + b", "a.T - b", "sum(a, axis=0) * b", "a + max(a, axis=0)", "sum(a * a)"] {
        let program = TypedProgram::parse(text, &types);
        let one = TypedProgram::parse(text, &types[..1]);
        let (program, count) = match program {
            Ok(program) if text.contains('b') => (program, 2),
            _ => (one.expect("a program of one operand"), 1),
        };
        let operands =
            [source.array(DType::F32, &[70, 70], true), source.array(DType::F32, &[70], true)];
        let views: Vec<AnyView<'_>> = operands[..count].iter().map(Operand::view).collect();
        let expected = program.run(&views).expect("the engine's result");
        for memory in [0, 5000, 1 << 30] {
            let (mut made, mut parts) = (Vec::new(), 0);
            let on_device = program.on_device(&device);
            let take = |_, part: AnyArray| -> Result<(), Error> {
                parts += 1;
                made.extend(numbers(&part));
                Ok(())
            };
            on_device.run_in_parts(&views, memory, &stream, take).expect("a result");
            let expected = numbers(&expected);
            assert_eq!(made.len(), expected.len(), "{text}");
            let near =
                |a: f64, b: f64| (a - b).abs() <= 1e-3 * b.abs().max(1.0) || a == b || b.is_nan();
            assert!(made.iter().zip(&expected).all(|(a, b)| near(a.re, b.re)), "{text}");
            assert!(memory > 0 || parts > 1 || !text.contains(['T', '2']), "{text} in {parts}");
        }
    }
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    let Some(device) = device() else { return };
    let stream = device.stream().expect("a stream");
    let one = device.upload(&AnyView::from(&ArrayD::<f64>::zeros(IxDyn(&[1])))).expect("a number");
    let size = device.memory_bytes() / 4;
    let error = copy_to(&one.view(), &[size], &stream).expect_err("no memory for it");
    let text = error.to_string();
    assert!(
        matches!(error, Error::OutOfMemory { asked, free, total }
        if asked == 8 * size && free <= total && total > 0),
        "{text}"
    );
    assert!(text.contains("out of device memory"), "{text}");
    // The device is as usable as before.
    let made = copy_to(&one.view(), &[1000], &stream).expect("a small array");
    assert_eq!(numbers(&made.download().expect("a download")).len(), 1000);
    let huge = copy_to(&one.view(), &[usize::MAX / 4, 8], &stream);
    assert!(huge.is_err(), "more bytes than can be counted");
}

#[test]
fn the_same_bits_on_every_run() {
    let Some(device) = device() else { return };
    let mut source = random::Source::new(5);
    let mut element = || (source.next() >> 40) as f32 / 1e5 - 80.0;
    let x = ArrayD::from_shape_fn(IxDyn(&[1031, 4099]), |_| element());
    let x = device.upload(&AnyView::from(&x)).expect("an upload");
    for text in
        ["sum(x)", "sum(x, axis=0)", "sum(x, axis=1)", "mean(x * x)", "prod(x / 80, axis=0)"]
    {
        let program = TypedProgram::parse(text, &[("x", DType::F32)]).expect("a program");
        let first = program.on_device(&device).run(&[&x]).expect("a result");
        let first = first.download().expect("a download");
        // Beside other work on other streams.
        on_threads(&device, 64, |_, stream| {
            let again = program.on_device(&device).run_on(&[x.view()], stream).expect("a result");
            let again = again.download().expect("a download");
            let bits = |own: &AnyArray| -> Vec<u64> {
                numbers(own).iter().map(|x| x.re.to_bits()).collect()
            };
            assert!(bits(&again) == bits(&first), "{text}: other bits");
        });
    }
}

#[test]
fn streams_wait_for_what_others_make() {
    let Some(device) = device() else { return };
    let types = [("x", DType::F32)];
    let add = TypedProgram::parse("x + 1", &types).expect("a program").on_device(&device);
    let zeros = device.upload(&AnyView::from(&ArrayD::<f32>::zeros(IxDyn(&[1 << 24]))));
    let mut x = zeros.expect("zeros");
    let streams: Vec<Stream> = (0..4).map(|_| device.stream().expect("a stream")).collect();
    for k in 0..200 {
        // Each result is made on another stream than the one before, whose memory goes at once.
        x = add.run_on(&[x.view()], &streams[k % 4]).expect("a result");
    }
    let all = numbers(&x.download().expect("a download"));
    assert!(all.iter().all(|x| x.re == 200.0));
    let mut out =
        device.upload(&AnyView::from(&ArrayD::<f32>::zeros(IxDyn(&[1 << 24])))).expect("it");
    copy_into(&x.view(), &mut out.view_mut().expect("its own"), &streams[1]).expect("a copy");
    assert!(numbers(&out.download().expect("a download")).iter().all(|x| x.re == 200.0));
}

/// Computes something in another process, with a cache of its own; see the test below.
#[test]
#[ignore = "a part of the next test"]
fn child_with_a_cache() {
    let Some(device) = device() else { return };
    let start = Instant::now();
    let types = [("x", DType::F32), ("y", DType::F32)];
    let text = "exp(x - y) / (1 + x * x) + sum(y, axis=0)";
    let program = TypedProgram::parse(text, &types).expect("a program").on_device(&device);
    let x = ArrayD::from_shape_fn(IxDyn(&[64, 64]), |at| at[1] as f32 / 64.0);
    let (x, y) = (AnyView::from(&x), AnyView::from(&x));
    let expected = program.program().run(&[x.clone(), y.clone()]).expect("the engine's result");
    let (a, b) = (device.upload(&x).expect("x"), device.upload(&y).expect("y"));
    device.synchronize().expect("an idle device");
    let ready = Instant::now();
    let made = program.run(&[&a, &b]).expect("a result");
    device.synchronize().expect("a result");
    let first = ready.elapsed();
    compare("exp and sum", &made.download().expect("a download"), &expected, 64.0);
    println!("first call {:.3} ms after {:.0?}", first.as_secs_f64() * 1e3, ready - start);
}

/// The milliseconds of the first call in a new process.
fn first_call(folder: &std::path::Path) -> f64 {
    let mut child = std::process::Command::new(std::env::current_exe().expect("this test"));
    child.args(["--exact", "device_tests::child_with_a_cache", "--include-ignored", "--nocapture"]);
    let done = child.env("SIMULCAST_CACHE_DIR", folder).output().expect("a child");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}\n{}", String::from_utf8_lossy(&done.stderr));
    let own = text.split("first call ").nth(1).and_then(|own| own.split(' ').next());
    own.and_then(|own| own.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn caches_survive_processes_and_damage() {
    if device().is_none() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("simulcast-cuda-disk-{}", std::process::id()));
    let files = || -> Vec<std::path::PathBuf> {
        let own = std::fs::read_dir(&folder).expect("the cache").flatten();
        own.map(|own| own.path()).collect()
    };
    // Several processes fill it at once.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| first_call(&folder));
        }
    });
    let kept = files();
    assert!(!kept.is_empty() && kept.iter().all(|own| own.extension().is_some_and(|e| e == "bin")));
    let cold = first_call(&folder.join("other"));
    let warm: Vec<f64> = (0..5).map(|_| first_call(&folder)).collect();
    println!("first call {cold:.1} ms, from the disk cache {warm:.2?} ms");
    for (n, file) in kept.iter().enumerate() {
        let mut bytes = std::fs::read(file).expect("a kernel");
        let half = bytes.len() / 2;
        match n % 3 {
            0 => bytes.truncate(half),
            1 => bytes[half] ^= 0x40,
            _ => bytes = b"no kernel".to_vec(),
        }
        std::fs::write(file, bytes).expect("a damaged kernel");
    }
    let damaged = first_call(&folder);
    let healed = first_call(&folder);
    println!("damaged {damaged:.1} ms, and after that {healed:.2} ms");
    assert!(healed < damaged, "what was damaged was not replaced");
    assert_eq!(
        files().iter().filter(|own| own.extension().is_some_and(|e| e == "bin")).count(),
        kept.len()
    );
    let _ = std::fs::remove_dir_all(&folder);
}
