//! Models: loading them, and what they say about themselves.

use crate::context::{Context, ContextOptions};
use crate::devices::Device;
use crate::error::{Error, Result};
use crate::ffi::backend;
use crate::ffi::model::{LoadStop, RawModel};
use crate::ffi::params::{self, ModelArrays, OVERRIDE_LENGTH};
use crate::file::ModelFile;
use crate::options::{GpuLayers, LoadMode, MetadataValue, SplitMode};
use crate::vocab::Vocab;
use llama_sys as sys;
use std::ffi::CString;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A loaded model. Cloning it shares the weights; contexts keep it alive.
///
/// ```
/// use llama_spec::Model;
/// let model = Model::load(llama_spec_tests::zoo::file("target"))?;
/// let tokens = model.vocab().tokenize("abc")?;
/// assert_eq!(model.vocab().text(&tokens), "abc");
/// # Ok::<_, llama_spec::Error>(())
/// ```
#[derive(Clone)]
pub struct Model(Arc<Inner>);

struct Inner {
    raw: RawModel,
    file: ModelFile,
    mtp: bool,
    /// Making a context registers things in the model, so only one is made at a time.
    making: Mutex<()>,
}

impl Model {
    /// Loads a model with the default options: on GPUs if there are any, all of it.
    ///
    /// # Errors
    /// As [`ModelBuilder::load`].
    pub fn load(path: impl Into<PathBuf>) -> Result<Self> {
        Self::builder(path).load()
    }

    /// Options for loading a model from `path`: a GGUF file, or the first part of a split one.
    pub fn builder(path: impl Into<PathBuf>) -> ModelBuilder {
        ModelBuilder::new(path.into())
    }

    /// Options for loading what was opened before, so that its header is not read again.
    ///
    /// ```
    /// use llama_spec::{Model, ModelFile};
    /// let file = ModelFile::open(llama_spec_tests::zoo::file("target"))?;
    /// let model = Model::builder_of(&file).load()?;
    /// assert_eq!(model.path(), file.path());
    /// # Ok::<_, llama_spec::Error>(())
    /// ```
    pub fn builder_of(file: &ModelFile) -> ModelBuilder {
        ModelBuilder { file: Some(file.clone()), ..ModelBuilder::new(file.path().to_owned()) }
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &Path {
        self.0.file.path()
    }

    /// What the header of this file says.
    pub fn file(&self) -> &ModelFile {
        &self.0.file
    }

    /// Its vocabulary.
    pub fn vocab(&self) -> Vocab<'_> {
        Vocab::new(&self.0.raw)
    }

    /// A context with these options.
    ///
    /// # Errors
    /// [`Error::Setting`] when options are out of range or contradict each other, [`Error::Context`] when llama.cpp refuses.
    pub fn context(&self, options: &ContextOptions) -> Result<Context> {
        Context::new(self, options)
    }

    /// A line about the model: architecture, size, quantization.
    pub fn description(&self) -> String {
        self.0.raw.description()
    }

    /// The architecture, such as `llama` or `qwen35`.
    pub fn architecture(&self) -> String {
        self.metadata("general.architecture").unwrap_or_default()
    }

    /// A scalar of the metadata, as text; arrays are not available here.
    pub fn metadata(&self, key: &str) -> Option<String> {
        self.0.raw.metadata(key)
    }

