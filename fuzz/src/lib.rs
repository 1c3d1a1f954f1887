//! What the targets for files of arrays have in common.

use simulcast_files::{Limits, Store};

/// Reads every array of a file and holds it against what the file says of it.
pub fn arrays_of(path: &str, bytes: Vec<u8>) {
    let limits = Limits { header: 1 << 16, memory: 1 << 20 };
    let store = match Store::from_bytes(path, bytes, &limits) {
        Ok(store) => store,
        Err(error) => return assert!(error.to_string().starts_with(path)),
    };
    let names: Vec<Option<&str>> = store.names().map(Some).chain([None]).collect();
    for name in names {
        let (shape, dtype) = (store.shape(name), store.dtype(name));
        match store.get(name) {
            Ok(view) => {
                assert_eq!(Ok(view.shape()), shape.as_deref());
                assert_eq!(Ok(view.dtype()), dtype);
                // Every element is touched, and the same the second time.
                let again = store.get(name).expect("what was read once is there");
                assert_eq!(format!("{:?}", view.to_owned()), format!("{:?}", again.to_owned()));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
