//! Settings: what can be set ([`settings`]), where each value comes from, and the home folder.

pub mod home;
pub mod settings;

pub use home::Home;
pub use settings::Settings;
