//! Models that run: chains become programs, rules hold, and what cannot be is said before or while.

use ndarray::{Array, ArrayD, IxDyn, array};
use simulcast::{AnyArray, AnyView, AnyViewMut};

use super::build::{Build, Size, graph_attribute, int, ints, message, node, value_info};
use crate::{NodeError, RunError, Session};

/// Two of them are more than can be counted: 2^40 where addresses have 64 bits, 2^20 where they have 32.
const HUGE: i64 = 1 << (usize::BITS / 8 * 5);

fn counting(shape: &[usize]) -> ArrayD<f32> {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|n| n as f32).collect();
    Array::from_shape_vec(IxDyn(shape), values).unwrap()
}

fn run(session: &Session, inputs: &[(&str, &ArrayD<f32>)]) -> Result<Vec<AnyArray>, RunError> {
    let inputs: Vec<(&str, AnyView<'_>)> =
        inputs.iter().map(|(name, array)| (*name, AnyView::from(*array))).collect();
    Ok(session.run(&inputs)?.into_iter().map(|(_, array)| array).collect())
}

#[test]
fn a_value_that_two_chains_or_the_caller_read_is_an_array() {
    let base = Build::new(17)
        .input("x", &[2_i64, 3])
        .node("Mul", &["x", "x"], &["a"], &[])
        .node("Neg", &["a"], &["b"], &[])
        .node("Add", &["b", "x"], &["c"], &[]);
    let fused = |build: Build| Session::new(&build.load()).unwrap().fused();
    assert_eq!(fused(base.clone().bare_output("c")), [3]);
    assert_eq!(fused(base.clone().bare_output("c").bare_output("a")), [1, 2]);
    // Both readers of `a` are in one chain; a reduction is in none.
    let diamond = base.node("Sub", &["c", "a"], &["d"], &[]);
    assert_eq!(fused(diamond.clone().bare_output("d")), [4]);
    let reduced = diamond.node("ReduceSum", &["a"], &["e"], &[int("keepdims", 0)]);
    let session = Session::new(&reduced.bare_output("d").bare_output("e").load()).unwrap();
    assert_eq!(session.fused(), [1, 3]);
    let x = counting(&[2, 3]);
    let outputs = run(&session, &[("x", &x)]).unwrap();
    assert_eq!(outputs[0], AnyArray::from(x.mapv(|x| -x * x + x - x * x)));
    assert_eq!(outputs[1], AnyArray::from(ndarray::arr0(55_f32)));
}

#[test]
fn inputs_come_in_any_order_and_each_once() {
    let session = Build::new(17)
        .input("a", &[2_i64])
        .input("b", &[2_i64])
        .input("c", &[2_i64])
        .node("Sub", &["a", "b"], &["d"], &[])
        .node("Concat", &["d", "c", "d"], &["e"], &[int("axis", 0)])
        .bare_output("e")
        .bare_output("d")
        .bare_output("e");
    let session = Session::new(&session.load()).unwrap();
    let [a, b, c] = [1.0, 2.0, 4.0].map(|x| array![x, 10.0 * x].into_dyn());
    let all = [("a", &a), ("b", &b), ("c", &c)];
    let (e, d) = (array![-1_f32, -10.0, 4.0, 40.0, -1.0, -10.0], array![-1_f32, -10.0]);
    let expected = [AnyArray::from(e.clone()), AnyArray::from(d), AnyArray::from(e)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(run(&session, &order.map(|n| all[n])).unwrap(), expected, "{order:?}");
    }
    // Twice, in whatever places: the input that is not there is missed only after that.
    for order in
        [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 2], [2, 1, 1], [1, 2, 2], [2, 2, 1], [2, 0, 2]]
    {
        let error = run(&session, &order.map(|n| all[n])).unwrap_err();
        assert!(matches!(error, RunError::Unexpected { .. }), "{order:?} {error}");
    }
    let error = run(&session, &[all[0], all[1], ("x", &c)]).unwrap_err();
    assert!(matches!(error, RunError::Unexpected { .. }), "{error}");
}

#[test]
fn long_chains_are_cut_and_compute_the_same() {
    let mut build = Build::new(17).input("x", &[4_i64]);
    for n in 0..100 {
        let (from, to) = (if n == 0 { "x".into() } else { format!("v{n}") }, format!("v{}", n + 1));
        build = build.node("Add", &[&from, "x"], &[&to], &[]);
    }
    let session = Session::new(&build.bare_output("v100").load()).unwrap();
    assert_eq!(session.fused().iter().sum::<usize>(), 100);
    assert!(session.fused().iter().all(|count| *count <= 32));
    let x = counting(&[4]);
    assert_eq!(run(&session, &[("x", &x)]).unwrap()[0], AnyArray::from(x.mapv(|x| 101.0 * x)));
}

