//! Store: transcripts on disk, one writer each.

pub mod sessions;
pub mod transcript;
mod writer;
