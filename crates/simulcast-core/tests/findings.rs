//! Findings and policies: what warns, and above all what does not.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{all_shapes, by_maximum, indices};
use simulcast_core::{
    Action, Certainty, Dim, Dims, Evidence, Finding, FindingCode, Limits, NamedAxes, Names, Plan,
    Policy, Rule, ShapeText, Strictness, Symbol, resolve, resolve_dims,
};

/// Two of them are more than can be counted: 2^40 where addresses have 64 bits, 2^20 where they have 32.
const HUGE: usize = 1 << (usize::BITS / 8 * 5);

fn plan(shapes: &[&[usize]]) -> Plan {
    resolve(Rule::Numpy, shapes).unwrap()
}

fn codes(plan: &Plan) -> Vec<&'static str> {
    plan.findings(&Limits::default()).iter().map(|finding| finding.code.as_str()).collect()
}

fn finding(plan: &Plan, code: FindingCode) -> Option<Finding> {
    plan.findings(&Limits::default()).into_iter().find(|finding| finding.code == code)
}

// [E_BROADCAST_ANY_FUNC_2110]
#[test]
fn a_column_meets_a_row_of_the_same_length() {
    let plan = plan(&[&[32, 1], &[32]]).with_names(Names::of(["pred", "target"]));
    let square = finding(&plan, FindingCode::SquareOuter).unwrap();
    assert_eq!((square.operands, square.axes), (vec![0, 1], vec![1, 0]));
    let fixes: Vec<String> = square.fixes.iter().map(|fix| fix.describe(plan.names())).collect();
    assert_eq!(
        fixes,
        ["target[:, None] is (32, 1), result (32, 1)", "pred[:, 0] is (32,), result (32,)"]
    );
}

// [E_BROADCAST_ANY_FUNC_2110]
#[test]
fn what_is_meant_does_not_warn() {
    // A table of pairs, written out; a bias; a scalar; a batch; equal shapes; channels; an outer
    // product of two lengths; one element; nothing.
    // A batch of positions against frequencies, as rotary embeddings have them.
    // A matrix scaled on both sides; pairs along an inner axis; channels against pixels.
    let fine: [&[&[usize]]; 16] = [
        &[&[1, 7, 1], &[7]],
        &[&[4, 1, 7, 1], &[7]],
        &[&[5, 1], &[5, 5], &[5]],
        &[&[100, 1, 3], &[100, 3]],
        &[&[8, 3, 1, 1], &[8, 8]],
        &[&[32, 1], &[1, 32]],
        &[&[32, 10], &[10]],
        &[&[32, 10], &[]],
        &[&[32, 64, 8, 8], &[64, 1, 1]],
        &[&[32, 10], &[32, 10]],
        &[&[32, 64, 64], &[64]],
        &[&[32, 1], &[10]],
        &[&[1, 1], &[1]],
        &[&[0, 1], &[0]],
        &[&[32, 1], &[1]],
        &[],
    ];
    for shapes in fine {
        for evidence in [Evidence::default(), VARIED] {
            let verdict = Policy::default().judge_with(&plan(shapes), evidence);
            assert_eq!(verdict, Default::default(), "{shapes:?}");
        }
    }
    for shapes in [&[&[8, 1][..], &[8]][..], &[&[1], &[5, 8, 1], &[8]], &[&[1, 8, 1], &[1, 8]]] {
        assert_eq!(Policy::default().judge_with(&plan(shapes), VARIED).warned.len(), 1);
    }
}

const VARIED: Evidence =
    Evidence { varied: true, symbol: false, reduced: false, deliberate: false };

