//! A target, a draft and settings, run as llama.cpp's own programs would: none of the checks of the safe library is made,
//! so this may end the process. The tests compare what happens here with what the library says beforehand.
//!
//! It is here because unsafe code is only in this package and in `llama-spec/src/ffi`; the tests include it.

use llama_sys as sys;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr;

/// What is to be run.
#[derive(Clone, Debug)]
pub(crate) struct Case<'a> {
    /// The model that decides.
    pub(crate) target: &'a Path,
    /// The model that drafts.
    pub(crate) draft: Option<&'a Path>,
    /// The drafters.
    pub(crate) types: Vec<sys::lsys_spec_type>,
    /// The longest draft.
    pub(crate) draft_max: u32,
    /// Sequences side by side.
    pub(crate) slots: u32,
    /// Room of each, in tokens.
    pub(crate) context: u32,
    /// The most tokens of a decode.
    pub(crate) batch: u32,
    /// The most tokens computed at once.
    pub(crate) micro_batch: u32,
    /// The types of K and V in the caches.
    pub(crate) kv_types: [sys::ggml_type; 2],
    /// The fused attention kernels.
    pub(crate) flash_attention: sys::llama_flash_attn_type,
}

/// What happened, if the process survived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Drafts were made and verified.
    Works {
        /// Tokens drafted.
        drafted: usize,
        /// Tokens accepted.
        accepted: usize,
        /// Whether the text is that of plain decoding.
        same_text: bool,
    },
    /// A step was refused: by the shim's own check of an argument, or by llama.cpp.
    Refused {
        /// Which step.
        step: &'static str,
        /// Whether it was the shim.
        by_shim: bool,
        /// Why.
        why: String,
    },
}

/// The text begins with this, which repeats itself so that lookup drafts too.
const PROMPT: &[u8] = b"abcdefghijklmnopqrstuvwxyz,ABCDEFGHIJKLMabcdefghijklmnopqrstuvwxyz,ABCDEFGHIJKLM";
/// Tokens to generate for each sequence.
const LENGTH: usize = 24;

type Step<T> = Result<T, Outcome>;

/// Runs a case.
pub(crate) fn drive(case: &Case<'_>) -> Outcome {
    // SAFETY: null drops all messages.
    unsafe { sys::lsys_log_set(None, ptr::null_mut(), false) };
    match Run::new(case).and_then(|mut run| run.all(case)) {
        Ok(outcome) | Err(outcome) => outcome,
    }
}

fn check(step: &'static str, status: sys::lsys_status) -> Step<()> {
    if status == sys::LSYS_OK {
        return Ok(());
    }
    // SAFETY: the text is never null and lives until the next call of this thread.
    let why = unsafe { CStr::from_ptr(sys::lsys_last_error()) }.to_string_lossy().into_owned();
    Err(Outcome::Refused { step, by_shim: status == sys::LSYS_INVALID, why })
}

/// All handles of a run; freed in the order that their addresses need.
struct Run {
    spec: *mut sys::lsys_spec,
    batch: *mut sys::lsys_batch,
    draft: *mut sys::llama_context,
    target: *mut sys::llama_context,
    plain: *mut sys::llama_context,
    draft_model: *mut sys::llama_model,
    model: *mut sys::llama_model,
    rollback: sys::lsys_rollback,
    draft_rollback: sys::lsys_rollback,
}

impl Drop for Run {
    fn drop(&mut self) {
        // SAFETY: each was made by `Run::new` or is null, and is freed once: what keeps addresses before what they are of.
        unsafe {
            sys::lsys_spec_free(self.spec);
            sys::lsys_batch_free(self.batch);
            sys::llama_free(self.draft);
            sys::llama_free(self.target);
            sys::llama_free(self.plain);
            sys::llama_model_free(self.draft_model);
            sys::llama_model_free(self.model);
        }
    }
}

