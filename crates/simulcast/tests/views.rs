//! Views and copies show what the plan says, whatever the storage.

mod common;

use common::{shapes, shown, size, stored};
use ndarray::{Array1, Array2, Array4, ArrayD, Axis, Dimension as _, Ix2, array, aview0, s};
use proptest::prelude::*;
use simulcast::{
    NamedAxes, Rule, broadcast_all, broadcast_to, broadcast_views, copy_into, copy_to, copy_to_by,
    par_copy_into, par_copy_to, try_broadcast_all, try_broadcast_all_by, try_broadcast_to,
    try_broadcast_views, try_broadcast_views_by, try_copy_into, try_copy_to, try_copy_to_by,
};

proptest! {
    // [E_BROADCAST_ANY_FUNC_3010] [E_BROADCAST_ANY_FUNC_3020]
    #[test]
    fn views_and_copies_show_the_elements_of_the_plan(
        operands in shapes(3).prop_flat_map(|shapes| {
            shapes.into_iter().map(|shape| stored(shape, |n| n)).collect::<Vec<_>>()
        }),
    ) {
        let views: Vec<_> = operands.iter().map(common::Stored::view).collect();
        let expected = shown(Rule::Numpy, &views);
        let all = broadcast_all(&views);
        for (operand, view) in all.iter().enumerate() {
            prop_assert_eq!(view, &expected[operand]);
        }
        for (operand, view) in views.iter().enumerate() {
            let shape = expected[operand].raw_dim();
            prop_assert_eq!(&copy_to(view, shape.clone()), &expected[operand]);
            prop_assert_eq!(&par_copy_to(view, shape.clone()), &expected[operand]);
            let rule = Rule::To { target: shape.as_array_view().to_slice().unwrap() };
            prop_assert_eq!(&copy_to_by(rule, view), &expected[operand]);
            // Into an output in another order.
            let reversed: Vec<usize> = shape.as_array_view().iter().rev().copied().collect();
            let mut out = ArrayD::from_elem(&reversed[..], usize::MAX).reversed_axes();
            copy_into(view, &mut out);
            prop_assert_eq!(&out, &expected[operand]);
            out.fill(7);
            par_copy_into(view, &mut out);
            prop_assert_eq!(&out, &expected[operand]);
        }
        let (a, b, c) = broadcast_views((&views[0], &views[1], &views[2]));
        prop_assert_eq!((&a, &b, &c), (&all[0], &all[1], &all[2]));
        // Nothing was copied.
        for (shown, own) in all.iter().zip(&views).filter(|(shown, _)| !shown.is_empty()) {
            let first = own.first().map(std::ptr::from_ref);
            prop_assert_eq!(shown.first().map(std::ptr::from_ref), first);
        }
    }

    // [E_BROADCAST_ANY_FUNC_3010]
    #[test]
    fn a_view_in_a_shape_is_what_ndarray_shows(
        (own, shape) in prop::collection::vec(size(), 0..4).prop_flat_map(|shape| {
            let ones = prop::collection::vec(any::<bool>(), shape.len());
            (ones, Just(shape)).prop_flat_map(|(ones, shape)| {
                let own = shape.iter().zip(ones).map(|(&size, one)| if one { 1 } else { size });
                (stored(own.collect(), |n| n as u16), Just(shape))
            })
        }),
    ) {
        let view = own.view();
        prop_assert_eq!(broadcast_to(&view, &shape[..]), view.broadcast(&shape[..]).unwrap());
    }
}

// [E_BROADCAST_ANY_FUNC_3010]
/// Two of them are more than can be counted: 2^40 where addresses have 64 bits, 2^20 where they have 32.
const HUGE: usize = 1 << (usize::BITS / 8 * 5);

#[test]
fn every_rule_gives_views() {
    let (a, b) = (Array2::from_shape_fn((2, 3), |(i, j)| 10 * i + j), array![7_usize, 8]);
    let (a, b) = (a.into_dyn(), b.into_dyn());
    let named = NamedAxes::new(&[&["x", "y"][..], &["x"]]).unwrap();
    for rule in [
        Rule::Pdpd { axis: Some(0) },
        Rule::Legacy { axis: Some(0) },
        Rule::Paddle { axis: Some(0) },
        named.as_rule(),
    ] {
        let (first, second) = try_broadcast_views_by(rule, (&a, &b)).unwrap();
        let expected = shown(rule, &[a.view(), b.view()]);
        assert_eq!((first, second), (expected[0].view(), expected[1].view()), "{rule:?}");
    }
    for rule in [
        Rule::To { target: &[4, 2, 3] },
        Rule::Bidirectional { target: &[4, 1, 1] },
        Rule::Axes { shape: &[2, 5, 3], broadcast_axes: &[1] },
        Rule::Mapping { shape: &[2, 5, 3], axes_mapping: &[0, 2] },
        Rule::Exact,
        Rule::Unidirectional,
    ] {
        let views = try_broadcast_all_by(rule, &[a.view()]).unwrap();
        assert_eq!(views, shown(rule, &[a.view()]), "{rule:?}");
    }
}

// [E_BROADCAST_ANY_FUNC_3010]
#[test]
fn ranks_and_types_may_differ() {
    let (x, name) = (Array2::<f32>::ones((2, 3)), String::from("s"));
    let none = Array1::<()>::default(3);
    let (x, s, none) = broadcast_views((&x, aview0(&name), &*none));
    assert_eq!((x.raw_dim(), s.raw_dim(), none.raw_dim()), (Ix2(2, 3), Ix2(2, 3), Ix2(2, 3)));
    assert!(s.iter().all(|s| s == "s"));
    assert_eq!(broadcast_all::<u8, Ix2>(&[]), Vec::<ArrayD<u8>>::new());
}

