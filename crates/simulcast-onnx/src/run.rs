//! Running models: on the CPU, element-wise nodes fused into programs.
//!
//! ```text
//! Model ── plan: functions called, constants read ──▶ nodes ── fuse ──▶ Session ── run ──▶ arrays
//! ```
//!
//! ```
//! use ndarray::{Array2, array};
//! use simulcast::AnyView;
//! use simulcast_onnx::{Model, Session};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/loss.onnx");
//! let session = Session::new(&Model::load(path)?)?;
//! let (x, weight) = (Array2::from_elem((2, 8), 1_f32), Array2::from_elem((8, 1), 0.125_f32));
//! let target = array![1_f32, 2.0];
//! let inputs = [("x", (&x).into()), ("weight", (&weight).into()), ("target", AnyView::from(&target))];
//! let outputs = session.run(&inputs)?;
//! // Not 0: the shapes (2, 1) and (2,) have (2, 2) in common.
//! assert_eq!(outputs[0].1.typed::<f32>().map(|loss| loss.sum()), Some(0.5));
//! assert_eq!(session.fused(), [2]); // the difference and its square
//! # Ok(())
//! # }
//! ```
//!
//! Whatever there is no code for is named when the session is made; nothing has run by then. A value
//! is kept only until its last reader has run. Elements of float8, float4 and of less than 8 bits are
//! moved and cast, as codes in bytes of an array of `u8`, see [`Session::codes`]. Before memory is asked for, the size of each result,
//! with those that are still held, is compared with [`Session::limit`].

pub(crate) mod code;
mod codes;
pub(crate) mod error;
mod fuse;
mod lay;
pub(crate) mod node;
mod plan;
mod text;
pub(crate) mod value;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use simulcast::{AnyArray, AnyView, AnyViewMut, DType};

use crate::model::{Declared, DeclaredDim};
use crate::{ElementType, Model};
pub(crate) use code::{Code, Refusal, Steps, Whole};
pub use error::{NodeError, RunError, UnsupportedNode};
use fuse::{Block, Chain, Work};
use node::{Allowed, Inputs};
use plan::{Input, Output, Plan, Slot};
use value::Value;

/// The most bytes of the results that are held at a time, unless said: 16 GiB, or half of what 32 bits address.
const BYTES: usize = match 1_usize.checked_shl(34) {
    Some(bytes) => bytes,
    None => usize::MAX / 2,
};

/// A model that is ready to run.
#[derive(Debug)]
pub struct Session {
    plan: Plan,
    allowed: Allowed,
    /// Sizes that symbols must have.
    sizes: Vec<(String, usize)>,
}

impl Model {
    /// Makes the model ready to run.
    ///
    /// # Errors
    ///
    /// As [`Session::new`].
    pub fn prepare(&self) -> Result<Session, RunError> {
        Session::new(self)
    }
}

impl Session {
    /// Makes a model ready to run.
    ///
    /// # Errors
    ///
    /// Every node that there is no code for; tensors that cannot be read or computed with.
    pub fn new(model: &Model) -> Result<Self, RunError> {
        let allowed = Allowed { bytes: BYTES, held: 0, threads: None };
        Ok(Self { plan: plan::plan(model)?, allowed, sizes: Vec::new() })
    }

