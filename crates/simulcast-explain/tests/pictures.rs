//! Pictures are well-formed, bounded and right: every cell is counted and every label is computed
//! again here, from the shapes alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use simulcast_core::{
    Dim, Dims, Limits, NamedAxes, Names, Plan, Rule, ShapeText, Symbol, resolve, resolve_dims,
};
use simulcast_explain::{Section, Subject, fragment, page, report, svg};

/// An element of a picture, with the classes of the groups around it.
#[derive(Debug)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    within: Vec<String>,
}

impl Element {
    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    fn is(&self, class: &str) -> bool {
        self.get("class") == Some(class)
    }

    fn is_in(&self, class: &str) -> bool {
        self.within.iter().any(|own| own == class)
    }
}

/// The elements in the order in which they end; it panics on whatever is not well-formed.
fn read(xml: &str) -> Vec<Element> {
    fn visit(node: roxmltree::Node<'_, '_>, within: &mut Vec<String>, done: &mut Vec<Element>) {
        let class = node.attribute("class").map(str::to_owned);
        let element = Element {
            name: node.tag_name().name().to_owned(),
            attributes: node.attributes().map(|a| (a.name().into(), a.value().into())).collect(),
            text: node
                .children()
                .filter_map(|child| child.is_text().then(|| child.text())?)
                .collect(),
            within: within.clone(),
        };
        let depth = within.len();
        within.extend(class);
        for child in node.children().filter(roxmltree::Node::is_element) {
            visit(child, within, done);
        }
        within.truncate(depth);
        done.push(element);
    }
    let document = roxmltree::Document::parse(xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
    let mut done = Vec::new();
    visit(document.root_element(), &mut Vec::new(), &mut done);
    done
}

fn numpy(shapes: &[&[usize]]) -> Plan {
    resolve(Rule::Numpy, shapes).unwrap()
}

fn picture(plan: &Plan) -> Vec<Element> {
    let findings = plan.findings(&Limits::default());
    read(&svg(&Subject::Plan(plan, &findings)))
}

/// Every shape of at most rank 2 with sizes 0 to 3.
fn small_shapes() -> Vec<Vec<usize>> {
    let ones = (0..4).map(|a| vec![a]);
    let twos = (0..4).flat_map(|a| (0..4).map(move |b| vec![a, b]));
    [vec![]].into_iter().chain(ones).chain(twos).collect()
}

/// The common shape, by the words of the rule; none where sizes clash.
fn common(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |shape: &[usize], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(own) => shape[own],
        None => 1,
    };
    (0..rank)
        .map(|axis| match (size(a, axis), size(b, axis)) {
            (1, other) | (other, 1) => Some(other),
            (one, other) => (one == other).then_some(one),
        })
        .collect()
}

// [E_BROADCAST_ANY_FUNC_2260]
#[test]
fn every_small_pair_has_the_right_cells_with_the_right_labels() {
    let (shapes, mut drawn) = (small_shapes(), 0);
    for (a, b) in shapes.iter().flat_map(|a| shapes.iter().map(move |b| (a, b))) {
        let Some(result) = common(a, b) else {
            let error = resolve(Rule::Numpy, &[a, b]).unwrap_err();
            let elements = read(&svg(&Subject::Error(&error)));
            assert!(elements.iter().filter(|e| e.is("sc-clash")).count() >= 2);
            continue;
        };
        let elements = picture(&numpy(&[a, b]));
        for (operand, shape) in [a, b].into_iter().enumerate() {
            check_operand(&elements, &format!("sc-o{operand}"), shape, &result);
        }
        drawn += 1;
    }
    assert_eq!(drawn, PAIRS);
}

