// Fitting into device memory, and measuring what is used.
#include "inside.h"

#include "../common/fit.h"

#include <cstring>
#include <mutex>

namespace {

// llama.cpp swaps its one logger while it fits or measures.
std::mutex one_at_a_time;

lsys_memory_row convert(const common_memory_breakdown_row & from) {
    lsys_memory_row to{};
    to.kind = from.kind == common_memory_breakdown_row::DEVICE ? LSYS_MEMORY_DEVICE
            : from.kind == common_memory_breakdown_row::HOST   ? LSYS_MEMORY_HOST
                                                               : LSYS_MEMORY_BUFFER;
    std::strncpy(to.name, from.name.c_str(), sizeof(to.name) - 1);
    to.total   = from.total;
    to.free    = from.free;
    to.model   = from.model;
    to.context = from.context;
    to.compute = from.compute;
    return to;
}

lsys_status give_rows(const std::vector<common_memory_breakdown_row> & from, lsys_memory_row * rows, size_t capacity, size_t * n_out) {
    std::vector<lsys_memory_row> all(from.size());
    std::transform(from.begin(), from.end(), all.begin(), convert);
    return lsys::give(all, rows, capacity, n_out);
}

} // namespace

lsys_status lsys_fit(const char * path, llama_model_params * model, llama_context_params * context, float * tensor_split,
                     llama_model_tensor_buft_override * overrides, size_t * margins, uint32_t n_ctx_min, const lsys_fit_extra * extra,
                     lsys_fit_result * out) {
    return lsys::guard([&]() -> lsys_status {
        if (path == nullptr || model == nullptr || context == nullptr || tensor_split == nullptr || overrides == nullptr || margins == nullptr ||
            out == nullptr) {
            return lsys::refuse("a path, parameters and places for what is fitted are needed");
        }
        *out = LSYS_FIT_ERROR;
        if (extra != nullptr && (extra->path == nullptr || extra->model == nullptr || extra->context == nullptr)) {
            return lsys::refuse("the second model lacks its path or parameters");
        }
        lsys_status status = lsys::check_context_params(*context);
        if (status == LSYS_OK && extra != nullptr) {
            status = lsys::check_context_params(*extra->context);
        }
        if (status != LSYS_OK) {
            return status;
        }
        common_fit_extra_model second{};
        if (extra != nullptr) {
            second = { extra->path, extra->model, extra->context, extra->shares_model };
        }
        const std::lock_guard<std::mutex> lock(one_at_a_time);
        *out = (lsys_fit_result) common_fit_params(path, model, context, tensor_split, overrides, margins, n_ctx_min, extra ? &second : nullptr,
                                                   GGML_LOG_LEVEL_ERROR);
        return LSYS_OK;
    });
}

lsys_status lsys_memory_breakdown(llama_context * ctx, lsys_memory_row * rows, size_t capacity, size_t * n_out) {
    return lsys::guard([&]() -> lsys_status {
        if (ctx == nullptr || n_out == nullptr || (rows == nullptr && capacity > 0)) {
            return lsys::refuse("a context and places for the rows and their number are needed");
        }
        return give_rows(common_memory_breakdown_rows(ctx), rows, capacity, n_out);
    });
}

lsys_status lsys_measure(const char * path, const llama_model_params * model, const llama_context_params * context, lsys_memory_row * rows,
                         size_t capacity, size_t * n_out) {
    return lsys::guard([&]() -> lsys_status {
        if (path == nullptr || model == nullptr || context == nullptr || n_out == nullptr || (rows == nullptr && capacity > 0)) {
            return lsys::refuse("a path, parameters and places for the rows and their number are needed");
        }
        const lsys_status status = lsys::check_context_params(*context);
        if (status != LSYS_OK) {
            return status;
        }
        const std::lock_guard<std::mutex> lock(one_at_a_time);
        return give_rows(common_fit_measure(path, model, context, nullptr, nullptr, GGML_LOG_LEVEL_ERROR), rows, capacity, n_out);
    });
}
