//! Language models behind one trait: embedded, OpenAI-compatible, and the chain of fallbacks.

pub mod breaker;
pub mod chain;
mod choose;
#[cfg(feature = "local-llm")]
pub mod embedded;
mod none;
pub mod openai;
pub mod providers;
pub mod sse;
pub mod think;

pub use chain::{Chain, Notify};
pub use choose::{Chosen, choose};
