//! The server, used by the clients that programs for such servers are written with.

mod python;
mod rust;
mod served;
