//! Settings: what can be set ([`settings`]), where each value comes from, and the home folder.
//!
//! Four layers, each over the last: the defaults, `config.toml` in the home folder, environment
//! variables, and `--set` on the command line. [`load`] reads them; [`resolve`] is the pure part.

mod check;
pub mod home;
mod layers;
pub mod settings;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

pub use home::Home;
pub use layers::{Sources, resolve};
pub use settings::Settings;

/// Settings with what is known about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The values in force.
    pub settings: Settings,
    /// Where each value that is not a default comes from, by its key (`voice.engine`).
    pub origins: BTreeMap<String, Origin>,
    /// What the person should know: one line each.
    pub warnings: Vec<String>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Built in.
    Default,
    /// The settings file.
    File {
        /// The file.
        path: PathBuf,
        /// Line of the value, from 1.
        line: usize,
        /// Column of the value in characters, from 1.
        column: usize,
    },
    /// An environment variable.
    Env {
        /// Its name.
        name: String,
    },
    /// `--set` on the command line.
    Flag,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, column } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Env { name } => f.write_str(name),
            Self::Flag => f.write_str("--set"),
        }
    }
}

/// A setting that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {text}")]
pub struct Problem {
    /// Where it stands.
    pub origin: Origin,
    /// What is wrong and what would be right.
    pub text: String,
}

/// Why the settings can't be used: every problem, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub Vec<Problem>);

impl std::error::Error for ConfigError {}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// One value in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key, such as `voice.engine`.
    pub key: String,
    /// Its value; `(set)` for a secret that is not empty.
    pub value: toml::Value,
    /// Where it comes from.
    pub origin: Origin,
}

impl Loaded {
    /// Where the value of a key comes from.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Every value in force, in the order of the keys' names. Secrets are hidden.
    pub fn entries(&self) -> Vec<Entry> {
        layers::flatten(&self.settings)
            .into_iter()
            .map(|(path, value)| {
                let key = layers::key_text(&path);
                let origin = self.origin(&key);
                let set = value.as_str().is_none_or(|text| !text.is_empty());
                let value = if layers::is_secret(&path) && set {
                    toml::Value::String("(set)".into())
                } else {
                    value
                };
                Entry { key, value, origin }
            })
            .collect()
    }
}

/// Reads the settings file of `home`, if there is one, and lays the environment and the flags over
/// it. `env` holds all environment variables; those that name no setting are left alone.
///
/// # Errors
/// Every value that can't be used, with the file, line and column, variable or flag it stands in.
pub fn load(
    home: &Home,
    env: impl IntoIterator<Item = (String, String)>,
    sets: &[String],
) -> Result<Loaded, ConfigError> {
    let path = home.config_file();
    let file = match std::fs::read_to_string(&path) {
        Ok(text) => Some((path, text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            let origin = Origin::File { path, line: 1, column: 1 };
            let text = format!("the settings file can't be read: {error}");
            return Err(ConfigError(vec![Problem { origin, text }]));
        }
    };
    resolve(&Sources { file, env: env.into_iter().collect(), sets: sets.to_vec() })
}

/// The environment of this process, as [`load`] takes it. Variables that are not Unicode name no
/// setting and are left out.
pub fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

#[cfg(test)]
#[path = "config/config_tests.rs"]
mod tests;