#[test]
fn the_old_rule_lays_the_second_operand_from_its_axis() {
    // The example of the documentation: B of (3, 4) on A of (2, 3, 4, 5) from axis 1.
    let build = |attributes: &[crate::wire::Message]| {
        Build::new(6)
            .input("a", &[2_i64, 3, 4, 5])
            .input("b", &[3_i64, 4])
            .node("Sub", &["a", "b"], &["y"], attributes)
            .bare_output("y")
    };
    let (a, b) = (counting(&[2, 3, 4, 5]), counting(&[3, 4]));
    let session = Session::new(&build(&[int("broadcast", 1), int("axis", 1)]).load()).unwrap();
    let expected = &a - &b.clone().into_shape_with_order(IxDyn(&[3, 4, 1])).unwrap();
    assert_eq!(run(&session, &[("a", &a), ("b", &b)]).unwrap()[0], AnyArray::from(expected));
    // Without `broadcast` shapes are equal; without `axis` the end is meant.
    for attributes in [vec![], vec![int("broadcast", 1)]] {
        let session = Session::new(&build(&attributes).load()).unwrap();
        let error = run(&session, &[("a", &a), ("b", &b)]).unwrap_err();
        assert!(matches!(error, RunError::Node { why: NodeError::Broadcast(_), .. }), "{error}");
    }
}

#[test]
fn a_slope_stretches_and_never_the_data() {
    let session = |slope: &[i64]| {
        let build = Build::new(16).input("x", &[2_i64, 3]).input("s", slope);
        Session::new(&build.node("PRelu", &["x", "s"], &["y"], &[]).bare_output("y").load())
            .unwrap()
    };
    let x = counting(&[2, 3]).mapv(|x| x - 3.0);
    let outputs = run(&session(&[3]), &[("x", &x), ("s", &counting(&[3]))]).unwrap();
    let expected = array![[0.0_f32, -2.0, -2.0], [0.0, 1.0, 2.0]];
    assert_eq!(outputs[0], AnyArray::from(expected));
    let error = run(&session(&[4, 2, 3]), &[("x", &x), ("s", &counting(&[4, 2, 3]))]).unwrap_err();
    assert!(
        error.to_string().starts_with("y (PRelu): E2: x (2, 3) and s (4, 2, 3) do not broadcast"),
        "{error}"
    );
}

#[test]
fn what_there_is_no_code_for_is_named_before_anything_runs() {
    let build = Build::new(17)
        .input("x", &[1_i64])
        .node("Conv", &["x", "x"], &["a"], &[])
        .node("Relu", &["a"], &["b"], &[])
        .node("NoSuchOperator", &["b"], &["c"], &[])
        .node("Add", &["c"], &["d"], &[])
        .node("EyeLike", &["c"], &["e"], &[int("dtype", 17)])
        .bare_output("e");
    let error = Session::new(&build.load()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no code for Add: it has 1 inputs (node d), Conv (node a), EyeLike: float8e4m3fn cannot be \
         computed with (node e), NoSuchOperator (node c)"
    );
}

#[test]
fn inputs_are_held_to_what_is_declared() {
    let build = Build::new(17)
        .input("x", &[Size::from("n"), Size::from(2)])
        .input("y", &["n"])
        .node("Relu", &["x"], &["z"], &[])
        .bare_output("z");
    let session = Session::new(&build.load()).unwrap();
    let (x, y, scalar) = (counting(&[3, 2]), counting(&[3]), counting(&[]));
    assert!(run(&session, &[("x", &x), ("y", &y)]).is_ok());
    for (inputs, said) in [
        (vec![("x", &x)], "the input \"y\" is missing"),
        (vec![("x", &x), ("x", &x)], "\"x\" is no input of the model, or given twice; it has x, y"),
        (vec![("x", &x), ("w", &x)], "\"w\" is no input of the model, or given twice; it has x, y"),
        (vec![("x", &y), ("y", &y)], "the input \"x\" has sizes (n, 2), not (3,)"),
        (vec![("x", &x), ("y", &scalar)], "the input \"y\" has sizes (n,), not ()"),
        (vec![("x", &x), ("y", &counting(&[4]))], "n is 3 and, in the input \"y\", 4"),
    ] {
        assert_eq!(run(&session, &inputs).unwrap_err().to_string(), said);
    }
    let whole = counting(&[3, 2]).mapv(f64::from);
    let given = [("x", AnyView::from(&whole)), ("y", AnyView::from(&y))];
    let error = session.run(&given).unwrap_err();
    assert_eq!(error.to_string(), "the input \"x\" is float32, not float64");
    let sized = session.with_sizes(&[("n", 5)]).unwrap();
    let error = run(&sized, &[("x", &x), ("y", &y)]).unwrap_err();
    assert_eq!(error.to_string(), "n is 5 and, in the input \"x\", 3");
    assert_eq!(
        sized.with_sizes(&[("m", 1)]).unwrap_err().to_string(),
        "no input of the model has a symbol \"m\""
    );
}

