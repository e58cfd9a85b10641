//! Voice: speakable text, synthesis, mouth shapes, playback, and the ledger of what was heard.
