//! The examples run: each of them checks what it shows.

#![cfg(not(miri))]

/// Includes examples as modules, and runs each in a test.
macro_rules! examples {
    ($($name:ident $path:literal;)*) => { $(
        #[path = $path]
        #[allow(missing_docs, unreachable_pub, reason = "they are programs")]
        mod $name;

        #[test]
        fn $name() {
            $name::main();
        }
    )* };
}

examples! {
    channel_bias "../examples/channel_bias.rs";
    pairwise_distances "../examples/pairwise_distances.rs";
    standardise_columns "../examples/standardise_columns.rs";
    strings "../examples/strings.rs";
}

#[cfg(feature = "program")]
examples! {
    beside_ndarray "../examples/beside_ndarray.rs";
    broadcast_gradient "../examples/broadcast_gradient.rs";
}
