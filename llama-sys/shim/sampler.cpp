// Sampling and verifying with common's sampler.
//
// Its file is part of this one, since a verification has to see the grammar and the candidates that the type keeps to itself.
// This object thereby takes the place of common's own, as the log does.
#include "inside.h"

#define ring_buffer lsys_ring_buffer // libllama has another one of this name
#include "../common/sampling.cpp"
#undef ring_buffer

#include "distribution.h"
#include "ledger.h"
#include "sampler_params.h"

#include <optional>
#include <set>

struct lsys_sampler {
    common_sampler_ptr inner;
    int32_t            n_vocab = 0;
    lsys::ledger *     ledger  = nullptr; // in the chain, which owns it

    // As they were made, for a reset; null when there is none.
    llama_sampler * grammar_at_start = nullptr;
    llama_sampler * budget_at_start  = nullptr;

    // The tokens, in order, that stages may raise, lower or rule out, where of all others only the one with the largest logit
    // can be taken; nothing where it is not so simple. The whole vocabulary need not be listed then.
    std::optional<std::vector<llama_token>> contested;

    bool greedy  = false; // takes the best candidate and computes no probabilities
    bool sampled = false; // the candidates of a sample of this very object are there
    bool broken  = false; // an exception left the grammar half way

    ~lsys_sampler() {
        llama_sampler_free(grammar_at_start);
        llama_sampler_free(budget_at_start);
    }
};