impl Run {
    fn new(case: &Case<'_>) -> Step<Self> {
        let has = |kind| case.types.contains(&kind);
        let heads = has(sys::LSYS_SPEC_DRAFT_MTP);
        let block = has(sys::LSYS_SPEC_DRAFT_DFLASH) || has(sys::LSYS_SPEC_DRAFT_DSPARK);
        let snapshots = heads || block || has(sys::LSYS_SPEC_DRAFT_EAGLE3);
        let mut run = Self {
            spec: ptr::null_mut(),
            batch: ptr::null_mut(),
            draft: ptr::null_mut(),
            target: ptr::null_mut(),
            plain: ptr::null_mut(),
            draft_model: ptr::null_mut(),
            model: ptr::null_mut(),
            rollback: sys::LSYS_ROLLBACK_PARTIAL,
            draft_rollback: sys::LSYS_ROLLBACK_PARTIAL,
        };
        run.model = load("load target", case.target, heads)?;
        // SAFETY: the default parameters are plain values.
        let mut params = unsafe { sys::llama_context_default_params() };
        (params.n_ctx, params.n_seq_max) = (case.context * case.slots, case.slots);
        (params.n_batch, params.n_ubatch) = (case.batch, case.micro_batch);
        (params.n_threads, params.n_threads_batch) = (1, 1);
        [params.type_k, params.type_v] = case.kv_types;
        params.flash_attn_type = case.flash_attention;
        params.n_outputs_max = case.batch.min(case.slots * (1 + case.draft_max)).max(case.slots);
        params.n_outputs_max_per_seq = case.batch.min(1 + case.draft_max);
        let mut own = params;
        // Without room for snapshots, states are copied.
        let room = case.batch.min(case.micro_batch).saturating_sub(2);
        own.n_rs_seq = if snapshots && case.draft_max <= room { case.draft_max } else { 0 };
        run.plain = context("plain context", run.model, &params)?;
        run.target = context("target context", run.model, &own)?;
        // SAFETY: here and below, the contexts are alive and results are written to live variables.
        check("target trial", unsafe { sys::lsys_rollback_kind(run.target, &mut run.rollback) })?;
        if run.rollback == sys::LSYS_ROLLBACK_NONE {
            return Err(Outcome::Refused { step: "target trial", by_shim: false, why: "no memory".into() });
        }
        let needs_draft = case.draft.is_some() || heads;
        if needs_draft {
            let mut own = params;
            (own.n_outputs_max, own.n_outputs_max_per_seq) = (case.slots, 1);
            if block {
                (own.n_outputs_max, own.n_outputs_max_per_seq) =
                    (case.slots * (case.draft_max + 1), case.draft_max + 1);
            }
            own.ctx_other = run.target;
            if heads {
                own.ctx_type = sys::LLAMA_CONTEXT_TYPE_MTP;
            }
            let model = match case.draft {
                Some(draft) => {
                    run.draft_model = load("load draft", draft, heads)?;
                    run.draft_model
                }
                None => run.model,
            };
            run.draft = context("draft context", model, &own)?;
            if has(sys::LSYS_SPEC_DRAFT_SIMPLE) {
                // SAFETY: as above.
                check("draft trial", unsafe { sys::lsys_rollback_kind(run.draft, &mut run.draft_rollback) })?;
            }
        }
        // SAFETY: as above; the types live as long as the call, the contexts as long as the drafters.
        unsafe {
            let mut params = sys::lsys_spec_params::default();
            sys::lsys_spec_defaults(&mut params);
            (params.types, params.n_types) = (case.types.as_ptr(), case.types.len());
            (params.ctx_target, params.ctx_draft, params.n_seq) = (run.target, run.draft, case.slots);
            params.draft_n_max = case.draft_max as i32;
            (params.ngram_mod_match, params.ngram_mod_min, params.ngram_mod_max) = (8, 2, case.draft_max.max(2) as i32);
            for map in [&mut params.ngram_simple, &mut params.ngram_map_k, &mut params.ngram_map_k4v] {
                (map.size_n, map.size_m) = (4, case.draft_max.max(4) as u16);
            }
            check("drafters", sys::lsys_spec_new(&params, &mut run.spec))?;
            check("batch", sys::lsys_batch_new(run.target, &mut run.batch))?;
        }
        Ok(run)
    }

