// Drafting with common's drafters.
//
// Their file is part of this one: only so can be told which drafter made a draft, what its statistics are as numbers, and
// can the lookup drafters follow a history that shrinks. This object thereby takes the place of common's own, as the log does.
#include "batch.h"

#include "../common/speculative.cpp"

#include "drafters.h"

#include <cfloat>


namespace {

struct sequence {
    llama_tokens history; // what is in the target's memory
    llama_tokens draft;   // the last one, possibly cut
    size_t       open = 0; // its tokens that were not yet accepted or rejected

    std::vector<std::vector<llama_token_data>> candidates; // for each drafted token, or none at all

    lsys_spec_type from = LSYS_SPEC_NONE;
};

using eagle3_drafter = common_speculative_impl_draft_eagle3;
using dflash_drafter = common_speculative_impl_draft_dflash;
using mtp_drafter    = common_speculative_impl_draft_mtp;
using map_drafter    = common_speculative_impl_ngram_map_k;
using mod_drafter    = common_speculative_impl_ngram_mod;
using cache_drafter  = common_speculative_impl_ngram_cache;

} // namespace

struct lsys_spec {
    common_speculative_ptr inner;
    llama_context *        target       = nullptr;
    llama_context *        draft        = nullptr; // null without a draft model
    int32_t                target_vocab = 0;
    int32_t                draft_vocab  = 0;
    bool                   has_cache    = false;
    std::vector<sequence>  sequences;

    template <typename Drafter>
    Drafter * find() const {
        for (const auto & drafter : inner->impls) {
            if (auto * const found = dynamic_cast<Drafter *>(drafter.get())) {
                return found;
            }
        }
        return nullptr;
    }
};

namespace {

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

void drop_draft(sequence & one) {
    one.draft.clear();
    one.candidates.clear();
    one.open = 0;
    one.from = LSYS_SPEC_NONE;
}

// The map drafters look at positions of a longer history when it shrinks or changes: they start anew.
void restart_maps(lsys_spec & spec, llama_seq_id seq) {
    for (const auto & drafter : spec.inner->impls) {
        if (auto * const maps = dynamic_cast<map_drafter *>(drafter.get())) {
            common_ngram_map & map = maps->config[seq];
            map                    = common_ngram_map(map.size_key, map.size_value, map.key_only, map.min_hits);
            common_ngram_map_begin(map, spec.sequences[seq].history);
        }
    }
}

// The outputs of the target that the drafters read must be there.
lsys_status check_outputs(const lsys_spec & spec) {
    const auto & settings = lsys::settings(spec.target);
    const auto   tapped   = [&](const int32_t * layers, uint32_t n, int32_t last) {
        return std::all_of(layers, layers + n, [&](int32_t layer) { return layer >= last || settings.embeddings_layer_inp[layer]; });
    };
    bool there = true;
    if (spec.find<mtp_drafter>() != nullptr) {
        there = settings.embeddings_nextn && !settings.embeddings_nextn_masked;
    } else if (const auto * const eagle3 = spec.find<eagle3_drafter>()) {
        there = tapped(eagle3->target_layer_ids, eagle3->target_layer_ids_n, eagle3->n_layer_tgt);
    } else if (const auto * const dflash = spec.find<dflash_drafter>()) {
        there = tapped(dflash->target_layer_ids, dflash->target_layer_ids_n, INT32_MAX);
    } else {
        return LSYS_OK;
    }
    if (!there) {
        return lsys::refuse("the target's hidden states that the drafter reads were switched off");
    }
    return lsys::extracted(spec.target) ? LSYS_OK : lsys::refuse("the target has decoded nothing since the drafter was made");
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
    sequence & one = spec.sequences[request.seq];
    auto &     to  = spec.inner->dparams[request.seq];
    // The draft model cannot be shown a token it does not have, and the lookup cache reads its last four tokens unchecked.
    const bool unknown   = spec.draft != nullptr && request.last >= spec.draft_vocab;
    const bool too_short = spec.has_cache && one.history.size() + 1 < LLAMA_NGRAM_MAX;
    to.drafting          = request.n_max != 0 && !unknown && !too_short;
    to.n_max             = request.n_max;
    to.pos0              = request.pos;
    to.id_last           = request.last;
    to.prompt            = &one.history;
    to.result            = &one.draft;
    // At temperature 0 the distribution is one token: the draft is as good without it.
    to.result_q = request.want_candidates && request.temperature > 0.0f ? &one.candidates : nullptr;
    to.temp     = request.temperature;
    to.seed     = request.seed;
}

// Cuts what the target does not know, and notes who drafted.
void settle(lsys_spec & spec, llama_seq_id seq) {
    sequence & one  = spec.sequences[seq];
    const auto bad  = std::find_if(one.draft.begin(), one.draft.end(), [&](llama_token token) { return token < 0 || token >= spec.target_vocab; });
    auto *     from = spec.inner->impl_last[seq];
    if (bad != one.draft.end() && from != nullptr) {
        from->n_gen_tokens -= (size_t) (one.draft.end() - bad);
        from->n_gen_drafts -= bad == one.draft.begin();
        one.draft.erase(bad, one.draft.end());
    }
    if (one.candidates.size() > one.draft.size()) {
        one.candidates.resize(one.draft.size());
    } else if (one.candidates.size() < one.draft.size()) {
        one.candidates.clear();
    }
    one.open = one.draft.size();
    one.from = one.draft.empty() || from == nullptr ? LSYS_SPEC_NONE : (lsys_spec_type) from->type;
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
    to.draft.backend_sampling = from.draft_backend_sampling;
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
        made->has_cache = made->find<cache_drafter>() != nullptr;
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
        sequence & one    = spec->sequences[seq];
        const bool longer = one.history.size() <= n_tokens && std::equal(one.history.begin(), one.history.end(), tokens);
        one.history.assign(tokens, tokens + n_tokens);
        drop_draft(one);
        if (!longer) {
            restart_maps(*spec, seq);
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
        sequence & one = spec->sequences[seq];
        if (n_tokens > one.history.size()) {
            return lsys::refuse("the history of sequence %d has %zu tokens, fewer than %zu", seq, one.history.size(), n_tokens);
        }
        if (n_tokens == one.history.size()) {
            return LSYS_OK;
        }
        one.history.resize(n_tokens);
        drop_draft(one);
        restart_maps(*spec, seq);
        if (auto * const mod = spec->find<mod_drafter>()) {
            mod->sinfos[seq].i_last = std::min(mod->sinfos[seq].i_last, n_tokens);
        }
        if (auto * const cache = spec->find<cache_drafter>()) {
            cache->sinfos[seq].cache_size = std::min(cache->sinfos[seq].cache_size, n_tokens);
        }
        return LSYS_OK;
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
        const lsys_status status = check_outputs(*spec);
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
        for (auto & one : spec->inner->dparams) {
            one.drafting = false;
        }
        for (size_t i = 0; i < n_requests; ++i) {
            drop_draft(spec->sequences[requests[i].seq]);
            ask(*spec, requests[i]);
        }
        common_speculative_draft(spec->inner.get());
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
        const sequence & one = spec->sequences[seq];
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
        const sequence & one = spec->sequences[seq];
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
        sequence & one = spec->sequences[seq];
        if (n_accepted > one.open) {
            return lsys::refuse("%zu tokens of sequence %d cannot be accepted, %zu are open", n_accepted, seq, one.open);
        }
        if (one.open > 0) {
            one.open = 0;
            common_speculative_accept(spec->inner.get(), seq, (uint16_t) n_accepted);
        }
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
        // Only this drafter has one: a position and a row of hidden states.
        const auto * const eagle3 = spec->find<eagle3_drafter>();
        if (data == nullptr || eagle3 == nullptr || !eagle3->need_boundary_stash() ||
            size != sizeof(llama_pos) + (size_t) eagle3->n_embd_dec * sizeof(float)) {
            return lsys::refuse("a state of %zu bytes is not one of these drafters", size);
        }
        common_speculative_set_state(spec->inner.get(), seq, std::vector<uint8_t>(data, data + size));
        return LSYS_OK;
    });
}

