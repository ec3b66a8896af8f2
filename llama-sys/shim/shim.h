/*
 * A plain C interface over the parts of llama.cpp that are C++ only, and over the parts of its C interface that can throw.
 *
 * Rules that hold for every function here
 *  - No exception leaves it. What went wrong is a status, and its text is kept per thread: lsys_last_error().
 *  - Arguments that llama.cpp would answer with abort() (ids out of range, null handles, a result buffer in the wrong
 *    state) are checked first and give LSYS_INVALID.
 *  - A handle made by a `_new` function is freed by the `_free` function of the same name; null is allowed there.
 *  - Pointers that a handle gives out live until its next call that is not const.
 *  - Strings are UTF-8 or raw bytes with a length; they are never freed by the caller. Text of unknown size comes back
 *    in an lsys_text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-backend.h"
#include "llama.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lsys_status {
    LSYS_OK         = 0,
    LSYS_INVALID    = 1, /* an argument was refused before the call */
    LSYS_EXCEPTION  = 2, /* llama.cpp threw; see lsys_last_error() */
    LSYS_FAILED     = 3, /* llama.cpp answered with null or false; its log says why */
    LSYS_NO_MEMORY  = 4, /* std::bad_alloc */
    LSYS_NOT_FINITE = 5, /* logits hold NaN or infinity, or nothing above minus infinity */
} lsys_status;

/* The text that belongs to the last status other than LSYS_OK of this thread. Never null. */
const char * lsys_last_error(void);

/* ---- text of unknown size ---------------------------------------------------------------------------------------- */

typedef struct lsys_text lsys_text;

const char * lsys_text_data(const lsys_text * text);
size_t       lsys_text_size(const lsys_text * text);
void         lsys_text_free(lsys_text * text);

/* ---- log (log.cpp) ------------------------------------------------------------------------------------------------ */

/* Levels are ggml_log_level. The callback may be called from any thread, also by several at once; it may log itself, and it
 * must not throw. Messages of llama.cpp, ggml and common all go there; nothing is written to stderr or stdout. With null
 * all of them are dropped. `trace` also sends those at debug level, and those that common marks as trace (at info level).
 * A message that is under way in another thread may still reach the callback that was set before. */
typedef void (*lsys_log_callback)(enum ggml_log_level level, const char * text, void * user_data);

void lsys_log_set(lsys_log_callback callback, void * user_data, bool trace);

/* ---- models, contexts (context.cpp), text (vocab.cpp), decoding (core.cpp) ------------------------------------------- */

/* Loads from one path, or from all parts of a split model in order. LSYS_FAILED also when the progress callback stops it. */
lsys_status lsys_model_load(const char ** paths, size_t n_paths, const struct llama_model_params * params, struct llama_model ** out);

/* Freed with llama_free(), after everything that keeps its address. */
lsys_status lsys_context_new(struct llama_model * model, const struct llama_context_params * params, struct llama_context ** out);

/* Threads for the CPU's part of decoding, kept from one batch to the next: a context without them starts new ones for each. *out is
 * NULL where there is nothing to keep: for one thread, or without a CPU backend that has such threads. For use with
 * llama_attach_threadpool(), by one context; freed after it. */
lsys_status lsys_threads_new(int32_t count, ggml_threadpool_t * out);

void lsys_threads_free(ggml_threadpool_t threads);

/* Token count in *n_out; when it is above `capacity` nothing was written and the call is repeated with more room. */
lsys_status lsys_tokenize(const struct llama_vocab * vocab, const char * text, size_t n_text, bool add_special, bool parse_special,
                          llama_token * tokens, size_t capacity, size_t * n_out);

/* The bytes of one token; *n_out as in lsys_tokenize. */
lsys_status lsys_token_to_piece(const struct llama_vocab * vocab, llama_token token, bool special, char * bytes, size_t capacity, size_t * n_out);

/* A list of entries (token, position, sequence, output wanted) that belongs to one context. */
typedef struct lsys_batch lsys_batch;

