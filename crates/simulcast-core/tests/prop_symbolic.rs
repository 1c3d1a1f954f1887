//! Symbolic resolution against plain resolution under every substitution.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use simulcast_core::{
    Constraint, Dim, Dims, Interval, Limits, Names, Plan, Rule, ShapeText, Symbol, Term, resolve,
    resolve_dims,
};

fn dims(text: &str) -> Dims {
    text.parse::<ShapeText>().unwrap().dims
}

/// Every way to choose sizes up to 4 for the symbols and intervals of some shapes.
fn substitutions(shapes: &[Dims]) -> Vec<Vec<Vec<usize>>> {
    let mut ranges: BTreeMap<String, Interval> = BTreeMap::new();
    let mut places = Vec::new();
    for (operand, shape) in shapes.iter().enumerate() {
        let mut own = Vec::new();
        for (axis, dim) in shape.dims().unwrap().iter().enumerate() {
            let name = match dim {
                Dim::Symbol(symbol) => symbol.name.to_string(),
                _ => format!("{operand}.{axis}"),
            };
            let range = ranges.entry(name.clone()).or_insert(Interval::UNKNOWN);
            match range.intersect(dim.interval()) {
                Some(both) => *range = both,
                None => return Vec::new(),
            }
            own.push(name);
        }
        places.push(own);
    }
    let mut all: Vec<BTreeMap<&str, usize>> = vec![BTreeMap::new()];
    for (name, range) in &ranges {
        all = all
            .iter()
            .flat_map(|chosen| {
                (0..=4).filter(|&size| range.contains(size)).map(move |size| {
                    let mut chosen = chosen.clone();
                    chosen.insert(name, size);
                    chosen
                })
            })
            .collect();
    }
    all.iter()
        .map(|chosen| {
            places.iter().map(|own| own.iter().map(|n| chosen[n.as_str()]).collect()).collect()
        })
        .collect()
}

fn value(term: &Term, shapes: &[Dims], sizes: &[Vec<usize>]) -> Option<usize> {
    match term {
        Term::Size(size) => Some(*size),
        Term::Axis { operand, axis } => Some(sizes[*operand][*axis]),
        Term::Symbol(name) => shapes.iter().zip(sizes).find_map(|(shape, sizes)| {
            let is = |dim: &&Dim| matches!(dim, Dim::Symbol(s) if s.name == *name);
            let axis = shape.dims().unwrap().iter().position(|dim| is(&dim))?;
            Some(sizes[axis])
        }),
        _ => unreachable!("no join is given here"),
    }
}

/// Sound and complete: under every substitution the constraints hold exactly where the rule accepts
/// the sizes, and then the result says the truth.
fn check(rule: Rule<'_>, shapes: &[Dims]) {
    let plan = resolve_dims(rule, shapes);
    for sizes in substitutions(shapes) {
        let plain = resolve(rule, &sizes);
        let Ok(plan) = &plan else {
            assert!(plain.is_err(), "{rule:?} {shapes:?} was refused, {sizes:?} is accepted");
            continue;
        };
        let holds =
            plan.constraints().iter().all(|c| c.holds(|t| value(t, shapes, &sizes)).unwrap());
        let said: Vec<String> = plan.constraints().iter().map(ToString::to_string).collect();
        let context = format!("{rule:?} {shapes:?} with {sizes:?}, constraints {said:?}");
        assert_eq!(holds, plain.is_ok(), "{context}");
        assert_eq!(plan.bind(&sizes).is_ok(), plain.is_ok(), "{context}");
        let Ok(plain) = plain else { continue };
        for (dim, &size) in plan.shape().dims().unwrap().iter().zip(plain.shape()) {
            assert!(dim.interval().contains(size), "{context}: {dim} is {size}");
            let exact = match dim {
                Dim::Size(known) => Some(*known),
                Dim::Range(_) => None,
                Dim::Symbol(symbol) => value(&Term::Symbol(symbol.name.clone()), shapes, &sizes),
                Dim::Join(symbols) => {
                    let sizes = symbols
                        .iter()
                        .map(|s| value(&Term::Symbol(s.name.clone()), shapes, &sizes).unwrap());
                    common::common_size(&sizes.collect::<Vec<_>>())
                }
            };
            assert!(exact.is_none_or(|exact| exact == size), "{context}: {dim} is {size}");
        }
    }
}

