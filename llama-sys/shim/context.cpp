// Models and contexts: loading and making them, and what is noted about contexts.
#include "inside.h"

#include "ggml-cpu.h"

#include <atomic>
#include <cstring>
#include <initializer_list>
#include <map>
#include <mutex>

namespace {

// ---- notes about contexts ----

struct record {
    uint64_t decoded  = 0;
    uint64_t switched = 0;

    std::map<llama_seq_id, std::string> states; // what lsys_state_get() gave for states left on the device
};

struct ledger {
    std::mutex                              mutex;
    uint64_t                                decodes = 0;
    std::map<const llama_context *, record> records;
};

ledger & notes() {
    static ledger all;
    return all;
}

// ---- checks ----

template <typename Value>
bool one_of(Value value, std::initializer_list<Value> known) {
    return std::find(known.begin(), known.end(), value) != known.end();
}

// The types for which the memory can be written; others end in an abort at the first decode.
bool is_memory_type(enum ggml_type type) {
    return one_of(type, { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_IQ4_NL,
                          GGML_TYPE_Q5_0, GGML_TYPE_Q5_1 });
}

bool is_blank(const llama_layer & layer) {
    const auto * const bytes = reinterpret_cast<const unsigned char *>(&layer);
    return std::all_of(bytes, bytes + sizeof(layer), [](unsigned char byte) { return byte == 0; });
}

lsys_status check_kinds(const llama_context_params & params) {
    if (!one_of(params.ctx_type, { LLAMA_CONTEXT_TYPE_DEFAULT, LLAMA_CONTEXT_TYPE_MTP })) {
        return lsys::refuse("ctx_type %d is unknown", (int) params.ctx_type);
    }
    if (params.rope_scaling_type < LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED || params.rope_scaling_type > LLAMA_ROPE_SCALING_TYPE_MAX_VALUE) {
        return lsys::refuse("rope_scaling_type %d is unknown", (int) params.rope_scaling_type);
    }
    if (params.pooling_type < LLAMA_POOLING_TYPE_UNSPECIFIED || params.pooling_type > LLAMA_POOLING_TYPE_RANK) {
        return lsys::refuse("pooling_type %d is unknown", (int) params.pooling_type);
    }
    if (params.attention_type < LLAMA_ATTENTION_TYPE_UNSPECIFIED || params.attention_type > LLAMA_ATTENTION_TYPE_NON_CAUSAL) {
        return lsys::refuse("attention_type %d is unknown", (int) params.attention_type);
    }
    if (params.flash_attn_type < LLAMA_FLASH_ATTN_TYPE_AUTO || params.flash_attn_type > LLAMA_FLASH_ATTN_TYPE_ENABLED) {
        return lsys::refuse("flash_attn_type %d is unknown", (int) params.flash_attn_type);
    }
    if (!is_memory_type(params.type_k) || !is_memory_type(params.type_v)) {
        return lsys::refuse("types %d and %d for keys and values: a memory can be of F32, F16, BF16, Q8_0, Q5_1, Q5_0, Q4_1, Q4_0 or IQ4_NL",
                            (int) params.type_k, (int) params.type_v);
    }
    if (params.n_samplers > 0 && params.samplers == nullptr) {
        return lsys::refuse("n_samplers is %zu without samplers", params.n_samplers);
    }
    return LSYS_OK;
}

// `n_ctx` and `causal` as they will be.
lsys_status check_sizes(const llama_context_params & params, uint32_t n_ctx, bool causal, bool all_outputs) {
    const uint32_t n_seq = std::max(1u, params.n_seq_max);
    if (n_seq > LLAMA_MAX_SEQ) {
        return lsys::refuse("n_seq_max is %u, the most is %d", n_seq, LLAMA_MAX_SEQ);
    }
    if (params.n_batch == 0) {
        return lsys::refuse("n_batch is 0");
    }
    const uint32_t n_batch = causal ? std::min(n_ctx, params.n_batch) : params.n_batch;
    const bool     derived = params.n_outputs_max == 0 || all_outputs;
    const uint32_t n_out   = derived ? n_batch : params.n_outputs_max;
    if (n_out < n_seq) {
        return lsys::refuse("the context has room for %u outputs (from %s), but %u sequences need one each", n_out,
                            derived ? "n_batch" : "n_outputs_max", n_seq);
    }
    return LSYS_OK;
}

lsys_status check_model_sizes(const llama_model * model, const llama_context_params & params) {
    const uint32_t n_ctx = params.n_ctx != 0 ? params.n_ctx : model->hparams.n_ctx_train;
    if (n_ctx == 0) {
        return lsys::refuse("n_ctx is 0 and the model does not say how long its context is");
    }
    const bool causal = params.attention_type == LLAMA_ATTENTION_TYPE_UNSPECIFIED ? model->hparams.causal_attn
                                                                                  : params.attention_type == LLAMA_ATTENTION_TYPE_CAUSAL;
    return check_sizes(params, n_ctx, causal, llama_model_has_encoder(model));
}

// An assistant reads the embeddings of its target and what the last two layers there keep: their shapes must be its own.
lsys_status check_assistant(const llama_model & assistant, const llama_context & target) {
    const auto & own   = assistant.hparams;
    const auto & other = target.get_model().hparams;
    if (own.n_embd_out() != other.n_embd) {
        return lsys::refuse("the assistant is made for a target of width %u, this one's is %u", own.n_embd_out(), other.n_embd);
    }
    if (other.n_layer() < 2) {
        return lsys::refuse("the target has %u layers, and an assistant reads the last two", other.n_layer());
    }
    for (uint32_t layer = 0; layer < own.n_layer_all; ++layer) {
        const bool     sliding = own.is_swa(layer);
        const uint32_t shared  = other.n_layer() - (sliding ? 2 : 1);
        if (other.is_swa(shared) != sliding) {
            return lsys::refuse("layer %u of the target is %s, but layer %u of the assistant, which reads it, is not", shared,
                                sliding ? "of full attention" : "of a sliding window", layer);
        }
        if (own.n_embd_head_k(layer) != other.n_embd_head_k(shared) || own.n_embd_head_v(layer) != other.n_embd_head_v(shared)) {
            return lsys::refuse("keys and values of the assistant's layer %u are of length %u and %u, those of the target's layer %u of %u and %u",
                                layer, own.n_embd_head_k(layer), own.n_embd_head_v(layer), shared, other.n_embd_head_k(shared),
                                other.n_embd_head_v(shared));
        }
        const uint32_t n_head_kv = other.n_head_kv(shared);
        if (n_head_kv == 0 || own.n_head(layer) % n_head_kv != 0) {
            return lsys::refuse("the assistant's %u heads do not go evenly into the target's %u of keys and values", own.n_head(layer), n_head_kv);
        }
    }
    return LSYS_OK;
}

// What would dereference missing tensors while the graph is built.
lsys_status check_weights(const llama_model * model, const llama_context_params & params) {
    const auto & hparams = model->hparams;
    if (hparams.vocab_only) {
        return lsys::refuse("the model was loaded as a vocabulary only");
    }
    const bool nextn = params.ctx_type == LLAMA_CONTEXT_TYPE_MTP;
    if (model->arch == LLM_ARCH_GEMMA4_ASSISTANT) {
        if (!nextn || params.ctx_other == nullptr || params.ctx_other->get_model().arch != LLM_ARCH_GEMMA4) {
            return lsys::refuse("a gemma4 assistant needs a context of type MTP whose ctx_other is the context of a gemma4 model");
        }
        const auto & other = params.ctx_other->get_cparams();
        if (other.kv_unified != params.kv_unified || other.n_seq_max != std::max(1u, params.n_seq_max)) {
            return lsys::refuse("a gemma4 assistant shares the memory of its target, so kv_unified and n_seq_max must be equal");
        }
        // The layout of the values depends on it.
        const bool on = params.flash_attn_type == LLAMA_FLASH_ATTN_TYPE_ENABLED;
        if (params.flash_attn_type != LLAMA_FLASH_ATTN_TYPE_AUTO && on != other.flash_attn) {
            return lsys::refuse("a gemma4 assistant shares the memory of its target, whose flash attention is %s", other.flash_attn ? "on" : "off");
        }
        return check_assistant(*model, *params.ctx_other);
    }
    if (nextn) {
        for (uint32_t layer = hparams.n_layer(); layer < hparams.n_layer_all; ++layer) {
            if (layer < model->layers.size() && is_blank(model->layers[layer])) {
                return lsys::refuse("the model's next-token heads were not loaded: set load_mtp, or the file holds none");
            }
        }
    } else if (hparams.n_layer() > 0 && !model->layers.empty() && is_blank(model->layers[0])) {
        return lsys::refuse("the file holds next-token heads only: it can only be used for a context of type MTP");
    }
    return LSYS_OK;
}

} // namespace

