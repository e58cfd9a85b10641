//! Persona: who Alice is, her prompt, and what she feels.

mod feelings;
mod lexicon;
mod prompt;

pub use feelings::Feelings;
pub use prompt::Persona;