fn dim() -> impl Strategy<Value = Dim> {
    let range = || {
        (0_usize..4, prop::option::of(0_usize..4))
            .prop_filter_map("ends before it begins", |(lo, hi)| Interval::new(lo, hi))
    };
    prop_oneof![
        3 => select(vec![0, 1, 1, 2, 3]).prop_map(Dim::Size),
        3 => select(vec!["n", "m"]).prop_map(|name| Dim::Symbol(Symbol::new(name))),
        1 => (select(vec!["n", "k"]), range()).prop_map(|(name, range)| {
            Dim::Symbol(Symbol { name: name.into(), range })
        }),
        1 => range().prop_map(Dim::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    // [E_BROADCAST_ANY_FUNC_2010]
    #[test]
    fn symbolic_answers_hold_under_every_substitution(
        shapes in vec(vec(dim(), 0..=2).prop_map(Dims::from), 1..=3),
    ) {
        check(Rule::Numpy, &shapes);
        check(Rule::Exact, &shapes);
        check(Rule::Unidirectional, &shapes);
        if let [first, second, ..] = &shapes[..] {
            let pair = [first.clone(), second.clone()];
            for axis in [None, Some(0), Some(1), Some(2)] {
                check(Rule::Pdpd { axis }, &pair);
                check(Rule::Legacy { axis }, &pair);
                check(Rule::Paddle { axis }, &pair);
            }
        }
        let one = &shapes[..1];
        for target in [&[][..], &[1], &[3], &[2, 3], &[1, 0], &[2, 1, 3]] {
            check(Rule::Bidirectional { target }, one);
            check(Rule::To { target }, one);
            check(Rule::Axes { shape: target, broadcast_axes: &[0] }, one);
            check(Rule::Mapping { shape: target, axes_mapping: &[1] }, one);
        }
    }

    // [E_BROADCAST_ANY_FUNC_2020]
    #[test]
    fn known_sizes_resolve_as_ever(shapes in vec(vec(0_usize..4, 0..=3), 0..4)) {
        let symbolic: Vec<Dims> = shapes.iter().map(|s| Dims::from(&s[..])).collect();
        match (resolve(Rule::Numpy, &shapes), resolve_dims(Rule::Numpy, &symbolic)) {
            (Ok(plan), Ok(dims)) => {
                prop_assert_eq!(dims.shape().sizes().unwrap(), plan.shape());
                prop_assert!(dims.constraints().is_empty());
            }
            (Err(a), Err(b)) => prop_assert_eq!(a, b),
            (a, b) => prop_assert!(false, "{:?} and {:?}", a, b),
        }
    }
}

// [E_BROADCAST_ANY_FUNC_2010]
#[test]
fn all_triples_of_a_dozen_dimensions() {
    let texts = ["0", "1", "2", "3", "n", "m", "n@2..", "n@0..1", "?", "1..3", "2..4", "0..2"];
    for a in texts {
        for b in texts {
            for c in texts {
                let shapes = [dims(a), dims(b), dims(c)];
                check(Rule::Numpy, &shapes);
                check(Rule::Unidirectional, &shapes);
            }
            check(Rule::Exact, &[dims(a), dims(b)]);
            check(Rule::Pdpd { axis: None }, &[dims(a), dims(b)]);
            check(Rule::Pdpd { axis: Some(1) }, &[dims(a), dims(b)]);
        }
    }
}

struct Case {
    shapes: &'static [&'static str],
    result: &'static str,
    constraints: &'static [&'static str],
}