namespace {

// More would take seconds.
constexpr uint64_t MAX_SKIPPED = 1 << 28;

// `short_list`: what can be chosen, where that is known without the whole row; else it stays empty.
lsys_status check_row(const lsys_sampler & sampler, llama_context * ctx, int32_t index, bool * sampled_on_device,
                      std::vector<llama_token_data> & short_list) {
    if (ctx == nullptr || index < 0 || (uint32_t) index >= llama_n_batch(ctx)) {
        return lsys::refuse("entry %d is outside the batch", index);
    }
    if (sampler.broken) {
        return lsys::refuse("the sampler failed before; reset it first");
    }
    if (lsys::vocab_size(llama_get_model(ctx)) != sampler.n_vocab) {
        return lsys::refuse("the sampler is for a vocabulary of %d, the context's is %d", sampler.n_vocab, lsys::vocab_size(llama_get_model(ctx)));
    }
    const float * const row = llama_get_logits_ith(ctx, index);
    if (row == nullptr) {
        return lsys::refuse("entry %d of the last batch has no logits", index);
    }
    *sampled_on_device = llama_get_sampled_token_ith(ctx, index) != LLAMA_TOKEN_NULL;
    if (*sampled_on_device) {
        return sampler.inner->grmr == nullptr && sampler.inner->rbudget == nullptr
                   ? LSYS_OK
                   : lsys::refuse("a grammar or reasoning budget cannot be combined with sampling on the device");
    }
    const bool   partial = llama_get_sampled_logits_ith(ctx, index) != nullptr;
    const size_t size    = partial ? llama_get_sampled_logits_count_ith(ctx, index) : (size_t) sampler.n_vocab;
    const bool   brief   = sampler.contested && !partial;
    if (brief ? !lsys::largest_and(*sampler.contested, row, size, short_list) : !lsys::is_usable(row, size)) {
        lsys::note("the logits of entry %d hold NaN or infinity, or nothing above minus infinity", index);
        return LSYS_NOT_FINITE;
    }
    return LSYS_OK;
}

lsys_status sample(lsys_sampler & sampler, llama_context * ctx, int32_t index, bool grammar_first, llama_token * out) {
    common_sampler &  inner     = *sampler.inner;
    bool              on_device = false;
    sampler.sampled             = false;
    inner.cur.clear();
    const lsys_status status = check_row(sampler, ctx, index, &on_device, inner.cur);
    if (status != LSYS_OK) {
        return status;
    }
    if (inner.cur.empty()) {
        *out = common_sampler_sample(&inner, ctx, index, grammar_first);
    } else {
        inner.cur_p = { inner.cur.data(), inner.cur.size(), -1, false };
        llama_sampler_apply(inner.chain, &inner.cur_p);
        *out = inner.cur_p.selected >= 0 ? inner.cur_p.data[inner.cur_p.selected].id : LLAMA_TOKEN_NULL;
    }
    const auto & candidates = inner.cur_p;
    if (!on_device) {
        const bool chosen = candidates.selected >= 0 && (size_t) candidates.selected < candidates.size;
        if (!chosen || !(candidates.data[candidates.selected].logit > -INFINITY) || std::isnan(candidates.data[candidates.selected].p)) {
            return lsys::fail("no candidate is left for entry %d: biases, grammar and reasoning budget rule out all of them", index);
        }
    }
    sampler.sampled = true;
    return LSYS_OK;
}

void accept(lsys_sampler & sampler, llama_token token, bool generated) {
    sampler.broken = true;
    common_sampler_accept(sampler.inner.get(), token, generated);
    sampler.ledger->note_accepted(generated);
    sampler.broken = false;
}

// llama.cpp throws for a token the grammar does not allow, and aborts for an end of generation.
bool grammar_allows(const lsys_sampler & sampler, llama_token token) {
    if (!grammar_should_apply(sampler.inner.get())) {
        return true;
    }
    llama_token_data       candidate{ token, 0.0f, 0.0f };
    llama_token_data_array only{ &candidate, 1, -1, false };
    llama_sampler_apply(sampler.inner->grmr, &only);
    return candidate.logit != -INFINITY;
}

// The probabilities of the candidates of the last sample. What the grammar rules out has none, the rest is scaled up.
std::vector<float> target_distribution(lsys_sampler & sampler, bool grammar_first) {
    common_sampler &               inner = *sampler.inner;
    const llama_token_data_array & p     = inner.cur_p;
    std::vector<float>             weights(p.size);
    std::transform(p.data, p.data + p.size, weights.begin(), [](const llama_token_data & one) { return one.p; });
    if (grammar_first || !grammar_should_apply(&inner)) {
        return weights;
    }
    std::vector<llama_token_data> masked(p.data, p.data + p.size);
    llama_token_data_array        all{ masked.data(), masked.size(), -1, false };
    llama_sampler_apply(inner.grmr, &all);
    float sum = 0.0f;
    for (size_t i = 0; i < weights.size(); ++i) {
        weights[i] = masked[i].logit == -INFINITY ? 0.0f : weights[i];
        sum += weights[i];
    }
    for (float & weight : weights) {
        weight = sum > 0.0f ? weight / sum : 0.0f;
    }
    return weights;
}

// Counts what it takes from the random generator by looking for its new state, which no standard library makes us guess.
llama_token accept_or_replace(lsys_sampler & sampler, bool grammar_first, const lsys_candidates & q, llama_token drafted, llama_token sampled) {
    std::mt19937 &    rng    = sampler.inner->rng;
    std::mt19937      before = rng;
    const llama_token token  = lsys::accept_or_replace(sampler.inner->cur_p, target_distribution(sampler, grammar_first), q, drafted, sampled, rng);
    for (; before != rng; before.discard(1)) {
        ++sampler.ledger->counts.rejection_steps;
    }
    return token;
}

lsys_status verify(lsys_sampler * sampler, llama_context * ctx, const int32_t * indexes, const llama_token * draft, const lsys_candidates * q,
                   size_t n_draft, bool grammar_first, llama_token * out, size_t * n_out) {
    return lsys::guard([&]() -> lsys_status {
        if (n_out == nullptr) {
            return lsys::refuse("there is no place for the number of tokens");
        }
        *n_out = 0;
        if (sampler == nullptr || ctx == nullptr || indexes == nullptr || out == nullptr || (draft == nullptr && n_draft > 0)) {
            return lsys::refuse("a sampler, a context, indexes, a draft and a place for the tokens are needed");
        }
        for (size_t i = 0; q != nullptr && i < n_draft; ++i) {
            const bool known = q[i].size == 0 || q[i].data != nullptr;
            if (!known || !std::all_of(q[i].data, q[i].data + q[i].size, [](const llama_token_data & one) { return one.p >= 0.0f && one.p <= 1.0f; })) {
                return lsys::refuse("the distribution of drafted token %zu is missing or holds no probabilities", i);
            }
        }
        const llama_vocab * const vocab = llama_model_get_vocab(llama_get_model(ctx));
        for (size_t i = 0; i <= n_draft; ++i) {
            llama_token       token  = LLAMA_TOKEN_NULL;
            const lsys_status status = sample(*sampler, ctx, indexes[i], grammar_first, &token);
            if (status != LSYS_OK) {
                return status;
            }
            if (i < n_draft && q != nullptr && !sampler->greedy && sampler->inner->cur_p.selected >= 0) {
                token = accept_or_replace(*sampler, grammar_first, q[i], draft[i], token);
            }
            accept(*sampler, token, true);
            out[(*n_out)++] = token;
            // Nothing follows an end of generation, neither of the draft nor of the target.
            if (i < n_draft && (token != draft[i] || llama_vocab_is_eog(vocab, token))) {
                break;
            }
        }
        return LSYS_OK;
    });
}

// The last stage says which token is taken.
llama_sampler * last_stage(const common_sampler & inner) {
    return llama_sampler_chain_get(inner.chain, llama_sampler_chain_n(inner.chain) - 1);
}

bool is_named(const llama_sampler * stage, const char * name) {
    return stage != nullptr && std::strcmp(llama_sampler_name(stage), name) == 0;
}

// Whether seed, counts and tokens are all there is to a sampler.
lsys_status check_countable(const lsys_sampler & sampler) {
    if (sampler.broken) {
        return lsys::refuse("the sampler failed before; reset it first");
    }
    for (int i = 0; i < llama_sampler_chain_n(sampler.inner->chain); ++i) {
        const llama_sampler * const stage = llama_sampler_chain_get(sampler.inner->chain, i);
        for (const char * const keeps_more : { "xtc", "mirostat", "mirostat-v2", "adaptive-p" }) {
            if (is_named(stage, keeps_more)) {
                return lsys::fail("the stage %s keeps a state that can be neither read nor made again", keeps_more);
            }
        }
    }
    if (sampler.greedy) {
        return LSYS_OK;
    }
    if (!is_named(last_stage(*sampler.inner), "dist")) {
        return lsys::fail("the last stage, %s, is none whose random numbers can be counted", llama_sampler_name(last_stage(*sampler.inner)));
    }
    return common_sampler_get_seed(sampler.inner.get()) != LLAMA_DEFAULT_SEED ? LSYS_OK : lsys::fail("the seed that was drawn is one that cannot be set");
}

// A long list of candidates costs more than it saves.
constexpr size_t MAX_CONTESTED = 1024;

// See `contested`. A question mark is before the names of stages that do nothing; at temperature 0 that stage keeps the largest
// logit, and of equal ones the first.
std::optional<std::vector<llama_token>> find_contested(const lsys_sampler & sampler, const llama_vocab * vocab, const common_params_sampling & params) {
    const common_sampler & inner = *sampler.inner;
    if (!sampler.greedy || inner.grmr != nullptr || inner.rbudget != nullptr || params.temp > 0.0f || params.dynatemp_range > 0.0f) {
        return std::nullopt;
    }
    for (int i = 0; i < llama_sampler_chain_n(inner.chain); ++i) {
        const llama_sampler * const stage = llama_sampler_chain_get(inner.chain, i);
        const auto                  is    = [stage](const char * name) { return is_named(stage, name); };
        if (*llama_sampler_name(stage) != '?' && !is("logit-bias") && !is("min-tokens") && !is("temp") && !is("temp-ext") && !is("greedy")) {
            return std::nullopt;
        }
    }
    int32_t                   n_suppressed = 0;
    const llama_token * const suppressed   = llama_vocab_get_suppress_tokens(vocab, &n_suppressed);
    std::vector<llama_token>  biased(suppressed, suppressed + n_suppressed);
    std::transform(params.logit_bias.begin(), params.logit_bias.end(), std::back_inserter(biased), [](const llama_logit_bias & bias) { return bias.token; });
    std::set<llama_token> tokens;
    for (const llama_token token : biased) {
        // In a short list, llama.cpp adds only the first of two biases of a token.
        if (lsys::is_token(vocab, token) && !tokens.insert(token).second) {
            return std::nullopt;
        }
    }
    const std::vector<bool> & ends = sampler.ledger->ends;
    for (size_t token = 0; token < ends.size(); ++token) {
        if (ends[token]) {
            tokens.insert((llama_token) token);
        }
    }
    return tokens.size() <= MAX_CONTESTED ? std::optional(std::vector(tokens.begin(), tokens.end())) : std::nullopt;
}

std::unique_ptr<lsys_sampler> wrap(common_sampler * inner, const lsys_sampler * start) {
    auto made = std::make_unique<lsys_sampler>();
    made->inner.reset(inner);
    made->greedy           = is_named(last_stage(*inner), "greedy");
    made->ledger           = lsys::find_ledger(inner->chain);
    made->grammar_at_start = llama_sampler_clone(start ? start->grammar_at_start : inner->grmr);
    made->budget_at_start  = llama_sampler_clone(start ? start->budget_at_start : inner->rbudget);
    return made;
}

} // namespace

