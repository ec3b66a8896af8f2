//! Many sequences side by side in one target and one draft context, as an engine of many slots drives the shim: prompts and
//! verifications in one batch, drafts of unequal lengths, sequences that come and go.

use std::{path::Path, ptr};

use llama_sys as sys;

use crate::raw::{context, load, load_with_mtp, ok};

/// The contexts and drafters.
#[derive(Clone, Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) target: &'a Path,
    pub(crate) draft: Option<&'a Path>,
    pub(crate) types: &'a [sys::lsys_spec_type],
    pub(crate) draft_max: u32,
    pub(crate) slots: u32,
    /// One cache for all sequences.
    pub(crate) unified: bool,
    /// The most tokens computed at once.
    pub(crate) micro_batch: u32,
    /// States that the target keeps for taking tokens back.
    pub(crate) snapshots: u32,
    /// Drafts are drawn rather than the most probable ones.
    pub(crate) probabilistic: bool,
}

/// A sequence, which waits for its slot if another one has it.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) slot: usize,
    /// The round in which its prompt begins.
    pub(crate) start: usize,
    pub(crate) prompt: Vec<u32>,
    /// Tokens of the prompt that are computed in a round.
    pub(crate) chunk: usize,
    /// They have a batch of their own.
    pub(crate) apart: bool,
    /// Tokens to generate; with the prompt not more than fit a slot.
    pub(crate) length: usize,
    /// The longest draft of each of its rounds, over and over.
    pub(crate) limits: &'static [i32],
    /// Who may draft, as in a request.
    pub(crate) types: u32,
    /// Temperature and seed, where drafts are drawn.
    pub(crate) drawn: Option<(f32, u32)>,
    /// It begins as a copy of the sequence of this index, made when that one knows its prompt and has done so many rounds.
    pub(crate) copy_of: Option<(usize, usize)>,
}

/// What became of a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) text: Vec<u32>,
    pub(crate) drafts: Vec<Drafted>,
}

/// The draft of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drafted {
    pub(crate) tokens: Vec<u32>,
    pub(crate) from: sys::lsys_spec_type,
    /// How many of its tokens were right.
    pub(crate) accepted: usize,
}

impl Trace {
    pub(crate) fn accepted(&self) -> usize {
        self.drafts.iter().map(|draft| draft.accepted).sum()
    }
}

/// Where a sequence is.
struct State<'a> {
    of: &'a Sequence,
    /// Positions of a slot.
    room: usize,
    /// Tokens of the prompt that were computed.
    known: usize,
    trace: Trace,
    done: bool,
    /// The entries of the round, and of these the first one's place in the batch.
    entries: Vec<Entry>,
    first: usize,
    draft: Drafted,
    /// What cannot be cut back: of the target, of the draft.
    states: [Vec<u8>; 2],
}

impl<'a> State<'a> {
    fn new(of: &'a Sequence, room: usize) -> Self {
        let (trace, entries, draft, states) = (Trace::default(), Vec::new(), Drafted::default(), Default::default());
        Self { of, room, known: 0, trace, done: false, entries, first: 0, draft, states }
    }

    fn generates(&self) -> bool {
        !self.done && self.known == self.of.prompt.len()
    }

    /// Where the token chosen last will stand.
    fn position(&self) -> usize {
        self.of.prompt.len() + self.trace.text.len() - 1
    }

    fn last(&self) -> u32 {
        *self.trace.text.last().unwrap()
    }

    /// The longest draft that may be and that fits behind the last token.
    fn limit(&self) -> i32 {
        let limit = self.of.limits[self.trace.drafts.len() % self.of.limits.len()];
        let room = (self.room - self.position() - 1) as i32;
        if limit < 0 { room } else { limit.min(room) }
    }
}

/// A token, its position, its sequence, and whether its logits are wanted.
type Entry = (u32, usize, usize, bool);

pub(crate) struct Many {
    target: *mut sys::llama_context,
    draft: *mut sys::llama_context,
    batch: *mut sys::lsys_batch,
    pub(crate) spec: *mut sys::lsys_spec,
    full: bool,
    draft_full: bool,
}

impl Drop for Many {
    fn drop(&mut self) {
        // SAFETY: each was made by `new` or is null, and is freed once: what keeps addresses before what they are of.
        unsafe {
            sys::lsys_spec_free(self.spec);
            sys::lsys_batch_free(self.batch);
            sys::llama_free(self.draft);
            sys::llama_free(self.target);
        }
    }
}