// [E_BROADCAST_ANY_FUNC_2010]
#[test]
fn results_and_constraints_read_as_people_say_them() {
    let cases = [
        Case { shapes: &["n", "n"], result: "(n,)", constraints: &[] },
        Case { shapes: &["n", "1"], result: "(n,)", constraints: &[] },
        Case { shapes: &["n", "4"], result: "(4,)", constraints: &["n is 1 or 4"] },
        Case { shapes: &["n", "0"], result: "(0,)", constraints: &["n is 1 or 0"] },
        Case {
            shapes: &["n", "m"],
            result: "(bcast(m, n),)",
            constraints: &["m and n are equal or one is 1"],
        },
        Case { shapes: &["n@2..", "m"], result: "(n,)", constraints: &["m is 1 or n"] },
        Case { shapes: &["n@2..", "m@2.."], result: "(n,)", constraints: &["m = n"] },
        Case { shapes: &["n@2..", "4"], result: "(4,)", constraints: &["n = 4"] },
        Case { shapes: &["n,3", "m,1,3"], result: "(m, n, 3)", constraints: &[] },
        Case { shapes: &["n,n", "3,4"], result: "(3, 4)", constraints: &["n = 1"] },
        Case { shapes: &["n,m,n", "3,m,4"], result: "(3, m, 4)", constraints: &["n = 1"] },
        Case {
            shapes: &["n", "m", "3"],
            result: "(3,)",
            constraints: &["m is 1 or 3", "n is 1 or 3"],
        },
        Case {
            shapes: &["a", "b", "c"],
            result: "(bcast(a, b, c),)",
            constraints: &["a, b, c: those that are not 1 are equal"],
        },
        Case {
            shapes: &["?", "n"],
            result: "(?,)",
            constraints: &["n and axis 0 of operand 0 are equal or one is 1"],
        },
        Case {
            shapes: &["?", "3"],
            result: "(3,)",
            constraints: &["axis 0 of operand 0 is 1 or 3"],
        },
        Case {
            shapes: &["2..4", "..3"],
            result: "(2..4,)",
            constraints: &["axis 0 of operand 1 is 1 or axis 0 of operand 0"],
        },
        Case { shapes: &["...", "3"], result: "(...)", constraints: &[] },
    ];
    for Case { shapes, result, constraints } in cases {
        let operands: Vec<Dims> = shapes.iter().map(|text| dims(text)).collect();
        let plan = resolve_dims(Rule::Numpy, &operands).unwrap();
        assert_eq!(plan.shape().to_string(), result, "{shapes:?}");
        let said: Vec<String> = plan.constraints().iter().map(ToString::to_string).collect();
        assert_eq!(said, constraints, "{shapes:?}");
    }
}

// [E_BROADCAST_ANY_FUNC_2010]
#[test]
fn what_can_never_succeed_is_refused() {
    let refused = |rule: Rule<'_>, shapes: &[&str]| {
        let operands: Vec<Dims> = shapes.iter().map(|text| dims(text)).collect();
        resolve_dims(rule, &operands).unwrap_err().to_string()
    };
    assert_eq!(
        refused(Rule::Numpy, &["n@5..8", "2..4"]),
        "E1: A (n,) and B (2..4,) do not broadcast under rule numpy: axis 0 (-1): A has 5..8, B has 2..4"
    );
    assert_eq!(
        refused(Rule::Numpy, &["n@2..,n", "3,4"]),
        "E1: A (n, n) and B (3, 4) do not broadcast under rule numpy: axis 1 (-1): A has 3, B has 4"
    );
    assert!(refused(Rule::Numpy, &["n@2..3", "n@5.."]).starts_with("E13"));
    assert!(refused(Rule::Pdpd { axis: Some(2) }, &["n,m", "3"]).starts_with("E11"));
    assert!(refused(Rule::Exact, &["n,m", "3"]).starts_with("E2"));
    assert!(refused(Rule::Exact, &["3,m", "4,m"]).starts_with("E1"));
    assert!(refused(Rule::Numpy, &["...", "3", "4"]).starts_with("E1"));
    assert!(refused(Rule::Exact, &["...", "3", "4"]).starts_with("E1"));
}

// [E_BROADCAST_ANY_FUNC_2030]
#[test]
fn sizes_are_checked_when_they_become_known() {
    let plan = resolve_dims(Rule::Numpy, &[dims("n,3"), dims("n@1..8,?"), dims("m,1")]).unwrap();
    assert_eq!(plan.bind(&[[4, 3], [4, 1], [1, 1]]).unwrap().shape(), [4, 3]);
    let code = |shapes: &[&[usize]]| plan.bind(shapes).unwrap_err().code();
    assert_eq!(code(&[&[4, 3], &[5, 1], &[1, 1]]), "E13", "n is one size");
    assert_eq!(code(&[&[9, 3], &[9, 1], &[1, 1]]), "E13", "n is at most 8");
    assert_eq!(code(&[&[4, 2], &[4, 1], &[1, 1]]), "E13", "a known size stays");
    assert_eq!(code(&[&[4, 3], &[4], &[1, 1]]), "E13", "the rank stays");
    assert_eq!(code(&[&[4, 3]]), "E6");
    assert_eq!(code(&[&[4, 3], &[4, 1], &[5, 1]]), "E1", "m is 1 or n");
    let four = plan.substitute(&[("n", 4)]).unwrap();
    assert_eq!(four.shape().to_string(), "(4, 3)");
    assert_eq!(four.constraints().len(), 2);
    assert_eq!(plan.substitute(&[("n", 9)]).unwrap_err().code(), "E13");
    assert_eq!(plan.substitute(&[("n", 4), ("m", 5)]).unwrap_err().code(), "E1");
    let unranked = resolve_dims(Rule::Numpy, &[dims("..."), dims("n,3")]).unwrap();
    assert_eq!(unranked.substitute(&[("n", 2)]).unwrap().shape(), &Dims::Unranked);
    assert_eq!(unranked.bind(&[&[4, 2, 3][..], &[2, 3]]).unwrap().shape(), [4, 2, 3]);
    assert_eq!(unranked.rule().as_rule(), Rule::Numpy);
    assert!(unranked.layout().is_none());
}

