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

/// Why a file of a model can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWeights {
    /// It is not there.
    #[error("weights of `{model}` are missing (`{file}`): run `{}`", pull(.model))]
    Missing {
        /// Name in the manifest.
        model: String,
        /// The file.
        file: String,
    },
    /// It is not what the manifest says.
    #[error("weights of `{model}` are damaged (`{file}` {why}): run `alice models pull {model}`")]
    Damaged {
        /// Name in the manifest.
        model: String,
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What fetches a model. Where one that every talk needs is missing the others may be too, so all of
/// them are asked for at once.
fn pull(model: &str) -> String {
    let needed = Manifest::embedded()
        .is_ok_and(|manifest| manifest.set("default").iter().any(|known| known.name == model));
    if needed { "alice models pull".into() } else { format!("alice models pull {model}") }
}

/// Where a file of a model lies. One of the manifest is used only when its hash is right: it is read
/// (a second for the largest) when it changed since the hash was last looked at.
///
/// # Errors
/// [`BadWeights`], one line.
pub fn locate(home: &Home, model: &str, file: &str) -> Result<PathBuf, BadWeights> {
    let folder = home.models().join(model);
    let path = folder.join(file);
    if !path.is_file() {
        return Err(BadWeights::Missing { model: model.into(), file: file.into() });
    }
    let known = Manifest::embedded().ok().and_then(|manifest| manifest.model(model).ok());
    let known = known.and_then(|model| model.files_here().find(|known| known.path == file));
    match known.map(|known| check::intact(&folder, known)) {
        Some(Err(why)) => Err(BadWeights::Damaged { model: model.into(), file: file.into(), why }),
        Some(Ok(())) | None => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_a_wrong_size_or_content_are_not_used() {
        let silero = Manifest::embedded().unwrap().model("silero-vad").unwrap();
        let [file] = silero.files.as_slice() else { panic!("{silero:?}") };
        let folder = tempfile::tempdir().unwrap();
        for (bytes, why) in [(10, "bytes instead of"), (file.bytes, "wrong content")] {
            let zeros = std::fs::File::create(folder.path().join(&file.path)).unwrap();
            zeros.set_len(bytes).unwrap();
            let said = check::intact(folder.path(), file).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn what_is_said_names_the_command() {
        let missing = |model: &str| BadWeights::Missing { model: model.into(), file: "f".into() };
        assert!(missing("piper-joe").to_string().ends_with("run `alice models pull`"));
        assert!(missing("other").to_string().ends_with("run `alice models pull other`"));
    }
}
