//! The pages in a real browser: `cargo test --test it browser:: -- --ignored`, with Debian's chromium and
//! chromium-driver.

mod permits;
