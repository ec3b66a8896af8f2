//! The devices that can hold a model: CPU, GPUs, accelerators.

use crate::error::Result;
use crate::ffi::backend::{self, RawDevice};

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The processor, with the memory of the host.
    Cpu,
    /// A GPU with memory of its own.
    Gpu,
    /// A GPU that uses the memory of the host.
    IntegratedGpu,
    /// Something that helps the CPU, such as a BLAS library.
    Accelerator,
}

/// A device that llama.cpp can compute on.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) raw: RawDevice,
    /// The short name by which a device is chosen, such as `CUDA0`.
    pub name: String,
    /// What the driver calls it.
    pub description: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Free memory in bytes; 0 where the backend does not say.
    pub memory_free: u64,
    /// All of its memory in bytes; 0 where the backend does not say.
    pub memory_total: u64,
}

impl Device {
    /// Whether layers of a model can be offloaded to it.
    pub fn is_gpu(&self) -> bool {
        matches!(self.kind, DeviceKind::Gpu | DeviceKind::IntegratedGpu)
    }

    /// All devices of this process.
    ///
    /// ```
    /// let devices = llama_spec::Device::all()?;
    /// assert!(devices.iter().any(|device| device.kind == llama_spec::DeviceKind::Cpu));
    /// # Ok::<_, llama_spec::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Backend`] when llama.cpp cannot be used here.
    pub fn all() -> Result<Vec<Self>> {
        backend::devices()
    }
}