// [E_BROADCAST_ANY_FUNC_2140]
#[test]
fn what_is_only_possible_waits_for_evidence() {
    let square = plan(&[&[8, 1], &[8]]);
    let alone = Policy::default().judge(&square);
    assert!(alone.denied.is_empty() && alone.warned.is_empty());
    assert_eq!(alone.unconfirmed[0].certainty, Certainty::Possible);
    let varied = Policy::default().judge_with(&square, VARIED);
    assert_eq!(varied.warned[0].certainty, Certainty::Confirmed);
    assert!(varied.unconfirmed.is_empty());
    // Strict refuses what is possible, and nothing that was written out.
    let strict: Policy = "SC102=deny".parse().unwrap();
    assert_eq!(strict.judge(&square).denied[0].certainty, Certainty::Possible);
    let deliberate = Evidence { deliberate: true, ..Evidence::default() };
    assert_eq!(strict.judge_with(&square, deliberate), Default::default());
    // What warns already and would be refused is unconfirmed too.
    let both: Policy = "SC102:possible=warn,SC102:confirmed=deny".parse().unwrap();
    let verdict = both.judge(&square);
    assert_eq!((verdict.warned.len(), verdict.unconfirmed.len()), (1, 1));
}

// [E_BROADCAST_ANY_FUNC_2140]
#[test]
fn one_symbol_confirms_and_equal_numbers_do_not() {
    let certainty = |shapes: [&str; 2], code| {
        let shapes = shapes.map(|text| text.parse::<ShapeText>().unwrap().dims);
        let plan = resolve_dims(Rule::Numpy, &shapes).unwrap();
        let names = Names::default();
        let verdict = Policy::all(Action::Warn).judge_symbolic(&plan, &names, Evidence::default());
        let found = verdict.unwrap().warned.into_iter().find(|finding| finding.code == code);
        found.map(|finding| finding.certainty)
    };
    let (possible, confirmed) = (Some(Certainty::Possible), Some(Certainty::Confirmed));
    let square = FindingCode::SquareOuter;
    assert_eq!(certainty(["batch,1", "batch"], square), confirmed);
    assert_eq!(certainty(["batch,N,1", "N"], square), confirmed);
    assert_eq!(certainty(["batch,4,1", "4"], square), possible);
    assert_eq!(certainty(["N,1", "M"], square), None);
    assert_eq!(certainty(["1,N,1", "N"], square), None, "rotary embeddings");
    let elsewhere = FindingCode::AmbiguousAlignment;
    assert_eq!(certainty(["C,H,C", "C"], elsewhere), confirmed);
    assert_eq!(certainty(["N,3,H,3", "3"], elsewhere), possible);
    assert_eq!(certainty(["N,3,N,3", "N,3"], elsewhere), possible, "3 may be 3 by chance");
}

// [E_BROADCAST_ANY_FUNC_2110]
#[test]
fn a_place_that_the_caller_gave_is_not_suspicious() {
    let given = |rule, shapes: &[&[usize]]| codes(&resolve(rule, shapes).unwrap());
    assert_eq!(given(Rule::Pdpd { axis: Some(0) }, &[&[3, 3], &[3]]), [""; 0]);
    assert_eq!(given(Rule::Pdpd { axis: None }, &[&[3, 3], &[3]]), ["SC103", "SC104"]);
    let shape = &[3, 3];
    assert_eq!(given(Rule::Axes { shape, broadcast_axes: &[0] }, &[&[3]]), [""; 0]);
    let axes = NamedAxes::new(&[&["n", "one"][..], &["m"]]).unwrap();
    let named = resolve(axes.as_rule(), &[&[8, 1][..], &[8]]).unwrap();
    assert_eq!(codes(&named), ["SC101"]);
}