lsys_status lsys_batch_new  (struct llama_context * ctx, lsys_batch ** out);
void        lsys_batch_free (lsys_batch * batch);
void        lsys_batch_clear(lsys_batch * batch);
size_t      lsys_batch_size (const lsys_batch * batch);
/* LSYS_INVALID when the token is outside the vocabulary, the sequence outside the context, the position negative, or the
 * batch already holds n_batch entries. Entries of one sequence must follow each other. */
lsys_status lsys_batch_add  (lsys_batch * batch, llama_token token, llama_pos pos, llama_seq_id seq, bool output);
/* The same for contexts that read a row of hidden states beside each token, which is copied: next-token heads, and the decoder
 * of an EAGLE-3 draft. All entries of a batch are of one kind. */
lsys_status lsys_batch_add_row(lsys_batch * batch, llama_token token, llama_pos pos, llama_seq_id seq, bool output, const float * row,
                               size_t n_row);
/* What the encoder of an EAGLE-3 draft reads of one token, the target's layers one after the other; at most n_ubatch entries. */
lsys_status lsys_batch_add_features(lsys_batch * batch, const float * row, size_t n_row);

/* Runs the batch through `ctx`, which must be the one it was made for. *code is the return value of llama_decode: 0 done,
 * 1 no room in the memory, 2 aborted, -1 invalid batch, below -1 fatal. LSYS_INVALID when there are more outputs than
 * n_outputs_max. Models with a memory decode, those without encode, as do batches of features. */
lsys_status lsys_decode(struct llama_context * ctx, lsys_batch * batch, int32_t * code);
lsys_status lsys_encode(struct llama_context * ctx, lsys_batch * batch, int32_t * code);
lsys_status lsys_synchronize(struct llama_context * ctx);

/* Logits of entry `index` of the last batch, n_vocab floats; LSYS_INVALID if that entry had no output. */
lsys_status lsys_logits(struct llama_context * ctx, int32_t index, const float ** out);
/* Embedding of entry `index` (pooling none) or of a sequence (pooling other), *n floats. */
lsys_status lsys_embeddings_entry(struct llama_context * ctx, int32_t index, const float ** out, size_t * n);
lsys_status lsys_embeddings_sequence(struct llama_context * ctx, llama_seq_id seq, const float ** out, size_t * n);

/* ---- memory and state (memory.cpp) --------------------------------------------------------------------------------- */

/* How rejected tokens can be taken back. */
typedef enum lsys_rollback {
    LSYS_ROLLBACK_NONE      = 0, /* no memory: speculation is impossible */
    LSYS_ROLLBACK_PARTIAL   = 1, /* any suffix can be removed */
    LSYS_ROLLBACK_FULL      = 2, /* whole sequences only: checkpoint and replay */
    LSYS_ROLLBACK_SNAPSHOTS = 3, /* a suffix of up to n_rs_seq tokens of the last micro-batch */
} lsys_rollback;

/* Finds out by a small trial decode where it must. Clears the memory: call it right after the context was made. A memory
 * that belongs to another context (a gemma4 assistant's) is left alone; what its owner removes is removed. */
lsys_status lsys_rollback_kind(struct llama_context * ctx, lsys_rollback * out);

lsys_status lsys_memory_clear  (struct llama_context * ctx, bool data);
/* Positions [p0, p1); negative p0 from the start, negative p1 to the end. LSYS_FAILED when the memory cannot do it. */
lsys_status lsys_memory_remove (struct llama_context * ctx, llama_seq_id seq, llama_pos p0, llama_pos p1);
/* A whole sequence replaces `to`. A part only where all sequences share one unified KV cache, into an empty sequence. */
lsys_status lsys_memory_copy   (struct llama_context * ctx, llama_seq_id from, llama_seq_id to, llama_pos p0, llama_pos p1);
lsys_status lsys_memory_keep   (struct llama_context * ctx, llama_seq_id seq);
/* LSYS_FAILED when the memory cannot shift. */
lsys_status lsys_memory_shift  (struct llama_context * ctx, llama_seq_id seq, llama_pos p0, llama_pos p1, llama_pos delta);
/* Smallest and largest position held for a sequence, -1 and -1 when it is empty. */
lsys_status lsys_memory_range  (struct llama_context * ctx, llama_seq_id seq, llama_pos * min, llama_pos * max);
bool        lsys_memory_can_shift(struct llama_context * ctx);
/* The memory belongs to another context: this one's calls do not change it. */
bool        lsys_shares_memory(const struct llama_context * ctx);

