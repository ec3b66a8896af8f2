// Where a memory keeps the recurrent states of its sequences.
//
// Such a memory has a cell for each sequence, and beside it room for the states after the last few tokens, which rejected
// tokens are taken back with. Any free cell may become that of any sequence. The sequences of a micro-batch, though, must lie
// in cells that follow each other in the same order, and llama.cpp moves others out of the way without what is beside them: a
// sequence of an earlier micro-batch of the same batch can then not go back, or goes back to the state of another one.
//
// Therefore each sequence gets the cell of its own number. Where the caches are one per sequence, a micro-batch holds
// sequences of consecutive numbers, and nothing is ever moved.
#include "inside.h"

#include "llama-memory-hybrid-iswa.h"
#include "llama-memory-hybrid.h"
#include "llama-memory-recurrent.h"

namespace {

// The part of the memory that keeps states for taking tokens back.
llama_memory_recurrent * with_snapshots(const llama_context * ctx) {
    llama_memory_i * const   memory = llama_get_memory(ctx);
    llama_memory_recurrent * found  = dynamic_cast<llama_memory_recurrent *>(memory);
    if (auto * const hybrid = dynamic_cast<llama_memory_hybrid *>(memory)) {
        found = hybrid->get_mem_recr();
    } else if (auto * const windowed = dynamic_cast<llama_memory_hybrid_iswa *>(memory)) {
        found = windowed->get_mem_recr();
    }
    return found != nullptr && found->n_rs_seq > 0 ? found : nullptr;
}

void copy_row(ggml_tensor * states, size_t from, size_t to) {
    if (states != nullptr) {
        std::vector<uint8_t> row(states->nb[1]);
        ggml_backend_tensor_get(states, row.data(), from * row.size(), row.size());
        ggml_backend_tensor_set(states, row.data(), to * row.size(), row.size());
    }
}

} // namespace

bool lsys::moves_states(const llama_context * ctx) {
    return settings(ctx).kv_unified && llama_n_seq_max(ctx) > 1 && with_snapshots(ctx) != nullptr;
}

void lsys::claim_cell(const llama_context * ctx, llama_seq_id seq) {
    llama_memory_recurrent * const memory = with_snapshots(ctx);
    if (memory == nullptr || (size_t) seq >= memory->cells.size()) {
        return;
    }
    auto & cell = memory->cells[seq];
    if (cell.tail < 0 && cell.is_empty()) {
        // As llama.cpp leaves an empty cell that it has just given to a sequence: the state is zero.
        cell.seq_id = { seq };
        cell.tail   = seq;
        cell.pos    = -1;
        cell.src    = -1;
        cell.rs_max = 0;
        memory->used += 1;
    }
}

void lsys::part_cells(llama_context * ctx, llama_seq_id from, llama_seq_id to) {
    llama_memory_recurrent * const memory = with_snapshots(ctx);
    if (memory == nullptr || (size_t) to >= memory->cells.size()) {
        return;
    }
    auto &        cells = memory->cells;
    const int32_t tail  = cells[from].tail;
    if (tail < 0 || cells[to].tail != tail || !cells[to].is_empty()) {
        return;
    }
    llama_synchronize(ctx);
    auto &       shared  = cells[tail];
    const size_t current = (size_t) memory->rs_idx[from] * memory->size + (size_t) (shared.src >= 0 ? shared.src : tail);
    for (const auto * const states : { &memory->r_l, &memory->s_l, &memory->p_l }) {
        for (ggml_tensor * const layer : *states) {
            copy_row(layer, current, (size_t) to);
        }
    }
    shared.seq_id.erase(to);
    cells[to].seq_id = { to };
    cells[to].tail   = to;
    cells[to].pos    = shared.pos;
    cells[to].src    = to;
    cells[to].rs_max = 0;
    memory->used += 1;
}
