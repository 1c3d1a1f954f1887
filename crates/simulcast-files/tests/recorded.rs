//! Files of NumPy and of safetensors, read; and files for them, written.
//!
//! `tests/record.py` made the files, and says what is in them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;
use std::{env, fs};

use serde_json::{Value, json};
use simulcast::{AnyView, Complex, DType};
use simulcast_files::{FileError, FileProblem, ReadLimits, Store, Writer, write_npy, write_npz};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn open(name: &str) -> Store {
    Store::open(data(name), &ReadLimits::default()).unwrap()
}

fn expected() -> Value {
    serde_json::from_slice(&fs::read(data("expected.json")).unwrap()).unwrap()
}

fn fresh(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { x.to_string().to_lowercase().into() }
}

fn pair<T: Into<f64>>(x: Complex<T>) -> Value {
    json!([number(x.re.into()), number(x.im.into())])
}

/// An array in the recorder's words.
fn told(view: &AnyView<'_>) -> Value {
    macro_rules! values {
        ($($variant:ident: $type:ty => $value:expr,)*) => {
            match view.dtype() {
                $(DType::$variant => {
                    let show: fn($type) -> Value = $value;
                    let array = view.typed::<$type>().unwrap();
                    array.iter().cloned().map(show).collect::<Vec<_>>()
                })*
            }
        };
    }
    let values = values!(
        Bool: bool => Value::from, I8: i8 => Value::from, I16: i16 => Value::from,
        I32: i32 => Value::from, I64: i64 => Value::from, U8: u8 => Value::from,
        U16: u16 => Value::from, U32: u32 => Value::from, U64: u64 => Value::from,
        F16: half::f16 => |x| number(x.into()), Bf16: half::bf16 => |x| number(x.into()),
        F32: f32 => |x| number(x.into()), F64: f64 => number,
        C64: Complex<f32> => pair, C128: Complex<f64> => pair,
        String: String => Value::from,
    );
    json!({ "dtype": view.dtype().name(), "shape": view.shape(), "values": values })
}

// [E_BROADCAST_ANY_FUNC_2280]
#[test]
fn every_array_of_numpy_is_read() {
    let expected = expected();
    for (file, key) in
        [("numpy.npz", "npz"), ("deflated.npz", "npz"), ("tensors.safetensors", "safetensors")]
    {
        let (store, expected) = (open(file), expected[key].as_object().unwrap());
        let mut names: Vec<&str> = store.names().collect();
        let mut known: Vec<&str> = expected.keys().map(|name| &**name).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known, "{file}");
        for (name, what) in expected {
            let name = Some(&**name);
            assert_eq!(json!(store.shape(name).unwrap()), what["shape"], "{file} {name:?}");
            assert_eq!(store.dtype(name).unwrap().name(), what["dtype"], "{file} {name:?}");
            assert_eq!(told(&store.get(name).unwrap()), *what, "{file} {name:?}");
            assert_eq!(told(&store.get(name).unwrap()), *what, "the second time");
        }
    }
}

/// Sizes come after the bytes, and a comment after everything.
// [E_BROADCAST_ANY_FUNC_2280]
#[test]
fn an_archive_that_was_written_to_a_pipe_is_read() {
    let (store, expected) = (open("stream.npz"), expected());
    assert_eq!(store.names().collect::<Vec<_>>(), ["float32", "text", "scalar"]);
    for name in store.names() {
        assert_eq!(told(&store.get(Some(name)).unwrap()), expected["npz"][name], "{name}");
    }
}

// [E_BROADCAST_ANY_FUNC_2280]
#[test]
fn zeros_keep_their_sign() {
    let store = open("deflated.npz");
    for name in ["float32", "big_float32"] {
        let view = store.get(Some(name)).unwrap();
        assert!(view.typed::<f32>().unwrap().first().unwrap().is_sign_negative(), "{name}");
    }
}

// [E_BROADCAST_ANY_FUNC_2280]
#[test]
fn every_version_of_the_format_is_read() {
    for file in ["version1.npy", "version2.npy", "version3.npy"] {
        let store = open(file);
        assert_eq!(told(&store.get(None).unwrap()), expected()["npz"]["float32"], "{file}");
        assert_eq!(store.names().count(), 0);
    }
    let store = open("big.npy");
    assert_eq!(told(&store.get(None).unwrap()), expected()["npz"]["big_fortran"]);
}