/* The state of one sequence, or of the whole context with seq = -1. Flags are LLAMA_STATE_SEQ_FLAGS_*, for sequences. What
 * is set must have come from lsys_state_get() of a context of the same model and settings; with ON_DEVICE it must be the
 * last one of its sequence in this very context. LSYS_FAILED leaves the sequence in an unknown state: remove it. */
lsys_status lsys_state_size(struct llama_context * ctx, llama_seq_id seq, llama_state_seq_flags flags, size_t * out);
lsys_status lsys_state_get (struct llama_context * ctx, llama_seq_id seq, llama_state_seq_flags flags, uint8_t * data, size_t size, size_t * written);
lsys_status lsys_state_set (struct llama_context * ctx, llama_seq_id seq, llama_state_seq_flags flags, const uint8_t * data, size_t size);

/* ---- sampling (sampling.cpp) ---------------------------------------------------------------------------------------- */

typedef enum lsys_sampler_stage {
    LSYS_STAGE_DRY         = 1,
    LSYS_STAGE_TOP_K       = 2,
    LSYS_STAGE_TOP_P       = 3,
    LSYS_STAGE_MIN_P       = 4,
    LSYS_STAGE_TYPICAL_P   = 6,
    LSYS_STAGE_TEMPERATURE = 7,
    LSYS_STAGE_XTC         = 8,
    LSYS_STAGE_INFILL      = 9,
    LSYS_STAGE_PENALTIES   = 10,
    LSYS_STAGE_TOP_N_SIGMA = 11,
    LSYS_STAGE_ADAPTIVE_P  = 12,
} lsys_sampler_stage;

typedef enum lsys_grammar_kind {
    LSYS_GRAMMAR_NONE          = 0,
    LSYS_GRAMMAR_USER          = 1, /* GBNF as given */
    LSYS_GRAMMAR_OUTPUT_FORMAT = 2, /* made from a JSON schema; the generation prompt is fed to it first */
    LSYS_GRAMMAR_TOOL_CALLS    = 3, /* made by a chat template; the generation prompt is fed to it first */
} lsys_grammar_kind;

typedef enum lsys_trigger_kind {
    LSYS_TRIGGER_TOKEN        = 0,
    LSYS_TRIGGER_WORD         = 1,
    LSYS_TRIGGER_PATTERN      = 2,
    LSYS_TRIGGER_PATTERN_FULL = 3,
} lsys_trigger_kind;

typedef struct lsys_trigger {
    lsys_trigger_kind kind;
    const char *      value; /* the word or pattern; for a token its text, or null */
    llama_token       token; /* for LSYS_TRIGGER_TOKEN */
} lsys_trigger;

/* A list of tokens. */
typedef struct lsys_tokens {
    const llama_token * data;
    size_t              size;
} lsys_tokens;

/* Everything common_sampler can do. lsys_sampler_defaults() fills in llama.cpp's defaults. Histories are at most 2^24 tokens
 * long, penalties and biases at most 1e6. */
