// How deeply a text nests. The parsers of llama.cpp call themselves for each level and would use up the stack.
#include "nesting.h"

#include <cctype>
#include <cstring>

namespace {

constexpr size_t MAX_JSON        = 64 << 20;
constexpr size_t MAX_JSON_DEPTH  = 128;
constexpr size_t MAX_TEMPLATE    = 4 << 20;
constexpr size_t MAX_TAG         = 64 << 10;
constexpr size_t MAX_TAG_DEPTH   = 64; // brackets within a tag
constexpr size_t MAX_BLOCK_DEPTH = 64; // if, for, macro ... within each other

// Deepest level of brackets outside of strings.
size_t depth(const char * text, size_t size, const char * quotes) {
    size_t level = 0, deepest = 0;
    char   quote = 0;
    for (size_t i = 0; i < size; ++i) {
        const char c = text[i];
        if (quote != 0) {
            if (c == '\\') {
                ++i;
            } else if (c == quote) {
                quote = 0;
            }
        } else if (std::strchr(quotes, c) != nullptr && c != '\0') {
            quote = c;
        } else if (c == '{' || c == '[' || c == '(') {
            deepest = std::max(deepest, ++level);
        } else if ((c == '}' || c == ']' || c == ')') && level > 0) {
            --level;
        }
    }
    return deepest;
}

// The first word of a `{% ... %}` tag.
std::string keyword(const std::string & tag) {
    size_t begin = 0;
    while (begin < tag.size() && (std::isspace((unsigned char) tag[begin]) || tag[begin] == '-' || tag[begin] == '+')) {
        ++begin;
    }
    size_t end = begin;
    while (end < tag.size() && std::isalpha((unsigned char) tag[end])) {
        ++end;
    }
    return tag.substr(begin, end - begin);
}

bool opens_block(const std::string & word) {
    return word == "if" || word == "for" || word == "macro" || word == "call" || word == "filter" || word == "generation";
}

} // namespace

lsys_status lsys::check_template(const std::string & source) {
    if (source.size() > MAX_TEMPLATE) {
        return refuse("the template is %zu bytes long, the most is %zu", source.size(), MAX_TEMPLATE);
    }
    size_t blocks = 0;
    size_t at     = 0;
    while ((at = source.find('{', at)) != std::string::npos && at + 1 < source.size()) {
        const char kind = source[at + 1];
        const char end  = kind == '{' ? '}' : kind;
        if (kind != '{' && kind != '%' && kind != '#') {
            ++at;
            continue;
        }
        const size_t      close = source.find({ end, '}' }, at + 2);
        const std::string tag   = source.substr(at + 2, close == std::string::npos ? close : close - at - 2);
        at                      = close == std::string::npos ? source.size() : close + 2;
        if (kind == '#') {
            continue;
        }
        if (tag.size() > MAX_TAG || depth(tag.data(), tag.size(), "\"'") > MAX_TAG_DEPTH) {
            return refuse("a tag of the template is too long or nests too deeply");
        }
        const std::string word = kind == '%' ? keyword(tag) : "";
        if (opens_block(word) && ++blocks > MAX_BLOCK_DEPTH) {
            return refuse("the blocks of the template nest too deeply");
        }
        if (word.compare(0, 3, "end") == 0 && blocks > 0) {
            --blocks;
        }
    }
    return LSYS_OK;
}

lsys_status lsys::parse_json(const char * text, const char * what, common_json & out) {
    const size_t size = text != nullptr ? std::strlen(text) : 0;
    if (size == 0) {
        return refuse("%s is empty", what);
    }
    if (size > MAX_JSON || depth(text, size, "\"") > MAX_JSON_DEPTH) {
        return refuse("%s is longer than %zu bytes or nests more than %zu levels deep", what, MAX_JSON, MAX_JSON_DEPTH);
    }
    try {
        out = common_json::parse(text);
    } catch (const common_json_error & error) {
        return refuse("%s is not JSON: %s", what, error.what());
    }
    return LSYS_OK;
}
