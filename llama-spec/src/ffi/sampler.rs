//! A sampler of llama.cpp: the owner of its handle, and the C struct its options become.

use super::backend;
use super::status::{Failed, c_string, call, take_text};
use crate::context::Context;
use crate::error::{Error, Failure, Result};
use crate::model::Model;
use crate::sample::prepare::{GrammarKind, Prepared};
use crate::sample::state::Counts;
use crate::sample::{Candidate, Candidates, Mirostat, SamplerOptions, Stage, Trigger};
use crate::token::Token;
use llama_sys as sys;
use std::ffi::{CString, c_char};
use std::ptr::NonNull;

/// Fields drop in this order: the sampler before the model whose vocabulary it points to.
#[derive(Debug)]
pub(crate) struct RawSampler {
    handle: Handle,
    model: Model,
    /// Scratch space of `verify`, kept so that it allocates once.
    entries: Vec<i32>,
    distributions: Vec<sys::lsys_candidates>,
}

#[derive(Debug)]
struct Handle(NonNull<sys::lsys_sampler>);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_sampler_new or lsys_sampler_clone and is freed only here.
        unsafe { sys::lsys_sampler_free(self.0.as_ptr()) }
    }
}

// SAFETY: a sampler has no ties to the thread that made it, and RawSampler is not Sync. The pointers in `distributions` are
// only read in the call that fills them in.
unsafe impl Send for RawSampler {}

impl RawSampler {
    pub(crate) fn new(model: &Model, options: &SamplerOptions, prepared: &Prepared) -> Result<Self, Failure> {
        let mut sampler = std::ptr::null_mut();
        with_params(options, prepared, |params| {
            // SAFETY: the model is alive, as is all that `params` points to, which shim.h copies.
            call(|| unsafe { sys::lsys_sampler_new(model.raw().as_ptr(), params, &mut sampler) })
        })??;
        Ok(Self::own(sampler, model))
    }

    fn own(sampler: *mut sys::lsys_sampler, model: &Model) -> Self {
        let handle = Handle(NonNull::new(sampler).expect("shim.h: a sampler is made when the status is LSYS_OK"));
        Self { handle, model: model.clone(), entries: Vec::new(), distributions: Vec::new() }
    }

    fn as_ptr(&self) -> *mut sys::lsys_sampler {
        self.handle.0.as_ptr()
    }

    pub(crate) fn try_clone(&self) -> Result<Self, Failed> {
        let mut copy = std::ptr::null_mut();
        // SAFETY: the sampler is alive, and copying it only reads.
        call(|| unsafe { sys::lsys_sampler_clone(self.as_ptr(), &mut copy) })?;
        Ok(Self::own(copy, &self.model))
    }

    pub(crate) fn reset(&mut self) -> Result<(), Failed> {
        // SAFETY: the sampler is alive.
        call(|| unsafe { sys::lsys_sampler_reset(self.as_ptr()) })
    }

    pub(crate) fn accept(&mut self, token: Token, generated: bool) -> Result<(), Failed> {
        // SAFETY: the sampler is alive; the caller has checked the token, and the shim does too.
        call(|| unsafe { sys::lsys_sampler_accept(self.as_ptr(), token.id(), generated) })
    }

    pub(crate) fn sample(&mut self, context: &Context, entry: usize, grammar_first: bool) -> Result<Token, Failed> {
        let mut token = sys::LLAMA_TOKEN_NULL;
        let entry = i32::try_from(entry).unwrap_or(i32::MAX);
        let context = context.raw().as_ptr();
        // SAFETY: sampler and context are alive, of the same model, and each on one thread; the shim checks the entry.
        call(|| unsafe { sys::lsys_sampler_sample(self.as_ptr(), context, entry, grammar_first, &mut token) })?;
        Ok(Token::new(token))
    }

    /// `entries` has one element more than `draft`; the accepted tokens are added to `accepted`.
    pub(crate) fn verify(
        &mut self,
        context: &Context,
        entries: &[usize],
        draft: &[Token],
        grammar_first: bool,
        accepted: &mut Vec<Token>,
    ) -> Result<(), Failed> {
        self.set_entries(entries, draft);
        let (sampler, context) = (self.as_ptr(), context.raw().as_ptr());
        let (entries, drafted) = (self.entries.as_ptr(), draft.as_ptr().cast());
        // SAFETY: as in `sample`; Token is transparent over llama_token, and `collect` gives room for one token an entry.
        collect(accepted, draft.len() + 1, |out, n_out| unsafe {
            sys::lsys_sampler_verify(sampler, context, entries, drafted, draft.len(), grammar_first, out, n_out)
        })
    }