typedef struct lsys_sampler_params {
    uint32_t seed; /* LLAMA_DEFAULT_SEED: random */
    int32_t  n_prev;
    int32_t  n_probs;
    int32_t  min_keep;
    int32_t  top_k;
    float    top_p;
    float    min_p;
    float    xtc_probability;
    float    xtc_threshold;
    float    typical_p;
    float    temperature; /* 0: greedy, whatever the other stages; else at least 1e-6 */
    float    dynatemp_range;
    float    dynatemp_exponent;
    int32_t  penalty_last_n;
    float    penalty_repeat;
    float    penalty_frequency;
    float    penalty_presence;
    float    dry_multiplier;
    float    dry_base;
    int32_t  dry_allowed_length;
    int32_t  dry_penalty_last_n;
    float    adaptive_target;
    float    adaptive_decay;
    int32_t  mirostat; /* 0, 1 or 2 */
    float    mirostat_tau;
    float    mirostat_eta;
    float    top_n_sigma;
    bool     ignore_eos; /* end-of-generation tokens get a bias of minus infinity */
    bool     grammar_lazy;

    const lsys_sampler_stage * stages; /* null: llama.cpp's default chain */
    size_t                     n_stages;
    const char * const *       dry_breakers; /* null: llama.cpp's defaults */
    size_t                     n_dry_breakers;
    const llama_logit_bias *   logit_bias;
    size_t                     n_logit_bias;

    lsys_grammar_kind    grammar_kind;
    const char *         grammar;
    const lsys_trigger * triggers;
    size_t               n_triggers;
    const char * const * preserved_tokens; /* texts; those that are one token are kept, as are such trigger words */
    size_t               n_preserved_tokens;
    const char *         generation_prompt; /* null or what the template put before the answer */

    int32_t             reasoning_budget; /* -1: none */
    lsys_tokens         reasoning_start;
    const lsys_tokens * reasoning_ends;
    size_t              n_reasoning_ends;
    lsys_tokens         reasoning_forced; /* what is forced when the budget is spent; empty: the first end */

    uint32_t min_tokens; /* before so many were generated, no token ends the text, unless all that are left do */
} lsys_sampler_params;

typedef struct lsys_sampler lsys_sampler;

void        lsys_sampler_defaults(lsys_sampler_params * params);
lsys_status lsys_sampler_new  (const struct llama_model * model, const lsys_sampler_params * params, lsys_sampler ** out);
void        lsys_sampler_free (lsys_sampler * sampler);
/* The copy goes on as the original would, and has no candidates yet. */
lsys_status lsys_sampler_clone(lsys_sampler * sampler, lsys_sampler ** out);
/* Forgets all tokens: history, grammar, reasoning and random numbers are those of a new sampler. */
lsys_status lsys_sampler_reset(lsys_sampler * sampler);
/* Tells the sampler of a token. `generated` is false for prompt tokens, which the grammar does not see. LSYS_FAILED when the
 * grammar does not allow it; nothing has changed then. After LSYS_EXCEPTION the sampler must be reset. */
lsys_status lsys_sampler_accept(lsys_sampler * sampler, llama_token token, bool generated);
/* Samples from entry `index` of the last batch, without accepting. LSYS_NOT_FINITE when its logits cannot be used, LSYS_FAILED
 * when biases, grammar and reasoning budget rule out all candidates. */
lsys_status lsys_sampler_sample(lsys_sampler * sampler, struct llama_context * ctx, int32_t index, bool grammar_first, llama_token * out);
/* Samples from the entries in turn, accepts each, and stops after the first that is not the drafted one, or that ends the
 * generation. `indexes` has one entry more than the draft; `out` has room for as many. Whatever the status is, *n_out tells
 * how many tokens were accepted and are in `out`: a row that cannot be used stops it there. */
lsys_status lsys_sampler_verify(lsys_sampler * sampler, struct llama_context * ctx, const int32_t * indexes, const llama_token * draft, size_t n_draft,
                                bool grammar_first, llama_token * out, size_t * n_out);

/* The distribution a drafted token was drawn from. */
typedef struct lsys_candidates {
    const llama_token_data * data;
    size_t                   size;
} lsys_candidates;

/* The same by rejection sampling: `q` has one distribution for each drafted token; an empty one stands for a draft that was
 * certain, as those of lookup are. A greedy sampler compares, whatever q is. */
lsys_status lsys_sampler_verify_rejection(lsys_sampler * sampler, struct llama_context * ctx, const int32_t * indexes, const llama_token * draft,
                                          const lsys_candidates * q, size_t n_draft, bool grammar_first, llama_token * out, size_t * n_out);
/* The candidates left by the last sample, with probabilities, the most probable first if sorted; *selected is an index.
 * LSYS_INVALID before the first sample. */
lsys_status lsys_sampler_candidates(lsys_sampler * sampler, bool sort, lsys_candidates * out, int64_t * selected);
uint32_t    lsys_sampler_seed(const lsys_sampler * sampler);

