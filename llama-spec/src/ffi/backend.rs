//! Starting llama.cpp, once for the process, and its devices.

use crate::devices::{Device, DeviceKind};
use crate::error::{Error, Result};
use llama_sys as sys;
use once_cell::sync::OnceCell;
use std::ffi::{CStr, CString, c_char};
use std::ptr::NonNull;

/// Starts llama.cpp at the first call; the others return what the first one found. It is never shut down: models may live
/// in statics, and the process's end frees everything.
pub(crate) fn init() -> Result<()> {
    static STARTED: OnceCell<()> = OnceCell::new();
    STARTED.get_or_try_init(start).map(|_| ())
}

fn start() -> Result<()> {
    if let Some(missing) = missing_cpu_feature() {
        let reason = format!(
            "this build uses the {missing} instructions, which this processor lacks; build on this machine with the \
             feature `native`, or pass LLAMA_SYS_CMAKE_ARGS=\"-DGGML_AVX2=OFF -DGGML_FMA=OFF -DGGML_BMI2=OFF\""
        );
        return Err(Error::Backend { reason });
    }
    // SAFETY: llama_version returns a static NUL-terminated string.
    let version = unsafe { text(sys::llama_version()) };
    if version.split('-').next() != Some(sys::LLAMA_CPP_VERSION) {
        let reason = format!(
            "llama.cpp {version} is linked, but the bindings are for {}: structs may have another layout. Build the \
             pinned source, or use a matching library",
            sys::LLAMA_CPP_VERSION
        );
        return Err(Error::Backend { reason });
    }
    super::log::install();
    // SAFETY: both may be called once at the start; the abort hook is a function of the program.
    unsafe {
        sys::ggml_set_abort_callback(Some(on_abort));
        sys::llama_backend_init();
    }
    Ok(())
}

/// The first instruction set this build of ggml needs on x86 and the processor does not have.
fn missing_cpu_feature() -> Option<&'static str> {
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    {
        // SAFETY: these functions report how ggml was compiled and read no state.
        let needs = unsafe {
            [
                (sys::ggml_cpu_has_avx(), std::is_x86_feature_detected!("avx"), "AVX"),
                (sys::ggml_cpu_has_avx2(), std::is_x86_feature_detected!("avx2"), "AVX2"),
                (sys::ggml_cpu_has_fma(), std::is_x86_feature_detected!("fma"), "FMA"),
                (sys::ggml_cpu_has_bmi2(), std::is_x86_feature_detected!("bmi2"), "BMI2"),
                (sys::ggml_cpu_has_f16c(), std::is_x86_feature_detected!("f16c"), "F16C"),
                (sys::ggml_cpu_has_avx512(), std::is_x86_feature_detected!("avx512f"), "AVX-512"),
            ]
        };
        needs.into_iter().find(|(built, present, _)| *built != 0 && !present).map(|(_, _, name)| name)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
    None
}

/// llama.cpp found its own state broken and is about to end the process. The message must not be lost, whatever the
/// subscriber does; nothing can be saved.
unsafe extern "C" fn on_abort(message: *const c_char) {
    // SAFETY: ggml.h: the message is NUL-terminated and lives during the call.
    let message = unsafe { text(message) };
    let _ = std::panic::catch_unwind(|| {
        tracing::error!(target: super::log::TARGET, "aborting: {message}");
        eprintln!("llama.cpp aborts the process: {message}");
    });
}

/// Copies a C string; empty if it is null.
///
/// # Safety
/// `pointer` is null or NUL-terminated and valid during the call.
pub(crate) unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller vouches for the pointer.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// A device handle of ggml. Devices live as long as the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawDevice(pub(crate) NonNull<sys::ggml_backend_device>);

// SAFETY: ggml registers its devices once, never frees them, and reading their properties changes nothing.
unsafe impl Send for RawDevice {}
// SAFETY: as above.
unsafe impl Sync for RawDevice {}

pub(crate) fn devices() -> Result<Vec<Device>> {
    init()?;
    // SAFETY: indexes below ggml_backend_dev_count are valid, and the properties are plain values and static strings.
    unsafe {
        let all = (0..sys::ggml_backend_dev_count()).filter_map(|index| NonNull::new(sys::ggml_backend_dev_get(index)));
        Ok(all.map(|raw| describe(RawDevice(raw))).collect())
    }
}

fn describe(raw: RawDevice) -> Device {
    let device = raw.0.as_ptr();
    let (mut free, mut total) = (0, 0);
    // SAFETY: `device` is a registered device.
    unsafe {
        sys::ggml_backend_dev_memory(device, &mut free, &mut total);
        let kind = match sys::ggml_backend_dev_type(device) {
            sys::GGML_BACKEND_DEVICE_TYPE_CPU => DeviceKind::Cpu,
            sys::GGML_BACKEND_DEVICE_TYPE_GPU => DeviceKind::Gpu,
            sys::GGML_BACKEND_DEVICE_TYPE_IGPU => DeviceKind::IntegratedGpu,
            _ => DeviceKind::Accelerator,
        };
        let (name, description) =
            (text(sys::ggml_backend_dev_name(device)), text(sys::ggml_backend_dev_description(device)));
        Device { raw, name, description, kind, memory_free: free as u64, memory_total: total as u64 }
    }
}

/// Adds the devices of an RPC server (`host:port`) to those of this process.
pub(crate) fn add_rpc_server(endpoint: &str) -> Result<()> {
    init()?;
    let refuse = |expected: &str| Error::Setting {
        setting: "rpc_server",
        value: endpoint.to_owned(),
        expected: expected.to_owned(),
    };
    let address = CString::new(endpoint).map_err(|_| refuse("an address without NUL characters"))?;
    type AddServer = unsafe extern "C" fn(*const c_char) -> sys::ggml_backend_reg_t;
    // SAFETY: the registry of the RPC backend gives out `ggml_backend_rpc_add_server` under this name, with this type
    // (ggml-rpc.h); a registry it returns is registered once and lives as long as the process.
    unsafe {
        let backend = sys::ggml_backend_reg_by_name(c"RPC".as_ptr());
        if backend.is_null() {
            return Err(refuse("a build with the feature `rpc`"));
        }
        let function = sys::ggml_backend_reg_get_proc_address(backend, c"ggml_backend_rpc_add_server".as_ptr());
        if function.is_null() {
            return Err(refuse("an RPC backend that can add servers"));
        }
        let add: AddServer = std::mem::transmute(function);
        let server = add(address.as_ptr());
        if server.is_null() {
            return Err(refuse("the address `host:port` of a running RPC server"));
        }
        sys::ggml_backend_register(server);
    }
    Ok(())
}
