//! What the service tells about itself: logs on standard error, metrics for Prometheus.

pub mod logs;
mod mask;
pub mod metrics;

pub use mask::{mask_address, mask_addresses};
