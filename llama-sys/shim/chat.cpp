// Chat templates: from a conversation to a prompt, and from the answer's text to a message. JSON in, JSON out.
#include "inside.h"

#include "../common/chat.h"
#include "../common/log.h"

#include "nesting.h"

#include <cstdio>

// The conversion of schemas warns on stderr. It is part of this object instead, in the place of common's, and warns in the log.
#define fprintf(stream, ...) LOG_WRN(__VA_ARGS__)
#include "../common/json-schema-to-grammar.cpp"
#undef fprintf

struct lsys_chat_templates {
    common_chat_templates_ptr inner;
};

struct lsys_chat {
    common_chat_params        params;
    common_chat_parser_params parser;
    lsys_grammar_kind         grammar_kind = LSYS_GRAMMAR_NONE;

    common_chat_input answer; // its text so far
    common_chat_msg   message;
    bool              finished = false;
};

namespace {

// Every feed parses all of the answer.
constexpr size_t MAX_ANSWER = 16 << 20;

// ---- from JSON ----

// The value of a key, or nothing if it is missing or null.
const common_json * find(const common_json & object, const char * key) {
    if (!object.contains(key)) {
        return nullptr;
    }
    const common_json & value = object.at(key);
    return value.is_null() ? nullptr : &value;
}

bool flag(const common_json & object, const char * key, bool otherwise) {
    const common_json * const value = find(object, key);
    return value != nullptr ? value->get<bool>() : otherwise;
}

std::string string(const common_json & object, const char * key, const char * otherwise) {
    const common_json * const value = find(object, key);
    return value != nullptr ? value->get<std::string>() : otherwise;
}

lsys_status check_keys(const common_json & inputs) {
    static const char * const known[] = { "messages",    "tools",   "tool_choice",           "parallel_tool_calls", "json_schema",
                                          "grammar",     "add_generation_prompt", "enable_thinking", "reasoning_format",    "template_arguments",
                                          "continue_final_message" };
    if (!inputs.is_object()) {
        return lsys::refuse("the inputs are not a JSON object");
    }
    for (const auto & [key, value] : inputs.items()) {
        if (std::none_of(std::begin(known), std::end(known), [&](const char * one) { return key == one; })) {
            return lsys::refuse("the inputs have an unknown key '%s'", key.c_str());
        }
    }
    if (find(inputs, "messages") == nullptr) {
        return lsys::refuse("the inputs have no messages");
    }
    return LSYS_OK;
}

common_chat_templates_inputs convert(const common_json & inputs) {
    common_chat_templates_inputs to;
    to.messages              = common_chat_msgs_parse_oaicompat(inputs.at("messages"));
    to.tool_choice           = common_chat_tool_choice_parse_oaicompat(string(inputs, "tool_choice", "auto"));
    to.parallel_tool_calls   = flag(inputs, "parallel_tool_calls", false);
    to.grammar               = string(inputs, "grammar", "");
    to.add_generation_prompt = flag(inputs, "add_generation_prompt", true);
    to.enable_thinking       = flag(inputs, "enable_thinking", true);
    to.reasoning_format      = common_reasoning_format_from_name(string(inputs, "reasoning_format", "auto"));
    if (const common_json * const tools = find(inputs, "tools")) {
        to.tools = common_chat_tools_parse_oaicompat(*tools);
    }
    if (const common_json * const schema = find(inputs, "json_schema")) {
        to.json_schema = schema->dump();
    }
    if (const common_json * const arguments = find(inputs, "template_arguments")) {
        if (!arguments->is_object()) {
            throw std::invalid_argument("template_arguments is not an object");
        }
        for (const auto & [key, value] : arguments->items()) {
            to.chat_template_kwargs[key] = value.dump();
        }
    }
    if (const common_json * const further = find(inputs, "continue_final_message")) {
        to.continue_final_message = common_chat_continuation_parse(*further);
    }
    if (!to.grammar.empty() && !to.json_schema.empty()) {
        throw std::invalid_argument("a grammar and a JSON schema exclude each other");
    }
    return to;
}

// ---- to JSON ----

common_json strings(const std::vector<std::string> & from) {
    return common_json(from);
}

common_json tool_call(const common_chat_tool_call & from) {
    return common_json{ { "id", from.id }, { "name", from.name }, { "arguments", from.arguments } };
}

common_json message(const common_chat_msg & from) {
    common_json calls = common_json::array();
    for (const auto & call : from.tool_calls) {
        calls.push_back(tool_call(call));
    }
    return common_json{
        { "role", "assistant" },
        { "content", from.render_content() },
        { "reasoning_content", from.reasoning_content },
        { "tool_calls", calls },
    };
}

common_json delta(const common_chat_msg_diff & from) {
    common_json to = common_json::object();
    if (!from.content_delta.empty()) {
        to["content"] = from.content_delta;
    }
    if (!from.reasoning_content_delta.empty()) {
        to["reasoning_content"] = from.reasoning_content_delta;
    }
    if (from.tool_call_index != std::string::npos) {
        to["tool_call_index"] = from.tool_call_index;
        to["tool_call"]       = tool_call(from.tool_call_delta);
    }
    return to;
}

common_json rendered(const lsys_chat & chat) {
    const common_chat_params & from     = chat.params;
    common_json                triggers = common_json::array();
    for (const auto & trigger : from.grammar_triggers) {
        triggers.push_back({ { "kind", (int) trigger.type }, { "value", trigger.value }, { "token", trigger.token } });
    }
    return common_json{
        { "prompt", from.prompt.str() },
        { "grammar", from.grammar },
        { "grammar_kind", (int) chat.grammar_kind },
        { "grammar_lazy", from.grammar_lazy },
        { "triggers", triggers },
        { "preserved_tokens", strings(from.preserved_tokens) },
        { "stops", strings(from.additional_stops) },
        { "generation_prompt", from.generation_prompt },
        { "format", common_chat_format_name(from.format) },
        { "supports_thinking", from.supports_thinking },
        { "thinking_start", from.thinking_start_tag },
        { "thinking_ends", strings(from.thinking_end_tags) },
    };
}

lsys_status check_source(const llama_model * model, const char * source) {
    if (source != nullptr && source[0] != '\0') {
        return lsys::check_template(source);
    }
    if (model == nullptr) {
        return lsys::refuse("there is neither a model nor a template");
    }
    bool        any    = false;
    lsys_status status = LSYS_OK;
    for (const char * const name : { (const char *) nullptr, "tool_use", "tts" }) {
        const char * const own = llama_model_chat_template(model, name);
        any                    = any || (own != nullptr && (name == nullptr || std::string(name) == "tool_use"));
        if (own != nullptr && status == LSYS_OK) {
            status = lsys::check_template(own);
        }
    }
    return status == LSYS_OK && !any ? lsys::fail("the model has no chat template") : status;
}

} // namespace

