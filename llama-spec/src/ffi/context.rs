//! A context and its batch: the owner of both handles.

use super::backend::text;
use super::status::{Failed, call};
use crate::batch::Entry;
use crate::model::Model;
use llama_sys as sys;
use std::ptr::NonNull;

/// Fields drop in this order: the batch before the context, and that before its threads and the model they were made of.
#[derive(Debug)]
pub(crate) struct RawContext {
    batch: BatchHandle,
    context: ContextHandle,
    /// All that it ever had; the last ones are in use.
    threads: Vec<Threads>,
    model: Model,
}

/// Threads that stay between batches.
#[derive(Debug)]
struct Threads {
    handle: NonNull<sys::ggml_threadpool>,
    count: u32,
}

impl Threads {
    /// Nothing where one thread is enough, or where there are no such threads to be had: llama.cpp does without.
    fn new(count: u32) -> Option<Self> {
        let mut threads = std::ptr::null_mut();
        // SAFETY: plain values; the shim checks the count.
        let made = call(|| unsafe { sys::lsys_threads_new(count as i32, &mut threads) });
        made.ok().and_then(|()| NonNull::new(threads)).map(|handle| Self { handle, count })
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_threads_new and is freed only here, after or without the context that used it.
        unsafe { sys::lsys_threads_free(self.handle.as_ptr()) }
    }
}

#[derive(Debug)]
struct BatchHandle(NonNull<sys::lsys_batch>);

impl Drop for BatchHandle {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_batch_new and is freed only here, before its context.
        unsafe { sys::lsys_batch_free(self.0.as_ptr()) }
    }
}

#[derive(Debug)]
struct ContextHandle(NonNull<sys::llama_context>);

impl Drop for ContextHandle {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_context_new and is freed only here; whoever keeps its address (a speculation
        // handle) owns the context and is declared before it.
        unsafe { sys::llama_free(self.0.as_ptr()) }
    }
}

// SAFETY: a context has no ties to the thread that made it; llama.h only forbids using it from two threads at once, and
// RawContext is not Sync.
unsafe impl Send for RawContext {}

/// What a context became, which may differ from what was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) length_per_slot: u32,
    pub(crate) batch: u32,
    pub(crate) micro_batch: u32,
    pub(crate) slots: u32,
    pub(crate) snapshots: u32,
}

impl RawContext {
    pub(crate) fn new(model: &Model, params: &sys::llama_context_params) -> Result<Self, Failed> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the model is alive, and no other context of it is being made meanwhile.
        model.exclusively(|| call(|| unsafe { sys::lsys_context_new(model.raw().as_ptr(), params, &mut context) }))?;
        let context =
            ContextHandle(NonNull::new(context).expect("shim.h: a context is made when the status is LSYS_OK"));
        let mut batch = std::ptr::null_mut();
        // SAFETY: the context is alive.
        call(|| unsafe { sys::lsys_batch_new(context.0.as_ptr(), &mut batch) })?;
        let batch = BatchHandle(NonNull::new(batch).expect("shim.h: a batch is made when the status is LSYS_OK"));
        let mut made = Self { batch, context, threads: Vec::new(), model: model.clone() };
        made.keep_threads(params.n_threads.max(params.n_threads_batch) as u32);
        Ok(made)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::llama_context {
        self.context.0.as_ptr()
    }

