//! The cases of `bench/gpu.json` on a GPU: `cargo xtask bench gpu`, or this program alone.
//!
//! Large cases are told as the share of a device-to-device copy of the same run that the bytes come to which must move:
//! each stored operand read once, the result written once. Small cases are told in microseconds a call, from the call
//! until it returns. With `--json FILE` the numbers go to a file too, a line of JSON a case.

#![expect(clippy::print_stdout, reason = "it prints its table")]

use std::error::Error;
use std::io::Write as _;
use std::time::Instant;

use serde_json::{Value, json};
use simulcast::{AnyView, DType, TypedProgram};
use simulcast_cuda::{
    Device, DeviceArray, DeviceProgram, DeviceView, DeviceViewMut, OnDevice as _, Stream,
    copy_into, copy_to, sum_to,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const CASES: &str = include_str!("../../../bench/gpu.json");
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
/// A sample takes that long, and of so many the median counts.
const SAMPLE_SECONDS: f64 = 0.012;
const SAMPLES: usize = 7;

/// A type by the name that the cases have for it.
fn dtype(name: &str) -> Outcome<DType> {
    Ok(match name {
        "f32" => DType::F32,
        "f64" => DType::F64,
        "f16" => DType::F16,
        "bf16" => DType::Bf16,
        "i8" => DType::I8,
        "u8" => DType::U8,
        "i64" => DType::I64,
        "bool" => DType::Bool,
        other => return Err(format!("there is no type {other}").into()),
    })
}

/// The median seconds of one of many launches, by the device's own clock.
fn measured(stream: &Stream, mut call: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let device = stream.device();
    let (start, end) = (device.event()?, device.event()?);
    let mut timed = |count: usize| -> Outcome<f64> {
        stream.record(&start)?;
        for _ in 0..count {
            call()?;
        }
        stream.record(&end)?;
        Ok(start.seconds_until(&end)? / count as f64)
    };
    timed(3)?;
    let once = timed(3)?;
    let count = ((SAMPLE_SECONDS / once) as usize).clamp(3, 2000);
    let mut all = (0..SAMPLES).map(|_| timed(count)).collect::<Outcome<Vec<f64>>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all[SAMPLES / 2])
}

/// The median seconds of a call, by the host's clock, and the least.
fn called(stream: &Stream, mut call: impl FnMut() -> Outcome<()>) -> Outcome<(f64, f64)> {
    const BATCH: usize = 200;
    let mut all = Vec::new();
    for _ in 0..31 {
        stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..BATCH {
            call()?;
        }
        all.push(start.elapsed().as_secs_f64() / BATCH as f64);
    }
    all.sort_by(f64::total_cmp);
    Ok((all[all.len() / 2], all[0]))
}

/// An array of numbers from 1/16 on, made on the device.
fn operand(stream: &Stream, kind: DType, shape: &[usize]) -> Outcome<DeviceArray> {
    let len = shape.iter().product::<usize>();
    let count = len.clamp(1, 1 << 16);
    let numbers = ndarray::Array1::from_shape_fn(count, |n| (n * 7919 % 97 + 1) as f64 / 16.0);
    let numbers = stream.upload(&AnyView::from(&numbers))?;
    let text = match kind {
        DType::Bool => "(x * 16) % 3 == 0".to_owned(),
        own if own.is_integer() => format!("(x * 16).astype({own})"),
        own => format!("x.astype({own})"),
    };
    let cast = TypedProgram::parse(&text, &[("x", DType::F64)])?.on_device(stream.device());
    let numbers = cast.run_on(&[numbers.view()], stream)?;
    let rows = len.div_ceil(count).max(1);
    let whole = copy_to(&numbers.view(), &[rows, count], stream)?;
    // The first elements of it, in the shape that is wanted.
    // SAFETY: as many elements as the shape has lie there one after the other.
    let view = unsafe {
        DeviceView::from_raw(stream.device(), kind, whole.address(), shape, &row_major(shape))?
    };
    let made = copy_to(&view, shape, stream)?;
    stream.synchronize()?;
    Ok(made)
}

fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1_isize; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1).cast_signed();
    }
    strides
}

