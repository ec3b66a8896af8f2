// Texts that parsers of llama.cpp read by calling themselves: bounded, so that they cannot use up the stack.
#include "nesting.h"

#include "../common/jinja/parser.h"

#include <cstring>

namespace {

constexpr size_t MAX_JSON       = 64 << 20;
constexpr size_t MAX_JSON_DEPTH = 128; // as llama.cpp's limit for schemas
constexpr size_t MAX_TEMPLATE   = 4 << 20;
// Brackets and blocks are counted by llama.cpp itself, but not the links of a chain such as `a.b.c.d`. Evaluating one takes
// about 700 bytes of stack; this many characters are at most half as many links.
constexpr size_t MAX_TAG = 3000;

// The deepest level of brackets outside of strings.
size_t depth(const char * text, size_t size) {
    size_t level = 0, deepest = 0;
    bool   quoted = false;
    for (size_t i = 0; i < size; ++i) {
        const char c = text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            deepest = std::max(deepest, ++level);
        } else if ((c == '}' || c == ']') && level > 0) {
            --level;
        }
    }
    return deepest;
}

// Goes to the end of the tag that starts at `at` and gives its length without strings.
size_t tag_length(const std::string & source, char end, size_t & at) {
    size_t length = 0;
    char   quote  = 0;
    for (; at < source.size(); ++at) {
        const char c = source[at];
        if (quote != 0) {
            at += c == '\\';
            quote = c == quote ? 0 : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == end && at + 1 < source.size() && source[at + 1] == '}') {
            break;
        } else {
            ++length;
        }
    }
    return length;
}

} // namespace

lsys_status lsys::check_template(const std::string & source) {
    if (source.size() > MAX_TEMPLATE) {
        return refuse("the template is %zu bytes long, the most is %zu", source.size(), MAX_TEMPLATE);
    }
    for (size_t at = source.find('{'); at != std::string::npos && at + 1 < source.size(); at = source.find('{', at + 1)) {
        const char kind = source[++at];
        if (kind == '#') {
            at = std::min(source.find("#}", at + 1), source.size());
        } else if (kind == '{' || kind == '%') {
            if (tag_length(source, kind == '{' ? '}' : '%', ++at) > MAX_TAG) {
                return refuse("the template has a tag with more than %zu characters outside of strings", MAX_TAG);
            }
        }
    }
    try {
        jinja::parse_from_tokens(jinja::lexer().tokenize(source));
    } catch (const std::exception & error) {
        return refuse("the template cannot be parsed: %s", error.what()); // which would not get through to the caller
    }
    return LSYS_OK;
}

lsys_status lsys::parse_json(const char * text, const char * what, common_json & out) {
    const size_t size = text != nullptr ? std::strlen(text) : 0;
    if (size == 0) {
        return refuse("%s is empty", what);
    }
    if (size > MAX_JSON || depth(text, size) > MAX_JSON_DEPTH) {
        return refuse("%s is longer than %zu bytes or nests more than %zu levels deep", what, MAX_JSON, MAX_JSON_DEPTH);
    }
    try {
        out = common_json::parse(text);
    } catch (const common_json_error & error) {
        return refuse("%s is not JSON: %s", what, error.what());
    }
    return LSYS_OK;
}