/* What a sampler has done since it was made or reset. Together with its seed and the tokens, this is all of its state. */
typedef struct lsys_sampler_counts {
    uint64_t draws;           /* rows the chain went through; a second time when a token did not fit the grammar */
    uint64_t rejection_steps; /* steps of the random generator of lsys_sampler_verify_rejection() */
    uint64_t prompt;          /* tokens accepted as not generated */
    uint64_t generated;
    bool     in_order; /* no prompt token came behind a generated one */
} lsys_sampler_counts;

/* LSYS_FAILED when a stage has a state that does not follow from these: mirostat, adaptive-p, XTC; and for a seed that was
 * drawn but cannot be set, LLAMA_DEFAULT_SEED. */
lsys_status lsys_sampler_counted(const lsys_sampler * sampler, lsys_sampler_counts * out);
/* Uses up random numbers as `draws` rows and `rejection_steps` steps would, at most 2^28 of each. Fails as
 * lsys_sampler_counted() does. */
lsys_status lsys_sampler_skip(lsys_sampler * sampler, uint64_t draws, uint64_t rejection_steps);
/* Forces the end of the reasoning from the next token on; LSYS_FAILED when none is going on. */
lsys_status lsys_sampler_end_reasoning(lsys_sampler * sampler);
/* The chain in words. */
lsys_status lsys_sampler_describe(const lsys_sampler * sampler, lsys_text ** out);

/* ---- what a grammar leaves no choice about (forced.cpp) --------------------------------------------------------------- */

typedef struct lsys_forced lsys_forced;

/* Of the grammar of these parameters, of which nothing else is read. LSYS_INVALID when there is none or it is lazy. */
lsys_status lsys_forced_new   (const struct llama_model * model, const lsys_sampler_params * params, lsys_forced ** out);
void        lsys_forced_free  (lsys_forced * forced);
/* Tells it of a generated token. One that the grammar does not allow ends what it knows: from then on nothing is forced. */
lsys_status lsys_forced_accept(lsys_forced * forced, llama_token token);
/* The text that every continuation begins with, as far as max_bytes reaches; often empty. */
lsys_status lsys_forced_text  (lsys_forced * forced, size_t max_bytes, lsys_text ** out);

/* ---- speculation (speculation.cpp, drafters.cpp) ---------------------------------------------------------------------- */

typedef enum lsys_spec_type {
    LSYS_SPEC_NONE          = 0,
    LSYS_SPEC_DRAFT_SIMPLE  = 1,
    LSYS_SPEC_DRAFT_EAGLE3  = 2,
    LSYS_SPEC_DRAFT_MTP     = 3,
    LSYS_SPEC_DRAFT_DFLASH  = 4,
    LSYS_SPEC_DRAFT_DSPARK  = 5,
    LSYS_SPEC_NGRAM_SIMPLE  = 6,
    LSYS_SPEC_NGRAM_MAP_K   = 7,
    LSYS_SPEC_NGRAM_MAP_K4V = 8,
    LSYS_SPEC_NGRAM_MOD     = 9,
    LSYS_SPEC_NGRAM_CACHE   = 10,
} lsys_spec_type;

typedef struct lsys_ngram_map_params {
    uint16_t size_n;   /* tokens looked up; 1 to 1024, as the others */
    uint16_t size_m;   /* tokens drafted */
    uint16_t min_hits; /* sightings before a draft */
} lsys_ngram_map_params;

typedef struct lsys_spec_params {
    const lsys_spec_type * types;
    size_t                 n_types;
    struct llama_context * ctx_target;
    struct llama_context * ctx_draft; /* null for the n-gram types */
    uint32_t               n_seq;

    int32_t draft_n_max;
    int32_t draft_n_min;
    float   draft_p_min;
    bool    draft_backend_sampling; /* on the device; of several sequences only for next-token heads */
    bool    draft_probabilistic; /* draw drafts and give their distributions; else the most probable token */

    int32_t ngram_mod_match;
    int32_t ngram_mod_min;
    int32_t ngram_mod_max;

    lsys_ngram_map_params ngram_simple;
    lsys_ngram_map_params ngram_map_k;
    lsys_ngram_map_params ngram_map_k4v;

    const char * ngram_cache_static;  /* null or a path; must be readable and of the right format */
    const char * ngram_cache_dynamic; /* null or a path; written when freed */
} lsys_spec_params;