#[test]
fn no_memory_is_asked_for_beyond_the_limit() {
    let huge = [1_i64 << 30, 1 << 30, 1 << 20];
    for (op, more) in [("ConstantOfShape", None), ("Expand", Some("x")), ("Tile", Some("cube"))] {
        let build = Build::new(17).input("x", &[1_i64]).input("cube", &[1_i64, 1, 1]).int64s(
            "shape",
            &[3],
            &huge,
        );
        let inputs: Vec<&str> = more.into_iter().chain(["shape"]).collect();
        let build = build.node(op, &inputs, &["y"], &[]).bare_output("y");
        let session = Session::new(&build.load()).unwrap();
        let error = run(&session, &[("x", &counting(&[1])), ("cube", &counting(&[1, 1, 1]))]);
        let error = error.unwrap_err();
        assert!(
            matches!(error, RunError::Node { why: NodeError::Memory { .. }, .. }),
            "{op}: {error}"
        );
    }
    let build = Build::new(17).input("a", &[1000_i64, 1]).input("b", &[1000_i64]);
    let build = build.node("Add", &["a", "b"], &["y"], &[]).bare_output("y");
    let session = Session::new(&build.load()).unwrap().limit(1_000_000);
    let error = run(&session, &[("a", &counting(&[1000, 1])), ("b", &counting(&[1000]))]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "y (Add): a result float32 (1000, 1000) is larger than 1000000 bytes"
    );
}

#[test]
fn results_that_are_held_count_together() {
    let x = counting(&[1000]);
    // Each result is read again at the end, so that none goes.
    let names: Vec<String> = (0..100).map(|n| format!("y{n}")).collect();
    let read: Vec<&str> = names.iter().map(String::as_str).collect();
    let made = |limit: usize| {
        let start = Build::new(17).input("x", &[1000_i64]);
        let made = read.iter().fold(start, |made, name| made.node("Neg", &["x"], &[name], &[]));
        let made = made.node("Concat", &read, &["y"], &[int("axis", 0)]).bare_output("y");
        run(&Session::new(&made.load()).unwrap().limit(limit), &[("x", &x)])
    };
    let error = made(100_000).unwrap_err();
    assert_eq!(
        error.to_string(),
        "y25 (Neg): a result float32 (1000,) and the 100000 bytes of results still held are larger than 100000 bytes"
    );
    // With room for a hundred of them and the one made of them.
    assert!(made(799_999).is_err());
    assert_eq!(made(800_000).unwrap()[0].shape(), [100_000]);
    // What is only read by the next goes, and nothing is held twice for being looked at; sums are of float64.
    let mut row = Build::new(17).input("x", &[1000_i64]).int64s("axis", &[], &[0]);
    let mut last = "x".to_owned();
    for name in &read {
        let (summed, seen) = (format!("summed {name}"), format!("seen {name}"));
        row = row.node("CumSum", &[&last, "axis"], &[&summed], &[]);
        row = row.node("Identity", &[&summed], &[&seen], &[]);
        last = seen;
    }
    let session = Session::new(&row.bare_output(&last).load()).unwrap();
    run(&session.limit(12_000), &[("x", &x)]).unwrap();
}

#[test]
fn doubling_ends_in_an_error() {
    let mut build = Build::new(17).input("x", &[4_i64]);
    let mut last = "x".to_owned();
    let mut names = Vec::new();
    for n in 0..300 {
        let name = format!("y{n}");
        build = build.node("Concat", &[&last, &last], &[&name], &[int("axis", 0)]);
        names.push(name.clone());
        last = name;
    }
    // All are outputs, so that all are held.
    let build = names.iter().fold(build, |build, name| build.bare_output(name));
    let session = Session::new(&build.load()).unwrap().limit(10_000_000);
    let error = run(&session, &[("x", &counting(&[4]))]).unwrap_err();
    let RunError::Node { why: NodeError::Memory { held, limit, .. }, node, .. } = error else {
        panic!("{error}");
    };
    // 16 bytes doubled n times, and the sum of those before: 2^23 and 2^23 are more than 10^7.
    assert_eq!((node.as_str(), limit), ("y18", 10_000_000));
    assert_eq!(held, 32 * ((1 << 18) - 1));
}

/// A graph of one node that reads `x` from around it.
fn branch(op: &str, output: &str) -> crate::wire::Message {
    message(|graph| {
        graph.message(1, &node(op, &["x"], &[output], &[]));
        graph.message(12, &value_info(output, 1, &[]));
    })
}

#[test]
fn a_branch_is_taken_by_its_condition_and_keeps_what_is_around_it() {
    let attributes = [
        graph_attribute("then_branch", &branch("Neg", "t")),
        graph_attribute("else_branch", &branch("Abs", "f")),
    ];
    let build = Build::new(17)
        .input("x", &[2_i64])
        .node("ReduceSum", &["x"], &["sum"], &[int("keepdims", 0)])
        .node("Sub", &["sum", "sum"], &["zero"], &[])
        .node("Greater", &["sum", "zero"], &["positive"], &[])
        .node("If", &["positive"], &["y"], &attributes)
        // `x` is still there after the branch that read it.
        .node("Add", &["y", "x"], &["z"], &[])
        .bare_output("z");
    let session = Session::new(&build.load()).unwrap();
    let up = array![1_f32, 2.0].into_dyn();
    assert_eq!(run(&session, &[("x", &up)]).unwrap()[0], AnyArray::from(array![0_f32, 0.0]));
    let down = array![-1_f32, -2.0].into_dyn();
    assert_eq!(run(&session, &[("x", &down)]).unwrap()[0], AnyArray::from(array![0_f32, 0.0]));
    let mixed = array![-3_f32, 2.0].into_dyn();
    assert_eq!(run(&session, &[("x", &mixed)]).unwrap()[0], AnyArray::from(array![0_f32, 4.0]));
}

