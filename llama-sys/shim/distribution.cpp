// Arithmetic on logits and candidates.
#include "distribution.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace {

float probability(const lsys_candidates & q, llama_token token, llama_token drafted) {
    if (q.size == 0) {
        return token == drafted ? 1.0f : 0.0f;
    }
    for (size_t i = 0; i < q.size; ++i) {
        if (q.data[i].id == token) {
            return q.data[i].p;
        }
    }
    return 0.0f;
}

} // namespace

bool lsys::is_usable(const float * row, size_t size) {
    // Without a branch in the loop, so that compilers make vector code of it.
    unsigned bad = 0, good = 0;
    for (size_t i = 0; i < size; ++i) {
        bad |= !(row[i] <= FLT_MAX);
        good |= row[i] >= -FLT_MAX;
    }
    return good != 0 && bad == 0;
}

void lsys::fill_probabilities(llama_token_data_array & candidates) {
    float max = -INFINITY, sum = 0.0f;
    for (size_t i = 0; i < candidates.size; ++i) {
        max = std::max(max, candidates.data[i].logit);
    }
    for (size_t i = 0; i < candidates.size; ++i) {
        candidates.data[i].p = std::exp(candidates.data[i].logit - max);
        sum += candidates.data[i].p;
    }
    for (size_t i = 0; i < candidates.size; ++i) {
        candidates.data[i].p /= sum;
    }
}

void lsys::sort_by_probability(llama_token_data_array & candidates) {
    const auto before = [](const llama_token_data & a, const llama_token_data & b) { return a.p > b.p; };
    if (!std::is_sorted(candidates.data, candidates.data + candidates.size, before)) {
        const llama_token id = candidates.selected >= 0 ? candidates.data[candidates.selected].id : LLAMA_TOKEN_NULL;
        std::sort(candidates.data, candidates.data + candidates.size, before);
        for (size_t i = 0; i < candidates.size; ++i) {
            if (candidates.data[i].id == id) {
                candidates.selected = (int64_t) i;
            }
        }
    }
    candidates.sorted = true;
}

llama_token lsys::accept_or_replace(const llama_token_data_array & candidates, std::vector<float> p, const lsys_candidates & q, llama_token drafted,
                                    llama_token fallback, std::mt19937 & rng) {
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);

    const float asked = probability(q, drafted, drafted);
    for (size_t i = 0; i < candidates.size; ++i) {
        if (candidates.data[i].id == drafted) {
            if (asked > 0.0f && (p[i] >= asked || uniform(rng) < p[i] / asked)) {
                return drafted;
            }
            break;
        }
    }
    float rest = 0.0f;
    for (size_t i = 0; i < candidates.size; ++i) {
        p[i] = std::max(0.0f, p[i] - probability(q, candidates.data[i].id, drafted));
        rest += p[i];
    }
    float       left   = uniform(rng) * rest;
    llama_token chosen = fallback;
    for (size_t i = 0; i < candidates.size && rest > 0.0f; ++i) {
        if (p[i] > 0.0f) {
            chosen = candidates.data[i].id;
            left -= p[i];
            if (left <= 0.0f) {
                break;
            }
        }
    }
    return chosen;
}
