// The speculation handle, and what is looked up inside of common's drafters.
#pragma once

#include "inside.h"

#include "../common/speculative.h"

struct lsys_spec {
    struct sequence {
        llama_tokens history; // what is in the target's memory
        llama_tokens draft;   // the last one, possibly cut
        size_t       open = 0; // its tokens that were not yet accepted or rejected
        bool         cut  = false; // it was longer than asked for

        std::vector<std::vector<llama_token_data>> candidates; // for each drafted token, or none at all

        lsys_spec_type from = LSYS_SPEC_NONE;

        uint32_t types = 0; // who may draft, as in the request

        void drop_draft() {
            draft.clear();
            candidates.clear();
            open = 0;
            cut  = false;
            from = LSYS_SPEC_NONE;
        }
    };

    common_speculative_ptr inner;
    llama_context *        target       = nullptr;
    llama_context *        draft        = nullptr; // null without a draft model
    int32_t                target_vocab = 0;
    int32_t                draft_vocab  = 0;
    bool                   has_cache    = false; // the lookup cache drafter is among them
    std::vector<sequence>  sequences;
};

// drafters_inside.cpp
namespace lsys::drafters {

bool has_cache(const lsys_spec & spec);

// The drafters that look up positions of a history that was another one or longer start anew with what it is now.
void restart(lsys_spec & spec, llama_seq_id seq);

// The other lookup drafters do not take tokens beyond the history's end as seen.
void shorten(lsys_spec & spec, llama_seq_id seq, size_t n_tokens);

// What was noted of hidden states is that of a new drafter.
void forget(lsys_spec & spec, llama_seq_id seq);

// `to` gets what was noted of `from`; their histories are equal already.
void copy(lsys_spec & spec, llama_seq_id from, llama_seq_id to);

// Asks the drafters in their order, each for the sequences that are to draft, allow it and have no draft yet.
void draft(lsys_spec & spec);

// Tells them how much of the draft was right.
void accept(lsys_spec & spec, llama_seq_id seq, size_t n_accepted);

// The same of a draft that none of them made: those that noted hidden states of it keep that of the last right token.
void accept_foreign(lsys_spec & spec, llama_seq_id seq, size_t n_accepted);

// Next-token heads are among them, which pair a token with the hidden state before it.
bool        reads_hidden(const lsys_spec & spec);
lsys_status seed(lsys_spec & spec, llama_seq_id seq, const float * row, size_t n);

// The outputs of the target that the drafters read must be on.
lsys_status check_outputs(const lsys_spec & spec);

// Who drafted last, with `cut` tokens of the draft, or all of it, taken out of its statistics.
lsys_spec_type settle(const lsys_spec & spec, llama_seq_id seq, size_t cut, bool all);

// The size of the state of a sequence; 0 when no drafter has one.
size_t state_size(const lsys_spec & spec);

size_t          count(const lsys_spec & spec);
lsys_spec_stats stats(const lsys_spec & spec, size_t drafter);

std::vector<uint64_t> accepted_per_position(const lsys_spec & spec, size_t drafter);

} // namespace lsys::drafters
