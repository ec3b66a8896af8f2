// From the plain parameters of a sampler to those of common, with everything checked that common asserts on.
#include "sampler_params.h"

#include <cmath>

namespace {

// Histories are allocated at once; nothing looks back that far.
constexpr int32_t MAX_HISTORY = 1 << 24;
// Larger penalties and biases change nothing more, but their sums could become infinite and then NaN.
constexpr float MAX_PENALTY = 1e6f;
// Logits divided by less could become infinite.
constexpr float MIN_TEMPERATURE = 1e-6f;

struct field {
    const char * name;
    float        value, min, max;
};

// Also false for NaN.
bool within(float value, float min, float max) {
    return value >= min && value <= max;
}

lsys_status check_floats(const lsys_sampler_params & p) {
    const field fields[] = {
        { "top_p", p.top_p, 0, MAX_PENALTY },
        { "min_p", p.min_p, 0, MAX_PENALTY },
        { "xtc_probability", p.xtc_probability, 0, 1 },
        { "xtc_threshold", p.xtc_threshold, 0, MAX_PENALTY },
        { "typical_p", p.typical_p, 0, MAX_PENALTY },
        { "dynatemp_range", p.dynatemp_range, 0, MAX_PENALTY },
        { "dynatemp_exponent", p.dynatemp_exponent, 0, MAX_PENALTY },
        { "penalty_repeat", p.penalty_repeat, 1 / MAX_PENALTY, MAX_PENALTY },
        { "penalty_frequency", p.penalty_frequency, -MAX_PENALTY, MAX_PENALTY },
        { "penalty_presence", p.penalty_presence, -MAX_PENALTY, MAX_PENALTY },
        { "dry_multiplier", p.dry_multiplier, 0, MAX_PENALTY },
        { "dry_base", p.dry_base, 0, MAX_PENALTY },
        { "adaptive_target", p.adaptive_target, -1, 1 },
        { "adaptive_decay", p.adaptive_decay, 0, 0.99f },
        { "mirostat_tau", p.mirostat_tau, 0, MAX_PENALTY },
        { "mirostat_eta", p.mirostat_eta, 0, MAX_PENALTY },
        { "top_n_sigma", p.top_n_sigma, -MAX_PENALTY, MAX_PENALTY },
    };
    for (const field & f : fields) {
        if (!within(f.value, f.min, f.max)) {
            return lsys::refuse("%s is %g, but must be from %g to %g", f.name, f.value, f.min, f.max);
        }
    }
    if (p.temperature != 0.0f && !within(p.temperature, MIN_TEMPERATURE, MAX_PENALTY)) {
        return lsys::refuse("temperature is %g, but must be 0 or from %g to %g", p.temperature, MIN_TEMPERATURE, MAX_PENALTY);
    }
    return LSYS_OK;
}

lsys_status check_counts(const lsys_sampler_params & p) {
    const struct {
        const char * name;
        int32_t      value, min;
    } counts[] = {
        { "n_prev", p.n_prev, 0 },
        { "n_probs", p.n_probs, 0 },
        { "min_keep", p.min_keep, 0 },
        { "penalty_last_n", p.penalty_last_n, 0 },
        { "dry_allowed_length", p.dry_allowed_length, 0 },
        { "dry_penalty_last_n", p.dry_penalty_last_n, 0 },
    };
    for (const auto & count : counts) {
        if (count.value < count.min || count.value > MAX_HISTORY) {
            return lsys::refuse("%s is %d, but must be from %d to %d", count.name, count.value, count.min, MAX_HISTORY);
        }
    }
    if (p.mirostat < 0 || p.mirostat > 2) {
        return lsys::refuse("mirostat is %d, but must be 0, 1 or 2", p.mirostat);
    }
    if (p.reasoning_budget < -1) {
        return lsys::refuse("reasoning_budget is %d, but must be -1 or more", p.reasoning_budget);
    }
    return LSYS_OK;
}

lsys_status copy_stages(const llama_vocab * vocab, const lsys_sampler_params & from, common_params_sampling & to) {
    if (from.stages != nullptr) {
        to.samplers.clear();
        for (size_t i = 0; i < from.n_stages; ++i) {
            const int stage = from.stages[i];
            if (stage < LSYS_STAGE_DRY || stage > LSYS_STAGE_ADAPTIVE_P || stage == 5) {
                return lsys::refuse("sampler stage %d is unknown", stage);
            }
            to.samplers.push_back((common_sampler_type) stage);
        }
    }
    const auto has = [&](common_sampler_type stage) { return std::find(to.samplers.begin(), to.samplers.end(), stage) != to.samplers.end(); };
    if (has(COMMON_SAMPLER_TYPE_INFILL) && llama_vocab_eot(vocab) == LLAMA_TOKEN_NULL && llama_vocab_eos(vocab) == LLAMA_TOKEN_NULL) {
        return lsys::refuse("the infill stage needs a vocabulary with an end of text");
    }
    if (from.temperature == 0.0f) {
        // Greedy whatever the chain: a dynamic temperature would raise it, and without its stage it would not count.
        to.dynatemp_range = 0.0f;
        if (!has(COMMON_SAMPLER_TYPE_TEMPERATURE)) {
            to.samplers.push_back(COMMON_SAMPLER_TYPE_TEMPERATURE);
        }
    }
    return LSYS_OK;
}

lsys_status copy_breakers(const lsys_sampler_params & from, common_params_sampling & to) {
    if (from.dry_breakers == nullptr) {
        return LSYS_OK;
    }
    if (from.n_dry_breakers > LLAMA_DRY_MAX_SEQ_BREAKERS) {
        return lsys::refuse("%zu sequence breakers for DRY, the most is %d", from.n_dry_breakers, LLAMA_DRY_MAX_SEQ_BREAKERS);
    }
    to.dry_sequence_breakers.clear();
    for (size_t i = 0; i < from.n_dry_breakers; ++i) {
        if (from.dry_breakers[i] == nullptr || from.dry_breakers[i][0] == '\0') {
            return lsys::refuse("sequence breaker %zu for DRY is empty", i);
        }
        to.dry_sequence_breakers.emplace_back(from.dry_breakers[i]);
    }
    return LSYS_OK;
}

lsys_status copy_biases(const llama_vocab * vocab, const lsys_sampler_params & from, common_params_sampling & to) {
    if (from.n_logit_bias > 0 && from.logit_bias == nullptr) {
        return lsys::refuse("n_logit_bias is %zu without biases", from.n_logit_bias);
    }
    for (size_t i = 0; i < from.n_logit_bias; ++i) {
        const llama_logit_bias & bias = from.logit_bias[i];
        if (!lsys::is_token(vocab, bias.token)) {
            return lsys::refuse("token %d of a logit bias is outside the vocabulary of %d", bias.token, llama_vocab_n_tokens(vocab));
        }
        if (!within(bias.bias, -INFINITY, MAX_PENALTY)) {
            return lsys::refuse("the bias of token %d is %g, but must be from minus infinity to %g", bias.token, bias.bias, MAX_PENALTY);
        }
        to.logit_bias.push_back(bias);
    }
    if (from.ignore_eos) {
        for (llama_token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
            if (llama_vocab_is_eog(vocab, token)) {
                to.logit_bias.push_back({ token, -INFINITY });
            }
        }
    }
    return LSYS_OK;
}

lsys_status copy_tokens(const llama_vocab * vocab, const char * what, const lsys_tokens & from, llama_tokens & to) {
    if (from.size > 0 && from.data == nullptr) {
        return lsys::refuse("%s has %zu tokens but no data", what, from.size);
    }
    to.assign(from.data, from.data + from.size);
    for (const llama_token token : to) {
        if (!lsys::is_token(vocab, token)) {
            return lsys::refuse("token %d of %s is outside the vocabulary of %d", token, what, llama_vocab_n_tokens(vocab));
        }
    }
    return LSYS_OK;
}

lsys_status copy_reasoning(const llama_vocab * vocab, const lsys_sampler_params & from, common_params_sampling & to) {
    to.reasoning_budget_tokens = from.reasoning_budget;
    lsys_status status         = copy_tokens(vocab, "reasoning_start", from.reasoning_start, to.reasoning_budget_start);
    if (status == LSYS_OK) {
        status = copy_tokens(vocab, "reasoning_forced", from.reasoning_forced, to.reasoning_budget_forced);
    }
    if (from.n_reasoning_ends > 0 && from.reasoning_ends == nullptr) {
        return lsys::refuse("n_reasoning_ends is %zu without ends", from.n_reasoning_ends);
    }
    for (size_t i = 0; status == LSYS_OK && i < from.n_reasoning_ends; ++i) {
        status = copy_tokens(vocab, "reasoning_ends", from.reasoning_ends[i], to.reasoning_budget_end.emplace_back());
        if (status == LSYS_OK && to.reasoning_budget_end.back().empty()) {
            return lsys::refuse("end %zu of the reasoning is empty", i);
        }
    }
    if (status != LSYS_OK) {
        return status;
    }
    const bool tagged = !to.reasoning_budget_start.empty() && !to.reasoning_budget_end.empty();
    if (from.reasoning_budget >= 0 && !tagged) {
        return lsys::refuse("a reasoning budget needs the tokens that start and end the reasoning");
    }
    if (tagged && to.reasoning_budget_forced.empty()) {
        to.reasoning_budget_forced = to.reasoning_budget_end.front();
    }
    to.reasoning_control = tagged; // so that it can be ended by lsys_sampler_end_reasoning() without a budget
    return LSYS_OK;
}

} // namespace

