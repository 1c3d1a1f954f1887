//! Plans written down and read back; what was tampered with is refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(feature = "serde")]

use simulcast_core::{Names, Plan, Rule, resolve};

// [E_BROADCAST_ANY_FUNC_2300]
#[test]
fn a_plan_comes_back_as_it_was() {
    let plans = [
        resolve(Rule::Numpy, &[&[8, 1, 6, 1][..], &[7, 1, 5]]).unwrap(),
        resolve(Rule::Pdpd { axis: Some(3) }, &[&[2, 3, 4, 5][..], &[5, 1]]).unwrap(),
        resolve(Rule::Bidirectional { target: &[2, 1] }, &[[3]]).unwrap(),
    ];
    for plan in plans {
        let plan = plan.with_names(Names::of(["x"]));
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
}

// [E_BROADCAST_ANY_FUNC_2300]
#[test]
fn a_plan_that_cannot_be_is_refused() {
    let text = |operands: &str| {
        format!(
            r#"{{"version":1,"rule":{{"kind":"numpy","axis":null,"shape":[],"axes":[]}},"alignment":"right",
                "shape":[2,3],"operands":[{{"shape":[2,1],"feeds":[0,1]}},{operands}],
                "names":{{"operands":[],"axes":[]}}}}"#
        )
    };
    let read = |operands: &str| serde_json::from_str::<Plan>(&text(operands));
    assert!(read(r#"{"shape":[1,3],"feeds":[0,1]}"#).is_ok());
    for (operands, why) in [
        (r#"{"shape":[2],"feeds":[0,1]}"#, "each of its axes"),
        (r#"{"shape":[2],"feeds":[2]}"#, "does not fit"),
        (r#"{"shape":[4],"feeds":[1]}"#, "does not fit"),
        (r#"{"shape":[4],"feeds":[null]}"#, "does not fit"),
        (r#"{"shape":[1,1],"feeds":[0,0]}"#, "twice"),
        (r#"{"shape":[2],"feeds":[0]}"#, "comes from no operand"),
    ] {
        let error = read(operands).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let other = text(r#"{"shape":[3],"feeds":[1]}"#).replace("\"version\":1", "\"version\":2");
    assert!(serde_json::from_str::<Plan>(&other).unwrap_err().to_string().contains("version 2"));
}
