//! Models that stay loaded between two engines.

use super::Loading;
use crate::file::ModelFile;
use crate::model::Model;
use crate::options::{GpuLayers, SplitMode};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Models that an engine was made of, for the next one that is made of the same. Cloning it shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelShelf(Arc<Mutex<Vec<Kept>>>);

#[derive(Debug)]
struct Kept {
    place: Place,
    /// The heads of multi-token prediction were to be loaded, too.
    mtp: bool,
    model: Model,
}

/// What a model is for, where it came from, and where it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    /// One model is not both: it would be asked for two contexts of different kinds.
    draft: bool,
    files: Vec<Stamp>,
    layers: GpuLayers,
    split_mode: SplitMode,
}

/// What tells a file from one that has taken its place.
#[derive(Clone, Debug, PartialEq)]
struct Stamp {
    path: PathBuf,
    bytes: u64,
    changed: Option<SystemTime>,
}

impl Place {
    /// Nothing when the files cannot be looked at.
    pub(crate) fn new(role: fn(f32) -> Loading, file: &ModelFile, layers: GpuLayers, split: SplitMode) -> Option<Self> {
        let stamp = |path: &PathBuf| {
            let metadata = path.metadata().ok()?;
            Some(Stamp { path: path.canonicalize().ok()?, bytes: metadata.len(), changed: metadata.modified().ok() })
        };
        let files = file.parts().iter().map(stamp).collect::<Option<_>>()?;
        Some(Self { draft: matches!(role(0.0), Loading::Draft(_)), files, layers, split_mode: split })
    }
}

impl ModelShelf {
    /// The model of this place. One that lacks heads which are wanted is given up, so that there are not two of it.
    pub(super) fn find(&self, place: &Place, mtp: bool) -> Option<Model> {
        let mut kept = self.kept();
        let found = kept.iter().position(|kept| kept.place == *place)?;
        if mtp && !kept[found].mtp {
            kept.remove(found);
            return None;
        }
        Some(kept[found].model.clone())
    }

    pub(super) fn keep(&self, place: Place, mtp: bool, model: &Model) {
        self.kept().push(Kept { place, mtp, model: model.clone() });
    }

    /// Gives up all models but those of these places.
    pub(crate) fn retain(&self, places: &[Place]) {
        self.kept().retain(|kept| places.contains(&kept.place));
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
