//! Programs on a device: planned once for arrays that lie alike, launched for each call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use simulcast::program::Hoisting;
use simulcast::program::lowered::{LeafSource, Pass};
use simulcast::{DType, Rule, TypedProgram};
use simulcast_core::OwnedRule;

use crate::array::{DeviceArray, DeviceView, DeviceViewMut, Memory, is_apart};
use crate::device::{Device, Kernel};
use crate::error::Error;
use crate::launch::{Launch, Place};
use crate::plan::{Layout, Plan, PlannedPass, contiguous};
use crate::source::text;
use crate::stream::Stream;
use crate::tuning::PLANS_KEPT;

/// A program on a device: what [`OnDevice::on_device`] gives.
///
/// It is compiled for a kind of layout when that comes first, and the kernels are kept in memory and on disk; how each
/// call is launched is kept for the layouts that came last.
#[derive(Clone, Debug)]
pub struct DeviceProgram {
    program: Arc<TypedProgram>,
    device: Device,
    rule: OwnedRule,
    hoisting: Hoisting,
    plans: Arc<Mutex<HashMap<Key, Arc<Ready>>>>,
}

/// What a plan depends on: how every operand lies, and the result where it has a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    operands: Vec<Layout>,
    out: Option<Layout>,
}

/// A plan whose kernels are loaded.
#[derive(Debug)]
pub(crate) struct Ready {
    passes: Vec<ReadyPass>,
    pub(crate) shapes: Vec<Vec<usize>>,
}

#[derive(Debug)]
struct ReadyPass {
    launches: Vec<(Kernel, Launch)>,
    sources: Vec<LeafSource>,
    scratch_bytes: usize,
    result_bytes: usize,
    place: Option<usize>,
    spent: Vec<usize>,
}

/// Programs for devices.
pub trait OnDevice {
    /// The program for a device.
    ///
    /// ```no_run
    /// use ndarray::array;
    /// use simulcast::{AnyView, DType, TypedProgram};
    /// use simulcast_cuda::{Device, OnDevice as _};
    ///
    /// let f32 = DType::F32;
    /// let program = TypedProgram::parse("(x - mean) / std", &[("x", f32), ("mean", f32), ("std", f32)])?;
    /// let device = Device::new(0)?;
    /// let program = program.on_device(&device);
    /// let (x, mean, std) = (array![[1_f32, 2.0], [3.0, 6.0]], array![2_f32, 4.0], array![[1_f32], [2.0]]);
    /// let x = device.upload(&AnyView::from(&x))?;
    /// let (mean, std) = (device.upload(&AnyView::from(&mean))?, device.upload(&AnyView::from(&std))?);
    /// let y = program.run(&[&x, &mean, &std])?;
    /// assert_eq!(y.download()?.typed::<f32>(), Some(array![[-1_f32, -2.0], [0.5, 1.0]].view().into_dyn()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn on_device(&self, device: &Device) -> Self::Program;

    /// What it becomes.
    type Program;
}

impl OnDevice for TypedProgram {
    type Program = DeviceProgram;

    fn on_device(&self, device: &Device) -> DeviceProgram {
        DeviceProgram {
            program: Arc::new(self.clone()),
            device: device.clone(),
            rule: Rule::Numpy.into(),
            hoisting: Hoisting::WherePays,
            plans: Arc::default(),
        }
    }
}

impl DeviceProgram {
    /// Under another rule than NumPy's.
    #[must_use]
    pub fn rule(self, rule: Rule<'_>) -> Self {
        Self { rule: rule.into(), plans: Arc::default(), ..self }
    }

    /// Which sub-expressions are computed at their own shape first.
    #[must_use]
    pub fn hoisting(self, hoisting: Hoisting) -> Self {
        Self { hoisting, plans: Arc::default(), ..self }
    }

