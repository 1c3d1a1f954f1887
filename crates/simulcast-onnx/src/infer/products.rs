//! Products of matrices: batch axes broadcast, inner axes must be equal.

use simulcast_core::{Dim, Dims, Rule};

use super::Fact;
use super::call::{Call, Results};
use crate::ElementType;

impl Call<'_, '_, '_> {
    pub(super) fn products(&mut self) -> Option<Results> {
        match self.op() {
            "MatMul" => Some(self.matmul(0, 1, self.element(0))),
            "MatMulInteger" => Some(self.matmul(0, 1, Some(ElementType::I32))),
            "QLinearMatMul" => Some(self.matmul(0, 3, self.element(7))),
            "Gemm" => Some(self.gemm()),
            "Einsum" => self.einsum(),
            _ => None,
        }
    }

    fn matmul(&mut self, a: usize, b: usize, element: Option<ElementType>) -> Results {
        let (Some(x), Some(y)) = (self.ranked(a), self.ranked(b)) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let (Some((k, rows)), Some((last, before))) = (x.split_last(), y.split_last()) else {
            return Err("it multiplies no scalars".into());
        };
        // A vector stands for a row on the left and a column on the right.
        let (m, left): (&[Dim], &[Dim]) = match rows.split_last() {
            Some((m, left)) => (std::slice::from_ref(m), left),
            None => (&[], &[]),
        };
        let (inner, n, right): (&Dim, &[Dim], &[Dim]) = match before.split_last() {
            Some((inner, right)) => (inner, std::slice::from_ref(last), right),
            None => (last, &[], &[]),
        };
        let (of, by) = (self.dims(a), self.dims(b));
        self.equal(k, inner, format_args!("{of} @ {by}: the inner sizes"))?;
        let batch = match (left, right) {
            ([], batch) | (batch, []) => Dims::from(batch.to_vec()),
            (left, right) => {
                let prefix = |dims: &[Dim]| Some(("", Dims::from(dims.to_vec())));
                self.broadcast_as(Rule::Numpy, &[(a, prefix(left)), (b, prefix(right))], element)
            }
        };
        let dims = match batch {
            Dims::Ranked(mut dims) => {
                dims.extend(m.iter().chain(n).cloned());
                dims.into()
            }
            Dims::Unranked => Dims::Unranked,
        };
        Ok(vec![Fact::new(element, dims)])
    }

    fn gemm(&mut self) -> Results {
        let element = self.element(0);
        let mut sides = Vec::new();
        for (input, transposed) in [(0, "transA"), (1, "transB")] {
            let Some(dims) = self.ranked(input) else {
                return Ok(vec![Fact::new(element, Dims::from(vec![Dim::UNKNOWN; 2]))]);
            };
            let [rows, columns] = dims else {
                return Err(format!("{} is no matrix", self.dims(input)));
            };
            let flipped = self.int(transposed).unwrap_or(0) != 0;
            sides.push(if flipped { [columns, rows] } else { [rows, columns] });
        }
        let [[m, k], [inner, n]] = sides[..] else { return Ok(Vec::new()) };
        self.equal(k, inner, "the inner sizes")?;
        let product = Dims::from(vec![m.clone(), n.clone()]);
        if self.has(2) {
            let rule = match (self.opset, self.int("broadcast")) {
                (..7, None | Some(0)) => Rule::Exact,
                _ => Rule::Unidirectional,
            };
            self.broadcast_as(rule, &[(0, Some(("A @ B", product.clone()))), (2, None)], element);
        }
        Ok(vec![Fact::new(element, product)])
    }

    /// Einsum without an ellipsis: sizes by letter. With one, what is declared stands.
    fn einsum(&mut self) -> Option<Results> {
        let equation: String = self.text("equation")?.split_whitespace().collect();
        let (inputs, output) = equation.split_once("->")?;
        let letters = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic() || c == ',');
        if !letters(inputs) || !letters(output) {
            return None;
        }
        let mut sizes: Vec<(char, Dim)> = Vec::new();
        for (input, term) in inputs.split(',').enumerate() {
            let Some(dims) = self.ranked(input) else { continue };
            if dims.len() != term.chars().count() {
                let given = self.dims(input);
                return Some(Err(format!("{term:?} does not describe {given}")));
            }
            for (letter, dim) in term.chars().zip(dims) {
                match sizes.iter().position(|(known, _)| *known == letter) {
                    None => sizes.push((letter, dim.clone())),
                    // A size of 1 stretches here too.
                    Some(at) if sizes[at].1 == Dim::Size(1) => sizes[at].1 = dim.clone(),
                    Some(_) if *dim == Dim::Size(1) => {}
                    Some(at) => {
                        let known = sizes[at].1.clone();
                        match self.equal(&known, dim, format_args!("axis {letter}")) {
                            Ok(dim) => sizes[at].1 = dim,
                            Err(message) => return Some(Err(message)),
                        }
                    }
                }
            }
        }
        let of = |letter: char| {
            let known = sizes.iter().find(|(known, _)| *known == letter);
            known.map_or(Dim::UNKNOWN, |(_, dim)| dim.clone())
        };
        let dims: Vec<Dim> = output.chars().map(of).collect();
        Some(Ok(vec![Fact::new(self.element(0), dims.into())]))
    }
}