    fn all(&mut self, case: &Case<'_>) -> Step<Outcome> {
        let expected = plain(self.plain, case)?;
        let (mut drafted, mut accepted, mut same_text) = (0, 0, true);
        for _request in 0..2 {
            let mut texts = Vec::new();
            for slot in 0..case.slots as usize {
                let prompt = prompt(slot);
                let mut next = 0;
                for start in (0..prompt.len()).step_by(case.batch as usize) {
                    let end = prompt.len().min(start + case.batch as usize);
                    let entries: Vec<Entry> = (start..end).map(|at| (prompt[at], at, slot, at + 1 == end)).collect();
                    self.decode(&entries)?;
                    next = argmax(self.target, entries.len() - 1)?;
                }
                // SAFETY: tokens are given with their number.
                check("begin", unsafe { sys::lsys_spec_begin(self.spec, slot as i32, prompt.as_ptr(), prompt.len()) })?;
                texts.push((prompt, vec![next]));
            }
            while texts.iter().any(|(_, text)| text.len() < LENGTH) {
                let (more, right) = self.round(case, &mut texts)?;
                drafted += more;
                accepted += right;
            }
            same_text &= texts.iter().zip(&expected).all(|((_, text), expected)| text[..LENGTH] == expected[..]);
            for slot in 0..case.slots as i32 {
                // SAFETY: the contexts are alive. The draft's memory may be the target's.
                unsafe {
                    check("truncate", sys::lsys_spec_truncate(self.spec, slot, 0))?;
                    check("clear", sys::lsys_memory_remove(self.target, slot, 0, -1))?;
                    if !self.draft.is_null() && !sys::lsys_shares_memory(self.draft) {
                        check("clear", sys::lsys_memory_remove(self.draft, slot, 0, -1))?;
                    }
                }
            }
        }
        Ok(Outcome::Works { drafted, accepted, same_text })
    }

