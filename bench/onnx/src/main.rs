//! Runs one ONNX model again and again, when it is asked: what `peers/onnx_run.py` sets beside ONNX Runtime.
//!
//! ```text
//! onnx_run MODEL THREADS [NAME=2x3[@VALUE]]...
//! ```
//!
//! An input has the sizes given, and that value everywhere, or numbers between -1 and 1. Each line on the standard input
//! is a number of seconds; the answer is the shortest run and the median of them in nanoseconds, or with the line `show`,
//! the sum of each output.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to another process")]

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use simulcast::ndarray::{ArrayD, IxDyn};
use simulcast::{AnyArray, AnyView};
use simulcast_onnx::{ElementType, Model, Session};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let usage = "onnx_run MODEL THREADS [NAME=SIZES[@VALUE]]...";
    let (model, threads) = (words.next().ok_or(usage)?, words.next().ok_or(usage)?);
    let mut model = Model::load(&model)?;
    // As ONNX Runtime: equal names of sizes need not be equal sizes.
    model.forget_names();
    let session = Session::new(&model)?.threads(threads.parse()?);
    let mut arrays = Vec::new();
    for word in words {
        let (name, what) = word.split_once('=').ok_or(usage)?;
        let (sizes, value) = what.split_once('@').unwrap_or((what, ""));
        let sizes: Vec<usize> = sizes
            .split('x')
            .filter(|size| !size.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let element = session.input_type(name).ok_or("an input without a type")?;
        arrays.push((name.to_owned(), input(element, &sizes, value)?));
    }
    let inputs: Vec<(&str, AnyView<'_>)> =
        arrays.iter().map(|(name, array)| (name.as_str(), array.view())).collect();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line == "show" {
            for (name, output) in session.run(&inputs)? {
                let sum: f64 = output
                    .typed::<f32>()
                    .map_or(0.0, |all| all.iter().map(|x| f64::from(*x)).sum());
                print!("{name} {sum} ");
            }
            println!();
        } else {
            let (least, median) =
                measured(&session, &inputs, Duration::from_secs_f64(line.parse()?))?;
            println!("{} {}", least.as_nanos(), median.as_nanos());
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn input(element: ElementType, sizes: &[usize], value: &str) -> Result<AnyArray, Failure> {
    let shape = IxDyn(sizes);
    Ok(match element {
        ElementType::F32 => {
            let given: Option<f32> = if value.is_empty() { None } else { Some(value.parse()?) };
            let mut state = 1_u32;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                given.unwrap_or((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
            };
            let count = sizes.iter().product();
            ArrayD::from_shape_vec(shape, (0..count).map(|_| next()).collect())?.into()
        }
        ElementType::I64 => ArrayD::<i64>::from_elem(shape, value.parse().unwrap_or(1)).into(),
        other => return Err(format!("no numbers of {other}").into()),
    })
}

/// Runs for so long: the shortest of the runs, and their median.
fn measured(
    session: &Session,
    inputs: &[(&str, AnyView<'_>)],
    time: Duration,
) -> Result<(Duration, Duration), Failure> {
    let (begun, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || begun.elapsed() < time {
        let start = Instant::now();
        let outputs = session.run(inputs)?;
        times.push(start.elapsed());
        drop(outputs);
    }
    times.sort_unstable();
    Ok((times[0], times[times.len() / 2]))
}