lsys_status lsys::sampler_params(const llama_vocab * vocab, const lsys_sampler_params & from, common_params_sampling & to) {
    lsys_status status = check_floats(from);
    if (status == LSYS_OK) {
        status = check_counts(from);
    }
    if (status != LSYS_OK) {
        return status;
    }
    to.seed               = from.seed;
    to.n_prev             = from.n_prev;
    to.n_probs            = from.n_probs;
    to.min_keep           = from.min_keep;
    to.top_k              = from.top_k;
    to.top_p              = from.top_p;
    to.min_p              = from.min_p;
    to.xtc_probability    = from.xtc_probability;
    to.xtc_threshold      = from.xtc_threshold;
    to.typ_p              = from.typical_p;
    to.temp               = from.temperature;
    to.dynatemp_range     = from.dynatemp_range;
    to.dynatemp_exponent  = from.dynatemp_exponent;
    to.penalty_last_n     = from.penalty_last_n;
    to.penalty_repeat     = from.penalty_repeat;
    to.penalty_freq       = from.penalty_frequency;
    to.penalty_present    = from.penalty_presence;
    to.dry_multiplier     = from.dry_multiplier;
    to.dry_base           = from.dry_base;
    to.dry_allowed_length = from.dry_allowed_length;
    to.dry_penalty_last_n = from.dry_penalty_last_n;
    to.adaptive_target    = from.adaptive_target;
    to.adaptive_decay     = from.adaptive_decay;
    to.mirostat           = from.mirostat;
    to.mirostat_tau       = from.mirostat_tau;
    to.mirostat_eta       = from.mirostat_eta;
    to.top_n_sigma        = from.top_n_sigma;
    to.ignore_eos         = from.ignore_eos;

    const auto steps = { copy_stages, copy_biases, copy_reasoning, lsys::sampler_grammar };
    status           = copy_breakers(from, to);
    for (const auto step : steps) {
        if (status == LSYS_OK) {
            status = step(vocab, from, to);
        }
    }
    return status;
}

