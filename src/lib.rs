//! Alice, a voice-and-avatar companion in one process. `ARCHITECTURE.md` is the map.

pub mod app;
pub mod bench;
pub mod cli;
pub mod config;
pub mod ears;
pub mod face;
pub mod kernel;
pub mod llm;
pub mod lock;
pub mod logging;
pub mod mind;
pub mod models;
pub mod onnx;
pub mod persona;
pub mod server;
pub mod store;
pub mod voice;

#[cfg(test)]
mod testing;