lsys_status lsys_chat_templates_new(const llama_model * model, const char * source, lsys_chat_templates ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (out == nullptr) {
            return lsys::refuse("there is no place for the templates");
        }
        *out = nullptr;
        if (model != nullptr && llama_vocab_type(llama_model_get_vocab(model)) == LLAMA_VOCAB_TYPE_NONE) {
            return lsys::refuse("the model has no vocabulary");
        }
        const lsys_status status = check_source(model, source);
        if (status != LSYS_OK) {
            return status;
        }
        auto made   = std::make_unique<lsys_chat_templates>();
        made->inner = common_chat_templates_init(model, source ? source : "");
        *out        = made.release();
        return LSYS_OK;
    });
}

void lsys_chat_templates_free(lsys_chat_templates * templates) {
    delete templates;
}

lsys_status lsys_chat_templates_source(const lsys_chat_templates * templates, lsys_text ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (templates == nullptr || out == nullptr) {
            return lsys::refuse("templates and a place for the text are needed");
        }
        *out = nullptr;
        return lsys::give(common_chat_templates_source(templates->inner.get()), out);
    });
}

lsys_status lsys_chat_templates_caps(const lsys_chat_templates * templates, lsys_text ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (templates == nullptr || out == nullptr) {
            return lsys::refuse("templates and a place for the text are needed");
        }
        *out = nullptr;
        return lsys::give(common_chat_templates_get_caps(templates->inner.get()).dump_safe(), out);
    });
}