impl Many {
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        let mtp = setup.types.contains(&sys::LSYS_SPEC_DRAFT_MTP);
        let block = [sys::LSYS_SPEC_DRAFT_DFLASH, sys::LSYS_SPEC_DRAFT_DSPARK];
        let block = block.iter().any(|kind| setup.types.contains(kind));
        let load = if mtp { load_with_mtp } else { load };
        let sizes = |params: &mut sys::llama_context_params| {
            (params.n_seq_max, params.kv_unified, params.n_ubatch) = (setup.slots, setup.unified, setup.micro_batch);
        };
        let model = load(setup.target);
        let target = context(model, |params| {
            sizes(params);
            params.n_rs_seq = setup.snapshots;
        });
        let mut rollback = [sys::LSYS_ROLLBACK_PARTIAL; 2];
        let mut draft = ptr::null_mut();
        // SAFETY: the contexts are alive until `drop`, and all results are written to live variables.
        unsafe { ok(sys::lsys_rollback_kind(target, &mut rollback[0])) };
        if mtp || setup.draft.is_some() {
            draft = context(setup.draft.map_or(model, load), |params| {
                sizes(params);
                params.ctx_other = target;
                // As much as they draft at once
                params.n_outputs_max_per_seq = if block { setup.draft_max + 1 } else { 1 };
                params.n_outputs_max = setup.slots * params.n_outputs_max_per_seq;
                if mtp {
                    params.ctx_type = sys::LLAMA_CONTEXT_TYPE_MTP;
                }
            });
            if setup.types.contains(&sys::LSYS_SPEC_DRAFT_SIMPLE) {
                // SAFETY: as above.
                unsafe { ok(sys::lsys_rollback_kind(draft, &mut rollback[1])) };
            }
        }
        let (mut spec, mut batch) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: as above; the types live as long as the call.
        unsafe {
            let mut params = sys::lsys_spec_params::default();
            sys::lsys_spec_defaults(&mut params);
            (params.types, params.n_types) = (setup.types.as_ptr(), setup.types.len());
            (params.ctx_target, params.ctx_draft, params.n_seq) = (target, draft, setup.slots);
            params.draft_n_max = setup.draft_max as i32;
            params.draft_probabilistic = setup.probabilistic;
            (params.ngram_mod_match, params.ngram_mod_min, params.ngram_mod_max) =
                (8, 2, setup.draft_max.max(2) as i32);
            for map in [&mut params.ngram_simple, &mut params.ngram_map_k, &mut params.ngram_map_k4v] {
                (map.size_n, map.size_m) = (4, setup.draft_max.max(4) as u16);
            }
            ok(sys::lsys_spec_new(&params, &mut spec));
            ok(sys::lsys_batch_new(target, &mut batch));
        }
        let [full, draft_full] = rollback.map(|kind| kind == sys::LSYS_ROLLBACK_FULL);
        Self { target, draft, batch, spec, full, draft_full }
    }

    /// Runs the sequences to their ends.
    pub(crate) fn run(&mut self, sequences: &[Sequence]) -> Vec<Trace> {
        self.run_with(sequences, |_, _, _| {})
    }

    /// The same; tells `after` after each round the slots that generate and where their next token will stand.
    pub(crate) fn run_with(&mut self, sequences: &[Sequence], after: impl Fn(&Self, usize, usize)) -> Vec<Trace> {
        // SAFETY: the context is alive.
        let room = unsafe { sys::llama_n_ctx_seq(self.target) } as usize;
        let mut states: Vec<State<'_>> = sequences.iter().map(|of| State::new(of, room)).collect();
        for round in 0.. {
            if states.iter().all(|state| state.done) {
                break;
            }
            self.round(&mut states, round);
            let generating = states.iter().filter(|state| state.generates());
            generating.for_each(|state| after(self, state.of.slot, state.position()));
        }
        states.into_iter().map(|state| state.trace).collect()
    }

    /// The last position that the draft holds of a sequence; -1: none.
    pub(crate) fn draft_end(&self, slot: usize) -> i32 {
        let (mut first, mut last) = (0, 0);
        // SAFETY: the context is alive.
        unsafe { ok(sys::lsys_memory_range(self.draft, slot as i32, &mut first, &mut last)) };
        last
    }

    fn round(&mut self, states: &mut [State<'_>], round: usize) {
        self.draft(states);
        // Of two sequences in a slot the first one that is not done has it.
        let mut taken = Vec::new();
        let mut apart = Vec::new();
        for (index, state) in states.iter_mut().enumerate() {
            state.entries.clear();
            let waits = state.of.copy_of.is_some() && state.known == 0;
            if state.done || waits || state.of.start > round || taken.contains(&state.of.slot) {
                continue;
            }
            taken.push(state.of.slot);
            if state.generates() {
                let tokens = [&[state.last()], &state.draft.tokens[..]].concat();
                let entry = |(at, token): (usize, &u32)| (*token, state.position() + at, state.of.slot, true);
                state.entries = tokens.iter().enumerate().map(entry).collect();
            } else {
                let end = state.of.prompt.len().min(state.known + state.of.chunk);
                let entry = |at| (state.of.prompt[at], at, state.of.slot, at + 1 == state.of.prompt.len());
                state.entries = (state.known..end).map(entry).collect();
                if state.of.apart {
                    apart.push(index);
                }
            }
        }
        for index in apart {
            self.decode(&mut states[index..=index]);
            self.learn(&mut states[index..=index]);
            states[index].entries.clear();
        }
        self.decode(states);
        self.learn(states);
        self.replay(states);
        for index in 0..states.len() {
            let Some((from, rounds)) = states[index].of.copy_of.filter(|_| states[index].known == 0) else { continue };
            if states[from].generates() && states[from].trace.drafts.len() == rounds {
                self.copy(states, from, index);
            }
        }
    }

    /// Makes a sequence go on as another one.
    fn copy(&self, states: &mut [State<'_>], from: usize, to: usize) {
        let [from_slot, to_slot] = [from, to].map(|index| states[index].of.slot as i32);
        // SAFETY: the handles are alive.
        unsafe {
            ok(sys::lsys_memory_copy(self.target, from_slot, to_slot, -1, -1));
            if !self.draft.is_null() && !sys::lsys_shares_memory(self.draft) {
                ok(sys::lsys_memory_copy(self.draft, from_slot, to_slot, -1, -1));
            }
            ok(sys::lsys_spec_copy(self.spec, from_slot, to_slot));
        }
        states[to].known = states[from].known;
        states[to].trace = states[from].trace.clone();
    }

    /// Drafts for the sequences that generate. The draft's memory is then as it was.
    fn draft(&self, states: &mut [State<'_>]) {
        let mut requests = Vec::new();
        for state in states.iter_mut().filter(|state| state.generates()) {
            state.draft = Drafted::default();
            let saved = [(self.full, self.target), (self.draft_full, self.draft)];
            state.states = saved.map(|(needed, of)| if needed { save(of, state.of.slot) } else { Vec::new() });
            if state.limit() != 0 {
                requests.push(sys::lsys_draft_request {
                    seq: state.of.slot as i32,
                    n_max: state.limit(),
                    pos: state.position() as i32,
                    last: state.last() as i32,
                    types: state.of.types,
                    want_candidates: state.of.drawn.is_some(),
                    temperature: state.of.drawn.unwrap_or_default().0,
                    seed: state.of.drawn.unwrap_or_default().1,
                });
            }
        }
        // SAFETY: requests are given with their number; results are copied before the next call.
        unsafe { ok(sys::lsys_spec_draft(self.spec, requests.as_ptr(), requests.len())) };
        for state in states.iter_mut().filter(|state| state.generates() && state.limit() != 0) {
            let mut tokens = sys::lsys_tokens::default();
            // SAFETY: as above.
            unsafe {
                ok(sys::lsys_spec_result(self.spec, state.of.slot as i32, &mut tokens, &mut state.draft.from));
                if tokens.size > 0 {
                    let tokens = std::slice::from_raw_parts(tokens.data, tokens.size);
                    state.draft.tokens.extend(tokens.iter().map(|token| *token as u32));
                }
            }
            self.cut(self.draft, state.of.slot, state.position(), self.draft_full.then_some(&state.states[1]));
        }
    }

    /// Decodes the entries of these sequences and shows them to the drafters.
    fn decode(&mut self, states: &mut [State<'_>]) {
        let mut entries: Vec<Entry> = Vec::new();
        for state in states {
            state.first = entries.len();
            entries.extend(&state.entries);
        }
        self.compute(&entries, true);
    }

    fn compute(&mut self, entries: &[Entry], process: bool) {
        if entries.is_empty() {
            return;
        }
        let mut code = 0;
        // SAFETY: the batch was made for the target, and is the one decoded last.
        unsafe {
            sys::lsys_batch_clear(self.batch);
            for (token, position, slot, output) in entries {
                ok(sys::lsys_batch_add(self.batch, *token as i32, *position as i32, *slot as i32, *output));
            }
            ok(sys::lsys_decode(self.target, self.batch, &mut code));
            assert_eq!(code, 0);
            if process {
                ok(sys::lsys_spec_process(self.spec, self.batch));
            }
        }
    }

    /// Takes in what the target said about the entries.
    fn learn(&self, states: &mut [State<'_>]) {
        for state in states.iter_mut().filter(|state| !state.entries.is_empty()) {
            let slot = state.of.slot as i32;
            if state.known < state.of.prompt.len() {
                state.known += state.entries.len();
                if state.generates() {
                    state.trace.text.push(self.next(state.first + state.entries.len() - 1));
                    let prompt: Vec<i32> = state.of.prompt.iter().map(|token| *token as i32).collect();
                    // SAFETY: tokens are given with their number.
                    unsafe { ok(sys::lsys_spec_begin(self.spec, slot, prompt.as_ptr(), prompt.len())) };
                }
                continue;
            }
            let next: Vec<u32> = (0..=state.draft.tokens.len()).map(|at| self.next(state.first + at)).collect();
            let accepted = state.draft.tokens.iter().zip(&next).take_while(|(drafted, right)| drafted == right).count();
            let kept: Vec<i32> = state.entries[..=accepted].iter().map(|entry| entry.0 as i32).collect();
            let position = state.position();
            // SAFETY: as above.
            unsafe {
                if !state.draft.tokens.is_empty() {
                    ok(sys::lsys_spec_accept(self.spec, slot, accepted));
                }
                ok(sys::lsys_spec_extend(self.spec, slot, kept.as_ptr(), kept.len()));
            }
            if accepted < state.draft.tokens.len() {
                let end = if self.replays() { position } else { position + kept.len() };
                self.cut(self.target, state.of.slot, end, self.full.then_some(&state.states[0]));
                self.cut(self.draft, state.of.slot, end, self.draft_full.then_some(&state.states[1]));
            }
            state.trace.text.extend(&next[..=accepted]);
            state.draft.accepted = accepted;
            state.trace.drafts.push(state.draft.clone());
            if state.trace.text.len() >= state.of.length {
                state.done = true;
                // SAFETY: the handle is alive.
                unsafe { ok(sys::lsys_spec_truncate(self.spec, slot, 0)) };
                self.cut(self.target, state.of.slot, 0, None);
                self.cut(self.draft, state.of.slot, 0, None);
            }
        }
    }

    fn replays(&self) -> bool {
        self.full || self.draft_full
    }

    /// Computes again what was right of rejected drafts, where the memories could only be taken back before the draft.
    fn replay(&mut self, states: &[State<'_>]) {
        let mut entries = Vec::new();
        for state in states.iter().filter(|state| self.replays() && state.generates() && !state.entries.is_empty()) {
            match state.trace.drafts.last() {
                Some(draft) if draft.accepted < draft.tokens.len() => {
                    entries.extend(&state.entries[..=draft.accepted]);
                }
                _ => {}
            }
        }
        self.compute(&entries, self.draft_full);
    }

    /// Takes everything from `end` on out of a memory, with the help of a state if there is one.
    fn cut(&self, context: *mut sys::llama_context, slot: usize, end: usize, state: Option<&Vec<u8>>) {
        // SAFETY: the contexts are alive, and the state is one of their own.
        unsafe {
            if context.is_null() || (context == self.draft && sys::lsys_shares_memory(context)) {
                return;
            }
            if let Some(state) = state {
                let flags = sys::LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
                ok(sys::lsys_state_set(context, slot as i32, flags, state.as_ptr(), state.len()));
            }
            ok(sys::lsys_memory_remove(context, slot as i32, end as i32, -1));
        }
    }

    /// The most probable token after an entry of the last batch.
    fn next(&self, entry: usize) -> u32 {
        crate::raw::argmax(&crate::raw::logits(self.target, entry))
    }
}

/// The state of a sequence that cannot be cut back.
fn save(context: *mut sys::llama_context, slot: usize) -> Vec<u8> {
    let (flags, mut size, mut written) = (sys::LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY, 0, 0);
    // SAFETY: the context is alive, and the buffer is as large as it says.
    unsafe {
        ok(sys::lsys_state_size(context, slot as i32, flags, &mut size));
        let mut data = vec![0; size];
        ok(sys::lsys_state_get(context, slot as i32, flags, data.as_mut_ptr(), size, &mut written));
        data.truncate(written);
        data
    }
}
