//! Files that lie: each is refused with its reason, without a panic and without the memory it asks for.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write as _;

use flate2::{Compression, Crc, write::DeflateEncoder};
use simulcast_files::{FileProblem, ReadLimits, Store};

const LIMITS: ReadLimits = ReadLimits { header: 1 << 20, memory: 1 << 20 };

fn npy(header: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(elements);
    bytes
}

fn array(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    npy(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"), elements)
}

/// What is wrong with the only array of a file.
fn refused(path: &str, bytes: Vec<u8>) -> FileProblem {
    let store = Store::from_bytes(path, bytes, &LIMITS);
    store.and_then(|store| store.get(None).map(|_| ())).unwrap_err().problem
}

fn refused_npy(descr: &str, shape: &str, elements: &[u8]) -> FileProblem {
    refused("x.npy", array(descr, shape, elements))
}

mod npy {
    use super::*;

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn truncated_anywhere() {
        let whole = array("'<i2'", "(3,)", &[1, 0, 2, 0, 3, 0]);
        for length in 0..whole.len() {
            let problem = refused("x.npy", whole[..length].to_vec());
            assert!(matches!(problem, FileProblem::Truncated { .. }), "{length}: {problem}");
        }
        let store = Store::from_bytes("x.npy", whole, &LIMITS).unwrap();
        assert_eq!(store.get(None).unwrap().to_owned(), ndarray::array![1_i16, 2, 3].into());
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn lying_shape() {
        let needs = 2 * u64::from(u32::MAX / 4);
        let problem = refused_npy("'|u1'", "(1073741823, 2)", &[0; 24]);
        assert_eq!(problem, FileProblem::Truncated { part: "elements", needs, has: 24 });
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn lying_shape_of_more_than_32_bits() {
        let needs = (4_u64 << 40) * 3;
        let problem = refused_npy("'<f4'", "(1099511627776, 3)", &[0; 24]);
        assert_eq!(problem, FileProblem::Truncated { part: "elements", needs, has: 24 });
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn overflowing_product() {
        for shape in ["(65536, 65536, 65536, 65536)", "(0, 65536, 65536, 65536, 65536)"] {
            let problem = refused_npy("'<f4'", shape, &[]);
            assert!(matches!(problem, FileProblem::Overflow { .. }), "{shape}: {problem}");
        }
        let shape = format!("({})", "2, ".repeat(1000));
        assert!(matches!(refused_npy("'|u1'", &shape, &[]), FileProblem::Overflow { .. }));
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn overflowing_product_of_sizes_beyond_32_bits() {
        for shape in [
            "(4294967296, 4294967296)",
            "(18446744073709551615, 2)",
            "(9223372036854775808,)",
            "(2305843009213693952,)",
            "(0, 4294967296, 4294967296)",
            "(4294967296, 0, 4294967296)",
        ] {
            let problem = refused_npy("'<f4'", shape, &[]);
            assert!(matches!(problem, FileProblem::Overflow { .. }), "{shape}: {problem}");
        }
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn negative_sizes() {
        let problem = refused_npy("'<f4'", "(-1, -4)", &[0; 16]);
        assert!(matches!(problem, FileProblem::Header { .. }), "{problem}");
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn huge_header_length() {
        let problem = refused("x.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}".to_vec());
        let limit = LIMITS.header;
        assert_eq!(problem, FileProblem::Limit { part: "a header", bytes: u32::MAX.into(), limit });
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn header_that_is_no_dictionary() {
        for header in ["", "[]", "None", "__import__('os')", "{'descr'", "\u{0}", "{{{{", "}"] {
            let problem = refused("x.npy", npy(header, &[]));
            assert!(matches!(problem, FileProblem::Header { .. }), "{header}: {problem}");
        }
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn nested_tuples_a_hundred_thousand_deep() {
        let deep = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(matches!(refused_npy(&deep, "(2,)", &[0; 8]), FileProblem::Element { .. }));
        assert!(matches!(refused_npy("'<f4'", &deep, &[0; 8]), FileProblem::Header { .. }));
        assert!(matches!(refused_npy(&deep[..100_000], "()", &[]), FileProblem::Header { .. }));
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn wrong_descr() {
        for descr in ["'<f3'", "'|O'", "'<M8[ns]'", "'\\x00'", "[('a', '<f4')]", "'<f4,<i8'", "''"]
        {
            let problem = refused_npy(descr, "(2,)", &[0; 8]);
            assert!(matches!(problem, FileProblem::Element { .. }), "{descr}: {problem}");
        }
        assert!(matches!(refused_npy("4", "(2,)", &[0; 8]), FileProblem::Header { .. }));
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn trailing_bytes() {
        let problem = refused_npy("'<f4'", "(2,)", &[0; 11]);
        assert_eq!(problem, FileProblem::Trailing { bytes: 3 });
        assert_eq!(refused_npy("'<f4'", "(0,)", &[0; 11]), FileProblem::Trailing { bytes: 11 });
    }

    /// Elements without bytes: any number of them is there.
    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn endless_empty_strings() {
        for descr in ["'<U0'", "'|S0'"] {
            let problem = refused_npy(descr, "(4000000000,)", &[]);
            // Where 32 bits count bytes, they are too many to count.
            let is_refused = match usize::BITS {
                32 => matches!(problem, FileProblem::Overflow { .. } | FileProblem::Limit { .. }),
                _ => matches!(problem, FileProblem::Limit { part: "an array", .. }),
            };
            assert!(is_refused, "{problem}");
        }
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn text_that_is_none() {
        let element = |problem| match problem {
            FileProblem::Text { element, .. } => element,
            other => panic!("{other}"),
        };
        let points = |points: [u32; 3]| points.map(u32::to_le_bytes).concat();
        assert_eq!(element(refused_npy("'<U1'", "(3,)", &points([97, 0xd800, 98]))), 1);
        assert_eq!(element(refused_npy("'<U1'", "(3,)", &points([97, 98, 0x11_0000]))), 2);
        assert_eq!(element(refused_npy("'|S1'", "(3,)", b"ab\xff")), 2);
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn other_files() {
        for bytes in [&b"hello, world"[..], b"\x89PNG\r\n\x1a\n", b"\x93numpy\x01\x00", b"abc"] {
            assert_eq!(refused("x.npy", bytes.to_vec()), FileProblem::Unknown);
        }
    }
}

/// A member of an archive, and what is said of it.
#[derive(Clone)]
struct Member {
    name: &'static str,
    own_name: &'static str,
    packed: Vec<u8>,
    method: u16,
    checksum: u32,
    size: u32,
    packed_size: u32,
    place: Option<u32>,
    extra: Vec<u8>,
}

fn stored(name: &'static str, bytes: &[u8]) -> Member {
    let mut crc = Crc::new();
    crc.update(bytes);
    let size = u32::try_from(bytes.len()).unwrap();
    Member {
        name,
        own_name: name,
        packed: bytes.to_vec(),
        method: 0,
        checksum: crc.sum(),
        size,
        packed_size: size,
        place: None,
        extra: Vec::new(),
    }
}

fn deflated(name: &'static str, bytes: &[u8]) -> Member {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    let packed = encoder.finish().unwrap();
    let packed_size = u32::try_from(packed.len()).unwrap();
    Member { packed, packed_size, method: 8, ..stored(name, bytes) }
}

fn zip(members: &[Member]) -> Vec<u8> {
    let short = |n: usize| u16::try_from(n).unwrap().to_le_bytes();
    let long = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for member in members {
        let place = member.place.unwrap_or_else(|| u32::try_from(bytes.len()).unwrap());
        let mut common = [20_u16, 0, member.method, 0, 0x21].map(u16::to_le_bytes).concat();
        let sizes = [member.checksum, member.packed_size, member.size];
        common.extend(sizes.map(u32::to_le_bytes).concat());
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(short(member.own_name.len()));
        bytes.extend([0; 2]);
        bytes.extend(member.own_name.bytes());
        bytes.extend(&member.packed);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend(short(member.name.len()));
        directory.extend(short(member.extra.len()));
        directory.extend([0; 10]);
        directory.extend(place.to_le_bytes());
        directory.extend(member.name.bytes());
        directory.extend(&member.extra);
    }
    let start = bytes.len();
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(short(members.len()));
    bytes.extend(short(members.len()));
    bytes.extend(long(directory.len()));
    bytes.extend(long(start));
    bytes.extend([0; 2]);
    bytes
}

mod npz {
    use super::*;

    fn three() -> Vec<u8> {
        array("'|u1'", "(3,)", &[1, 2, 3])
    }

    fn why(member: Member) -> &'static str {
        match refused("x.npz", zip(&[member])) {
            FileProblem::Zip { why, .. } => why,
            other => panic!("{other}"),
        }
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn honest_archives_are_read() {
        for member in [stored("a.npy", &three()), deflated("a.npy", &three())] {
            let store = Store::from_bytes("x.npz", zip(&[member]), &LIMITS).unwrap();
            let view = store.get(Some("a")).unwrap();
            assert_eq!(view.to_owned(), ndarray::array![1_u8, 2, 3].into());
        }
        let none = Store::from_bytes("x.npz", zip(&[]), &LIMITS).unwrap();
        assert_eq!(none.names().count(), 0);
        assert!(matches!(none.get(None).unwrap_err().problem, FileProblem::Choose { .. }));
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn truncated_anywhere() {
        let whole = zip(&[deflated("a.npy", &three()), stored("b.npy", &three())]);
        for length in 0..whole.len() {
            let error = Store::from_bytes("x.npz", whole[..length].to_vec(), &LIMITS).unwrap_err();
            let other = length < 6 && matches!(error.problem, FileProblem::Truncated { .. });
            let known =
                matches!(error.problem, FileProblem::Zip { .. } | FileProblem::Unknown) || other;
            assert!(known, "{length}: {error}");
        }
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn duplicate_names() {
        let twice = zip(&[stored("a.npy", &three()), stored("a.npy", &three())]);
        assert_eq!(refused("x.npz", twice), FileProblem::Duplicate { name: "a.npy".into() });
    }

    /// Names are looked up, never opened.
    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn names_that_are_paths() {
        let names = ["../../etc/passwd.npy", "/abs.npy", "c:\\x.npy", "a\0b.npy", ".npy"];
        let store = zip(&names.map(|name| stored(name, &three())));
        let store = Store::from_bytes("x.npz", store, &LIMITS).unwrap();
        for name in names {
            let name = name.strip_suffix(".npy").unwrap();
            assert_eq!(store.get(Some(name)).unwrap().shape(), [3]);
        }
        assert!(matches!(store.get(Some("abs")).unwrap_err().problem, FileProblem::NoSuch { .. }));
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn members_of_other_kinds_are_left_alone() {
        let store = zip(&[stored("readme.txt", b"hi"), stored("a.npy", &three())]);
        let store = Store::from_bytes("x.npz", store, &LIMITS).unwrap();
        assert_eq!(store.names().collect::<Vec<_>>(), ["a"]);
        assert_eq!(store.get(None).unwrap().shape(), [3]);
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn bomb() {
        let bytes = array("'|u1'", "(16777216,)", &vec![0; 16 << 20]);
        let bomb = deflated("a.npy", &bytes);
        assert!(bomb.packed.len() < 20_000);
        let problem = refused("x.npz", zip(std::slice::from_ref(&bomb)));
        let (bytes, limit) = (bytes.len() as u64, LIMITS.memory);
        assert_eq!(problem, FileProblem::Limit { part: "a member", bytes, limit });
        // It says that it is small.
        let small = Member { size: 1000, ..bomb };
        assert_eq!(why(small), "has a member of another size than it says");
    }

    /// Many members that share their bytes are charged each.
    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn overlapping_members_share_one_budget() {
        let bytes = array("'|u1'", "(400000,)", &vec![0; 400_000]);
        let first = deflated("a.npy", &bytes);
        let same = Member { place: Some(0), ..deflated("b.npy", &bytes) };
        let error = Store::from_bytes("x.npz", zip(&[first, same]), &LIMITS).unwrap_err();
        assert!(error.to_string().contains("a member of two names"), "{error}");
        let many = ["a.npy", "b.npy", "c.npy"].map(|name| deflated(name, &bytes));
        let store = Store::from_bytes("x.npz", zip(&many), &LIMITS).unwrap();
        assert!(store.get(Some("a")).is_ok() && store.get(Some("b")).is_ok());
        let problem = store.get(Some("c")).unwrap_err().problem;
        assert!(matches!(problem, FileProblem::Limit { .. }), "{problem}");
        assert!(store.get(Some("a")).is_ok(), "what is there stays");
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn lying_sizes() {
        let stored = stored("a.npy", &three());
        let deflated = deflated("a.npy", &three());
        let two = Member { size: 7, ..stored.clone() };
        assert_eq!(why(two), "has a stored member of two sizes");
        let past = Member { size: 1 << 30, packed_size: 1 << 30, ..stored.clone() };
        assert_eq!(why(past), "ends too early");
        let most = Member { size: u32::MAX - 1, ..deflated.clone() };
        assert_eq!(why(most), "has a member that cannot be as large as it says");
        let more = Member { size: deflated.size + 1, ..deflated.clone() };
        assert_eq!(why(more), "has a member of another size than it says");
        let less = Member { size: deflated.size - 1, ..deflated.clone() };
        assert_eq!(why(less), "has a member of another size than it says");
        let cut = Member { packed_size: deflated.packed_size - 4, ..deflated.clone() };
        assert!(why(cut).starts_with("has a member"));
        let sum = Member { checksum: deflated.checksum ^ 1, ..deflated };
        assert_eq!(why(sum), "has a member of another checksum");
        let sum = Member { checksum: stored.checksum ^ 1, ..stored };
        assert_eq!(why(sum), "has a member of another checksum");
    }

    /// A header that is never there, however much is unpacked.
    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn lying_sizes_end_where_a_shape_is_asked_for() {
        let mut bytes = b"\x93NUMPY\x02\x00\x00\x00\x0f\x00".to_vec();
        bytes.resize(2000, b' ');
        let member = Member { size: 100_000, ..deflated("a.npy", &bytes) };
        let member = Member { packed: [member.packed, vec![0; 200]].concat(), ..member };
        let member = Member { packed_size: member.packed_size + 200, ..member };
        let store = Store::from_bytes("x.npz", zip(&[member]), &LIMITS).unwrap();
        let problem = store.shape(None).unwrap_err().problem;
        assert!(matches!(problem, FileProblem::Truncated { .. }), "{problem}");
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn lying_directories() {
        let honest = stored("a.npy", &three());
        let whole = zip(std::slice::from_ref(&honest));
        let end = whole.len() - 22;
        for at in 0..22 {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[end + at] ^= byte;
                let opened = Store::from_bytes("x.npz", bytes, &LIMITS);
                assert!(opened.is_err() || byte == 0, "{at} {byte:x}");
            }
        }
        let elsewhere = Member { place: Some(5), ..honest.clone() };
        assert_eq!(why(elsewhere), "has no member");
        let outside = Member { place: Some(1 << 30), ..honest.clone() };
        assert_eq!(why(outside), "ends too early");
        let other = Member { own_name: "b.npy", ..honest.clone() };
        assert_eq!(why(other), "has a member of two names");
        let method = Member { method: 12, ..honest };
        assert_eq!(why(method), "has a member that is neither stored nor deflated");
        let limits = ReadLimits { header: 40, ..LIMITS };
        let problem = Store::from_bytes("x.npz", whole, &limits).unwrap_err().problem;
        assert!(matches!(problem, FileProblem::Limit { part: "a directory", .. }), "{problem}");
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn lying_numbers_of_64_bits() {
        let honest = stored("a.npy", &three());
        let wide = |extra: Vec<u8>| Member {
            size: u32::MAX,
            packed_size: u32::MAX,
            place: Some(u32::MAX),
            extra,
            ..honest.clone()
        };
        let field = |numbers: &[u64]| {
            let mut bytes = vec![1, 0, u8::try_from(8 * numbers.len()).unwrap(), 0];
            bytes.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
            bytes
        };
        let size = honest.size.into();
        let store = zip(&[wide(field(&[size, size, 0]))]);
        let store = Store::from_bytes("x.npz", store, &LIMITS).unwrap();
        assert_eq!(store.get(None).unwrap().shape(), [3]);
        let none = "has an entry without its 64-bit sizes";
        assert_eq!(why(wide(Vec::new())), none);
        assert_eq!(why(wide(field(&[size, size]))), none);
        assert_eq!(why(wide(vec![9, 9, 0xff, 0xff])), none);
        let past = if usize::BITS == 32 { "has a member past its end" } else { "ends too early" };
        assert_eq!(why(wide(field(&[size, size, u64::MAX]))), past);
        assert_eq!(why(wide(field(&[u64::MAX, u64::MAX, 0]))), past);
    }
}

mod safetensors {
    use super::*;

    fn file(header: &str, elements: &[u8]) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(elements);
        bytes
    }

    fn problem(header: &str, elements: &[u8]) -> FileProblem {
        refused("x.safetensors", file(header, elements))
    }

    fn tensor(dtype: &str, shape: &str, from: u64, to: u64) -> String {
        format!(r#"{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{from},{to}]}}"#)
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn truncated_anywhere() {
        let whole = file(&format!(r#"{{"a":{}}}"#, tensor("U8", "[3]", 0, 3)), &[1, 2, 3]);
        for length in 0..whole.len() {
            let problem = refused("x.safetensors", whole[..length].to_vec());
            assert!(matches!(problem, FileProblem::Truncated { .. }), "{length}: {problem}");
        }
        let store = Store::from_bytes("x.safetensors", whole, &LIMITS).unwrap();
        assert_eq!(store.get(Some("a")).unwrap().to_owned(), ndarray::array![1_u8, 2, 3].into());
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn overlapping_offsets() {
        let a = tensor("U8", "[3]", 0, 3);
        for b in [tensor("U8", "[3]", 0, 3), tensor("U8", "[3]", 2, 5), tensor("U8", "[3]", 5, 8)] {
            let problem = problem(&format!(r#"{{"a":{a},"b":{b}}}"#), &[0; 8]);
            assert!(matches!(problem, FileProblem::Safetensors { .. }), "{problem}");
        }
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn offsets_out_of_range() {
        let far = |to| format!(r#"{{"a":{}}}"#, tensor("U8", &format!("[{to}]"), 0, to));
        let ends = FileProblem::Truncated { part: "elements", needs: 1 << 40, has: 8 };
        assert_eq!(problem(&far(1 << 40), &[0; 8]), ends);
        // The header's length and this one's sum is not to be had.
        let problem = problem(&far(u64::MAX / 8), &[0; 8]);
        assert!(matches!(problem, FileProblem::Truncated { .. }), "{problem}");
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn sizes_that_lie() {
        for (dtype, shape, to) in [
            ("F32", "[3]", 11),
            ("F32", "[4294967296, 4294967296, 4294967296]", 8),
            ("F32", "[-1]", 4),
            ("F32", "[1.5]", 4),
            ("F99", "[1]", 4),
            ("F4", "[3]", 1),
        ] {
            let problem = problem(&format!(r#"{{"a":{}}}"#, tensor(dtype, shape, 0, to)), &[0; 16]);
            assert!(
                matches!(problem, FileProblem::Safetensors { .. }),
                "{dtype} {shape}: {problem}"
            );
        }
        let beyond = format!("[0, {}]", usize::MAX / 2 + 1);
        let empty = format!(r#"{{"a":{}}}"#, tensor("U8", &beyond, 0, 0));
        assert!(matches!(problem(&empty, &[]), FileProblem::Overflow { .. }));
        let odd = format!(r#"{{"a":{}}}"#, tensor("F8_E4M3", "[2]", 0, 2));
        assert!(matches!(problem(&odd, &[0; 2]), FileProblem::Element { .. }));
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn huge_header_length() {
        let bytes = u64::MAX.to_le_bytes().to_vec();
        let limit = LIMITS.header;
        let part = "a header";
        assert_eq!(
            refused("x.safetensors", bytes),
            FileProblem::Limit { part, bytes: u64::MAX, limit }
        );
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn header_that_is_no_dictionary() {
        let deep = "[".repeat(100_000);
        let deep_value = format!(r#"{{"a":{deep}"#);
        for header in ["", "[]", "{", "null", r#"{"a":1}"#, &deep, &deep_value] {
            assert!(matches!(problem(header, &[]), FileProblem::Safetensors { .. }));
        }
    }

    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn trailing_bytes() {
        let header = format!(r#"{{"a":{}}}"#, tensor("U8", "[3]", 0, 3));
        assert_eq!(problem(&header, &[0; 5]), FileProblem::Trailing { bytes: 2 });
    }

    /// A byte of 2 is no `bool`; it is shown as true, as NumPy does.
    // [E_BROADCAST_ANY_FUNC_2280]
    #[test]
    fn bools_of_other_bytes() {
        let header = format!(r#"{{"a":{}}}"#, tensor("BOOL", "[4]", 0, 4));
        let store = Store::from_bytes("x.safetensors", file(&header, &[0, 1, 2, 255]), &LIMITS);
        let store = store.unwrap();
        let array = store.get(None).unwrap().to_owned();
        assert_eq!(array, ndarray::array![false, true, true, true].into());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_begins_as_no_file_of_arrays_is_not_read_to_its_end() {
    // All memory there is would be allowed, and zeros come without an end.
    let limits = ReadLimits { header: 1 << 20, memory: u64::MAX };
    let error = Store::open("/dev/zero", &limits).unwrap_err();
    assert!(matches!(error.problem, FileProblem::Unknown), "{error}");
}