    /// As `verify`; there is one distribution for each drafted token.
    pub(crate) fn verify_rejection(
        &mut self,
        context: &Context,
        entries: &[usize],
        draft: &[Token],
        distributions: &[&[Candidate]],
        grammar_first: bool,
        accepted: &mut Vec<Token>,
    ) -> Result<(), Failed> {
        assert_eq!(distributions.len(), draft.len(), "checked by the caller: one distribution for each drafted token");
        self.set_entries(entries, draft);
        self.distributions.clear();
        // `Candidate` has the layout of llama_token_data: it is asserted where it is defined.
        self.distributions.extend(
            distributions.iter().map(|all| sys::lsys_candidates { data: all.as_ptr().cast(), size: all.len() }),
        );
        let (sampler, context) = (self.as_ptr(), context.raw().as_ptr());
        let (entries, drafted, q) = (self.entries.as_ptr(), draft.as_ptr().cast(), self.distributions.as_ptr());
        // SAFETY: as in `verify`; the distributions are borrowed during the call.
        collect(accepted, draft.len() + 1, |out, n_out| unsafe {
            sys::lsys_sampler_verify_rejection(
                sampler,
                context,
                entries,
                drafted,
                q,
                draft.len(),
                grammar_first,
                out,
                n_out,
            )
        })
    }

    fn set_entries(&mut self, entries: &[usize], draft: &[Token]) {
        assert_eq!(entries.len(), draft.len() + 1, "checked by the caller: one entry more than drafted tokens");
        self.entries.clear();
        self.entries.extend(entries.iter().map(|entry| i32::try_from(*entry).unwrap_or(i32::MAX)));
    }

    /// Something has been sampled since the handle was made.
    pub(crate) fn candidates(&mut self, sorted: bool) -> Result<Candidates<'_>, Failed> {
        let (mut all, mut selected) = (sys::lsys_candidates::default(), -1);
        // SAFETY: the sampler is alive. The list lives until the sampler's next call, which needs `&mut self` while
        // `Candidates` borrows it; `Candidate` has the layout of llama_token_data.
        unsafe {
            call(|| sys::lsys_sampler_candidates(self.as_ptr(), sorted, &mut all, &mut selected))?;
            let all = match all.size {
                0 => &[],
                size => std::slice::from_raw_parts(all.data.cast::<Candidate>(), size),
            };
            Ok(Candidates { all, selected: usize::try_from(selected).ok() })
        }
    }

    pub(crate) fn seed(&self) -> Option<u32> {
        // SAFETY: the sampler is alive; reads only.
        let seed = unsafe { sys::lsys_sampler_seed(self.as_ptr()) };
        (seed != sys::LLAMA_DEFAULT_SEED).then_some(seed)
    }

    /// A refusal when a stage has a state that these numbers do not tell.
    pub(crate) fn counts(&self) -> Result<Counts, Failed> {
        let mut counts = sys::lsys_sampler_counts::default();
        // SAFETY: the sampler is alive; reads only.
        call(|| unsafe { sys::lsys_sampler_counted(self.as_ptr(), &mut counts) })?;
        Ok(Counts {
            draws: counts.draws,
            rejection_steps: counts.rejection_steps,
            prompt: counts.prompt,
            generated: counts.generated,
            in_order: counts.in_order,
        })
    }

    /// Uses up random numbers.
    pub(crate) fn skip(&mut self, draws: u64, rejection_steps: u64) -> Result<(), Failed> {
        // SAFETY: the sampler is alive.
        call(|| unsafe { sys::lsys_sampler_skip(self.as_ptr(), draws, rejection_steps) })
    }

    pub(crate) fn end_reasoning(&mut self) -> Result<(), Failed> {
        // SAFETY: the sampler is alive.
        call(|| unsafe { sys::lsys_sampler_end_reasoning(self.as_ptr()) })
    }

    pub(crate) fn describe(&self) -> Result<String, Failed> {
        // SAFETY: the sampler is alive; reads only.
        let words = take_text(|out| unsafe { sys::lsys_sampler_describe(self.as_ptr(), out) })?;
        Ok(String::from_utf8_lossy(&words).trim().to_owned())
    }
}

/// Appends the tokens that a function writes, at most `room`; also those it wrote before it failed.
fn collect(
    tokens: &mut Vec<Token>,
    room: usize,
    function: impl FnOnce(*mut sys::llama_token, *mut usize) -> sys::lsys_status,
) -> Result<(), Failed> {
    tokens.reserve(room);
    let (before, mut written) = (tokens.len(), 0);
    // SAFETY: there is room for `room` tokens behind the existing ones, and Token is transparent over llama_token; the
    // function has initialised the first `written` of them, whatever it ends with.
    unsafe {
        let out = tokens.as_mut_ptr().add(before).cast();
        let done = call(|| function(out, &mut written));
        tokens.set_len(before + written.min(room));
        done
    }
}