    /// With at most that many threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.allowed.threads = Some(threads.max(1));
        self
    }

    /// With sizes that symbols of the inputs must have.
    ///
    /// # Errors
    ///
    /// A symbol that no input has.
    pub fn with_sizes(mut self, sizes: &[(&str, usize)]) -> Result<Self, RunError> {
        for &(symbol, size) in sizes {
            let has = |dim: &DeclaredDim| matches!(dim, DeclaredDim::Symbol(own) if own == symbol);
            let known = self.plan.inputs.iter().any(|input| match &input.declared {
                Some(Declared::Tensor { dims: Some(dims), .. }) => dims.iter().any(has),
                _ => false,
            });
            if !known {
                return Err(RunError::NoSymbol(symbol.to_owned()));
            }
            self.sizes.push((symbol.to_owned(), size));
        }
        Ok(self)
    }

    /// With at most that many bytes for the results that are held at a time; a size of 0 counts as 1.
    ///
    /// Inputs, constants of the model and outputs that have a place are not counted: they are there already.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.allowed.bytes = bytes;
        self
    }

    /// The names of the inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.plan.inputs.iter().map(|input| input.name.as_str())
    }

    /// The type that the model declares for an input.
    #[must_use]
    pub fn input_type(&self, name: &str) -> Option<ElementType> {
        let input = self.plan.inputs.get(*self.plan.named.get(name)?)?;
        match input.declared {
            Some(Declared::Tensor { element, .. }) => element,
            _ => None,
        }
    }

    /// What the model declares of an input, in words: `float32 (batch, 3)`.
    #[must_use]
    pub fn input_text(&self, name: &str) -> Option<String> {
        let input = self.plan.inputs.get(*self.plan.named.get(name)?)?;
        input.declared.as_ref().map(ToString::to_string)
    }

    /// The names of the outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.plan.outputs.iter().map(|output| output.name.as_str())
    }

    /// The outputs that are held as codes, one in each byte, and the type that the codes are of.
    pub fn codes(&self) -> impl Iterator<Item = (&str, ElementType)> {
        self.plan.outputs.iter().filter_map(|output| {
            let code = output.code?;
            Some((output.name.as_str(), code))
        })
    }

    /// How many nodes each program computes, in the order in which they run.
    #[must_use]
    pub fn fused(&self) -> Vec<usize> {
        fn count(block: &Block, counts: &mut Vec<usize>) {
            for step in &block.steps {
                match &step.work {
                    Work::Chain(chain) => counts.push(chain.len()),
                    Work::If { branches, .. } => branches.iter().for_each(|b| count(b, counts)),
                    Work::Whole { .. } => {}
                }
            }
        }
        let mut counts = Vec::new();
        count(&self.plan.block, &mut counts);
        counts
    }

    /// The outputs for some arrays, by name.
    ///
    /// # Errors
    ///
    /// Inputs that are missing, or not what the model declares; the first node that cannot work on
    /// what it was given.
    pub fn run(&self, inputs: &[(&str, AnyView<'_>)]) -> Result<Vec<(String, AnyArray)>, RunError> {
        self.run_into(inputs, &mut [])
    }

    /// As [`Session::run`]; outputs that have a place are written there, and only the others are
    /// given back. What a chain computes goes there at once, so that no memory is asked for.
    ///
    /// # Errors
    ///
    /// As [`Session::run`], and where a place is not of an output's type and shape. What the places
    /// hold then is not said.
    pub fn run_into(
        &self,
        inputs: &[(&str, AnyView<'_>)],
        places: &mut [(&str, AnyViewMut<'_>)],
    ) -> Result<Vec<(String, AnyArray)>, RunError> {
        let outputs = &self.plan.outputs;
        let mut own: Vec<Place<'_, '_>> = outputs.iter().map(|_| Place::Fresh).collect();
        for (name, place) in places {
            let output = outputs.iter().position(|output| output.name == *name);
            match output.and_then(|output| own.get_mut(output)) {
                Some(own @ Place::Fresh) => *own = Place::Given(place),
                _ => {
                    let outputs = outputs.iter().map(|output| output.name.clone()).collect();
                    return Err(RunError::NoOutput { name: (*name).to_owned(), outputs });
                }
            }
        }
        let mut values: Vec<Option<Value<'_>>> = vec![None; self.plan.slots];
        for (slot, array) in &self.plan.constants {
            values[*slot] = Some(Value::Made(array.clone()));
        }
        self.bind(inputs, &mut values)?;
        let mut held = Held::default();
        self.block(&self.plan.block, &mut values, &mut own, &mut held)?;
        let allowed = Allowed { held: self.held(&values), ..self.allowed };
        let mut results = Vec::new();
        for (Output { name, slot, again, .. }, place) in outputs.iter().zip(own) {
            let value = if *again { values[*slot].clone() } else { values[*slot].take() };
            let value = value.ok_or_else(|| RunError::Missing(name.clone()));
            match place {
                Place::Fresh => {
                    let array = value?.into_array(&allowed).map_err(|why| unwritten(name, &why))?;
                    results.push((name.clone(), array));
                }
                Place::Given(place) => self.store(name, &value?.view(), place)?,
                Place::Filled => {}
            }
        }
        Ok(results)
    }

    /// Copies an output to its place.
    fn store(
        &self,
        name: &str,
        value: &AnyView<'_>,
        place: &mut AnyViewMut<'_>,
    ) -> Result<(), RunError> {
        fits(name, (value.dtype(), value.shape()), place)?;
        self.allowed.copy(value, place).map_err(|why| unwritten(name, &why))
    }

    /// Puts the inputs into their slots, held to what the model declares.
    fn bind<'a>(
        &self,
        inputs: &'a [(&str, AnyView<'a>)],
        values: &mut [Option<Value<'a>>],
    ) -> Result<(), RunError> {
        let own = &self.plan.inputs;
        let mut symbols: HashMap<&str, usize> =
            self.sizes.iter().map(|(symbol, size)| (symbol.as_str(), *size)).collect();
        // Mostly they come in the model's order; those that do not are looked up.
        let mut found: HashSet<usize> = HashSet::new();
        for (index, (name, view)) in inputs.iter().enumerate() {
            let at = match own.get(index) {
                Some(input) if input.name == *name => Some(index).filter(|at| !found.contains(at)),
                _ => {
                    let before = |at: usize| at < index && inputs[at].0 == *name;
                    let at = self.plan.named.get(*name).copied();
                    at.filter(|at| !before(*at) && found.insert(*at))
                }
            };
            let Some(input) = at.and_then(|at| own.get(at)) else {
                let inputs = own.iter().map(|input| input.name.clone()).collect();
                return Err(RunError::Unexpected { name: (*name).to_owned(), inputs });
            };
            check(input, view, &mut symbols)?;
            let settled = if input.chained { None } else { view.settled() };
            values[input.slot] = Some(settled.map_or(Value::Lent(view), Value::from));
        }
        let missing = own.iter().find(|input| values[input.slot].is_none());
        missing.map_or(Ok(()), |input| Err(RunError::Missing(input.name.clone())))
    }

    fn block<'a>(
        &self,
        block: &Block,
        values: &mut [Option<Value<'a>>],
        places: &mut [Place<'_, '_>],
        held: &mut Held,
    ) -> Result<(), RunError> {
        for step in &block.steps {
            // What was made since is counted anew before it is much.
            if held.since > self.allowed.bytes / HELD {
                *held = Held { counted: self.held(values), since: 0 };
            }
            let allowed = Allowed { held: held.counted, ..self.allowed };
            match &step.work {
                Work::Chain(chain) => {
                    let place =
                        self.plan.outputs.iter().zip(&mut *places).find(|(output, place)| {
                            output.slot == chain.output
                                && output.alone
                                && matches!(place, Place::Given(_))
                        });
                    let made = self.chain(chain, values, place, &allowed)?;
                    held.since = held.since.saturating_add(made.as_ref().map_or(0, bytes));
                    values[chain.output] = made.map(Value::from);
                }
                Work::Whole { call, code, inputs, outputs } => {
                    // The last reader gets the array itself, and may work in its place.
                    let mut own: Vec<Option<Value<'a>>> = Vec::with_capacity(inputs.len());
                    own.extend(inputs.iter().map(|input| match input.last {
                        true => values[input.slot?].take(),
                        false => values[input.slot?].clone(),
                    }));
                    let error =
                        |why| RunError::Node { node: call.node.clone(), op: call.op.clone(), why };
                    // Inputs, constants and what was reshaped have not been asked yet.
                    for value in own.iter().flatten().filter(|own| own.shape().contains(&0)) {
                        allowed.room(value.shape(), value.dtype()).map_err(error)?;
                    }
                    let made = code(call, &allowed, &mut Inputs(own)).map_err(error)?;
                    for (slot, value) in outputs.iter().zip(made) {
                        if let Some(slot) = slot {
                            let own = value.made().map_or(0, |array| bytes(array));
                            held.since = held.since.saturating_add(own);
                            values[*slot] = Some(value);
                        }
                    }
                }
                Work::If { call, condition, branches: [then, other], outputs } => {
                    let error = |why: &str| RunError::Node {
                        node: call.node.clone(),
                        op: call.op.clone(),
                        why: why.into(),
                    };
                    let condition = values[*condition].as_ref().map(Value::view);
                    let condition = condition.as_ref().and_then(AnyView::typed::<bool>);
                    let condition = condition.filter(|condition| condition.len() == 1);
                    let Some(taken) = condition.and_then(|all| all.first().copied()) else {
                        return Err(error("its condition is not one truth value"));
                    };
                    let branch = if taken { then } else { other };
                    self.block(branch, values, places, held)?;
                    for (slot, result) in outputs.iter().zip(&branch.results) {
                        let value = values[*result].clone();
                        if let Some(slot) = slot {
                            values[*slot] = value;
                        }
                    }
                }
            }
            for slot in &step.last {
                values[*slot] = None;
            }
        }
        Ok(())
    }

    /// The bytes of the results that are held; arrays that several values see count once, constants not.
    fn held(&self, values: &[Option<Value<'_>>]) -> usize {
        let constants = self.plan.constants.iter().map(|(_, array)| Arc::as_ptr(array));
        let mut counted: HashSet<*const AnyArray> = constants.collect();
        let made = values.iter().flatten().filter_map(Value::made);
        let fresh = made.filter(|array| counted.insert(Arc::as_ptr(array)));
        fresh.fold(0, |sum, array| sum.saturating_add(bytes(array)))
    }

    /// The result of a chain, where it has no place.
    fn chain(
        &self,
        chain: &Chain,
        values: &[Option<Value<'_>>],
        place: Option<(&Output, &mut Place<'_, '_>)>,
        allowed: &Allowed,
    ) -> Result<Option<AnyArray>, RunError> {
        let view = |slot: &Slot| values[*slot].as_ref().map(Value::view);
        let operands: Option<Vec<AnyView<'_>>> = chain.operands.iter().map(view).collect();
        let operands = operands.ok_or_else(|| chain.error(0, "an operand is missing".into()))?;
        chain.with(&operands, |program| {
            let run = allowed.on(program, &operands);
            let failed = |error| chain.failed(error);
            if let Some((output, place)) = place
                && let Place::Given(given) = std::mem::replace(place, Place::Filled)
            {
                if !surely_fits(program.dtype(), &operands, given) {
                    fits(&output.name, (program.dtype(), &run.shape().map_err(failed)?), given)?;
                }
                run.write(given).map_err(failed)?;
                return Ok(None);
            }
            if !allowed.surely_has_room(program.dtype(), &operands) {
                let room = allowed.room(&run.shape().map_err(failed)?, program.dtype());
                room.map_err(|why| chain.error(usize::MAX, why))?;
            }
            run.compute().map(Some).map_err(failed)
        })
    }
}

/// What the results take that are held: when they were last counted, and what was made since.
#[derive(Default)]
struct Held {
    counted: usize,
    since: usize,
}

/// They are counted anew when this part of the limit was made: so far can they go beyond it.
const HELD: usize = 64;

/// What the elements of an array take.
fn bytes(array: &AnyArray) -> usize {
    array.view().len().saturating_mul(array.dtype().size())
}

fn unwritten(name: &str, why: &NodeError) -> RunError {
    RunError::Value { name: name.to_owned(), why: why.to_string() }
}

/// Where an output goes.
enum Place<'p, 'v> {
    /// Into memory of its own.
    Fresh,
    /// Into the caller's.
    Given(&'p mut AnyViewMut<'v>),
    /// It is there.
    Filled,
}

/// Holds a place to the output that goes there.
fn fits(
    name: &str,
    (dtype, shape): (DType, &[usize]),
    place: &AnyViewMut<'_>,
) -> Result<(), RunError> {
    if (dtype, shape) == (place.dtype(), place.shape()) {
        return Ok(());
    }
    let (made, given) = ((dtype, shape.to_vec()), (place.dtype(), place.shape().to_vec()));
    Err(RunError::Place { name: name.to_owned(), made, given })
}

/// As [`fits`], for element-wise steps on some operands, before the shape of their result is known:
/// all have the shape of the place. False says nothing, since not every operand need be stretched to:
/// of some only the type is asked for.
fn surely_fits(dtype: DType, operands: &[AnyView<'_>], place: &AnyViewMut<'_>) -> bool {
    let alike = |operand: &AnyView<'_>| operand.shape() == place.shape();
    dtype == place.dtype() && !operands.is_empty() && operands.iter().all(alike)
}

/// Holds an array to what the model declares of an input.
fn check<'p>(
    input: &'p Input,
    view: &AnyView<'_>,
    symbols: &mut HashMap<&'p str, usize>,
) -> Result<(), RunError> {
    let Some(Declared::Tensor { element, dims }) = &input.declared else { return Ok(()) };
    let name = || input.name.clone();
    if let Some(element) = *element
        && value::held(element) != view.dtype()
    {
        return Err(RunError::DType { name: name(), expected: element, given: view.dtype() });
    }
    let Some(dims) = dims else { return Ok(()) };
    let agrees = |(dim, size): (&DeclaredDim, &usize)| match dim {
        DeclaredDim::Size(own) => own == size,
        DeclaredDim::Symbol(_) | DeclaredDim::Unknown => true,
    };
    let sizes = view.shape();
    if dims.len() != sizes.len() || !dims.iter().zip(sizes).all(agrees) {
        let (declared, given) = (dims.clone(), sizes.to_vec());
        return Err(RunError::Shape { name: name(), declared, given });
    }
    for (dim, &size) in dims.iter().zip(sizes) {
        let DeclaredDim::Symbol(symbol) = dim else { continue };
        let known = *symbols.entry(symbol).or_insert(size);
        if known != size {
            let (symbol, sizes) = (symbol.clone(), [known, size]);
            return Err(RunError::Symbol { symbol, sizes, name: name() });
        }
    }
    Ok(())
}
