// What is said: the log lines of ggml, llama.cpp and common, and the text of the last error.
//
// llama.cpp's `common` has a logger with a thread of its own that writes to stdout and stderr. This file defines every
// function of common/log.h instead. The linker takes the first definition it meets, and the shim stands before common.
#include "guard.h"

#include "../common/log.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace {

// Where messages go. A sink is never freed, since another thread may still be calling it; the chain of older ones keeps
// leak checkers quiet.
struct sink {
    lsys_log_callback callback;
    void *            user_data;
    bool              trace;
    const sink *      previous;
};

std::atomic<const sink *> current{ nullptr };

// Whether this thread's last message was left out: its continuation lines are left out as well.
thread_local bool skipping = false;

void deliver(enum ggml_log_level level, const char * text) {
    const sink * const to = current.load(std::memory_order_acquire);
    if (to == nullptr || to->callback == nullptr || text == nullptr) {
        return;
    }
    if (level != GGML_LOG_LEVEL_CONT) {
        skipping = level == GGML_LOG_LEVEL_DEBUG && !to->trace;
    }
    if (!skipping) {
        to->callback(level, text, to->user_data);
    }
}

void deliver_from_llama(enum ggml_log_level level, const char * text, void *) {
    deliver(level, text);
}

constexpr size_t LAST_ERROR_SIZE = 4096;
// A fixed buffer: keeping a message must not fail.
thread_local char last_error[LAST_ERROR_SIZE] = "";

void keep(const char * format, va_list arguments) noexcept {
    std::vsnprintf(last_error, LAST_ERROR_SIZE, format, arguments);
}

} // namespace

void lsys::note(const char * format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    keep(format, arguments);
    va_end(arguments);
}

lsys_status lsys::refuse(const char * format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    keep(format, arguments);
    va_end(arguments);
    return LSYS_INVALID;
}

lsys_status lsys::fail(const char * format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    keep(format, arguments);
    va_end(arguments);
    return LSYS_FAILED;
}

const char * lsys_last_error(void) {
    return last_error;
}

const char * lsys_text_data(const lsys_text * text) {
    return text ? text->bytes.data() : "";
}

size_t lsys_text_size(const lsys_text * text) {
    return text ? text->bytes.size() : 0;
}

void lsys_text_free(lsys_text * text) {
    delete text;
}

void lsys_log_set(lsys_log_callback callback, void * user_data, bool trace) {
    static std::mutex setting;
    lsys::guard([&] {
        const std::lock_guard<std::mutex> lock(setting);
        const sink * const before = current.load(std::memory_order_relaxed);
        const sink * const after  = new sink{ callback, user_data, trace, before };
        current.store(after, std::memory_order_release);
        // Fitting swaps the function of llama.cpp for a while and puts ours back, so it is only set when it is another.
        ggml_log_callback installed = nullptr;
        void *            unused    = nullptr;
        llama_log_get(&installed, &unused);
        if (installed != deliver_from_llama) {
            llama_log_set(deliver_from_llama, nullptr);
        }
        return LSYS_OK;
    });
}

// ---- common/log.h --------------------------------------------------------------------------------------------------

struct common_log {};

static common_log the_log;

int common_log_get_verbosity_thold(void) {
    const sink * const to = current.load(std::memory_order_acquire);
    if (to == nullptr || to->callback == nullptr) {
        return LOG_LEVEL_OUTPUT - 1; // below all levels, so that nothing is formatted in vain
    }
    return to->trace ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;
}

int common_log_get_verbosity(enum ggml_log_level level) {
    switch (level) {
        case GGML_LOG_LEVEL_DEBUG: return LOG_LEVEL_DEBUG;
        case GGML_LOG_LEVEL_WARN:  return LOG_LEVEL_WARN;
        case GGML_LOG_LEVEL_ERROR: return LOG_LEVEL_ERROR;
        case GGML_LOG_LEVEL_NONE:  return LOG_LEVEL_OUTPUT;
        default:                   return LOG_LEVEL_INFO;
    }
}

void common_log_add(common_log *, enum ggml_log_level level, const char * format, ...) {
    char    line[512];
    va_list arguments;
    va_start(arguments, format);
    const int size = std::vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (size < (int) sizeof(line)) {
        deliver(level, size < 0 ? format : line);
        return;
    }
    std::string whole(size, '\0');
    va_start(arguments, format);
    std::vsnprintf(&whole[0], whole.size() + 1, format, arguments);
    va_end(arguments);
    deliver(level, whole.c_str());
}

void common_log_default_callback(enum ggml_log_level level, const char * text, void *) {
    deliver(level, text);
}

common_log * common_log_init() {
    return new common_log;
}

common_log * common_log_main() {
    return &the_log;
}

void common_log_free(common_log * log) {
    if (log != &the_log) {
        delete log;
    }
}

// What is set by lsys_log_set() alone, or has no meaning without a file and a terminal.
void common_log_set_verbosity_thold(int) {}
bool common_log_get_jsonl(void) { return false; }
void common_log_set_jsonl(bool) {}
void common_log_pause(common_log *) {}
void common_log_resume(common_log *) {}
void common_log_set_file(common_log *, const char *) {}
void common_log_set_stdo(common_log *, bool) {}
void common_log_set_colors(common_log *, log_colors) {}
bool common_log_get_colors(common_log *) { return false; }
void common_log_set_prefix(common_log *, bool) {}
void common_log_set_timestamps(common_log *, bool) {}
void common_log_flush(common_log *) {}
void common_log_add_json(common_log *, const char *, const common_json &) {}