/// Calls a function with the options as C wants them; what they point to lives until it is back.
pub(super) fn with_params<T>(
    options: &SamplerOptions,
    prepared: &Prepared,
    function: impl FnOnce(&sys::lsys_sampler_params) -> T,
) -> Result<T, Failure> {
    let texts = Texts::new(options, prepared)?;
    let arrays = Arrays::new(options, prepared, &texts);
    Ok(function(&params(options, prepared, &texts, &arrays)))
}

/// The strings of the options, as C wants them.
struct Texts {
    gbnf: Option<CString>,
    triggers: Vec<CString>,
    generation_prompt: CString,
    breakers: Vec<CString>,
}

impl Texts {
    fn new(options: &SamplerOptions, prepared: &Prepared) -> Result<Self, Failure> {
        let grammar = prepared.grammar.as_ref();
        let strings = |texts: &[String]| texts.iter().map(|text| c_string(text)).collect::<Result<Vec<_>, _>>();
        let trigger = |trigger: &Trigger| match trigger {
            Trigger::Token(_) => c_string(""),
            Trigger::Word(text) | Trigger::Pattern(text) | Trigger::FullPattern(text) => c_string(text),
        };
        Ok(Self {
            gbnf: grammar.map(|grammar| c_string(&grammar.gbnf)).transpose()?,
            triggers: grammar.map_or(Ok(Vec::new()), |grammar| grammar.triggers.iter().map(trigger).collect())?,
            generation_prompt: c_string(&options.generation_prompt)?,
            breakers: options.dry.as_ref().map_or(Ok(Vec::new()), |dry| strings(&dry.breakers))?,
        })
    }
}

/// The arrays that the C struct points to.
struct Arrays {
    stages: Vec<sys::lsys_sampler_stage>,
    breakers: Vec<*const c_char>,
    bias: Vec<sys::llama_logit_bias>,
    triggers: Vec<sys::lsys_trigger>,
    ends: Vec<sys::lsys_tokens>,
}

impl Arrays {
    fn new(options: &SamplerOptions, prepared: &Prepared, texts: &Texts) -> Self {
        let pointers = |strings: &[CString]| strings.iter().map(|string| string.as_ptr()).collect();
        let mut stages: Vec<_> = options.effective_stages().map(raw_stage).collect();
        if options.adaptive_p.is_some() {
            stages.push(sys::LSYS_STAGE_ADAPTIVE_P);
        }
        let banned = options.banned.iter().map(|token| (*token, f32::NEG_INFINITY));
        let bias = options.logit_bias.iter().map(|entry| (entry.token, entry.bias)).chain(banned);
        let triggers = prepared.grammar.iter().flat_map(|grammar| &grammar.triggers).zip(&texts.triggers);
        Self {
            stages,
            breakers: pointers(&texts.breakers),
            bias: bias.map(|(token, bias)| sys::llama_logit_bias { token: token.id(), bias }).collect(),
            triggers: triggers.map(|(trigger, text)| raw_trigger(trigger, text)).collect(),
            ends: prepared.reasoning.iter().flat_map(|reasoning| &reasoning.ends).map(|end| raw_tokens(end)).collect(),
        }
    }
}

