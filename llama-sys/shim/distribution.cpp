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

// Minus infinity when there is nothing larger. What is not a number is not usable, and neither is plus infinity.
float largest(const float * row, size_t size, bool * usable) {
    // Lanes rather than one maximum: compilers may not change the order in which floats are compared.
    constexpr size_t LANES = 32;
    float            lanes[LANES];
    std::fill(lanes, lanes + LANES, -INFINITY);
    unsigned     bad   = 0;
    const size_t whole = size - size % LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        for (size_t lane = 0; lane < LANES; ++lane) {
            const float logit = row[i + lane];
            bad |= !(logit <= FLT_MAX);
            lanes[lane] = logit > lanes[lane] ? logit : lanes[lane];
        }
    }
    for (size_t i = whole; i < size; ++i) {
        bad |= !(row[i] <= FLT_MAX);
        lanes[0] = row[i] > lanes[0] ? row[i] : lanes[0];
    }
    *usable = *usable && bad == 0;
    return *std::max_element(lanes, lanes + LANES);
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

bool lsys::largest_and(const std::vector<llama_token> & listed, const float * row, size_t size, std::vector<llama_token_data> & out) {
    bool          usable = true;
    float         max    = -INFINITY;
    const float * first  = nullptr; // where the largest is, or something before it in the same part
    size_t        place  = 0;       // among those listed
    size_t        start  = 0;
    out.clear();
    for (size_t i = 0; i <= listed.size(); ++i) {
        const size_t end     = i < listed.size() ? (size_t) listed[i] : size;
        const float  of_part = largest(row + start, end - start, &usable);
        if (of_part > max) {
            max   = of_part;
            first = row + start;
            place = i;
        }
        if (end < size) {
            const float logit = row[end];
            usable            = usable && logit <= FLT_MAX;
            out.push_back({ (llama_token) end, logit, 0.0f });
        }
        start = end + 1;
    }
    if (first != nullptr) {
        const auto token = (llama_token) (std::find(first, row + size, max) - row);
        out.insert(out.begin() + (ptrdiff_t) place, { token, max, 0.0f });
    }
    const bool some = std::any_of(out.begin(), out.end(), [](const llama_token_data & one) { return one.logit >= -FLT_MAX; });
    return usable && some;
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
