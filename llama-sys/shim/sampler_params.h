// From the plain parameters of a sampler to those of common, with everything checked that common asserts on.
#pragma once

#include "guard.h"

#include "../common/common.h"

#include <functional>

namespace lsys {

lsys_status sampler_params(const llama_vocab * vocab, const lsys_sampler_params & from, common_params_sampling & to);

// The part that is about the grammar (grammar.cpp).
lsys_status sampler_grammar(const llama_vocab * vocab, const lsys_sampler_params & from, common_params_sampling & to);

// The tokens of what the template put before the answer, as the grammar is shown them, until `see` says no.
void for_each_prefilled(const llama_vocab * vocab, const std::string & generation_prompt, const std::function<bool(llama_token, const std::string &)> & see);

inline bool is_token(const llama_vocab * vocab, llama_token token) {
    return token >= 0 && token < llama_vocab_n_tokens(vocab);
}

} // namespace lsys
