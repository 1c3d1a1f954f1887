//! The expression language: what is read, what is refused and where, and that it is shown as it was read.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use simulcast::program::{Expr, SyntaxErrorKind};

fn read(text: &str) -> Expr {
    Expr::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Text, and the same with every bracket that precedence implies.
const SAME: [(&str, &str); 37] = [
    ("a + b * c", "a + (b * c)"),
    ("a - b - c", "(a - b) - c"),
    ("a / b * c", "(a / b) * c"),
    ("a // b % c", "(a // b) % c"),
    ("-a ** b", "-(a ** b)"),
    ("a ** -b", "a ** (-b)"),
    ("a ** b ** c", "a ** (b ** c)"),
    ("-a ** -b ** c", "-(a ** (-(b ** c)))"),
    ("~a & b", "(~a) & b"),
    ("a | b ^ c & d", "a | (b ^ (c & d))"),
    ("a << b + c", "a << (b + c)"),
    ("a & b == c", "(a & b) == c"),
    ("not a == b", "not (a == b)"),
    ("not a and b or c", "((not a) and b) or c"),
    ("a or b and not c", "a or (b and (not c))"),
    ("a if b else c if d else e1", "a if b else (c if d else e1)"),
    ("a or b if c or d else f", "(a or b) if (c or d) else f"),
    ("+a", "a"),
    ("a < b", "less(a, b)"),
    ("abs(a)", "absolute(a)"),
    ("max(a, b, c)", "maximum(a, b, c)"),
    ("max(a)", "amax(a)"),
    ("max(a, axis=1)", "a.max(1)"),
    ("sum(a, -1)", "a.sum(axis=-1)"),
    ("sum(a, axis=(0, 1), keepdims=True)", "a.sum((0, 1,), keepdims=True,)"),
    ("mean(a, axis=None)", "a.mean()"),
    ("astype(a, 'float32')", "float32(a)"),
    ("a.astype(float32)", "float32(a)"),
    ("transpose(a, 0, 2, 1)", "a.transpose((0, 2, 1))"),
    ("transpose(a)", "a.T"),
    ("a[newaxis, :]", "a[None, :,]"),
    ("a.clip(0, 1)", "clip(a, 0, 1)"),
    ("clip(a, min=0, max=b)", "clip(a, 0, b)"),
    ("clip(a, None, 1)", "minimum(a, 1)"),
    ("a.clip(min=0)", "maximum(a, 0)"),
    ("0x1F + 1_000 + .5", "31 + 1000 + 0.5"),
    ("a.real", "real(a)"),
];

#[test]
fn precedence_is_pythons() {
    for (text, bracketed) in SAME {
        assert_eq!(read(text), read(bracketed), "{text}");
    }
}

#[test]
fn different_expressions_are_different() {
    let all: Vec<Expr> = SAME.iter().map(|(text, _)| read(text)).collect();
    for (k, a) in all.iter().enumerate() {
        let twins = all.iter().filter(|b| *b == a).count();
        let shown = a.to_string();
        // The two casts, and the two sums along the last axis, are written twice above.
        assert!(twins == 1 || shown == "float32(a)" || shown == "clip(a, 0, 1)", "{k}: {shown}");
    }
    assert_ne!(read("a - (b - c)"), read("a - b - c"));
    assert_ne!(read("a < b < c"), read("(a < b) < c"));
    assert_ne!(read("'a'"), read("a"));
}

#[test]
fn it_is_shown_with_the_brackets_that_it_needs() {
    for (text, shown) in [
        ("((a)+(b*c))", "a + b * c"),
        ("(a+b)*c", "(a + b) * c"),
        ("a-(b-c)", "a - (b - c)"),
        ("(-a)**2", "(-a) ** 2"),
        ("2**-x", "2 ** -x"),
        ("a<b<=c", "a < b <= c"),
        ("(a<b)<c", "(a < b) < c"),
        ("not(a and b)", "not (a and b)"),
        ("(a if b else c)+1", "(a if b else c) + 1"),
        ("(1).T", "(1).T"),
        ("(a+b)[:,None]", "(a + b)[:, None]"),
        ("x.sum((0,1)).T[...,None]", "sum(x, axis=(0, 1)).T[..., None]"),
        ("concat(a,'it\\'s\\n')", "concat(a, 'it\\'s\\n')"),
        ("1e-3 * 2j", "0.001 * 2.0j"),
        ("logical_xor(a, b)", "logical_xor(a, b)"),
    ] {
        assert_eq!(read(text).to_string(), shown);
    }
}

#[test]
fn operands_come_in_the_order_of_the_text_without_constants() {
    let expr = read("(x - mean) / std * x + bias * pi - inf");
    assert_eq!(expr.operands().collect::<Vec<_>>(), ["x", "mean", "std", "bias"]);
    let names: Vec<String> = (0..10_000).map(|k| format!("x{k}")).collect();
    let expr = read(&names.join(" + "));
    assert_eq!(expr.operands().count(), 10_000);
}

#[test]
fn every_node_says_where_it_stands() {
    let text = "(x - mean) / f(a)".replace("f(", "sqrt(");
    let expr = read(&text);
    let root = expr.nodes().last().unwrap();
    assert_eq!((&text[root.span.clone()], &text[root.head.clone()]), (&text[..], "/"));
    let spans: Vec<&str> = expr.nodes().iter().map(|node| &text[node.span.clone()]).collect();
    assert_eq!(spans, ["x", "mean", "(x - mean)", "a", "sqrt(a)", &text]);
}

/// As Python's `ast` has it: whether the value of `{text}[None]` is all of the text.
#[test]
fn an_index_behind_a_text_is_about_all_of_it_or_not() {
    for (text, expected) in [
        ("a", true),
        ("(a)", true),
        ("a + b", false),
        ("(a + b)", true),
        ("(a) + (b)", false),
        ("((a) + (b))", true),
        ("(a).T", true),
        ("(a).sum(axis=0)", true),
        ("-a", false),
        ("-(a)", false),
        ("(+a)", true),
        ("a ** 2", false),
        ("(a) ** (b)", false),
        ("abs(a) + abs(b)", false),
        ("(abs(a))", true),
        ("a[:, None]", true),
        ("(a)[:, None] + (b)[None]", false),
        ("not (a)", false),
        ("(a) if b else (c)", false),
        ("(a) < (b)", false),
        ("abs(a).real", true),
        ("clip(a + b, None, None)", true),
        ("clip((a), None, None)", true),
        ("concat('(', a)", true),
        ("((a))", true),
        ("(a + b) * (c)", false),
        ("+a + b", false),
        ("(a).astype(int8)", true),
        ("int8(a)", true),
    ] {
        let expr = read(text);
        assert_eq!(expr.nodes().last().unwrap().is_tight(), expected, "{text}");
    }
    // `clip` without bounds is its operand, which stands where the call does.
    let clipped = read("clip((a), None, None)");
    let node = &clipped.nodes()[0];
    assert_eq!((node.span.clone(), node.is_bracketed()), (0..21, false));
}

#[test]
fn errors_say_what_was_expected_and_where() {
    for (text, start, message) in [
        ("", 0, "expected an operand, found the end"),
        ("a +", 3, "expected an operand, found the end"),
        ("a b", 2, "expected an operator or the end, found `b`"),
        ("(a + b", 6, "expected an operator or `)`, found the end"),
        ("a + * b", 4, "expected an operand, found `*`"),
        (
            "a @ b",
            2,
            "there is no `@`; write the product and the sum over the axis that both have, which are one pass",
        ),
        ("a && b", 2, "there is no `&&`; write `and`"),
        ("a = b", 2, "there is no `=`; an expression assigns nothing; `==` compares"),
        ("sqrrt(a)", 0, "there is no function `sqrrt`; did you mean `sqrt`?"),
        ("a + foo(b)", 4, "there is no function `foo`"),
        ("where(a, b)", 0, "`where` takes 3 operands, not 2"),
        ("maximum(a)", 0, "`maximum` takes 2 operands or more, not 1"),
        ("clip(a, 0)", 0, "`clip` takes an operand and two bounds, not 2"),
        ("a[0]", 2, "an index is made of `:`, `None` and one `...` alone"),
        ("a[1:2, None]", 2, "an index is made of `:`, `None` and one `...` alone"),
        ("a[..., ...]", 7, "an index is made of `:`, `None` and one `...` alone"),
        ("a.shape", 2, "arrays have no `.shape` here"),
        ("a.astype(float)", 9, "`float` is no element type; did you mean `float64`?"),
        ("a.astype(record)", 9, "`record` is no element type"),
        ("int(a) + 1", 0, "there is no function `int`; did you mean `int64`?"),
        ("sum(a, axes=0)", 7, "`sum` takes no `axes=`"),
        ("sum(a, axis=b)", 12, "expected an axis, such as `-1`, found `b`"),
        ("sum(a, keepdims=1)", 16, "expected `True` or `False`, found `1`"),
        ("2x", 0, "this is not a number"),
        ("1 + 0x", 4, "this is not a number"),
        ("a + 007", 4, "this is not a number"),
        ("1e999", 0, "this number is too large"),
        ("'abc", 0, "this text has no closing quote"),
        ("a # b", 2, "no expression has the character '#'"),
        ("exp()", 0, "`exp` takes 1 operand, not 0"),
        ("a.sum(axis=0, axis=1)", 14, "`sum` is given `axis=` twice"),
        ("sum(a, 0, axis=1)", 10, "`sum` is given `axis=` twice"),
        ("clip(a, low=0)", 8, "`clip` takes no `low=`"),
        ("a.clip(0, min=1)", 10, "`clip` is given `min=` twice"),
        ("clip(a, max=0, 1)", 15, "expected `min=`, `max=` or `)`, found `1`"),
        ("a.astype(flaot32)", 9, "`flaot32` is no element type; did you mean `float32`?"),
        ("exp(x=a)", 4, "`exp` takes no `x=`"),
        ("1 + np.sin(a)", 4, "functions stand here without a module; leave out `np.`"),
        ("a * math.pi", 4, "functions stand here without a module; leave out `math.`"),
        ("np.where(a, b, 0)", 0, "functions stand here without a module; leave out `np.`"),
        ("None", 0, "expected an operand, found `None`"),
        ("sum(a 0)", 6, "expected `,`, `)` or an operator, found `0`"),
    ] {
        let error = Expr::parse(text).unwrap_err();
        assert_eq!((error.kind.to_string().as_str(), error.span.start), (message, start), "{text}");
    }
}

/// A module is a name like any other where it can be one.
#[test]
fn operands_may_be_called_as_modules_are() {
    assert_eq!(read("np.T + np.sin()"), read("transpose(np) + sin(np)"));
    assert_eq!(read("torch + math").operands().collect::<Vec<_>>(), ["torch", "math"]);
}

#[test]
fn long_chains_are_read_and_deep_nesting_is_refused() {
    for operator in ["+", "*", "and", "<", "|"] {
        let chain = vec!["a"; 20_000].join(&format!(" {operator} "));
        assert_eq!(read(&chain).to_string(), chain);
    }
    let dotted = format!("a{}", ".T".repeat(10_000));
    assert_eq!(read(&dotted).to_string(), dotted);
    let many = 10_000;
    for text in [
        format!("{}a{}", "(".repeat(many), ")".repeat(many)),
        format!("{}a", "-".repeat(many)),
        format!("{}a", "not ".repeat(many)),
        format!("{}a{}", "exp(".repeat(many), ")".repeat(many)),
        "max(a, ".repeat(many),
        "a.clip(1, ".repeat(many),
        vec!["a"; many].join(" ** "),
        format!("{}a", "a if b else ".repeat(many)),
        "(a or b and c < d | e1 ^ f & g << h + i * -j ** ".repeat(many),
    ] {
        // On a small stack, so that there is room to spare on any other.
        let parse = move || Expr::parse(&text).unwrap_err().kind;
        let thread = std::thread::Builder::new().stack_size(3 << 19).spawn(parse).unwrap();
        assert_eq!(thread.join().unwrap(), SyntaxErrorKind::Deep);
    }
    let nested = format!("{}a{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(read(&nested), read("a"));
}

/// Expressions with every kind of node, in brackets throughout.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-z]{1,3}_".prop_map(String::from),
        any::<u64>().prop_map(|value| value.to_string()),
        (0.0..1e300_f64).prop_map(|value| format!("{value:?}")),
        (0.0..9.0_f64).prop_map(|value| format!("{value:?}j")),
        Just("True".to_string()),
        Just("pi".to_string()),
        "'[a-zé ]{0,3}(\\\\n|\\\\')?'".prop_map(String::from),
    ];
    leaf.prop_recursive(6, 64, 3, |inner| {
        let signs = prop::sample::select(vec![
            "+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", "==", "!=", "&", "|", "^", "<<",
            ">>", "and", "or",
        ]);
        let calls = prop::sample::select(vec![
            "-(A)",
            "~(A)",
            "not (A)",
            "+(A)",
            "sqrt(A)",
            "float32(A)",
            "(A).T",
            "(A)[:, None]",
            "(A)[..., None]",
            "sum(A)",
            "max(A, axis=-1)",
            "(A).mean((0, 1), keepdims=True)",
            "transpose(A, 0, -1)",
            "transpose(A, ())",
            "(A).prod(axis=())",
            "(A).astype('int8')",
        ]);
        let threes = prop::sample::select(vec![
            "(A) if (B) else (C)",
            "where(A, B, C)",
            "clip(A, B, C)",
            "max(A, B, C)",
            "(A) < (B) >= (C)",
            "(A) + (B) * (C)",
        ]);
        prop_oneof![
            (inner.clone(), signs, inner.clone())
                .prop_map(|(a, sign, b)| format!("({a}) {sign} ({b})")),
            (calls, inner.clone()).prop_map(|(call, a)| call.replace('A', &a)),
            (threes, inner.clone(), inner.clone(), inner).prop_map(|(call, a, b, c)| call
                .replace('A', &a)
                .replace('B', &b)
                .replace('C', &c)),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_shown_is_read_back(text in expression()) {
        let expr = read(&text);
        let shown = expr.to_string();
        let again = Expr::parse(&shown);
        prop_assert_eq!(again.as_ref(), Ok(&expr), "{} is shown as {}", text, shown);
        prop_assert_eq!(read(&shown).to_string(), shown);
    }

    #[test]
    fn any_text_is_read_or_refused_within_itself(text in "(\\PC{0,12}|[-+*/%<>=&|^~()\\[\\],:.'ab1 ]{0,24})") {
        match Expr::parse(&text) {
            Ok(expr) => prop_assert_eq!(Expr::parse(&expr.to_string()), Ok(expr)),
            Err(error) => prop_assert!(text.get(error.span.clone()).is_some(), "{:?}", error),
        }
    }
}