typedef struct lsys_spec lsys_spec;

void lsys_spec_defaults(lsys_spec_params * params);
/* The contexts must outlive the handle, which keeps their addresses. At most one type may need a draft model. LSYS_INVALID
 * tells what does not fit together: vocabularies, widths, layers, sizes of batches, files. Makes the target give the hidden
 * states that the drafters read. */
lsys_status lsys_spec_new (const lsys_spec_params * params, lsys_spec ** out);
void        lsys_spec_free(lsys_spec * spec);
/* Whether lsys_spec_new() would find something that does not fit together, for drafting by other means. */
lsys_status lsys_spec_check(const lsys_spec_params * params);
/* The longest draft the initialised drafters can give. */
int32_t     lsys_spec_n_max(const lsys_spec * spec);

/* The handle keeps the history of each sequence: what is in the target's memory, without the token sampled last.
 * begin() sets it once the prompt has been processed; extend() and truncate() keep it in step. begin() and truncate() drop
 * the draft. */
lsys_status lsys_spec_begin   (lsys_spec * spec, llama_seq_id seq, const llama_token * tokens, size_t n_tokens);
lsys_status lsys_spec_extend  (lsys_spec * spec, llama_seq_id seq, const llama_token * tokens, size_t n_tokens);
lsys_status lsys_spec_truncate(lsys_spec * spec, llama_seq_id seq, size_t n_tokens);
/* For a sequence whose memories end somewhere else than the drafters last saw: truncate(0) makes them forget what they
 * noted of hidden states, for memories that are emptied; seed() gives next-token heads the target's hidden state of entry
 * `index` of its last batch, which must be the last token that both memories hold. Other drafters need no seed. */
lsys_status lsys_spec_seed    (lsys_spec * spec, llama_seq_id seq, int32_t index);
/* `to` goes on as `from` would: for a sequence whose memories are copied, in target and draft. Its history and what the
 * drafters noted of hidden states become those of `from`, its own draft is dropped. What lookup has learned is handed on but
 * for the cache, which learns the history again, and random numbers start anew from the next request's seed. */
lsys_status lsys_spec_copy    (lsys_spec * spec, llama_seq_id from, llama_seq_id to);

/* Shows a batch of the target to the drafters, after it was decoded there and before the next is. LSYS_FAILED: a drafter
 * could not follow. Positions that the draft context holds already must have been removed there. */
lsys_status lsys_spec_process(lsys_spec * spec, lsys_batch * batch);

typedef struct lsys_draft_request {
    llama_seq_id seq;
    int32_t      n_max; /* limit of this draft; -1: none, 0: no draft */
    llama_pos    pos;   /* where `last` will stand */
    llama_token  last;  /* sampled last, not yet in any memory */
    bool         want_candidates;
    float        temperature; /* the target's, read when candidates are wanted */
    uint32_t     seed;
    uint32_t     types; /* who may draft: 1u << lsys_spec_type of each; 0: everyone */
} lsys_draft_request;

/* Drafts for all these sequences in one go: the drafters are asked in their order, each for the sequences that allow it and
 * have no draft yet. A draft model leaves what it drafted in its memory, from `pos` on: remove it before the next process().
 * Tokens outside the target's vocabulary are cut off. Unless the status is LSYS_OK none of the sequences has a draft. */
lsys_status lsys_spec_draft(lsys_spec * spec, const lsys_draft_request * requests, size_t n_requests);
/* What the last draft() gave for a sequence (possibly nothing), and which drafter it came from. */
lsys_status lsys_spec_result(const lsys_spec * spec, llama_seq_id seq, lsys_tokens * out, lsys_spec_type * from);
/* The distribution of drafted token `index`; empty unless the drafter gave them. */
lsys_status lsys_spec_candidates(const lsys_spec * spec, llama_seq_id seq, size_t index, lsys_candidates * out);
/* How many of the sequence's drafted tokens the target accepted: once for each draft, after process(), and at most as many
 * as were drafted. */