lsys_status lsys::check_context_params(const llama_context_params & params) {
    const lsys_status status = check_kinds(params);
    return status == LSYS_OK ? check_sizes(params, params.n_ctx != 0 ? params.n_ctx : UINT32_MAX, true, false) : status;
}

uint64_t lsys::count_decode(const llama_context * ctx) {
    ledger & all = notes();
    const std::lock_guard<std::mutex> lock(all.mutex);
    return all.records[ctx].decoded = ++all.decodes;
}

void lsys::count_switch(const llama_context * ctx) {
    ledger & all = notes();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.records[ctx].switched = all.decodes;
}

bool lsys::extracted(const llama_context * ctx) {
    ledger & all = notes();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const record & noted = all.records[ctx];
    return noted.decoded > noted.switched;
}

void lsys::remember_state(const llama_context * ctx, llama_seq_id seq, const uint8_t * data, size_t size) {
    ledger & all = notes();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.records[ctx].states[seq].assign(reinterpret_cast<const char *>(data), size);
}

bool lsys::remembers_state(const llama_context * ctx, const uint8_t * data, size_t size) {
    ledger & all = notes();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto & states = all.records[ctx].states;
    return std::any_of(states.begin(), states.end(), [&](const auto & state) {
        return state.second.size() == size && std::memcmp(state.second.data(), data, size) == 0;
    });
}

