// Drafting: histories, requests and results of each sequence, over common's drafters.
#include "speculation.h"

#include "batch.h"
#include "drafters.h"

#include "../common/ngram-cache.h"

#include <cfloat>

namespace {

// Logits divided by less could become infinite.
constexpr float MIN_TEMPERATURE = 1e-6f;

lsys_status check_sequence(const lsys_spec * spec, llama_seq_id seq) {
    if (spec == nullptr) {
        return lsys::refuse("there is no speculation");
    }
    return seq >= 0 && (size_t) seq < spec->sequences.size() ? LSYS_OK
                                                             : lsys::refuse("sequence %d is outside the %zu", seq, spec->sequences.size());
}

lsys_status check_tokens(const lsys_spec & spec, const llama_token * tokens, size_t n_tokens) {
    if (tokens == nullptr && n_tokens > 0) {
        return lsys::refuse("there are no tokens");
    }
    for (size_t i = 0; i < n_tokens; ++i) {
        if (tokens[i] < 0 || tokens[i] >= spec.target_vocab) {
            return lsys::refuse("token %d is outside the vocabulary of %d", tokens[i], spec.target_vocab);
        }
    }
    return LSYS_OK;
}

lsys_status check_requests(const lsys_spec & spec, const lsys_draft_request * requests, size_t n_requests) {
    std::vector<bool> seen(spec.sequences.size());
    for (size_t i = 0; i < n_requests; ++i) {
        const lsys_draft_request & request = requests[i];
        lsys_status                status  = check_sequence(&spec, request.seq);
        if (status == LSYS_OK) {
            status = check_tokens(spec, &request.last, 1);
        }
        if (status != LSYS_OK) {
            return status;
        }
        if (seen[request.seq]) {
            return lsys::refuse("sequence %d is asked for twice", request.seq);
        }
        seen[request.seq] = true;
        if (request.n_max < -1 || request.pos < 0) {
            return lsys::refuse("a draft of %d tokens from position %d", request.n_max, request.pos);
        }
        if (request.want_candidates && !(request.temperature >= 0.0f && request.temperature <= FLT_MAX)) {
            return lsys::refuse("temperature is %g", request.temperature);
        }
    }
    return LSYS_OK;
}

void ask(lsys_spec & spec, const lsys_draft_request & request) {
    lsys_spec::sequence & one = spec.sequences[request.seq];
    auto &                to  = common_speculative_get_draft_params(spec.inner.get(), request.seq);
    // The draft model cannot be shown a token it does not have, and the lookup cache reads its last four tokens unchecked.
    const bool unknown   = spec.draft != nullptr && request.last >= spec.draft_vocab;
    const bool too_short = spec.has_cache && one.history.size() + 1 < LLAMA_NGRAM_MAX;
    to.drafting          = request.n_max != 0 && !unknown && !too_short;
    to.n_max             = request.n_max;
    to.pos0              = request.pos;
    to.id_last           = request.last;
    to.prompt            = &one.history;
    to.result            = &one.draft;
    // At temperature 0, or hardly above, the distribution is one token: the draft is as good without it.
    to.result_q = request.want_candidates && request.temperature >= MIN_TEMPERATURE ? &one.candidates : nullptr;
    to.temp     = request.temperature;
    to.seed     = request.seed;
    one.types   = request.types;
}

// Whatever came of a call that threw is no draft.
void give_up(lsys_spec & spec, const lsys_draft_request * requests, size_t n_requests) {
    for (size_t i = 0; i < n_requests; ++i) {
        spec.sequences[requests[i].seq].drop_draft();
    }
}

// Cuts what the target does not know, and notes who drafted.
void settle(lsys_spec & spec, llama_seq_id seq) {
    lsys_spec::sequence & one = spec.sequences[seq];
    if (one.draft.empty()) {
        one.candidates.clear();
        return;
    }
    const auto   known = [&](llama_token token) { return token >= 0 && token < spec.target_vocab; };
    const size_t kept  = (size_t) (std::find_if_not(one.draft.begin(), one.draft.end(), known) - one.draft.begin());
    const auto   from  = lsys::drafters::settle(spec, seq, one.draft.size() - kept, kept == 0);
    one.draft.resize(kept);
    one.candidates.resize(one.candidates.size() < kept ? 0 : kept);
    one.open = kept;
    one.from = kept == 0 ? LSYS_SPEC_NONE : from;
}

// EAGLE-3 and block drafts decode in turn with a graph of other shape, so each time the memory of the samplers' graph is laid
// out anew. It is laid out for the sequences that draft just then, and kept when others do, whose results then overwrite each
// other: drafts would be those of other sequences. The graphs of next-token heads keep the layout for all sequences.
bool samples_on_device(const lsys_spec_params & params) {
    const auto last = params.types + params.n_types;
    return params.n_seq == 1 || std::find(params.types, last, LSYS_SPEC_DRAFT_MTP) != last;
}

common_params_speculative convert(const lsys_spec_params & from) {
    common_params_speculative to;
    to.types.clear();
    for (size_t i = 0; i < from.n_types; ++i) {
        to.types.push_back((common_speculative_type) from.types[i]);
    }
    to.draft.ctx_tgt          = from.ctx_target;
    to.draft.ctx_dft          = from.ctx_draft;
    to.draft.n_max            = from.draft_n_max;
    to.draft.n_min            = from.draft_n_min;
    to.draft.p_min            = from.draft_p_min;
    to.draft.backend_sampling = from.draft_backend_sampling && samples_on_device(from);
    to.draft.probabilistic    = from.draft_probabilistic;
    to.ngram_mod.n_match      = from.ngram_mod_match;
    to.ngram_mod.n_min        = from.ngram_mod_min;
    to.ngram_mod.n_max        = from.ngram_mod_max;
    const auto map            = [](const lsys_ngram_map_params & one) {
        return common_params_speculative_ngram_map{ one.size_n, one.size_m, one.min_hits };
    };
    to.ngram_simple                     = map(from.ngram_simple);
    to.ngram_map_k                      = map(from.ngram_map_k);
    to.ngram_map_k4v                    = map(from.ngram_map_k4v);
    to.ngram_cache.lookup_cache_static  = from.ngram_cache_static ? from.ngram_cache_static : "";
    to.ngram_cache.lookup_cache_dynamic = from.ngram_cache_dynamic ? from.ngram_cache_dynamic : "";
    return to;
}

} // namespace