size_t lsys_spec_n_drafters(const lsys_spec * spec) {
    return spec != nullptr ? spec->inner->impls.size() : 0;
}

lsys_status lsys_spec_stats_of(const lsys_spec * spec, size_t drafter, lsys_spec_stats * out) {
    return lsys::guard([&]() -> lsys_status {
        if (spec == nullptr || out == nullptr || drafter >= spec->inner->impls.size()) {
            return lsys::refuse("there is no drafter %zu, or no place for its statistics", drafter);
        }
        const auto & from    = *spec->inner->impls[drafter];
        *out                 = {};
        out->type            = (lsys_spec_type) from.type;
        out->calls_begin     = from.n_call_begin;
        out->calls_draft     = from.n_call_draft;
        out->calls_accept    = from.n_call_accept;
        out->drafts          = from.n_gen_drafts;
        out->drafts_accepted = from.n_acc_drafts;
        out->tokens          = from.n_gen_tokens;
        out->tokens_accepted = from.n_acc_tokens;
        out->us_begin        = (uint64_t) from.t_begin_us;
        out->us_draft        = (uint64_t) from.t_draft_us;
        out->us_accept       = (uint64_t) from.t_accept_us;
        return LSYS_OK;
    });
}

lsys_status lsys_spec_accepted_per_position(const lsys_spec * spec, size_t drafter, uint64_t * counts, size_t capacity, size_t * n_out) {
    return lsys::guard([&]() -> lsys_status {
        if (spec == nullptr || n_out == nullptr || (counts == nullptr && capacity > 0) || drafter >= spec->inner->impls.size()) {
            return lsys::refuse("there is no drafter %zu, or no place for its counts", drafter);
        }
        const auto & from = spec->inner->impls[drafter]->n_acc_tokens_per_pos;
        return lsys::give(std::vector<uint64_t>(from.begin(), from.end()), counts, capacity, n_out);
    });
}
