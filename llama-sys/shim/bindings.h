/* What the bindings are made from: the C interface of llama.cpp and of the shim. */
#include "llama.h"
#include "shim.h"
