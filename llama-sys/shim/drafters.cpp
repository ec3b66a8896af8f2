// Whether drafters can be made from these parameters and contexts. Upstream answers most of this with abort().
#include "drafters.h"

#include "inside.h"

#include <cstring>

namespace {

// As llama.cpp's own options allow.
constexpr int32_t MAX_LENGTH = 1024;
// As llama.cpp compares vocabularies.
constexpr int32_t MAX_SIZE_DIFFERENCE = 128;
constexpr int32_t FIRST_COMPARED      = 5;

bool has(const lsys_spec_params & params, lsys_spec_type type) {
    return std::find(params.types, params.types + params.n_types, type) != params.types + params.n_types;
}

lsys_status check_range(const char * name, int32_t value, int32_t min, int32_t max) {
    return value >= min && value <= max ? LSYS_OK : lsys::refuse("%s is %d, but must be from %d to %d", name, value, min, max);
}

lsys_status check_map(const char * name, const lsys_ngram_map_params & map) {
    if (map.size_n < 1 || map.size_n > MAX_LENGTH || map.size_m < 1 || map.size_m > MAX_LENGTH || map.min_hits < 1) {
        return lsys::refuse("%s: size_n is %u, size_m %u, min_hits %u, but the sizes must be from 1 to %d and min_hits at least 1", name, map.size_n,
                            map.size_m, map.min_hits, MAX_LENGTH);
    }
    return LSYS_OK;
}

lsys_status check_lookup(const lsys_spec_params & params) {
    lsys_status status = LSYS_OK;
    if (has(params, LSYS_SPEC_NGRAM_SIMPLE)) {
        status = check_map("ngram_simple", params.ngram_simple);
        if (status == LSYS_OK && params.ngram_simple.size_m < params.ngram_simple.size_n) {
            status = lsys::refuse("ngram_simple: size_m is %u, below size_n %u, so it would never draft", params.ngram_simple.size_m,
                                  params.ngram_simple.size_n);
        }
    }
    if (status == LSYS_OK && has(params, LSYS_SPEC_NGRAM_MAP_K)) {
        status = check_map("ngram_map_k", params.ngram_map_k);
    }
    if (status == LSYS_OK && has(params, LSYS_SPEC_NGRAM_MAP_K4V)) {
        status = check_map("ngram_map_k4v", params.ngram_map_k4v);
    }
    if (status == LSYS_OK && has(params, LSYS_SPEC_NGRAM_MOD)) {
        status = check_range("ngram_mod_match", params.ngram_mod_match, 1, MAX_LENGTH);
        if (status == LSYS_OK) {
            status = check_range("ngram_mod_max", params.ngram_mod_max, 1, MAX_LENGTH);
        }
        if (status == LSYS_OK) {
            status = check_range("ngram_mod_min", params.ngram_mod_min, 0, params.ngram_mod_max);
        }
    }
    if (has(params, LSYS_SPEC_NGRAM_CACHE)) {
        const int32_t n_vocab = lsys::vocab_size(llama_get_model(params.ctx_target));
        if (status == LSYS_OK && params.ngram_cache_static != nullptr) {
            status = lsys::check_lookup_file(params.ngram_cache_static, true, n_vocab);
        }
        if (status == LSYS_OK && params.ngram_cache_dynamic != nullptr) {
            status = lsys::check_lookup_file(params.ngram_cache_dynamic, false, n_vocab);
        }
    }
    return status;
}

// ---- draft models ----

lsys_status check_vocabs(const llama_model * target, const llama_model * draft) {
    const llama_vocab * const a = llama_model_get_vocab(target);
    const llama_vocab * const b = llama_model_get_vocab(draft);
    if (llama_vocab_type(a) != llama_vocab_type(b)) {
        return lsys::refuse("the vocabularies are of different types: target %d, draft %d", (int) llama_vocab_type(a), (int) llama_vocab_type(b));
    }
    if (llama_vocab_type(a) == LLAMA_VOCAB_TYPE_NONE) {
        return lsys::refuse("the models have no vocabulary");
    }
    const struct {
        const char * name;
        bool         adds_a, adds_b;
        llama_token  a, b;
    } specials[] = {
        { "start", llama_vocab_get_add_bos(a), llama_vocab_get_add_bos(b), llama_vocab_bos(a), llama_vocab_bos(b) },
        { "end", llama_vocab_get_add_eos(a), llama_vocab_get_add_eos(b), llama_vocab_eos(a), llama_vocab_eos(b) },
    };
    for (const auto & special : specials) {
        if (special.adds_a != special.adds_b || (special.adds_a && special.a != special.b)) {
            return lsys::refuse("the vocabularies differ in the %s token: target %d (added: %s), draft %d (added: %s)", special.name, special.a,
                                special.adds_a ? "yes" : "no", special.b, special.adds_b ? "yes" : "no");
        }
    }
    const int32_t size_a = llama_vocab_n_tokens(a);
    const int32_t size_b = llama_vocab_n_tokens(b);
    if (std::abs(size_a - size_b) > MAX_SIZE_DIFFERENCE) {
        return lsys::refuse("the vocabularies differ in size: target %d, draft %d, at most %d apart", size_a, size_b, MAX_SIZE_DIFFERENCE);
    }
    for (llama_token token = FIRST_COMPARED; token < std::min(size_a, size_b); ++token) {
        const char * const text_a = llama_vocab_get_text(a, token);
        const char * const text_b = llama_vocab_get_text(b, token);
        if (std::strcmp(text_a, text_b) != 0) {
            return lsys::refuse("the vocabularies differ in token %d: target '%s', draft '%s'", token, text_a, text_b);
        }
    }
    return LSYS_OK;
}

// What all draft models need of their context.
lsys_status check_contexts(const lsys_spec_params & params) {
    const llama_context * const target = params.ctx_target;
    const llama_context * const draft  = params.ctx_draft;
    if (draft == nullptr) {
        return lsys::refuse("this type of drafter needs a draft context");
    }
    if (draft == target) {
        return lsys::refuse("target and draft are the same context");
    }
    if (llama_get_memory(draft) == nullptr) {
        return lsys::refuse("the draft model has no memory to decode into");
    }
    if (llama_n_seq_max(draft) != params.n_seq) {
        return lsys::refuse("n_seq is %u, but the draft context has %u sequences", params.n_seq, llama_n_seq_max(draft));
    }
    if (llama_n_batch(draft) < llama_n_batch(target)) {
        return lsys::refuse("batches of the target do not fit the draft context: n_batch is %u, the target's %u", llama_n_batch(draft),
                            llama_n_batch(target));
    }
    const auto & settings = lsys::settings(draft);
    if (settings.embeddings) {
        return lsys::refuse("the draft context must not give embeddings");
    }
    if (settings.n_rs_seq > 0 && settings.n_ubatch <= settings.n_rs_seq + 1) {
        return lsys::refuse("n_ubatch of the draft context is %u, but must be above n_rs_seq + 1 = %u", settings.n_ubatch, settings.n_rs_seq + 1);
    }
    if (settings.ctx_other != nullptr && settings.ctx_other != target) {
        return lsys::refuse("the draft context belongs to another target");
    }
    return LSYS_OK;
}

lsys_status check_draft_params(const lsys_spec_params & params) {
    lsys_status status = check_range("draft_n_max", params.draft_n_max, 1, MAX_LENGTH);
    if (status == LSYS_OK) {
        status = check_range("draft_n_min", params.draft_n_min, 0, params.draft_n_max);
    }
    if (status == LSYS_OK && !(params.draft_p_min >= 0.0f && params.draft_p_min <= 1.0f)) {
        status = lsys::refuse("draft_p_min is %g, but must be from 0 to 1", params.draft_p_min);
    }
    return status;
}

lsys_status check_causal(const lsys_spec_params & params) {
    return llama_get_causal_attn(params.ctx_draft) ? LSYS_OK : lsys::refuse("the draft model's attention is not causal");
}

lsys_status check_simple(const lsys_spec_params & params) {
    const llama_model * const draft = llama_get_model(params.ctx_draft);
    if (lsys::settings(params.ctx_draft).ctx_type != LLAMA_CONTEXT_TYPE_DEFAULT || llama_model_has_encoder(draft)) {
        return lsys::refuse("the draft (%s) is not a language model by itself", lsys::architecture(draft).c_str());
    }
    const lsys_status status = check_causal(params);
    return status == LSYS_OK ? check_vocabs(llama_get_model(params.ctx_target), draft) : status;
}

lsys_status check_mtp(const lsys_spec_params & params) {
    const llama_model * const target = llama_get_model(params.ctx_target);
    const llama_model * const draft  = llama_get_model(params.ctx_draft);
    if (lsys::settings(params.ctx_draft).ctx_type != LLAMA_CONTEXT_TYPE_MTP) {
        return lsys::refuse("the draft context must be of type MTP");
    }
    if (llama_model_n_embd_out(draft) != llama_model_n_embd_out(target)) {
        return lsys::refuse("the next-token heads read hidden states of width %d, the target gives %d", llama_model_n_embd_out(draft),
                            llama_model_n_embd_out(target));
    }
    if (llama_pooling_type(params.ctx_target) != LLAMA_POOLING_TYPE_NONE) {
        return lsys::refuse("the target context must not pool, or it gives no hidden states");
    }
    return check_causal(params);
}

// What EAGLE-3 and DFlash drafts read of the target.
lsys_status check_taps(const lsys_spec_params & params, bool last_from_hidden) {
    const llama_context * const target   = params.ctx_target;
    const llama_model * const   reader   = llama_get_model(params.ctx_draft);
    const int32_t * const       layers   = llama_model_target_layer_ids(reader);
    const uint32_t              n_layers = llama_model_target_layer_ids_n(reader);
    const int32_t               n_target = llama_model_n_layer(llama_get_model(target));
    const int32_t               width    = llama_model_n_embd(llama_get_model(target));
    for (uint32_t i = 0; i < n_layers; ++i) {
        if (layers[i] < 0 || layers[i] > n_target) {
            return lsys::refuse("the draft reads layer %d, the target has %d", layers[i], n_target);
        }
        if (layers[i] == n_target && last_from_hidden) {
            if (llama_model_n_embd_out(llama_get_model(target)) != width || llama_pooling_type(target) != LLAMA_POOLING_TYPE_NONE) {
                return lsys::refuse("the draft reads the target's last hidden states, which are pooled or of another width");
            }
        } else if (!lsys::publishes_layer(target, (uint32_t) layers[i])) {
            return lsys::refuse("the target's architecture (%s) does not give the input of layer %d",
                                lsys::architecture(llama_get_model(target)).c_str(), layers[i]);
        }
    }
    if (lsys::shape(params.ctx_draft).n_embd_inp_enc() != n_layers * (uint32_t) width) {
        return lsys::refuse("the draft reads %u values of a token, %u layers of the target give %u", lsys::shape(params.ctx_draft).n_embd_inp_enc(),
                            n_layers, n_layers * (uint32_t) width);
    }
    return LSYS_OK;
}

lsys_status check_eagle3(const lsys_spec_params & params) {
    const llama_model * const draft = llama_get_model(params.ctx_draft);
    if (draft->arch != LLM_ARCH_EAGLE3 || llama_model_target_layer_ids_n(draft) != 3) {
        return lsys::refuse("the draft (%s) is not an EAGLE-3 draft", lsys::architecture(draft).c_str());
    }
    const lsys_status status = check_causal(params);
    return status == LSYS_OK ? check_taps(params, true) : status;
}

// A number from the file's metadata.
int32_t meta(const llama_model * model, const char * key, int32_t otherwise) {
    char text[32] = {};
    return llama_model_meta_val_str(model, key, text, sizeof(text)) >= 0 ? std::atoi(text) : otherwise;
}

lsys_status check_dflash(const lsys_spec_params & params, bool dspark) {
    const llama_context * const ctx   = params.ctx_draft;
    const llama_model * const   draft = llama_get_model(ctx);
    if (draft->arch != LLM_ARCH_DFLASH || llama_model_target_layer_ids_n(draft) == 0) {
        return lsys::refuse("the draft (%s) is not a DFlash draft", lsys::architecture(draft).c_str());
    }
    const llama_token mask = llama_vocab_mask(llama_model_get_vocab(draft));
    if (mask < 0 || mask >= lsys::vocab_size(draft)) {
        return lsys::refuse("the draft's vocabulary has no mask token");
    }
    const int32_t block = meta(draft, "dflash.block_size", 16);
    if (block < 2 || block > MAX_LENGTH) {
        return lsys::refuse("the draft's block size is %d", block);
    }
    // Every drafting sequence puts a block of the same length into the same batch, whatever its own limit is. Without causal
    // attention it must fit a micro-batch, and the heads of DSpark and DFlash2 abort on one with parts of blocks.
    const bool     lilicorr = meta(draft, "lilicorr.candidate_topk", 0) > 0;
    const uint32_t rows     = lilicorr ? (uint32_t) block : (uint32_t) std::min(params.draft_n_max, dspark ? block : block - 1) + 1;
    const uint32_t room     = std::min(llama_n_ubatch(ctx), llama_n_batch(ctx));
    if (rows * params.n_seq > room) {
        return lsys::refuse("%u sequences draft %u rows at once, but the draft context takes %u (n_ubatch and n_batch)", params.n_seq, rows, room);
    }
    return check_taps(params, false);
}

lsys_status check_draft_model(const lsys_spec_params & params, lsys_spec_type type) {
    lsys_status status = check_draft_params(params);
    if (status == LSYS_OK) {
        status = check_contexts(params);
    }
    if (status != LSYS_OK) {
        return status;
    }
    switch (type) {
        case LSYS_SPEC_DRAFT_SIMPLE: return check_simple(params);
        case LSYS_SPEC_DRAFT_EAGLE3: return check_eagle3(params);
        case LSYS_SPEC_DRAFT_MTP:    return check_mtp(params);
        case LSYS_SPEC_DRAFT_DFLASH: return check_dflash(params, false);
        default:                     return check_dflash(params, true);
    }
}

} // namespace

