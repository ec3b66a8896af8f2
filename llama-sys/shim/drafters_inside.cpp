// What common's drafters keep to themselves: which of them made a draft, their statistics as numbers, and what they noted
// about a history that has shrunk since.
//
// Their file is part of this one, which makes its types visible. This object thereby takes the place of common's own, as the
// log does.
#include "speculation.h"

#include "../common/speculative.cpp"

namespace {

using eagle3_drafter = common_speculative_impl_draft_eagle3;
using dflash_drafter = common_speculative_impl_draft_dflash;
using mtp_drafter    = common_speculative_impl_draft_mtp;
using map_drafter    = common_speculative_impl_ngram_map_k;
using mod_drafter    = common_speculative_impl_ngram_mod;
using cache_drafter  = common_speculative_impl_ngram_cache;

template <typename Drafter>
Drafter * find(const lsys_spec & spec) {
    for (const auto & drafter : spec.inner->impls) {
        if (auto * const found = dynamic_cast<Drafter *>(drafter.get())) {
            return found;
        }
    }
    return nullptr;
}

} // namespace

bool lsys::drafters::has_cache(const lsys_spec & spec) {
    return find<cache_drafter>(spec) != nullptr;
}

void lsys::drafters::restart(lsys_spec & spec, llama_seq_id seq) {
    for (const auto & drafter : spec.inner->impls) {
        if (auto * const maps = dynamic_cast<map_drafter *>(drafter.get())) {
            common_ngram_map & map = maps->config[seq];
            map                    = common_ngram_map(map.size_key, map.size_value, map.key_only, map.min_hits);
            common_ngram_map_begin(map, spec.sequences[seq].history);
        }
    }
}

void lsys::drafters::shorten(lsys_spec & spec, llama_seq_id seq, size_t n_tokens) {
    if (auto * const mod = find<mod_drafter>(spec)) {
        mod->sinfos[seq].i_last = std::min(mod->sinfos[seq].i_last, n_tokens);
    }
    if (auto * const cache = find<cache_drafter>(spec)) {
        cache->sinfos[seq].cache_size = std::min(cache->sinfos[seq].cache_size, n_tokens);
    }
}

void lsys::drafters::forget(lsys_spec & spec, llama_seq_id seq) {
    if (auto * const mtp = find<mtp_drafter>(spec)) {
        std::fill(mtp->pending_h[seq].begin(), mtp->pending_h[seq].end(), 0.0f);
        mtp->verify_h_rows[seq] = 0;
    }
    if (auto * const eagle3 = find<eagle3_drafter>(spec)) {
        eagle3->pending_pos_last[seq] = -1;
        eagle3->verify_g_rows[seq]    = 0;
    }
}

bool lsys::drafters::reads_hidden(const lsys_spec & spec) {
    return find<mtp_drafter>(spec) != nullptr;
}

lsys_status lsys::drafters::seed(lsys_spec & spec, llama_seq_id seq, const float * row, size_t n) {
    auto * const mtp = find<mtp_drafter>(spec);
    if (mtp == nullptr || n != mtp->pending_h[seq].size()) {
        return lsys::refuse("a hidden state of %zu values does not fit the drafter", n);
    }
    std::copy(row, row + n, mtp->pending_h[seq].begin());
    mtp->verify_h_rows[seq] = 0;
    return LSYS_OK;
}

lsys_status lsys::drafters::check_outputs(const lsys_spec & spec) {
    const auto & settings = lsys::settings(spec.target);
    const auto   tapped   = [&](const int32_t * layers, uint32_t n, int32_t last) {
        return std::all_of(layers, layers + n, [&](int32_t layer) { return layer >= last || settings.embeddings_layer_inp[layer]; });
    };
    bool on = true;
    if (find<mtp_drafter>(spec) != nullptr) {
        on = settings.embeddings_nextn && !settings.embeddings_nextn_masked;
    } else if (const auto * const eagle3 = find<eagle3_drafter>(spec)) {
        on = tapped(eagle3->target_layer_ids, eagle3->target_layer_ids_n, eagle3->n_layer_tgt);
    } else if (const auto * const dflash = find<dflash_drafter>(spec)) {
        on = tapped(dflash->target_layer_ids, dflash->target_layer_ids_n, INT32_MAX);
    } else {
        return LSYS_OK;
    }
    if (!on) {
        return lsys::refuse("the target's hidden states that the drafter reads were switched off");
    }
    return lsys::extracted(spec.target) ? LSYS_OK : lsys::refuse("the target has decoded nothing since the drafter was made");
}

lsys_spec_type lsys::drafters::settle(const lsys_spec & spec, llama_seq_id seq, size_t cut, bool all) {
    auto * const drafter = spec.inner->impl_last[seq];
    if (drafter == nullptr) {
        return LSYS_SPEC_NONE;
    }
    drafter->n_gen_tokens -= cut;
    drafter->n_gen_drafts -= all;
    return (lsys_spec_type) drafter->type;
}

size_t lsys::drafters::state_size(const lsys_spec & spec) {
    // A position and a row of hidden states.
    const auto * const eagle3 = find<eagle3_drafter>(spec);
    return eagle3 != nullptr && eagle3->need_boundary_stash() ? sizeof(llama_pos) + (size_t) eagle3->n_embd_dec * sizeof(float) : 0;
}

size_t lsys::drafters::count(const lsys_spec & spec) {
    return spec.inner->impls.size();
}

lsys_spec_stats lsys::drafters::stats(const lsys_spec & spec, size_t drafter) {
    const auto &    from = *spec.inner->impls[drafter];
    lsys_spec_stats to{};
    to.type            = (lsys_spec_type) from.type;
    to.calls_begin     = from.n_call_begin;
    to.calls_draft     = from.n_call_draft;
    to.calls_accept    = from.n_call_accept;
    to.drafts          = from.n_gen_drafts;
    to.drafts_accepted = from.n_acc_drafts;
    to.tokens          = from.n_gen_tokens;
    to.tokens_accepted = from.n_acc_tokens;
    to.us_begin        = (uint64_t) from.t_begin_us;
    to.us_draft        = (uint64_t) from.t_draft_us;
    to.us_accept       = (uint64_t) from.t_accept_us;
    return to;
}

std::vector<uint64_t> lsys::drafters::accepted_per_position(const lsys_spec & spec, size_t drafter) {
    const auto & from = spec.inner->impls[drafter]->n_acc_tokens_per_pos;
    return { from.begin(), from.end() };
}