void lsys_sampler_defaults(lsys_sampler_params * params) {
    if (params == nullptr) {
        return;
    }
    const common_params_sampling from{};
    *params                    = {};
    params->seed               = from.seed;
    params->n_prev             = from.n_prev;
    params->n_probs            = from.n_probs;
    params->min_keep           = from.min_keep;
    params->top_k              = from.top_k;
    params->top_p              = from.top_p;
    params->min_p              = from.min_p;
    params->xtc_probability    = from.xtc_probability;
    params->xtc_threshold      = from.xtc_threshold;
    params->typical_p          = from.typ_p;
    params->temperature        = from.temp;
    params->dynatemp_range     = from.dynatemp_range;
    params->dynatemp_exponent  = from.dynatemp_exponent;
    params->penalty_last_n     = from.penalty_last_n;
    params->penalty_repeat     = from.penalty_repeat;
    params->penalty_frequency  = from.penalty_freq;
    params->penalty_presence   = from.penalty_present;
    params->dry_multiplier     = from.dry_multiplier;
    params->dry_base           = from.dry_base;
    params->dry_allowed_length = from.dry_allowed_length;
    params->dry_penalty_last_n = from.dry_penalty_last_n;
    params->adaptive_target    = from.adaptive_target;
    params->adaptive_decay     = from.adaptive_decay;
    params->mirostat           = from.mirostat;
    params->mirostat_tau       = from.mirostat_tau;
    params->mirostat_eta       = from.mirostat_eta;
    params->top_n_sigma        = from.top_n_sigma;
    params->reasoning_budget   = from.reasoning_budget_tokens;
}
