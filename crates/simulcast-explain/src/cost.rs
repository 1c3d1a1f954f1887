//! What a broadcast costs, in one line: the same in the terminal, in pictures and on pages.

use simulcast_core::Plan;

/// `A 48, B 35 values; result 1,680 (20.2 times what is stored)`.
pub(crate) fn cost(plan: &Plan) -> String {
    let shown = plan.operand_count().min(4);
    let mut parts = Vec::new();
    for operand in 0..shown {
        let shape = plan.operand_shape(operand).unwrap_or_default();
        let values = simulcast_core::elements(&shape).map_or("too many to count".into(), grouped);
        parts.push(format!("{} {values}", plan.operand_name(operand)));
    }
    if plan.operand_count() > shown {
        parts.push(format!("and {} more", plan.operand_count() - shown));
    }
    if parts.is_empty() {
        parts.push("no".into());
    }
    let stored = parts.join(", ");
    let cost = plan.cost();
    let result = cost.result.map_or("too many to count".into(), grouped);
    match cost.growth() {
        Some(growth) if growth > 1.0 => {
            let times = format!("{growth:.1}");
            let times = times.strip_suffix(".0").unwrap_or(&times);
            format!("{stored} values; result {result} ({times} times what is stored)")
        }
        _ => format!("{stored} values; result {result}"),
    }
}

/// `1,680`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
