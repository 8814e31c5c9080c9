//! What holds of all pages together, found by following every link and form: who may what, what looking changes, what
//! forms take, and that nothing anybody writes becomes markup.

mod access;
mod crawl;
mod forms;
mod paths;
mod quiet;
mod script;
mod sent;
mod table;
