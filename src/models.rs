//! Model weights: the manifest, downloads, checks.
//!
//! A model `name` of the manifest has a folder of that name under [`crate::config::Home::models`],
//! and its files lie in it.

pub mod check;
mod hub;
pub mod manifest;
mod package;
pub mod pull;

use std::path::PathBuf;

use crate::config::Home;
pub use check::{State, state, verify};
pub use manifest::{Manifest, Model, ModelFile};
pub use package::Clients;
pub use pull::{Options, Progress, Puller, Report};

/// A file of a model that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("weights of `{model}` are missing (`{file}`): run `alice models pull {model}`")]
pub struct MissingWeights {
    /// Name in the manifest.
    pub model: String,
    /// The file.
    pub file: String,
}

/// Where a file of a model lies. Looks only whether it exists; the hash was checked when it was
/// fetched, and `alice models verify` checks it again.
///
/// # Errors
/// [`MissingWeights`] when it is not there.
pub fn locate(home: &Home, model: &str, file: &str) -> Result<PathBuf, MissingWeights> {
    let path = home.models().join(model).join(file);
    if path.is_file() {
        Ok(path)
    } else {
        Err(MissingWeights { model: model.into(), file: file.into() })
    }
}
