// What common's drafters keep to themselves: who is asked for a draft and who made it, their statistics as numbers, and what
// they noted about each sequence.
//
// Their file is part of this one, which makes its types visible. This object thereby takes the place of common's own, as the
// log does.
#include "speculation.h"

#include "../common/speculative.cpp"

namespace {

using simple_drafter = common_speculative_impl_draft_simple;
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

bool allows(const lsys_spec::sequence & one, const common_speculative_impl & drafter) {
    return one.types == 0 || (one.types & (1u << drafter.type)) != 0;
}

// How many positions a drafter writes for a sequence, from the one of its last token on.
int64_t n_positions(const common_speculative_impl & drafter, const common_speculative_draft_params & asked) {
    if (dynamic_cast<const simple_drafter *>(&drafter) != nullptr) {
        return asked.n_max > 0 ? std::min(asked.n_max, drafter.n_max) : drafter.n_max;
    }
    if (const auto * const mtp = dynamic_cast<const mtp_drafter *>(&drafter)) {
        return mtp->is_mem_shared ? 0 : mtp->n_max;
    }
    if (const auto * const dflash = dynamic_cast<const dflash_drafter *>(&drafter)) {
        return dflash->is_lilicorr ? dflash->block_size : dflash->n_max + 1;
    }
    return dynamic_cast<const eagle3_drafter *>(&drafter) != nullptr ? drafter.n_max : 0;
}

// A batch that does not fit for one sequence fails for all of them, so those at the end of the draft's context stay out of it.
bool fits(const lsys_spec & spec, const common_speculative_impl & drafter, const common_speculative_draft_params & asked) {
    const int64_t n = n_positions(drafter, asked);
    return n == 0 || asked.pos0 + n <= (int64_t) llama_n_ctx_seq(spec.draft);
}

// The next request seeds the sequence's random numbers, even if its seed is the last one's.
template <typename Drafter>
void reseed(Drafter & drafter, llama_seq_id seq) {
    common_sampler_reset(drafter.smpls[seq].get());
    if ((size_t) seq < drafter.smpls_cfg.size()) {
        drafter.smpls_cfg[seq].temp = NAN; // equals no temperature
    }
}

// Keeps of a new draft what was asked for.
void take(lsys_spec & spec, llama_seq_id seq, common_speculative_impl & drafter) {
    auto & asked = spec.inner->dparams[seq];
    auto & draft = *asked.result;
    if (asked.n_max > 0 && draft.size() > (size_t) asked.n_max) {
        draft.resize(asked.n_max);
        if (asked.result_q != nullptr && asked.result_q->size() > draft.size()) {
            asked.result_q->resize(draft.size());
        }
        spec.sequences[seq].cut = true;
        if (auto * const mod = dynamic_cast<mod_drafter *>(&drafter)) {
            mod->sinfos[seq].n_draft_last = draft.size(); // it judges itself by the share that was right
        }
    }
    asked.drafting             = false;
    spec.inner->impl_last[seq] = &drafter;
    drafter.n_gen_drafts += 1;
    drafter.n_gen_tokens += draft.size();
}

// A drafter marked to draft leaves out the sequences that are not marked, which is also how it is kept from those that do not
// allow it.
void ask(lsys_spec & spec, common_speculative_impl & drafter, const std::vector<llama_seq_id> & open) {
    auto & asked = spec.inner->dparams;
    bool   any   = false;
    for (const llama_seq_id seq : open) {
        asked[seq].drafting = allows(spec.sequences[seq], drafter) && fits(spec, drafter, asked[seq]);
        any                 = any || asked[seq].drafting;
    }
    if (!any) {
        return;
    }
    {
        const common_time_meas clock(drafter.t_draft_us);
        drafter.draft(asked);
    }
    drafter.n_call_draft += 1;
    for (const llama_seq_id seq : open) {
        if (asked[seq].drafting && !asked[seq].result->empty()) {
            take(spec, seq, drafter);
        }
    }
}

// EAGLE-3's process() paired the last state that is kept with the token that was rejected after it. A draft would write the
// pair anew; without one the next process() does, but only where there is none.
void drop_rejected_pair(const lsys_spec & spec, llama_seq_id seq) {
    if (auto * const eagle3 = find<eagle3_drafter>(spec); eagle3 != nullptr && eagle3->pending_pos_last[seq] >= 0) {
        llama_memory_seq_rm(llama_get_memory(spec.draft), seq, eagle3->pending_pos_last[seq], -1);
    }
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

void lsys::drafters::copy(lsys_spec & spec, llama_seq_id from, llama_seq_id to) {
    for (const auto & drafter : spec.inner->impls) {
        if (auto * const simple = dynamic_cast<simple_drafter *>(drafter.get())) {
            reseed(*simple, to);
        } else if (auto * const mtp = dynamic_cast<mtp_drafter *>(drafter.get())) {
            mtp->pending_h[to]     = mtp->pending_h[from];
            mtp->verify_h[to]      = mtp->verify_h[from];
            mtp->verify_h_rows[to] = mtp->verify_h_rows[from];
            reseed(*mtp, to);
        } else if (auto * const eagle3 = dynamic_cast<eagle3_drafter *>(drafter.get())) {
            eagle3->pending_g_last[to]   = eagle3->pending_g_last[from];
            eagle3->pending_pos_last[to] = eagle3->pending_pos_last[from];
            eagle3->verify_g[to]         = eagle3->verify_g[from];
            eagle3->verify_pos_first[to] = eagle3->verify_pos_first[from];
            eagle3->verify_g_rows[to]    = eagle3->verify_g_rows[from];
        } else if (auto * const dflash = dynamic_cast<dflash_drafter *>(drafter.get())) {
            dflash->dflash2_seed[to] = -1; // none yet
            const auto rows          = (ptrdiff_t) dflash->lilicorr_rows;
            const auto values        = rows * dflash->n_embd_dec;
            std::copy_n(dflash->lilicorr_pos.begin() + from * rows, rows, dflash->lilicorr_pos.begin() + to * rows);
            std::copy_n(dflash->lilicorr_embd.begin() + from * values, values, dflash->lilicorr_embd.begin() + to * values);
        } else if (auto * const maps = dynamic_cast<map_drafter *>(drafter.get())) {
            maps->config[to]                    = maps->config[from];
            maps->config[to].last_draft_created = false;
        } else if (auto * const mod = dynamic_cast<mod_drafter *>(drafter.get())) {
            mod->sinfos[to]              = mod->sinfos[from];
            mod->sinfos[to].n_draft_last = 0;
        } else if (auto * const cache = dynamic_cast<cache_drafter *>(drafter.get())) {
            // What `to` has learned is kept, as for a new request, since it is saved in the end: only the history is new.
            cache->sinfos[to].cache_size = 0;
        }
        // The simple lookup has nothing but the history.
    }
}

void lsys::drafters::draft(lsys_spec & spec) {
    std::vector<llama_seq_id> open;
    for (size_t seq = 0; seq < spec.inner->dparams.size(); ++seq) {
        if (spec.inner->dparams[seq].drafting) {
            open.push_back((llama_seq_id) seq);
        }
    }
    const auto done = [&](llama_seq_id seq) { return !spec.inner->dparams[seq].result->empty(); };
    for (const auto & drafter : spec.inner->impls) {
        ask(spec, *drafter, open);
        open.erase(std::remove_if(open.begin(), open.end(), done), open.end());
    }
    for (const llama_seq_id seq : open) {
        spec.inner->dparams[seq].drafting = false;
    }
}

void lsys::drafters::accept(lsys_spec & spec, llama_seq_id seq, size_t n_accepted) {
    const lsys_spec::sequence & one = spec.sequences[seq];
    if (auto * const maps = dynamic_cast<map_drafter *>(spec.inner->impl_last[seq]); maps != nullptr && one.cut && n_accepted == one.draft.size()) {
        // A map never drafts more than was accepted of its last draft, and would keep to the limit of this one.
        maps->config[seq].last_draft_created = false;
    }
    common_speculative_accept(spec.inner.get(), seq, (uint16_t) n_accepted);
    drop_rejected_pair(spec, seq);
}

void lsys::drafters::accept_foreign(lsys_spec & spec, llama_seq_id seq, size_t n_accepted) {
    const auto n = (uint16_t) std::min(n_accepted, (size_t) UINT16_MAX); // the drafters take no more than the rows they have seen
    if (auto * const mtp = find<mtp_drafter>(spec)) {
        mtp->accept(seq, n, true);
    }
    if (auto * const eagle3 = find<eagle3_drafter>(spec)) {
        eagle3->accept(seq, n, true);
        drop_rejected_pair(spec, seq);
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