void lsys_spec_defaults(lsys_spec_params * params) {
    if (params == nullptr) {
        return;
    }
    lsys::guard([&] {
        const common_params_speculative from;
        const auto map = [](const common_params_speculative_ngram_map & one) { return lsys_ngram_map_params{ one.size_n, one.size_m, one.min_hits }; };
        *params                        = {};
        params->n_seq                  = 1;
        params->draft_n_max            = from.draft.n_max;
        params->draft_n_min            = from.draft.n_min;
        params->draft_p_min            = from.draft.p_min;
        params->draft_backend_sampling = from.draft.backend_sampling;
        params->draft_probabilistic    = from.draft.probabilistic;
        params->ngram_mod_match        = from.ngram_mod.n_match;
        params->ngram_mod_min          = from.ngram_mod.n_min;
        params->ngram_mod_max          = from.ngram_mod.n_max;
        params->ngram_simple           = map(from.ngram_simple);
        params->ngram_map_k            = map(from.ngram_map_k);
        params->ngram_map_k4v          = map(from.ngram_map_k4v);
        return LSYS_OK;
    });
}

lsys_status lsys_spec_check(const lsys_spec_params * params) {
    return lsys::guard([&]() -> lsys_status { return params != nullptr ? lsys::check_drafters(*params) : lsys::refuse("there are no parameters"); });
}

