//! Speech recognition: engines, their order, and what keeps invented text out.

pub mod guard;
pub mod moonshine;
#[cfg(test)]
pub(crate) mod wer;
