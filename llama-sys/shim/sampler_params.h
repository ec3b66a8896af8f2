// From the plain parameters of a sampler to those of common, with everything checked that common asserts on.
#pragma once

#include "guard.h"

#include "../common/common.h"

namespace lsys {

lsys_status sampler_params(const llama_vocab * vocab, const lsys_sampler_params & from, common_params_sampling & to);

} // namespace lsys