// [E_BROADCAST_ANY_FUNC_3010] [E_BROADCAST_ANY_ERR_3010]
#[test]
fn what_does_not_broadcast_is_an_error_and_so_is_what_no_array_can_be() {
    let (a, b) = (Array2::<u8>::zeros((2, 3)), Array1::<u8>::zeros(2));
    let error = try_broadcast_views((&a, &b)).unwrap_err();
    let text = "E1: A (2, 3) and B (2,) do not broadcast under rule numpy: axis 1 (-1): A has 3, B has 2; help: B[:, None] is (2, 1), result (2, 3)";
    assert_eq!(error.to_string(), text);
    assert!(try_broadcast_to(&a, (3, 2)).is_err());
    let huge = [usize::MAX / 2, 2, 1];
    let one = Array1::<()>::default(1);
    assert_eq!(try_broadcast_to(&one, &huge[..]).unwrap_err().code(), "E8");
    let huge = [0, usize::MAX / 2, usize::MAX / 2, 1];
    assert_eq!(try_broadcast_to(&one, &huge[..]).unwrap_err().code(), "E8");
    let huge = [HUGE, HUGE].map(|n| one.view().into_dyn().broadcast(&[n][..]).map(|_| n));
    assert_eq!(huge, [Some(HUGE); 2]);
    let columns = try_broadcast_all(&[one.broadcast(HUGE).unwrap().into_dyn()]);
    assert_eq!(columns.unwrap()[0].len(), HUGE);
}

// [E_BROADCAST_ANY_FUNC_3020]
#[test]
fn large_copies_of_plain_data_and_of_strings() {
    let row = Array1::from_iter((0..2503).map(|n| n as f32));
    let expected = Array2::from_shape_fn((2000, 2503), |(_, j)| j as f32);
    assert_eq!(copy_to(&row, (2000, 2503)), expected);
    assert_eq!(par_copy_to(&row, (2000, 2503)), expected);
    // Awkward operands, from odd places to odd places.
    let all = Array2::from_shape_fn((2111, 2203), |(i, j)| (i * 2203 + j) as u32);
    let (turned, back) = (all.slice(s![1.., 3..]).reversed_axes(), all.slice(s![1.., ..;-1]));
    for operand in
        [turned, back, turned.slice_move(s![.., ..;-1]), turned.slice_move(s![..;-1, ..])]
    {
        let (high, wide) = operand.dim();
        let mut out = Array2::zeros((high, wide + 3));
        copy_into(operand, &mut out.slice_mut(s![.., 2..wide + 2]));
        assert_eq!(out.slice(s![.., 2..wide + 2]), operand);
        assert_eq!(copy_to(operand, (high, wide)), operand);
        assert_eq!(par_copy_to(operand, (high, wide)), operand);
    }
    let few = all.slice(s![..9, ..70]).insert_axis(Axis(1)).insert_axis(Axis(3));
    let many = Array4::from_shape_fn((9, 63, 70, 110), |at| all[[at.0, at.2]]);
    assert_eq!(copy_to(few, many.dim()), many);
    assert_eq!(par_copy_to(few, many.dim()), many);
    let turned = copy_to(expected.t(), (2503, 2000));
    assert_eq!(turned, expected.t());
    let words = array![["a".to_owned()], ["b".to_owned()]];
    let mut out = Array2::from_elem((2, 300), String::new());
    copy_into(&words, &mut out);
    assert!(out.row(0).iter().all(|word| word == "a") && out.row(1).iter().all(|word| word == "b"));
    // Enough for several threads, along either axis, and over what was there.
    for (rows, columns) in [(2, 100_003), (100_003, 2)] {
        let words = Array1::from_iter((0..columns).map(|n| n.to_string()));
        let mut out = Array2::from_elem((rows, columns), "old".to_owned());
        par_copy_into(&words, &mut out);
        assert!(out.rows().into_iter().all(|row| row == words));
    }
}

// [E_BROADCAST_ANY_ERR_3010] [E_BROADCAST_ANY_ERR_3020]
#[test]
fn copies_that_cannot_be_are_errors() {
    let a = Array2::<u64>::zeros((2, 1));
    assert_eq!(try_copy_to(&a, 2).unwrap_err().code(), "E2");
    assert_eq!(try_copy_into(&a, &mut Array2::zeros((3, 3))).unwrap_err().code(), "E1");
    assert_eq!(try_copy_to_by(Rule::Numpy, &a).unwrap(), a.view().into_dyn());
    // A shape that an array of nothing may have, and 8 bytes an element may not.
    assert_eq!(try_copy_to(&a, (2, 1 << (usize::BITS - 3))).unwrap_err().code(), "E8");
    // One that an array may have, and no machine has memory for.
    let Some(many) = 1_usize.checked_shl(54) else { return };
    let refused = try_copy_to(&a, (2, many)).unwrap_err();
    assert_eq!(refused.code(), "E15");
    let text = "E15: result (2, 18014398509481984): there is not enough memory for the result";
    assert_eq!(refused.to_string(), text);
}

// [E_BROADCAST_ANY_ERR_3010]
#[test]
#[should_panic(expected = "E1: A (2, 3) and B (2,) do not broadcast under rule numpy")]
fn the_short_name_panics_with_the_message() {
    let _ = broadcast_views((&Array2::<u8>::zeros((2, 3)), &Array1::<u8>::zeros(2)));
}
