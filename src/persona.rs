//! Persona: who Alice is, her prompt, and what she feels.
