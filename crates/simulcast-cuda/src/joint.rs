//! Programs of several results on a device: values and gradients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use simulcast::{JointProgram, Rule};
use simulcast_core::OwnedRule;

use crate::array::{DeviceArray, DeviceView, DeviceViewMut};
use crate::device::Device;
use crate::error::Error;
use crate::plan::{Layout, Plan, contiguous};
use crate::program::{OnDevice, Ready, layout, on_same_device};
use crate::stream::Stream;
use crate::tuning::PLANS_KEPT;

/// A program of several results on a device.
///
/// ```no_run
/// use ndarray::array;
/// use simulcast::{AnyView, DType, TypedProgram};
/// use simulcast_cuda::{Device, OnDevice as _};
///
/// let f32 = DType::F32;
/// let loss = TypedProgram::parse("mean((x - m) ** 2)", &[("x", f32), ("m", f32)])?.value_and_grad(&["m"])?;
/// let device = Device::new(0)?;
/// let (x, m) = (array![[1_f32, 2.0], [3.0, 6.0]], array![2_f32, 2.0]);
/// let (x, m) = (device.upload(&AnyView::from(&x))?, device.upload(&AnyView::from(&m))?);
/// let made = loss.on_device(&device).run(&[&x, &m])?;
/// assert_eq!(made[1].download()?.typed::<f32>(), Some(array![0_f32, -2.0].view().into_dyn()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct JointDeviceProgram {
    program: Arc<JointProgram>,
    device: Device,
    rule: OwnedRule,
    plans: Arc<Mutex<HashMap<Vec<Layout>, Arc<Ready>>>>,
}

impl OnDevice for JointProgram {
    type Program = JointDeviceProgram;

    fn on_device(&self, device: &Device) -> JointDeviceProgram {
        JointDeviceProgram {
            program: Arc::new(self.clone()),
            device: device.clone(),
            rule: Rule::Numpy.into(),
            plans: Arc::default(),
        }
    }
}

impl JointDeviceProgram {
    /// Under another rule than NumPy's.
    #[must_use]
    pub fn rule(self, rule: Rule<'_>) -> Self {
        Self { rule: rule.into(), plans: Arc::default(), ..self }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &JointProgram {
        &self.program
    }

    /// Its device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The results for some arrays, on the device's default stream: the call returns when all is launched.
    ///
    /// # Errors
    ///
    /// As [`DeviceProgram::run`](crate::DeviceProgram::run).
    pub fn run(&self, operands: &[&DeviceArray]) -> Result<Vec<DeviceArray>, Error> {
        let views: Vec<DeviceView<'_>> = operands.iter().map(|own| own.view()).collect();
        self.run_on(&views, &self.device.default_stream())
    }

    /// The results for some views, on a stream.
    ///
    /// # Errors
    ///
    /// As [`JointDeviceProgram::run`].
    pub fn run_on(
        &self,
        operands: &[DeviceView<'_>],
        stream: &Stream,
    ) -> Result<Vec<DeviceArray>, Error> {
        let ready = self.ready(operands, stream)?;
        let made = self
            .program
            .dtypes()
            .iter()
            .zip(&ready.shapes)
            .map(|(&dtype, shape)| stream.new_array(dtype, shape))
            .collect::<Result<Vec<DeviceArray>, Error>>()?;
        let outs: Vec<u64> = made.iter().map(DeviceArray::address).collect();
        // SAFETY: new arrays of the results' shapes, on the same stream, which nothing else has yet.
        unsafe { ready.run(operands, &outs, stream)? };
        Ok(made)
    }

    /// The results for some views, in memory that `allocate` gives for each result by its place and its shape, on a
    /// stream. They are contiguous.
    ///
    /// # Safety
    ///
    /// `allocate` gives the address of room for the result's type and that shape, aligned to an element, which shares
    /// nothing with the operands nor with other results and is there until what is launched is done.
    ///
    /// # Errors
    ///
    /// As [`JointDeviceProgram::run`], and those of `allocate`.
    pub unsafe fn run_new<E: From<Error>>(
        &self,
        operands: &[DeviceView<'_>],
        stream: &Stream,
        mut allocate: impl FnMut(usize, &[usize]) -> Result<u64, E>,
    ) -> Result<(), E> {
        let ready = self.ready(operands, stream)?;
        let mut outs = Vec::with_capacity(ready.shapes.len());
        for (place, shape) in ready.shapes.iter().enumerate() {
            outs.push(allocate(place, shape)?);
        }
        if outs.iter().all(|address| address % 16 == 0) {
            // SAFETY: by the condition of this function; vectors begin at the addresses as in new arrays.
            unsafe { ready.run(operands, &outs, stream)? };
            return Ok(());
        }
        for (made, &address) in self.run_on(operands, stream)?.iter().zip(&outs) {
            let strides = contiguous(made.shape());
            // SAFETY: by the condition of this function.
            let mut out = unsafe {
                DeviceViewMut::from_raw(
                    &self.device,
                    made.dtype(),
                    address,
                    made.shape(),
                    &strides,
                )?
            };
            crate::copy_into(&made.view(), &mut out, stream)?;
        }
        Ok(())
    }

    /// The plan for views, with its kernels; the stream waits for what makes them.
    fn ready(&self, operands: &[DeviceView<'_>], stream: &Stream) -> Result<Arc<Ready>, Error> {
        on_same_device(&self.device, "the stream", stream.device())?;
        for (input, view) in self.program.operands().iter().zip(operands) {
            on_same_device(&self.device, &input.name, &view.device)?;
            if input.dtype != view.dtype {
                let (name, expected) = (input.name.clone(), input.dtype);
                return Err(Error::Mistyped { name, expected, given: view.dtype });
            }
        }
        operands.iter().filter_map(|view| view.array).try_for_each(|own| own.used_on(stream))?;
        let key: Vec<Layout> = operands.iter().map(layout).collect();
        let known = self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(ready) = known {
            return Ok(ready);
        }
        let shapes: Vec<&[usize]> = operands.iter().map(|view| &view.shape[..]).collect();
        let lowered = self.program.lower(&shapes, self.rule.as_rule())?;
        let plan = Plan::joint(&lowered, &key, self.device.limits());
        let plan = plan.ok_or_else(|| Error::Layout { shape: Vec::new(), given: 0 })?;
        let ready = Arc::new(Ready::new(&self.device, plan)?);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= PLANS_KEPT {
            plans.clear();
        }
        plans.insert(key, Arc::clone(&ready));
        Ok(ready)
    }
}
