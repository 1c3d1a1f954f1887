//! tmp
#[path = "../../../conformance/replay/data.rs"]
mod data;
#[path = "../../../conformance/replay/ours.rs"]
mod ours;
use std::collections::BTreeMap;
#[test]
fn dump() {
    let t = std::time::Instant::now();
    let systems = data::systems().unwrap();
    println!("read {:?}", t.elapsed());
    let mut seen: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
    for s in &systems {
        for c in &s.cases {
            let ours = ours::answer(&c.question);
            let mut add = |k: String, v: String| { let e = seen.entry(k).or_default(); e.0 += 1; if e.1.len() < 400 { e.1.push(v); } };
            for (stage, a) in &c.said {
                if *a != ours {
                    let partial = c.question.sizes().is_none();
                    let kind = |a: &data::Answer| match a { data::Answer::Shape(_) => "S".to_string(), o => o.to_string() };
                    add(format!("{} {} {} {:?} partial={partial} theirs={} ours={}", s.name, c.op, c.question.rule, stage, kind(a), kind(&ours)), format!("{}: {a} / {ours}", c.question));
                }
            }
            if let Some(p) = ours::plan(&c.question) {
                if let Some(f) = &c.from { if *f != ours::from(&p) { add(format!("{} {} {} FROM", s.name, c.op, c.question.rule), format!("{}: {f:?} {:?}", c.question, ours::from(&p))); } }
                if let Some(f) = &c.sums { if *f != ours::sums(&p) { add(format!("{} {} {} SUMS", s.name, c.op, c.question.rule), format!("{}: {f:?} {:?}", c.question, ours::sums(&p))); } }
            }
        }
    }
    println!("done {:?}", t.elapsed());
    for (k, (n, v)) in &seen { println!("## {k}: {n}"); for v in v { println!("    {v}"); } }
}
