//! Models of classical machine learning, as skl2onnx writes them.

#[cfg(feature = "run")]
pub(super) mod run;

use simulcast_core::{Dim, Dims};

use super::rows;
use crate::ElementType;
use crate::infer::{Fact, InferNode, Results};

rows! { "ai.onnx.ml", ROWS:
    "ArrayFeatureExtractor" 1 "T int64 -> T" infer array_feature_extractor run whole(run::array_feature_extractor);
    "Binarizer" 1 "T -> T" infer same run whole(run::binarizer);
    "CastMap" 1 "_ -> _";
    "CategoryMapper" 1 "_ -> _" infer label_encoder;
    "DictVectorizer" 1 "_ -> _";
    "FeatureVectorizer" 1 "_* -> float32" infer feature_vectorizer;
    "Imputer" 1 "T -> T" infer same run whole(run::imputer);
    "LabelEncoder" 1 "_ -> _" infer label_encoder;
    "LinearClassifier" 1 "_ -> _ float32" infer linear_classifier run whole_unless(run::linear_classifier, run::classifier_refusal);
    "LinearRegressor" 1 "_ -> float32" infer regressor run whole_unless(run::linear_regressor, run::transform_refusal);
    "Normalizer" 1 "_ -> float32" infer same run whole(run::normalizer);
    "OneHotEncoder" 1 "_ -> float32" infer one_hot_encoder;
    "Scaler" 1 "_ -> float32" infer same run whole(run::scaler);
    "SVMClassifier" 1 "_ -> _ float32" infer svm_classifier;
    "SVMRegressor" 1 "_ -> float32" infer regressor;
    "TreeEnsemble" 5 "T -> T" infer tree_ensemble;
    "TreeEnsembleClassifier" 1 "_ -> _ float32" infer tree_classifier;
    "TreeEnsembleRegressor" 1 "_ -> float32" infer regressor;
    "ZipMap" 1 "_ -> _";
}