// [E_BROADCAST_ANY_FUNC_2040]
#[test]
fn an_unknown_rank_leaves_what_the_rule_fixes() {
    let shape = |rule: Rule<'_>, shapes: &[&str]| {
        let operands: Vec<Dims> = shapes.iter().map(|text| dims(text)).collect();
        resolve_dims(rule, &operands).unwrap().shape().to_string()
    };
    assert_eq!(shape(Rule::Exact, &["...", "2,3"]), "(2, 3)");
    assert_eq!(shape(Rule::Exact, &["...", "..."]), "(...)");
    assert_eq!(shape(Rule::To { target: &[2, 3] }, &["..."]), "(2, 3)");
    assert_eq!(shape(Rule::Axes { shape: &[2, 3], broadcast_axes: &[0] }, &["..."]), "(2, 3)");
    assert_eq!(shape(Rule::Bidirectional { target: &[2, 3] }, &["..."]), "(...)");
    assert_eq!(shape(Rule::Pdpd { axis: None }, &["2,n", "..."]), "(2, n)");
    assert_eq!(shape(Rule::Unidirectional, &["...", "2"]), "(...)");
    assert_eq!(shape(Rule::Unidirectional, &["2,n", "..."]), "(2, n)");
    assert_eq!(shape(Rule::Paddle { axis: Some(1) }, &["2,n", "..."]), "(...)");
    assert_eq!(shape(Rule::Mapping { shape: &[2, 3], axes_mapping: &[1] }, &["..."]), "(2, 3)");
    assert_eq!(shape(Rule::Named { labels: &[0] }, &["...", "n"]), "(...)");
    let refused = |rule: Rule<'_>, shapes: &[&str]| {
        let operands: Vec<Dims> = shapes.iter().map(|text| dims(text)).collect();
        resolve_dims(rule, &operands).unwrap_err()
    };
    assert_eq!(refused(Rule::Pdpd { axis: None }, &["...", "2,3", "4"]).code(), "E6");
    assert_eq!(refused(Rule::Pdpd { axis: Some(-2) }, &["...", "2,3"]).code(), "E3");
    assert_eq!(
        refused(Rule::Mapping { shape: &[2, 3], axes_mapping: &[1, 0] }, &["..."]).code(),
        "E5"
    );
    assert_eq!(refused(Rule::Axes { shape: &[2, 3], broadcast_axes: &[7] }, &["..."]).code(), "E3");
    assert_eq!(refused(Rule::Unidirectional, &["2,3", "...", "4"]).code(), "E1");
    assert_eq!(refused(Rule::Unidirectional, &["...", "3", "4"]).code(), "E1");
    let error = refused(Rule::Numpy, &["...", "2", "3"]);
    assert_eq!(error.operands(), [1, 2], "operands keep their numbers");
    assert_eq!(error.shapes()[0], Dims::Unranked);
    let plan = resolve_dims(Rule::Numpy, &[dims("..."), dims("?"), dims("4")]).unwrap();
    assert_eq!(plan.constraints()[0].to_string(), "axis 0 of operand 1 is 1 or 4");
}

// [E_BROADCAST_ANY_FUNC_2010]
#[test]
fn a_constraint_over_unknown_sizes_is_undecided() {
    let plan = resolve_dims(Rule::Numpy, &[dims("n,k"), dims("m,4")]).unwrap();
    for constraint in plan.constraints() {
        assert_eq!(constraint.holds(|_| None), None);
        assert_eq!(constraint.holds(|_| Some(1)), Some(true));
    }
}