lsys_status lsys_sampler_new(const llama_model * model, const lsys_sampler_params * params, lsys_sampler ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (model == nullptr || params == nullptr || out == nullptr) {
            return lsys::refuse("a model, parameters and a place for the sampler are needed");
        }
        *out                            = nullptr;
        const llama_vocab * const vocab = llama_model_get_vocab(model);
        if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE || llama_vocab_n_tokens(vocab) <= 0) {
            return lsys::refuse("the model has no vocabulary");
        }
        common_params_sampling checked;
        const lsys_status      status = lsys::sampler_params(vocab, *params, checked);
        if (status != LSYS_OK) {
            return status;
        }
        auto made       = wrap(common_sampler_init(model, checked), nullptr);
        made->n_vocab   = llama_vocab_n_tokens(vocab);
        made->ledger    = lsys::add_ledger(made->inner->chain, vocab, params->min_tokens);
        made->contested = find_contested(*made, vocab, checked);
        *out            = made.release();
        return LSYS_OK;
    });
}

void lsys_sampler_free(lsys_sampler * sampler) {
    delete sampler;
}

lsys_status lsys_sampler_clone(lsys_sampler * sampler, lsys_sampler ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (sampler == nullptr || out == nullptr) {
            return lsys::refuse("a sampler and a place for the copy are needed");
        }
        *out            = nullptr;
        auto made       = wrap(common_sampler_clone(sampler->inner.get()), sampler);
        made->n_vocab   = sampler->n_vocab;
        made->contested = sampler->contested;
        made->broken    = sampler->broken;
        // The copied candidates point into the original.
        made->inner->cur_p = { nullptr, 0, -1, false };
        // This stage's copy remembers that it chose a token but not from what. An id that no token has makes it forget.
        for (int i = 0; i < llama_sampler_chain_n(made->inner->chain); ++i) {
            llama_sampler * const stage = llama_sampler_chain_get(made->inner->chain, i);
            if (std::strcmp(llama_sampler_name(stage), "adaptive-p") == 0) {
                llama_sampler_accept(stage, LLAMA_TOKEN_NULL - 1);
            }
        }
        *out = made.release();
        return LSYS_OK;
    });
}