#[test]
fn functions_run_in_the_place_of_their_calls() {
    let function = message(|function| {
        function.bytes(1, "twice");
        function.bytes(4, "a");
        function.bytes(5, "c");
        function.message(7, &node("Add", &["a", "a"], &["b"], &[]));
        function.message(7, &node("Neg", &["b"], &["c"], &[]));
        function.message(
            9,
            &message(|opset| {
                opset.bytes(1, "");
                opset.int(2, 17);
            }),
        );
        function.bytes(10, "own");
    });
    let call = |from: &str, to: &str| {
        message(|call| {
            call.bytes(1, from);
            call.bytes(2, to);
            call.bytes(4, "twice");
            call.bytes(7, "own");
        })
    };
    let build = Build::new(17)
        .input("x", &[3_i64])
        .field(1, &call("x", "y"))
        .field(1, &call("y", "z"))
        .bare_output("z")
        .function(function);
    let session = Session::new(&build.load()).unwrap();
    assert_eq!(session.fused(), [4]);
    let x = counting(&[3]);
    assert_eq!(run(&session, &[("x", &x)]).unwrap()[0], AnyArray::from(x.mapv(|x| 4.0 * x)));
}

#[test]
fn errors_of_a_chain_name_the_node_that_they_are_about() {
    let build = Build::new(17)
        .input("x", &[2_i64])
        .input("y", &[3_i64])
        .node("Relu", &["x"], &["a"], &[])
        .node("Mul", &["a", "y"], &["b"], &[])
        .node("Neg", &["b"], &["c"], &[])
        .bare_output("c");
    let session = Session::new(&build.load()).unwrap();
    let error = run(&session, &[("x", &counting(&[2])), ("y", &counting(&[3]))]).unwrap_err();
    assert!(error.to_string().starts_with("b (Mul): E1: "), "{error}");
    let build = Build::new(17)
        .input("x", &[2_i64])
        .node("Shape", &["x"], &["s"], &[])
        .node("Relu", &["x"], &["a"], &[])
        .node("Add", &["a", "s"], &["b"], &[])
        .node("Neg", &["b"], &["c"], &[])
        .bare_output("c");
    let error = run(&Session::new(&build.load()).unwrap(), &[("x", &counting(&[2]))]).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("b (Add): ") && text.contains("float32 and int64 differ"), "{text}");
}

#[test]
fn indices_and_sizes_that_are_not_there_are_errors() {
    let cases: &[(&str, &[&str], &[crate::wire::Message], &str)] = &[
        ("Gather", &["x", "seven"], &[], "there is no index 7 among 2"),
        ("Reshape", &["x", "seven"], &[], "(2, 3) has 6 elements"),
        ("Transpose", &["x"], &[ints("perm", &[0, 0])], "[0, 0] names an axis twice"),
        ("Squeeze", &["x", "zero"], &[], "axis 0 of (2, 3) is not 1"),
        ("Unsqueeze", &["x", "seven"], &[], "there is no axis 7 among 3"),
        ("Split", &["x", "seven"], &[], "[7] does not split 2"),
        ("ReduceSum", &["x", "seven"], &[], "there is no axis 7 among 2"),
        ("Concat", &["x", "x"], &[int("axis", 5)], "there is no axis 5 among 2"),
        ("MatMul", &["x", "x"], &[], "(2, 3) @ (2, 3): the inner sizes 3 and 2 differ"),
        ("Softmax", &["x"], &[int("axis", -3)], "there is no axis -3 among 2"),
        ("Slice", &["x", "zero", "seven", "zero", "zero"], &[], "a step is 0"),
        ("Pad", &["x", "seven"], &[], "1 pads for 2 axes"),
    ];
    for (op, inputs, attributes, said) in cases {
        let build = Build::new(17)
            .input("x", &[2_i64, 3])
            .int64s("zero", &[1], &[0])
            .int64s("seven", &[1], &[7])
            .node(op, inputs, &["y"], attributes)
            .bare_output("y");
        let session = Session::new(&build.load()).unwrap();
        let error = run(&session, &[("x", &counting(&[2, 3]))]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("y ({op}): ")) && error.contains(said), "{error}");
    }
}