// [E_BROADCAST_ANY_FUNC_2280]
// The files were recorded where numbers are little-endian; elsewhere their elements are converted.
#[cfg(target_endian = "little")]
#[test]
fn what_lies_as_it_should_is_not_copied() {
    let limits = ReadLimits { memory: 0, ..ReadLimits::default() };
    let store = Store::open(data("fortran.npy"), &limits).unwrap();
    let view = store.get(None).unwrap();
    assert_eq!((view.shape(), view.strides()), (&[2, 3][..], &[1, 2][..]));
    assert_eq!(told(&view), expected()["npz"]["fortran_complex128"]);
    // What must be converted needs memory.
    let store = Store::open(data("big.npy"), &limits).unwrap();
    let problem = FileProblem::Limit { part: "an array", bytes: 96, limit: 0 };
    assert_eq!(store.get(None).unwrap_err().problem, problem);
    // Our own archives are aligned, so that everything but text is mapped.
    let store = Store::open(data("ours.npz"), &limits).unwrap();
    for name in store.names().filter(|name| !name.ends_with("text") && *name != "bytes") {
        assert_eq!(told(&store.get(Some(name)).unwrap()), expected()["npz"][name], "{name}");
    }
}

// [E_BROADCAST_ANY_FUNC_2280]
#[test]
fn objects_records_and_dates_are_refused() {
    let store = open("refused.npz");
    let expected = expected();
    let names = expected["refused"].as_array().unwrap();
    assert_eq!(names.len(), 8);
    let mut said = Vec::new();
    for name in names {
        let name = name.as_str().unwrap();
        let error: FileError = store.get(Some(name)).unwrap_err();
        assert!(matches!(error.problem, FileProblem::Element { .. }), "{name}: {error}");
        assert!(store.dtype(Some(name)).is_err());
        assert!(!store.shape(Some(name)).unwrap().is_empty(), "a shape has every array");
        said.push(format!("{name}: {}", error.problem));
    }
    assert_eq!(
        said,
        [
            "date: elements of type '<M8[D]': dates and durations are not read",
            "duration: elements of type '<m8[s]': dates and durations are not read",
            "float8: elements of type '<V1': raw bytes have no type here",
            "longdouble: elements of type '<f16': not known",
            "object: elements of type '|O': pickled objects could run any code and are not read",
            "raw: elements of type '|V3': raw bytes have no type here",
            "record: elements of type [('a', '<f4'), ('b', '<i8')]: records are not read",
            "variable: elements of type '|O': pickled objects could run any code and are not read",
        ]
    );
}

/// What NumPy writes row-major, we write byte for byte alike.
// [E_BROADCAST_ANY_FUNC_2280]
// The files were recorded where numbers are little-endian; each machine writes its own order.
#[cfg(target_endian = "little")]
#[test]
fn files_are_byte_for_byte_as_numpy_writes_them() {
    let (folder, numpy) = (fresh("alike"), fs::read(data("numpy.npz")).unwrap());
    let store = open("numpy.npz");
    let path = folder.join("x.npy");
    let mut alike = 0;
    for name in store.names() {
        let view = store.get(Some(name)).unwrap();
        // The odd ones are written in this machine's order, as text of Unicode, or as 0 and 1.
        if ["big", "fortran", "bytes", "no_text", "odd"].iter().any(|odd| name.starts_with(odd)) {
            continue;
        }
        write_npy(&path, &view).unwrap();
        let ours = fs::read(&path).unwrap();
        assert!(numpy.windows(ours.len()).any(|theirs| theirs == ours), "{name}");
        if view.dtype() != DType::String {
            let mut writer = Writer::create(&path, view.dtype(), view.shape()).unwrap();
            let (mut out, bytes) = (writer.view_mut().unwrap(), view.len() * view.dtype().size());
            // SAFETY: both have that many bytes of one type, row-major.
            unsafe { out.as_mut_ptr().copy_from_nonoverlapping(view.as_ptr(), bytes) };
            writer.finish().unwrap();
            assert_eq!(fs::read(&path).unwrap(), ours, "{name}");
        }
        alike += 1;
    }
    assert!(alike >= 20, "{alike}");
}

/// `tests/record.py check` has read these archives with NumPy.
// [E_BROADCAST_ANY_FUNC_2280]
#[test]
fn archives_are_what_numpy_has_read() {
    let store = open("numpy.npz");
    let arrays: Vec<_> = store.names().map(|name| (name, store.get(Some(name)).unwrap())).collect();
    let path = fresh("ours").join("ours.npz");
    write_npz(&path, &arrays).unwrap();
    let ours = fs::read(&path).unwrap();
    if env::var_os("SIMULCAST_RECORD").is_some() {
        fs::write(data("ours.npz"), &ours).unwrap();
    }
    // Each machine writes numbers in its own order.
    let is_recorded = ours == fs::read(data("ours.npz")).unwrap();
    assert!(is_recorded || cfg!(target_endian = "big"));
    for file in ["ours.npz", "ours64.npz"] {
        let store = open(file);
        for (name, view) in &arrays {
            let again = store.get(Some(name)).unwrap();
            assert_eq!(told(&again), told(view), "{file} {name}");
        }
    }
}