    /// All scalars of the metadata as text, in the order of the file.
    pub fn metadata_entries(&self) -> impl Iterator<Item = (String, String)> + '_ {
        (0..self.0.raw.ask(sys::llama_model_meta_count)).filter_map(|index| self.0.raw.metadata_at(index))
    }

    /// The chat template with this name, or the default one.
    pub fn chat_template(&self, name: Option<&str>) -> Option<String> {
        self.0.raw.chat_template(name)
    }

    /// Parameters.
    pub fn parameters(&self) -> u64 {
        self.0.raw.ask(sys::llama_model_n_params)
    }

    /// Bytes of all tensors.
    pub fn size_bytes(&self) -> u64 {
        self.0.raw.ask(sys::llama_model_size)
    }

    /// The context length it was trained for, in tokens.
    pub fn trained_context(&self) -> u32 {
        self.count(sys::llama_model_n_ctx_train)
    }

    /// The width of the hidden state.
    pub fn width(&self) -> u32 {
        self.count(sys::llama_model_n_embd)
    }

    /// The width of a row of embeddings it gives out.
    pub fn output_width(&self) -> u32 {
        self.count(sys::llama_model_n_embd_out)
    }

    /// Layers, without those of multi-token prediction.
    pub fn layers(&self) -> u32 {
        self.count(sys::llama_model_n_layer)
    }

    /// Layers of multi-token prediction that the file declares.
    pub fn mtp_layers(&self) -> u32 {
        self.count(sys::llama_model_n_layer_nextn)
    }

    /// Layers of the target that a dependent draft (EAGLE-3, DFlash) reads; empty for other models.
    ///
    /// # Errors
    /// [`Error::Backend`] when llama.cpp cannot tell.
    pub fn target_layers(&self) -> Result<Vec<u32>> {
        let layers =
            self.0.raw.target_layers().map_err(|failed| Error::Backend { reason: failed.failure.to_string() })?;
        Ok(layers.into_iter().filter_map(|layer| u32::try_from(layer).ok()).collect())
    }

    /// Whether it can decode token by token, which is what generating needs.
    pub fn has_decoder(&self) -> bool {
        self.0.raw.ask(sys::llama_model_has_decoder)
    }

    /// Whether it has an encoder that must see the prompt first.
    pub fn has_encoder(&self) -> bool {
        self.0.raw.ask(sys::llama_model_has_encoder)
    }

    /// Whether its memory is a recurrent state, from which single tokens cannot be removed.
    pub fn is_recurrent(&self) -> bool {
        self.0.raw.ask(sys::llama_model_is_recurrent)
    }

    /// Whether it mixes attention and recurrent layers.
    pub fn is_hybrid(&self) -> bool {
        self.0.raw.ask(sys::llama_model_is_hybrid)
    }

    /// Whether it is a diffusion model, which does not generate from left to right.
    pub fn is_diffusion(&self) -> bool {
        self.0.raw.ask(sys::llama_model_is_diffusion)
    }

    /// Whether both are the same loaded model.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the layers of multi-token prediction were to be loaded, see [`ModelBuilder::mtp`].
    pub fn has_loaded_mtp(&self) -> bool {
        self.0.mtp && self.mtp_layers() > 0
    }

    pub(crate) fn raw(&self) -> &RawModel {
        &self.0.raw
    }

    /// Runs `make` while no other context of this model is being made.
    pub(crate) fn exclusively<T>(&self, make: impl FnOnce() -> T) -> T {
        let _guard = self.0.making.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        make()
    }

    fn count(&self, fact: unsafe extern "C" fn(*const sys::llama_model) -> i32) -> u32 {
        self.0.raw.ask(fact).max(0) as u32
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("path", &self.path()).field("description", &self.description()).finish()
    }
}

type ProgressFn = Box<dyn FnMut(f32) -> ControlFlow<()> + Send>;

/// How to load a model.
pub struct ModelBuilder {
    path: PathBuf,
    /// What is at `path`, if it was opened before.
    file: Option<ModelFile>,
    parts: Vec<PathBuf>,
    gpu_layers: GpuLayers,
    split_mode: SplitMode,
    tensor_split: Vec<f32>,
    devices: Vec<String>,
    main_gpu: u32,
    load_mode: LoadMode,
    overrides: Vec<(String, MetadataValue)>,
    buffers: Vec<(String, String)>,
    rpc_servers: Vec<String>,
    check_tensors: bool,
    mtp: bool,
    vocab_only: bool,
    progress: Option<ProgressFn>,
}