#[test]
fn outputs_go_where_they_are_asked_for() {
    let build = Build::new(17)
        .input("x", &[2_i64, 3])
        .node("Mul", &["x", "x"], &["a"], &[])
        .node("Neg", &["a"], &["b"], &[])
        .node("Transpose", &["x"], &["t"], &[]);
    let outputs = ["a", "b", "t"].iter().fold(build, |build, name| build.bare_output(name));
    let session = Session::new(&outputs.load()).unwrap();
    let x = counting(&[2, 3]);
    let expected: Vec<AnyArray> = run(&session, &[("x", &x)]).unwrap();
    let inputs = [("x", AnyView::from(&x))];
    // A value that a chain reads too, the last of a chain, and one that no chain makes.
    for asked in [["a", "b", "t"], ["t", "a", "b"]] {
        for count in 0..=3 {
            let mut own: Vec<AnyArray> = Vec::new();
            for name in &asked[..count] {
                let shape = if *name == "t" { [3, 2] } else { [2, 3] };
                own.push(ArrayD::from_elem(IxDyn(&shape), 7_f32).into());
            }
            let mut places: Vec<_> =
                asked.iter().zip(&mut own).map(|(name, own)| (*name, own.view_mut())).collect();
            let rest = session.run_into(&inputs, &mut places).unwrap();
            drop(places);
            let placed = asked.iter().map(ToString::to_string).zip(own);
            let mut all: Vec<(String, AnyArray)> = placed.chain(rest).collect();
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            assert_eq!(all.into_iter().map(|(_, array)| array).collect::<Vec<_>>(), expected);
        }
    }
    let refused = |names: &[&str], shape: &[usize]| {
        let mut own: Vec<ArrayD<f32>> = names.iter().map(|_| ArrayD::zeros(shape)).collect();
        let place = |own| AnyViewMut::from(own);
        let each = own.iter_mut().map(|own| place(&mut **own));
        let mut places: Vec<_> = names.iter().copied().zip(each).collect();
        session.run_into(&inputs, &mut places).unwrap_err().to_string()
    };
    let said = "the output \"b\" is float32 (2, 3), its place float32 (1, 3)";
    assert_eq!(refused(&["b"], &[1, 3]), said);
    assert_eq!(
        refused(&["t"], &[2, 3]).split(", its").next(),
        Some("the output \"t\" is float32 (3, 2)")
    );
    let said = "is no output of the model, or has a place already; it has a, b, t";
    assert_eq!(refused(&["x"], &[2, 3]), format!("\"x\" {said}"));
    assert_eq!(refused(&["a", "a"], &[2, 3]), format!("\"a\" {said}"));
}

#[test]
fn a_place_has_the_shape_of_the_result_and_not_one_that_it_stretches_to() {
    // Of the second operand of `CastLike` only the type is asked for.
    for (op, a, b, made) in [
        ("Add", [2, 3], [2, 3], [2, 3]),
        ("Add", [2, 1], [1, 3], [2, 3]),
        ("Add", [1, 3], [1, 3], [1, 3]),
        ("CastLike", [1, 3], [2, 3], [1, 3]),
        ("CastLike", [2, 3], [1, 3], [2, 3]),
    ] {
        let build =
            Build::new(17).input("a", &a.map(|n| n as i64)).input("b", &b.map(|n| n as i64));
        let build = build.node(op, &["a", "b"], &["y"], &[]).bare_output("y");
        let session = Session::new(&build.load()).unwrap();
        let (a, b) = (counting(&a), counting(&b));
        let expected = if op == "Add" { &a + &b } else { a.clone() };
        let mut place = ArrayD::<f32>::zeros(IxDyn(&[2, 3]));
        let mut places = [("y", AnyViewMut::from(&mut *place))];
        let done = session.run_into(&[("a", (&a).into()), ("b", (&b).into())], &mut places);
        if made == [2, 3] {
            assert_eq!(done.map(|rest| rest.len()).ok(), Some(0));
            assert_eq!(place, expected, "{op}");
        } else {
            let said = "the output \"y\" is float32 (1, 3), its place float32 (2, 3)";
            assert_eq!(done.unwrap_err().to_string(), said, "{op}");
        }
    }
}