fn check_operand(elements: &[Element], class: &str, shape: &[usize], result: &[usize]) {
    let count = |kind: &str| {
        let of = |e: &&Element| e.is_in(class) && e.is(kind);
        ["sc-x", "sc-y", "sc-z"]
            .map(|stage| elements.iter().filter(of).filter(|e| e.is_in(stage)).count())
    };
    let (stored, all): (usize, usize) = (shape.iter().product(), result.iter().product());
    let in_z = if all == 0 { 0 } else { stored };
    assert_eq!(count("sc-stored"), [stored, stored, in_z], "{shape:?} in {result:?}");
    assert_eq!(count("sc-virtual"), [0, 0, all - in_z], "{shape:?} in {result:?}");
    let none = [stored, stored, all].map(|values| usize::from(values == 0));
    assert_eq!(count("sc-empty"), none, "{shape:?} in {result:?}");

    // Each cell of Z, with the text that follows it.
    let inside = |e: &&Element| e.is_in(class) && e.is_in("sc-z") && !e.is("sc-tick");
    let inside: Vec<&Element> = elements.iter().filter(inside).collect();
    let mut seen = Vec::new();
    for pair in inside.windows(2).filter(|pair| pair[0].get("data-z").is_some()) {
        let index = numbers(pair[0].get("data-z").unwrap());
        let first = index.len() - shape.len();
        let own: Vec<String> = shape
            .iter()
            .enumerate()
            .map(|(axis, &size)| if size == 1 { 0 } else { index[first + axis] })
            .map(|at| at.to_string())
            .collect();
        let label = if own.is_empty() { "()".to_owned() } else { own.join(",") };
        assert_eq!(pair[1].text, label, "{shape:?} in {result:?} at {index:?}");
        assert_eq!(pair[0].get("data-x"), Some(own.join(",").as_str()));
        seen.push(index);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
}

fn numbers(text: &str) -> Vec<usize> {
    text.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().unwrap()).collect()
}

// [E_BROADCAST_ANY_FUNC_2260]
#[test]
fn three_axes_are_drawn_in_layers() {
    let elements = picture(&numpy(&[&[2, 1, 3], &[4, 1]]));
    check_operand(&elements, "sc-o0", &[2, 1, 3], &[2, 4, 3]);
    check_operand(&elements, "sc-o1", &[4, 1], &[2, 4, 3]);
    assert_eq!(elements.iter().filter(|e| e.text == "layer 1").count(), 4);
}

// [E_BROADCAST_ANY_FUNC_2260]
#[test]
fn axes_that_meet_by_name_are_reordered() {
    let named = NamedAxes::new(&[["b", "c"], ["c", "b"]]).unwrap();
    let elements = picture(&resolve(named.as_rule(), &[[2, 3], [3, 2]]).unwrap());
    let cell = |e: &&Element| e.is_in("sc-o1") && e.get("data-z") == Some("1,2");
    assert_eq!(elements.iter().find(cell).and_then(|e| e.get("data-x")), Some("2,1"));
}

const HOSTILE: &str =
    "</title><script>alert('1')</script>\"\u{0}\u{1b}\u{202e}\u{ffff}&\n--><b x=\"";
/// How many pairs of shapes of at most rank 2 with sizes 0 to 3 broadcast.
const PAIRS: usize = 231;

