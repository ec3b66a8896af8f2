// What a grammar leaves no choice about: the text that must come next.
#include "sampler_params.h"

#include "llama-grammar.h"

#include <memory>

namespace {

// With more states than this it is not worth the time to look whether they all agree.
constexpr size_t MAX_STATES = 16;

struct free_grammar {
    void operator()(llama_grammar * grammar) const { llama_grammar_free_impl(grammar); }
};

void put_utf8(std::string & text, uint32_t c) {
    const auto more = [&](int shift) { text += (char) (0x80 | ((c >> shift) & 0x3F)); };
    if (c < 0x80) {
        text += (char) c;
    } else if (c < 0x800) {
        text += (char) (0xC0 | (c >> 6));
        more(0);
    } else if (c < 0x10000) {
        text += (char) (0xE0 | (c >> 12));
        more(6);
        more(0);
    } else {
        text += (char) (0xF0 | (c >> 18));
        more(12);
        more(6);
        more(0);
    }
}

// The only character that all states allow, or none.
bool only_character(const llama_grammar_stacks & states, uint32_t & c) {
    if (states.empty() || states.size() > MAX_STATES) {
        return false;
    }
    for (size_t i = 0; i < states.size(); ++i) {
        if (states[i].empty()) {
            return false; // the text may also end
        }
        const llama_grammar_element * const next = states[i].back();
        const bool single = next->type == LLAMA_GRETYPE_CHAR && next[1].type != LLAMA_GRETYPE_CHAR_ALT && next[1].type != LLAMA_GRETYPE_CHAR_RNG_UPPER;
        if (!single || (i > 0 && next->value != c)) {
            return false;
        }
        c = next->value;
    }
    return true;
}

} // namespace

struct lsys_forced {
    const llama_vocab *                          vocab;
    std::unique_ptr<llama_grammar, free_grammar> grammar;
    bool                                         over = false; // what comes next is not known to it any more
};

lsys_status lsys_forced_new(const llama_model * model, const lsys_sampler_params * params, lsys_forced ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (model == nullptr || params == nullptr || out == nullptr) {
            return lsys::refuse("model, parameters and a place for the handle are needed");
        }
        *out = nullptr;
        const llama_vocab * const vocab = llama_model_get_vocab(model);
        common_params_sampling    parsed;
        const lsys_status         status = lsys::sampler_grammar(vocab, *params, parsed);
        if (status != LSYS_OK) {
            return status;
        }
        const std::string & text = common_grammar_value(parsed.grammar);
        if (text.empty() || parsed.grammar_lazy) {
            return lsys::refuse("there is no grammar, or it waits for a trigger");
        }
        auto forced     = std::make_unique<lsys_forced>();
        forced->vocab   = vocab;
        forced->grammar.reset(llama_grammar_init_impl(vocab, text.c_str(), "root", false, nullptr, 0, nullptr, 0));
        if (!forced->grammar) {
            return lsys::fail("the grammar cannot be used");
        }
        if (common_grammar_needs_prefill(parsed.grammar)) {
            lsys::for_each_prefilled(vocab, parsed.generation_prompt, [&](llama_token token, const std::string &) {
                llama_grammar_accept_impl(*forced->grammar, token);
                return true;
            });
        }
        *out = forced.release();
        return LSYS_OK;
    });
}

void lsys_forced_free(lsys_forced * forced) {
    delete forced;
}

lsys_status lsys_forced_accept(lsys_forced * forced, llama_token token) {
    return lsys::guard([&]() -> lsys_status {
        if (forced == nullptr || !lsys::is_token(forced->vocab, token)) {
            return lsys::refuse("there is no handle, or token %d is outside the vocabulary", token);
        }
        // llama.cpp aborts at the end of a text that the grammar does not let end there.
        if (forced->over || llama_vocab_is_eog(forced->vocab, token)) {
            forced->over = true;
            return LSYS_OK;
        }
        forced->over = true; // unless it comes back
        llama_grammar_accept_impl(*forced->grammar, token);
        forced->over = forced->grammar->stacks.empty();
        return LSYS_OK;
    });
}

lsys_status lsys_forced_text(lsys_forced * forced, size_t max_bytes, lsys_text ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (forced == nullptr || out == nullptr) {
            return lsys::refuse("a handle and a place for the text are needed");
        }
        *out = nullptr;
        std::string     text;
        llama_grammar & grammar = *forced->grammar;
        if (!forced->over && grammar.partial_utf8.n_remain == 0) {
            const llama_grammar_stacks before = grammar.stacks;
            uint32_t                   c      = 0;
            while (text.size() < max_bytes && only_character(grammar.stacks, c)) {
                put_utf8(text, c);
                llama_grammar_accept(&grammar, c);
            }
            grammar.stacks = before;
        }
        return lsys::give(text, out);
    });
}
