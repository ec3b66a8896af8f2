//! What a grammar leaves no choice about: the owner of the handle.

use super::sampler::with_params;
use super::status::{Failed, call, take_text};
use crate::error::{Failure, Result};
use crate::model::Model;
use crate::sample::SamplerOptions;
use crate::sample::prepare::Prepared;
use crate::token::Token;
use llama_sys as sys;
use std::ptr::NonNull;

/// Fields drop in this order: the handle before the model whose vocabulary it points to.
#[derive(Debug)]
pub(crate) struct RawForced {
    handle: Handle,
    _model: Model,
}

#[derive(Debug)]
struct Handle(NonNull<sys::lsys_forced>);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_forced_new and is freed only here.
        unsafe { sys::lsys_forced_free(self.0.as_ptr()) }
    }
}

// SAFETY: the handle has no ties to the thread that made it, and RawForced is not Sync: its calls need `&mut self`.
unsafe impl Send for RawForced {}

impl RawForced {
    /// The options must have a grammar that does not wait for a trigger.
    pub(crate) fn new(model: &Model, options: &SamplerOptions, prepared: &Prepared) -> Result<Self, Failure> {
        let mut handle = std::ptr::null_mut();
        with_params(options, prepared, |params| {
            // SAFETY: the model is alive, as is all that `params` points to, of which nothing is kept.
            call(|| unsafe { sys::lsys_forced_new(model.raw().as_ptr(), params, &mut handle) })
        })??;
        let handle = NonNull::new(handle).ok_or_else(|| Failure::new("no handle was made"))?;
        Ok(Self { handle: Handle(handle), _model: model.clone() })
    }

    /// A token was generated.
    pub(crate) fn accept(&mut self, token: Token) -> Result<(), Failed> {
        // SAFETY: the handle is alive; the shim checks the token.
        call(|| unsafe { sys::lsys_forced_accept(self.handle.0.as_ptr(), token.id()) })
    }

    /// What every continuation begins with, as far as so many bytes reach.
    pub(crate) fn text(&mut self, most: usize) -> Result<Vec<u8>, Failed> {
        // SAFETY: the handle is alive.
        take_text(|text| unsafe { sys::lsys_forced_text(self.handle.0.as_ptr(), most, text) })
    }
}