// [E_BROADCAST_ANY_FUNC_2100]
#[test]
fn each_code_has_its_case() {
    assert_eq!(codes(&plan(&[&[8, 1, 6, 1], &[7, 1, 5]])), ["SC101", "SC103", "SC105"]);
    assert_eq!(codes(&plan(&[&[4, 1], &[1, 4]])), ["SC101"]);
    assert_eq!(codes(&plan(&[&[32, 1], &[32]])), ["SC102", "SC103"]);
    assert_eq!(codes(&plan(&[&[5, 3], &[3]])), ["SC103"]);
    assert_eq!(codes(&plan(&[&[3, 3], &[3]])), ["SC103", "SC104"]);
    assert_eq!(codes(&plan(&[&[1, 3, 2, 3], &[3]])), ["SC103", "SC104"]);
    let starts = finding(&plan(&[&[3, 3, 3, 3], &[3]]), FindingCode::AmbiguousAlignment).unwrap();
    assert_eq!((starts.axes, starts.fixes.len()), (vec![3, 0, 1, 2], 3));
    assert_eq!(codes(&plan(&[&[3, 3], &[1]])), ["SC103"], "ones fit everywhere alike");
    assert_eq!(codes(&plan(&[&[100, 1], &[1, 100]])), ["SC101", "SC105"]);
    assert_eq!(codes(&plan(&[&[0], &[1]])), ["SC107"]);
    assert_eq!(codes(&plan(&[&[0], &[]])), ["SC107"]);
    assert_eq!(codes(&plan(&[&[2, 0], &[2, 0], &[2, 1]])), ["SC107"]);
    assert_eq!(codes(&plan(&[&[HUGE, HUGE, 1], &[1, 1, 0]])), ["SC101", "SC107"]);
    let huge = [[HUGE, 1], [1, HUGE]];
    assert!(codes(&resolve(Rule::Numpy, &huge).unwrap()).contains(&"SC105"));
    let named = |axes: [&[&str]; 2], shapes: [&[usize]; 2]| {
        let axes = axes.iter().map(|own| own.iter().map(ToString::to_string).collect()).collect();
        codes(&plan(&shapes).with_names(Names { operands: vec![], axes }))
    };
    assert_eq!(named([&["b", "c"], &["b", "c"]], [&[32, 3], &[1, 3]]), ["SC106"]);
    assert_eq!(named([&["b", "c"], &["", "c"]], [&[32, 3], &[1, 3]]), [""; 0]);
    assert_eq!(named([&["b", "c"], &["c", "b"]], [&[3, 3], &[3, 3]]), ["SC111"]);
}

// [E_BROADCAST_ANY_FUNC_2100]
#[test]
fn messages_say_who_and_where() {
    let said = |shapes: &[&[usize]]| -> Vec<String> {
        let plan = plan(shapes);
        plan.findings(&Limits::default())
            .iter()
            .flat_map(|finding| {
                let fixes =
                    finding.fixes.iter().map(|fix| format!("  {}", fix.describe(plan.names())));
                std::iter::once(finding.to_string()).chain(fixes).collect::<Vec<_>>()
            })
            .collect()
    };
    let all = [
        said(&[&[8, 1, 6, 1], &[7, 1, 5]]),
        said(&[&[32, 1], &[32]]),
        said(&[&[3, 3], &[3]]),
        said(&[&[1, 3, 2, 3], &[3]]),
        said(&[&[5], &[0, 1]]),
    ];
    insta::assert_snapshot!(all.map(|lines| lines.join("\n")).join("\n\n"));
}

// [E_BROADCAST_ANY_FUNC_2120]
#[test]
fn raising_sc107_is_the_documents_e1_for_size_0() {
    let strict = Policy::all(Action::Allow).with(FindingCode::Emptied, Action::Deny);
    let shapes = all_shapes(3, 2);
    for a in &shapes {
        for b in &shapes {
            let refused = match resolve(Rule::Numpy, &[a, b]) {
                Err(_) => true,
                Ok(plan) => !strict.judge(&plan).denied.is_empty(),
            };
            assert_eq!(refused, by_maximum(a, b).is_none(), "{a:?} with {b:?}");
        }
    }
}