/// One subject of each kind, with hostile names wherever a name can stand.
fn hostile(check: impl Fn(&Subject<'_>)) {
    let names = Names {
        operands: vec![HOSTILE.repeat(500), HOSTILE.into()],
        axes: vec![vec![HOSTILE.into(); 2], vec![HOSTILE.into()]],
    };
    for first in [&[3, 1][..], &[3, 1, 1, 1]] {
        let plan = numpy(&[first, &[4]]).with_names(names.clone());
        check(&Subject::Plan(&plan, &plan.findings(&Limits::default())));
    }
    let error = resolve(Rule::Numpy, &[&[2, 3][..], &[4]]).unwrap_err();
    check(&Subject::Error(&error.with_names(names.clone())));
    let symbol = Dim::Symbol(Symbol::new(HOSTILE.repeat(500)));
    let dims = [vec![symbol], vec![Dim::Size(4)]].map(Dims::from);
    check(&Subject::Symbolic(&resolve_dims(Rule::Numpy, &dims).unwrap(), &names, &[]));
}

// [E_BROADCAST_ANY_ERR_0090]
#[test]
fn hostile_names_neither_break_out_nor_grow_the_picture() {
    hostile(|subject| {
        let drawn = svg(subject);
        assert!(drawn.len() < 30_000, "{}", drawn.len());
        let known = ["svg", "title", "desc", "style", "rect", "text", "path", "g"];
        for element in read(&drawn) {
            assert!(known.contains(&element.name.as_str()), "{}", element.name);
            assert!(element.get("id").is_none());
            assert!(!element.attributes.iter().any(|(name, _)| name.starts_with("on")));
        }
        assert_eq!(drawn.matches("http").count(), 1, "the name space, and nothing else");
        let page = page(subject, HOSTILE);
        assert!(page.matches("<script").count() <= 1);
        assert!(!page.contains("alert('1')") && !page.contains('\u{202e}'));
    });
}

// [E_BROADCAST_ANY_ERR_0090]
#[test]
fn huge_plans_give_small_pictures() {
    let wide = vec![2; 10_000];
    let (mut stretched, mut clashing) = (wide.clone(), wide.clone());
    (stretched[5_000], clashing[7_000]) = (1, 3);
    let max = usize::MAX;
    let plans = [
        resolve(Rule::Numpy, &vec![[2, 3]; 100_000]).unwrap(),
        numpy(&[&wide, &stretched, &[]]),
        numpy(&[&[max, 1, 3], &[max, 1]]),
        numpy(&[&[max, 1, max, 1], &[max, 1, max]]),
        numpy(&[&[max, max, max], &[max, max, max], &[], &[max]]),
        numpy(&[]),
    ];
    for plan in plans {
        let drawn = svg(&Subject::Plan(&plan, &plan.findings(&Limits::default())));
        assert!(drawn.len() < 120_000, "{}", drawn.len());
        read(&drawn);
    }
    let error = resolve(Rule::Numpy, &[wide, clashing]).unwrap_err();
    let elements = read(&svg(&Subject::Error(&error)));
    assert_eq!(elements.iter().filter(|e| e.is("sc-clash")).count(), 2);
    assert!(elements.iter().any(|e| e.text == "axis 7000"));
}

// [E_BROADCAST_ANY_FUNC_2260]
#[test]
fn long_axes_show_their_ends_and_their_size() {
    let elements = picture(&numpy(&[&[32, 1], &[32]]));
    let z = elements.iter().filter(|e| e.is_in("sc-o0") && e.get("data-z").is_some()).count();
    assert_eq!(z, 7 * 7);
    let has = |text: &str| elements.iter().any(|e| e.text == text);
    assert!(has("31,0") && has("axis 1 (across): 1 → 32") && has("…") && has("⋮"));
}

// [E_BROADCAST_ANY_FUNC_2260]
#[test]
fn tables_mark_what_repeats_and_say_its_stride() {
    let elements = picture(&numpy(&[&[8, 1, 6, 1], &[7, 1, 5]]));
    let count = |class: &str| elements.iter().filter(|e| e.is(class)).count();
    assert_eq!([count("sc-stored"), count("sc-virtual"), count("sc-result")], [4, 4, 4]);
    let texts: Vec<&str> = elements.iter().map(|e| e.text.as_str()).collect();
    for text in ["1 → 7", "stride 0", "stride 6", "(-4)", "(8, 7, 6, 5)", "SC101"] {
        assert!(texts.contains(&text), "{text}");
    }
    let cost = "A 48, B 35 values; result 1,680 (20.2 times what is stored)";
    assert!(texts.contains(&cost));
}

#[test]
fn errors_and_symbols_say_what_is_wrong_and_what_is_needed() {
    let error = resolve(Rule::Numpy, &[&[2, 3, 4][..], &[2, 4]]).unwrap_err();
    let elements = read(&svg(&Subject::Error(&error)));
    let has = |text: &str| elements.iter().any(|e| e.text == text);
    assert!(has("≠ 3") && has("≠ 2") && has("axis 1 (-2): A has 3, B has 2"));
    assert!(has("B[:, None, :] is (2, 1, 4), result (2, 3, 4)"));

    let dims = ["N,3,1", "M,1,4"].map(|text| text.parse::<ShapeText>().unwrap().dims);
    let plan = resolve_dims(Rule::Numpy, &dims).unwrap();
    let elements = read(&svg(&Subject::Symbolic(&plan, &Names::default(), &[])));
    let has = |text: &str| elements.iter().any(|e| e.text == text);
    assert!(has("bcast(M, N)") && has("1 → 4") && has("M and N are equal or one is 1"));
}

#[test]
fn the_same_plan_gives_the_same_picture_and_says_it_in_words() {
    let plan = numpy(&[&[3, 1], &[4]]);
    let subject = Subject::Plan(&plan, &[]);
    assert_eq!(svg(&subject), svg(&subject));
    assert_eq!(page(&subject, "text"), page(&subject, "text"));
    let elements = read(&fragment(&subject));
    let root = elements.iter().find(|e| e.name == "svg").unwrap();
    assert_eq!(root.get("role"), Some("img"));
    let text = |name: &str| elements.iter().find(|e| e.name == name).unwrap().text.clone();
    assert_eq!(text("title"), "A (3, 1) and B (4,) broadcast to (3, 4)");
    insta::assert_snapshot!(text("desc"));
    let style = text("style");
    assert!(style.contains("@media (prefers-color-scheme:dark)"));
    assert!(!style.contains("url(") && !style.contains("@import"));
}

// [E_BROADCAST_ANY_FUNC_2260]
#[test]
fn the_picture_of_an_outer_sum() {
    let drawn = svg(&Subject::Plan(&numpy(&[&[2, 1], &[3]]), &[]));
    let (head, body) = drawn.split_once("<style>").unwrap();
    let (_, body) = body.split_once("</style>").unwrap();
    insta::assert_snapshot!(format!("{head}{body}"));
}

#[test]
fn a_page_holds_all_it_needs_and_lets_nothing_else_run() {
    let plan = numpy(&[&[3, 1], &[4]]);
    let page = page(&Subject::Plan(&plan, &[]), "a <plain> text\nof two lines");
    assert!(page.contains("<pre>a &lt;plain&gt; text\nof two lines</pre>"));
    assert!(page.contains("aria-live=\"polite\"") && page.contains("default-src 'none'"));
    assert!(!page.contains("innerHTML") && !page.contains(" src=") && !page.contains(" href="));
    assert_eq!(scripts_with_their_hash(&page), 1);
}

/// How many scripts a page has; the hash of each is in its policy.
fn scripts_with_their_hash(page: &str) -> usize {
    let scripts = page.split("<script>").skip(1).map(|own| own.split("</script>").next().unwrap());
    let check = |script: &str| {
        // Browsers hash what they read, and they read every line end as one character.
        let hash = STANDARD.encode(Sha256::digest(script.replace('\r', "")));
        assert!(page.contains(&format!("'sha256-{hash}'")), "the hash is {hash}");
    };
    scripts.map(check).count()
}

#[test]
fn a_report_leads_to_what_is_wrong_and_escapes_names() {
    let plan = numpy(&[&[3, 1], &[4]]);
    let part = |title: &str, error: Option<&str>| Section {
        title: title.into(),
        brief: "Add".into(),
        scope: "scope <1>".into(),
        error: error.map(|said| ("E1".into(), said.into())),
        findings: Vec::new(),
        text: "as <text>".into(),
        subject: Some(Subject::Plan(&plan, &[])),
    };
    let mut parts: Vec<Section<'_>> = (0..20).map(|at| part(&format!("n{at}"), None)).collect();
    parts.push(part("<img src=x>", Some("it & <b>")));
    let page = report("a <title>", "what it is", "", &parts);
    assert!(page.contains("<a href=\"#p20\">&lt;img src=x&gt;</a>: it &amp; &lt;b&gt;"), "{page}");
    assert!(page.contains("<details class=\"group\" data-name=\"scope &lt;1&gt;\">"));
    assert!(!page.contains("<img") && !page.contains("<b>"));
    // What is wrong is in a group of that name, and is found by its scope there too.
    assert!(
        page.contains("<details class=\"part\" id=\"p20\" data-scope=\"scope &lt;1&gt;\" open>")
    );
    // Only what is wrong is open.
    assert_eq!(page.matches(" open>").count(), 2);
    assert_eq!(scripts_with_their_hash(&page), 2);
}