#[test]
fn codes_are_moved_and_cast_and_not_computed_with() {
    let codes = |element: i64| {
        let shape = [Size::from(2), Size::from(3)];
        Build::new(25).field(11, &value_info("x", element, &shape))
    };
    let (e4m3, i4) = (17, 22);
    let moved = codes(e4m3)
        .int64s("rows", &[2], &[1, 0])
        .int64s("two", &[2], &[2, 2])
        .node("Transpose", &["x"], &["t"], &[])
        .node("Concat", &["t", "t"], &["c"], &[int("axis", 1)])
        .node("Gather", &["c", "rows"], &["g"], &[])
        .node("Identity", &["g"], &["i"], &[])
        .node("Tile", &["i", "two"], &["y"], &[])
        .node("Cast", &["i"], &["n"], &[int("to", 1)])
        .node("Shape", &["i"], &["s"], &[])
        .bare_output("y")
        .bare_output("n")
        .bare_output("s");
    let session = Session::new(&moved.load()).unwrap();
    assert_eq!(session.codes().collect::<Vec<_>>(), [("y", crate::ElementType::F8E4M3FN)]);
    // 0.5, 1.5, -2, the largest, NaN, -0.
    let x = array![[0x30_u8, 0x3c, 0xc0], [0x7e, 0x7f, 0x80]];
    let outputs = session.run(&[("x", AnyView::from(&x))]).unwrap();
    let rows = [[0x3c_u8, 0x7f, 0x3c, 0x7f], [0x30, 0x7e, 0x30, 0x7e]];
    let expected = ndarray::Array2::from_shape_fn((4, 8), |(row, at)| rows[row % 2][at % 4]);
    assert_eq!(outputs[0].1, AnyArray::from(expected));
    let n = outputs[1].1.typed::<f32>().unwrap().to_owned();
    assert_eq!((n[[0, 0]], n[[1, 0]], n[[1, 1]]), (1.5, 0.5, 448.0));
    assert!(n[[0, 1]].is_nan());
    // Four bits, packed two in a byte, the first in the lowest.
    let packed = message(|tensor| {
        tensor.int(1, 3);
        tensor.int(2, i4);
        tensor.bytes(8, "k");
        tensor.bytes(9, [0x8f_u8, 0x07]);
    });
    let constant = Build::new(25).field(5, &packed).node("Cast", &["k"], &["y"], &[int("to", 6)]);
    let session = Session::new(&constant.bare_output("y").load()).unwrap();
    let outputs = session.run(&[]).unwrap();
    assert_eq!(outputs[0].1, AnyArray::from(array![-1_i32, -8, 7]));
    // Neither arithmetic nor a mixture of types.
    let refused = |op: &str, inputs: &[&str]| {
        let mixed = codes(i4).input("z", &[2_i64, 3]).node(op, inputs, &["y"], &[int("axis", 0)]);
        Session::new(&mixed.bare_output("y").load()).unwrap_err().to_string()
    };
    for (op, inputs) in [
        ("Add", &["x", "x"][..]),
        ("Relu", &["x"]),
        ("Concat", &["x", "z"]),
        ("Concat", &["z", "x"]),
    ] {
        let said = format!("there is no code for {op}: int4 cannot be computed with (node y)");
        assert_eq!(refused(op, inputs), said);
    }
}

#[test]
fn the_largest_of_numbers_and_nan_have_an_order() {
    let build = Build::new(17)
        .input("x", &[64_i64])
        .int64s("k", &[1], &[64])
        .node("TopK", &["x", "k"], &["v", "i"], &[])
        .bare_output("i");
    // 5 and 64 have no divisor in common, so every number comes once; each third is NaN.
    let number = |n: usize| if n.is_multiple_of(3) { f32::NAN } else { (n * 5 % 64) as f32 };
    let x = ArrayD::from_shape_vec(IxDyn(&[64]), (0..64).map(number).collect()).unwrap();
    let outputs = run(&Session::new(&build.load()).unwrap(), &[("x", &x)]).unwrap();
    let places = outputs[0].typed::<i64>().unwrap().to_owned();
    let sorted: Vec<f32> = places.iter().map(|place| x[*place as usize]).collect();
    // As in NumPy, NaN is larger than every number; of equal ones the first comes first.
    assert!(sorted[..22].iter().all(|x| x.is_nan()) && sorted[22..].is_sorted_by(|a, b| a > b));
    assert!(places.iter().take(22).is_sorted());
}