// [E_BROADCAST_ANY_FUNC_2130]
#[test]
fn levels_say_how_much_is_accepted_at_all() {
    let denied = |strictness, shapes: &[&[usize]]| -> Vec<&str> {
        let verdict = Policy::all(Action::Allow).with_strictness(strictness).judge(&plan(shapes));
        verdict.denied.iter().map(|finding| finding.code.as_str()).collect()
    };
    let none = [""; 0];
    let same: &[&[usize]] = &[&[2, 3], &[2, 3]];
    let scalar: &[&[usize]] = &[&[2, 3], &[]];
    let ones: &[&[usize]] = &[&[2, 3], &[1, 3]];
    let padded: &[&[usize]] = &[&[2, 3], &[3]];
    assert_eq!(denied(Strictness::Exact, same), none);
    assert_eq!(denied(Strictness::Exact, scalar), ["SC100"]);
    assert_eq!(denied(Strictness::ScalarOnly, scalar), none);
    assert_eq!(denied(Strictness::ScalarOnly, ones), ["SC100"]);
    assert_eq!(denied(Strictness::SameRank, ones), none);
    assert_eq!(denied(Strictness::SameRank, scalar), none);
    assert_eq!(denied(Strictness::SameRank, padded), ["SC103"]);
    let given = resolve(Rule::Pdpd { axis: Some(1) }, &[&[2, 3, 4][..], &[3]]).unwrap();
    let verdict = Policy::all(Action::Allow).with_strictness(Strictness::SameRank).judge(&given);
    assert_eq!(verdict.denied[0].code, FindingCode::RankPromotion, "wherever it was laid");
    let many: Vec<Vec<usize>> =
        indices(&[2; 6]).iter().map(|i| i.iter().map(|k| 1 + 2 * k).collect()).collect();
    let many = [many, vec![vec![3]]].concat();
    let last = resolve(Rule::Numpy, &many).unwrap();
    let verdict = Policy::all(Action::Allow).with_strictness(Strictness::SameRank).judge(&last);
    assert_eq!(verdict.denied[0].operands, [64], "every operand is looked at");
    assert_eq!(denied(Strictness::Numpy, padded), none);
    assert_eq!(denied(Strictness::Exact, &[]), none);
    for name in ["exact", "scalar-only", "same-rank", "numpy"] {
        assert_eq!(name.parse::<Strictness>().map(Strictness::name), Ok(name));
    }
    assert!("Exact".parse::<Strictness>().is_err());
}

// [E_BROADCAST_ANY_FUNC_2130]
#[test]
fn actions_are_one_a_code() {
    let policy = Policy::all(Action::Warn).with(FindingCode::Growth, Action::Deny);
    let verdict = policy.judge(&plan(&[&[8, 1, 6, 1], &[7, 1, 5]]));
    let of = |found: &[Finding]| found.iter().map(|f| f.code.as_str()).collect::<Vec<_>>();
    assert_eq!(of(&verdict.denied), ["SC105"]);
    assert_eq!(of(&verdict.warned), ["SC101", "SC103"]);
    assert_eq!(policy.action(FindingCode::Growth, Certainty::Possible), Action::Deny);
    // What the strictness forbids is denied, whatever was asked for: that makes no difference between policies.
    assert!(policy.is_fixed_by_strictness(FindingCode::Repeat));
    assert_eq!(policy.clone().with(FindingCode::Repeat, Action::Warn), policy);
    let ranks = Policy::default().with_strictness(Strictness::SameRank);
    assert_eq!(ranks.clone().with(FindingCode::RankPromotion, Action::Warn), ranks);
    assert_ne!(ranks, Policy::default());
    assert_ne!(policy.clone().with(FindingCode::Growth, Action::Warn), policy);
    let mut by_bytes = Policy::all(Action::Deny);
    by_bytes.limits = Limits { growth: f64::INFINITY, bytes: Some(100), element: 4 };
    assert_eq!(of(&by_bytes.judge(&plan(&[&[26]])).denied), ["SC105"]);
    assert_eq!(of(&by_bytes.judge(&plan(&[&[25]])).denied), [""; 0]);
    assert_eq!(of(&by_bytes.judge(&plan(&[&[usize::MAX]])).denied), ["SC105"]);
    for (name, action) in [("allow", Action::Allow), ("warn", Action::Warn), ("deny", Action::Deny)]
    {
        assert_eq!((name.parse(), action.name()), (Ok(action), name));
    }
    assert!("raise".parse::<Action>().is_err());
    for &code in FindingCode::ALL {
        assert_eq!(code.as_str().parse(), Ok(code));
        assert_eq!(code.to_string(), code.as_str());
        assert!(!code.title().is_empty());
    }
    assert_eq!("sc102".parse(), Ok(FindingCode::SquareOuter));
}