fn params(options: &SamplerOptions, prepared: &Prepared, texts: &Texts, arrays: &Arrays) -> sys::lsys_sampler_params {
    let count = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    let mut params = sys::lsys_sampler_params::default();
    // SAFETY: the function fills the struct in.
    unsafe { sys::lsys_sampler_defaults(&mut params) };
    params.seed = options.seed.unwrap_or(sys::LLAMA_DEFAULT_SEED);
    params.min_keep = count(options.min_keep);
    params.top_k = count(options.top_k);
    params.top_p = options.top_p;
    params.min_p = options.min_p;
    params.typical_p = options.typical_p;
    params.top_n_sigma = options.top_n_sigma.unwrap_or(-1.0);
    let xtc = options.xtc.map(|xtc| (xtc.probability, xtc.threshold));
    (params.xtc_probability, params.xtc_threshold) = xtc.unwrap_or((0.0, params.xtc_threshold));
    params.temperature = options.temperature;
    let dynamic = options.dynamic_temperature.map(|dynamic| (dynamic.range, dynamic.exponent));
    (params.dynatemp_range, params.dynatemp_exponent) = dynamic.unwrap_or((0.0, 1.0));
    let penalties = &options.penalties;
    params.penalty_last_n = count(penalties.last_n);
    params.penalty_repeat = penalties.repeat;
    (params.penalty_frequency, params.penalty_presence) = (penalties.frequency, penalties.presence);
    params.dry_multiplier = 0.0;
    if let Some(dry) = &options.dry {
        (params.dry_multiplier, params.dry_base) = (dry.multiplier, dry.base);
        (params.dry_allowed_length, params.dry_penalty_last_n) = (count(dry.allowed_length), count(dry.last_n));
        (params.dry_breakers, params.n_dry_breakers) = (arrays.breakers.as_ptr(), arrays.breakers.len());
    }
    let adaptive = options.adaptive_p.map(|adaptive| (adaptive.target, adaptive.decay));
    (params.adaptive_target, params.adaptive_decay) = adaptive.unwrap_or((-1.0, params.adaptive_decay));
    (params.mirostat, params.mirostat_tau, params.mirostat_eta) = match options.mirostat {
        Mirostat::Off => (0, params.mirostat_tau, params.mirostat_eta),
        Mirostat::V1 { tau, eta } => (1, tau, eta),
        Mirostat::V2 { tau, eta } => (2, tau, eta),
    };
    params.ignore_eos = options.ignore_eos;
    params.min_tokens = options.min_tokens;
    params.generation_prompt = texts.generation_prompt.as_ptr();
    (params.stages, params.n_stages) = (arrays.stages.as_ptr(), arrays.stages.len());
    (params.logit_bias, params.n_logit_bias) = (arrays.bias.as_ptr(), arrays.bias.len());
    if let (Some(grammar), Some(gbnf)) = (&prepared.grammar, &texts.gbnf) {
        params.grammar_kind = match grammar.kind {
            GrammarKind::User => sys::LSYS_GRAMMAR_USER,
            GrammarKind::Template => sys::LSYS_GRAMMAR_TOOL_CALLS,
        };
        params.grammar = gbnf.as_ptr();
        params.grammar_lazy = grammar.lazy;
        (params.triggers, params.n_triggers) = (arrays.triggers.as_ptr(), arrays.triggers.len());
    }
    if let Some(reasoning) = &prepared.reasoning {
        params.reasoning_budget = reasoning.budget.map_or(-1, count);
        params.reasoning_start = raw_tokens(&reasoning.start);
        (params.reasoning_ends, params.n_reasoning_ends) = (arrays.ends.as_ptr(), arrays.ends.len());
        params.reasoning_forced = raw_tokens(&reasoning.forced);
    }
    params
}

fn raw_tokens(tokens: &[Token]) -> sys::lsys_tokens {
    sys::lsys_tokens { data: tokens.as_ptr().cast(), size: tokens.len() }
}

fn raw_trigger(trigger: &Trigger, text: &CString) -> sys::lsys_trigger {
    let (kind, token) = match trigger {
        Trigger::Token(token) => (sys::LSYS_TRIGGER_TOKEN, token.id()),
        Trigger::Word(_) => (sys::LSYS_TRIGGER_WORD, sys::LLAMA_TOKEN_NULL),
        Trigger::Pattern(_) => (sys::LSYS_TRIGGER_PATTERN, sys::LLAMA_TOKEN_NULL),
        Trigger::FullPattern(_) => (sys::LSYS_TRIGGER_PATTERN_FULL, sys::LLAMA_TOKEN_NULL),
    };
    sys::lsys_trigger { kind, value: text.as_ptr(), token }
}

fn raw_stage(stage: Stage) -> sys::lsys_sampler_stage {
    match stage {
        Stage::Penalties => sys::LSYS_STAGE_PENALTIES,
        Stage::Dry => sys::LSYS_STAGE_DRY,
        Stage::TopNSigma => sys::LSYS_STAGE_TOP_N_SIGMA,
        Stage::TopK => sys::LSYS_STAGE_TOP_K,
        Stage::TypicalP => sys::LSYS_STAGE_TYPICAL_P,
        Stage::TopP => sys::LSYS_STAGE_TOP_P,
        Stage::MinP => sys::LSYS_STAGE_MIN_P,
        Stage::Xtc => sys::LSYS_STAGE_XTC,
        Stage::Temperature => sys::LSYS_STAGE_TEMPERATURE,
        Stage::Infill => sys::LSYS_STAGE_INFILL,
    }
}

pub(crate) fn json_schema_to_grammar(schema: &str) -> Result<String> {
    backend::init()?;
    let refused = |failure: Failure| Error::Sample { failure };
    let schema = c_string(schema).map_err(refused)?;
    // SAFETY: the schema is NUL-terminated and lives during the call.
    let gbnf = take_text(|out| unsafe { sys::lsys_json_schema_to_grammar(schema.as_ptr(), out) })
        .map_err(|failed| refused(failed.into()))?;
    String::from_utf8(gbnf).map_err(|_| refused(Failure::new("the schema gave a grammar that is not UTF-8")))
}