// [E_BROADCAST_ANY_FUNC_2010]
#[test]
fn results_are_operands_of_the_next_resolution() {
    let first = resolve_dims(Rule::Numpy, &[dims("n"), dims("m")]).unwrap().shape().clone();
    let shape = |rule: Rule<'_>, other: &str| {
        let plan = resolve_dims(rule, &[first.clone(), dims(other)]).unwrap();
        let said: Vec<String> = plan.constraints().iter().map(ToString::to_string).collect();
        (plan.shape().to_string(), said.join("; "))
    };
    let agree = "m and n are equal or one is 1";
    assert_eq!(shape(Rule::Numpy, "1"), ("(bcast(m, n),)".into(), agree.into()));
    assert_eq!(shape(Rule::Numpy, "n"), ("(bcast(m, n),)".into(), agree.into()));
    assert_eq!(shape(Rule::Numpy, "4"), ("(4,)".into(), "m is 1 or 4; n is 1 or 4".into()));
    let three = "k, m, n: those that are not 1 are equal";
    assert_eq!(shape(Rule::Numpy, "k"), ("(bcast(k, m, n),)".into(), three.into()));
    assert_eq!(shape(Rule::Exact, "4"), ("(4,)".into(), "bcast(m, n) = 4".into()));
    let itself = resolve_dims(Rule::Exact, &[first.clone(), first.clone()]).unwrap();
    assert_eq!((itself.shape(), itself.constraints()), (&first, &[][..]));
    // Sizes for some of its symbols, or for all.
    let next = resolve_dims(Rule::Numpy, std::slice::from_ref(&first)).unwrap();
    let with =
        |sizes: &[(&str, usize)]| next.substitute(sizes).map(|plan| plan.shape().to_string());
    assert_eq!(with(&[("n", 4)]).unwrap(), "(4,)");
    assert_eq!(with(&[("n", 1)]).unwrap(), "(m,)");
    assert_eq!(with(&[("n", 1), ("m", 1)]).unwrap(), "(1,)");
    assert_eq!(with(&[("n", 3), ("m", 1)]).unwrap(), "(3,)");
    assert_eq!(with(&[("n", 3), ("m", 4)]).unwrap_err().code(), "E13");
    let wide =
        resolve_dims(Rule::Numpy, &[dims("n"), dims("m"), dims("k")]).unwrap().shape().clone();
    let wide = resolve_dims(Rule::Numpy, &[wide]).unwrap();
    assert_eq!(wide.substitute(&[("k", 1)]).unwrap().shape().to_string(), "(bcast(m, n),)");
    assert_eq!(wide.bind(&[[7]]).unwrap().shape(), [7]);
    let equal = Constraint::Equal(Term::Join(vec!["m".into(), "n".into()]), Term::Size(4));
    let value = |m, n| {
        move |term: &Term| match term {
            Term::Symbol(name) if **name == *"m" => m,
            _ => n,
        }
    };
    assert_eq!(equal.holds(value(Some(1), Some(4))), Some(true));
    assert_eq!(equal.holds(value(Some(1), Some(3))), Some(false));
    assert_eq!(equal.holds(value(Some(1), None)), None);
}

// [E_BROADCAST_ANY_ERR_0090]
#[test]
fn a_chain_of_symbols_takes_linear_time() {
    let name = |k: usize| Dim::Symbol(Symbol::new(format!("a{k}")));
    let chain: Vec<Dim> = (0..20_000).map(name).collect();
    let shifted: Vec<Dim> = (1..20_000).map(name).chain([Dim::Size(4)]).collect();
    let plan = resolve_dims(Rule::Exact, &[Dims::from(chain), Dims::from(shifted)]).unwrap();
    assert_eq!(plan.constraints().len(), 20_000);
}

// [E_BROADCAST_ANY_FUNC_2100]
#[test]
fn symbols_have_a_representative_plan() {
    let representative = |rule: Rule<'_>, shapes: &[&str]| {
        let operands: Vec<Dims> = shapes.iter().map(|text| dims(text)).collect();
        resolve_dims(rule, &operands).unwrap().representative(&Names::default())
    };
    let codes = |plan: &Plan| -> Vec<&'static str> {
        plan.findings(&Limits::default()).iter().map(|finding| finding.code.as_str()).collect()
    };
    let square = representative(Rule::Numpy, &["N,1", "N"]).unwrap();
    assert!(codes(&square).contains(&"SC102"));
    let outer = representative(Rule::Numpy, &["N,1", "M"]).unwrap();
    assert_eq!(codes(&outer), ["SC101", "SC103"]);
    let meeting = representative(Rule::Numpy, &["N,3", "M,1", "?,3"]).unwrap();
    assert_eq!(meeting.operand_shape(0), meeting.operand_shape(2));
    assert!(representative(Rule::Numpy, &["...", "N"]).is_none());
    let small = representative(Rule::To { target: &[7] }, &["n@0..1"]).unwrap();
    assert_eq!(small.operand_shape(0).unwrap(), [1], "no size but 1 fits");
    let given = representative(Rule::To { target: &[7] }, &["n"]).unwrap();
    assert_eq!(given.operand_shape(0).unwrap(), [7]);
}