#[test]
fn sizes_beside_a_zero_must_be_countable() {
    // In the second case the sizes of the result are, and not the 4 that is repeated no times.
    let memory = |build: Build, inputs: &[(&str, &ArrayD<f32>)]| {
        let error =
            run(&Session::new(&build.bare_output("y").load()).unwrap(), inputs).unwrap_err();
        assert!(matches!(error, RunError::Node { why: NodeError::Memory { .. }, .. }), "{error}");
    };
    for (own, times) in
        [([0, 2, 3, 1], [1, HUGE, HUGE, 1]), ([1, 4, 9, 16], [1 << (usize::BITS - 13), 0, 3, 4])]
    {
        let build = Build::new(13).input("x", &own.map(|size| size as i64));
        let build = build.int64s("times", &[4], &times).node("Tile", &["x", "times"], &["y"], &[]);
        memory(build, &[("x", &ArrayD::zeros(IxDyn(&own)))]);
    }
    let groups = [int("num_groups", 1 << 62)];
    let build = Build::new(21).input("x", &[4_i64, 0, 2]).input("s", &[0_i64]);
    let build = build.node("GroupNormalization", &["x", "s", "s"], &["y"], &groups);
    let session = Session::new(&build.bare_output("y").load()).unwrap();
    let (x, none) = (ArrayD::zeros(IxDyn(&[4, 0, 2])), ArrayD::zeros(IxDyn(&[0])));
    let made = run(&session, &[("x", &x), ("s", &none)]).unwrap();
    assert_eq!(made[0], AnyArray::from(x));
    // Each goes through all rows, or notes something of each.
    let rows = [1 << (usize::BITS - 3), 0];
    let x = ArrayD::zeros(IxDyn(&rows));
    let build = || {
        let build =
            Build::new(13).input("x", &rows.map(|size| size as i64)).int64s("one", &[1], &[0]);
        build.int64s("pads", &[4], &[0, 0, 0, 0]).int64s("none", &rows.map(|size| size as i64), &[])
    };
    memory(build().node("Pad", &["x", "pads"], &["y"], &[]), &[("x", &x)]);
    // The rows have room, and lists of their indices do not.
    let some = [1 << (usize::BITS * 3 / 32 + 25), 0];
    let padded = Build::new(13).input("x", &some.map(|size| size as i64));
    let padded = padded.int64s("pads", &[4], &[0; 4]).node("Pad", &["x", "pads"], &["y"], &[]);
    memory(padded, &[("x", &ArrayD::zeros(IxDyn(&some)))]);
    memory(build().node("Concat", &["x", "x"], &["y"], &[int("axis", 1)]), &[("x", &x)]);
    memory(build().node("CumSum", &["x", "one"], &["y"], &[]), &[("x", &x)]);
    memory(build().node("EyeLike", &["x"], &["y"], &[]), &[("x", &x)]);
    memory(build().node("MatMul", &["x", "x"], &["y"], &[]), &[("x", &x)]);
    memory(build().node("GatherND", &["one", "none"], &["y"], &[]), &[("x", &x)]);
    let reshaped =
        Build::new(14).input("x", &[0_i64, 2]).int64s("to", &[2], &[0, 1 << (usize::BITS - 3)]);
    let reshaped = reshaped.node("Reshape", &["x", "to"], &["r"], &[]);
    let reshaped = reshaped.node("Transpose", &["r"], &["y"], &[]);
    memory(reshaped, &[("x", &ArrayD::zeros(IxDyn(&[0, 2])))]);
    for (op, own, block) in [
        ("DepthToSpace", [1, 0, 2, 2], HUGE),
        ("SpaceToDepth", [1, 3, 0, 0], HUGE),
        ("SpaceToDepth", [1, 1 << 10, 0, 0], 1 << (usize::BITS / 2 - 2)),
    ] {
        let build = Build::new(13)
            .input("x", &own.map(|size| size as i64))
            .node(op, &["x"], &["y"], &[int("blocksize", block)])
            .bare_output("y");
        let session = Session::new(&build.load()).unwrap();
        let error = run(&session, &[("x", &ArrayD::zeros(IxDyn(&own)))]).unwrap_err();
        assert!(error.to_string().ends_with("a size is too large to count"), "{error}");
    }
}

#[test]
fn matrices_without_elements_are_not_multiplied_one_by_one() {
    // As many as may be beside the others.
    let many = 1 << (usize::BITS / 2 - 4);
    let build = Build::new(13)
        .input("a", &[2_i64, 4])
        .input("b", &[many as i64, 4, 0])
        .node("MatMul", &["a", "b"], &["y"], &[])
        .bare_output("y");
    let session = Session::new(&build.load()).unwrap();
    let b = ArrayD::zeros(IxDyn(&[many, 4, 0]));
    let made = run(&session, &[("a", &counting(&[2, 4])), ("b", &b)]).unwrap();
    assert_eq!(made[0].shape(), [many, 2, 0]);
}

#[test]
fn what_only_looks_different_is_read_where_it_lies() {
    // As many turns as no value is looked at through, then a stretch, a merge and a sum with it.
    let mut build = Build::new(17).input("x", &[2_i64, 3]).input("row", &[2_i64]);
    for n in 0..21 {
        let (from, to) = (if n == 0 { "x".into() } else { format!("v{n}") }, format!("v{}", n + 1));
        build = build.node("Transpose", &[&from], &[&to], &[]);
    }
    let build = build
        .node("Add", &["v21", "row"], &["sum"], &[])
        .int64s("target", &[3], &[4, 3, 2])
        .node("Expand", &["v21", "target"], &["stretched"], &[])
        .int64s("merged", &[2], &[12, -1])
        .node("Reshape", &["stretched", "merged"], &["rows"], &[]);
    let model = build.bare_output("sum").bare_output("stretched").bare_output("rows").load();
    let session = Session::new(&model).unwrap();
    let (x, row) = (counting(&[2, 3]), counting(&[2]));
    let turned = x.t().to_owned();
    let stretched = turned.broadcast(IxDyn(&[4, 3, 2])).unwrap().to_owned();
    let rows = stretched.clone().into_shape_with_order(IxDyn(&[12, 2])).unwrap();
    let expected = [&turned + &row, stretched.clone(), rows].map(AnyArray::from);
    assert_eq!(run(&session, &[("x", &x), ("row", &row)]).unwrap(), expected);
    // Into the caller's memory, from the caller's memory.
    let mut place = ArrayD::<f32>::zeros(IxDyn(&[4, 3, 2]));
    let inputs = [("x", AnyView::from(&x)), ("row", AnyView::from(&row))];
    let mut places = [("stretched", AnyViewMut::from(&mut *place))];
    session.run_into(&inputs, &mut places).unwrap();
    assert_eq!(place, stretched);
}

