//! Ears: capture, resampling, echo cancelling, voice activity, turns, speech recognition.