lsys_status lsys_spec_new(const lsys_spec_params * params, lsys_spec ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (params == nullptr || out == nullptr) {
            return lsys::refuse("parameters and a place for the speculation are needed");
        }
        *out                     = nullptr;
        const lsys_status status = lsys::check_drafters(*params);
        if (status != LSYS_OK) {
            return status;
        }
        auto       made = std::make_unique<lsys_spec>();
        auto       with = convert(*params);
        const bool drafts_with_model =
            std::any_of(params->types, params->types + params->n_types, [](lsys_spec_type type) { return lsys::is_draft_model_type(type); });
        made->sequences.resize(params->n_seq);
        made->target       = params->ctx_target;
        made->draft        = drafts_with_model ? params->ctx_draft : nullptr;
        made->target_vocab = lsys::vocab_size(llama_get_model(made->target));
        made->draft_vocab  = made->draft != nullptr ? lsys::vocab_size(llama_get_model(made->draft)) : 0;
        made->inner.reset(common_speculative_init(with, params->n_seq));
        if (!made->inner) {
            return lsys::fail("no drafter could be made");
        }
        made->has_cache = lsys::drafters::has_cache(*made);
        lsys::count_switch(made->target);
        *out = made.release();
        return LSYS_OK;
    });
}

void lsys_spec_free(lsys_spec * spec) {
    delete spec;
}

int32_t lsys_spec_n_max(const lsys_spec * spec) {
    return spec != nullptr ? common_speculative_n_max(spec->inner.get()) : 0;
}

lsys_status lsys_spec_begin(lsys_spec * spec, llama_seq_id seq, const llama_token * tokens, size_t n_tokens) {
    return lsys::guard([&]() -> lsys_status {
        lsys_status status = check_sequence(spec, seq);
        if (status == LSYS_OK) {
            status = check_tokens(*spec, tokens, n_tokens);
        }
        if (status != LSYS_OK) {
            return status;
        }
        lsys_spec::sequence & one    = spec->sequences[seq];
        const bool            longer = one.history.size() <= n_tokens && std::equal(one.history.begin(), one.history.end(), tokens);
        one.history.assign(tokens, tokens + n_tokens);
        one.drop_draft();
        if (!longer) {
            lsys::drafters::restart(*spec, seq);
        }
        common_speculative_begin(spec->inner.get(), seq, one.history);
        return LSYS_OK;
    });
}

lsys_status lsys_spec_extend(lsys_spec * spec, llama_seq_id seq, const llama_token * tokens, size_t n_tokens) {
    return lsys::guard([&]() -> lsys_status {
        lsys_status status = check_sequence(spec, seq);
        if (status == LSYS_OK) {
            status = check_tokens(*spec, tokens, n_tokens);
        }
        if (status == LSYS_OK) {
            llama_tokens & history = spec->sequences[seq].history;
            history.insert(history.end(), tokens, tokens + n_tokens);
        }
        return status;
    });
}

lsys_status lsys_spec_truncate(lsys_spec * spec, llama_seq_id seq, size_t n_tokens) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_sequence(spec, seq);
        if (status != LSYS_OK) {
            return status;
        }
        lsys_spec::sequence & one = spec->sequences[seq];
        if (n_tokens > one.history.size()) {
            return lsys::refuse("the history of sequence %d has %zu tokens, fewer than %zu", seq, one.history.size(), n_tokens);
        }
        if (n_tokens == 0) {
            one.drop_draft();
            lsys::drafters::forget(*spec, seq);
        }
        if (n_tokens == one.history.size()) {
            return LSYS_OK;
        }
        one.history.resize(n_tokens);
        one.drop_draft();
        lsys::drafters::restart(*spec, seq);
        lsys::drafters::shorten(*spec, seq, n_tokens);
        return LSYS_OK;
    });
}

