//! Every behaviour that needs the real thing, one file each, in one binary.

mod private_postgres;
mod support;
