// Whether drafters can be made from these parameters and contexts.
#pragma once

#include "guard.h"

namespace lsys {

bool is_draft_model_type(lsys_spec_type type);

// LSYS_INVALID with the reason when making them would throw, abort or never draft.
lsys_status check_drafters(const lsys_spec_params & params);

// The same for one lookup cache file of llama.cpp (lookup.cpp).
lsys_status check_lookup_file(const char * path, bool must_exist, int32_t n_vocab);

} // namespace lsys
