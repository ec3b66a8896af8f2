// How deeply a text nests. The parsers of llama.cpp call themselves for each level and would use up the stack.
#pragma once

#include "guard.h"

#include "../common/json.h"

namespace lsys {

// LSYS_INVALID for a Jinja template that is too long or nests too deeply.
lsys_status check_template(const std::string & source);

// Parses JSON within the same limits; `what` is named in the error.
lsys_status parse_json(const char * text, const char * what, common_json & out);

} // namespace lsys