lsys_status lsys_spec_seed(lsys_spec * spec, llama_seq_id seq, int32_t index) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_sequence(spec, seq);
        if (status != LSYS_OK || !lsys::drafters::reads_hidden(*spec)) {
            return status;
        }
        const float * row = nullptr;
        size_t        n   = 0;
        const lsys_status read = lsys_embeddings_nextn(spec->target, index, &row, &n);
        return read == LSYS_OK ? lsys::drafters::seed(*spec, seq, row, n) : read;
    });
}

lsys_status lsys_spec_copy(lsys_spec * spec, llama_seq_id from, llama_seq_id to) {
    return lsys::guard([&]() -> lsys_status {
        lsys_status status = check_sequence(spec, from);
        if (status == LSYS_OK) {
            status = check_sequence(spec, to);
        }
        if (status == LSYS_OK && from != to) {
            spec->sequences[to].history = spec->sequences[from].history;
            spec->sequences[to].drop_draft();
            lsys::drafters::copy(*spec, from, to);
        }
        return status;
    });
}

lsys_status lsys_spec_process(lsys_spec * spec, lsys_batch * batch) {
    return lsys::guard([&]() -> lsys_status {
        if (spec == nullptr || batch == nullptr || batch->ctx != spec->target) {
            return lsys::refuse("a speculation and a batch of its target are needed");
        }
        if (batch->decoded == 0) {
            return lsys::refuse("the batch was not decoded, or was changed afterwards");
        }
        for (size_t seq = spec->sequences.size(); seq < batch->seen.size(); ++seq) {
            if (batch->seen[seq]) {
                return lsys::refuse("the batch has sequence %zu, the speculation was made for %zu", seq, spec->sequences.size());
            }
        }
        if (spec->draft == nullptr) {
            return LSYS_OK; // the lookup drafters learn from the history alone
        }
        for (const auto & entry : batch->entries.tokens) {
            if (entry.id >= spec->draft_vocab) {
                return lsys::fail("token %d is outside the draft's vocabulary of %d", entry.id, spec->draft_vocab);
            }
        }
        const lsys_status status = lsys::drafters::check_outputs(*spec);
        if (status != LSYS_OK) {
            return status;
        }
        return common_speculative_process(spec->inner.get(), batch->entries) ? LSYS_OK : lsys::fail("the draft context could not decode the batch");
    });
}

lsys_status lsys_spec_draft(lsys_spec * spec, const lsys_draft_request * requests, size_t n_requests) {
    return lsys::guard([&]() -> lsys_status {
        if (spec == nullptr || (requests == nullptr && n_requests > 0)) {
            return lsys::refuse("a speculation and requests are needed");
        }
        const lsys_status status = check_requests(*spec, requests, n_requests);
        if (status != LSYS_OK) {
            return status;
        }
        // An exception may have left some of them set.
        for (size_t seq = 0; seq < spec->sequences.size(); ++seq) {
            common_speculative_get_draft_params(spec->inner.get(), (llama_seq_id) seq).drafting = false;
        }
        for (size_t i = 0; i < n_requests; ++i) {
            spec->sequences[requests[i].seq].drop_draft();
            ask(*spec, requests[i]);
        }
        try {
            lsys::drafters::draft(*spec);
        } catch (...) {
            give_up(*spec, requests, n_requests);
            throw;
        }
        for (size_t i = 0; i < n_requests; ++i) {
            settle(*spec, requests[i].seq);
        }
        return LSYS_OK;
    });
}

lsys_status lsys_spec_result(const lsys_spec * spec, llama_seq_id seq, lsys_tokens * out, lsys_spec_type * from) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_sequence(spec, seq);
        if (status != LSYS_OK) {
            return status;
        }
        if (out == nullptr || from == nullptr) {
            return lsys::refuse("places for the draft and its drafter are needed");
        }
        const lsys_spec::sequence & one = spec->sequences[seq];
        *out                 = { one.draft.data(), one.draft.size() };
        *from                = one.from;
        return LSYS_OK;
    });
}