/// Expected values by hand; the tests of the package onnx cover types and shapes.
#[test]
fn normalizations_are_what_their_statistics_say() {
    let ten = |name: &str, values: &[f32]| {
        (name.to_owned(), ArrayD::from_shape_vec(IxDyn(&[values.len()]), values.to_vec()).unwrap())
    };
    let build = Build::new(17).input("x", &[1_i64, 2, 2]);
    let all = ["s", "b", "m", "v"];
    let build = all.iter().fold(build, |build, name| build.input(name, &[2_i64]));
    let inputs = ["x", "s", "b", "m", "v"];
    let build =
        build.node("BatchNormalization", &inputs, &["y"], &[super::build::float("epsilon", 0.0)]);
    let session = Session::new(&build.bare_output("y").load()).unwrap();
    let x = counting(&[1, 2, 2]);
    let given = [
        ten("s", &[1.0, 2.0]),
        ten("b", &[0.0, 10.0]),
        ten("m", &[1.0, 2.0]),
        ten("v", &[4.0, 1.0]),
    ];
    let mut inputs: Vec<(&str, &ArrayD<f32>)> = vec![("x", &x)];
    inputs.extend(given.iter().map(|(name, own)| (name.as_str(), own)));
    let made = run(&session, &inputs).unwrap();
    assert_eq!(made[0], AnyArray::from(array![[[-0.5_f32, 0.0], [10.0, 12.0]]]));
    let build = Build::new(17).input("x", &[1_i64, 2, 2]).input("s", &[2_i64]).input("b", &[2_i64]);
    let build = build.node(
        "InstanceNormalization",
        &["x", "s", "b"],
        &["y"],
        &[super::build::float("epsilon", 0.0)],
    );
    let session = Session::new(&build.bare_output("y").load()).unwrap();
    let made = run(&session, &inputs[..3]).unwrap();
    assert_eq!(made[0], AnyArray::from(array![[[-1_f32, 1.0], [8.0, 12.0]]]));
    // A bias that is left out by an empty name.
    let build = Build::new(17).input("x", &[1_i64, 2, 2]).input("s", &[2_i64]);
    let epsilon = [super::build::float("epsilon", 0.0)];
    let build = build.node("LayerNormalization", &["x", "s", ""], &["y"], &epsilon);
    let session = Session::new(&build.bare_output("y").load()).unwrap();
    let made = run(&session, &inputs[..2]).unwrap();
    assert_eq!(made[0], AnyArray::from(array![[[-1_f32, 2.0], [-1.0, 2.0]]]));
}

#[test]
fn codes_become_numbers_and_numbers_codes() {
    let build = Build::new(13).input("x", &[2_i64, 3]).float32s("scale", &[3], &[1.0, 0.5, 2.0]);
    let build = build.node("QuantizeLinear", &["x", "scale"], &["q"], &[int("axis", 1)]);
    let build = build.node("DequantizeLinear", &["q", "scale"], &["y"], &[int("axis", 1)]);
    let session = Session::new(&build.bare_output("q").bare_output("y").load()).unwrap();
    let x = array![[-1_f32, 0.75, 3.0], [300.0, 1.25, 5.0]].into_dyn();
    let made = run(&session, &[("x", &x)]).unwrap();
    // Halves go to even, and what does not fit is cut off.
    assert_eq!(made[0], AnyArray::from(array![[0_u8, 2, 2], [255, 2, 2]]));
    assert_eq!(made[1], AnyArray::from(array![[0_f32, 1.0, 4.0], [255.0, 1.0, 4.0]]));
}

#[test]
fn linear_models_are_products() {
    let floats = |name: &str, values: &[f32]| {
        message(|attribute| {
            attribute.bytes(1, name);
            values.iter().for_each(|value| attribute.float(7, *value));
            attribute.int(20, 6);
        })
    };
    let build = Build::new(17).input("x", &[2_i64, 2]).int64s("i", &[1], &[1]);
    let attributes = [floats("coefficients", &[1.0, 2.0]), floats("intercepts", &[0.5])];
    let build = build.node_of("ai.onnx.ml", "LinearRegressor", &["x"], &["y"], &attributes);
    let build = build.node_of("ai.onnx.ml", "ArrayFeatureExtractor", &["x", "i"], &["c"], &[]);
    let session = Session::new(&build.bare_output("y").bare_output("c").load()).unwrap();
    let made = run(&session, &[("x", &counting(&[2, 2]))]).unwrap();
    assert_eq!(made[0], AnyArray::from(array![[2.5_f32], [8.5]]));
    assert_eq!(made[1], AnyArray::from(array![[1_f32], [3.0]]));
    // A size from the file that cannot be multiplied.
    let targets = 1 << (usize::BITS - 2);
    let attributes = [floats("coefficients", &[]), int("targets", targets)];
    let build = Build::new(17).input("x", &[2_i64, 4]).bare_output("y");
    let build = build.node_of("ai.onnx.ml", "LinearRegressor", &["x"], &["y"], &attributes);
    let error = run(&Session::new(&build.load()).unwrap(), &[("x", &counting(&[2, 4]))]);
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with(&format!("coefficients has 0 numbers, not ({targets}, 4)")), "{error}");
}