struct Case {
    name: String,
    op: String,
    kind: String,
    types: Vec<DType>,
    shapes: Vec<Vec<usize>>,
    result: Option<Vec<usize>>,
    transposed: bool,
    backwards: bool,
    /// The operands whose gradients are computed beside the value.
    wrt: Vec<String>,
}

impl Case {
    fn read(value: &Value) -> Outcome<Self> {
        let text = |key: &str, other: &str| value[key].as_str().unwrap_or(other).to_owned();
        let sizes = |own: &Value| -> Vec<usize> {
            own.as_array()
                .into_iter()
                .flatten()
                .filter_map(|n| Some(n.as_u64()? as usize))
                .collect()
        };
        let shapes: Vec<Vec<usize>> =
            value["shapes"].as_array().into_iter().flatten().map(sizes).collect();
        let main = text("type", "f32");
        let types = (0..shapes.len())
            .map(|n| dtype(value["types"][n].as_str().unwrap_or(&main)))
            .collect::<Outcome<_>>()?;
        Ok(Self {
            name: text("name", ""),
            op: text("op", ""),
            kind: text("kind", "large"),
            types,
            shapes,
            result: value.get("result").map(sizes),
            transposed: value["transposed"] == true,
            backwards: value["backwards"] == true,
            wrt: value["wrt"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|name| Some(name.as_str()?.to_owned()))
                .collect(),
        })
    }
}

/// How a case looks at its first operand.
fn seen<'a>(case: &Case, array: &'a DeviceArray) -> Outcome<DeviceView<'a>> {
    let (mut shape, mut strides) = (array.shape().to_vec(), array.strides().to_vec());
    let mut address = array.address();
    if case.transposed {
        shape.reverse();
        strides.reverse();
    }
    if case.backwards
        && let (Some(size), Some(step)) = (shape.last(), strides.last_mut())
    {
        address += (size - 1) as u64 * array.dtype().size() as u64;
        *step = -*step;
    }
    // SAFETY: the same elements, in another order; the array outlives the view.
    Ok(unsafe { DeviceView::from_raw(array.device(), array.dtype(), address, &shape, &strides)? })
}

struct Measured {
    seconds: f64,
    bytes: usize,
    call: Option<(f64, f64)>,
}

fn measure(case: &Case, stream: &Stream) -> Outcome<Measured> {
    let arrays = case
        .types
        .iter()
        .zip(&case.shapes)
        .map(|(&kind, shape)| operand(stream, kind, shape))
        .collect::<Outcome<Vec<DeviceArray>>>()?;
    let mut views: Vec<DeviceView<'_>> = arrays.iter().map(DeviceArray::view).collect();
    views[0] = seen(case, &arrays[0])?;
    let read: usize =
        arrays.iter().map(|own| own.shape().iter().product::<usize>() * own.dtype().size()).sum();
    let bytes_of = |shape: &[usize], own: DType| shape.iter().product::<usize>() * own.size();
    if case.op == "sum_to" {
        let shape = case.result.as_deref().unwrap_or_default();
        let seconds = measured(stream, || {
            sum_to(&views[0], shape, stream)?;
            Ok(())
        })?;
        return Ok(Measured { seconds, bytes: read + bytes_of(shape, case.types[0]), call: None });
    }
    if case.op == "copy" {
        let shape = case.result.as_deref().unwrap_or_default();
        let made = copy_to(&views[0], shape, stream)?;
        let seconds = measured(stream, || {
            // SAFETY: the memory of `made`, which nothing else reads now.
            let mut out = unsafe { place(&made)? };
            copy_into(&views[0], &mut out, stream)?;
            Ok(())
        })?;
        return Ok(Measured { seconds, bytes: read + bytes_of(shape, case.types[0]), call: None });
    }
    let types: Vec<(&str, DType)> =
        NAMES.into_iter().zip(case.types.iter().copied()).take(views.len()).collect();
    let program = TypedProgram::parse(&case.op, &types)?;
    if !case.wrt.is_empty() {
        let wrt: Vec<&str> = case.wrt.iter().map(String::as_str).collect();
        let program = program.value_and_grad(&wrt)?.on_device(stream.device());
        let made = program.run_on(&views, stream)?;
        let bytes = read + made.iter().map(|own| bytes_of(own.shape(), own.dtype())).sum::<usize>();
        let seconds = measured(stream, || {
            program.run_on(&views, stream)?;
            Ok(())
        })?;
        return Ok(Measured { seconds, bytes, call: None });
    }
    let program: DeviceProgram = program.on_device(stream.device());
    let made = program.run_on(&views, stream)?;
    let bytes = read + bytes_of(made.shape(), made.dtype());
    let seconds = measured(stream, || {
        // SAFETY: as above.
        let mut out = unsafe { place(&made)? };
        program.run_into(&views, &mut out, stream)?;
        Ok(())
    })?;
    let call = (case.kind == "small")
        .then(|| {
            called(stream, || {
                program.run_on(&views, stream)?;
                Ok(())
            })
        })
        .transpose()?;
    Ok(Measured { seconds, bytes, call })
}