    /// The rule that it runs under.
    pub(crate) const fn own_rule(&self) -> &OwnedRule {
        &self.rule
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &TypedProgram {
        &self.program
    }

    /// Its device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The result for some arrays, on the device's default stream: the call returns when all is launched.
    ///
    /// # Errors
    ///
    /// Where the arrays are not those that the program was made for, lie elsewhere, do not broadcast, or memory is
    /// short; where a kernel is not compiled; where the driver fails.
    pub fn run(&self, operands: &[&DeviceArray]) -> Result<DeviceArray, Error> {
        let views: Vec<DeviceView<'_>> = operands.iter().map(|own| own.view()).collect();
        self.run_on(&views, &self.device.default_stream())
    }

    /// The result for some views, on a stream.
    ///
    /// # Errors
    ///
    /// As [`DeviceProgram::run`].
    pub fn run_on(
        &self,
        operands: &[DeviceView<'_>],
        stream: &Stream,
    ) -> Result<DeviceArray, Error> {
        self.on_same_device("the stream", stream.device())?;
        let ready = self.ready(operands, None)?;
        self.used(operands, stream)?;
        let made = stream.new_array(self.program.dtype(), ready.shape())?;
        // SAFETY: a new array of the result's shape, on the same stream, which nothing else has yet.
        unsafe { ready.run(operands, &[made.address()], stream)? };
        Ok(made)
    }

    /// The result for some views, in memory that `allocate` gives for its shape, on a stream: that of another
    /// library, for its own array. It is contiguous.
    ///
    /// # Safety
    ///
    /// `allocate` gives the address of room for the program's type and that shape, aligned to an element, which shares
    /// nothing with the operands and is there until what is launched is done.
    ///
    /// # Errors
    ///
    /// As [`DeviceProgram::run`], and those of `allocate`.
    pub unsafe fn run_new<E: From<Error>>(
        &self,
        operands: &[DeviceView<'_>],
        stream: &Stream,
        allocate: impl FnOnce(&[usize]) -> Result<u64, E>,
    ) -> Result<(), E> {
        self.on_same_device("the stream", stream.device())?;
        let ready = self.ready(operands, None)?;
        let address = allocate(ready.shape())?;
        if address % 16 != 0 {
            let (dtype, shape) = (self.program.dtype(), ready.shape());
            // SAFETY: by the condition of this function.
            let mut out = unsafe {
                DeviceViewMut::from_raw(&self.device, dtype, address, shape, &contiguous(shape))?
            };
            self.run_into(operands, &mut out, stream)?;
            return Ok(());
        }
        self.used(operands, stream)?;
        // SAFETY: by the condition of this function; vectors begin at the address as in a new array.
        unsafe { ready.run(operands, &[address], stream)? };
        Ok(())
    }

    /// The result for some views into `out`, to whose shape it stretches, on a stream. Where `out` shares memory with
    /// an operand, the result is as if all operands had been read first.
    ///
    /// # Errors
    ///
    /// As [`DeviceProgram::run`], and where the result does not fit `out`.
    pub fn run_into(
        &self,
        operands: &[DeviceView<'_>],
        out: &mut DeviceViewMut<'_>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let own = &out.view;
        let expected = self.program.dtype();
        if own.dtype != expected {
            return Err(Error::Mistyped { name: "out".into(), expected, given: own.dtype });
        }
        let (begin, end) = own.extent();
        let meets = |view: &DeviceView<'_>| {
            let (first, last) = view.extent();
            first < end && begin < last
        };
        if operands.iter().any(meets) {
            let made = self.run_on(operands, stream)?;
            return crate::copy_into(&made.view(), out, stream);
        }
        self.on_same_device("out", &own.device)?;
        self.on_same_device("the stream", stream.device())?;
        let ready = self.ready(operands, Some(own))?;
        self.used(operands, stream)?;
        if let Some(array) = own.array {
            array.used_on(stream)?;
        }
        // SAFETY: memory for every element of `out`, which lies apart from the operands.
        unsafe { ready.run(operands, &[own.address], stream) }
    }

    /// The shape of the result.
    ///
    /// # Errors
    ///
    /// Where the operands do not broadcast.
    pub fn shape(&self, operands: &[&[usize]]) -> Result<Vec<usize>, Error> {
        let passes = self.program.lower(operands, self.rule.as_rule(), self.hoisting)?;
        Ok(passes.last().map(|pass| pass.result_shape().to_vec()).unwrap_or_default())
    }

    /// The kernels that a call would launch, as text, in their order.
    ///
    /// # Errors
    ///
    /// As [`DeviceProgram::run`], but for the driver.
    pub fn kernels(&self, operands: &[DeviceView<'_>]) -> Result<Vec<String>, Error> {
        let plan = self.plan(operands, None)?;
        let own = |pass: &PlannedPass| -> Vec<String> {
            pass.launches.iter().map(|launch| pass.text(launch)).collect()
        };
        Ok(plan.passes.iter().flat_map(own).collect())
    }

    fn on_same_device(&self, name: &str, given: &Device) -> Result<(), Error> {
        on_same_device(&self.device, name, given)
    }

    /// The stream waits for what makes the operands.
    fn used(&self, operands: &[DeviceView<'_>], stream: &Stream) -> Result<(), Error> {
        operands.iter().filter_map(|view| view.array).try_for_each(|array| array.used_on(stream))
    }

    fn plan(
        &self,
        operands: &[DeviceView<'_>],
        out: Option<&DeviceView<'_>>,
    ) -> Result<Plan, Error> {
        let shapes: Vec<&[usize]> = operands.iter().map(|view| &view.shape[..]).collect();
        let passes = self.program.lower(&shapes, self.rule.as_rule(), self.hoisting)?;
        for (input, view) in self.program.operands().iter().zip(operands) {
            self.on_same_device(&input.name, &view.device)?;
            if input.dtype != view.dtype {
                let (name, expected) = (input.name.clone(), input.dtype);
                return Err(Error::Mistyped { name, expected, given: view.dtype });
            }
        }
        let shape = passes.last().map_or(&[][..], Pass::result_shape);
        if let Some(out) = out {
            simulcast::resolve(Rule::To { target: &out.shape }, &[shape])?;
        }
        let layouts: Vec<Layout> = operands.iter().map(layout).collect();
        let plan = Plan::new(&passes, &layouts, out.map(layout).as_ref(), self.device.limits());
        plan.ok_or_else(|| Error::Layout {
            shape: shape.to_vec(),
            given: self.program.dtype().size(),
        })
    }

    /// The plan for views, with its kernels.
    fn ready(
        &self,
        operands: &[DeviceView<'_>],
        out: Option<&DeviceView<'_>>,
    ) -> Result<Arc<Ready>, Error> {
        let key = Key { operands: operands.iter().map(layout).collect(), out: out.map(layout) };
        let known = self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(ready) = known
            && operands.len() == self.program.operands().len()
            && operands
                .iter()
                .zip(self.program.operands())
                .all(|(view, input)| view.dtype == input.dtype && view.device == self.device)
        {
            return Ok(ready);
        }
        let plan = self.plan(operands, out)?;
        let ready = Arc::new(Ready::new(&self.device, plan)?);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= PLANS_KEPT {
            plans.clear();
        }
        plans.insert(key, Arc::clone(&ready));
        Ok(ready)
    }
}

/// Refuses what lies on another device.
pub(crate) fn on_same_device(own: &Device, name: &str, given: &Device) -> Result<(), Error> {
    if given == own {
        return Ok(());
    }
    let (expected, given) = (own.index(), given.index());
    Err(Error::Devices { expected, given, name: name.into() })
}

/// How a view lies.
pub(crate) fn layout(view: &DeviceView<'_>) -> Layout {
    Layout {
        shape: view.shape.clone(),
        strides: view.strides.clone(),
        low_bits: (view.address % 16) as usize,
    }
}

impl PlannedPass {
    /// The text of the kernel of a launch.
    fn text(&self, launch: &Launch) -> String {
        let partial = self.partial.as_ref().filter(|_| launch.joins_partial);
        text(partial.unwrap_or(&self.body), &launch.kind)
    }
}

impl Ready {
    /// The shape of the only result.
    fn shape(&self) -> &[usize] {
        self.shapes.first().map_or(&[], Vec::as_slice)
    }

    /// A plan with its kernels, which are compiled where they are not known.
    pub(crate) fn new(device: &Device, plan: Plan) -> Result<Self, Error> {
        let mut passes = Vec::with_capacity(plan.passes.len());
        for mut pass in plan.passes {
            let mut launches = Vec::with_capacity(pass.launches.len());
            for launch in std::mem::take(&mut pass.launches) {
                launches.push((device.kernel(&pass.text(&launch))?, launch));
            }
            passes.push(ReadyPass {
                launches,
                sources: pass.sources,
                scratch_bytes: pass.scratch_bytes,
                result_bytes: pass.result_bytes,
                place: pass.place,
                spent: pass.spent,
            });
        }
        Ok(Self { passes, shapes: plan.shapes })
    }

    /// Launches everything.
    ///
    /// # Safety
    ///
    /// The operands lie as the plan was made for, and so do the results, whose addresses are `outs`; no operand shares
    /// memory with them; all of it is there until what is launched is done.
    pub(crate) unsafe fn run(
        &self,
        operands: &[DeviceView<'_>],
        outs: &[u64],
        stream: &Stream,
    ) -> Result<(), Error> {
        let _entered = stream.device().enter()?;
        let mut made: Vec<Option<Memory>> = Vec::with_capacity(self.passes.len());
        let mut addresses: Vec<u64> = Vec::with_capacity(self.passes.len());
        for pass in &self.passes {
            let out = pass.place.and_then(|place| outs.get(place).copied());
            let memory = match out {
                Some(_) => None,
                None => Some(stream.memory(pass.result_bytes)?),
            };
            let scratch = match pass.scratch_bytes {
                0 => None,
                bytes => Some(stream.memory(bytes)?),
            };
            let result = out.or(memory.as_ref().map(|memory| memory.address)).unwrap_or(0);
            for (kernel, launch) in &pass.launches {
                let mut place = [0_u8; 1024];
                let mut long;
                let args = match place.get_mut(..launch.args.len()) {
                    Some(args) => args,
                    None => {
                        long = vec![0; launch.args.len()];
                        &mut long[..]
                    }
                };
                args.copy_from_slice(&launch.args);
                for (word, &(from, offset)) in args.chunks_exact_mut(8).zip(&launch.addresses) {
                    let base = match from {
                        Place::Out => result,
                        Place::Scratch => scratch.as_ref().map_or(0, |memory| memory.address),
                        Place::Leaf(n) => match pass.sources.get(n) {
                            Some(LeafSource::Operand(at)) => operands[*at].address,
                            Some(LeafSource::Pass(at)) => addresses[*at],
                            None => 0,
                        },
                    };
                    word.copy_from_slice(&base.wrapping_add_signed(offset as i64).to_ne_bytes());
                }
                // SAFETY: the kernel's own arguments, with the arrays that they were made for; what was made here is
                // freed in the order of the stream.
                unsafe { stream.launch(*kernel, launch.grid, args)? };
            }
            made.push(memory);
            addresses.push(result);
            for &spent in &pass.spent {
                made[spent] = None;
            }
        }
        Ok(())
    }
}

/// Runs one pass that reads one array.
pub(crate) fn run_one(
    pass: PlannedPass,
    from: &DeviceView<'_>,
    out: u64,
    stream: &Stream,
) -> Result<(), Error> {
    if let Some(array) = from.array {
        array.used_on(stream)?;
    }
    let plan = Plan { passes: vec![pass], shapes: Vec::new() };
    let ready = Ready::new(stream.device(), plan)?;
    // SAFETY: the callers plan the pass for these two arrays, which lie apart.
    unsafe { ready.run(std::slice::from_ref(from), &[out], stream) }
}

/// Whether results can be written at a place of that layout.
pub(crate) fn check_out(out: &DeviceView<'_>, dtype: DType) -> Result<(), Error> {
    if out.dtype != dtype {
        return Err(Error::Mistyped { name: "out".into(), expected: dtype, given: out.dtype });
    }
    if is_apart(&out.shape, &out.strides) { Ok(()) } else { Err(Error::RepeatedOut) }
}
