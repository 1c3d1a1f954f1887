//! The element types that the inputs of an operator take at an opset, from ONNX's own schemas:
//! `conformance/record/operator_types.py` writes `types.txt`, and says how to read it.
//!
//! ```text
//! Abs 1:c02 6:3cfe 13:13cfe      floats, since opset 6 all numbers, since 13 bfloat16 as well
//! ```

use std::sync::LazyLock;

use super::Row;
use crate::ElementType;

const TYPES: &str = include_str!("types.txt");

/// The name of each operator and its versions, in the order of names.
static LINES: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| TYPES.lines().filter_map(|line| line.split_once(' ')).collect());

/// The opsets since which an operator takes other types, each with the types of one input.
fn versions(row: &Row, input: usize) -> impl Iterator<Item = (i64, u32)> {
    let name = match row.domain {
        "" => row.name.to_owned(),
        domain => [domain, row.name].join("."),
    };
    let own = LINES.binary_search_by(|(own, _)| (*own).cmp(&name)).ok();
    own.map_or("", |at| LINES[at].1).split(' ').filter_map(move |version| {
        let (since, types) = version.split_once(':')?;
        let types = types.split(',').take(input.saturating_add(1)).last()?;
        Some((since.parse().ok()?, u32::from_str_radix(types, 16).ok()?))
    })
}

fn takes(types: u32, element: ElementType) -> bool {
    types >> element.code() & 1 == 1
}

/// Why an input cannot have a type; `None` where it can, and where nothing is known of the operator at the opset.
pub(crate) fn refusal(row: &Row, opset: i64, input: usize, element: ElementType) -> Option<String> {
    let (_, types) = versions(row, input).take_while(|(since, _)| *since <= opset).last()?;
    // No tensor at all: a sequence.
    if types == 0 || takes(types, element) {
        return None;
    }
    if let Some((since, _)) =
        versions(row, input).find(|(since, own)| *since > opset && takes(*own, element))
    {
        return Some(format!("which {} takes since opset {since}, not in opset {opset}", row.name));
    }
    let names = (1..=26).filter_map(ElementType::from_code).filter(|own| takes(types, *own));
    let names: Vec<&str> = names.map(ElementType::name).collect();
    Some(format!("not {}", names.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::{Signature, all, find};

    #[test]
    fn each_line_is_of_an_operator_in_order() {
        assert!(LINES.is_sorted() && LINES.len() == TYPES.lines().count());
        for (name, versions) in LINES.iter() {
            let (domain, op) = name.rsplit_once('.').unwrap_or(("", name));
            let row = find(domain, op).unwrap_or_else(|| panic!("{name} has no row"));
            let read = super::versions(row, 0).count();
            assert_eq!(read, versions.split(' ').count(), "{name}");
        }
    }

    #[test]
    fn rows_say_a_class_that_holds_all_types_of_all_opsets() {
        for row in all().filter(|row| row.domain.is_empty()) {
            let signature = Signature::of(row.types);
            let needed = signature.inputs.iter().enumerate().filter(|(_, typed)| !typed.optional);
            for (input, typed) in needed {
                let class = typed.word.as_bytes()[0];
                let outside = (1..=26).filter_map(ElementType::from_code).find(|element| {
                    let (float, integer) =
                        (element.name().contains("float"), element.name().contains("int"));
                    let inside = match class {
                        b'F' => float,
                        b'I' => integer,
                        b'N' => float || integer,
                        _ => true,
                    };
                    !inside && versions(row, input).any(|(_, types)| takes(types, *element))
                });
                assert_eq!(outside, None, "{} {input}", row.name);
            }
        }
    }

    #[test]
    fn what_is_refused_is_told_with_the_opset_that_takes_it() {
        let told = |op: &str, opset, element| refusal(find("", op).unwrap(), opset, 0, element);
        let since = "which Relu takes since opset 14, not in opset 13";
        assert_eq!(told("Relu", 13, ElementType::I64).as_deref(), Some(since));
        assert_eq!(told("Relu", 14, ElementType::I64), None);
        assert!(told("Relu", 99, ElementType::Bool).is_some());
        assert_eq!(told("Not", 17, ElementType::F32).as_deref(), Some("not bool"));
        assert!(told("Equal", 18, ElementType::String).is_some());
        assert_eq!(told("Equal", 19, ElementType::String), None);
        assert!(told("BitShift", 17, ElementType::I32).is_some());
    }
}