lsys_status lsys_spec_accept(lsys_spec * spec, llama_seq_id seq, size_t n_accepted);
/* The same for a draft that none of the drafters made: those with a memory must know what of the last batch stays. */
lsys_status lsys_spec_accept_foreign(lsys_spec * spec, llama_seq_id seq, size_t n_accepted);

/* The drafters' own state of a sequence; empty when they keep none that can be saved. */
lsys_status lsys_spec_state_get(lsys_spec * spec, llama_seq_id seq, lsys_text ** out);
lsys_status lsys_spec_state_set(lsys_spec * spec, llama_seq_id seq, const uint8_t * data, size_t size);

typedef struct lsys_spec_stats {
    lsys_spec_type type;
    uint64_t calls_begin, calls_draft, calls_accept;
    uint64_t drafts, drafts_accepted; /* drafts given; drafts of which at least one token was accepted */
    uint64_t tokens, tokens_accepted;
    uint64_t us_begin, us_draft, us_accept;
} lsys_spec_stats;

/* One entry for each initialised drafter, in the order in which they are asked. */
size_t      lsys_spec_n_drafters(const lsys_spec * spec);
lsys_status lsys_spec_stats_of(const lsys_spec * spec, size_t drafter, lsys_spec_stats * out);
/* Accepted tokens by draft position. */
lsys_status lsys_spec_accepted_per_position(const lsys_spec * spec, size_t drafter, uint64_t * counts, size_t capacity, size_t * n_out);

/* ---- chat (chat.cpp): JSON in, JSON out ------------------------------------------------------------------------------- */

typedef struct lsys_chat_templates lsys_chat_templates;
typedef struct lsys_chat           lsys_chat;

/* `source` null: the template of the model. LSYS_FAILED if it has none. */
lsys_status lsys_chat_templates_new (const struct llama_model * model, const char * source, lsys_chat_templates ** out);
void        lsys_chat_templates_free(lsys_chat_templates * templates);
lsys_status lsys_chat_templates_source(const lsys_chat_templates * templates, lsys_text ** out);
/* JSON object of what the template supports. */
lsys_status lsys_chat_templates_caps(const lsys_chat_templates * templates, lsys_text ** out);

/* Renders a conversation. `inputs` is a JSON object:
 *   messages (OpenAI form, required), tools (OpenAI form), tool_choice ("auto", "required", "none"), parallel_tool_calls,
 *   json_schema (object), grammar (GBNF), add_generation_prompt (true), enable_thinking (true),
 *   reasoning_format ("none", "auto", "deepseek", "deepseek-legacy"), template_arguments (object of any JSON values),
 *   continue_final_message (bool, "content" or "reasoning_content").
 * Null stands for a missing value, reasoning_format for "auto"; other keys are refused. The handle keeps the parser for the
 * answer. */
lsys_status lsys_chat_new (const lsys_chat_templates * templates, const char * inputs, lsys_chat ** out);
void        lsys_chat_free(lsys_chat * chat);
/* JSON object: prompt, grammar, grammar_kind, grammar_lazy, triggers [{kind, value, token}], preserved_tokens, stops,
 * generation_prompt, format, supports_thinking, thinking_start, thinking_ends. Kinds are those of lsys_sampler_params. */
lsys_status lsys_chat_rendered(const lsys_chat * chat, lsys_text ** out);
/* Adds a piece of the answer, parses all of it so far and gives a JSON object: message {role, content, reasoning_content,
 * tool_calls} and deltas [{content, reasoning_content, tool_call_index, tool_call}] since the last call, without the keys
 * that have nothing new. A tool call is {id, name, arguments}; in a delta, what is to be appended. With `final` the answer
 * must be complete. LSYS_EXCEPTION when it does not have the template's form; the piece was added nevertheless. */
lsys_status lsys_chat_feed(lsys_chat * chat, const char * piece, size_t n_piece, bool final, lsys_text ** out);