bool lsys::is_draft_model_type(lsys_spec_type type) {
    return type >= LSYS_SPEC_DRAFT_SIMPLE && type <= LSYS_SPEC_DRAFT_DSPARK;
}

lsys_status lsys::check_drafters(const lsys_spec_params & params) {
    if (params.types == nullptr || params.n_types == 0) {
        return refuse("no type of drafter is named");
    }
    if (params.ctx_target == nullptr || llama_get_memory(params.ctx_target) == nullptr) {
        return refuse("there is no target context, or its model has no memory to decode into");
    }
    if (params.n_seq == 0 || params.n_seq > llama_n_seq_max(params.ctx_target)) {
        return refuse("n_seq is %u, the target context has %u sequences", params.n_seq, llama_n_seq_max(params.ctx_target));
    }
    if (params.n_seq > 1 && lsys::moves_states(params.ctx_target)) {
        return refuse("with n_rs_seq above 0, %u sequences can only be taken back if kv_unified is off", params.n_seq);
    }
    lsys_spec_type model_type = LSYS_SPEC_NONE;
    for (size_t i = 0; i < params.n_types; ++i) {
        const lsys_spec_type type = params.types[i];
        if (type <= LSYS_SPEC_NONE || type > LSYS_SPEC_NGRAM_CACHE) {
            return refuse("%d is not a type of drafter", (int) type);
        }
        if (is_draft_model_type(type) && model_type != LSYS_SPEC_NONE && model_type != type) {
            return refuse("types %d and %d both need the one draft context", (int) model_type, (int) type);
        }
        model_type = is_draft_model_type(type) ? type : model_type;
    }
    const lsys_status status = check_lookup(params);
    return status == LSYS_OK && model_type != LSYS_SPEC_NONE ? check_draft_model(params, model_type) : status;
}
