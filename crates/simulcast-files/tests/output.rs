//! Files are whole under their names, or not there.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use simulcast::DType;
use simulcast_files::{ReadLimits, Store, Writer, write_npy};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

// [E_BROADCAST_ANY_FUNC_2230]
#[test]
fn a_result_has_no_name_before_it_is_whole() {
    let folder = folder("whole");
    let path = folder.join("x.npy");
    let mut writer = Writer::create(&path, DType::F32, &[2, 3]).unwrap();
    writer.view_mut().unwrap().typed::<f32>().unwrap().fill(1.5);
    assert!(!path.exists());
    drop(writer);
    assert_eq!(files(&folder), [""; 0], "nothing is left of it");

    let mut writer = Writer::create(&path, DType::F32, &[2, 3]).unwrap();
    writer.view_mut().unwrap().typed::<f32>().unwrap()[[1, 2]] = 1.5;
    writer.finish().unwrap();
    assert_eq!(files(&folder), ["x.npy"]);
    let store = Store::open(&path, &ReadLimits::default()).unwrap();
    let view = store.get(None).unwrap().typed::<f32>().unwrap();
    assert_eq!(view, ndarray::array![[0.0, 0.0, 0.0], [0.0, 0.0, 1.5]].into_dyn());
}

// [E_BROADCAST_ANY_FUNC_2230]
#[test]
fn what_had_the_name_has_it_until_then() {
    let folder = folder("before");
    let path = folder.join("x.npy");
    fs::write(&path, "before").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.join("link.npy");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    drop(Writer::create(&link, DType::I64, &[5]).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"before");
    Writer::create(&link, DType::I64, &[5]).unwrap().finish().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(Store::open(&path, &ReadLimits::default()).unwrap().shape(None).unwrap(), [5]);
    assert_eq!(files(&folder), ["link.npy", "x.npy"]);
}

#[test]
fn rows_are_written_one_block_after_another() {
    let path = folder("rows").join("x.npy");
    // A batch of one has rows too.
    for before in [&[][..], &[1, 1]] {
        let mut writer = Writer::create(&path, DType::I16, &[before, &[5, 2]].concat()).unwrap();
        for (start, end, rows) in [(0, 2, 2), (2, 4, 2), (4, 9, 1), (7, 9, 0), (3, 1, 0)] {
            let mut view = writer.rows_mut(start..end).unwrap();
            assert_eq!(view.shape(), [before, &[rows, 2]].concat());
            view.typed::<i16>().unwrap().fill(i16::try_from(start).unwrap() + 1);
        }
        writer.finish().unwrap();
        let store = Store::open(&path, &ReadLimits::default()).unwrap();
        let rows = ndarray::array![[1_i16, 1], [1, 1], [3, 3], [3, 3], [5, 5]];
        let rows = rows.into_shape_with_order([before, &[5, 2]].concat()).unwrap();
        assert_eq!(store.get(None).unwrap().to_owned(), rows.into());
    }
}

#[test]
fn what_is_no_plain_file_is_not_replaced() {
    let folder = folder("plain");
    for path in [folder.clone(), folder.join("missing/x.npy"), "/dev/null".into()] {
        assert!(Writer::create(&path, DType::I64, &[5]).is_err(), "{}", path.display());
        assert!(write_npy(&path, &(&ndarray::array![1.0]).into()).is_err());
    }
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    // Nor is a link that leads nowhere, or to itself.
    for target in ["missing.npy", "link.npy"] {
        let link = folder.join("link.npy");
        std::os::unix::fs::symlink(folder.join(target), &link).unwrap();
        let error = Writer::create(&link, DType::I64, &[5]).unwrap_err().to_string();
        assert!(error.ends_with("link.npy: a link that leads nowhere"), "{error}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_file(&link).unwrap();
    }
    let error = Writer::create(folder.join("missing/x.npy"), DType::I64, &[5]).unwrap_err();
    assert!(error.to_string().ends_with("x.npy: there is no such folder"), "{error}");
    assert_eq!(files(&folder), [""; 0]);
}

// Sizes of 32 bits do not fill a disk.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_full_disk_is_said_before_the_work() {
    let path = folder("full").join("x.npy");
    let error = Writer::create(&path, DType::U8, &[1 << 60]).unwrap_err();
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    assert!(!path.exists());
}

#[test]
fn arrays_without_elements_and_of_rank_0() {
    let folder = folder("small");
    for shape in [&[][..], &[0], &[3, 0, 2]] {
        let path = folder.join("x.npy");
        let mut writer = Writer::create(&path, DType::C128, shape).unwrap();
        assert_eq!(writer.view_mut().unwrap().shape(), shape);
        writer.finish().unwrap();
        let store = Store::open(&path, &ReadLimits::default()).unwrap();
        assert_eq!(store.get(None).unwrap().shape(), shape);
    }
}

#[test]
fn a_pipe_is_read_like_a_file() {
    let folder = folder("pipe");
    let (path, pipe) = (folder.join("x.npy"), folder.join("pipe.npy"));
    write_npy(&path, &(&ndarray::array![1.5_f64, 2.5]).into()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let bytes = fs::read(&path).unwrap();
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::write(pipe, bytes).unwrap())
    };
    let store = Store::open(&pipe, &ReadLimits::default()).unwrap();
    writer.join().unwrap();
    assert_eq!(store.get(None).unwrap().to_owned(), ndarray::array![1.5, 2.5].into());
    assert!(Store::open(&folder, &ReadLimits::default()).is_err());
    let missing = Store::open(folder.join("no.npy"), &ReadLimits::default()).unwrap_err();
    assert!(missing.to_string().ends_with("no.npy: there is no such file"));
}
