//! Language models behind one trait: embedded, OpenAI-compatible, and the chain of fallbacks.

pub mod openai;
pub mod providers;
pub mod sse;
pub mod think;
