//! Recurrent layers: what their weights say of their results.

use simulcast_core::{Dim, Dims};

use super::rows;
use crate::expr::SizeExpr;
use crate::infer::{Fact, InferNode, Results};

rows! { "", ROWS:
    "GRU" 1 "F F F F? int32? F? -> F F" infer gru;
    "LSTM" 1 "F F F F? int32? F? F? F? -> F F F" infer lstm;
    "RNN" 1 "F F F F? int32? F? -> F F" infer rnn;
}

rows! { "com.microsoft", CONTRIB:
    "DynamicQuantizeLSTM" 1 "T T2 T2 T? int32? T? T? T? T T2 T T2 -> T T T" infer quantized_lstm;
}

impl InferNode<'_, '_, '_> {
    fn rnn(&mut self) -> Results {
        self.recurrent(1, false)
    }

    fn gru(&mut self) -> Results {
        self.recurrent(3, false)
    }

    fn lstm(&mut self) -> Results {
        self.recurrent(4, false)
    }

    /// Its weights are transposed.
    fn quantized_lstm(&mut self) -> Results {
        self.recurrent(4, true)
    }

    /// The sequence, and the last states; `gates` matrices lie over each other in the weights.
    fn recurrent(&mut self, gates: i64, transposed: bool) -> Results {
        let element = self.element(0);
        let batch_first = self.int("layout").unwrap_or(0) != 0;
        let directions = match self.text("direction").unwrap_or("forward") {
            "bidirectional" => 2,
            _ => 1,
        };
        let directions = Dim::Size(directions);
        let [mut length, mut batch, mut features] = [Dim::UNKNOWN, Dim::UNKNOWN, Dim::UNKNOWN];
        match self.ranked(0) {
            Some([a, b, c]) => {
                [length, batch] = if batch_first { [b, a] } else { [a, b] }.map(Clone::clone);
                features = c.clone();
            }
            Some(_) => return Err(format!("{} is no batch of sequences", self.dims(0))),
            None => {}
        }
        let size = self.int("hidden_size").and_then(|size| usize::try_from(size).ok());
        let mut hidden = size.map_or(Dim::UNKNOWN, Dim::Size);
        let weights = |input: usize| match self.ranked(input) {
            None => Ok(None),
            Some([own, rows, columns]) => {
                let [rows, columns] = if transposed { [columns, rows] } else { [rows, columns] };
                Ok(Some([own, rows, columns].map(Clone::clone)))
            }
            Some(_) => Err(format!("{} are no weights", self.dims(input))),
        };
        let (w, r) = (weights(1)?, weights(2)?);
        if let Some([own, rows, columns]) = r {
            self.equal(&own, &directions, "the directions of R")?;
            hidden = self.equal(&hidden, &columns, "the hidden size")?;
            let all = self.with(&[&hidden], |own| own[0].mul(&SizeExpr::from(gates)))?;
            self.equal(&rows, &all, format_args!("the rows of R, {gates} times the hidden size"))?;
        }
        let all = self.with(&[&hidden], |own| own[0].mul(&SizeExpr::from(gates)))?;
        if let Some([own, rows, columns]) = w {
            self.equal(&own, &directions, "the directions of W")?;
            self.equal(&rows, &all, format_args!("the rows of W, {gates} times the hidden size"))?;
            self.equal(&features, &columns, "the features of X and W")?;
        }
        let twice = self.with(&[&all], |own| own[0].mul(&SizeExpr::from(2)))?;
        let peep = self.with(&[&hidden], |own| own[0].mul(&SizeExpr::from(3)))?;
        let state = match batch_first {
            true => [&batch, &directions, &hidden],
            false => [&directions, &batch, &hidden],
        };
        let state = state.map(Clone::clone);
        let others: [(usize, &str, &[Dim]); 5] = [
            (3, "B", &[directions.clone(), twice]),
            (4, "sequence_lens", std::slice::from_ref(&batch)),
            (5, "initial_h", &state),
            (6, "initial_c", &state),
            (7, "P", &[directions.clone(), peep]),
        ];
        for (input, name, expected) in others {
            let Some(dims) = self.ranked(input) else { continue };
            if dims.len() != expected.len() {
                let (dims, expected) = (self.dims(input), Dims::from(expected.to_vec()));
                return Err(format!("{name} is {dims}, not {expected}"));
            }
            for (axis, (own, expected)) in dims.iter().zip(expected).enumerate() {
                self.equal(own, expected, format_args!("{name}, axis {axis}"))?;
            }
        }
        let all = match batch_first {
            true => vec![batch, length, directions, hidden],
            false => vec![length, directions, batch, hidden],
        };
        let state = Fact::new(element, state.to_vec().into());
        Ok(vec![Fact::new(element, all.into()), state.clone(), state])
    }
}