/* GBNF for a JSON schema. */
lsys_status lsys_json_schema_to_grammar(const char * schema, lsys_text ** out);

/* ---- fitting into device memory (fit.cpp) ------------------------------------------------------------------------------ */

typedef struct lsys_fit_extra {
    const char *                  path;
    struct llama_model_params *   model;
    struct llama_context_params * context;
    bool                          shares_model; /* its weights are the main model's, as for an MTP context */
} lsys_fit_extra;

typedef enum lsys_fit_result { LSYS_FIT_OK = 0, LSYS_FIT_TOO_LARGE = 1, LSYS_FIT_ERROR = 2 } lsys_fit_result;

/* Changes what still has its default in `model` and `context` so that the model fits. `tensor_split` has room for
 * llama_max_devices() floats, `overrides` for llama_max_tensor_buft_overrides(), `margins` one size for each device.
 * Calls are serialised, since llama.cpp swaps its global logger meanwhile. Files that `compat` would refuse can abort. */
lsys_status lsys_fit(const char * path, struct llama_model_params * model, struct llama_context_params * context, float * tensor_split,
                     struct llama_model_tensor_buft_override * overrides, size_t * margins, uint32_t n_ctx_min, const lsys_fit_extra * extra,
                     lsys_fit_result * out);

/* ---- what llama-ext.h offers (ext.cpp) ---------------------------------------------------------------------------------- */

lsys_status lsys_set_embeddings_nextn(struct llama_context * ctx, bool on, bool masked);
/* Row `index` of the hidden states before the last norm, *n floats; LSYS_FAILED when there is none. */
lsys_status lsys_embeddings_nextn(struct llama_context * ctx, int32_t index, const float ** out, size_t * n);
lsys_status lsys_set_nextn_head(struct llama_context * ctx, int32_t head);
lsys_status lsys_set_layer_input(struct llama_context * ctx, uint32_t layer, bool on);
/* The inputs of a layer for the last micro-batch, n_embd floats a row; LSYS_INVALID unless it was switched on. */
lsys_status lsys_layer_input(struct llama_context * ctx, uint32_t layer, const float ** out);
struct llama_context * lsys_context_other(struct llama_context * ctx);
/* Layers of the target that a dependent draft reads. */
lsys_status lsys_target_layers(const struct llama_model * model, int32_t * layers, size_t capacity, size_t * n_out);
int32_t     lsys_dflash_selector_top_k(const struct llama_model * model);
int32_t     lsys_model_n_devices(const struct llama_model * model);
ggml_backend_dev_t lsys_model_device(const struct llama_model * model, int32_t index); /* null when out of range */

typedef enum lsys_memory_kind { LSYS_MEMORY_DEVICE = 0, LSYS_MEMORY_HOST = 1, LSYS_MEMORY_BUFFER = 2 } lsys_memory_kind;

typedef struct lsys_memory_row {
    lsys_memory_kind kind;
    char     name[64]; /* cut to fit, always terminated */
    int64_t  total, free; /* of the device, in bytes; 0 unless it is one */
    uint64_t model, context, compute; /* held by this context, in bytes */
} lsys_memory_row;

lsys_status lsys_memory_breakdown(struct llama_context * ctx, lsys_memory_row * rows, size_t capacity, size_t * n_out);
/* The same for a model that is not loaded: nothing is allocated. Can abort on files that `compat` would refuse. */
lsys_status lsys_measure(const char * path, const struct llama_model_params * model, const struct llama_context_params * context,
                         lsys_memory_row * rows, size_t capacity, size_t * n_out);

/* ---- what the bindings are checked against (abi.cpp) ---------------------------------------------------------------------- */

typedef struct lsys_abi_fact {
    const char * name; /* "sizeof llama_batch", "alignof ...", "offset llama_batch.pos", "LLAMA_VOCAB_TYPE_BPE" */
    int64_t      value;
} lsys_abi_fact;

/* Sizes, alignments, offsets and enum values as the C++ compiler sees them. */
const lsys_abi_fact * lsys_abi_facts(size_t * n_out);

#ifdef __cplusplus
}
#endif
