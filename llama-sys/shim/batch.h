// The batch handle, which the decoder and the drafters share.
#pragma once

#include "inside.h"

#include "../common/common.h"

struct lsys_batch {
    explicit lsys_batch(llama_context * ctx) :
        ctx(ctx), entries(ctx), capacity(llama_n_batch(ctx)), n_vocab(lsys::vocab_size(llama_get_model(ctx))), seen(llama_n_seq_max(ctx)) {}

    llama_context * const ctx;
    common_batch          entries;
    const size_t          capacity;
    const int32_t         n_vocab;

    std::vector<bool> seen; // sequences that have entries
    size_t            n_outputs = 0;
    uint64_t          decoded   = 0; // number of the decode that ran it as it is now; 0: none

    void clear() {
        entries.clear();
        std::fill(seen.begin(), seen.end(), false);
        n_outputs = 0;
        decoded   = 0;
    }
};
