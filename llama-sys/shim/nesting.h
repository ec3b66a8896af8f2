// Texts that parsers of llama.cpp read by calling themselves: bounded, so that they cannot use up the stack.
#pragma once

#include "guard.h"

#include "../common/json.h"

namespace lsys {

// LSYS_INVALID for a Jinja template that cannot be parsed, or is too long to try.
lsys_status check_template(const std::string & source);

// Parses JSON; `what` is named in the error.
lsys_status parse_json(const char * text, const char * what, common_json & out);

} // namespace lsys
