//! The local server: events, chat, media, remote devices, the page.
