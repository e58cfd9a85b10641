//! The secret that clients from elsewhere show.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use rand::Rng;

/// 32 random bytes in hex. Has no `Display` or `Debug` that shows it.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    const BYTES: usize = 32;

    /// Reads the token of a home, or makes one. The file belongs to its owner only; a file that
    /// others can read is closed to them.
    ///
    /// # Errors
    /// When the file can't be read, written or closed to others.
    pub fn load_or_create(path: &Path) -> anyhow::Result<Self> {
        let read = match std::fs::read_to_string(path) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("can't read `{}`", path.display()));
            }
        };
        if let Some(text) = read.filter(|text| text.len() >= Self::BYTES) {
            only_owner(path)?;
            return Ok(Self(text));
        }
        let mut bytes = [0_u8; Self::BYTES];
        rand::rng().fill_bytes(&mut bytes);
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::write(path, &text).with_context(|| format!("can't write `{}`", path.display()))?;
        Ok(Self(text))
    }

    fn write(path: &Path, text: &str) -> anyhow::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        // A temporary file is made with mode 0600, so the secret is never open to others.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        writeln!(file, "{text}")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }

    /// Whether `shown` is the token. Takes equally long wherever the first difference lies.
    pub fn matches(&self, shown: &str) -> bool {
        let differences = self
            .0
            .bytes()
            .zip(shown.bytes())
            .fold(0_u8, |seen, (own, theirs)| seen | (own ^ theirs));
        self.0.len() == shown.len() && differences == 0
    }

    /// The secret itself, for the cookie of a page that may have it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

#[cfg(unix)]
fn only_owner(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).with_context(
            || format!("others can read `{}`: run `chmod 600` on it", path.display()),
        )?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn only_owner(_path: &Path) -> anyhow::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_for_its_owner_only() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("new").join("token");
        let token = Token::load_or_create(&path).unwrap();
        assert_eq!(token.reveal().len(), 64);
        assert!(Token::load_or_create(&path).unwrap().matches(token.reveal()));
        assert!(!token.matches("") && !token.matches(&token.reveal()[1..]));
        assert!(!format!("{token:?}").contains(token.reveal()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(), 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            Token::load_or_create(&path).unwrap();
            assert_eq!(mode(), 0o600);
        }
    }
}
