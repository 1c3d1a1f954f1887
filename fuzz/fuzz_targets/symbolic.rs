//! Symbolic shapes: never a panic, always an end, and sound under a substitution.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use simulcast_core::{
    Dim, Dims, Interval, Names, Parts, Rule, RuleKind, Symbol, resolve, resolve_dims,
};
use simulcast_explain::{Subject, TextOptions, json, svg, text};

#[derive(Arbitrary, Debug)]
enum Part {
    Size(u8),
    Range(u8, Option<u8>),
    Symbol(u8),
    Bounded(u8, u8, Option<u8>),
}

#[derive(Arbitrary, Debug)]
struct Input {
    rule: u8,
    axis: Option<i8>,
    shapes: Vec<Option<Vec<Part>>>,
    sizes: [u8; 4],
}

fuzz_target!(|input: Input| {
    let range = |lo: u8, hi: Option<u8>| {
        let (lo, hi) = (usize::from(lo % 5), hi.map(|hi| usize::from(hi % 5)));
        // An end before the beginning is exchanged with it.
        Interval::new(lo, hi).or_else(|| Interval::new(hi?, Some(lo))).unwrap_or(Interval::UNKNOWN)
    };
    let name = |symbol: u8| ["n", "m", "k", "l"][usize::from(symbol % 4)];
    let dim = |part: &Part| match *part {
        Part::Size(size) => Dim::Size(usize::from(size % 5)),
        Part::Range(lo, hi) => Dim::from(range(lo, hi)),
        Part::Symbol(symbol) => Dim::Symbol(Symbol::new(name(symbol))),
        Part::Bounded(symbol, lo, hi) => {
            Dim::Symbol(Symbol { name: name(symbol).into(), range: range(lo, hi) })
        }
    };
    let shapes: Vec<Dims> = input
        .shapes
        .iter()
        .map(|shape| {
            shape
                .as_ref()
                .map_or(Dims::Unranked, |parts| parts.iter().map(dim).collect::<Vec<_>>().into())
        })
        .collect();
    let axis = input.axis.map(isize::from);
    // Every rule; lists of axes are short, so that they fit now and then.
    let kind = RuleKind::ALL[usize::from(input.rule) % RuleKind::ALL.len()];
    let takes = kind.parameters();
    let list: Vec<usize> = input.sizes.iter().map(|axis| usize::from(axis % 4)).collect();
    let count = usize::from(input.rule >> 5) % 4;
    let parts = Parts {
        axis: axis.filter(|_| takes.axis),
        shape: takes.shape.map(|_| &[2, 1, 3][..]),
        axes: takes.axes.map(|_| &list[..count]),
        labels: takes.labels.then_some(&list[..]),
    };
    let rule = Rule::from_parts(kind, parts).expect("its own parameters");
    let names = Names::default();
    match resolve_dims(rule, &shapes) {
        Ok(plan) => {
            let subject = Subject::Symbolic(&plan, &names, &[]);
            let _ = (text(&subject, TextOptions::default()), json(&subject), svg(&subject));
            let sizes =
                ["n", "m", "k", "l"].into_iter().zip(input.sizes.map(|size| usize::from(size % 5)));
            let sizes: Vec<(&str, usize)> = sizes.collect();
            if let Ok(known) = plan.substitute(&sizes) {
                if let Some(concrete) = shapes_with(&shapes, &sizes) {
                    let plain = resolve(rule, &concrete).expect("accepted after substitution");
                    assert_eq!(known.shape().sizes().as_deref(), Some(plain.shape()));
                }
            }
        }
        Err(error) => {
            let subject = Subject::Error(&error);
            let _ = (text(&subject, TextOptions::default()), json(&subject), svg(&subject));
        }
    }
});

/// The sizes of all shapes, where symbols are all that was open.
fn shapes_with(shapes: &[Dims], sizes: &[(&str, usize)]) -> Option<Vec<Vec<usize>>> {
    let size = |dim: &Dim| match dim {
        Dim::Symbol(symbol) => {
            sizes.iter().find(|(name, _)| *name == &*symbol.name).map(|(_, size)| *size)
        }
        other => other.size(),
    };
    shapes.iter().map(|dims| dims.dims()?.iter().map(size).collect()).collect()
}
