//! Products of matrices: batch axes broadcast, inner axes must be equal.

#[cfg(feature = "run")]
mod floats;
#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dim, Dims, Rule};

use super::rows;
use crate::infer::{Fact, InferNode, Results};

use crate::ElementType;

rows! { "", ROWS:
    "Einsum" 12 "N* -> N" infer einsum run whole(run::einsum);
    "Gemm" 1 "N N N? -> N" infer gemm run whole(run::gemm);
    "MatMul" 1 "N N -> N" infer matrices run whole(run::matmul);
    "MatMulInteger" 10 "I1 I2 I1? I2? -> int32" infer integers run whole(super::quantize::run::matmul);
    "QLinearMatMul" 10 "N1 _ N1 N2 _ N2 _ N3 -> N3" infer quantized;
}

impl InferNode<'_, '_, '_> {
    fn matrices(&mut self) -> Results {
        self.matmul(0, 1, self.element(0))
    }

    fn integers(&mut self) -> Results {
        self.matmul(0, 1, Some(ElementType::I32))
    }

    fn quantized(&mut self) -> Results {
        self.matmul(0, 3, self.element(7))
    }

    pub(super) fn matmul(&mut self, a: usize, b: usize, element: Option<ElementType>) -> Results {
        let (of, by) = (self.dims(a), self.dims(b));
        self.matmul_of((a, of), (b, by), element)
    }

    /// The product of two inputs in those sizes.
    pub(super) fn matmul_of(
        &mut self,
        (a, of): (usize, &Dims),
        (b, by): (usize, &Dims),
        element: Option<ElementType>,
    ) -> Results {
        let (Some(x), Some(y)) = (of.dims(), by.dims()) else {
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

    /// The sizes of a product of matrices that may be transposed first.
    pub(super) fn gemm_sides(&mut self, a: usize, b: usize) -> Result<Option<Vec<Dim>>, String> {
        let mut sides = Vec::new();
        for (input, transposed) in [(a, "transA"), (b, "transB")] {
            let Some(dims) = self.ranked(input) else { return Ok(None) };
            let [rows, columns] = dims else {
                return Err(format!("{} is no matrix", self.dims(input)));
            };
            let flipped = self.int(transposed).unwrap_or(0) != 0;
            sides.push(if flipped { [columns, rows] } else { [rows, columns] });
        }
        let [[m, k], [inner, n]] = sides[..] else { return Ok(None) };
        self.equal(k, inner, "the inner sizes")?;
        Ok(Some(vec![m.clone(), n.clone()]))
    }

    pub(super) fn gemm(&mut self) -> Results {
        let element = self.element(0);
        let Some(product) = self.gemm_sides(0, 1)?.map(Dims::from) else {
            return Ok(vec![Fact::new(element, Dims::from(vec![Dim::UNKNOWN; 2]))]);
        };
        if self.has(2) {
            let rule = match (self.opset, self.int("broadcast")) {
                (..7, None | Some(0)) => Rule::Exact,
                _ => Rule::Unidirectional,
            };
            let name = self.product_name();
            self.broadcast_as(rule, &[(0, Some((&name, product.clone()))), (2, None)], element);
        }
        Ok(vec![Fact::new(element, product)])
    }

    /// `x @ w.T`
    fn product_name(&self) -> String {
        let side = |input: usize, transposed: &str| {
            let over = self.int(transposed).unwrap_or(0) != 0;
            format!("{}{}", self.input_name(input).0, if over { ".T" } else { "" })
        };
        format!("{} @ {}", side(0, "transA"), side(1, "transB"))
    }

    /// Sizes by letter; an ellipsis broadcasts what stands in its place.
    fn einsum(&mut self) -> Results {
        let element = self.element(0);
        let equation = self.text("equation").ok_or("it has no equation")?;
        let equation: String = equation.split_whitespace().collect::<String>().replace("...", "…");
        let (inputs, output) = match equation.split_once("->") {
            Some((inputs, output)) => (inputs, Some(output.to_owned())),
            None => (equation.as_str(), None),
        };
        let output = output.unwrap_or_else(|| implied_output(inputs));
        let valid = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic() || c == '…');
        let terms: Vec<&str> = inputs.split(',').collect();
        if !terms.iter().all(|term| valid(term)) || !valid(&output) {
            return Err(format!("{equation:?} is no equation"));
        }
        let mut before = String::new();
        for letter in output.chars() {
            let is_known = letter == '…' || inputs.contains(letter);
            if !is_known || before.contains(letter) {
                return Err(format!(
                    "{equation:?}: {letter} is in no input, or twice in the output"
                ));
            }
            before.push(letter);
        }
        if terms.len() != self.inputs.len() {
            return Err(format!(
                "{equation:?} has {} terms for {} inputs",
                terms.len(),
                self.inputs.len()
            ));
        }
        let mut sizes: Vec<(char, Dim)> = Vec::new();
        let mut rests: Vec<(usize, Dims)> = Vec::new();
        for (input, term) in terms.iter().enumerate() {
            let letters = term.chars().filter(|letter| *letter != '…').count();
            let Some(dims) = self.ranked(input) else {
                if term.contains('…') {
                    rests.push((input, Dims::Unranked));
                }
                continue;
            };
            let covered =
                dims.len().checked_sub(letters).filter(|rest| *rest == 0 || term.contains('…'));
            let Some(covered) = covered else {
                let given = self.dims(input);
                return Err(format!("{term:?} does not describe {given}"));
            };
            let mut left = dims;
            for letter in term.chars() {
                if letter == '…' {
                    let (rest, after) = left.split_at(covered);
                    rests.push((input, Dims::from(rest.to_vec())));
                    left = after;
                    continue;
                }
                let Some((dim, after)) = left.split_first() else { break };
                left = after;
                match sizes.iter().position(|(known, _)| *known == letter) {
                    None => sizes.push((letter, dim.clone())),
                    // A size of 1 stretches here too.
                    Some(at) if sizes[at].1 == Dim::Size(1) => sizes[at].1 = dim.clone(),
                    Some(_) if *dim == Dim::Size(1) => {}
                    Some(at) => {
                        let known = sizes[at].1.clone();
                        sizes[at].1 = self.equal(&known, dim, format_args!("axis {letter}"))?;
                    }
                }
            }
        }
        let rest = match rests.as_slice() {
            [] => Dims::from(Vec::new()),
            [(_, only)] => only.clone(),
            all => {
                let operands: Vec<(usize, Option<(&str, Dims)>)> =
                    all.iter().map(|(input, dims)| (*input, Some(("", dims.clone())))).collect();
                self.broadcast_as(Rule::Numpy, &operands, element)
            }
        };
        let mut dims = Vec::new();
        for letter in output.chars() {
            if letter == '…' {
                match &rest {
                    Dims::Ranked(rest) => dims.extend(rest.iter().cloned()),
                    Dims::Unranked => return Ok(vec![Fact::new(element, Dims::Unranked)]),
                }
                continue;
            }
            let known = sizes.iter().find(|(known, _)| *known == letter);
            dims.push(known.map_or(Dim::UNKNOWN, |(_, dim)| dim.clone()));
        }
        Ok(vec![Fact::new(element, dims.into())])
    }
}

/// The output of an equation without an arrow: the letters that occur once, in order, behind what
/// an ellipsis covers.
fn implied_output(inputs: &str) -> String {
    let once = |letter: &char| inputs.matches(*letter).count() == 1;
    let ellipsis = inputs.contains('…').then_some('…');
    ellipsis.into_iter().chain(('A'..='Z').chain('a'..='z').filter(once)).collect()
}
