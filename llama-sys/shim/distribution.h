// Arithmetic on logits and candidates.
#pragma once

#include "shim.h"

#include <random>
#include <vector>

namespace lsys {

// Neither NaN nor infinity anywhere, and something to choose from.
bool is_usable(const float * row, size_t size);

// As is_usable(), and lists these tokens, which are in order, and of all others the one with the largest logit, of equal ones
// the first. The list is in order too.
bool largest_and(const std::vector<llama_token> & listed, const float * row, size_t size, std::vector<llama_token_data> & out);

// Sets the probabilities to the softmax of the logits.
void fill_probabilities(llama_token_data_array & candidates);

// The most probable first; the selected one stays selected.
void sort_by_probability(llama_token_data_array & candidates);

// Takes the drafted token with probability min(1, p / q), else one from what p has above q, so that the result is drawn from p.
// `p` holds the probabilities of the candidates, q the draft's; an empty q was certain of the drafted token. `fallback`, a
// draw from p, is for the case that rounding leaves nothing.
llama_token accept_or_replace(const llama_token_data_array & candidates, std::vector<float> p, const lsys_candidates & q, llama_token drafted,
                              llama_token fallback, std::mt19937 & rng);

} // namespace lsys