lsys_status lsys_model_load(const char ** paths, size_t n_paths, const llama_model_params * params, llama_model ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (out == nullptr || params == nullptr || paths == nullptr || n_paths == 0) {
            return lsys::refuse("a path, parameters and a place for the model are needed");
        }
        *out = nullptr;
        for (size_t i = 0; i < n_paths; ++i) {
            if (paths[i] == nullptr || paths[i][0] == '\0') {
                return lsys::refuse("path %zu is empty", i);
            }
        }
        if (params->split_mode < LLAMA_SPLIT_MODE_NONE || params->split_mode > LLAMA_SPLIT_MODE_TENSOR) {
            return lsys::refuse("split_mode %d is unknown", (int) params->split_mode);
        }
        if (params->load_mode < LLAMA_LOAD_MODE_AUTO || params->load_mode > LLAMA_LOAD_MODE_DIRECT_IO) {
            return lsys::refuse("load_mode %d is unknown", (int) params->load_mode);
        }
        if (params->lazy_mode < LLAMA_LAZY_MODE_OFF || params->lazy_mode > LLAMA_LAZY_MODE_ON) {
            return lsys::refuse("lazy_mode %d is unknown", (int) params->lazy_mode);
        }
        *out = n_paths == 1 ? llama_model_load_from_file(paths[0], *params) : llama_model_load_from_splits(paths, n_paths, *params);
        return *out ? LSYS_OK : lsys::fail("the model could not be loaded, or loading was cancelled");
    });
}

lsys_status lsys_context_new(llama_model * model, const llama_context_params * params, llama_context ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (out == nullptr || model == nullptr || params == nullptr) {
            return lsys::refuse("a model, parameters and a place for the context are needed");
        }
        *out = nullptr;
        lsys_status status = check_kinds(*params);
        if (status == LSYS_OK) {
            status = check_model_sizes(model, *params);
        }
        if (status == LSYS_OK) {
            status = check_weights(model, *params);
        }
        if (status != LSYS_OK) {
            return status;
        }
        *out = llama_init_from_model(model, *params);
        if (*out == nullptr) {
            return lsys::fail("the context could not be made");
        }
        // It may stand where an older one stood.
        ledger & all = notes();
        const std::lock_guard<std::mutex> lock(all.mutex);
        all.records.erase(*out);
        return LSYS_OK;
    });
}

namespace {

// Looked up, since the CPU backend may be a library that is loaded at run time.
template <typename Function>
Function * of_cpu_backend(const char * name) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return device == nullptr ? nullptr : (Function *) ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name);
}

// Kept from when threads were started: while a process ends, threads may be freed when the list of backends is gone.
std::atomic<decltype(ggml_threadpool_free) *> end_threads{ nullptr };

} // namespace

lsys_status lsys_threads_new(int32_t count, ggml_threadpool_t * out) {
    return lsys::guard([&]() -> lsys_status {
        if (out == nullptr || count < 1 || count > GGML_MAX_N_THREADS) {
            return lsys::refuse("%d threads: 1 to %d, and a place for them, are needed", (int) count, GGML_MAX_N_THREADS);
        }
        *out = nullptr;
        auto * start = of_cpu_backend<decltype(ggml_threadpool_new)>("ggml_threadpool_new");
        auto * end   = of_cpu_backend<decltype(ggml_threadpool_free)>("ggml_threadpool_free");
        if (count == 1 || start == nullptr || end == nullptr) {
            return LSYS_OK;
        }
        end_threads = end;
        ggml_threadpool_params params = ggml_threadpool_params_default(count);
        // They sleep between batches: those of another context may need the processors then.
        params.poll = 0;
        *out        = start(&params);
        return *out ? LSYS_OK : lsys::fail("%d threads could not be started", (int) count);
    });
}

void lsys_threads_free(ggml_threadpool_t threads) {
    if (threads != nullptr) {
        end_threads.load()(threads);
    }
}