lsys_status lsys_sampler_reset(lsys_sampler * sampler) {
    return lsys::guard([&]() -> lsys_status {
        if (sampler == nullptr) {
            return lsys::refuse("there is no sampler");
        }
        common_sampler & inner = *sampler->inner;
        common_sampler_reset(&inner);
        inner.rng.seed(llama_sampler_get_seed(inner.chain) ^ 0x9e3779b9u);
        // Unlike these two, which common leaves as they are.
        if (inner.grmr != nullptr) {
            llama_sampler * const fresh = llama_sampler_clone(sampler->grammar_at_start);
            llama_sampler_free(std::exchange(inner.grmr, fresh));
        }
        if (inner.rbudget != nullptr) {
            llama_sampler * const fresh = llama_sampler_clone(sampler->budget_at_start);
            llama_sampler_free(std::exchange(inner.rbudget, fresh));
        }
        sampler->sampled = false;
        sampler->broken  = false;
        return LSYS_OK;
    });
}

lsys_status lsys_sampler_accept(lsys_sampler * sampler, llama_token token, bool generated) {
    return lsys::guard([&]() -> lsys_status {
        if (sampler == nullptr || token < 0 || token >= sampler->n_vocab) {
            return lsys::refuse("there is no sampler, or token %d is outside its vocabulary", token);
        }
        if (sampler->broken) {
            return lsys::refuse("the sampler failed before; reset it first");
        }
        if (generated && !grammar_allows(*sampler, token)) {
            return lsys::fail("the grammar does not allow token %d here", token);
        }
        accept(*sampler, token, generated);
        return LSYS_OK;
    });
}

lsys_status lsys_sampler_sample(lsys_sampler * sampler, llama_context * ctx, int32_t index, bool grammar_first, llama_token * out) {
    return lsys::guard([&]() -> lsys_status {
        if (sampler == nullptr || out == nullptr) {
            return lsys::refuse("a sampler and a place for the token are needed");
        }
        return sample(*sampler, ctx, index, grammar_first, out);
    });
}

