//! The way to the system's sound devices.

/// The default host of cpal. On Linux ALSA's own complaints (two dozen lines where there is no sound
/// card) are kept off the terminal for this thread: what matters of them comes back as an error.
pub fn sound_host() -> cpal::Host {
    #[cfg(target_os = "linux")]
    hush_alsa();
    cpal::default_host()
}

/// Catches what ALSA would print on this thread, and throws away what was caught before.
#[cfg(target_os = "linux")]
fn hush_alsa() {
    if let Err(error) = alsa::Output::local_error_handler() {
        tracing::debug!(%error, "ALSA prints for itself");
    }
}
