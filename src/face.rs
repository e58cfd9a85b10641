//! Face: what the avatar should show, and when.
