// A stage of our own in the chain of every sampler: it counts what the sampler does, and rules out the end of a text that is
// still too short.
#pragma once

#include "guard.h"

#include <cmath>
#include <cstring>
#include <memory>

namespace lsys {

struct ledger {
    lsys_sampler_counts counts{ 0, 0, 0, 0, true };
    uint64_t            min_tokens = 0;
    std::vector<bool>   ends; // by token, whether it ends the text; empty when there is no minimum

    ledger(const llama_vocab * vocab, uint32_t least) : min_tokens(least) {
        for (llama_token token = 0; least > 0 && token < llama_vocab_n_tokens(vocab); ++token) {
            ends.push_back(llama_vocab_is_eog(vocab, token));
        }
    }

    void note_accepted(bool generated) {
        counts.in_order = counts.in_order && (generated || counts.generated == 0);
        ++(generated ? counts.generated : counts.prompt);
    }

    // Candidates are taken away rather than given minus infinity, of which some stages would make NaN.
    void apply(llama_token_data_array & candidates) {
        ++counts.draws;
        if (counts.generated >= min_tokens) {
            return;
        }
        const auto ending = [this](const llama_token_data & one) { return one.id >= 0 && (size_t) one.id < ends.size() && ends[one.id]; };
        const auto goes_on = [&](const llama_token_data & one) { return !ending(one) && one.logit > -INFINITY; };
        llama_token_data * const last = candidates.data + candidates.size;
        if (std::any_of(candidates.data, last, goes_on)) {
            candidates.size = (size_t) (std::remove_if(candidates.data, last, ending) - candidates.data);
        }
    }
};

inline ledger & ledger_in(const llama_sampler * stage) {
    return *static_cast<ledger *>(stage->ctx);
}

inline llama_sampler * ledger_stage(ledger * owned);

// llama.cpp's table of what a stage does. It only reads it, although its type does not say so.
inline llama_sampler_i ledger_functions = {
    /* name   */ [](const llama_sampler * stage) { return ledger_in(stage).min_tokens > 0 ? "min-tokens" : "?min-tokens"; },
    /* accept */ nullptr, // it would not say whether the token was generated: see note_accepted()
    /* apply  */ [](llama_sampler * stage, llama_token_data_array * candidates) { ledger_in(stage).apply(*candidates); },
    /* reset  */ [](llama_sampler * stage) { ledger_in(stage).counts = { 0, 0, 0, 0, true }; },
    /* clone  */ [](const llama_sampler * stage) { return ledger_stage(new ledger(ledger_in(stage))); },
    /* free   */ [](llama_sampler * stage) { delete &ledger_in(stage); },
    // none of these run on a device
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
};

inline llama_sampler * ledger_stage(ledger * owned) {
    return llama_sampler_init(&ledger_functions, owned);
}

// Null when there is none.
inline ledger * find_ledger(llama_sampler * chain) {
    for (int i = 0; i < llama_sampler_chain_n(chain); ++i) {
        const llama_sampler * const stage = llama_sampler_chain_get(chain, i);
        if (stage->iface == &ledger_functions) {
            return &ledger_in(stage);
        }
    }
    return nullptr;
}

// Behind the biases, since a token they rule out is none that the text could go on with; before all other stages.
inline ledger * add_ledger(llama_sampler * chain, const llama_vocab * vocab, uint32_t min_tokens) {
    auto                         made = std::make_unique<ledger>(vocab, min_tokens);
    std::vector<llama_sampler *> behind;
    behind.reserve((size_t) llama_sampler_chain_n(chain));
    const bool biased = llama_sampler_chain_n(chain) > 0 && std::strcmp(llama_sampler_name(llama_sampler_chain_get(chain, 0)), "logit-bias") == 0;
    while (llama_sampler_chain_n(chain) > (biased ? 1 : 0)) {
        behind.push_back(llama_sampler_chain_remove(chain, biased ? 1 : 0));
    }
    ledger * const added = made.get();
    llama_sampler_chain_add(chain, ledger_stage(made.release()));
    for (llama_sampler * const stage : behind) {
        llama_sampler_chain_add(chain, stage);
    }
    return added;
}

} // namespace lsys