/// A place over the memory of an array.
///
/// # Safety
///
/// Nothing else uses the memory until what is launched with the place is done.
unsafe fn place(array: &DeviceArray) -> Outcome<DeviceViewMut<'static>> {
    let (shape, strides) = (array.shape(), array.strides());
    // SAFETY: the array's own memory.
    Ok(unsafe {
        DeviceViewMut::from_raw(array.device(), array.dtype(), array.address(), shape, strides)?
    })
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = args.iter().position(|own| own == name)?;
        args.get(at + 1).cloned()
    };
    let device = match Device::new(0) {
        Ok(device) => device,
        Err(error) => {
            println!("skipped: {error}");
            return Ok(());
        }
    };
    let stream = device.stream()?;
    let mut file = option("--json").map(std::fs::File::create).transpose()?;
    let only = option("--case");
    // What a copy of 2 GiB by the driver moves, read and written.
    let (from, to) =
        (operand(&stream, DType::F32, &[1 << 29])?, operand(&stream, DType::F32, &[1 << 29])?);
    let copy = measured(&stream, || Ok(stream.copy_bytes(&from, &to)?))?;
    let copy = (1_u64 << 32) as f64 / copy;
    drop((from, to));
    println!(
        "{}, CUDA {:?}: a copy moves {:.3} TB/s",
        device.name(),
        device.cuda_version(),
        copy / 1e12
    );
    println!("| case | ms | TB/s | of a copy |\n|---|--:|--:|--:|");
    let cases: Vec<Value> = serde_json::from_str(CASES)?;
    let (mut logs, mut count) = (0.0, 0);
    for value in &cases {
        let case = Case::read(value)?;
        if only.as_ref().is_some_and(|only| !case.name.contains(only.as_str())) {
            continue;
        }
        let Measured { seconds, bytes, call } = measure(&case, &stream)?;
        let share = bytes as f64 / seconds / copy;
        let mut line = json!({
            "engine": "simulcast-rust", "case": case.name, "seconds": seconds, "bytes": bytes, "copy": copy,
        });
        let said = match call {
            Some((median, least)) => {
                line["call_seconds"] = json!(median);
                format!("{:.2} µs a call, {:.2} at best", median * 1e6, least * 1e6)
            }
            None => format!("{:.0}%", share * 100.0),
        };
        if case.kind == "large" {
            logs += share.ln();
            count += 1;
        }
        println!(
            "| {} | {:.4} | {:.2} | {said} |",
            case.name,
            seconds * 1e3,
            bytes as f64 / seconds / 1e12
        );
        if let Some(file) = &mut file {
            writeln!(file, "{line}")?;
        }
    }
    println!(
        "geometric mean of {count} large cases: {:.1}%",
        100.0 * (logs / f64::from(count.max(1))).exp()
    );
    // First calls of expressions that are new, where the disk does not have them either.
    let x = operand(&stream, DType::F32, &[64])?;
    let mut first = Vec::new();
    for function in ["sinh", "cosh", "arctan", "log1p", "cbrt"] {
        let text = format!("{function}(x - 1.5) / (1 + x * x)");
        let program = TypedProgram::parse(&text, &[("x", DType::F32)])?.on_device(&device);
        let start = Instant::now();
        program.run_on(&[x.view()], &stream)?;
        stream.synchronize()?;
        first.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("first calls of new expressions, ms: {first:.1?}");
    if let Some(file) = &mut file {
        writeln!(file, "{}", json!({ "engine": "simulcast-rust", "first_call_ms": first }))?;
    }
    Ok(())
}
