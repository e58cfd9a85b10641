//! The folder in which Alice keeps what is hers.

use std::path::{Path, PathBuf};

/// The layout of the home folder (`~/.alice`, or `ALICE_HOME`). Nothing is created by asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// A home at this folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    /// `ALICE_HOME` when it is set, else `.alice` in the user's home folder, else in this folder.
    pub fn from_env() -> Self {
        let own = std::env::var_os("ALICE_HOME").filter(|path| !path.is_empty());
        Self::at(own.map(PathBuf::from).unwrap_or_else(|| {
            std::env::home_dir().unwrap_or_else(|| PathBuf::from(".")).join(".alice")
        }))
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// Makes the folder, for its owner alone, when it is not there.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn create(&self) -> std::io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.0)
    }

    /// The settings file.
    pub fn config_file(&self) -> PathBuf {
        self.0.join("config.toml")
    }

    /// Session transcripts, one JSONL file each.
    pub fn sessions(&self) -> PathBuf {
        self.0.join("sessions")
    }

    /// Logs.
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// Prompt files that win over the embedded ones.
    pub fn prompts(&self) -> PathBuf {
        self.0.join("prompts")
    }

    /// Held while an Alice runs on this home; says who holds it.
    pub fn lock_file(&self) -> PathBuf {
        self.0.join("alice.lock")
    }

    /// The token that the page and other clients show to the server.
    pub fn token_file(&self) -> PathBuf {
        self.0.join("token")
    }

    /// Model weights: `ALICE_MODELS` when it is set, so that several homes can share them; else the
    /// user's cache folder; else this home.
    pub fn models(&self) -> PathBuf {
        let own = std::env::var_os("ALICE_MODELS").filter(|path| !path.is_empty());
        own.map(PathBuf::from).unwrap_or_else(|| match std::env::home_dir() {
            Some(user) => user.join(".cache").join("alice").join("models"),
            None => self.0.join("models"),
        })
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn a_new_home_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let home = super::Home::at(folder.path().join("new"));
        home.create().unwrap();
        home.create().unwrap();
        let mode = std::fs::metadata(home.root()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