lsys_status lsys_spec_candidates(const lsys_spec * spec, llama_seq_id seq, size_t index, lsys_candidates * out) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_sequence(spec, seq);
        if (status != LSYS_OK) {
            return status;
        }
        const lsys_spec::sequence & one = spec->sequences[seq];
        if (out == nullptr || index >= one.draft.size()) {
            return lsys::refuse("there is no place for the candidates, or drafted token %zu is not one of %zu", index, one.draft.size());
        }
        *out = { nullptr, 0 };
        if (index < one.candidates.size()) {
            *out = { one.candidates[index].data(), one.candidates[index].size() };
        }
        return LSYS_OK;
    });
}

lsys_status lsys_spec_accept(lsys_spec * spec, llama_seq_id seq, size_t n_accepted) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_sequence(spec, seq);
        if (status != LSYS_OK) {
            return status;
        }
        lsys_spec::sequence & one = spec->sequences[seq];
        if (n_accepted > one.open) {
            return lsys::refuse("%zu tokens of sequence %d cannot be accepted, %zu are open", n_accepted, seq, one.open);
        }
        if (one.open > 0) {
            one.open = 0;
            lsys::drafters::accept(*spec, seq, n_accepted);
        }
        return LSYS_OK;
    });
}

lsys_status lsys_spec_accept_foreign(lsys_spec * spec, llama_seq_id seq, size_t n_accepted) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_sequence(spec, seq);
        if (status != LSYS_OK) {
            return status;
        }
        if (n_accepted > UINT16_MAX) {
            return lsys::refuse("%zu tokens were accepted, more than fit a batch", n_accepted);
        }
        spec->sequences[seq].drop_draft();
        lsys::drafters::accept_foreign(*spec, seq, n_accepted);
        return LSYS_OK;
    });
}

lsys_status lsys_spec_state_get(lsys_spec * spec, llama_seq_id seq, lsys_text ** out) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_sequence(spec, seq);
        if (status != LSYS_OK) {
            return status;
        }
        if (out == nullptr) {
            return lsys::refuse("there is no place for the state");
        }
        *out = nullptr;
        std::vector<uint8_t> state;
        common_speculative_get_state(spec->inner.get(), seq, state);
        return lsys::give(std::string(state.begin(), state.end()), out);
    });
}

lsys_status lsys_spec_state_set(lsys_spec * spec, llama_seq_id seq, const uint8_t * data, size_t size) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_sequence(spec, seq);
        if (status != LSYS_OK || size == 0) {
            return status;
        }
        if (data == nullptr || size != lsys::drafters::state_size(*spec)) {
            return lsys::refuse("a state of %zu bytes is not one of these drafters", size);
        }
        common_speculative_set_state(spec->inner.get(), seq, std::vector<uint8_t>(data, data + size));
        return LSYS_OK;
    });
}

size_t lsys_spec_n_drafters(const lsys_spec * spec) {
    return spec != nullptr ? lsys::drafters::count(*spec) : 0;
}

lsys_status lsys_spec_stats_of(const lsys_spec * spec, size_t drafter, lsys_spec_stats * out) {
    return lsys::guard([&]() -> lsys_status {
        if (out == nullptr || drafter >= lsys_spec_n_drafters(spec)) {
            return lsys::refuse("there is no drafter %zu, or no place for its statistics", drafter);
        }
        *out = lsys::drafters::stats(*spec, drafter);
        return LSYS_OK;
    });
}

lsys_status lsys_spec_accepted_per_position(const lsys_spec * spec, size_t drafter, uint64_t * counts, size_t capacity, size_t * n_out) {
    return lsys::guard([&]() -> lsys_status {
        if (n_out == nullptr || (counts == nullptr && capacity > 0) || drafter >= lsys_spec_n_drafters(spec)) {
            return lsys::refuse("there is no drafter %zu, or no place for its counts", drafter);
        }
        return lsys::give(lsys::drafters::accepted_per_position(*spec, drafter), counts, capacity, n_out);
    });
}
