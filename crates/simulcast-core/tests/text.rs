//! Shape text: every spelling, and every way to get it wrong.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use simulcast_core::{Dims, ShapeText};

fn parsed(text: &str) -> ShapeText {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

// [E_BROADCAST_ANY_FUNC_2200]
#[test]
fn every_spelling_that_people_paste() {
    let spellings = [
        "8,1,6,1",
        "(8, 1, 6, 1)",
        "[8,1,6,1]",
        "8x1x6x1",
        "8 1 6 1",
        "8 x 1 x 6 x 1",
        "8×1×6×1",
        "8,1,6,1,",
        " ( 8,1 , 6,1 ) ",
        "torch.Size([8, 1, 6, 1])",
        "Shape(8, 1, 6, 1)",
        "TensorShape([8, 1, 6, 1])",
        "float32[8,1,6,1]",
        "((8,1,6,1))",
        "8X1X6X1",
        "8,1,6,0_1",
    ];
    for text in spellings {
        assert_eq!(parsed(text).dims, Dims::from(&[8, 1, 6, 1][..]), "{text}");
    }
    for text in ["()", "[]", "scalar", "Shape(,)", "torch.Size([])", "( )"] {
        assert_eq!(parsed(text).dims, Dims::from(&[][..]), "{text}");
    }
    for text in ["3", "(3,)", "[3]", "3,", "007"] {
        assert_eq!(parsed(text).dims.sizes().unwrap().len(), 1, "{text}");
    }
}

// [E_BROADCAST_ANY_FUNC_2200]
#[test]
fn symbols_intervals_and_names() {
    let shown = |text: &str| parsed(text).dims.to_string();
    assert_eq!(shown("N,3,1"), "(N, 3, 1)");
    assert_eq!(shown("Nx3x1"), "(N, 3, 1)");
    assert_eq!(shown("b c h w"), "(b, c, h, w)");
    assert_eq!(shown("batch"), "(batch,)");
    assert_eq!(shown("BxCxHxW"), "(B, C, H, W)");
    assert_eq!(shown("Nx32xHW"), "(N, 32, HW)");
    assert_eq!(shown("?x3"), "(?, 3)");
    assert_eq!(shown("dx1"), "(dx1,)", "a symbol, as in dx1,3");
    assert_eq!(shown("MAX"), "(MAX,)");
    assert_eq!(shown("_,batch_size"), "(_, batch_size)");
    assert_eq!(shown("x y"), "(x, y)");
    assert_eq!(shown("axb"), "(axb,)", "no number in it, so no cross");
    assert_eq!(shown("x"), "(x,)");
    assert_eq!(shown("x,y"), "(x, y)");
    assert_eq!(shown("?,None,-1"), "(?, ?, ?)");
    assert_eq!(shown("2..8,2..,..8,3..3"), "(2..8, 2.., ..8, 3)");
    assert_eq!(shown("..."), "(...)");
    assert_eq!(shown("[...]"), "(...)");
    let dims = parsed("N@2..8").dims;
    assert_eq!(dims.dims().unwrap()[0].interval().to_string(), "2..8");
    let named = parsed("pred: b=32, c=N, 3");
    assert_eq!(named.name.as_deref(), Some("pred"));
    assert_eq!(named.axes, ["b", "c", ""]);
    assert_eq!(named.axis_names(), ["b", "c", ""]);
    assert_eq!(parsed("b,c=3").axis_names(), ["b", "c"]);
    assert_eq!(parsed("...").axis_names(), [""; 0]);
    assert_eq!(parsed("layer.0/w-1:3").name.as_deref(), Some("layer.0/w-1"));
}

// [E_BROADCAST_ANY_FUNC_2200]
#[test]
fn what_is_no_shape_is_said_clearly() {
    let texts = [
        "",
        " ",
        "2,,3",
        ",3",
        "2,3)",
        "(2,3",
        "(2,3]",
        "2(3)4",
        "-2",
        "3.5",
        "2a",
        "1e3",
        "é!",
        "99999999999999999999999",
        "8..2",
        "2..x",
        "N@",
        "N@x",
        "N@3..2",
        "None@9",
        "!=3",
        "a b:3",
        ":3",
        "b==3",
        "2 x 3 x",
        "1 2 x 3",
        "2:3",
        "3=4",
        "1_",
        "2;3",
        "a-b",
        "=3,",
        "a=",
        "..-1",
    ];
    let said: Vec<String> =
        texts.iter().map(|text| text.parse::<ShapeText>().unwrap_err().to_string()).collect();
    insta::assert_snapshot!(said.join("\n"));
    assert_eq!("2a".parse::<ShapeText>().unwrap_err().part(), "2a");
}

proptest! {
    // [E_BROADCAST_ANY_ERR_0090]
    #[test]
    fn any_text_is_answered(text in "\\PC{0,24}") {
        if let Err(error) = text.parse::<ShapeText>() {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    // [E_BROADCAST_ANY_FUNC_2200]
    #[test]
    fn what_is_shown_is_read_back(sizes in prop::collection::vec(any::<usize>(), 0..6)) {
        let dims = Dims::from(&sizes[..]);
        prop_assert_eq!(parsed(&dims.to_string()).dims, dims);
    }
}