// [E_BROADCAST_ANY_FUNC_2100]
#[test]
fn many_operands_are_looked_at_up_to_a_number_of_distinct_shapes() {
    let mut many = vec![vec![1]; 100_000];
    many.push(vec![8, 1]);
    many.push(vec![8]);
    let found = resolve(Rule::Numpy, &many).unwrap().findings(&Limits::default());
    assert_eq!(found[0].operands, [100_000, 100_001]);
    let distinct: Vec<Vec<usize>> = (0..100).map(|rank| vec![1; rank]).collect();
    let plan = resolve(Rule::Numpy, &distinct).unwrap();
    assert_eq!(codes(&plan), ["SC103"]);
}

#[test]
fn symbols_are_judged_without_numbers() {
    let n = || Dim::Symbol(Symbol::new("n"));
    let shapes = [Dims::from(vec![n(), Dim::Size(1)]), Dims::from(vec![n()])];
    let names = Names::of(["pred", "target"]);
    let plan = resolve_dims(Rule::Numpy, &shapes).unwrap();
    let verdict =
        Policy::all(Action::Warn).judge_symbolic(&plan, &names, Evidence::default()).unwrap();
    let square = &verdict.warned[0];
    assert_eq!((square.code, square.fixes.len()), (FindingCode::SquareOuter, 0));
    assert!(square.message.ends_with("; perhaps target[:, None] or pred[:, 0]"), "{square}");
    assert!(verdict.warned.iter().all(|finding| finding.code != FindingCode::Growth));
    let exact = Policy::default()
        .with_strictness(Strictness::Exact)
        .judge_symbolic(&plan, &names, Evidence::default())
        .unwrap();
    assert_eq!(exact.denied[0].message, "pred (n, 1) is repeated to (n, n)");
    let unranked = resolve_dims(Rule::Numpy, &[Dims::Unranked, shapes[1].clone()]).unwrap();
    assert_eq!(Policy::default().judge_symbolic(&unranked, &names, Evidence::default()), None);
}

/// The quick question may say yes too often, and never no where a policy says something.
#[test]
fn a_policy_that_may_not_warn_never_does() {
    let sizes = [0_usize, 1, 2, 3];
    let mut shapes: Vec<Vec<usize>> = vec![vec![]];
    for rank in 1..=3_u32 {
        let of_rank = (0..4_usize.pow(rank))
            .map(|number| (0..rank).map(|axis| sizes[number >> (2 * axis) & 3]).collect());
        shapes.extend(of_rank);
    }
    let mut policies =
        vec![Policy::default(), Policy::all(Action::Allow), Policy::for_explanations()];
    for code in FindingCode::ALL {
        policies.push(Policy::all(Action::Allow).with(*code, Action::Deny));
        let confirmed = Policy::all(Action::Allow);
        policies.push(confirmed.with_certainty(*code, Certainty::Confirmed, Action::Warn));
    }
    for strictness in [Strictness::Exact, Strictness::ScalarOnly, Strictness::SameRank] {
        let mut policy = Policy::all(Action::Allow);
        policy.strictness = strictness;
        policies.push(policy);
    }
    let mut policy = Policy::all(Action::Warn);
    policy.limits.bytes = Some(20);
    policies.push(policy);
    let mut quiet = 0;
    for a in &shapes {
        for b in &shapes {
            let Ok(plan) = resolve(Rule::Numpy, &[a, b]) else { continue };
            for policy in &policies {
                let all = Evidence { varied: true, symbol: true, reduced: true, deliberate: false };
                let verdict = policy.judge_with(&plan, all);
                let unconfirmed = policy.judge(&plan).unconfirmed;
                let found = [verdict.warned, verdict.denied, unconfirmed].concat();
                let says = !found.is_empty();
                let may = policy.may_warn(&[a, b]);
                quiet += usize::from(!may);
                assert!(may || !says, "{policy}: {a:?} {b:?}");
            }
        }
    }
    assert!(quiet > 10_000, "{quiet}");
}
