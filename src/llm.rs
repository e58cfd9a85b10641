//! Language models behind one trait: embedded, OpenAI-compatible, and the chain of fallbacks.
