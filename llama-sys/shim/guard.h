// What every entry of the shim shares: the guard that stops exceptions, the text of the last error, returned texts.
#pragma once

#include "shim.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#if defined(__GNUC__)
#define LSYS_PRINTF __attribute__((format(printf, 1, 2)))
#else
#define LSYS_PRINTF
#endif

struct lsys_text {
    std::string bytes;
};

namespace lsys {

// Keeps a message for lsys_last_error() of this thread. Defined in log.cpp, so that every program that uses the shim also
// links our log in place of llama.cpp's.
LSYS_PRINTF void note(const char * format, ...) noexcept;

// LSYS_INVALID with a message.
LSYS_PRINTF lsys_status refuse(const char * format, ...) noexcept;

// LSYS_FAILED with a message.
LSYS_PRINTF lsys_status fail(const char * format, ...) noexcept;

// Runs the body of an entry. It is noexcept as a last resort: nothing it does after a catch can throw.
template <typename Body>
lsys_status guard(Body && body) noexcept {
    try {
        return std::forward<Body>(body)();
    } catch (const std::bad_alloc &) {
        note("out of memory");
        return LSYS_NO_MEMORY;
    } catch (const std::exception & error) {
        note("%s", error.what());
        return LSYS_EXCEPTION;
    } catch (...) {
        note("llama.cpp threw something that is not a std::exception");
        return LSYS_EXCEPTION;
    }
}

// The same for entries without a status: what was thrown is noted, `otherwise` comes back.
template <typename Value, typename Body>
Value guard_or(Value otherwise, Body && body) noexcept {
    Value value = otherwise;
    guard([&] {
        value = std::forward<Body>(body)();
        return LSYS_OK;
    });
    return value;
}

inline lsys_status give(std::string bytes, lsys_text ** out) {
    *out = new lsys_text{ std::move(bytes) };
    return LSYS_OK;
}

// Size-then-fill: the count goes to *n_out, the items to `data` if there is room for all.
template <typename Item>
lsys_status give(const std::vector<Item> & items, Item * data, size_t capacity, size_t * n_out) {
    *n_out = items.size();
    if (items.size() <= capacity) {
        std::copy(items.begin(), items.end(), data);
    }
    return LSYS_OK;
}

} // namespace lsys