impl ModelBuilder {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            parts: Vec::new(),
            gpu_layers: GpuLayers::default(),
            split_mode: SplitMode::default(),
            tensor_split: Vec::new(),
            devices: Vec::new(),
            main_gpu: 0,
            load_mode: LoadMode::default(),
            overrides: Vec::new(),
            buffers: Vec::new(),
            rpc_servers: Vec::new(),
            check_tensors: false,
            mtp: false,
            vocab_only: false,
            progress: None,
        }
    }

    /// All parts of a split model, in order, where their names do not say so (`...-00001-of-00003.gguf`).
    pub fn parts(mut self, parts: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.parts = parts.into_iter().map(Into::into).collect();
        self
    }

    /// How many layers go to GPUs. Default: all, if there is a GPU.
    pub fn gpu_layers(mut self, layers: GpuLayers) -> Self {
        self.gpu_layers = layers;
        self
    }

    /// How the model is divided among GPUs. Default: by layers.
    pub fn split_mode(mut self, mode: SplitMode) -> Self {
        self.split_mode = mode;
        self
    }

    /// The share of each GPU, in any unit. Default: by free memory.
    pub fn tensor_split(mut self, shares: impl Into<Vec<f32>>) -> Self {
        self.tensor_split = shares.into();
        self
    }

    /// Only these devices, by name (see [`Device::all`]). Default: all GPUs.
    pub fn devices(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.devices = names.into_iter().map(Into::into).collect();
        self
    }

    /// The GPU that holds everything with [`SplitMode::None`]. Default: the first.
    pub fn main_gpu(mut self, index: u32) -> Self {
        self.main_gpu = index;
        self
    }

    /// How the weights get into memory. Default: what suits the devices.
    pub fn load_mode(mut self, mode: LoadMode) -> Self {
        self.load_mode = mode;
        self
    }

    /// A value that takes the place of one in the file's metadata.
    pub fn metadata_override(mut self, key: impl Into<String>, value: MetadataValue) -> Self {
        self.overrides.push((key.into(), value));
        self
    }

    /// Tensors whose name matches the regular expression go to the memory of the device with this name.
    pub fn tensor_device(mut self, pattern: impl Into<String>, device: impl Into<String>) -> Self {
        self.buffers.push((pattern.into(), device.into()));
        self
    }

    /// Also use the devices of the RPC server at `host:port`; needs the feature `rpc`.
    pub fn rpc_server(mut self, address: impl Into<String>) -> Self {
        self.rpc_servers.push(address.into());
        self
    }

    /// Check the data of every tensor while loading. Default: off, since it reads everything.
    pub fn check_tensors(mut self, check: bool) -> Self {
        self.check_tensors = check;
        self
    }

    /// Also load the layers of multi-token prediction. Default: off, since they cost memory and only MTP drafting uses them.
    pub fn mtp(mut self, load: bool) -> Self {
        self.mtp = load;
        self
    }

    /// Load the vocabulary and no weights; no context can be made of such a model.
    pub fn vocab_only(mut self, only: bool) -> Self {
        self.vocab_only = only;
        self
    }

    /// Called with the share loaded so far, 0 to 1; `Break` cancels loading.
    pub fn on_progress(mut self, progress: impl FnMut(f32) -> ControlFlow<()> + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Loads it.
    ///
    /// # Errors
    /// As [`ModelFile::open`] when the file cannot be read or is something else, [`Error::NotLoadable`] when its header is of
    /// no model that llama.cpp loads, [`Error::Device`] and [`Error::Setting`] when options cannot be met, [`Error::LoadCancelled`], and [`Error::Load`] with llama.cpp's words
    /// when it refuses the file.
    pub fn load(mut self) -> Result<Model> {
        backend::init()?;
        let file = self.file()?;
        let paths = file.parts().iter().map(|part| c_path(part)).collect::<Result<Vec<_>>>()?;
        for address in &self.rpc_servers {
            backend::add_rpc_server(address)?;
        }
        let mut arrays = self.arrays()?;
        let raw_params = self.raw_params()?;
        let mut progress = self.progress.take().unwrap_or_else(|| Box::new(|_| ControlFlow::Continue(())));
        let loaded = RawModel::load(&paths, raw_params, &mut arrays, &mut *progress);
        match loaded {
            Ok(raw) => Ok(Model(Arc::new(Inner { raw, file, mtp: self.mtp, making: Mutex::new(()) }))),
            Err(LoadStop::Cancelled) => Err(Error::LoadCancelled { path: self.path }),
            Err(LoadStop::Failed(failure)) => Err(Error::Load { path: self.path, failure }),
        }
    }

    /// The header, if llama.cpp can load what it describes.
    fn file(&self) -> Result<ModelFile> {
        let file = match (self.parts.as_slice(), &self.file) {
            ([], Some(file)) => file.clone(),
            ([], None) => ModelFile::open(&self.path)?,
            (parts, _) => ModelFile::open_parts(parts)?,
        };
        if self.overrides.is_empty() && !self.vocab_only {
            return file.require_loadable().map(|()| file);
        }
        // A value that takes the place of one in the file is the caller's to answer for; without weights only the
        // tokenizer counts.
        let overridden = |place: &str| self.overrides.iter().any(|(key, _)| key == place);
        let counts = |place: &str| !self.vocab_only || place.starts_with("tokenizer.");
        let defects = file.description().defects.iter().filter(|it| counts(&it.place) && !overridden(&it.place));
        match defects.cloned().collect::<Vec<_>>() {
            defects if defects.is_empty() && (self.vocab_only || file.kind().is_model()) => Ok(file),
            defects => Err(file.not_loadable(defects)),
        }
    }

    fn raw_params(&self) -> Result<sys::llama_model_params> {
        let gpus: Vec<_> = Device::all()?.into_iter().filter(Device::is_gpu).collect();
        let layers = match self.gpu_layers {
            GpuLayers::Auto => -1,
            GpuLayers::Count(0) => 0,
            asked if gpus.is_empty() => {
                let layers = match asked {
                    GpuLayers::Count(count) => count.to_string(),
                    _ => "all".into(),
                };
                let asked = format!(
                    "a GPU for {layers} layers (this build or machine has none; use 0 layers to stay on the CPU)"
                );
                return Err(Error::Device { asked, available: names(&Device::all()?) });
            }
            GpuLayers::All => -1,
            GpuLayers::Count(count) => i32::try_from(count).unwrap_or(i32::MAX),
        };
        if self.split_mode == SplitMode::None && self.main_gpu as usize >= gpus.len().max(1) {
            return Err(Error::Device { asked: format!("GPU number {}", self.main_gpu), available: names(&gpus) });
        }
        let mut raw = params::model_defaults();
        raw.n_gpu_layers = layers;
        raw.split_mode = self.split_mode.raw();
        raw.load_mode = self.load_mode.raw();
        raw.main_gpu = self.main_gpu as i32;
        raw.check_tensors = self.check_tensors;
        raw.load_mtp = self.mtp;
        raw.vocab_only = self.vocab_only;
        Ok(raw)
    }

    fn arrays(&self) -> Result<ModelArrays> {
        let all = Device::all()?;
        let find = |name: &String| match all.iter().find(|device| &device.name == name) {
            Some(device) => Ok(device.raw),
            None => Err(Error::Device { asked: name.clone(), available: names(&all) }),
        };
        let refuse =
            |setting, value: &str, expected: String| Error::Setting { setting, value: value.to_owned(), expected };
        let mut arrays = ModelArrays::default();
        for name in &self.devices {
            arrays.devices.push(find(name)?.0.as_ptr());
        }
        if self.tensor_split.len() > params::max_devices()
            || self.tensor_split.iter().any(|share| !share.is_finite() || *share < 0.0)
        {
            let expected = format!("at most {} shares, none negative", params::max_devices());
            return Err(refuse("tensor_split", &format!("{:?}", self.tensor_split), expected));
        }
        arrays.tensor_split.clone_from(&self.tensor_split);
        for (key, value) in &self.overrides {
            let text_fits =
                !matches!(value, MetadataValue::Text(text) if text.len() > OVERRIDE_LENGTH || text.contains('\0'));
            if key.is_empty() || key.len() > OVERRIDE_LENGTH || key.contains('\0') || !text_fits {
                let expected = format!("a key and a text of 1 to {OVERRIDE_LENGTH} bytes without NUL");
                return Err(refuse("metadata_override", &format!("{key}={value}"), expected));
            }
            arrays.overrides.push(params::kv_override(key, value));
        }
        for (pattern, device) in &self.buffers {
            let pattern = CString::new(pattern.as_str())
                .map_err(|_| refuse("tensor_device", pattern, "a regular expression without NUL".into()))?;
            arrays.push_buffer(pattern, find(device)?);
        }
        Ok(arrays)
    }
}

impl fmt::Debug for ModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelBuilder")
            .field("path", &self.path)
            .field("gpu_layers", &self.gpu_layers)
            .finish_non_exhaustive()
    }
}

fn names(devices: &[Device]) -> Vec<String> {
    devices.iter().map(|device| device.name.clone()).collect()
}

/// llama.cpp opens paths as the platform's narrow strings; on Unix any bytes but NUL will do.
fn c_path(path: &Path) -> Result<CString> {
    let unusable = |found: &str| Error::NotGguf { path: path.to_owned(), found: found.to_owned() };
    #[cfg(unix)]
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec();
    #[cfg(not(unix))]
    let bytes = path.to_str().ok_or_else(|| unusable("its path is not valid Unicode"))?.as_bytes().to_vec();
    CString::new(bytes).map_err(|_| unusable("its path contains a NUL character"))
}
