// Grammars of a sampler: syntax, triggers of lazy ones, and what the generation prompt already says.
#include "sampler_params.h"

#include "../common/sampling.h"

#include "llama-grammar.h"

#include <cctype>
#include <cmath>
#include <cstring>
#include <memory>
#include <regex>

namespace {

// A grammar or a text that is fed to it; parsing takes many times its size.
constexpr size_t MAX_GRAMMAR = 16 << 20;
// Patterns are compiled by functions that call themselves for each group.
constexpr int MAX_GROUPS  = 200;
constexpr int MAX_PATTERN = 16 << 10;

struct free_sampler {
    void operator()(llama_sampler * sampler) const { llama_sampler_free(sampler); }
};
using sampler_ptr = std::unique_ptr<llama_sampler, free_sampler>;

lsys_status copy_triggers(const llama_vocab * vocab, const lsys_sampler_params & from, common_params_sampling & to) {
    if ((from.n_triggers > 0 && from.triggers == nullptr) || (from.n_preserved_tokens > 0 && from.preserved_tokens == nullptr)) {
        return lsys::refuse("triggers or preserved tokens are counted but not given");
    }
    std::vector<std::string> preserved;
    for (size_t i = 0; i < from.n_preserved_tokens; ++i) {
        if (from.preserved_tokens[i] == nullptr) {
            return lsys::refuse("preserved token %zu is null", i);
        }
        preserved.emplace_back(from.preserved_tokens[i]);
    }
    std::vector<common_grammar_trigger> triggers;
    for (size_t i = 0; i < from.n_triggers; ++i) {
        const lsys_trigger & trigger = from.triggers[i];
        if (trigger.kind < LSYS_TRIGGER_TOKEN || trigger.kind > LSYS_TRIGGER_PATTERN_FULL) {
            return lsys::refuse("trigger kind %d is unknown", (int) trigger.kind);
        }
        if (trigger.kind != LSYS_TRIGGER_TOKEN && (trigger.value == nullptr || trigger.value[0] == '\0')) {
            return lsys::refuse("trigger %zu has no text", i);
        }
        if (trigger.kind == LSYS_TRIGGER_TOKEN && !lsys::is_token(vocab, trigger.token)) {
            return lsys::refuse("token %d of a trigger is outside the vocabulary of %d", trigger.token, llama_vocab_n_tokens(vocab));
        }
        if (trigger.kind == LSYS_TRIGGER_PATTERN || trigger.kind == LSYS_TRIGGER_PATTERN_FULL) {
            const char * const end = trigger.value + std::strlen(trigger.value);
            if (std::count(trigger.value, end, '(') > MAX_GROUPS || end - trigger.value > MAX_PATTERN) {
                return lsys::refuse("trigger pattern %zu is too long or has too many groups", i);
            }
            try {
                std::regex compiled(trigger.value); // llama.cpp would leak the grammar when it throws
            } catch (const std::regex_error & error) {
                return lsys::refuse("trigger pattern %zu is not a regular expression: %s", i, error.what());
            }
        }
        if (trigger.kind == LSYS_TRIGGER_WORD) {
            preserved.emplace_back(trigger.value); // kept only if it is one token
        }
        triggers.push_back({ (common_grammar_trigger_type) trigger.kind, trigger.value ? trigger.value : "",
                             trigger.kind == LSYS_TRIGGER_TOKEN ? trigger.token : LLAMA_TOKEN_NULL });
    }
    if (to.grammar_lazy && triggers.empty()) {
        return lsys::refuse("a lazy grammar needs a trigger");
    }
    common_sampling_add_preserved_tokens(to, vocab, preserved);
    common_sampling_add_grammar_triggers(to, vocab, std::move(triggers));
    return LSYS_OK;
}

// What is wrong with the text of a grammar. The parser's own report goes to stderr.
std::string syntax_error(const llama_vocab * vocab, const char * text) {
    llama_grammar_parser parser(vocab);
    try {
        while (*text != '\0' && std::strchr(" \t\r\n#", *text) != nullptr) {
            text += *text == '#' ? std::strcspn(text, "\r\n") : 1;
        }
        while (*text != '\0') {
            text = parser.parse_rule(text);
        }
    } catch (const std::exception & error) {
        return error.what();
    }
    for (const auto & [name, id] : parser.symbol_ids) {
        if (id >= parser.rules.size() || parser.rules[id].empty()) {
            return "rule " + name + " is used but not defined";
        }
    }
    return parser.symbol_ids.count("root") == 0 ? "there is no rule root" : "";
}

// Parses the grammar and feeds it the generation prompt, as the making of the sampler will. Done before, because llama.cpp
// leaks what it has made so far when it throws there, and aborts when the prompt holds an end-of-generation token.
lsys_status check_grammar(const llama_vocab * vocab, const common_params_sampling & params) {
    const std::string & text = params.grammar.grammar;
    if (text.compare(0, 11, "%llguidance") == 0) {
        return lsys::fail("grammars of llguidance are not built in");
    }
    const std::string wrong = syntax_error(vocab, text.c_str());
    if (!wrong.empty()) {
        return lsys::fail("the grammar cannot be parsed: %s", wrong.c_str());
    }
    const sampler_ptr grammar(llama_sampler_init_grammar(vocab, text.c_str(), "root"));
    if (!grammar) {
        return lsys::fail("the grammar cannot be used: it is left-recursive or chains too many rules");
    }
    if (params.grammar_lazy || !common_grammar_needs_prefill(params.grammar) || params.generation_prompt.empty()) {
        return LSYS_OK;
    }
    lsys_status status = LSYS_OK;
    lsys::for_each_prefilled(vocab, params.generation_prompt, [&](llama_token token, const std::string & piece) {
        if (llama_vocab_is_eog(vocab, token)) {
            status = lsys::fail("the generation prompt ends the text, so no grammar can follow it");
            return false;
        }
        llama_token_data       candidate{ token, 0.0f, 0.0f };
        llama_token_data_array only{ &candidate, 1, -1, false };
        llama_sampler_apply(grammar.get(), &only);
        if (candidate.logit == -INFINITY) {
            status = lsys::fail("the grammar does not allow the generation prompt, from '%s' on", piece.c_str());
            return false;
        }
        llama_sampler_accept(grammar.get(), token);
        return true;
    });
    return status;
}

} // namespace