    /// One round of all sequences; gives how many tokens were drafted and accepted.
    fn round(&mut self, case: &Case<'_>, texts: &mut [(Vec<i32>, Vec<i32>)]) -> Step<(usize, usize)> {
        let position = |(prompt, text): &(Vec<i32>, Vec<i32>)| prompt.len() + text.len() - 1;
        let checkpoint = self.rollback == sys::LSYS_ROLLBACK_FULL;
        let draft_checkpoint = self.draft_rollback == sys::LSYS_ROLLBACK_FULL;
        let mut states = Vec::new();
        for slot in 0..texts.len() {
            let draft = if draft_checkpoint { state(self.draft, slot)? } else { Vec::new() };
            states.push((if checkpoint { state(self.target, slot)? } else { Vec::new() }, draft));
        }
        let requests = texts.iter().enumerate().map(|(slot, text)| sys::lsys_draft_request {
            seq: slot as i32,
            n_max: -1,
            pos: position(text) as i32,
            last: *text.1.last().expect("the text begins with the token after the prompt"),
            ..Default::default()
        });
        let requests: Vec<_> = requests.collect();
        // SAFETY: requests are given with their number; results are copied before the next call.
        let drafts = unsafe {
            check("draft", sys::lsys_spec_draft(self.spec, requests.as_ptr(), requests.len()))?;
            let mut drafts = Vec::new();
            for slot in 0..texts.len() {
                let (mut tokens, mut from) = (sys::lsys_tokens::default(), sys::LSYS_SPEC_NONE);
                check("draft", sys::lsys_spec_result(self.spec, slot as i32, &mut tokens, &mut from))?;
                let tokens = match tokens.size {
                    0 => &[],
                    size => std::slice::from_raw_parts(tokens.data, size),
                };
                drafts.push(tokens.iter().copied().take(case.draft_max as usize).collect::<Vec<i32>>());
            }
            drafts
        };
        for (slot, text) in texts.iter().enumerate() {
            self.cut(true, slot, position(text), &states[slot].1, draft_checkpoint)?;
        }
        let mut entries: Vec<Entry> = Vec::new();
        for (slot, text) in texts.iter().enumerate() {
            let tokens = [&text.1[text.1.len() - 1..], &drafts[slot][..]].concat();
            entries.extend(tokens.iter().enumerate().map(|(at, token)| (*token, position(text) + at, slot, true)));
        }
        self.decode(&entries)?;
        let (mut row, mut all_accepted, mut kept) = (0, 0, Vec::new());
        for (slot, text) in texts.iter().enumerate() {
            let draft = &drafts[slot];
            let next: Vec<i32> = (row..=row + draft.len()).map(|row| argmax(self.target, row)).collect::<Step<_>>()?;
            row += draft.len() + 1;
            let accepted = draft.iter().zip(&next).take_while(|(drafted, right)| drafted == right).count();
            kept.push(([&text.1[text.1.len() - 1..], &draft[..accepted]].concat(), next[accepted], accepted));
            all_accepted += accepted;
        }
        let mut replay: Vec<Entry> = Vec::new();
        for (slot, text) in texts.iter_mut().enumerate() {
            let (tokens, next, accepted) = &kept[slot];
            let (start, drafted) = (position(text), drafts[slot].len());
            // SAFETY: tokens are given with their number.
            unsafe {
                if drafted > 0 {
                    check("accept", sys::lsys_spec_accept(self.spec, slot as i32, *accepted))?;
                }
                check("extend", sys::lsys_spec_extend(self.spec, slot as i32, tokens.as_ptr(), tokens.len()))?;
            }
            if *accepted < drafted {
                let again = checkpoint || draft_checkpoint;
                let from = if again { start } else { start + tokens.len() };
                self.cut(false, slot, from, &states[slot].0, checkpoint)?;
                self.cut(true, slot, from, &states[slot].1, draft_checkpoint)?;
                if again {
                    replay.extend(tokens.iter().enumerate().map(|(at, token)| (*token, start + at, slot, true)));
                }
            }
            text.1.extend(&tokens[1..]);
            text.1.push(*next);
        }
        if !replay.is_empty() {
            self.decode(&replay)?;
        }
        Ok((drafts.iter().map(Vec::len).sum(), all_accepted))
    }

    /// Takes everything from `from` on out of a memory, with the help of the state before if it cannot be done otherwise.
    fn cut(&self, draft: bool, slot: usize, from: usize, state: &[u8], restore: bool) -> Step<()> {
        let context = if draft { self.draft } else { self.target };
        if context.is_null() {
            return Ok(());
        }
        // SAFETY: the context is alive, and the state is one of its own.
        unsafe {
            if draft && sys::lsys_shares_memory(context) {
                return Ok(());
            }
            if restore {
                let flags = sys::LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
                check("restore", sys::lsys_state_set(context, slot as i32, flags, state.as_ptr(), state.len()))?;
            }
            check("rollback", sys::lsys_memory_remove(context, slot as i32, from as i32, -1))
        }
    }

    /// Decodes on the target and shows it to the drafters.
    fn decode(&self, entries: &[Entry]) -> Step<()> {
        decode(self.target, self.batch, entries)?;
        // SAFETY: the batch is the one decoded last.
        check("process", unsafe { sys::lsys_spec_process(self.spec, self.batch) })
    }
}

/// A token, its position, its sequence, and whether its logits are wanted.
type Entry = (i32, usize, usize, bool);

fn load(step: &'static str, path: &Path, mtp: bool) -> Step<*mut sys::llama_model> {
    let path = CString::new(path.to_string_lossy().as_bytes()).expect("a path without NUL");
    let mut model = ptr::null_mut();
    // SAFETY: the path is a C string, the parameters are defaults with plain values changed.
    unsafe {
        let mut params = sys::llama_model_default_params();
        params.load_mtp = mtp;
        check(step, sys::lsys_model_load(&mut path.as_ptr(), 1, &params, &mut model))?;
    }
    Ok(model)
}