lsys_status lsys_chat_new(const lsys_chat_templates * templates, const char * inputs, lsys_chat ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (templates == nullptr || out == nullptr) {
            return lsys::refuse("templates and a place for the chat are needed");
        }
        *out = nullptr;
        common_json parsed;
        lsys_status status = lsys::parse_json(inputs, "the inputs", parsed);
        if (status == LSYS_OK) {
            status = check_keys(parsed);
        }
        if (status != LSYS_OK) {
            return status;
        }
        const common_chat_templates_inputs from = convert(parsed);
        auto                               made = std::make_unique<lsys_chat>();
        made->params                            = common_chat_templates_apply(templates->inner.get(), from);
        made->parser                            = common_chat_parser_params(made->params);
        made->parser.parser                     = std::move(made->params.parser);
        if (!made->params.grammar.empty()) {
            made->grammar_kind = !from.grammar.empty()                              ? LSYS_GRAMMAR_USER
                               : !from.json_schema.empty() && from.tools.empty() ? LSYS_GRAMMAR_OUTPUT_FORMAT
                                                                                    : LSYS_GRAMMAR_TOOL_CALLS;
        }
        made->message.role = "assistant";
        if (from.continue_final_message != COMMON_CHAT_CONTINUATION_NONE) {
            // What is continued is there already and is no delta.
            made->message = common_chat_parse(made->answer, true, made->parser);
        }
        *out = made.release();
        return LSYS_OK;
    });
}

void lsys_chat_free(lsys_chat * chat) {
    delete chat;
}

lsys_status lsys_chat_rendered(const lsys_chat * chat, lsys_text ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (chat == nullptr || out == nullptr) {
            return lsys::refuse("a chat and a place for the text are needed");
        }
        *out = nullptr;
        return lsys::give(rendered(*chat).dump_safe(), out);
    });
}

lsys_status lsys_chat_feed(lsys_chat * chat, const char * piece, size_t n_piece, bool final, lsys_text ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (chat == nullptr || out == nullptr || (piece == nullptr && n_piece > 0)) {
            return lsys::refuse("a chat, a piece of the answer and a place for the text are needed");
        }
        *out = nullptr;
        if (chat->finished) {
            return lsys::refuse("the answer is complete already");
        }
        if (n_piece > MAX_ANSWER || chat->answer.size() > MAX_ANSWER - n_piece) {
            return lsys::refuse("the answer is longer than %zu bytes", MAX_ANSWER);
        }
        chat->answer.append(common_chat_input(std::string(piece ? piece : "", n_piece)));
        chat->finished      = final;
        common_chat_msg now = common_chat_parse(chat->answer, !final, chat->parser);
        if (now.empty()) {
            now = chat->message;
        }
        common_json deltas = common_json::array();
        for (const auto & diff : common_chat_msg_diff::compute_diffs(chat->message, now)) {
            deltas.push_back(delta(diff));
        }
        chat->message = std::move(now);
        return lsys::give(common_json{ { "message", message(chat->message) }, { "deltas", deltas } }.dump_safe(), out);
    });
}

lsys_status lsys_json_schema_to_grammar(const char * schema, lsys_text ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (out == nullptr) {
            return lsys::refuse("there is no place for the grammar");
        }
        *out = nullptr;
        common_json       parsed;
        const lsys_status status = lsys::parse_json(schema, "the schema", parsed);
        return status == LSYS_OK ? lsys::give(json_schema_to_grammar(parsed), out) : status;
    });
}
