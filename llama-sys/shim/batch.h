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

    // What each entry carries besides, or in place of, its token: `width` values of `rows`. With 0 the entries are tokens alone.
    std::vector<float> rows;
    size_t             width    = 0;
    bool               features = false; // in place of it

    std::vector<bool> seen; // sequences that have entries
    size_t            n_outputs = 0;
    uint64_t          decoded   = 0; // number of the decode that ran it as it is now; 0: none

    void clear() {
        entries.clear();
        rows.clear();
        width    = 0;
        features = false;
        std::fill(seen.begin(), seen.end(), false);
        n_outputs = 0;
        decoded   = 0;
    }
};