fn context(
    step: &'static str,
    model: *mut sys::llama_model,
    params: &sys::llama_context_params,
) -> Step<*mut sys::llama_context> {
    let mut context = ptr::null_mut();
    // SAFETY: the model is alive, and freed after its contexts.
    check(step, unsafe { sys::lsys_context_new(model, params, &mut context) })?;
    Ok(context)
}

fn decode(context: *mut sys::llama_context, batch: *mut sys::lsys_batch, entries: &[Entry]) -> Step<()> {
    let mut code = 0;
    // SAFETY: the batch was made for the context, and both are alive.
    unsafe {
        sys::lsys_batch_clear(batch);
        for (token, position, slot, output) in entries {
            check("batch", sys::lsys_batch_add(batch, *token, *position as i32, *slot as i32, *output))?;
        }
        check("decode", sys::lsys_decode(context, batch, &mut code))?;
    }
    match code {
        0 => Ok(()),
        code => Err(Outcome::Refused { step: "decode", by_shim: false, why: format!("code {code}") }),
    }
}

/// The most probable token after an entry of the last batch.
fn argmax(context: *mut sys::llama_context, row: usize) -> Step<i32> {
    let mut logits = ptr::null();
    // SAFETY: the context is alive; the logits are as many as the vocabulary has tokens, and read before the next call.
    let logits = unsafe {
        check("logits", sys::lsys_logits(context, row as i32, &mut logits))?;
        let size = sys::llama_vocab_n_tokens(sys::llama_model_get_vocab(sys::llama_get_model(context)));
        std::slice::from_raw_parts(logits, size as usize)
    };
    if logits.iter().any(|logit| logit.is_nan()) {
        return Err(Outcome::Refused { step: "logits", by_shim: false, why: "not a number".into() });
    }
    let best = logits.iter().enumerate().max_by(|(a, x), (b, y)| x.total_cmp(y).then(b.cmp(a)));
    Ok(best.map_or(0, |(token, _)| token as i32))
}

/// The state of a sequence that cannot be cut back.
fn state(context: *mut sys::llama_context, slot: usize) -> Step<Vec<u8>> {
    let (flags, mut size, mut written) = (sys::LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY, 0, 0);
    // SAFETY: the context is alive, and the buffer is as large as it says.
    unsafe {
        check("checkpoint", sys::lsys_state_size(context, slot as i32, flags, &mut size))?;
        let mut data = vec![0; size];
        check("checkpoint", sys::lsys_state_get(context, slot as i32, flags, data.as_mut_ptr(), size, &mut written))?;
        data.truncate(written);
        Ok(data)
    }
}

/// Each sequence begins somewhere else in the same text.
fn prompt(slot: usize) -> Vec<i32> {
    PROMPT[slot % 8..].iter().map(|byte| i32::from(*byte)).collect()
}

/// The text of each sequence without drafts.
fn plain(context: *mut sys::llama_context, case: &Case<'_>) -> Step<Vec<Vec<i32>>> {
    let mut batch = ptr::null_mut();
    // SAFETY: the context is alive.
    check("batch", unsafe { sys::lsys_batch_new(context, &mut batch) })?;
    let mut generate = |slot: usize| {
        let prompt = prompt(slot);
        let (mut text, mut at, mut tokens) = (Vec::new(), 0, prompt);
        while text.len() < LENGTH {
            let part = tokens.len().min(case.batch as usize);
            let rest = tokens.split_off(part);
            let entries: Vec<Entry> =
                tokens.iter().enumerate().map(|(index, token)| (*token, at + index, slot, index + 1 == part)).collect();
            decode(context, batch, &entries)?;
            at += part;
            tokens = rest;
            if tokens.is_empty() {
                let next = argmax(context, part - 1)?;
                text.push(next);
                tokens.push(next);
            }
        }
        Ok(text)
    };
    let texts = (0..case.slots as usize).map(&mut generate).collect();
    // SAFETY: it was made above and is freed once, before its context.
    unsafe { sys::lsys_batch_free(batch) };
    texts
}