lsys_status lsys_sampler_verify(lsys_sampler * sampler, llama_context * ctx, const int32_t * indexes, const llama_token * draft, size_t n_draft,
                                bool grammar_first, llama_token * out, size_t * n_out) {
    return verify(sampler, ctx, indexes, draft, nullptr, n_draft, grammar_first, out, n_out);
}

lsys_status lsys_sampler_verify_rejection(lsys_sampler * sampler, llama_context * ctx, const int32_t * indexes, const llama_token * draft,
                                          const lsys_candidates * q, size_t n_draft, bool grammar_first, llama_token * out, size_t * n_out) {
    if (q == nullptr && n_draft > 0) {
        if (n_out != nullptr) {
            *n_out = 0;
        }
        return lsys::refuse("there are no distributions of the draft");
    }
    return verify(sampler, ctx, indexes, draft, q, n_draft, grammar_first, out, n_out);
}

lsys_status lsys_sampler_candidates(lsys_sampler * sampler, bool sort, lsys_candidates * out, int64_t * selected) {
    return lsys::guard([&]() -> lsys_status {
        if (sampler == nullptr || out == nullptr || selected == nullptr) {
            return lsys::refuse("a sampler and places for the candidates and the selected one are needed");
        }
        *out      = { nullptr, 0 };
        *selected = -1;
        if (!sampler->sampled) {
            return lsys::refuse("there are no candidates: this sampler has not sampled since it was made, copied or reset");
        }
        llama_token_data_array & candidates = sampler->inner->cur_p;
        if (sampler->greedy) {
            lsys::fill_probabilities(candidates); // so far those of an earlier stage, or none
        }
        if (sort) {
            lsys::sort_by_probability(candidates);
        }
        *out      = { candidates.data, candidates.size };
        *selected = candidates.selected;
        return LSYS_OK;
    });
}

uint32_t lsys_sampler_seed(const lsys_sampler * sampler) {
    return lsys::guard_or<uint32_t>(LLAMA_DEFAULT_SEED,
                                    [&] { return sampler != nullptr ? common_sampler_get_seed(sampler->inner.get()) : LLAMA_DEFAULT_SEED; });
}

lsys_status lsys_sampler_counted(const lsys_sampler * sampler, lsys_sampler_counts * out) {
    return lsys::guard([&]() -> lsys_status {
        if (sampler == nullptr || out == nullptr) {
            return lsys::refuse("a sampler and a place for the counts are needed");
        }
        *out                     = {};
        const lsys_status status = check_countable(*sampler);
        if (status == LSYS_OK) {
            *out = sampler->ledger->counts;
        }
        return status;
    });
}

lsys_status lsys_sampler_skip(lsys_sampler * sampler, uint64_t draws, uint64_t rejection_steps) {
    return lsys::guard([&]() -> lsys_status {
        if (sampler == nullptr || draws > MAX_SKIPPED || rejection_steps > MAX_SKIPPED) {
            return lsys::refuse("there is no sampler, or more than %llu random numbers are to be skipped", (unsigned long long) MAX_SKIPPED);
        }
        const lsys_status status = check_countable(*sampler);
        if (status != LSYS_OK) {
            return status;
        }
        // This stage takes the same from its generator whatever it chooses from.
        llama_sampler * const dist = sampler->greedy ? nullptr : last_stage(*sampler->inner);
        for (uint64_t i = 0; dist != nullptr && i < draws; ++i) {
            llama_token_data       candidate{ 0, 0.0f, 0.0f };
            llama_token_data_array only{ &candidate, 1, -1, false };
            llama_sampler_apply(dist, &only);
        }
        sampler->inner->rng.discard(rejection_steps);
        sampler->ledger->counts.draws += draws;
        sampler->ledger->counts.rejection_steps += rejection_steps;
        return LSYS_OK;
    });
}

lsys_status lsys_sampler_end_reasoning(lsys_sampler * sampler) {
    return lsys::guard([&]() -> lsys_status {
        if (sampler == nullptr) {
            return lsys::refuse("there is no sampler");
        }
        return common_sampler_reasoning_budget_force(sampler->inner.get()) ? LSYS_OK : lsys::fail("no reasoning is going on that could be ended");
    });
}

lsys_status lsys_sampler_describe(const lsys_sampler * sampler, lsys_text ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (sampler == nullptr || out == nullptr) {
            return lsys::refuse("a sampler and a place for the text are needed");
        }
        *out = nullptr;
        return lsys::give(common_sampler_print(sampler->inner.get()), out);
    });
}
