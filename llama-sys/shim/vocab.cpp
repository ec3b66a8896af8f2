// Text to tokens and back.
#include "guard.h"

#include <climits>

namespace {

// A vocabulary that can tokenize at all, with the special tokens that llama.cpp asserts on.
lsys_status check_vocab(const llama_vocab * vocab, bool add_special) {
    if (vocab == nullptr || llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
        return lsys::refuse("there is no vocabulary");
    }
    if (!add_special) {
        return LSYS_OK;
    }
    const bool word_pieces = llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_WPM;
    if ((word_pieces || llama_vocab_get_add_bos(vocab)) && llama_vocab_bos(vocab) == LLAMA_TOKEN_NULL) {
        return lsys::refuse("the vocabulary wants a token at the start of a text but does not say which");
    }
    if (word_pieces && llama_vocab_sep(vocab) == LLAMA_TOKEN_NULL) {
        return lsys::refuse("the vocabulary wants a separator at the end of a text but does not say which");
    }
    if (!word_pieces && llama_vocab_get_add_eos(vocab) && llama_vocab_eos(vocab) == LLAMA_TOKEN_NULL) {
        return lsys::refuse("the vocabulary wants a token at the end of a text but does not say which");
    }
    return LSYS_OK;
}

} // namespace

lsys_status lsys_tokenize(const llama_vocab * vocab, const char * text, size_t n_text, bool add_special, bool parse_special,
                          llama_token * tokens, size_t capacity, size_t * n_out) {
    return lsys::guard([&]() -> lsys_status {
        if (n_out == nullptr || (text == nullptr && n_text > 0) || (tokens == nullptr && capacity > 0)) {
            return lsys::refuse("a text and places for its tokens and their number are needed");
        }
        *n_out = 0;
        if (n_text > INT32_MAX) {
            return lsys::refuse("the text is %zu bytes long, the most is %d", n_text, INT32_MAX);
        }
        const lsys_status status = check_vocab(vocab, add_special);
        if (status != LSYS_OK) {
            return status;
        }
        const int32_t room = (int32_t) std::min<size_t>(capacity, INT32_MAX);
        const int32_t n    = llama_tokenize(vocab, text ? text : "", (int32_t) n_text, tokens, room, add_special, parse_special);
        if (n == INT32_MIN) {
            return lsys::fail("the text has too many tokens");
        }
        *n_out = n < 0 ? (size_t) -n : (size_t) n;
        return LSYS_OK;
    });
}

lsys_status lsys_token_to_piece(const llama_vocab * vocab, llama_token token, bool special, char * bytes, size_t capacity, size_t * n_out) {
    return lsys::guard([&]() -> lsys_status {
        if (n_out == nullptr || (bytes == nullptr && capacity > 0)) {
            return lsys::refuse("places for the bytes and their number are needed");
        }
        *n_out                   = 0;
        const lsys_status status = check_vocab(vocab, false);
        if (status != LSYS_OK) {
            return status;
        }
        if (token < 0 || token >= llama_vocab_n_tokens(vocab)) {
            return lsys::refuse("token %d is outside the vocabulary of %d", token, llama_vocab_n_tokens(vocab));
        }
        const int32_t room = (int32_t) std::min<size_t>(capacity, INT32_MAX);
        const int32_t n    = llama_token_to_piece(vocab, token, bytes, room, 0, special);
        *n_out             = n < 0 ? (size_t) -n : (size_t) n;
        return LSYS_OK;
    });
}
