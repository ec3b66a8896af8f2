//! Empty on purpose: this package only pins a source archive.