void lsys::for_each_prefilled(const llama_vocab * vocab, const std::string & generation_prompt, const std::function<bool(llama_token, const std::string &)> & see) {
    const llama_tokens tokens = common_tokenize(vocab, generation_prompt, false, true);
    for (size_t i = 0; i < tokens.size(); ++i) {
        const std::string piece = common_token_to_piece(vocab, tokens[i], true);
        if (i == 0 && std::isspace((unsigned char) piece[0]) && !std::isspace((unsigned char) generation_prompt[0])) {
            continue; // a space that the tokenizer put before the text
        }
        if (!see(tokens[i], piece)) {
            return;
        }
    }
}

lsys_status lsys::sampler_grammar(const llama_vocab * vocab, const lsys_sampler_params & from, common_params_sampling & to) {
    if (from.generation_prompt != nullptr) {
        to.generation_prompt = from.generation_prompt;
    }
    if (from.grammar_kind < LSYS_GRAMMAR_NONE || from.grammar_kind > LSYS_GRAMMAR_TOOL_CALLS) {
        return refuse("grammar kind %d is unknown", (int) from.grammar_kind);
    }
    if (to.generation_prompt.size() > MAX_GRAMMAR) {
        return refuse("the generation prompt is too long: %zu bytes", to.generation_prompt.size());
    }
    const bool empty = from.grammar == nullptr || from.grammar[0] == '\0';
    if ((from.grammar_kind == LSYS_GRAMMAR_NONE) != empty) {
        return refuse(empty ? "there is no grammar of the kind that is named" : "the kind of the grammar is missing");
    }
    if (empty) {
        if (from.grammar_lazy) {
            return refuse("there is no grammar to be lazy about");
        }
        return LSYS_OK;
    }
    to.grammar      = common_grammar((common_grammar_type) from.grammar_kind, from.grammar);
    to.grammar_lazy = from.grammar_lazy;
    if (to.grammar.grammar.size() > MAX_GRAMMAR) {
        return refuse("the grammar is too long: %zu bytes", to.grammar.grammar.size());
    }
    const lsys_status status = copy_triggers(vocab, from, to);
    return status == LSYS_OK ? check_grammar(vocab, to) : status;
}