    pub(crate) fn batch_ptr(&self) -> *mut sys::lsys_batch {
        self.batch.0.as_ptr()
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn facts(&self) -> Facts {
        let context = self.as_ptr();
        // SAFETY: the getters of llama.h read plain fields of a live context.
        unsafe {
            Facts {
                length_per_slot: sys::llama_n_ctx_seq(context),
                batch: sys::llama_n_batch(context),
                micro_batch: sys::llama_n_ubatch(context),
                slots: sys::llama_n_seq_max(context),
                snapshots: sys::llama_n_rs_seq(context),
            }
        }
    }

    /// Puts the entries into the C side's batch, in place of what was there.
    pub(crate) fn fill_batch(&mut self, entries: &[Entry]) -> Result<(), Failed> {
        let batch = self.batch_ptr();
        // SAFETY: the batch is alive; every entry is checked by the shim against the context it was made for.
        unsafe {
            sys::lsys_batch_clear(batch);
            entries.iter().try_for_each(|entry| {
                let (slot, position) = (entry.slot.index() as i32, i32::try_from(entry.position).unwrap_or(-1));
                call(|| sys::lsys_batch_add(batch, entry.token.id(), position, slot, entry.output))
            })
        }
    }

    /// As `fill_batch`, with a row of hidden states beside each token: `rows` has them one after the other, each `width` long.
    pub(crate) fn fill_batch_with_rows(&mut self, entries: &[Entry], rows: &[f32], width: usize) -> Result<(), Failed> {
        let batch = self.batch_ptr();
        // SAFETY: as in `fill_batch`; the shim copies each row, which is given with its length, and checks that.
        unsafe {
            sys::lsys_batch_clear(batch);
            entries.iter().enumerate().try_for_each(|(number, entry)| {
                let (slot, position) = (entry.slot.index() as i32, i32::try_from(entry.position).unwrap_or(-1));
                let row = rows.get(number * width..(number + 1) * width).unwrap_or_default();
                let (token, data) = (entry.token.id(), row.as_ptr());
                call(|| sys::lsys_batch_add_row(batch, token, position, slot, entry.output, data, row.len()))
            })
        }
    }

    /// Puts rows of features, each `width` long, in place of what was in the batch.
    pub(crate) fn fill_features(&mut self, rows: &[f32], width: usize) -> Result<(), Failed> {
        let batch = self.batch_ptr();
        // SAFETY: as in `fill_batch_with_rows`.
        unsafe {
            sys::lsys_batch_clear(batch);
            rows.chunks(width.max(1))
                .try_for_each(|row| call(|| sys::lsys_batch_add_features(batch, row.as_ptr(), row.len())))
        }
    }

    /// Decodes what `fill_batch` put there; gives llama_decode's code.
    pub(crate) fn decode(&mut self) -> Result<i32, Failed> {
        let mut code = 0;
        // SAFETY: context and batch are alive and belong together.
        call(|| unsafe { sys::lsys_decode(self.as_ptr(), self.batch_ptr(), &mut code) })?;
        Ok(code)
    }

    /// As `decode`, by the encoder, for models without a decoder.
    pub(crate) fn encode(&mut self) -> Result<i32, Failed> {
        let mut code = 0;
        // SAFETY: as in `decode`.
        call(|| unsafe { sys::lsys_encode(self.as_ptr(), self.batch_ptr(), &mut code) })?;
        Ok(code)
    }

    pub(crate) fn logits(&self, entry: usize) -> Result<&[f32], Failed> {
        let mut row = std::ptr::null();
        let index = i32::try_from(entry).unwrap_or(i32::MAX);
        // SAFETY: the shim checks the index and gives a row of n_vocab floats, which lives until the next decode; that
        // needs `&mut self`, and the row borrows `self`.
        unsafe {
            call(|| sys::lsys_logits(self.as_ptr(), index, &mut row))?;
            Ok(std::slice::from_raw_parts(row, super::vocab::size(self.model.raw()) as usize))
        }
    }

    pub(crate) fn embeddings(&self, of: EmbeddingsOf) -> Result<&[f32], Failed> {
        let (mut row, mut length) = (std::ptr::null(), 0);
        // SAFETY: as in `logits`; the shim also gives the length.
        unsafe {
            call(|| match of {
                EmbeddingsOf::Entry(entry) => {
                    let index = i32::try_from(entry).unwrap_or(i32::MAX);
                    sys::lsys_embeddings_entry(self.as_ptr(), index, &mut row, &mut length)
                }
                EmbeddingsOf::Slot(slot) => sys::lsys_embeddings_sequence(self.as_ptr(), slot, &mut row, &mut length),
            })?;
            Ok(std::slice::from_raw_parts(row, length))
        }
    }

    /// The hidden states of an entry of the last batch, before the last norm.
    pub(crate) fn hidden(&self, entry: usize) -> Result<&[f32], Failed> {
        let (mut row, mut length) = (std::ptr::null(), 0);
        let index = i32::try_from(entry).unwrap_or(i32::MAX);
        // SAFETY: as in `embeddings`.
        unsafe {
            call(|| sys::lsys_embeddings_nextn(self.as_ptr(), index, &mut row, &mut length))?;
            Ok(std::slice::from_raw_parts(row, length))
        }
    }

    /// The input of a layer for the first `entries` entries of the last batch, one row after the other.
    pub(crate) fn layer_input(&self, layer: u32, entries: usize) -> Result<&[f32], Failed> {
        let mut rows = std::ptr::null();
        let facts = self.facts();
        let entries = entries.min(facts.batch as usize);
        // SAFETY: the shim gives a buffer with a row of the model's width for each entry that a batch can have, which lives
        // until the next decode; that needs `&mut self`, and the rows borrow `self`.
        unsafe {
            call(|| sys::lsys_layer_input(self.as_ptr(), layer, &mut rows))?;
            Ok(std::slice::from_raw_parts(rows, entries * self.model.width() as usize))
        }
    }

    /// Lets it give the hidden states of all entries, or of those with output only, from the next batch on.
    pub(crate) fn give_hidden(&mut self, of_outputs: bool) -> Result<(), Failed> {
        // SAFETY: the context is alive and not in use.
        call(|| unsafe { sys::lsys_set_embeddings_nextn(self.as_ptr(), true, of_outputs) })
    }

    /// Lets it give the input of a layer, from the next batch on.
    pub(crate) fn give_layer_input(&mut self, layer: u32) -> Result<(), Failed> {
        // SAFETY: as in `give_hidden`; the shim checks the layer.
        call(|| unsafe { sys::lsys_set_layer_input(self.as_ptr(), layer, true) })
    }

    /// The head for multi-token prediction that the next decodes run.
    pub(crate) fn set_head(&mut self, head: u32) -> Result<(), Failed> {
        let head = i32::try_from(head).unwrap_or(i32::MAX);
        // SAFETY: as in `give_hidden`; the shim checks the head.
        call(|| unsafe { sys::lsys_set_nextn_head(self.as_ptr(), head) })
    }

    pub(crate) fn set_threads(&mut self, threads: u32, batch_threads: u32) {
        // SAFETY: the context is alive and not in use.
        unsafe { sys::llama_set_n_threads(self.as_ptr(), threads as i32, batch_threads as i32) }
        self.keep_threads(threads.max(batch_threads));
    }

    /// Keeps so many threads from batch to batch. Starting two for each batch took 3 to 4 % of the time of SmolLM2-135M on two cores.
    fn keep_threads(&mut self, count: u32) {
        if self.threads.iter().any(|threads| threads.count >= count) {
            return;
        }
        let Some(threads) = Threads::new(count) else { return };
        // SAFETY: the context is alive and not in use; the threads are in a field that is dropped after it. So are those it had
        // before, which the CPU backend sends to sleep when it first sees others (ggml_backend_cpu_set_threadpool).
        unsafe { sys::llama_attach_threadpool(self.as_ptr(), threads.handle.as_ptr(), threads.handle.as_ptr()) };
        self.threads.push(threads);
    }

    pub(crate) fn rollback_kind(&mut self) -> Result<sys::lsys_rollback, Failed> {
        let mut kind = sys::LSYS_ROLLBACK_NONE;
        // SAFETY: the context is alive; the call clears its memory, which `&mut self` allows.
        call(|| unsafe { sys::lsys_rollback_kind(self.as_ptr(), &mut kind) })?;
        Ok(kind)
    }

    pub(crate) fn clear(&mut self) -> Result<(), Failed> {
        // SAFETY: the context is alive and not in use.
        call(|| unsafe { sys::lsys_memory_clear(self.as_ptr(), true) })
    }

    pub(crate) fn remove(&mut self, slot: i32, from: i32, to: i32) -> Result<(), Failed> {
        // SAFETY: as in `clear`; the shim checks the slot.
        call(|| unsafe { sys::lsys_memory_remove(self.as_ptr(), slot, from, to) })
    }

    pub(crate) fn copy(&mut self, from: i32, to: i32) -> Result<(), Failed> {
        // SAFETY: as in `remove`.
        call(|| unsafe { sys::lsys_memory_copy(self.as_ptr(), from, to, -1, -1) })
    }

    pub(crate) fn keep(&mut self, slot: i32) -> Result<(), Failed> {
        // SAFETY: as in `remove`.
        call(|| unsafe { sys::lsys_memory_keep(self.as_ptr(), slot) })
    }

    pub(crate) fn shift(&mut self, slot: i32, from: i32, to: i32, by: i32) -> Result<(), Failed> {
        // SAFETY: as in `remove`.
        call(|| unsafe { sys::lsys_memory_shift(self.as_ptr(), slot, from, to, by) })
    }

    pub(crate) fn range(&self, slot: i32) -> Result<(i32, i32), Failed> {
        let (mut min, mut max) = (-1, -1);
        // SAFETY: as in `remove`; reads only.
        call(|| unsafe { sys::lsys_memory_range(self.as_ptr(), slot, &mut min, &mut max) })?;
        Ok((min, max))
    }

    pub(crate) fn can_shift(&self) -> bool {
        // SAFETY: as in `range`.
        unsafe { sys::lsys_memory_can_shift(self.as_ptr()) }
    }

    /// The state of one slot, or of everything with -1.
    pub(crate) fn state(&mut self, slot: i32) -> Result<Vec<u8>, Failed> {
        let (mut size, mut written) = (0, 0);
        let none = sys::LLAMA_STATE_SEQ_FLAGS_NONE;
        // SAFETY: the context is alive and not in use.
        call(|| unsafe { sys::lsys_state_size(self.as_ptr(), slot, none, &mut size) })?;
        let mut data = vec![0; size];
        // SAFETY: as above; the buffer is given with its length.
        call(|| unsafe {
            sys::lsys_state_get(self.as_ptr(), slot, none, data.as_mut_ptr(), data.len(), &mut written)
        })?;
        data.truncate(written);
        Ok(data)
    }

    pub(crate) fn set_state(&mut self, slot: i32, data: &[u8]) -> Result<(), Failed> {
        let none = sys::LLAMA_STATE_SEQ_FLAGS_NONE;
        // SAFETY: as in `state`.
        call(|| unsafe { sys::lsys_state_set(self.as_ptr(), slot, none, data.as_ptr(), data.len()) })
    }

    /// The part of a slot's state that cannot be cut back, in place of what was in `data`.
    pub(crate) fn checkpoint(&mut self, slot: i32, data: &mut Vec<u8>) -> Result<(), Failed> {
        let (mut size, mut written) = (0, 0);
        let part = sys::LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
        // SAFETY: as in `state`.
        call(|| unsafe { sys::lsys_state_size(self.as_ptr(), slot, part, &mut size) })?;
        data.resize(size, 0);
        // SAFETY: as in `state`.
        call(|| unsafe {
            sys::lsys_state_get(self.as_ptr(), slot, part, data.as_mut_ptr(), data.len(), &mut written)
        })?;
        data.truncate(written);
        Ok(())
    }

    /// Puts back what `checkpoint` saved. The part that can be cut back is left as it is.
    pub(crate) fn restore(&mut self, slot: i32, data: &[u8]) -> Result<(), Failed> {
        let part = sys::LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
        // SAFETY: as in `state`.
        call(|| unsafe { sys::lsys_state_set(self.as_ptr(), slot, part, data.as_ptr(), data.len()) })
    }

    /// Whether its memory is that of another context.
    pub(crate) fn shares_memory(&self) -> bool {
        // SAFETY: reads plain fields of a live context.
        unsafe { sys::lsys_shares_memory(self.as_ptr()) }
    }

    /// What the context holds in memory: (device or buffer, bytes of weights, of memory, of scratch space).
    pub(crate) fn memory_breakdown(&self) -> Result<Vec<(String, u64, u64, u64)>, Failed> {
        // SAFETY: the function writes at most `capacity` rows; names are NUL-terminated inside their arrays.
        let rows = super::status::fill(8, |rows, capacity, needed| unsafe {
            sys::lsys_memory_breakdown(self.as_ptr(), rows, capacity, needed)
        })?;
        // SAFETY: as above.
        Ok(rows
            .iter()
            .map(|row: &sys::lsys_memory_row| (unsafe { text(row.name.as_ptr()) }, row.model, row.context, row.compute))
            .collect())
    }
}

/// Whose embeddings are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EmbeddingsOf {
    Entry(usize),
    Slot(i32),
}