impl InferNode<'_, '_, '_> {
    /// How many rows of features the data are: one where they are a vector.
    fn samples(&self) -> Dim {
        match self.ranked(0) {
            None => Dim::UNKNOWN,
            Some([] | [_]) => Dim::Size(1),
            Some([rows, ..]) => rows.clone(),
        }
    }

    /// The columns that the indices pick.
    fn array_feature_extractor(&mut self) -> Results {
        let element = self.element(0);
        let picked = match self.ranked(1) {
            None => Dim::UNKNOWN,
            Some(dims) => {
                let dims: Vec<&Dim> = dims.iter().collect();
                self.with(&dims, |sizes| crate::expr::SizeExpr::product(sizes))?
            }
        };
        let Some(dims) = self.ranked(0) else {
            return Ok(vec![Fact::new(element, Dims::Unranked)]);
        };
        let Some((last, rows)) = dims.split_last() else {
            return Err("it picks columns of no scalar".into());
        };
        self.inside(1, last, false)?;
        let rows = if rows.is_empty() { vec![Dim::Size(1)] } else { rows.to_vec() };
        Ok(vec![Fact::new(element, [rows, vec![picked]].concat().into())])
    }

    fn feature_vectorizer(&mut self) -> Results {
        let sizes = self.ints("inputdimensions").unwrap_or_default();
        let sum = sizes.iter().try_fold(0_i64, |sum, size| sum.checked_add(*size));
        let sum = sum.filter(|sum| *sum > 0).and_then(|sum| usize::try_from(sum).ok());
        let dims = vec![self.samples(), sum.map_or(Dim::UNKNOWN, Dim::Size)];
        Ok(vec![Fact::new(Some(ElementType::F32), dims.into())])
    }

    fn label_encoder(&mut self) -> Results {
        const TO: [(&[&str], ElementType); 3] = [
            (&["values_strings", "default_string"], ElementType::String),
            (&["values_int64s", "default_int64"], ElementType::I64),
            (&["values_floats", "default_float"], ElementType::F32),
        ];
        // The oldest form goes from texts to integers and back.
        let element = match (self.attribute("classes_strings"), self.attribute("cats_strings")) {
            (None, None) => {
                let named =
                    |names: &[&str]| names.iter().any(|name| self.attribute(name).is_some());
                let written = |only: usize| TO.iter().find(|(names, _)| named(&names[only..=only]));
                match (written(0), self.attribute("values_tensor")) {
                    (Some((_, element)), _) => Some(*element),
                    (None, Some(crate::model::AttributeValue::Tensor(tensor))) => {
                        Some(tensor.element())
                    }
                    (None, _) => None,
                }
            }
            _ => match self.element(0) {
                Some(ElementType::String) => Some(ElementType::I64),
                Some(ElementType::I64) => Some(ElementType::String),
                _ => None,
            },
        };
        Ok(vec![Fact::new(element, self.dims(0).clone())])
    }

    /// An axis more, for the category.
    fn one_hot_encoder(&mut self) -> Results {
        let ints = self.ints("cats_int64s").map(<[i64]>::len);
        let count = self.texts("cats_strings").map(<[Vec<u8>]>::len).filter(|count| *count > 0);
        let depth = count.or(ints).map_or(Dim::UNKNOWN, Dim::Size);
        let dims = match self.ranked(0) {
            Some(dims) => [dims, &[depth]].concat().into(),
            None => Dims::Unranked,
        };
        Ok(vec![Fact::new(Some(ElementType::F32), dims)])
    }

    fn count_of(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| {
            let texts = self.texts(name).map(<[Vec<u8>]>::len);
            let ints = self.ints(name).map(<[i64]>::len);
            let floats = self.floats(name).map(<[f32]>::len);
            texts.or(ints).or(floats).filter(|count| *count > 0)
        })
    }

    /// The type of the labels.
    fn labels(&self) -> Option<ElementType> {
        let texts = ["classlabels_strings"].iter().any(|name| self.texts(name).is_some());
        Some(if texts { ElementType::String } else { ElementType::I64 })
    }

    /// A label and a score for each class, of each row.
    fn classes(&self, count: Option<usize>) -> Vec<Fact> {
        let rows = self.samples();
        let labels = Fact::new(self.labels(), vec![rows.clone()].into());
        let scores = vec![rows, count.map_or(Dim::UNKNOWN, Dim::Size)];
        vec![labels, Fact::new(Some(ElementType::F32), scores.into())]
    }

    fn linear_classifier(&mut self) -> Results {
        // One score decides between two labels, and both are given.
        let named = self.count_of(&["classlabels_strings", "classlabels_ints"]);
        let scores = self.count_of(&["intercepts"]);
        let count = match (named, scores) {
            (Some(2), Some(1)) => Some(2),
            (_, scores @ Some(_)) => scores,
            (named, None) => named,
        };
        Ok(self.classes(count))
    }

    fn tree_classifier(&mut self) -> Results {
        Ok(self.classes(self.count_of(&["classlabels_strings", "classlabels_int64s"])))
    }

    fn svm_classifier(&mut self) -> Results {
        let named = self.count_of(&["classlabels_strings", "classlabels_ints"]);
        let with_odds = self.count_of(&["prob_a"]).is_some();
        // Without probabilities there is a score for each pair of classes, or each class.
        Ok(self.classes(named.filter(|count| with_odds || *count == 2)))
    }

    fn regressor(&mut self) -> Results {
        let targets = match self.op() {
            "SVMRegressor" => 1,
            "LinearRegressor" => self.int("targets").unwrap_or(1),
            _ => self.int("n_targets").unwrap_or(1),
        };
        let targets = usize::try_from(targets).map_or(Dim::UNKNOWN, Dim::Size);
        let dims = vec![self.samples(), targets];
        Ok(vec![Fact::new(Some(ElementType::F32), dims.into())])
    }

    fn tree_ensemble(&mut self) -> Results {
        let targets = self.int("n_targets").and_then(|count| usize::try_from(count).ok());
        let dims = vec![self.samples(), targets.map_or(Dim::UNKNOWN, Dim::Size)];
        Ok(vec![Fact::new(self.element(0), dims.into())])
    }
}
